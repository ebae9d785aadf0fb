"""How the tests of packaging start programs."""

import os
import subprocess
from pathlib import Path


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """What a program prints, without this one's Python settings; its exit code must be `code`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PUBSUB_PURE"] = "1"
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
