"""`pubsub audit` by its options: what fails it, what it trusts, how it follows a growing history (AU-7, AU-10)."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.audits import SUBSCRIBER, Slip, drop_a_node, small_network, write_history

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge.results import REPORT

ROOT = Path(__file__).resolve().parents[2]


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(pubsub, ["audit", *map(str, arguments), "--engine", "python"])


@pytest.fixture(scope="module")
def cheated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_history(tmp_path_factory.mktemp("cheated") / "history", 6, cheats={3: drop_a_node})


@pytest.mark.parametrize(("severity", "code"), [("info", 1), ("warning", 1), ("error", 0), ("never", 0)])
def test_the_least_severity_that_fails_is_chosen(cheated: Path, tmp_path: Path, severity: str, code: int) -> None:
    assert _run(cheated, "--out", tmp_path / "out", "--fail-on", severity).exit_code == code


def test_a_severity_that_there_is_not_is_a_usage_error(cheated: Path, tmp_path: Path) -> None:
    run = _run(cheated, "--out", tmp_path / "out", "--fail-on", "dread")
    assert run.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_a_start_in_the_middle_is_trusted_by_its_hash(tmp_path: Path) -> None:
    network = small_network()
    network.step(5)
    starts = [network.parachain(para).header.hash().hex() for para in (1000, SUBSCRIBER, 2100)]
    with HistoryWriter(tmp_path / "history", "dev") as writer:
        network.observe(writer)
        network.step(3)
        network.finish()
    assert _run(tmp_path / "history", "--out", tmp_path / "out").exit_code == 3
    trusted = [part for start in starts for part in ("--trust", f"0x{start}")]
    assert _run(tmp_path / "history", "--out", tmp_path / "out", *trusted).exit_code == 0


def test_the_document_for_scripts_says_what_was_done(cheated: Path, tmp_path: Path) -> None:
    run = _run(cheated, "--out", tmp_path / "out", "--json")
    document: dict[str, Any] = json.loads(run.stdout)
    report = json.loads((tmp_path / "out" / REPORT).read_bytes())
    assert document["digest"] == f"0x{report['digest']}"
    assert (document["exit_code"], document["quarantined"]) == (run.exit_code, 0) == (1, 0)
    assert document["units"] == {"judged": report["units"]["judged"], "known": 0}
    assert report["candidates_per_second"] > 0
    _run(cheated, "--out", tmp_path / "out")
    again = json.loads((tmp_path / "out" / REPORT).read_bytes())
    assert again["units"] == {"judged": 0, "skipped": report["units"]["judged"]}
    assert again["candidates_per_second"] is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no such signal to one process")
def test_a_growing_history_is_followed_until_interrupted(tmp_path: Path) -> None:
    """An interrupt ends it in order: the exit code is that of what was found, and the digest that of a whole run."""
    history, out = tmp_path / "history", tmp_path / "out"
    history.mkdir()
    command = [
        sys.executable,
        "-m",
        "pubsub_emulator.cli.main",
        "audit",
        history,
        "--out",
        out,
        "--engine",
        "python",
        "--follow",
    ]
    following = subprocess.Popen(
        [*map(str, command), "--json"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        network = small_network(segment_length=3)
        with HistoryWriter(history, "dev") as writer:
            network.observe(Slip(writer, network, {5: drop_a_node}))
            network.step(8)
            network.finish()
        said = _await_units(following, out, 3)
        following.send_signal(signal.SIGINT)
        told, rest = following.communicate(timeout=120)
    finally:
        following.kill()
        following.wait()
    whole = audit(history, tmp_path / "whole", engine="python")
    assert following.returncode == whole.exit_code == 1, said + rest
    assert json.loads(told)["digest"] == f"0x{whole.digest}"


def _await_units(following: subprocess.Popen[str], out: Path, wanted: int) -> str:
    """Read what is said until it is about so many units; the report is there before a turn is told."""
    said = ""
    for line in following.stderr or ():
        said += line
        if "units judged" in line:
            units = json.loads((out / REPORT).read_bytes())["units"]
            if units["judged"] + units["skipped"] == wanted:
                return said
    pytest.fail(f"no audit of {wanted} units: {said}")
