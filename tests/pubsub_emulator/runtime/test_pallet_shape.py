"""Every pallet is declared once and reads in the same order: constants, storage, events, errors,
then its class.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.events import EventRecord, Finalization, encode_records
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.pallet import Pallet
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.pallet_subscriber.events import PublisherDisabled
from pubsub_emulator.runtime.pallet_subscriber.meter import DisableReason
from pubsub_emulator.runtime.parachain.pallets import PARACHAIN

ROOT = Path(__file__).parents[3]
HOOKS = {
    "on_initialize",
    "on_idle",
    "on_finalize",
    "on_new_session",
    "on_offboard",
    "on_runtime_upgrade",
}
ITEMS = {"StorageValue", "StorageMap", "StorageDoubleMap", "para_map"}


def _base_names(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def _pallets() -> list[tuple[str, ast.Module, ast.ClassDef]]:
    out = []
    for path in sorted(
        [
            *(ROOT / "pubsub_emulator" / "runtime").rglob("*.py"),
            *(ROOT / "pubsub_emulator" / "emulator").rglob("*.py"),
        ]
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        out += [
            (f"{path.relative_to(ROOT)}: {node.name}", tree, node)
            for node in tree.body
            if isinstance(node, ast.ClassDef) and Hooks.__name__ in _base_names(node)
        ]
    return out


PALLETS = _pallets()


def _is_call(method: ast.FunctionDef) -> bool:
    made = [each.func for each in method.decorator_list if isinstance(each, ast.Call)]
    return any(isinstance(each, ast.Name) and each.id == "dispatchable" for each in made)


def _section(method: ast.FunctionDef) -> int:
    """Construction, genesis, calls, the pallet's other methods, hooks, checks, constants,
    implementation.
    """
    named = {"__init__": 0, "genesis": 1, "integrity_test": 5, "try_state": 6, "constants": 7}
    if method.name in named:
        return named[method.name]
    if _is_call(method):
        return 2
    if method.name in HOOKS:
        return 4
    return 8 if method.name.startswith("_") else 3


@pytest.mark.parametrize("pallet", [each[2] for each in PALLETS], ids=[each[0] for each in PALLETS])
def test_a_pallets_class_has_its_sections_in_order(pallet: ast.ClassDef) -> None:
    methods = [node for node in pallet.body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in methods] == [node.name for node in sorted(methods, key=_section)]
    assigned = [
        target
        for node in pallet.body
        for target in (
            [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        )
    ]
    assert isinstance(assigned[0], ast.Name)
    assert assigned[0].id == "pallet"


@pytest.mark.parametrize(
    ("tree", "pallet"), [each[1:] for each in PALLETS], ids=[each[0] for each in PALLETS]
)
def test_a_pallets_module_has_storage_then_events_then_errors_then_the_pallet(
    tree: ast.Module, pallet: ast.ClassDef
) -> None:
    order = []
    for node in tree.body:
        if node is pallet:
            order.append(3)
        elif isinstance(node, ast.ClassDef) and "Event" in _base_names(node):
            order.append(1)
        elif isinstance(node, ast.ClassDef) and node.name == "Error":
            order.append(2)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Name) and called.id in ITEMS:
                order.append(0)
    assert order == sorted(order)


def test_the_pallets_are_found() -> None:
    assert len(PALLETS) >= 15


def test_the_framework_loads_no_room_above_it() -> None:
    program = """
import sys
from importlib import import_module
from pathlib import Path
import pubsub_emulator.runtime.framework as framework
for each in Path(framework.__file__).parent.glob("*.py"):
    import_module(f"pubsub_emulator.runtime.framework.{each.stem}")
names = [name.split(".") for name in sys.modules if name.startswith("pubsub_emulator.")]
beside = {"lazy", "moved", "version"}
print(*sorted({".".join(parts[1:3]) for parts in names if parts[1] not in beside}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name for name in done.stdout.split() if not name.startswith(("primitives", "trie"))}
    assert loaded == {"runtime", "runtime.framework"}


def test_every_item_event_error_and_pallet_is_described() -> None:
    for item in every_runtime().items.values():
        assert item.docs, item.name
    for pallet in every_runtime().pallets.values():
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
    records = [
        EventRecord(
            Finalization(), PublisherDisabled(ParaId(1000), DisableReason.TRIE_DEPTH_EXCEEDED)
        )
    ]
    data = encode_records(records)
    assert PARACHAIN.decode_records(data) == every_runtime().decode_records(data) == records
    with pytest.raises(ScaleError, match=r"unknown event 102\.3"):
        RELAY.decode_records(data)
    with pytest.raises(ScaleError):
        every_runtime().decode_records(data + b"\0")
