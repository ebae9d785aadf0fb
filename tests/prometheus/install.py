"""Prometheus and promtool from Debian's package, below `.venv/prometheus`, without root.

`python tests/prometheus/install.py` brings them; what is there already is left. apt checks the
signature of the package's index and the package's hash.
"""

import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".venv" / "prometheus"
PROGRAMS = CACHE / "usr" / "bin"
"""Where both programs are."""
_LISTS = CACHE / "lists"
"""An index of packages of our own, for a machine whose own index is empty."""


def _run(*command: str | Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command and keep what it prints. A command that is missing fails."""
    try:
        return subprocess.run(
            list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", f"there is no {command[0]} here")


def _last_line(done: "subprocess.CompletedProcess[str]") -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def install() -> None:
    """Bring what is not there. Exits with apt's last line if that fails."""
    if (PROGRAMS / "prometheus").exists() and (PROGRAMS / "promtool").exists():
        return
    shutil.rmtree(CACHE, ignore_errors=True)
    (_LISTS / "partial").mkdir(parents=True)
    done = _run("apt-get", "download", "prometheus", folder=CACHE)
    if done.returncode != 0:
        own = ("-o", f"Dir::State::lists={_LISTS}", "-o", f"Dir::Cache={CACHE}")
        done = _run("apt-get", *own, "update", folder=CACHE)
        if done.returncode == 0:
            done = _run("apt-get", *own, "download", "prometheus", folder=CACHE)
    packages = list(CACHE.glob("prometheus_*.deb"))
    if done.returncode != 0 or len(packages) != 1:
        sys.exit(f"prometheus: Debian's package cannot be had: {_last_line(done)}")
    unpacked = _run("dpkg-deb", "--extract", packages[0], CACHE, folder=CACHE)
    if unpacked.returncode != 0:
        sys.exit(f"prometheus: the package cannot be unpacked: {_last_line(unpacked)}")
    packages[0].unlink()


if __name__ == "__main__":
    install()
