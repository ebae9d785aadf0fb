"""`pubsub new`: scenarios to begin with, and the schema for editors."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.plumbing.command import invoked

from pubsub_emulator.cli.commands.new.run import TEMPLATE
from pubsub_emulator.cli.main import SCENARIOS
from pubsub_emulator.emulator.scenario.file import BUNDLE, load_scenario, scenario_schema
from pubsub_emulator.emulator.scenario.model import RelaySettings, Scenario
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.settings import SettingsError


def test_a_new_scenario_runs_and_is_called_as_its_file(tmp_path: Path) -> None:
    path = tmp_path / "my first.toml"
    done = invoked("new", path)
    assert done.exit_code == 0, done.output
    found = load_scenario(path)
    assert (found.name, found.subscribers[0].collators[1].strategies) == (
        "my-first",
        ("omit-node",),
    )
    assert f"pubsub step {path}" in done.stdout
    again = invoked("new", path, "--like", "oracle")
    assert isinstance(again.exception, InputError)
    assert "the file exists" in str(again.exception)
    assert load_scenario(path) == found


def test_every_commented_template_line_is_a_field_with_a_valid_value() -> None:
    lines = TEMPLATE.read_text().splitlines()
    shown = [
        (
            line.removeprefix("# ")
            if line.startswith(("# ", "#[")) and ("=" in line or "[[" in line)
            else line
        )
        for line in lines
    ]
    text = "\n".join(line for line in shown if not line.startswith("# "))
    document = tomllib.loads(text)
    found = Scenario.model_validate(document)
    assert found.subscribers[0].orders[0].call == "redeliver"
    assert found.relay.session_length == RelaySettings().session_length
    assert (
        found.subscribers[0].max_pov_size
        == type(found.subscribers[0]).model_fields["max_pov_size"].default
    )


def test_a_scenario_that_comes_with_the_project_is_copied_with_its_comments(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    assert invoked("new", path, "--like", "oracle").exit_code == 0
    assert path.read_text() == BUNDLE.text("oracle")
    wrong = invoked("new", tmp_path / "b.toml", "--like", "orcale")
    assert isinstance(wrong.exception, SettingsError)
    assert "did you mean oracle?" in str(wrong.exception)


def test_the_help_names_every_scenario_that_comes_with_the_project() -> None:
    assert BUNDLE.names() == SCENARIOS
    shown = invoked("new", "--list").stdout
    assert all(name in shown for name in SCENARIOS)


def test_the_schema_is_written_beside_and_accepts_every_shipped_scenario(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.toml"
    assert invoked("new", path, "--schema").exit_code == 0
    assert path.read_text().startswith("#:schema ./scenario.schema.json\n")
    schema = json.loads((tmp_path / "scenario.schema.json").read_text())
    assert schema == json.loads(invoked("new", "--schema").stdout) == scenario_schema()
    command = (
        sys.executable,
        "-m",
        "pubsub_emulator.cli.main",
        "new",
        "--schema",
    )  # asked for once in a process
    assert schema == json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    for name in BUNDLE.names():
        validator.validate(tomllib.loads(BUNDLE.text(name)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("relay_blocks", 0),
        ("nonsense", 1),
        ("publishers", [{"paras": [1000], "update_rate": 1.5}]),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(field: str, value: object) -> None:
    document = {"name": "a", "seed": "a", "relay_blocks": 3, field: value}
    assert not Draft202012Validator(scenario_schema()).is_valid(document)
    assert Draft202012Validator(scenario_schema()).is_valid(
        {"name": "a", "seed": "a", "relay_blocks": 3}
    )


def test_defaults_in_the_schema_are_as_they_are_written_in_files() -> None:
    definitions = scenario_schema()["$defs"]
    assert definitions["CollatorSettings"]["properties"]["rate"]["default"] == 1.0
    for definition in definitions.values():
        validator = {
            name: each
            for name, each in definition.get("properties", {}).items()
            if "default" in each
        }
        for name, each in validator.items():
            rules = {**each, "$defs": definitions}
            assert each["default"] is None or Draft202012Validator(rules).is_valid(
                each["default"]
            ), name
