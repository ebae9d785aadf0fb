"""One of a kind is counted in the singular."""

from pathlib import Path

import pytest
from support.plumbing.command import TINY, pubsub

ONE = TINY.replace("relay_blocks = 8", "relay_blocks = 1")


def test_a_run_of_one_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "one.toml"
    scenario.write_text(ONE, encoding="utf-8")
    assert pubsub(monkeypatch, "run", scenario, "--out", tmp_path / "out") == 0
    shown = capsys.readouterr()
    assert "tiny: 1 relay block\n" in shown.out
    assert "running tiny: 1 relay block\n" in shown.err


def test_a_simulation_of_one_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--networks", 1, "--blocks", 1, "--engine", "python", "--out", tmp_path / "out")
    assert pubsub(monkeypatch, "simulate", *words) == 0
    shown = capsys.readouterr()
    assert "simulating 1 network of 1 block " in shown.err
    assert "\n1 network: " in shown.out
