from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.runtime.parachain import validate

CORPUS = Path(__file__).resolve().parents[3] / "pubsub_emulator" / "laboratory" / "corpus"


def run(*args: object) -> Result:
    return CliRunner().invoke(pubsub, [str(arg) for arg in args])


def test_ps_81_fuzz_shows_strategies_and_verdicts_and_ends_well_without_surprises(
    tmp_path: Path,
) -> None:
    result = run(
        "fuzz", "--cases", 40, "--seed", 3, "--strategy", "omit-node", "--out", tmp_path / "none"
    )
    assert result.exit_code == 0, result.output
    assert "omit-node" in result.stdout
    assert "OmittedBelowBudget" in result.stdout
    assert "0 surprising" in result.stdout
    assert not (tmp_path / "none").exists()


def test_a_surprise_is_saved_and_replays_with_1_until_the_verifier_is_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(validate, "_unused", lambda _source, _walked: [])
        result = run(
            "fuzz", "--cases", 30, "--seed", 2, "--strategy", "add-junk", "--out", tmp_path
        )
        assert result.exit_code == 1
        file = min(tmp_path.glob("add-junk-*.json"), key=lambda path: path.stat().st_size)
        assert str(file) in result.stdout
        again = run("replay", file)
        assert again.exit_code == 1
        assert "SURPRISING" in again.stdout
        assert "expected UnusedNodes, found accepted" in again.stdout
    mended = run("replay", file)
    assert mended.exit_code == 0
    assert "found UnusedNodes, accepted when it was recorded" in mended.stdout


def test_replay_takes_several_files() -> None:
    several = run("replay", CORPUS / "omit-node.json", CORPUS / "stranger.json")
    assert several.exit_code == 0
    assert "2 played, 0 surprising" in several.stdout


def test_ps_81_every_strategy_is_listed_with_what_it_is_after() -> None:
    shown = run("fuzz", "--list").stdout
    assert all(name in shown for name in STRATEGIES)
