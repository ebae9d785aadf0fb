"""`pubsub list` and `pubsub clean`: the outputs in a folder."""

import inspect
import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.plumbing.command import TINY

from pubsub_emulator.cli.contents.shown import age_words, size_words
from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.inspection import outputs as finder
from pubsub_emulator.inspection.outputs import Output, OutputKind, find
from pubsub_emulator.inspection.removal import remove

LATER = 10_000.0
"""Seconds after which no command can still be writing."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, its audit, a copy of its history, a session, and other files."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "tiny.toml").write_text(TINY)
    for arguments in (
        ("run", folder / "tiny.toml", "--out", folder / "out" / "run"),
        ("audit", folder / "out" / "run" / "history", "--out", folder / "out" / "audit"),
    ):
        done = CliRunner().invoke(pubsub, [str(each) for each in arguments])
        assert done.exit_code in {0, 1}, done.output
    shutil.copytree(folder / "out" / "run" / "history", folder / "out" / "copy")
    session = {"format": "pubsub-session/1", "scenario": {}, "commands": []}
    (folder / "mine.json").write_text(json.dumps(session))
    (folder / "package.json").write_text('{"name": "of somebody else"}')
    (folder / "out" / ".run-0123abcd.part").mkdir()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """The same in a folder of its own, with the audit's history where the audit says."""
    copy = tmp_path / "made"
    shutil.copytree(made, copy)
    report = copy / "out" / "audit" / "run_report.json"
    report.write_text(report.read_text().replace(str(made), str(copy)))
    return copy


def outputs(folder: Path, after: float = LATER) -> dict[str, Output]:
    found = find(folder, time.time() + after)
    assert found.is_whole
    return {output.path.relative_to(folder).as_posix(): output for output in found.outputs}


def test_each_output_is_listed_once_with_its_kind_and_what_made_it(folder: Path) -> None:
    listed = outputs(folder)
    assert {path: output.kind.value for path, output in listed.items()} == {
        "mine.json": "session",
        "out/.run-0123abcd.part": "unfinished",
        "out/audit": "audit",
        "out/copy": "history",
        "out/run": "run",
    }
    assert listed["out/run"].made_by == "pubsub run, scenario tiny"
    assert listed["out/audit"].made_by == f"pubsub audit {folder}/out/run/history"
    assert listed["out/copy"].made_by == "networks tiny"
    files = [path for path in (folder / "out" / "run").rglob("*") if path.is_file()]
    assert listed["out/run"].size == sum(path.stat().st_size for path in files)


def test_only_what_can_be_made_again_is_offered(folder: Path) -> None:
    kept = {path for path, output in outputs(folder).items() if output.kept_for}
    assert kept == {"mine.json", "out/copy"}
    shutil.rmtree(folder / "out" / "run")
    assert "history is gone" in outputs(folder)["out/audit"].kept_for


def test_a_folder_with_something_of_the_user_in_it_is_kept(folder: Path) -> None:
    (folder / "out" / "run" / "notes.txt").write_text("why it failed")
    assert outputs(folder)["out/run"].kept_for == "it contains notes.txt, which is unknown"


@pytest.mark.parametrize("name", [".mine-0123abcd.old", ".mine-0123abcd.part"])
def test_a_folder_that_is_only_called_like_an_unfinished_output_is_kept(
    name: str, folder: Path
) -> None:
    (folder / name).mkdir()
    (folder / name / "letters.txt").write_text("only here")
    assert outputs(folder)[name].kept_for == "it contains letters.txt, which is unknown"
    CliRunner().invoke(pubsub, ["clean", str(folder), "--yes"])
    assert (folder / name / "letters.txt").is_file()


def test_a_run_whose_history_has_blocks_of_another_network_is_kept(folder: Path) -> None:
    commits = folder / "out" / "run" / "history" / "_commits"
    first = min(commits.iterdir())
    (commits / first.name.replace("tiny", "polkadot")).write_bytes(first.read_bytes())
    assert "the run did not make" in outputs(folder)["out/run"].kept_for


def test_what_a_command_may_be_writing_is_kept(folder: Path) -> None:
    part = "out/.run-0123abcd.part"
    os.utime(folder / part)
    assert outputs(folder, after=0)[part].kept_for == "a command may be writing it"
    assert outputs(folder, after=finder.UNTOUCHED_SECONDS + 5)[part].kept_for == ""


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "link").symlink_to(folder / "out" / "run")
    (elsewhere / "mine.json").symlink_to(folder / "mine.json")
    assert outputs(elsewhere) == {}


def test_folders_within_each_other_need_no_recursion(folder: Path) -> None:
    (folder / "out" / ".run-0123abcd.part" / "/".join("d" * 300)).mkdir(parents=True)
    (folder / "/".join("e" * 300)).mkdir(parents=True)
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        listed = outputs(folder)
    finally:
        sys.setrecursionlimit(usual)
    assert "out/.run-0123abcd.part" in listed


def test_what_cannot_be_removed_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(_path: Path) -> None:
        raise RecursionError

    monkeypatch.setattr(finder, "UNTOUCHED_SECONDS", -1)
    monkeypatch.setattr(shutil, "rmtree", too_deep)
    done = CliRunner().invoke(pubsub, ["clean", str(folder), "--unfinished", "--yes"])
    assert done.exit_code == 4
    assert "not removed: its folders are nested too deeply" in done.stderr


def test_a_large_folder_is_listed_in_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "MOST_ENTRIES", 20)
    assert not find(folder, time.time()).is_whole
    done = CliRunner().invoke(pubsub, ["list", str(folder)])
    assert "more than 20 files and folders" in done.output


def test_list_prints_a_table_and_a_document(folder: Path) -> None:
    done = CliRunner().invoke(pubsub, ["list", str(folder), "--json"])
    (run,) = (each for each in json.loads(done.stdout)["outputs"] if each["kind"] == "run")
    assert run["path"] == str(folder / "out" / "run")
    assert run["removable"] is True
    assert run["kept_for"] is None
    table = CliRunner().invoke(pubsub, ["list", str(folder)]).stdout
    assert "can be removed" in table
    assert "out/audit" in table
    (folder / "empty").mkdir()
    empty = CliRunner().invoke(pubsub, ["list", str(folder / "empty")]).stdout
    assert "no outputs of this program" in empty


def test_without_a_terminal_nobody_is_asked_and_nothing_is_removed(folder: Path) -> None:
    done = CliRunner().invoke(pubsub, ["clean", str(folder)])
    assert done.exit_code != 0
    assert "--yes" in str(done.exception)
    assert {"out/run", "out/audit"} <= outputs(folder).keys()


def test_what_the_user_declines_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pubsub_emulator.cli.contents.cleaning._is_asked", lambda: True)
    before = outputs(folder).keys()
    done = CliRunner().invoke(pubsub, ["clean", str(folder)], input="y\nn\n")
    assert done.exit_code == 0, done.output
    assert "remove" in done.stderr
    assert before - outputs(folder).keys() == {"out/audit"}


def test_clean_removes_an_audit_before_the_run_that_it_needs(folder: Path) -> None:
    done = CliRunner().invoke(pubsub, ["clean", str(folder), "--yes", "--json"])
    assert done.exit_code == 0, done.output
    removed = [Path(each["path"]).name for each in json.loads(done.stdout)["removed"]]
    assert removed == ["audit", "run"]
    assert set(outputs(folder)) == {"mine.json", "out/.run-0123abcd.part", "out/copy"}
    assert not list((folder / "out").glob(".*.old"))


def test_unfinished_outputs_alone_can_be_removed(folder: Path) -> None:
    part = folder / "out" / ".run-0123abcd.part"
    os.utime(part, (0, 0))
    done = CliRunner().invoke(pubsub, ["clean", str(folder), "--unfinished", "--yes"])
    assert done.exit_code == 0
    assert not part.exists()
    assert "out/run" in outputs(folder)


def test_an_output_that_was_changed_since_stays(folder: Path) -> None:
    now = time.time() + LATER
    (run,) = (each for each in find(folder, now).outputs if each.kind is OutputKind.RUN)
    (run.path / "summary.json").write_text(run.path.joinpath("summary.json").read_text() + " ")
    assert not remove(run, now)
    assert run.path.is_dir()


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.0 KB"),
        (12_345_678, "12.3 MB"),
    ],
)
def test_sizes_have_units(size: int, words: str) -> None:
    assert size_words(size) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute"),
        (7_200, "2 hours"),
        (90_000, "1 day"),
    ],
)
def test_ages_have_units(seconds: float, words: str) -> None:
    assert age_words(seconds) == words
