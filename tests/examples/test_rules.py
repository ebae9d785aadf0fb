"""Every example of a rule: a run of it is audited without a finding, a campaign under it ends without a surprise."""

import json
from pathlib import Path

import pytest
from support.processes import program
from support.rules import SCENARIO

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples/rules").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("rules", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_under_audit_and_fuzz_without_a_wrong_verdict(tmp_path: Path, rules: Path) -> None:
    (tmp_path / "small.toml").write_text(SCENARIO, encoding="utf-8")
    run = program("run", "small.toml", "--rules", rules, "--out", "out", "--json", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["verdicts"] == {}
    asked = ("audit", "out/history", "--out", "audit", "--rules", rules, "--engine", "python", "--fail-on", "error")
    audited = program(*asked, "--json", folder=tmp_path)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert json.loads(audited.stdout)["quarantined"] == 0
    fuzzed = program("fuzz", "--cases", 60, "--rules", rules, "--out", "surprises", folder=tmp_path)
    assert fuzzed.returncode == 0, fuzzed.stdout + fuzzed.stderr
