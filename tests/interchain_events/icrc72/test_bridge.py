"""What relay chains publish reaches canisters, in order, once: IC-55, acceptance row 27."""

from dataclasses import replace

from support.icrc72.canister_apps import Lab, keeping

from interchain_events.events.log.memory import MemoryStore
from interchain_events.events.log.sources.network import NetworkLog
from interchain_events.icrc72.bridge import EPOCH, Bridge, value_of
from interchain_events.icrc72.client import plain
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.settings import DEFAULTS
from pubsub_emulator.emulator.network import Network as Chains
from pubsub_emulator.primitives.pubsub import key_from_data

PRICE = key_from_data(b"DOT/USD")
MANY = replace(DEFAULTS, publications=10_000)


Follower = keeping(lambda note: (note.namespace, note.eventId, plain(note.data)))


def started(pattern: str) -> tuple[Chains, MemoryStore, NetworkLog, Lab, Bridge, Principal]:
    """A relay chain with a publisher, its log, the bridge, and a canister that follows."""
    chains = Chains.of(publishers=[1000], subscribers={2000: {1000: [PRICE]}})
    store = MemoryStore("demo")
    lab = Lab(settings=MANY)
    bridge = Bridge(lab.orchestrator, MANY, store=store)
    lab.network.create(0, bridge)
    reader = lab.install(Follower, 1, subscriptions={pattern: {}})
    lab.step(20)
    return chains, store, NetworkLog(chains, store), lab, bridge, reader


def test_row_27_ic_55_what_a_relay_chain_publishes_is_handled_in_order_once() -> None:
    chains, store, log, lab, bridge, reader = started("org.polkadot.*.*.Broadcaster.DataPublished")
    for number in range(12):
        chains.publish(1000, PRICE, b"%d" % number, ttl=100)
        chains.step(1)
        lab.step(3)
    log.flush()
    lab.step(200)
    rows = [row for row in store.read(0, 10_000).rows if row.kind == "Broadcaster.DataPublished"]
    assert len(rows) >= 10
    found = lab.app(reader).data
    assert [(each[1], each[2]["seq"], each[2]["id"]) for each in found] == [
        (row.seq, row.seq, row.id) for row in rows
    ]
    assert {each[0] for each in found} == {"org.polkadot.demo.relay.Broadcaster.DataPublished"}
    assert [each[2]["anchor"] for each in found] == [row.anchor for row in rows]
    assert bridge.refused() == 0


def test_ic_55c_a_rewind_is_told_and_the_new_epoch_follows() -> None:
    chains, store, log, lab, _, reader = started("org.polkadot.**")
    for number in range(4):
        chains.publish(1000, PRICE, b"%d" % number, ttl=100)
        chains.step(1)
    log.flush()
    lab.step(150)
    before = len(lab.app(reader).data)
    assert before
    head = store.head()
    assert head.anchor is not None
    store.rewind(head.anchor - 1)
    common = store.head().seq
    lab.step(200)
    told = lab.app(reader).data[before:]
    assert told[0][0] == "org.polkadot.demo.relay.Log.Rewound"
    assert told[0][1:] == (EPOCH, {"epoch": 1, "seq": common})


def test_ic_55_fields_become_values_of_the_page() -> None:
    fields = {
        "who": "0x0aff",
        "n": 7,
        "d": -2,
        "t": "abc",
        "ok": True,
        "none": None,
        "l": [1],
        "m": {"x": 1},
    }
    tags = [value_of(value).tag for value in fields.values()]
    assert tags == ["Blob", "Nat", "Int", "Text", "Bool", "Option", "Array", "Map"]
