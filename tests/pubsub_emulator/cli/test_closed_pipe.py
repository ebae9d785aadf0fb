"""`pubsub … | head`: whoever stops reading gets no verdict, whatever was being printed."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_reference import leaves
from support.plumbing.command import TINY

from pubsub_emulator.cli.exits import PIPE_CLOSED
from pubsub_emulator.cli.main import main, sentences_of_all

ROOT = Path(__file__).resolve().parents[3]
BASH = shutil.which("bash") or "bash"
CASE = str(ROOT / "pubsub_emulator/laboratory/corpus/add-cached-node.json")


def _code(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, given: str = "", closed: str = "stdout"
) -> int:
    """The exit code of the program with its output going into a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    before = signal.getsignal(signal.SIGTERM)
    with (
        os.fdopen(writer, "w") as pipe,
        Path(os.devnull).open("w") as other,
        monkeypatch.context() as patched,
    ):
        patched.setattr(sys, "argv", ["pubsub", *arguments])
        # The program redirects both streams. The other one must not be pytest's own file.
        patched.setattr(sys, "stdout", other)
        patched.setattr(sys, "stderr", other)
        patched.setattr(sys, closed, pipe)
        patched.setattr(sys, "stdin", io.StringIO(given))
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            signal.signal(signal.SIGTERM, before)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    "command", sorted({"", *sentences_of_all(), *(name for name, _, _ in leaves())})
)
def test_every_commands_help_ends_with_the_exit_code_of_a_closed_pipe(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _code(monkeypatch, *command.split(), "--help") == PIPE_CLOSED


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (("step", "fixtures"), "step 2\nevents\n"),
        (("step", "fixtures"), "strategies\n"),
        (("inspect", CASE), ""),
        (("inspect", CASE, "--json"), ""),
        (("replay", CASE), ""),
        (("new", "--list"), ""),
        (("completion", "bash"), ""),
        (("vectors", "check", str(ROOT / "tests/vectors/tries")), ""),
        (("icrc72", "run", "demo"), ""),
        (("fuzz", "--cases", "2", "--seed", "1"), ""),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_tables_prose_and_json_end_with_the_code_of_a_closed_pipe(
    arguments: tuple[str, ...], given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _code(monkeypatch, *arguments, given=given) == PIPE_CLOSED


def test_a_run_and_what_reads_its_history_end_so_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, out = tmp_path / "tiny.toml", tmp_path / "out"
    scenario.write_text(TINY, encoding="utf-8")
    assert _code(monkeypatch, "run", str(scenario), "--out", str(tmp_path / "other")) == PIPE_CLOSED
    monkeypatch.setattr(sys, "argv", ["pubsub", "run", str(scenario), "--out", str(out)])
    main()
    history = str(out / "history")
    for arguments in (
        ("inspect", history),
        ("diff", history, history),
        ("inspect", history, "--json"),
    ):
        assert _code(monkeypatch, *arguments) == PIPE_CLOSED


def test_errors_that_nobody_reads_end_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _code(monkeypatch, "inspect", "nothing.json", closed="stderr") == PIPE_CLOSED


def test_a_process_says_nothing_of_it() -> None:
    shell = (
        f"{sys.executable} -m pubsub_emulator.cli.main step --help | head -1; echo"
        " ${PIPESTATUS[0]}"
    )
    for _ in range(3):
        done = subprocess.run(
            [BASH, "-c", shell], capture_output=True, text=True, check=True, cwd=ROOT
        )
        assert done.stderr == ""
        assert re.fullmatch(r"Usage: .*\n(141|0)\n", done.stdout)
