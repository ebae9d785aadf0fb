"""Comparisons on the command line; rules are compared in processes of their own."""

import json
import subprocess
from pathlib import Path

import pytest
from support.plumbing.command import invoked
from support.plumbing.processes import program, python
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript
from support.runtime.rules import CAP, SCENARIO

import pubsub_emulator
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.runs import sides
from pubsub_emulator.runs.figures import lines_of, markdown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cap.py").write_text(CAP, encoding="utf-8")
    (tmp_path / "small.toml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path


def _compare(folder: Path, *arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    done = program("compare", *arguments, folder=folder)
    assert done.returncode == code, done.stderr
    return done


def test_a_rule_is_compared_with_the_shipped_ones_to_the_first_difference(
    folder: Path,
) -> None:
    done = json.loads(
        _compare(
            folder, "shipped", "cap.py", "--scenario", "small.toml", "--json", "--plot", "p"
        ).stdout
    )
    assert done["sides"] == ["shipped", "cap"]
    assert "proof bytes" in (folder / "p/changes.svg").read_text(encoding="utf-8")
    assert (folder / "p/changes.png").read_bytes().startswith(b"\x89PNG")
    expiries = done["figures"]["expiries"]
    assert expiries["values"][0] == 0 < expiries["values"][1] == expiries["change"][0]
    assert "relay ref_time, ps" in done["figures"]
    assert done["figures"]["publishes"]["change"] == [0]
    assert any("valid for" in line for line in done["first"]["cap"])


def test_folders_of_runs_histories_and_audits_are_compared(
    folder: Path, transcript: Transcript, snapshot: Snapshot
) -> None:
    for name, rules in (("a", ()), ("b", ("--rules", "cap.py"))):
        assert program("run", "small.toml", *rules, "--out", name, folder=folder).returncode == 0
        audited = program(
            "audit", f"{name}/history", "--out", f"audit-{name}", *rules, folder=folder
        )
        assert audited.returncode == 0
        (folder / name / "history").rename(folder / f"history-{name}")
    for compared in ("a b", "history-a history-b", "audit-a audit-b", "a a"):
        transcript.run(f"pubsub compare {compared}")
    by_rules = "pubsub compare shipped cap.py --scenario small.toml --tolerance"
    transcript.run(f"{by_rules} 5", code=1)
    transcript.run("pubsub compare small.toml small.toml --tolerance 0")
    snapshot("compare", str(transcript))


PROGRAM = """
import json, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir()
(out / "summary.json").write_text(json.dumps({"relay_blocks": BLOCKS}))
"""


def test_a_revision_is_run_as_committed_and_not_as_in_the_folder(
    folder: Path,
) -> None:
    def git(*arguments: str) -> None:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(("git", *settings, *arguments), cwd=folder, check=True, capture_output=True)  # noqa: S607

    (folder / "pubsub_emulator").mkdir()
    (folder / "pubsub_emulator/__init__.py").touch()
    git("init")
    for blocks in ("7", "9"):
        (folder / "pubsub_emulator/__main__.py").write_text(
            PROGRAM.replace("BLOCKS", blocks), encoding="utf-8"
        )
        git("add", "pubsub_emulator")
        git("commit", "-m", blocks)
    command = ("compare", "git:HEAD~1", "git:main", "--json")
    done = python(Path(pubsub_emulator.__file__).parent / "__main__.py", *command, folder=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["figures"]["relay blocks"]["values"] == [7, 9]
    # With this variable, Python does not look for modules in the current directory.
    safe = python(
        *(Path(pubsub_emulator.__file__).parent / "__main__.py", *command),
        folder=folder,
        PYTHONSAFEPATH="1",
        PYTHONPATH=str(Path(pubsub_emulator.__file__).parents[1]),
    )
    assert safe.returncode == 0, safe.stderr
    assert json.loads(safe.stdout)["figures"]["relay blocks"]["values"] == [7, 9]


@pytest.mark.parametrize(
    "text", ["[]", '{"chains": 3}', '{"relay_blocks": "x"}', '{"relay_blocks": NaN}', "{"]
)
def test_a_summary_of_a_strangers_is_one_line(folder: Path, text: str) -> None:
    (folder / "odd").mkdir()
    (folder / "odd/summary.json").write_text(text, encoding="utf-8")
    error = _compare(folder, "odd", "odd", code=2).stderr
    assert "odd/summary.json: " in error
    assert error.count("\n") == 1


def test_a_table_has_absolute_and_relative_changes_and_zeroes_for_absent_items() -> None:
    lines = {
        line.name: line
        for line in lines_of([{"x": 8, "y": 0, "old": 1}, {"x": 6, "y": 3, "refused: A": 2}])
    }
    assert lines["x"].cells() == ("x", "8", "6", "-2", "-25.0 %")
    assert lines["y"].cells() == ("y", "0", "3", "+3", "")
    assert lines["old"].cells() == ("old", "1", "none", "", "")
    assert lines["refused: A"].values == (0, 2)
    assert [name for name, line in lines.items() if line.beyond(25)] == ["y", "old", "refused: A"]
    assert markdown(["a", "b"], [lines["x"]]).splitlines()[-1] == "| x | 8 | 6 | -2 | -25.0 % |"


@pytest.mark.parametrize(
    "unknown",
    ["nothing", "nothing.py", "nothing.toml", "git:nothing", "empty"],
)
def test_no_network_runs_before_all_sides_are_known(
    unknown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    runs: list[object] = []
    monkeypatch.setattr(sides, "simulate", lambda *_args, **_options: runs.append(1))
    done = invoked("compare", "demo", unknown)
    assert isinstance(done.exception, PubsubError | OSError)
    assert runs == []
