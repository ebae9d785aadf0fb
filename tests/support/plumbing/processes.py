"""Python and `pubsub` in processes of their own."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

from support.plumbing import forked

ROOT: Final = Path(__file__).resolve().parents[3]
PATIENCE: Final = 600
"""Seconds until a program counts as one that does not end."""
TOLD: Final = 3_000
"""Bytes of each process's output that a failure shows."""


def environment(**variables: str) -> dict[str, str]:
    """Return this process's and these variables, with paths to the project and the helpers."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))),
        **variables,
    }


def python(
    *arguments: object, folder: Path = ROOT, given: str | None = None, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run Python in a folder to its end, and return its exit code and output.

    `given` is its standard input.
    """
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment(**variables),
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def program(
    *arguments: object, folder: Path = ROOT, given: str | None = None, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command of `pubsub` to its end, as `python` does; in a fork, unless a variable is for
    Python itself.
    """
    if os.name == "nt" or any(name.startswith("PYTHON") for name in variables):
        return python("-m", "pubsub_emulator", *arguments, folder=folder, given=given, **variables)
    return forked.run([*map(str, arguments)], folder, given, environment(**variables), PATIENCE)


def printed(script: str, *hash_seeds: str) -> set[str]:
    """Return the different outputs of a program under these hash seeds.

    There is only one if the output does not depend on the seed.
    """
    runs = [python("-c", script, PYTHONHASHSEED=seed) for seed in hash_seeds]
    assert not any(run.returncode for run in runs), runs[0].stderr
    return {run.stdout for run in runs}


class Cast:
    """The processes of one story, which it kills and starts again; all that they write is in
    `folder`.
    """

    tended: tuple[str, ...]
    """Who is started again after ending by itself: it may begin while its database is away."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, folder / "client"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]

    def arguments(self, who: str) -> list[str]:
        """Return the arguments of Python after `-m` for a process named `who`."""
        raise NotImplementedError

    def start(self, who: str) -> None:
        with self._log(who).open("ab") as written:
            written.write(f"--- {who} starts\n".encode())
            command = [sys.executable, "-m", *self.arguments(who)]
            unbuffered = environment(PYTHONUNBUFFERED="1")
            self.running[who] = subprocess.Popen(
                command, env=unbuffered, stdout=written, stderr=written
            )

    def tend(self) -> None:
        """Start who has ended by itself, as a supervisor does."""
        for who in self.tended:
            if who in self.running and self.running[who].poll() is not None:
                self.start(who)

    def kill(self, who: str) -> None:
        self.running[who].send_signal(signal.SIGKILL)
        self.running[who].wait()

    def _log(self, who: str) -> Path:
        return self.folder / f"{who}.log"

    def told(self) -> str:
        """Return the end of each process's output, and how the process ended if it did."""
        return "\n".join(
            f"{who} (exit status {process.poll()}) wrote:\n"
            + self._log(who).read_bytes()[-TOLD:].decode("utf-8", "replace")
            for who, process in self.running.items()
        )

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
