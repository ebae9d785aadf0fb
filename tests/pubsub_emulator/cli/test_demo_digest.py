"""The whole demonstration: what it ends with is what the README says, on this machine as on any
other.
"""

import re
from pathlib import Path

import pytest
from support.plumbing.processes import program

from pubsub_emulator.spark_audit.engine.engine import usable_cores

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_demonstration_ends_with_the_digest_in_the_readme(tmp_path: Path) -> None:
    done = program("demo", "--out", tmp_path / "demo", folder=tmp_path, PYTHONHASHSEED="160")
    assert done.returncode == 0, done.stderr
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    promised = re.findall(r"^ {4}(digest: 0x[0-9a-f]{64})$", readme, re.MULTILINE)
    assert [done.stdout.splitlines()[-1]] == promised
    assert ("known from the last run" in done.stdout) == (usable_cores() > 1), (
        "the audit follows the network"
    )
