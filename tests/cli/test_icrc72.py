"""`pubsub icrc72`: scenarios, traces and stories from the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pubsub_emulator.cli.commands.icrc72 import command
from pubsub_emulator.eventplane.icrc72.campaign import written
from pubsub_emulator.eventplane.icrc72.errors import Icrc72Error, ScenarioError
from pubsub_emulator.eventplane.icrc72.scenario import Run, load
from pubsub_emulator.eventplane.icrc72.stories import Plan

SMALL = """
subnets = 2
rounds = 80
broadcasters = [0, 1]
[[publisher]]
name = "prices"
subnet = 0
namespace = "org.example.price"
from = 60
until = 64
[[subscriber]]
name = "reader"
subnet = 1
pattern = "org.**"
"""


def test_the_demonstration_handles_all_and_has_one_digest() -> None:
    outcome = Run(load("demo")).finish()
    assert outcome.good
    assert all(had == due > 0 for had, due, _ in outcome.handled.values())
    assert "completed" in outcome.replays.values()
    shown = CliRunner().invoke(command, ["demo"])
    assert shown.exit_code == 0
    assert outcome.digest in shown.output


def test_a_trace_shows_the_way_of_an_event_as_text_and_drawing(tmp_path: Path) -> None:
    drawing, scenario = tmp_path / "way.svg", tmp_path / "small.toml"
    scenario.write_text(SMALL)
    arguments = ["trace", str(scenario), "--namespace", "org.example.price", "--event", "3", "--svg", str(drawing)]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert "publish event 3" in result.output
    assert "broadcaster 0 -> broadcaster" in result.output
    assert drawing.read_text().startswith("<svg")
    with pytest.raises(Icrc72Error, match="has no event 999"):
        CliRunner().invoke(command, [*arguments[:5], "999"], catch_exceptions=False)


def test_a_scenario_retires_a_broadcaster_where_another_serves_its_subnet(tmp_path: Path) -> None:
    fault = '[[fault]]\nround = 62\nwhat = "retire"\nwho = "broadcaster 1"\n'
    scenario = tmp_path / "retire.toml"
    scenario.write_text(SMALL.replace("[0, 1]", "[0, 1, 1]").replace("rounds = 80", "rounds = 200") + fault)
    run = Run(load(str(scenario)))
    assert run.finish().good
    assert not run.system.registry.state.brokers[run.who["broadcaster 1"]].registered
    scenario.write_text(SMALL + fault)
    with pytest.raises(ScenarioError, match="nobody else serves its subnet"):
        Run(load(str(scenario))).finish()


def test_a_story_is_played_and_played_again(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["stories", "--cases", "1", "--no-cheats", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    case = tmp_path / "case.json"
    case.write_text(json.dumps(written(Plan(b"x", rounds=10))))
    again = CliRunner().invoke(command, ["stories", "--replay", str(case)])
    assert (again.exit_code, "no surprise" in again.output) == (0, True)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("subnets = 0\nrounds = 1", "subnets"),
        ("subnets = 1\nrounds = 1\nunknown = 2", "unknown"),
        ("subnets =", "TOML"),
        ('subnets = 1\nrounds = 1\n[[fault]]\nround = 1\nwhat = "burn"\nwho = "x"', "fault.0.what"),
    ],
)
def test_a_bad_scenario_is_one_error_that_names_the_place(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=place):
        load(str(path))
