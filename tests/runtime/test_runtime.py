"""A pallet is declared once: a runtime builds decoders, metadata and the table of items from its pallets."""

import subprocess
import sys

import pytest

from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.emulator.runtimes import EVERY
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.events import EventRecord, Finalization, encode_records
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.pallet import Pallet
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.pallet_subscriber.events import PublisherDisabled
from pubsub_emulator.runtime.pallet_subscriber.meter import DisableReason
from pubsub_emulator.runtime.parachain.pallets import PARACHAIN


def test_the_framework_loads_no_room_above_it() -> None:
    program = """
import sys
from importlib import import_module
from pathlib import Path
import pubsub_emulator.runtime.framework as framework
for each in Path(framework.__file__).parent.glob("*.py"):
    import_module(f"pubsub_emulator.runtime.framework.{each.stem}")
print(*sorted({".".join(name.split(".")[1:3]) for name in sys.modules if name.startswith("pubsub_emulator.")}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith(("primitives", "trie"))}
    assert loaded == {"runtime", "runtime.framework"}


def test_every_item_event_error_and_pallet_is_described() -> None:
    for item in EVERY.items.values():
        assert item.docs, item.name
    for pallet in EVERY.pallets.values():
        assert all(event.__doc__ for event in pallet.events.values())
        assert all(error.doc for error in pallet.errors or ())


def test_two_pallets_of_one_index_or_one_name_are_no_runtime() -> None:
    class One(Hooks):
        pallet = Pallet("One", 200, "pallet_one")

    class SameIndex(Hooks):
        pallet = Pallet("Two", 200, "pallet_two")

    class SameName(Hooks):
        pallet = Pallet("One", 201, "pallet_one")

    for other in (SameIndex, SameName):
        with pytest.raises(DefensiveFailure, match="one index or one name"):
            Runtime((One, other))
    assert [pallet.name for pallet in Runtime((One,)).pallets.values()] == ["One"]


def test_a_runtime_decodes_the_events_of_its_own_pallets_only() -> None:
    records = [EventRecord(Finalization(), PublisherDisabled(ParaId(1000), DisableReason.TRIE_DEPTH_EXCEEDED))]
    data = encode_records(records)
    assert PARACHAIN.decode_records(data) == EVERY.decode_records(data) == records
    with pytest.raises(ScaleError, match=r"unknown event 102\.3"):
        RELAY.decode_records(data)
    with pytest.raises(ScaleError):
        EVERY.decode_records(data + b"\0")
