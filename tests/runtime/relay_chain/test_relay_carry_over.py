"""Under backlog messages wait in order, paras take turns, nothing is lost or served twice (PS-11, PS-23)."""

from support.relay_chain import world
from support.relay_chain.world import BOUNDARY, ROOT, SYSTEM

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.executive import Block
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, PublisherDeregistered
from pubsub_emulator.runtime.relay.message_queue import Processed, ring


def one(para: int, number: int, size: int = 1) -> bytes:
    """A message whose value says who sent it as which."""
    return world.message(world.publish(number % 5, b"%d/%d" % (para, number) + bytes(size)))


def served(block: Block) -> list[tuple[int, bytes]]:
    told = world.events(block, "MessageQueue")
    return [(event.origin, event.id) for event in told if isinstance(event, Processed)]


def test_ps11_messages_that_still_wait_when_their_para_leaves_go_with_it_and_nothing_comes_back() -> None:
    """1000 is a system para: a message of it that ran after its data was removed would store data for ever."""
    chain = world.start()
    world.send(chain, SYSTEM, one(SYSTEM, 9))
    assert world.counted(chain, SYSTEM)[0] == 1
    # accepted in blocks 3 and 4, and the session changes in block 5
    light = [one(SYSTEM, number) for number in range(2)]
    heavy = [world.message(*(world.publish(i, b"") for i in range(3)))] * 3
    world.step(chain, [world.candidate(chain, BOUNDARY, *heavy)])
    world.step(
        chain,
        [world.candidate(chain, SYSTEM, *light)],
        [world.call(ROOT, "deregister", SYSTEM, pallet="Registrar")],
    )
    assert world.waiting(chain, SYSTEM) == light
    assert chain.number == 4
    block = world.step(chain)
    assert ParaId(SYSTEM) not in chain.runtime.paras.parachains(chain.storage())
    assert world.waiting(chain, SYSTEM) == []
    assert world.events(block, "Broadcaster")[0] == PublisherDeregistered(ParaId(SYSTEM))
    for _ in range(4):
        assert (world.entries(chain, SYSTEM), world.counted(chain, SYSTEM)) == ({}, (0, 0, 0))
        told = world.events(block, "Broadcaster")
        assert not [event for event in told if isinstance(event, DataPublished) and event.publisher == SYSTEM]
        block = world.step(chain)
    assert ring.members(chain.storage()) == []
    assert world.counted(chain, BOUNDARY)[0] == 3
