"""Python and `pubsub` in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from support import forked

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE: Final = 600
"""Seconds until a program counts as one that does not end."""


def environment(**variables: str) -> dict[str, str]:
    """This process's variables and more, with which Python finds the project and the helpers of tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))), **variables}


def python(
    *arguments: object, folder: Path = ROOT, given: str | None = None, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run Python in a folder to its end: its exit code, and all that it printed. `given` is what it reads."""
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
    """Run a command of `pubsub` to its end, as `python` does; in a fork, unless a variable is for Python itself."""
    if os.name == "nt" or any(name.startswith("PYTHON") for name in variables):
        return python("-m", "pubsub_emulator", *arguments, folder=folder, given=given, **variables)
    return forked.run([*map(str, arguments)], folder, given, environment(**variables), PATIENCE)


def printed(script: str, *hash_seeds: str) -> set[str]:
    """The outputs of a program under these hash seeds: one, if it depends on none."""
    runs = [python("-c", script, PYTHONHASHSEED=seed) for seed in hash_seeds]
    assert not any(run.returncode for run in runs), runs[0].stderr
    return {run.stdout for run in runs}
