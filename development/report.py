"""Say what the set-up and the jobs do, and why they cannot go on."""

import subprocess
import sys


class SetupError(Exception):
    """The set-up or a job cannot go on. The message says what to do."""


def say(message: str) -> None:
    """Print one line to standard error, apart from what the tools print."""
    print(f"dev.py: {message}", file=sys.stderr, flush=True)


def last_line(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the line of a failed command's output that explains it best.

    This is the last line that begins with "error", or else the last one of all.
    """
    lines = [
        line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()
    ]
    errors = [line for line in lines if line.startswith(("ERROR", "error"))]
    return (errors or lines or [f"exit code {done.returncode}"])[-1]
