"""The pallet's bytes: storage keys and child tries against vectors; events, errors, calls against
hand-worked SCALE.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from support.runtime.pallet_pubsub.world import ALICE, MOCK, World

from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key, publisher_root_key
from pubsub_emulator.primitives.types import U32_MAX, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.calls import encode_call
from pubsub_emulator.runtime.framework.dispatch import Call, ModuleError
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.pallet_pubsub import Config, Error, TtlPolicy, storage
from pubsub_emulator.runtime.pallet_pubsub.events import (
    DataPublished,
    KeyExpired,
    KeysDeleted,
    KeysForcedDeleted,
    PublisherDeregistered,
    PublisherRegistered,
)
from pubsub_emulator.runtime.pallet_pubsub.publish import value_length
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    ExpiryIndex,
    RegisteredPublishers,
    TtlLapMark,
    TtlScanCursor,
    rows_of,
)

VECTORS = Path(__file__).parents[3] / "vectors" / "broadcaster"
KEY = PubsubKey(bytes(range(32)))
PARA = ParaId(2000)


def vectors(file: str, rows: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / file).read_text())[rows]
    return found


def test_hot_paths_use_the_same_keys_as_the_items() -> None:
    for row in vectors("storage_keys.json", "storage_keys"):
        para = ParaId(int.from_bytes(unhex(row["keys"][0]), "little")) if row["keys"] else PARA
        rows = rows_of(para)
        made = {
            "RegisteredPublishers": rows.registration,
            "PublishedKeys": rows.published_keys,
            "TotalStorageSize": rows.total_storage_size,
        }
        if row["item"] in made:
            assert made[row["item"]] == unhex(row["key"])
        if row["item"] == "TtlData":
            assert rows.ttl_row(unhex(row["keys"][1])) == unhex(row["key"])
    lifetime = (U32_MAX).to_bytes(4, "little") + (7).to_bytes(4, "little")
    assert rows_of(PARA).index_row(lifetime, KEY) == ExpiryIndex.key_for(U32_MAX + 7, (PARA, KEY))


@pytest.mark.parametrize(
    "publisher", vectors("child_tries.json", "publishers"), ids=lambda p: str(p["para_id"])
)
def test_publishing_makes_the_child_root_that_sp_trie_and_smoldot_make_ps1_ps2(
    publisher: dict[str, Any],
) -> None:
    """A8, A32; defect 24: `when_inserted` is a height of the relay chain."""
    para = publisher["para_id"]
    world = World(Config(publisher_deposit=0))
    assert derive_child_key(para) == unhex(publisher["child_storage_key"])
    if para >= 2000:
        world.force_register(para)
    for item in reversed(publisher["items"]):
        world.at(item["when_inserted"]).publish(
            para, unhex(item["key"]), unhex(item["value"]), item["ttl"]
        )
        assert world.storage.child_get(derive_child_key(para), unhex(item["key"])) == unhex(
            item["encoded"]
        )
    assert world.child_root(para) == unhex(publisher["child_root"])
    world.root()
    assert publisher_root_key(para) == unhex(publisher["top_key"])
    assert world.storage.get(publisher_root_key(para)) == unhex(publisher["child_root"])
    world.try_state()


EVENTS: list[tuple[Event, str]] = [
    (DataPublished(PARA, KEY, 2048), "65 00 d0070000" + bytes(KEY).hex() + "00080000"),
    (PublisherRegistered(PARA, ALICE), "65 01 d0070000" + "aa" * 32),
    (PublisherDeregistered(ParaId(1)), "65 02 01000000"),
    (KeyExpired(ParaId(U32_MAX), KEY), "65 03 ffffffff" + bytes(KEY).hex()),
    (KeysDeleted(PARA, 3), "65 04 d0070000 03000000"),
    (KeysForcedDeleted(PARA, 1024), "65 05 d0070000 00040000"),
]


@pytest.mark.parametrize(("event", "encoded"), EVENTS, ids=lambda value: type(value).__name__)
def test_events_are_pallet_index_variant_and_fields_in_order(event: Event, encoded: str) -> None:
    assert event.encode() == bytes.fromhex(encoded)


@pytest.mark.parametrize(
    ("error", "index"),
    [
        ("ValueTooLong", 0),
        ("TooManyStoredKeys", 1),
        ("TotalStorageSizeExceeded", 2),
        ("TooManyPublishers", 3),
        ("NotRegistered", 4),
        ("AlreadyRegistered", 5),
        ("PublishNotAuthorized", 6),
        ("NotAuthorized", 7),
        ("NoKeysToDelete", 8),
    ],
)
def test_errors_are_module_errors_of_pallet_101(error: str, index: int) -> None:
    encoded = bytes((3, 101, index, 0, 0, 0))
    assert ModuleError(Error[error]).encode() == encoded
    assert every_runtime().decode_error(encoded) == ModuleError(Error[error])
    assert len(Error) == 9


@pytest.mark.parametrize(
    ("call", "args", "encoded"),
    [
        ("register_publisher", (PARA,), "6500d0070000"),
        (
            "force_register_publisher",
            (ALICE, 1, PARA),
            "6501" + "aa" * 32 + "01" + "00" * 15 + "d0070000",
        ),
        ("deregister_publisher", (PARA,), "6502d0070000"),
        ("force_deregister_publisher", (PARA,), "6503d0070000"),
        ("delete_keys", (PARA, [KEY]), "6504d007000004" + bytes(KEY).hex()),
        ("force_delete_keys", (PARA, [KEY, KEY]), "6505d007000008" + bytes(KEY).hex() * 2),
    ],
)
def test_calls_are_pallet_index_call_index_and_arguments(
    call: str, args: tuple[object, ...], encoded: str
) -> None:
    assert encode_call(World().pallet, Call("Broadcaster", call, args)).hex() == encoded


def test_stored_values_are_the_scale_of_their_types() -> None:
    world = World(
        MOCK, now=0x01020304, max_stored_keys=1, max_ttl_scans_per_idle=1, ttl_policy=TtlPolicy.SCAN
    )
    world.pallet.register_publisher(world.storage, Signed(ALICE), PARA)
    world.publish(PARA, KEY, b"v", 0x0A)
    raw = world.storage.get
    rows = rows_of(PARA)
    assert raw(RegisteredPublishers.key_for(PARA)) == bytes.fromhex("aa" * 32 + "64" + "00" * 15)
    assert raw(storage.CounterForRegisteredPublishers.key) == bytes.fromhex("01000000")
    assert raw(rows.published_keys) == bytes.fromhex("01000000")
    assert raw(rows.total_storage_size) == bytes.fromhex("21000000")
    assert raw(rows.ttl_row(KEY)) == bytes.fromhex("0a00000004030201")
    world.idle()
    assert raw(TtlScanCursor.key) == bytes.fromhex("d0070000" + bytes(KEY).hex() + "01000000")
    TtlLapMark.insert(world.storage, PARA, KEY)
    assert raw(TtlLapMark.key_for(PARA)) == KEY
    index = World(MOCK, now=0x01020304, ttl_policy=TtlPolicy.EXPIRY_INDEX)
    index.publish(5, KEY, b"v", 0x0A)
    expected = "000000000102030e" + "05000000" + bytes(KEY).hex()
    assert index.storage.get(ExpiryIndex.prefix + bytes.fromhex(expected)) == b""


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 2048, 16383, 16384, 20000])
def test_the_length_of_a_value_is_read_off_its_entry(length: int) -> None:
    assert value_length(PublishedEntry(bytes(length), 1, RelayBlockNumber(2)).encode()) == length
