"""A pallet is declared once: a runtime builds decoders, metadata and the table of items from its pallets."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

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

PACKAGE = Path(__file__).parents[2] / "pubsub_emulator"

SCRATCH = '''
"""A pallet that counts blocks."""

from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.codecs import U32
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.pallet import Event, Pallet
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("Scratch", 200, "pallet_scratch")
COUNT: Final = StorageValue(PALLET, "Count", "How many blocks there were.", scale.u32, 0)


@event(PALLET, 7)
class Counted(Event):
    """A block was counted."""

    count: U32


class Scratch(Hooks):
    """The pallet."""

    pallet = PALLET

    def on_initialize(self, storage: Storage, now: int) -> Weight:
        """Count the block."""
        COUNT.put(storage, now)
        deposit(storage, Counted(now))
        return WEIGHT_ZERO
'''
IMPORT = "from pubsub_emulator.runtime.relay.scratch import Scratch\n"
LINE = "        Scratch,\n"
PROGRAM = """
from support.accounts import network
from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.explorer.words import event_words, Names, state_key_words
from pubsub_emulator.node.at import At, metadata

net = network()
block = net.step(3)[-1]
relay = net.relay
at = At(relay.runtime, relay.header, relay.state, relay.header.hash())
print(*(b"How many blocks there were." in metadata(at, version) for version in (14, 15, 16)))
print(state_key_words(RELAY.items["Scratch.Count"].prefix, Names({}))[0])
events = [record.event for record in RELAY.stored_events(relay.storage())]
print(*(event_words(each, Names({})) for each in events if each.PALLET.name == "Scratch"))
"""


def test_a_pallet_is_added_by_one_file_and_one_line_with_its_import(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "assets"))
    (tmp_path / PACKAGE.name / "runtime" / "relay" / "scratch.py").write_text(SCRATCH, encoding="utf-8")
    listed = tmp_path / PACKAGE.name / "emulator" / "relay" / "pallets.py"
    text = listed.read_text(encoding="utf-8")
    text = text.replace("\nACCOUNTS:", f"{IMPORT}\nACCOUNTS:").replace("        Dmp,\n", f"        Dmp,\n{LINE}")
    listed.write_text(text, encoding="utf-8")
    path = os.pathsep.join(map(str, (tmp_path, Path(__file__).parents[1])))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.splitlines() == ["True True True", "Scratch.Count", "Scratch.Counted count 3"], done.stderr


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
