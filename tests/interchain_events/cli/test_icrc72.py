"""`pubsub icrc72`: scenarios, traces and stories from the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.plumbing.scenarios import scenario
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript

from interchain_events.cli.commands.icrc72 import command
from interchain_events.icrc72.campaign import written
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.modules import read_module
from interchain_events.icrc72.scenario import Run
from interchain_events.icrc72.scenario_file import load
from interchain_events.icrc72.stories import Plan
from pubsub_emulator.files.settings import SettingsError
from pubsub_emulator.primitives.errors import PubsubError

SMALL = scenario("canisters")


def test_the_demonstration_handles_all_and_has_one_digest() -> None:
    outcome = Run(load("demo")).finish()
    assert outcome.good
    assert all(had == due > 0 for had, due, _ in outcome.handled.values())
    assert "completed" in outcome.replays.values()
    shown = CliRunner().invoke(command, ["demo"])
    assert shown.exit_code == 0
    assert outcome.digest in shown.output


def test_a_scenario_retires_a_broadcaster_where_another_serves_its_subnet(tmp_path: Path) -> None:
    fault = '[[fault]]\nround = 62\nwhat = "retire"\nwho = "broadcaster 1"\n'
    scenario = tmp_path / "retire.toml"
    scenario.write_text(
        SMALL.replace("[0, 1]", "[0, 1, 1]").replace("rounds = 80", "rounds = 200") + fault
    )
    run = Run(load(str(scenario)))
    assert run.finish().good
    assert not run.system.registry.state.brokers[run.who["broadcaster 1"]].registered
    scenario.write_text(SMALL + fault)
    with pytest.raises(PubsubError, match="no other broadcaster serves its subnet"):
        load(str(scenario))
    killed = SMALL.replace("[0, 1]", "[0, 1, 1]").replace("rounds = 80", "rounds = 300")
    scenario.write_text(
        killed + FAULT.format(62, "kill", "broadcaster 2") + fault.replace("62", "200")
    )
    with pytest.raises(PubsubError, match="no other broadcaster serves its subnet"):
        Run(load(str(scenario))).finish()


def test_a_story_ends_without_a_surprise(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        command, ["stories", "--cases", "1", "--no-cheats", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output


FAULT = '\n[[fault]]\nround = {}\nwhat = "{}"\nwho = "{}"\n'

MISTAKES = (
    ("subnets = 2", "subnets = 0"),
    ("subnets = 2", "subnets = true"),
    ("subnets = 2", "subnets ="),
    ("rounds = 80", "rounds = 1_000_001"),
    ("rounds = 80", "rounds = 80\nseed = 5"),
    ("rounds = 80", "rounds = 80\ndelay = 21"),
    ("rounds = 80", "rounds = 80\nrefuse = 91"),
    ("rounds = 80", 'rounds = 80\nkind = "direct"'),
    ("rounds = 80", "rounds = 80\nqueue = 0"),
    ("rounds = 80", "rounds = 80\nquue = 9"),
    ("[0, 1]", "[0, 2]"),
    ("[0, 1]", "0"),
    ('"prices"', '"reader"'),
    ('"prices"', '"orchestrator"'),
    ('"prices"', '"broadcaster 7"'),
    ("subnet = 0", "subnet = 2"),
    ("subnet = 0", 'subnet = "0"'),
    ('"org.example.price"', '"org.*"'),
    ("from = 60", "from = 200"),
    ("from = 60", "first = 60"),
    ("from = 60", "from = 0"),
    ("until = 64", "until = 50"),
    ("until = 64", "every = 0"),
    ("until = 64", 'replay = "yes"'),
    ('"org.**"', '"org.***"'),
    ("pattern =", "patern ="),
    ('"org.**"', '"org.**"\nfilter = "a =="'),
    ('"org.**"', '"org.**"\nskip = [0, 0]'),
    ('"org.**"', '"org.**"\nskip = []'),
    ('"org.**"', '"org.**"' + FAULT.format(5, "burn", "reader")),
    ('"org.**"', '"org.**"' + FAULT.format(81, "kill", "reader")),
    ('"org.**"', '"org.**"' + FAULT.format(5, "kill", "nobody")),
    ('"org.**"', '"org.**"' + FAULT.format(5, "start", "reader")),
    ('"org.**"', '"org.**"' + FAULT.format(5, "retire", "reader")),
    ('"org.**"', '"org.**"' + FAULT.format(5, "upgrade", "orchestrator")),
    (
        '"org.**"',
        '"org.**"' + FAULT.format(9, "stop", "reader") + FAULT.format(5, "kill", "reader"),
    ),
    ('"org.**"', '"org.**"\n[fault]\nround = 5'),
    (
        '"org.**"',
        '"org.**"\n[[publisher]]\nname = "b"\nsubnet = 1\nnamespace = "org.example.price"',
    ),
)
"""Parts of the scenario, and mistakes in their place."""


def test_a_mistake_in_a_scenario_is_reported_with_its_place(
    tmp_path: Path, snapshot: Snapshot
) -> None:
    path = tmp_path / "bad.toml"
    texts = []
    for right, wrong in MISTAKES:
        path.write_text(SMALL.strip().replace(right, wrong, 1))
        with pytest.raises(SettingsError) as refused:
            load(str(path))
        lines = str(refused.value).splitlines()
        assert all("bad.toml:" in line for line in lines)
        texts.append("\n".join((*wrong.strip().splitlines(), *lines)) + "\n")
    snapshot("mistakes", "\n".join(texts).replace(f"{tmp_path}/", "  "))


CASES = {
    "deep lists": "[" * 100_000,
    "a list": "[]",
    "too many rounds": json.dumps({**written(Plan(b"x")), "rounds": 10**9}),
    "too many deaths": json.dumps({**written(Plan(b"x")), "deaths": 101}),
    "an infinite load": json.dumps({**written(Plan(b"x")), "load": 7}).replace("7", "1e999"),
}
"""Files that are not the case of a story."""


def test_what_icrc72_commands_print_and_refuse(transcript: Transcript, snapshot: Snapshot) -> None:
    """Events that were not published or not handled make the exit code 1."""
    folder = transcript.folder
    scenarios = {
        "small": SMALL,
        "no-broadcaster": SMALL.replace("[0, 1]", "[]"),
        "no-orchestrator": SMALL + FAULT.format(5, "kill", "orchestrator"),
        "no-reader": SMALL + FAULT.format(70, "stop", "reader"),
    }
    for name, text in scenarios.items():
        (folder / f"{name}.toml").write_text(text)
        code = int(name in {"no-broadcaster", "no-orchestrator"})
        transcript.run(f"pubsub icrc72 run {name}.toml", code=code)
    trace = "pubsub icrc72 trace small.toml --namespace org.example.price --event"
    transcript.run(f"{trace} 3 --svg way.svg")
    assert (folder / "way.svg").read_text().startswith("<svg")
    transcript.refuse(f"{trace} 999")
    transcript.refuse(f"{trace} 3 --svg small.toml")
    assert (folder / "small.toml").read_text() == SMALL
    (folder / "case.json").write_text(json.dumps(written(Plan(b"x", rounds=10))))
    transcript.run("pubsub icrc72 stories --replay case.json")
    for case, text in CASES.items():
        (folder / "case.json").write_text(text)
        transcript.note(f"# {case}")
        transcript.refuse("pubsub icrc72 stories --replay case.json")
    snapshot("icrc72", str(transcript))


def test_what_is_no_module_is_refused_by_its_name(tmp_path: Path) -> None:
    place = tmp_path / "no.wasm"
    with pytest.raises(Icrc72Error, match=r"no\.wasm: cannot be read"):
        read_module(place)
    place.write_bytes(b"hi\n")
    with pytest.raises(Icrc72Error, match=r"no\.wasm: not a WebAssembly module"):
        read_module(place)
    place.write_bytes(b"\0asm\1\0\0\0")
    assert read_module(place) == b"\0asm\1\0\0\0"
