"""`pubsub audit` by its options: what fails it, what it trusts, how it follows a growing history
(AU-7, AU-10).
"""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.plumbing.command import pubsub as typed
from support.plumbing.processes import environment
from support.spark_audit.audits import SUBSCRIBER, Slip, drop_a_node, small_network, write_history

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge.results import REPORT, Results


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(pubsub, ["audit", *map(str, arguments), "--engine", "python"])


@pytest.fixture(scope="module")
def cheated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_history(tmp_path_factory.mktemp("cheated") / "history", 6, cheats={3: drop_a_node})


@pytest.mark.parametrize(
    ("severity", "code"),
    [
        ("info", 1),
        ("warning", 1),
        ("error", 0),
        ("never", 0),
    ],
)
def test_the_least_severity_that_fails_is_chosen(
    cheated: Path, tmp_path: Path, severity: str, code: int
) -> None:
    assert _run(cheated, "--out", tmp_path / "out", "--fail-on", severity).exit_code == code


def test_a_severity_that_there_is_not_is_a_usage_error(cheated: Path, tmp_path: Path) -> None:
    run = _run(cheated, "--out", tmp_path / "out", "--fail-on", "dread")
    assert run.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_a_start_in_the_middle_is_trusted_by_its_hash(tmp_path: Path) -> None:
    """AU-1: all is judged, and a chain is not verified whose start nobody vouches for; the others
    stand at genesis.
    """
    network = small_network()
    network.step(5)
    start = network.parachain(SUBSCRIBER).header.hash().hex()
    with HistoryWriter(tmp_path / "history", "dev") as writer:
        network.observe(writer)
        network.step(3)
        network.finish()
    assert _run(tmp_path / "history", "--out", tmp_path / "out").exit_code == 3
    results = Results.open(tmp_path / "out")
    assert all(row["judged"] == row["candidates"] for row in results.rows(schema.CHAINS))
    statuses = {row["chain"]: row["status"] for row in results.rows(schema.CHAINS)}
    assert statuses == {1000: "verified", SUBSCRIBER: "not verified", 2100: "verified"}
    found = [(row["chain"], row["code"]) for row in results.rows(schema.FINDINGS)]
    assert found == [(SUBSCRIBER, "UntrustedStart")]
    trusted = ("--trust", "0x" + "11" * 32, "--trust", f"0x{start}")
    assert _run(tmp_path / "history", "--out", tmp_path / "out", *trusted).exit_code == 0


def test_the_document_for_scripts_says_what_was_done(cheated: Path, tmp_path: Path) -> None:
    run = _run(cheated, "--out", tmp_path / "out", "--json")
    document: dict[str, Any] = json.loads(run.stdout)
    report = json.loads((tmp_path / "out" / REPORT).read_bytes())
    assert document["digest"] == f"0x{report['digest']}"
    assert (document["exit_code"], document["read_errors"]) == (run.exit_code, 0) == (1, 0)
    assert document["units"] == {"judged": report["units"]["judged"], "known": 0}
    assert document["codes"] == {"Equivocation": 1, "OmittedBelowBudget": 1}
    assert {row["chain"] for row in document["chains"]} == {1000, SUBSCRIBER, 2100}
    assert report["candidates_per_second"] > 0
    _run(cheated, "--out", tmp_path / "out")
    again = json.loads((tmp_path / "out" / REPORT).read_bytes())
    assert again["units"] == {"judged": 0, "skipped": report["units"]["judged"]}
    assert again["candidates_per_second"] is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no such signal to one process")
def test_a_growing_history_is_followed_until_interrupted(tmp_path: Path) -> None:
    """Each segment is judged once, as it lands; an interrupt ends it in order: exit code and digest
    are those of a whole run.
    """
    history, out = tmp_path / "history", tmp_path / "out"
    history.mkdir()
    following = subprocess.Popen(
        [
            *(sys.executable, "-m", "pubsub_emulator.cli.main", "audit", history, "--out", out),
            *FOLLOW,
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said, judged = "", 0
    try:
        network = small_network(segment_length=3)
        with HistoryWriter(history, "dev") as writer:
            network.observe(Slip(writer, network, {5: drop_a_node}))
            network.step(14)
            network.finish()
        for line in following.stderr or ():
            said += line
            if turn := re.search(r"(\d+) units judged", line):
                judged += int(turn[1])
                units = json.loads((out / REPORT).read_bytes())[
                    "units"
                ]  # it is there before a turn is told
                if units["judged"] + units["skipped"] == 5:
                    break
        following.send_signal(signal.SIGINT)
        told, rest = following.communicate(timeout=120)
    finally:
        following.kill()
        following.wait()
    assert judged == 5, "five segments, none of them twice"
    whole = audit(history, tmp_path / "whole", engine="python")
    assert following.returncode == whole.exit_code == 1, said + rest
    document = json.loads(told)
    assert (document["digest"], document["codes"]) == (f"0x{whole.digest}", whole.codes)


FOLLOW = ("--engine", "python", "--follow", "--json")


SIMULATE = (
    "simulate",
    "--networks",
    2,
    "--blocks",
    30,
    "--seed",
    "cli",
    "--cheat-rate",
    0.2,
    "--engine",
    "python",
)


def test_a_simulation_is_made_audited_and_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    history, judged = tmp_path / "history", tmp_path / "audit"
    assert typed(monkeypatch, *SIMULATE, "--out", history, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["networks"], made["made_now"]) == (2, 2)
    assert typed(monkeypatch, *SIMULATE, "--out", history) == 0
    shown = capsys.readouterr().out
    assert "2 networks, 2 of them already present" in shown
    assert f"digest: {made['digest']}" in shown
    assert typed(monkeypatch, "audit", history, "--out", judged, "--engine", "python") == 1
    capsys.readouterr()
    assert typed(monkeypatch, "score", history, judged) == 0
    assert "precision 1.000000, recall 1.000000" in capsys.readouterr().out
    assert typed(monkeypatch, *SIMULATE, "--out", history, "--seed", "other") == 2
    assert "holds a simulation with another seed" in capsys.readouterr().err

    honest, judged = tmp_path / "honest", tmp_path / "honest-audit"
    assert typed(monkeypatch, *SIMULATE, "--out", honest, "--cheat-rate", 0) == 0
    assert typed(monkeypatch, "audit", honest, "--out", judged, "--engine", "python") == 0
    capsys.readouterr()
    assert typed(monkeypatch, "score", history, judged, "--json") == 1, (
        "an audit that missed something is a finding"
    )
    told = json.loads(capsys.readouterr().out)
    assert (told["recall"], told["precision"], told["missed"]) == (
        0.0,
        1.0,
        sum(told["planted"].values()),
    )
    assert typed(monkeypatch, "score", history, judged) == 1
    assert "planted, not found: " in capsys.readouterr().out
