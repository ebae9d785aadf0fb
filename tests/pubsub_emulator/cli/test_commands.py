import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.plumbing.command import TINY, help_of, pubsub
from support.plumbing.processes import environment, python
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript
from support.runtime.rules import CAP

from pubsub_emulator.cli.main import COMMANDS
from pubsub_emulator.emulator.scenario import file
from pubsub_emulator.spark_audit.history import storage
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.version import VERSION

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


def test_run_writes_a_history_a_summary_and_a_digest_and_names_them(
    tmp_path: Path,
    scenario: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert pubsub(monkeypatch, "run", scenario, "--out", out) == 0
    shown = capsys.readouterr().out
    digest = re.search(r"^digest: (0x[0-9a-f]{64})$", shown, re.MULTILINE)
    assert digest is not None
    summary = json.loads((out / "summary.json").read_text())
    assert summary["digest"] == digest.group(1)
    assert summary["verdicts"]["OmittedBelowBudget"] > 0
    assert str(out / "history") in shown
    assert str(out / "summary.json") in shown
    assert (out / "history" / "_commits").is_dir()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []


def test_au16_a_run_writes_its_history_where_an_audit_can_follow_it(
    tmp_path: Path,
    scenario: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A segment is there as soon as it is over, not when the run is."""
    seen: list[int] = []
    real = HistoryWriter._commit

    def counted(writer: HistoryWriter, segment: int) -> None:
        real(writer, segment)
        seen.append(len(list((tmp_path / "growing" / "_commits").glob("*.json"))))

    monkeypatch.setattr(HistoryWriter, "_commit", counted)
    history = tmp_path / "growing"
    assert (
        pubsub(monkeypatch, "run", scenario, "--out", tmp_path / "out", "--history", history) == 0
    )
    assert seen == list(range(1, len(seen) + 1))
    assert str(history) in capsys.readouterr().out
    assert not (tmp_path / "out" / "history").exists()
    assert (
        pubsub(monkeypatch, "audit", history, "--out", tmp_path / "audit", "--engine", "python")
        == 1
    )


USAGE = (
    "pubsub fly",
    "pubsub run",
    "pubsub run missing.toml --out o",
    "pubsub run nothing --out o",
    "pubsub run . --out o",
    "pubsub run node --out ''",
    "pubsub audit nowhere --out o",
    "pubsub audit '' --out o",
    "pubsub demo --engine steam",
    "pubsub conform ws://127.0.0.1:1 --rule PS8",
    "pubsub import-relay-proofs none.json --out o",
    "pubsub export-state ws://127.0.0.1:1 ''",
    "pubsub completion tcsh",
    "pubsub step",
    "pubsub step demo --connect ws://127.0.0.1:1",
    "pubsub step node --fork no-such.json",
    "pubsub step node --fork-para 2000",
    "pubsub step node --fork-para x=state.json",
    "pubsub step --connect ws://127.0.0.1:1 --fork state.json",
    "pubsub serve no-such",
    "pubsub serve --build sometimes",
    "pubsub serve --host 0.0.0.0 --dev",
    "pubsub serve --fork state.json --journal journal.jsonl",
    "pubsub serve --replay broken.jsonl",
    "pubsub serve --replay bytes.jsonl",
    "pubsub fuzz --cases 2 --strategy omit-nodes",
    "pubsub fuzz --target candidate --rules rules.py",
    "pubsub compare demo",
    "pubsub compare demo nothing",
    "pubsub compare demo .",
    "pubsub compare demo git:--help",
    "pubsub inspect broken.jsonl",
    "pubsub inspect empty",
    "pubsub inspect request.toml --block 1:1",
    "pubsub explore empty --out page.html",
    "pubsub experiment --out o",
    "pubsub experiment --sweep keys=4 --preset latency --out o",
    "pubsub experiment --sweep key=1 --out o",
    "pubsub experiment --sweep keys=x --out o",
    "pubsub experiment --sweep keys=0 --out o",
    "pubsub experiment --sweep keys --out o",
    "pubsub experiment --sweep keys= --out o",
    "pubsub experiment --sweep cache=none --out o",
    "pubsub experiment --sweep keys=1 --set equal_values=maybe --out o",
    "pubsub experiment --sweep keys=1 --set key_shape=odd --out o",
    "pubsub experiment --sweep keys=1 --cache best --out o",
    "pubsub experiment --sweep keys=1 --y pow --out o",
    "pubsub experiment --sweep keys=1 --set keys=2 --out o",
    "pubsub experiment --sweep keys=1 --set spread=2 --set spread=3 --out o",
    "pubsub experiment --sweep update_rate=100000 --out o",
    "pubsub experiment --sweep update_rate=-0.1 --out o",
    "pubsub experiment --sweep keys=1 --set active_rate=often --out o",
    "pubsub prove node",
    "pubsub prove --top 0x12",
    "pubsub prove '' --top 0x12",
    "pubsub prove node --top 0x12 --root 0x12",
    "pubsub prove node --verify request.toml --root 0x12",
    "pubsub prove node --top 0x12 --plot x.pdf",
    "pubsub prove no-such-scenario --top 0x12 --out none/x.svg",
    "pubsub prove no-such-scenario --top 0x12 --plot none/x.svg",
    # Files that would be read and written, or written twice.
    "pubsub prove node --request request.toml --out request.toml",
    "pubsub prove node --request request.toml --out link.toml",
    "pubsub prove node --request request.toml --out ./request.toml",
    "pubsub prove node --top 0x12 --plot a.svg --out a.svg",
    "pubsub open-proof request.toml --root 0x12 --draw request.toml",
    "pubsub open-proof broken.jsonl --header request.toml --draw request.toml",
    "pubsub explore request.toml --out request.toml",
    "pubsub proof-snapshot request.toml --out request.toml",
)
NO_ANSWER = "pubsub step node --fork http://127.0.0.1:1"


def test_wrong_usage_is_refused_and_writes_nothing(
    transcript: Transcript, snapshot: Snapshot
) -> None:
    folder = transcript.folder
    files = {
        "broken.jsonl": b"{}\n",
        "bytes.jsonl": b"\xbd\xff\x00\n",
        "request.toml": b'top = ["System.Number"]\n',
        "rules.py": CAP.encode(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "link.toml").symlink_to(folder / "request.toml")
    (folder / "empty").mkdir()
    for line in USAGE:
        transcript.refuse(line)
    transcript.refuse(NO_ANSWER, code=4)
    assert {path.name for path in folder.iterdir()} == {*files, "link.toml", "empty"}
    assert {name: (folder / name).read_bytes() for name in files} == files
    snapshot("usage", str(transcript))


@pytest.mark.spark
def test_a_master_that_is_not_there_is_the_machines_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A context that another test of this process started would be used.
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    monkeypatch.chdir(tmp_path)
    arguments = ("simulate", "--networks", 1, "--blocks", 1, "--out", "out")
    assert pubsub(monkeypatch, *arguments, "--master", "spark://127.0.0.1:1") == 4
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .startswith("pubsub: no Spark master answers at spark://127.0.0.1:1")
    )


def test_a_broken_scenario_names_file_line_and_field(
    tmp_path: Path,
    scenario: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario.write_text(TINY.replace("keys = 4", "keys = -4"))
    assert pubsub(monkeypatch, "run", scenario, "--out", tmp_path / "out") == 2
    assert f"{scenario}:8: publishers.1.keys: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_one_line_exit_code_four_and_leaves_nothing(
    tmp_path: Path,
    scenario: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "out"))

    monkeypatch.setattr(storage.LocalStore, "_written", full)
    assert pubsub(monkeypatch, "run", scenario, "--out", tmp_path / "out") == 4
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("pubsub: ")
    assert "No space left on device" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.toml"]


@pytest.mark.skipif(os.name == "nt", reason="signals are another thing there")
@pytest.mark.parametrize(
    ("command", "how"),
    [
        pytest.param("run demo", signal.SIGINT, id="run by Ctrl-C"),
        pytest.param("run demo", signal.SIGTERM, id="run by SIGTERM"),
        pytest.param("fixtures", signal.SIGTERM, id="fixtures"),
        pytest.param("experiment --preset latency", signal.SIGINT, id="experiment"),
        pytest.param("explore demo", signal.SIGINT, id="explore"),
    ],
)
def test_an_interrupted_command_ends_with_130_and_leaves_nothing_behind(
    tmp_path: Path, command: str, how: signal.Signals
) -> None:
    out = str(tmp_path / ("out.html" if command.startswith("explore") else "out"))
    arguments = [sys.executable, "-m", "pubsub_emulator.cli.main", *command.split(), "--out", out]
    running = subprocess.Popen(
        arguments, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    running.stderr.readline()  # the stage has begun
    running.send_signal(how)
    _, error = running.communicate(timeout=60)
    assert running.returncode == 130
    assert error.splitlines()[-1].startswith("pubsub: interrupted")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="signals are another thing there")
def test_an_interrupted_audit_is_taken_up_again_and_comes_to_the_same(
    tmp_path: Path,
    scenario: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert pubsub(monkeypatch, "run", scenario, "--out", tmp_path / "out") == 0
    history = str(tmp_path / "out/history")
    arguments = [
        sys.executable,
        "-m",
        "pubsub_emulator.cli.main",
        "audit",
        history,
        "--engine",
        "python",
        "--out",
    ]
    running = subprocess.Popen(
        [*arguments, str(tmp_path / "one")],
        cwd=ROOT,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    running.stderr.readline()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert not (tmp_path / "one" / "run_report.json").exists()
    capsys.readouterr()
    digests = []
    for name in ("one", "two"):
        assert (
            pubsub(monkeypatch, "audit", history, "--engine", "python", "--out", tmp_path / name)
            == 1
        )
        digests.append(capsys.readouterr().out.splitlines()[-1])
    assert digests[0] == digests[1]


HELP = """
import sys
before = set(sys.modules)  # what the installation itself has imported
sys.argv = ["pubsub", "--help"]
from pubsub_emulator.cli.main import main
try:
    main()
except SystemExit:
    pass
loaded = set(sys.modules) - before
heavy = {"pyspark", "pandas", "pyarrow", "numpy", "pydantic", "rich", "pathlib"} & loaded
heavy |= {name for name in loaded if name.startswith("pubsub_emulator.cli.commands")}
assert not heavy, heavy
"""


def test_help_loads_nothing_heavy() -> None:
    done = python("-c", HELP)
    assert done.returncode == 0, done.stderr


def test_the_help_of_every_command_of_the_emulator(snapshot: Snapshot) -> None:
    snapshot("help", help_of(*COMMANDS))


def test_the_version_is_the_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pubsub(monkeypatch, "--version") == 0
    assert VERSION in capsys.readouterr().out


def test_a_demonstration_replaces_its_own_output_and_no_one_elses(
    tmp_path: Path,
    scenario: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tiny = file.load_scenario(scenario)
    monkeypatch.setattr(file, "find_scenario", lambda _name: tiny)
    digests = set()
    for _ in range(2):
        assert pubsub(monkeypatch, "demo", "--out", tmp_path / "out", "--engine", "python") == 0
        shown = capsys.readouterr().out
        assert "and no others" in shown
        digests.add(shown.splitlines()[-1])
    assert len(digests) == 1
    assert next(iter(digests)).startswith("digest: 0x")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").touch()
    assert pubsub(monkeypatch, "demo", "--out", tmp_path / "theirs", "--engine", "python") == 2


def test_without_a_command_the_whole_help_is_shown_as_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pubsub(monkeypatch) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Usage: pubsub [OPTIONS] COMMAND [ARGS]...\n\n")
    assert "..." not in shown.partition("Commands:")[2].partition("Examples:")[0]
