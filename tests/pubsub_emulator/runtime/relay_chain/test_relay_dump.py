"""A dump of the relay state reads as FRAME storage: keys under declared items, each value in its
type (PS-1, PS-6).

Storage keys are compared with those of polkadot-js and PAPI.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from support.runtime.relay_chain import world
from support.runtime.relay_chain.golden_trace import Trace
from support.runtime.relay_chain.storage_dump import rows

from pubsub_emulator.emulator.relay.chain import RelayChain
from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, ParaId
from pubsub_emulator.runtime.pallet_pubsub import TtlPolicy
from pubsub_emulator.trie import state_root

VECTORS = Path(__file__).parents[3] / "vectors"
KEYS: list[dict[str, Any]] = [
    {"pallet": "Broadcaster", **row}
    for name in ("storage_keys/storage_keys.json", "broadcaster/storage_keys.json")
    for row in json.loads((VECTORS / name).read_text(encoding="utf-8"))["storage_keys"]
]
BY_ITEM = {
    ("System", "Account"),
    ("System", "Number"),
    ("Babe", "CurrentSlot"),
    ("Configuration", "ActiveConfig"),
    ("Broadcaster", "RegisteredPublishers"),
    ("Broadcaster", "PublishedKeys"),
    ("Broadcaster", "TotalStorageSize"),
    ("Broadcaster", "TtlData"),
    ("Broadcaster", "TtlScanCursor"),
}


def busy(policy: TtlPolicy, blocks: int = 60) -> RelayChain:
    trace = Trace(policy, checked=False)
    for number in range(1, blocks + 1):
        trace.step(number)
    return trace.chain


@pytest.fixture(scope="module", params=list(TtlPolicy), ids=lambda policy: policy.value)
def chain(request: pytest.FixtureRequest) -> RelayChain:
    return busy(request.param)


def test_every_entry_round_trips_with_its_declared_codecs(
    chain: RelayChain,
) -> None:
    read = rows(chain.state)
    dumped = world.dump(chain.state)
    assert len(read) == len(dumped)
    assert {row.key_again: row.value_again for row in read} == dumped
    assert state_root(dumped.items()) == chain.header.state_root
    assert {row.item.split("::")[0] for row in read} >= {
        "System", "Babe", "Balances", "Session", "Configuration", "Paras", "Dmp", "Hrmp",
        "Registrar", "MessageQueue", "Broadcaster",
    }  # fmt: skip


def test_ps1_ps2_every_child_trie_belongs_to_a_publisher_with_its_root_stored(
    chain: RelayChain,
) -> None:
    roots = {
        row.keys[0]: row.value for row in rows(chain.state) if row.item == ":child_storage:default:"
    }
    assert roots
    for child, root in roots.items():
        para = ParaId(int.from_bytes(child[6:], "little"))
        assert child == derive_child_key(para)
        entries = dict(chain.state.child_entries(child))
        assert root == state_root(entries.items()) != EMPTY_TRIE_ROOT
        for key, raw in entries.items():
            assert len(key) == 32
            assert PublishedEntry.decode(raw).encode() == raw


def test_every_declared_item_stands_where_the_vectors_say() -> None:
    compared = set()
    for row in KEYS:
        item = RELAY.items.get(f"{row['pallet']}.{row['item']}")
        if item is None:
            continue
        compared.add((item.pallet.name, item.item))
        found = item.prefix
        keys = [bytes.fromhex(key[2:]) for key in row["keys"]]
        if len(item.key_parts) == 1 and keys:
            keys = [b"".join(keys)]  # of one tuple
        for (hasher, codec), raw in zip(item.key_parts if keys else (), keys, strict=True):
            found += hasher.hash(codec.encode(codec.decode(raw)))
        assert found == bytes.fromhex(row["key"][2:])
    assert compared >= BY_ITEM
