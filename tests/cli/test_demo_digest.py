"""The whole demonstration: what it ends with is what the README says, on this machine as on any other."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_demonstration_ends_with_the_digest_in_the_readme(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pubsub_emulator.cli.main",
            "demo",
            "--engine",
            "python",
            "--out",
            str(tmp_path / "demo"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "160"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    promised = re.findall(r"^ {4}(digest: 0x[0-9a-f]{64})$", readme, re.MULTILINE)
    assert [done.stdout.splitlines()[-1]] == promised
