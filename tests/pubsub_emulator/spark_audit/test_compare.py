"""Where two records part: block, storage key, trie node."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.plumbing.scenarios import scenario
from support.spark_audit.audits import flip

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.emulator.fixtures import (
    FixtureMaker,
    make_fixture,
    read_fixture,
    write_fixture,
)
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.emulator.state_diff import diff_nodes, diff_states, key_name
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead
from pubsub_emulator.spark_audit.compare import CompareError, compare
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.trie import Trie

SCENARIO = scenario("compared")


class Recorder(FixtureMaker):
    """A fixture of every candidate."""

    def candidate(self, record: BlockRecord) -> None:
        name = f"{record.chain}-{record.candidate.header.number:03}-{len(self.fixtures):03}"
        self.fixtures.append(make_fixture(name, "a block", self._heads[record.chain], record))
        if record.outcome is not None:
            self._heads[record.chain] = ChainHead(
                record.candidate.header, record.outcome.state
            ).fork()


def _run(folder: Path, **settings: str) -> tuple[Path, Path]:
    """A history and fixtures of all its blocks."""
    known = {"name": "one", "seed": "s", "cache": "slots"}
    recorder = Recorder()
    with HistoryWriter(folder / "history", settings.get("name", "one")) as writer:
        Simulation(
            parse_scenario(SCENARIO.format(**{**known, **settings}), "test"), (writer, recorder)
        ).run()
    fixtures = folder / "fixtures"
    fixtures.mkdir()
    for fixture in recorder.fixtures:
        write_fixture(fixture, fixtures / f"{fixture.name}.json")
    return folder / "history", fixtures


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return _run(tmp_path_factory.mktemp("recorded"))


def _diff(a: Path, b: Path) -> Result:
    return CliRunner().invoke(pubsub, ["diff", str(a), str(b)])


def test_equal_records_are_said_to_be_equal(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    history, fixtures = recorded
    again = tmp_path / "again"
    again.mkdir()
    other, _ = _run(again, name="renamed")
    for a, b in (
        (history, history),
        (history, other),
        (history, fixtures),
        (fixtures, history),
        (fixtures, fixtures),
    ):
        result = _diff(a, b)
        assert result.exit_code == 0, result.output
        assert "equal: every block" in result.stdout
        assert "0 blocks" not in result.stdout
    assert compare(history, fixtures).compared == len(list(fixtures.iterdir()))


def test_histories_of_different_seeds_part_at_genesis(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    other, _ = _run(tmp_path, seed="t")
    assert compare(recorded[0], recorded[0]).genesis == []
    shown = _diff(recorded[0], other)
    lines = shown.stdout.splitlines()
    assert shown.exit_code == 1
    assert lines[3].startswith("different genesis: these are different networks")
    assert lines[4].startswith("  one: relay block 0 is 0x")
    result = compare(recorded[0], other)
    assert result.first is not None
    assert result.first.which == "pre-state"
    assert result.first.state is not None
    assert result.first.state.name == "Aura.Authorities"
    assert result.others


def test_a_chain_with_another_cache_policy_parts_in_its_code_first(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    other, _ = _run(tmp_path, cache="none")
    result = compare(recorded[0], other)
    assert result.first is not None
    assert "chain 3001, block 1" in str(result.first.a)
    assert result.first.state is not None
    assert result.first.state.name == ":code"
    shown = _diff(recorded[0], other)
    assert shown.exit_code == 1
    assert "trie node at" in shown.stdout


def _change(
    fixtures: Path, tmp_path: Path, name: str, change: Callable[[dict[str, Any]], None]
) -> Path:
    folder = tmp_path / "changed"
    shutil.copytree(fixtures, folder)
    path = folder / f"{name}.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return folder


def _accepted(fixtures: Path) -> str:
    """A block in the middle that delivered something."""
    found = [
        fixture.name
        for fixture in map(read_fixture, sorted(fixtures.iterdir()))
        if fixture.expected.deliveries and fixture.chain == 3000
    ]
    return found[2]


def test_a_changed_value_of_a_pre_state_is_found_with_its_key(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    history, fixtures = recorded
    name = _accepted(fixtures)
    key = "0x" + items.LAST_RELAY_PARENT.key.hex()

    def change(content: dict[str, Any]) -> None:
        content["pre_state"] = [
            [k, "0xffffffff" if k == key else v] for k, v in content["pre_state"]
        ]

    for other in (history, fixtures):
        result = compare(_change(fixtures, tmp_path / other.name, name, change), other)
        assert result.compared == len(list(fixtures.iterdir()))
        assert result.first is not None
        assert name in f"{result.first.a} {result.first.b}"
        assert result.first.which == "pre-state"
        state = result.first.state
        assert state is not None
        assert (state.name, state.a, state.count) == ("Subscriber.LastRelayParent", b"\xff" * 4, 1)
        assert state.node.a != state.node.b
        assert b"\xff" * 4 in (state.node.a or b"")
        assert not result.others


def test_a_changed_post_state_root_is_judged_by_executing_the_block(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    history, fixtures = recorded
    root = {"post_state_root": "0x" + "11" * 32}
    result = compare(
        history,
        _change(fixtures, tmp_path, _accepted(fixtures), lambda f: f["expected"].update(root)),
    )
    assert result.first is not None
    assert [name for name, _, _ in result.first.fields] == ["post-state root"]
    assert any(note.startswith("B says post-state root 0x1111") for note in result.first.notes)
    assert "executing both leads to equal states" in result.first.notes


def test_another_verdict_is_judged_by_executing_the_block(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    fixtures = recorded[1]
    said = {"verdict": "UnusedNodes"}
    result = compare(
        _change(fixtures, tmp_path, _accepted(fixtures), lambda f: f["expected"].update(said)),
        fixtures,
    )
    assert result.first is not None
    assert [name for name, _, _ in result.first.fields] == ["verdict"]
    assert "A says UnusedNodes; judging its block here gives accepted" in result.first.notes


def test_another_implementations_block_for_the_same_occasion_is_compared_field_by_field(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    history, fixtures = recorded
    name = _accepted(fixtures)
    fixture = read_fixture(fixtures / f"{name}.json")
    candidate = Candidate.decode(bytes.fromhex(fixture.candidate[2:]))
    changed = replace(candidate, header=replace(candidate.header, state_root=Hash(b"\x22" * 32)))
    folder = _change(
        fixtures,
        tmp_path,
        name,
        lambda f: f.__setitem__("candidate", "0x" + changed.encode().hex()),
    )
    result = compare(history, folder)
    assert result.first is not None
    assert not result.unmatched
    assert "claimed state root" in [field for field, _, _ in result.first.fields]
    assert result.first.state is not None
    assert result.first.which == "post-state"
    assert any(
        "B says accepted; judging its block here gives BadSeal" in note
        for note in result.first.notes
    )


def test_a_shorter_record_ends_where_it_ends(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    fixtures = recorded[1]
    folder = tmp_path / "fewer"
    shutil.copytree(fixtures, folder)
    gone = sorted(folder.iterdir())[3]
    gone.unlink()
    result = compare(fixtures, folder)
    assert result.first is None
    assert len(result.unmatched) == 1
    assert not result.equal
    assert gone.stem in result.unmatched[0]
    history = tmp_path / "shorter"
    with HistoryWriter(history, "one") as writer:
        text = SCENARIO.format(name="one", seed="s", cache="slots").replace(
            "relay_blocks = 14", "relay_blocks = 9"
        )
        Simulation(parse_scenario(text, "test"), (writer,)).run()
    shown = _diff(recorded[0], history)
    assert shown.exit_code == 1
    assert "B ends here; A continues with one, chain " in shown.stdout


def test_what_is_no_record_and_what_is_damaged_is_named(
    recorded: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(CompareError, match="neither a history"):
        compare(tmp_path, recorded[0])
    damaged = tmp_path / "damaged"
    shutil.copytree(recorded[0], damaged)
    file = next(damaged.glob("blocks/**/*.parquet"))
    flip(file, file.stat().st_size // 3)
    with pytest.raises(CompareError, match="only whole histories"):
        compare(recorded[0], damaged)


def test_the_deepest_node_that_both_tries_have_at_one_place_is_shown() -> None:
    rows = [(bytes((n, m)) + bytes(30), b"v" * 40) for n in range(16) for m in range(16)]
    a = Trie.from_entries(rows)
    b = a.fork()
    key = bytes((3, 7)) + bytes(30)
    b.insert(key, b"w" * 40)
    node = diff_nodes(a, b, key)
    assert node.path == "0307"
    lines = "\n".join(node.lines())
    assert "leaf with a detached value" in lines
    b.remove(key)
    gone = diff_nodes(a, b, key)
    assert gone.path == "03"
    assert "child 7 missing   <- differs" in "\n".join(gone.lines())


def test_equal_states_have_no_difference_and_empty_ones_can_be_compared() -> None:
    state = State.from_entries([(b"a", b"1"), (b"b", b"2")])
    assert diff_states(state, state.fork()) is None
    found = diff_states(state, State())
    assert found is not None
    assert (found.key, found.a, found.b, found.count) == (b"a", b"1", None, 2)
    assert "no known pallet" in "\n".join(found.lines())
    assert (
        key_name(items.LAST_DELIVERED_PACKED.prefix + b"\x01")
        == "Subscriber.LastDeliveredPacked[0x01]"
    )
