"""`pubsub simulate` and `pubsub score` as they are typed."""

import json
import sys
from pathlib import Path

import pytest

from pubsub_emulator.cli.main import main

SIMULATE = ("simulate", "--networks", 2, "--blocks", 30, "--seed", "cli", "--cheat-rate", 0.2, "--engine", "python")


def _pubsub(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["pubsub", *map(str, arguments)])
    try:
        main()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0


def test_a_simulation_is_made_audited_and_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    history, judged = tmp_path / "history", tmp_path / "audit"
    assert _pubsub(monkeypatch, *SIMULATE, "--out", history, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["networks"], made["made_now"]) == (2, 2)
    assert _pubsub(monkeypatch, *SIMULATE, "--out", history) == 0
    shown = capsys.readouterr().out
    assert "2 networks, 2 of them there already" in shown
    assert f"digest: {made['digest']}" in shown
    assert _pubsub(monkeypatch, "audit", history, "--out", judged, "--engine", "python") == 1
    capsys.readouterr()
    assert _pubsub(monkeypatch, "score", history, judged) == 0
    assert "precision 1.000000, recall 1.000000" in capsys.readouterr().out
    assert _pubsub(monkeypatch, *SIMULATE, "--out", history, "--seed", "other") == 2
    assert "holds a simulation with another seed" in capsys.readouterr().err


def test_a_score_of_an_audit_that_missed_something_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest, history, judged = tmp_path / "honest", tmp_path / "history", tmp_path / "audit"
    assert _pubsub(monkeypatch, *SIMULATE, "--out", history) == 0
    assert _pubsub(monkeypatch, *SIMULATE, "--out", honest, "--cheat-rate", 0) == 0
    assert _pubsub(monkeypatch, "audit", honest, "--out", judged, "--engine", "python") == 0
    capsys.readouterr()
    assert _pubsub(monkeypatch, "score", history, judged, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["recall"], told["precision"], told["missed"]) == (0.0, 1.0, sum(told["planted"].values()))
    assert _pubsub(monkeypatch, "score", history, judged) == 1
    assert "planted, not found: " in capsys.readouterr().out
