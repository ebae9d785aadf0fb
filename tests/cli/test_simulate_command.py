"""`pubsub simulate` and `pubsub score` as they are typed."""

import json
from pathlib import Path

import pytest
from support.command import pubsub

SIMULATE = ("simulate", "--networks", 2, "--blocks", 30, "--seed", "cli", "--cheat-rate", 0.2, "--engine", "python")


def test_a_simulation_is_made_audited_and_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    history, judged = tmp_path / "history", tmp_path / "audit"
    assert pubsub(monkeypatch, *SIMULATE, "--out", history, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["networks"], made["made_now"]) == (2, 2)
    assert pubsub(monkeypatch, *SIMULATE, "--out", history) == 0
    shown = capsys.readouterr().out
    assert "2 networks, 2 of them there already" in shown
    assert f"digest: {made['digest']}" in shown
    assert pubsub(monkeypatch, "audit", history, "--out", judged, "--engine", "python") == 1
    capsys.readouterr()
    assert pubsub(monkeypatch, "score", history, judged) == 0
    assert "precision 1.000000, recall 1.000000" in capsys.readouterr().out
    assert pubsub(monkeypatch, *SIMULATE, "--out", history, "--seed", "other") == 2
    assert "holds a simulation with another seed" in capsys.readouterr().err


def test_a_score_of_an_audit_that_missed_something_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest, history, judged = tmp_path / "honest", tmp_path / "history", tmp_path / "audit"
    assert pubsub(monkeypatch, *SIMULATE, "--out", history) == 0
    assert pubsub(monkeypatch, *SIMULATE, "--out", honest, "--cheat-rate", 0) == 0
    assert pubsub(monkeypatch, "audit", honest, "--out", judged, "--engine", "python") == 0
    capsys.readouterr()
    assert pubsub(monkeypatch, "score", history, judged, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["recall"], told["precision"], told["missed"]) == (0.0, 1.0, sum(told["planted"].values()))
    assert pubsub(monkeypatch, "score", history, judged) == 1
    assert "planted, not found: " in capsys.readouterr().out
