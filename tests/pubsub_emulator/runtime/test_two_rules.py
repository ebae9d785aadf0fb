"""Networks with different rules run side by side in one process, and nothing chooses for them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.runtime.rules import CAP, SCENARIO

import pubsub_emulator
from pubsub_emulator.emulator.observers.digest import RunDigest
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import ImpossibleConfig, RuntimeSpec
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.governance import upgrade
from pubsub_emulator.runtime.rules import SHIPPED, Rules, RulesError

BLOCKS: Final = 12
CORE: Final = ("primitives", "trie", "xcm", "runtime", "collator", "emulator")
CHANGES: Final = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "update"}
    | {"appendleft", "popitem", "popleft", "setdefault"}
)
"""Methods that change a list, a set, a dict or a deque."""
REGISTERED: Final = {
    "collator/cheats/__init__.py: _KNOWN": "strategies register themselves when they are imported",
    "runtime/pallet_subscriber/handler.py: _KNOWN": "so do handlers, and a name is given once",
    "runtime/pallet_subscriber/delivered.py: _recent": "the last answer of a pure function",
}
"""State of modules of the core that functions change, with the reason why it is harmless."""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Rules, Rules]:
    """Rules that cap lifetimes, and rules that store all entries in one child trie."""
    (tmp_path / "cap.py").write_text(CAP, encoding="utf-8")
    (tmp_path / "one_trie.py").write_text(
        "from pubsub_emulator import rule\n\n\n@rule\ndef place(para):\n"
        '    return b"pubsub", para.to_bytes(4, "little")\n',
        encoding="utf-8",
    )
    return read_rules(tmp_path / "cap.py"), read_rules(tmp_path / "one_trie.py")


def _begun(rules: Rules) -> tuple[Simulation, RunDigest]:
    digest = RunDigest()
    simulation = Simulation(parse_scenario(SCENARIO, "two.toml", rules), (digest,), rules=rules)
    return simulation, digest


def _alone(rules: Rules) -> str:
    simulation, digest = _begun(rules)
    for _ in range(BLOCKS):
        simulation.step()
    return digest.value.hex()


def test_networks_with_different_rules_that_take_turns_are_those_that_run_alone(
    files: tuple[Rules, Rules],
) -> None:
    every = (*files, SHIPPED)
    running = [_begun(rules) for rules in every]
    for _ in range(BLOCKS):
        for simulation, _ in running:
            assert not simulation.step().refused
    found = [digest.value.hex() for _, digest in running]
    assert found == [_alone(rules) for rules in every]
    assert len(set(found)) == len(every)
    assert [simulation.network.rules for simulation, _ in running] == list(every)


def test_a_fork_and_a_restored_network_keep_their_rules(files: tuple[Rules, Rules]) -> None:
    simulation, _ = _begun(files[0])
    simulation.step()
    before = simulation.network.snapshot()
    copied = simulation.fork()
    assert copied.network.rules is files[0]
    assert all(chain.head.rules is files[0] for chain in copied.network.parachains.values())
    first = [simulation.step().block.header.hash() for _ in range(3)]
    assert [copied.step().block.header.hash() for _ in range(3)] == first
    simulation.network.restore(before)
    assert [simulation.step().block.header.hash() for _ in range(3)] == first


def test_rules_that_a_runtime_names_and_nobody_passes_are_refused(
    files: tuple[Rules, Rules],
) -> None:
    cap, other = files
    spec = RuntimeSpec(ParaId(2000), {}, rules=cap.digest)
    assert SubscriberView(Storage(State()), spec, cap).rules is cap
    assert SubscriberView(Storage(State()), RuntimeSpec(ParaId(2000), {}), cap).rules is SHIPPED
    for rules in (SHIPPED, other):
        with pytest.raises(RulesError, match=f"the rules 0x{cap.digest.hex()} are not loaded"):
            SubscriberView(Storage(State()), spec, rules)


def test_an_upgrade_keeps_its_chains_rules_or_returns_to_the_shipped_ones(
    files: tuple[Rules, Rules],
) -> None:
    cap, other = files
    simulation, _ = _begun(cap)
    chain = simulation.network.parachain(2000)
    spec, storage = chain.spec(), Storage(chain.state.fork())
    for digest in (cap.digest, b""):
        upgrade(storage, RuntimeSpec(spec.para_id, {}, 2, rules=digest))
    for digest in (cap.digest, other.digest):
        with pytest.raises(ImpossibleConfig, match=f"cannot bring the rules 0x{digest.hex()}"):
            upgrade(storage, RuntimeSpec(spec.para_id, {}, 3, rules=digest))


def _changed(tree: ast.Module) -> Iterator[str]:
    """Yield the names of a module that its functions bind again or change in place."""
    named: set[str] = set()
    for statement in tree.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                named.add(name)
            case ast.Assign(targets=targets):
                named |= {each.id for each in targets if isinstance(each, ast.Name)}
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for function in (node for node in ast.walk(tree) if isinstance(node, functions)):
        for node in ast.walk(function):
            match node:
                case ast.Global(names=names):
                    yield from names
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr=method), args=arguments
                ) if name in named and method in CHANGES:
                    # A storage item is changed in the storage that is its first argument.
                    if not (arguments and ast.unparse(arguments[0]).endswith("storage")):
                        yield name
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                    if name in named:
                        yield name


def test_no_function_of_the_core_changes_the_state_of_its_module() -> None:
    root = Path(pubsub_emulator.__file__).parent
    found = {
        f"{path.relative_to(root).as_posix()}: {name}"
        for room in CORE
        for path in (root / room).rglob("*.py")
        for name in _changed(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == REGISTERED.keys()
