"""`Network.step` happens whole or not at all, and nothing that one parachain or governance did
makes it fail.
"""

from dataclasses import replace
from typing import Any

import pytest

from pubsub_emulator.emulator.network import Network, NetworkConfig, Pace, ParachainConfig
from pubsub_emulator.emulator.network.parachain import pack, split
from pubsub_emulator.primitives.pubsub import derive_child_key, key_from_data
from pubsub_emulator.primitives.types import U128_MAX, AccountId, ParaId, PubsubKey
from pubsub_emulator.runtime.balances.pallet import TOTAL_ISSUANCE
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, merge_subscriptions
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration, active_config
from pubsub_emulator.runtime.relay.hrmp import HrmpChannelId
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused
from pubsub_emulator.xcm import Publish, decode

PUBLISHER, SUBSCRIBER, TIGHT = ParaId(1000), ParaId(2500), ParaId(3000)
KEY = key_from_data(b"key")
SUBSCRIBED = merge_subscriptions([(PUBLISHER, [KEY])])


def network(
    *others: ParachainConfig,
    channels: tuple[tuple[ParaId, ParaId], ...] = (),
    pace: Pace | None = None,
    **spec: Any,
) -> Network:
    subscriber = ParachainConfig(RuntimeSpec(SUBSCRIBER, SUBSCRIBED, **spec), pace=pace or Pace())
    chains = (ParachainConfig.publisher(RuntimeSpec(PUBLISHER, {})), subscriber, *others)
    return Network(NetworkConfig(chains, channels=channels))


def configured(net: Network, **changes: int) -> HostConfiguration:
    """Have governance change the relay chain's configuration, and wait until it holds."""
    config = replace(HostConfiguration(), **changes)  # type: ignore[arg-type]  # numbers
    net.call(Root(), "Configuration", "set_config", config, 1)
    net.step(60)
    return config


def left_and_came_back(net: Network) -> None:
    """The subscriber is deregistered, and registered again with its head."""
    net.call(Root(), "Registrar", "deregister", SUBSCRIBER)
    net.step(110)
    assert not grows(net)
    head = net.parachain(SUBSCRIBER).header.encode()
    net.call(Root(), "Registrar", "force_register", net.manager(SUBSCRIBER), SUBSCRIBER, head)
    net.step(110)
    assert grows(net)


def grows(net: Network, steps: int = 5) -> bool:
    before = net.parachain(SUBSCRIBER).header.number
    net.step(steps)
    return net.parachain(SUBSCRIBER).header.number > before


def stored(net: Network, para: ParaId) -> bool:
    return net.relay.state.child_root(derive_child_key(para)) is not None


def overloaded(collators: tuple[tuple[tuple[str, ...], int], ...] = (((), 0), ((), 0))) -> Network:
    """A network in which more messages wait for `TIGHT` than fit into one of its blocks."""
    spec = RuntimeSpec(TIGHT, SUBSCRIBED, max_pov_size=1_300_000, reserve_minimum=True)
    net = network(ParachainConfig(spec, collators))
    net.step(3)
    for _ in range(2):
        net.send_downward(TIGHT, b"x" * 30_000)
    net.step(1)
    return net


def refusals(net: Network, steps: int, para: int) -> list[str]:
    """Why honest blocks of a parachain were refused, by its own rules or by the relay chain."""
    done = net.step(steps)
    own = [str(record.refusal) for step in done for record in step.refused if record.chain == para]
    return own + [
        repr(event.error)
        for step in done
        for event in step.events
        if isinstance(event, CandidateRefused)
    ]


# One parachain cannot build


def test_a_parachain_whose_messages_do_not_fit_is_idle_and_others_continue() -> None:
    net = overloaded()
    net.publish(PUBLISHER, KEY, b"value")
    net.send(TIGHT, SUBSCRIBER, b"waits")
    height = net.parachain(SUBSCRIBER).header.number
    steps = net.step(5)
    assert [message.data for message in net.parachain(TIGHT).horizontal] == [b"waits"]
    assert [list(step.idle) for step in steps] == [[TIGHT]] * 5
    assert "exceeds the share of 28212 bytes" in steps[0].idle[TIGHT]
    assert net.parachain(SUBSCRIBER).header.number == height + 5
    assert sum(len(step.deliveries(SUBSCRIBER)) for step in steps) == 1


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(
            (),
            id="honest",
        ),
        pytest.param(
            ("omit-node",),
            id="omit-node",
        ),
    ],
)
def test_no_collator_is_blamed_when_the_waiting_messages_fit_no_block(
    strategy: tuple[str, ...],
) -> None:
    net = overloaded(((strategy, 1_000_000), ((), 0)))
    assert [
        record for step in net.step(4) for record in step.records if record.chain == TIGHT
    ] == []


# A step that fails has not happened


class Fault(Exception):
    """What a test lets happen in the middle of a step."""


@pytest.mark.parametrize("fault", [Fault, KeyboardInterrupt])
def test_a_step_that_fails_leaves_all_as_it_was(
    monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    net, calm = network(), network()
    for each in (net, calm):
        each.step(2)
        each.publish(PUBLISHER, KEY, b"value")
        each.send_downward(SUBSCRIBER, b"message")
        each.call(Root(), "Balances", "force_set_balance", AccountId(b"a" * 32), 10**12)
        each.give_turn(PUBLISHER)

    def fails(*_args: object, **_kwargs: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(net.relay.runtime.executive, "build_block", fails)
        with pytest.raises(fault):
            net.step(1)
    assert net.number == 2
    assert net.parachain(PUBLISHER).publishes
    again, straight = net.step(4), calm.step(4)
    assert [step.block.header.hash() for step in again] == [
        step.block.header.hash() for step in straight
    ]
    assert [len(step.deliveries(SUBSCRIBER)) for step in again] == [
        len(step.deliveries(SUBSCRIBER)) for step in straight
    ]


# Governance


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {"max_upward_message_num_per_candidate": 1},
            id="number per candidate",
        ),
        pytest.param(
            {"max_upward_message_size": 10_000},
            id="message size",
        ),
        pytest.param(
            {"max_upward_queue_size": 20_000, "max_upward_message_size": 20_000},
            id="queue size",
        ),
        pytest.param(
            {"max_upward_queue_count": 1},
            id="queue count",
        ),
    ],
)
def test_senders_go_by_the_limits_that_hold_now_ps23(change: dict[str, int]) -> None:
    keys = [key_from_data(b"%d" % number) for number in range(200)]
    net = network()
    net.step(2)
    for key in keys[:100]:
        net.publish(PUBLISHER, key, b"v" * 1000)
    net.parachain(PUBLISHER).pack()  # messages that were made under the old limits
    with_old = net.parachain(PUBLISHER).upward[:]
    net.parachain(PUBLISHER).upward.clear()
    lowered = configured(net, **change)
    assert active_config(net.relay.storage()) == lowered
    net.parachain(PUBLISHER).upward.extend(with_old)
    for key in keys[100:]:
        net.publish(PUBLISHER, key, b"v" * 1000)
    assert refusals(net, 60, PUBLISHER) == []
    assert not net.parachain(PUBLISHER).has_messages()
    trie = net.relay.state.children[derive_child_key(PUBLISHER)]
    assert sorted(trie.keys()) == sorted(keys)


def test_fewer_horizontal_messages_are_sent_when_governance_allows_fewer() -> None:
    net = network(
        ParachainConfig(RuntimeSpec(TIGHT, {})),
        channels=((SUBSCRIBER, PUBLISHER), (SUBSCRIBER, TIGHT)),
    )
    configured(net, hrmp_max_message_num_per_candidate=1)
    net.send(SUBSCRIBER, PUBLISHER, b"one")
    net.send(SUBSCRIBER, TIGHT, b"two")
    assert refusals(net, 4, SUBSCRIBER) == []
    assert net.parachain(SUBSCRIBER).horizontal == []


def test_a_message_of_publishes_is_split_and_any_other_is_not() -> None:
    publishes = [Publish(PubsubKey(bytes((number,)) * 32), b"v" * 100, 0) for number in range(9)]
    (whole,) = pack(publishes)
    parts = split(whole, 500)
    assert len(parts) > 1
    assert all(len(part) <= 500 for part in parts)
    assert [each for part in parts for each in decode(part)] == publishes
    (single,) = pack(publishes[:1])
    assert split(single, 50) == [single]
    assert split(b"no message at all", 5) == [b"no message at all"]


def test_only_root_makes_system_parachains_ps7() -> None:
    net = network()
    nobody = AccountId(b"n" * 32)
    for para in (5, 1500, 1999):
        net.call(Signed(nobody), "Registrar", "register", ParaId(para), b"head")
    net.call(Root(), "Registrar", "force_register", nobody, ParaId(1600), b"head")
    net.call(Signed(nobody), "Registrar", "register", ParaId(2000), b"head")
    net.step(101)
    assert net.relay.runtime.paras.parachains(net.relay.storage()) == [1000, 1600, 2000, 2500]


def test_an_issuance_that_cannot_be_represented_is_a_failed_call() -> None:
    net = network()
    for who in (b"a", b"b"):
        net.call(Root(), "Balances", "force_set_balance", AccountId(who * 32), U128_MAX)
    (step,) = net.step(1)
    outcomes = [repr(outcome.error) for outcome in step.block.outcomes if outcome.error is not None]
    assert outcomes == ["Arithmetic(<ArithmeticError.Overflow: 1>)"] * 2
    net.relay.runtime.executive.try_state(net.relay.storage())
    net.step(2)
    assert net.number == 3


def test_a_para_leaves_whatever_its_managers_balance_is_at_the_top_of_u128_ps11() -> None:
    net, manager = network(), AccountId(b"a" * 32)
    net.call(Root(), "Balances", "force_set_balance", manager, 10**15)
    net.call(Root(), "Broadcaster", "force_register_publisher", manager, 10**14, 5000)
    net.call(Signed(manager), "Registrar", "register", 5000, b"head")
    net.step(101)
    others = TOTAL_ISSUANCE.get(net.relay.storage()) - 10**15
    net.call(Root(), "Balances", "force_set_balance", manager, U128_MAX - others - 10**14)
    net.call(Root(), "Registrar", "deregister", 5000)
    net.step(160)
    storage = net.relay.storage()
    net.relay.runtime.executive.try_state(storage)
    assert system.account(storage, manager).data.free == U128_MAX - others
    assert ParaId(5000) not in net.relay.runtime.paras.parachains(storage)


# Queues that begin anew


def test_a_channel_that_was_closed_and_opened_again_goes_on_ps52() -> None:
    net = network(channels=((PUBLISHER, SUBSCRIBER),))
    net.step(2)
    net.send(PUBLISHER, SUBSCRIBER, b"before")
    net.step(4)
    net.call(Root(), "Hrmp", "hrmp_close_channel", HrmpChannelId(PUBLISHER, SUBSCRIBER))
    net.call(Root(), "Hrmp", "force_open_hrmp_channel", PUBLISHER, SUBSCRIBER, 8, 1000)
    steps = net.step(
        1
    )  # what is sent in this block waits in the channel that is closed, and goes with it
    net.send(PUBLISHER, SUBSCRIBER, b"after")
    steps += net.step(10)
    assert [str(record.refusal) for step in steps for record in step.refused] == []
    blocks = [record.candidate.inherent for step in steps for record in step.records]
    taken = [
        m.data for block in blocks for _, messages in block.messages.horizontal for m in messages
    ]
    assert taken == [b"after"]


# When governance disables a parachain: docs/protocol.md


def test_impossible_a_para_that_is_not_registered() -> None:
    left_and_came_back(network())


def test_impossible_messages_fit_no_block_until_the_runtime_returns() -> None:
    net = network(max_pov_size=1_300_000, reserve_minimum=True)
    net.step(2)
    for _ in range(2):
        net.send_downward(SUBSCRIBER, b"x" * 30_000)
    net.step(1)
    assert not grows(net)
    assert "exceeds the share of" in net.step(1)[0].idle[SUBSCRIBER]
    left_and_came_back(net)


def test_impossible_heads_longer_than_governance_allows_until_it_allows_for_them() -> None:
    net = network()
    configured(net, max_head_data_size=10)
    assert not grows(net)
    events = [event for event in net.step(1)[0].events if isinstance(event, CandidateRefused)]
    assert [(event.para, repr(event.error)) for event in events] == [
        (SUBSCRIBER, "ModuleError('Paras', <Error.HeadDataTooLarge: 100>)")
    ]
    configured(net)
    assert grows(net)


def test_impossible_a_relay_parent_that_is_not_kept_any_more() -> None:
    net = network(pace=Pace(lag=300))
    net.step(305)
    assert not grows(net)
    assert "is no longer kept" in net.step(1)[0].idle[SUBSCRIBER]
    net.parachain(SUBSCRIBER).pace = Pace()
    assert grows(net)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {"max_upward_message_size": 20, "max_upward_queue_size": 20},
            id="message and queue size",
        ),
        pytest.param(
            {"hrmp_max_message_num_per_candidate": 0},
            id="horizontal number",
        ),
    ],
)
def test_messages_without_room_wait_and_their_sender_continues(
    change: dict[str, int],
) -> None:
    net = network(channels=((SUBSCRIBER, PUBLISHER),))
    configured(net, **change)
    net.send(SUBSCRIBER, PUBLISHER, b"waits")
    net.parachain(SUBSCRIBER).send_upward(b"u" * 100)
    assert grows(net)
    assert net.parachain(SUBSCRIBER).upward or net.parachain(SUBSCRIBER).horizontal
    configured(net)
    assert not net.parachain(SUBSCRIBER).upward
    assert not net.parachain(SUBSCRIBER).horizontal
