"""With `--json` standard output is one document, and everything meant for people is on standard
error.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from support.plumbing.command import TINY, invoked

from pubsub_emulator.laboratory.campaign import corpus

SCENARIO = (
    TINY.replace("update_rate = 0.5", "update_rate = 0.5\ndelete_rate = 0.2")
    + "[relay]\nmax_stored_keys = 3\n"
)


def _document(*arguments: object, code: int = 0) -> dict[str, Any]:
    result = invoked(*arguments, "--json")
    assert result.exit_code == code, result.output
    document = json.loads(result.stdout)
    assert isinstance(document, dict)
    return document


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("json")
    (folder / "tiny.toml").write_text(SCENARIO)
    return folder, _document("run", folder / "tiny.toml", "--out", folder / "out")


def test_a_run_tells_its_summary_and_where_it_wrote(ran: tuple[Path, dict[str, Any]]) -> None:
    folder, document = ran
    written = json.loads((folder / "out" / "summary.json").read_text())
    assert {**document, **written} == document
    assert Path(document["history"]).is_dir()
    assert sum(document["verdicts"].values()) == document["chains"]["3000"]["refused"]


def test_refused_publishes_are_counted_by_their_cause_and_so_are_failed_calls(
    ran: tuple[Path, dict[str, Any]],
) -> None:
    folder, document = ran
    publisher = document["publishers"]["1000"]
    assert publisher["failed"]["TooManyStoredKeys"] == publisher["cut_short"] > 0
    assert publisher["published"] > 0
    assert publisher["deleted"] > 0
    shown = invoked("run", folder / "tiny.toml", "--out", folder / "again").stdout
    assert f"{publisher['published']} keys published, 0 expired" in shown
    assert f"TooManyStoredKeys {publisher['cut_short']}" in shown


def test_a_difference_is_told_and_so_is_equality(
    ran: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = ran
    history = folder / "out/history"
    assert _document("diff", history, history)["equal"] is True
    (tmp_path / "other.toml").write_text(SCENARIO.replace('seed = "tiny"', 'seed = "other"'))
    assert invoked("run", tmp_path / "other.toml", "--out", tmp_path / "other").exit_code == 0
    different = _document("diff", history, tmp_path / "other/history", code=1)
    assert different["equal"] is False
    assert different["first"]
    assert len(different["different_genesis"]) == 1


def test_a_campaign_and_its_kept_cases_are_told(tmp_path: Path) -> None:
    found = _document(
        "fuzz", "--cases", 20, "--strategy", "omit-node", "--out", tmp_path / "surprises"
    )
    assert (found["cases"], found["surprising"], found["files"]) == (20, 0, [])
    assert sum(found["by_strategy"]["omit-node"].values()) > 0
    listed = _document("fuzz", "--list")
    assert "OmittedBelowBudget" in listed["omit-node"]["meets"]


def test_a_replay_tells_each_file(tmp_path: Path) -> None:
    name, case = corpus()[0]
    assert case.shrunk is not None
    path = tmp_path / Path(name).name
    path.write_text(
        (
            Path(__file__).parents[3]
            / "pubsub_emulator"
            / "laboratory"
            / "corpus"
            / Path(name).name
        ).read_text()
    )
    found = _document("replay", path)
    assert (found["played"], found["surprising"]) == (1, 0)
    assert found["files"] == [
        {"file": str(path), "kind": "case", "as_expected": True, "differences": []}
    ]


def test_an_experiment_tells_its_rows_and_rates_are_shares(tmp_path: Path) -> None:
    settings = ("--set", "keys=4", "--set", "spread=2", "--cache", "none")
    found = _document(
        "experiment", "--sweep", "update_rate=0.5,1", *settings, "--out", tmp_path / "out"
    )
    [figure] = found["figures"]
    assert [row["update_rate"] for row in figure["rows"]] == [0.5, 1]
    assert all(Path(path).is_file() for path in found["files"])


def test_without_it_nothing_is_json_and_prose_is_on_standard_output(
    ran: tuple[Path, dict[str, Any]],
) -> None:
    folder, _ = ran
    result = invoked("diff", folder / "out/history", folder / "out/history")
    assert result.stdout.endswith("equal: every block, verdict, proof, callback and state root\n")
    aside = invoked("diff", folder / "out/history", folder / "out/history", "--json")
    assert aside.stderr.endswith("equal: every block, verdict, proof, callback and state root\n")
