"""Every pallet reads in the same order: constants, storage, events, errors, then its class in fixed sections."""

import ast
from pathlib import Path

import pytest

from pubsub_emulator.runtime.framework.hooks import Hooks

ROOT = Path(__file__).parents[2]
HOOKS = {"on_initialize", "on_idle", "on_finalize", "on_new_session", "on_offboard", "on_runtime_upgrade"}
ITEMS = {"StorageValue", "StorageMap", "StorageDoubleMap", "para_map"}


def _base_names(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def _pallets() -> list[tuple[str, ast.Module, ast.ClassDef]]:
    out = []
    for path in sorted(
        [*(ROOT / "pubsub_emulator" / "runtime").rglob("*.py"), *(ROOT / "pubsub_emulator" / "emulator").rglob("*.py")]
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
    """Construction, genesis, calls, the pallet's other methods, hooks, checks, constants, implementation."""
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
        for target in ([node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", []))
    ]
    assert isinstance(assigned[0], ast.Name)
    assert assigned[0].id == "pallet"


@pytest.mark.parametrize(("tree", "pallet"), [each[1:] for each in PALLETS], ids=[each[0] for each in PALLETS])
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
