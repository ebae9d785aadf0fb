"""A host configuration that governance changes reaches what depends on it, and cannot break the relay chain (PS-23)."""

from dataclasses import replace

from support.relay_chain import world
from support.relay_chain.world import ROOT, SMALL, SYSTEM

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.dispatch import ModuleError
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration, active_config
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused
from pubsub_emulator.runtime.relay.message_queue import Error, ProcessingFailed


def set_config(config: HostConfiguration, session: int) -> world.Extrinsic:
    return world.call(ROOT, "set_config", config, session, pallet="Configuration")


def test_ps23_a_message_that_no_page_holds_is_refused_whatever_governance_allows() -> None:
    """Pages hold 700 bytes, five of them for a header; the configuration allows for 1,900."""
    chain = world.start()
    step = set_config(replace(SMALL.host, max_upward_message_size=1_900), 1)
    world.step(chain, (), [step], blocks=5)
    assert active_config(chain.storage()).max_upward_message_size == 1_900
    block = world.step(chain, [world.candidate(chain, SYSTEM, bytes(696))])
    refusal = ModuleError(Error.MessageSize)
    assert world.events(block, "ParaInclusion") == [CandidateRefused(ParaId(SYSTEM), refusal)]
    served = world.send(chain, SYSTEM, bytes(695))
    assert [type(event) for event in world.events(served, "MessageQueue")] == [ProcessingFailed]


def test_ps23_a_smaller_queue_holds_from_its_session_on_and_what_waits_is_still_served() -> None:
    chain = world.start()
    world.step(chain, (), [set_config(replace(SMALL.host, max_upward_queue_count=2), 1)], blocks=3)
    six = [world.message(world.publish(number % 5, b"%d" % number)) for number in range(6)]
    world.step(chain, [world.candidate(chain, SYSTEM, *six[:3]), world.candidate(chain, SYSTEM, *six[3:])])
    block = world.step(chain, [world.candidate(chain, SYSTEM, six[0])])
    assert chain.number == 5
    refusal = ModuleError(Error.CapacityExceeded)
    assert world.events(block, "ParaInclusion")[-1] == CandidateRefused(ParaId(SYSTEM), refusal)
    world.step(chain, blocks=2)
    assert world.waiting(chain, SYSTEM) == []
    assert world.value(chain, SYSTEM, 0) == b"5"
