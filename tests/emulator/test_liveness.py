"""Networks under governance, upgrades, channels, departures, faults and loads: nobody is blamed, doubled or stuck."""

import pytest

from pubsub_emulator.emulator.network import Network, NetworkConfig, Pace, ParachainConfig
from pubsub_emulator.laboratory.stories import BrokenPromise, NetworkStory, tell
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, merge_subscriptions
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused


@pytest.mark.parametrize("seed", range(8))
def test_a_story_told_by_a_seed_keeps_its_promises(seed: int) -> None:
    tell(b"test %d" % seed)


def test_the_same_seed_tells_the_same_story() -> None:
    one, other = tell(b"again", 12), tell(b"again", 12)
    assert one.said == other.said
    assert one.network.relay.header.hash() == other.network.relay.header.hash()


# The story can be broken: each promise is really held


def test_a_verdict_on_an_honest_block_breaks_a_story(monkeypatch: pytest.MonkeyPatch) -> None:
    story = NetworkStory()
    story.send(0, 2, 10)
    monkeypatch.setattr(
        "pubsub_emulator.runtime.parachain.validate.downward_head_after", lambda *_args: bytes(31) + b"\x01"
    )
    with pytest.raises(BrokenPromise, match="an honest block of 1000 is refused"):
        story.steps(3)


def test_a_message_that_is_lost_breaks_a_story() -> None:
    story = NetworkStory()
    story.send(0, 2, 10)
    story.network.parachain(1000).horizontal.clear()
    with pytest.raises(BrokenPromise, match="of 1000 to 2500 is lost"):
        story.end()


def test_a_parachain_that_stands_still_breaks_a_story() -> None:
    story = NetworkStory()
    story.network.parachain(2600).pace = Pace(every=1 << 40)
    with pytest.raises(BrokenPromise, match="parachain 2600 is stuck"):
        story.end()


# What makes a parachain impossible: docs/liveness.md

KEY = key_from_data(b"key")
SUBSCRIBED = merge_subscriptions([(ParaId(1000), [KEY])])
PARA = ParaId(2500)


def network(spec: RuntimeSpec | None = None, pace: Pace | None = None) -> Network:
    chains = (
        ParachainConfig.publisher(RuntimeSpec(ParaId(1000), {})),
        ParachainConfig(spec or RuntimeSpec(PARA, SUBSCRIBED), pace=pace or Pace()),
    )
    return Network(NetworkConfig(chains, channels=((PARA, ParaId(1000)),)))


def grows(net: Network, steps: int = 5) -> bool:
    before = net.parachain(PARA).header.number
    net.step(steps)
    return net.parachain(PARA).header.number > before


def test_impossible_a_para_that_is_not_registered() -> None:
    net = network()
    net.call(Root(), "Registrar", "deregister", PARA)
    net.step(110)
    assert not grows(net)
    net.call(Root(), "Registrar", "force_register", net.manager(PARA), PARA, net.parachain(PARA).header.encode())
    net.step(110)
    assert grows(net)


def test_impossible_messages_that_fit_no_block_of_the_runtime_until_it_leaves_and_comes_back() -> None:
    net = network(RuntimeSpec(PARA, SUBSCRIBED, max_pov_size=1_300_000, reserve_minimum=True))
    net.step(2)
    for _ in range(2):
        net.send_downward(PARA, b"x" * 30_000)
    net.step(1)
    assert not grows(net)
    assert "bytes of messages exceed" in net.step(1)[0].idle[PARA]
    net.call(Root(), "Registrar", "deregister", PARA)
    net.step(110)
    net.call(Root(), "Registrar", "force_register", net.manager(PARA), PARA, net.parachain(PARA).header.encode())
    net.step(110)
    assert grows(net)


def test_impossible_heads_longer_than_governance_allows_until_it_allows_for_them() -> None:
    net = network()
    net.call(Root(), "Configuration", "set_config", HostConfiguration(max_head_data_size=10), 1)
    net.step(60)
    assert not grows(net)
    events = [event for event in net.step(1)[0].events if isinstance(event, CandidateRefused)]
    assert [(event.para, repr(event.error)) for event in events] == [
        (PARA, "ModuleError('Paras', <Error.HeadDataTooLarge: 100>)")
    ]
    net.call(Root(), "Configuration", "set_config", HostConfiguration(), 0)
    net.step(60)
    assert grows(net)


def test_impossible_a_relay_parent_that_is_not_kept_any_more() -> None:
    net = network(pace=Pace(lag=300))
    net.step(260)
    net.step(45)
    assert not grows(net)
    assert "is no longer kept" in net.step(1)[0].idle[PARA]
    net.parachain(PARA).pace = Pace()
    assert grows(net)


@pytest.mark.parametrize(
    "change", [{"max_upward_message_size": 20, "max_upward_queue_size": 20}, {"hrmp_max_message_num_per_candidate": 0}]
)
def test_messages_that_governance_allows_no_room_for_wait_and_their_sender_goes_on(change: dict[str, int]) -> None:
    net = network()
    net.call(Root(), "Configuration", "set_config", HostConfiguration(**change), 1)  # type: ignore[arg-type]  # numbers
    net.step(60)
    net.send(PARA, 1000, b"waits")
    net.parachain(PARA).send_upward(b"u" * 100)
    assert grows(net)
    chain = net.parachain(PARA)
    assert chain.upward or chain.horizontal
    net.call(Root(), "Configuration", "set_config", HostConfiguration(), 0)
    net.step(60)
    assert not chain.upward
    assert not net.parachain(PARA).horizontal
