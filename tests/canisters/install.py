"""Agents from npm and PyPI, in the versions named here, below `.venv/canisters`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "canisters"))
from build import MODULES, npm  # noqa: E402  # Motoko's compiler comes from there, too

JAVASCRIPT = "@icp-sdk/core@6.1.0"
PYTHON = ("icp-py-core==2.3.1", "cbor2==5.9.0")
"""The agent takes lists only, and cbor2 6 reads the answers as tuples."""
AGENT = MODULES / "agent" / "bin" / "python"


def main() -> int:
    """Bring both agents where they are not there. Returns the first bad exit code."""
    if not (MODULES / "node_modules" / "@icp-sdk").is_dir() and npm(JAVASCRIPT):
        return 1
    if AGENT.exists():
        return 0
    words = (
        [sys.executable, "-m", "venv", AGENT.parents[1]],
        [AGENT, "-m", "pip", "install", "--quiet", *PYTHON],
    )
    return next(
        (1 for each in words if subprocess.run(list(map(str, each)), check=False).returncode), 0
    )


if __name__ == "__main__":
    sys.exit(main())
