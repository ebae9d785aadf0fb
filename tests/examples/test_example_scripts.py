"""Every example runs, prints what examples/README.md says it prints, and stands in its index."""

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.plumbing.processes import program
from support.runtime.rules import SCENARIO

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.collator import cheats
from pubsub_emulator.emulator.scenario.file import load_scenario

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
INDEX = (EXAMPLES / "README.md").read_text(encoding="utf-8")
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
SCENARIOS = sorted(EXAMPLES.glob("*.toml"))


def test_the_index_names_every_file_and_folder_once() -> None:
    linked = re.findall(r"\]\(([^)#.][^)]*)\)", INDEX)
    there = [
        f"{path.name}/" if path.is_dir() else path.name
        for path in EXAMPLES.iterdir()
        if path.name[0] not in "._"
    ]
    assert sorted(linked) == sorted(name for name in there if name != "README.md")


def test_the_readme_shows_the_first_example_as_it_is() -> None:
    shown = re.search(
        r"```python\n(.*?)```",
        (EXAMPLES.parent / "README.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert shown is not None
    source = (EXAMPLES / "publish_subscribe.py").read_text(encoding="utf-8")
    assert shown.group(1) == source.split('"""\n\n', 1)[1]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_stands_beside_a_script_and_says_what_it_is(scenario: Path) -> None:
    assert scenario.with_suffix(".py") in SCRIPTS
    assert load_scenario(scenario).description


def test_the_workflow_s_command_is_one_that_there_is(tmp_path: Path) -> None:
    workflow = (EXAMPLES / "ci" / "proof-snapshots.yml").read_text(encoding="utf-8")
    [check] = re.findall(r"pubsub (proof-snapshot .* --diff)", workflow)
    [write] = re.findall(r"#   pubsub (proof-snapshot .*)", workflow)
    scenario, kept = str(tmp_path / "prices.toml"), str(tmp_path / "prices.proof-snapshot")
    Path(scenario).write_text(
        'name = "prices"\nseed = "prices"\nrelay_blocks = 2\n', encoding="utf-8"
    )
    for command in (write, check):
        for name in ("scenarios/prices.toml", '"${kept%.proof-snapshot}.toml"'):
            command = command.replace(name, scenario)  # noqa: PLW2901  # the command, filled in
        for name in ("scenarios/prices.proof-snapshot", '"$kept"'):
            command = command.replace(name, kept)  # noqa: PLW2901  # the command, filled in
        assert CliRunner().invoke(pubsub, command.split()).exit_code == 0, command


REFUSES_HONEST = frozenset({"one_limit"})
"""Rules that can refuse an honest block, which `fuzz` finds (docs/disputed-reports.md)."""


@pytest.mark.slow
@pytest.mark.parametrize("rules", sorted(EXAMPLES.glob("rules/*.py")), ids=lambda path: path.stem)
def test_a_rule_runs_under_audit_and_fuzz_without_a_wrong_verdict(
    tmp_path: Path, rules: Path
) -> None:
    (tmp_path / "small.toml").write_text(SCENARIO, encoding="utf-8")
    run = program("run", "small.toml", "--rules", rules, "--out", "out", "--json", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["verdicts"] == {}
    asked = (
        "audit",
        "out/history",
        "--out",
        "audit",
        "--rules",
        rules,
        "--engine",
        "python",
        "--fail-on",
        "error",
    )
    audited = program(*asked, "--json", folder=tmp_path)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert json.loads(audited.stdout)["read_errors"] == 0
    fuzzed = program("fuzz", "--cases", 60, "--rules", rules, "--out", "surprises", folder=tmp_path)
    refuses = rules.stem in REFUSES_HONEST
    assert fuzzed.returncode == refuses, fuzzed.stdout + fuzzed.stderr
    assert ("refused wrongly" in fuzzed.stdout) is refuses


def _shared(script: Path) -> pytest.ParameterSet:
    """A script; one that starts Spark uses that of all tests."""
    return pytest.param(
        script, id=script.stem, marks=[pytest.mark.spark] if "pyspark" in script.read_text() else []
    )


@pytest.fixture
def strategies_as_before() -> Iterator[None]:
    """Forget the strategies that a script registers, since later tests must not find them."""
    before = set(cheats._KNOWN)
    yield
    for name in set(cheats._KNOWN) - before:
        del cheats._KNOWN[name]


@pytest.mark.usefixtures("strategies_as_before")
@pytest.mark.parametrize("script", [_shared(script) for script in SCRIPTS])
def test_an_example_prints_what_the_index_says(
    script: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = re.search(rf"\]\({script.name}\)[^`]*```\n(.*?)```", INDEX, re.DOTALL)
    assert shown is not None
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")
        monkeypatch.setattr("pyspark.sql.SparkSession.stop", lambda _session: None)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out == shown.group(1)
