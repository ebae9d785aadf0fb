"""Strategies: whatever they draw works, the emulator keeps its promises on it, and counterexamples
come out small.
"""

from hypothesis import find, given, settings
from hypothesis import strategies as st
from support.plumbing.examples import scaled

from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.parachain import Pace
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.storage import LAST_RELAY_PARENT
from pubsub_emulator.testing.histories import Delete, Go, History, Publish, SendDownward, play
from pubsub_emulator.testing.networks import Networks
from pubsub_emulator.testing.setups import NetworkSetup, SubscriberSetup
from pubsub_emulator.testing.strategies import (
    CLOSE_KEYS,
    NAMED_KEYS,
    cheats,
    collator_sets,
    histories,
    histories_of,
    items,
    key_sets,
    keys,
    networks,
    ttls,
    values,
)


def visible(network: Network, para: ParaId) -> dict[tuple[ParaId, PubsubKey], bytes]:
    """What a subscriber's last relay parent holds of its items."""
    chain = network.parachain(para)
    number = LAST_RELAY_PARENT.get(Storage(chain.state))
    kept = network.relay.block(number) if number is not None else None
    found = {}
    for publisher, wanted in chain.spec().subscriptions.items():
        trie = None if kept is None else kept.state.children.get(derive_child_key(publisher))
        for key in wanted:
            entry = None if trie is None else trie.get(key)
            if entry is not None:
                found[publisher, key] = PublishedEntry.decode(entry).value
    return found


@settings(max_examples=scaled(25))
@given(st.data())
def test_a_subscriber_knows_what_its_last_relay_parent_holds_and_nothing_else(
    data: st.DataObject,
) -> None:
    setup = data.draw(networks())
    network = setup.network()
    known: dict[ParaId, dict[tuple[ParaId, PubsubKey], bytes]] = {}
    for step in play(network, data.draw(histories_of(setup, max_actions=12))):
        assert step.refused == ()
        for para in network.parachains:
            mine = known.setdefault(para, {})
            for delivery in step.deliveries(para):
                if delivery.value is None:
                    del mine[delivery.publisher, delivery.key]
                else:
                    mine[delivery.publisher, delivery.key] = delivery.value
    for para, mine in known.items():
        assert mine == visible(network, para)


@settings(max_examples=scaled(15))
@given(st.data())
def test_a_cheat_is_refused_with_a_due_verdict_in_every_network(
    data: st.DataObject,
) -> None:
    setup = data.draw(networks(collators=collator_sets()))
    network = setup.network()
    for step in play(network, data.draw(histories_of(setup, max_actions=8))):
        for record in step.records:
            assert (record.strategy is None) == (record.refusal is None)
            if record.refusal is not None:
                assert record.refusal.verdict in record.due


def test_the_simplest_network_has_one_of_everything_and_is_honest() -> None:
    found = find(networks(collators=collator_sets()), lambda _: True)
    assert found == NetworkSetup((1000,), (SubscriberSetup(3000, {1000: (NAMED_KEYS[0],)}, ((),)),))


def test_a_counterexample_names_only_the_deeds_that_matter() -> None:
    def removes(history: History) -> bool:
        held = set()
        for deed in history:
            if isinstance(deed, Publish):
                held.add((deed.para, deed.key))
            elif isinstance(deed, Delete) and not held.isdisjoint(
                (deed.para, key) for key in deed.keys
            ):
                return True
        return False

    found = find(histories(max_actions=6), removes)
    assert found[-1] == Go(4)
    assert len(found) <= 5
    assert {deed.value for deed in found if isinstance(deed, Publish)} == {b""}
    assert {deed.ttl for deed in found if isinstance(deed, Publish)} == {0}


def test_a_cheating_network_shrinks_to_one_dishonest_collator() -> None:
    found = find(collator_sets(), any)
    assert sorted(found) == [(), (next(iter(STRATEGIES)),)]


def test_values_shrink_to_nothing_and_keys_to_the_first() -> None:
    assert find(values(), lambda _: True) == b""
    assert find(values(), lambda value: len(value) > 1000) == bytes(2048)
    assert find(ttls(), lambda _: True) == 0
    assert find(keys(), lambda _: True) == NAMED_KEYS[0]
    assert find(keys(), lambda key: key not in NAMED_KEYS) == CLOSE_KEYS[0] == bytes(32)
    assert find(key_sets(), lambda _: True) == (NAMED_KEYS[0],)
    assert find(cheats(), lambda _: True) == next(iter(STRATEGIES))
    assert find(cheats(["no-seal", "stranger"]), lambda name: name != "no-seal") == "stranger"


@given(st.data())
def test_what_is_drawn_is_as_asked(data: st.DataObject) -> None:
    assert len(data.draw(keys())) == 32
    assert len(data.draw(values(100))) <= 100
    assert 0 <= data.draw(ttls()) < 2**32
    drawn = data.draw(items((7, 8)))
    assert drawn.keys() <= {7, 8}
    assert all(list(wanted) == sorted(set(wanted)) and wanted for wanted in drawn.values())
    history = data.draw(histories((7,), None, (9,), settle=0))
    assert {deed.para for deed in history if isinstance(deed, Publish | Delete)} <= {7}
    assert {deed.para for deed in history if isinstance(deed, SendDownward)} <= {9}
    collators = data.draw(collator_sets())
    assert () in collators
    assert len(collators) <= 4


@given(networks(collators=collator_sets()), histories(subscribers=(3000,)))
def test_what_is_drawn_prints_as_the_code_that_makes_it(
    setup: NetworkSetup, history: History
) -> None:
    makers = (NetworkSetup, SubscriberSetup, Pace, Publish, Delete, SendDownward, Go)
    names = {maker.__name__: maker for maker in makers}
    assert eval(repr((setup, history)), names) == (  # noqa: S307  # the repr is what is tested
        setup,
        history,
    )


@settings(max_examples=scaled(20))
@given(networks(), st.data())
def test_a_history_is_the_same_in_forks(
    pubsub_networks: Networks, setup: NetworkSetup, data: st.DataObject
) -> None:
    frozen = pubsub_networks.build(setup.config())
    history = data.draw(histories_of(setup, max_actions=6, settle=2))
    roots = []
    for _ in range(2):
        network = frozen.fork()
        play(network, history)
        roots.append(
            [
                network.relay.header.hash(),
                *(chain.header.hash() for chain in network.parachains.values()),
            ]
        )
    assert roots[0] == roots[1]
