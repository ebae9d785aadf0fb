"""Simulated histories: the same whoever makes them, whole or not there; an audit finds just what
was planted (AU-2).
"""

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from support.spark_audit.audits import drop_a_node, write_history

from pubsub_emulator.cli.commands.simulate.run import run_score
from pubsub_emulator.collator.cheats import BUILT_IN
from pubsub_emulator.emulator.network import round as network_round
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block
from pubsub_emulator.spark_audit.audit.run import AuditResult, audit
from pubsub_emulator.spark_audit.choice import open_mapper
from pubsub_emulator.spark_audit.engine.engine import PythonMapper
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.simulate import population
from pubsub_emulator.spark_audit.simulate.run import (
    Simulated,
    SimulationRefused,
    SimulationSettings,
    simulate,
)
from pubsub_emulator.spark_audit.simulate.score import NoTruth, score

ROOT = Path(__file__).resolve().parents[3]
NETWORKS = 4
SMALL = SimulationSettings(3, 60, "small", 250_000)
NEVER_A_CHEAT = {"drop-and-restore"}
"""Ends in the canonical set whatever it does."""

pytestmark = pytest.mark.xdist_group("simulate")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Simulated]:
    path = tmp_path_factory.mktemp("simulate") / "large"
    wanted = SimulationSettings(NETWORKS, 420, "14", 500_000, unjudged=True)
    return path, simulate(wanted, path, PythonMapper)


@pytest.fixture(scope="module")
def judged(large: tuple[Path, Simulated]) -> AuditResult:
    return audit(large[0], large[0].with_name("audit"), engine="python")


@pytest.fixture(scope="module")
def small_audit(small: tuple[Path, Simulated]) -> AuditResult:
    return audit(small[0], small[0].with_name("small-audit"), engine="python")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Simulated]:
    path = tmp_path_factory.mktemp("simulate") / "small"
    return path, simulate(SMALL, path, PythonMapper)


def _truth(path: Path) -> list[dict[str, Any]]:
    faults: list[Fault] = []
    history = History.open(path)
    rows = list(history.rows(history.files(schema.TRUTH), faults))
    assert not faults
    return rows


def _content(path: Path) -> dict[str, bytes]:
    """Every file of a simulation; of receipts without the time that they took."""
    out = {}
    for file in sorted(path.rglob("*")):
        if file.is_file():
            content = file.read_bytes()
            if file.parent.name == "_simulation":
                content = json.dumps({**json.loads(content), "cpu_seconds": None}).encode()
            out[file.relative_to(path).as_posix()] = content
    return out


def test_the_audit_finds_every_planted_cheat_and_nothing_else(
    large: tuple[Path, Simulated], judged: AuditResult
) -> None:
    path, simulated = large
    assert simulated.candidates >= NETWORKS * 420
    assert judged.candidates == simulated.candidates
    assert {row["status"] for row in judged.chains} == {"verified"}
    scored = score(path, judged.out)
    assert (scored.missed, scored.wrong, scored.faults) == ([], [], [])
    assert (scored.precision, scored.recall) == (1.0, 1.0)
    assert scored.planted == scored.caught == simulated.cheats
    assert judged.findings["error"] == 0


def test_cheats_of_every_strategy_are_planted(large: tuple[Path, Simulated]) -> None:
    assert set(large[1].cheats) == set(BUILT_IN) - NEVER_A_CHEAT


def test_the_truth_names_block_collator_and_verdict_as_the_chain_recorded_them(
    large: tuple[Path, Simulated],
) -> None:
    path, simulated = large
    truth = {(row["network"], row["chain"], row["position"]): row for row in _truth(path)}
    assert len(truth) == simulated.cheats.total()
    history = History.open(path)
    refused = 0
    for row in history.rows(history.files(schema.BLOCKS), []):
        known = truth.get((row["network"], row["chain"], row["position"]))
        assert (known is None) == (row["status"] == "included")
        if known is not None:
            refused += 1
            same = ("segment", "number", "block", "slot", "collator", "strategy", "verdict")
            assert {name: known[name] for name in same} == {name: row[name] for name in same}
            assert known["due"][0] == known["verdict"]
    assert refused == len(truth)


def test_usual_proofs_are_large_and_every_chain_reads_five_publishers(
    large: tuple[Path, Simulated],
) -> None:
    path, simulated = large
    assert min(receipt["median_pubsub_proof"] for receipt in simulated.receipts) >= 10 * 1024
    history = History.open(path)
    subscriptions = list(history.rows(history.files(schema.SUBSCRIPTIONS), []))
    assert len(subscriptions) == NETWORKS * population.CHAINS
    assert min(len(row["items"]) for row in subscriptions) >= 5


def test_a_simulation_with_more_networks_contains_the_one_with_fewer(
    small: tuple[Path, Simulated], tmp_path: Path
) -> None:
    seen: list[tuple[float, int]] = []
    one = simulate(SimulationSettings(1, 60, "small", 250_000), tmp_path, PythonMapper)
    three = simulate(SMALL, tmp_path, PythonMapper, lambda done, total: seen.append((done, total)))
    assert (one.made, three.made) == (1, 2)
    whole = dict.fromkeys(
        each for each in seen if each[0] == int(each[0])
    )  # a share may be all of a network, too
    assert list(whole) == [(1, 3), (2, 3), (3, 3)]
    assert three.digest == small[1].digest != one.digest
    assert _content(tmp_path) == _content(small[0])


def test_honest_blocks_that_nobody_judged_are_the_same_history(
    small: tuple[Path, Simulated], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Candidate] = []

    def judge(parent: ChainHead, candidate: Candidate, context: RelayContext) -> object:
        judged.append(candidate)
        return judge_block(parent, candidate, context)

    monkeypatch.setattr(network_round, "judge_block", judge)
    path, made = small
    again = simulate(replace(SMALL, unjudged=True), tmp_path / "again", PythonMapper)
    assert again.digest == made.digest
    tables = sorted(file.relative_to(path) for file in path.rglob("*.parquet"))
    assert tables
    assert all(
        (path / file).read_bytes() == (tmp_path / "again" / file).read_bytes() for file in tables
    )
    assert made.cheats.total() <= len(judged) < made.candidates / 2


def test_nothing_is_opened_when_every_network_is_there(small: tuple[Path, Simulated]) -> None:
    def never() -> PythonMapper:
        raise AssertionError("an engine was started")

    again = simulate(SMALL, small[0], never)
    assert (again.made, again.digest) == (0, small[1].digest)


_KILLED = """
import os, signal, sys
from pathlib import Path
from pubsub_emulator.spark_audit.history.storage import LocalStore
from pubsub_emulator.spark_audit.engine.engine import PythonMapper
from pubsub_emulator.spark_audit.simulate import population, run

population.SEGMENT = run.SEGMENT = 2
write, left = LocalStore.put_new, [int(sys.argv[2])]

def killed(store, path, data):
    if path.startswith("_commits/"):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
    return write(store, path, data)

LocalStore.put_new = killed
run.simulate(run.SimulationSettings(2, 30, "killed", 100_000), Path(sys.argv[1]), PythonMapper)
"""


def test_a_killed_simulation_leaves_whole_segments_and_continues_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "killed"
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(out), "4"], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    history = History.open(out)  # the fourth commit's files are there, its manifest is not
    assert [(each.network, each.segment) for each in history.commits] == [
        ("n00000", 0),
        ("n00000", 1),
        ("n00001", 0),
    ]
    before = score(out, audit(out, tmp_path / "before", engine="python").out)
    assert (before.precision, before.recall) == (1.0, 1.0)

    for module in (population, sys.modules[simulate.__module__]):
        monkeypatch.setattr(module, "SEGMENT", 2)
    wanted = SimulationSettings(2, 30, "killed", 100_000)
    resumed = simulate(wanted, out, PythonMapper)
    undisturbed = simulate(wanted, tmp_path / "undisturbed", PythonMapper)
    assert resumed.made == 1
    assert resumed.digest == undisturbed.digest
    assert _content(out) == _content(tmp_path / "undisturbed")


@pytest.mark.parametrize(
    ("wanted", "other"),
    [
        (SimulationSettings(3, 61, "small", 250_000), "blocks"),
        (SimulationSettings(3, 60, "large", 250_000), "seed"),
        (SimulationSettings(3, 60, "small", 0), "cheat_rate"),
    ],
)
def test_a_folder_is_refused_to_another_simulation(
    small: tuple[Path, Simulated], wanted: SimulationSettings, other: str
) -> None:
    before = _content(small[0])
    with pytest.raises(SimulationRefused, match=f"a simulation with another {other}"):
        simulate(wanted, small[0], PythonMapper)
    assert _content(small[0]) == before


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(
            SimulationSettings(0, 1, ""),
            id="no networks",
        ),
        pytest.param(
            SimulationSettings(1, 0, ""),
            id="no blocks",
        ),
        pytest.param(
            SimulationSettings(1, 1, "", 500_001),
            id="too many cheats",
        ),
    ],
)
def test_nonsense_is_refused_before_anything_is_written(
    wanted: SimulationSettings, tmp_path: Path
) -> None:
    with pytest.raises(SimulationRefused):
        simulate(wanted, tmp_path / "out", PythonMapper)
    assert not (tmp_path / "out").exists()


def test_a_history_of_something_else_is_refused(tmp_path: Path) -> None:
    write_history(tmp_path / "other", 2)
    with pytest.raises(SimulationRefused, match="was not simulated"):
        simulate(SMALL, tmp_path / "other", PythonMapper)


def test_a_score_tells_what_was_missed_and_what_nobody_planted(
    small: tuple[Path, Simulated], tmp_path: Path
) -> None:
    other = write_history(tmp_path / "other", 6, cheats={3: drop_a_node})
    found = audit(other, tmp_path / "audit", engine="python")
    scored = score(small[0], found.out)
    assert (scored.precision, scored.recall) == (0.0, 0.0)
    assert len(scored.missed) == small[1].cheats.total()
    assert [charge[-1] for charge in scored.wrong] == ["OmittedBelowBudget"]


def test_planted_cheats_that_were_lost_with_their_segment_lower_the_recall(
    small: tuple[Path, Simulated], tmp_path: Path
) -> None:
    history = shutil.copytree(small[0], tmp_path / "history")
    max((history / COMMITS).glob("n00000-*.json")).unlink()
    scored = score(history, audit(history, tmp_path / "audit", engine="python").out)
    assert scored.gone.total() > 0
    assert scored.planted == small[1].cheats
    assert scored.recall < 1.0
    assert scored.uncommitted > 0
    shown = run_score(str(history), str(tmp_path / "audit"))
    assert shown.code == 1


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"cheats": 3}', b'{"cheats": {"x": "y"}}'])
def test_a_damaged_receipt_is_named(
    small: tuple[Path, Simulated], small_audit: AuditResult, tmp_path: Path, damage: bytes
) -> None:
    history = shutil.copytree(small[0], tmp_path / "history")
    (history / "_simulation/n00001.json").write_bytes(damage)
    with pytest.raises(NoTruth, match=r"_simulation/n00001\.json: not a receipt"):
        score(history, small_audit.out)


@pytest.mark.parametrize("column", ["block", "collator", "verdict", None])
def test_a_score_wants_the_right_block_collator_and_verdict(
    small: tuple[Path, Simulated],
    small_audit: AuditResult,
    column: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = _truth(small[0])
    if column is not None:
        rows[0] = {**rows[0], column: "Other" if column == "verdict" else bytes(32)}
    monkeypatch.setattr(
        "pubsub_emulator.spark_audit.simulate.score._truth", lambda _history, _faults: iter(rows)
    )
    scored = score(small[0], small_audit.out)
    expected = 0 if column is None else 1
    assert (len(scored.missed), len(scored.wrong)) == (expected, expected)


@pytest.mark.spark
def test_spark_makes_the_same_networks(
    spark: SparkContext, small: tuple[Path, Simulated], tmp_path: Path
) -> None:
    del spark
    made = simulate(SMALL, tmp_path / "spark", lambda: open_mapper("spark"))
    assert made.digest == small[1].digest
    assert _content(tmp_path / "spark") == _content(small[0])
