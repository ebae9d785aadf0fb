"""`pubsub icrc72`: scenarios, traces and stories from the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.plumbing.scenarios import scenario

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


def test_a_trace_shows_the_way_of_an_event_as_text_and_drawing(tmp_path: Path) -> None:
    drawing, scenario = tmp_path / "way.svg", tmp_path / "small.toml"
    scenario.write_text(SMALL)
    arguments = [
        "trace",
        str(scenario),
        "--namespace",
        "org.example.price",
        "--event",
        "3",
        "--svg",
        str(drawing),
    ]
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


def test_a_story_is_played_and_played_again(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        command, ["stories", "--cases", "1", "--no-cheats", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    case = tmp_path / "case.json"
    case.write_text(json.dumps(written(Plan(b"x", rounds=10))))
    again = CliRunner().invoke(command, ["stories", "--replay", str(case)])
    assert (again.exit_code, "no surprise" in again.output) == (0, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nest deeper than 64"),
        ("[]", "not a case"),
        (
            json.dumps({**written(Plan(b"x")), "rounds": 10**9}),
            "rounds from 0 to 10,000, not 1000000000",
        ),
        (json.dumps({**written(Plan(b"x")), "deaths": 101}), "deaths from 0 to 100, not 101"),
        (json.dumps({**written(Plan(b"x")), "load": 7}).replace("7", "1e999"), "not a case"),
    ],
)
def test_a_case_of_a_story_is_read_as_a_strangers(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "case.json").write_text(text)
    done = CliRunner().invoke(command, ["stories", "--replay", str(tmp_path / "case.json")])
    assert isinstance(done.exception, PubsubError)
    assert words in str(done.exception)


FAULT = '\n[[fault]]\nround = {}\nwhat = "{}"\nwho = "{}"\n'

MISTAKES = [
    ("subnets = 2", "subnets = 0", "1: subnets: should be a whole number from 1 to 64, not 0"),
    ("subnets = 2", "subnets = true", "1: subnets: should be a whole number"),
    ("subnets = 2", "subnets =", "not TOML: Invalid value"),
    ("rounds = 80", "rounds = 1_000_001", "2: rounds: should be"),
    ("rounds = 80", "rounds = 80\nseed = 5", "3: seed: should be text"),
    ("rounds = 80", "rounds = 80\ndelay = 21", "3: delay: should be"),
    ("rounds = 80", "rounds = 80\nrefuse = 91", "3: refuse: should be"),
    (
        "rounds = 80",
        'rounds = 80\nkind = "direct"',
        '3: kind: should be "orchestrator" or "broadcaster"',
    ),
    ("rounds = 80", "rounds = 80\nqueue = 0", "3: queue: should be"),
    ("rounds = 80", "rounds = 80\nquue = 9", "3: quue: no such field; did you mean queue"),
    ("[0, 1]", "[0, 2]", "3: broadcasters.2: there is no subnet 2; the last one is 1"),
    ("[0, 1]", "0", "3: broadcasters: should be a list"),
    ('"prices"', '"reader"', "11: subscriber.1.name: two canisters have the name 'reader'"),
    ('"prices"', '"orchestrator"', "5: publisher.1.name: 'orchestrator' is the name of a canister"),
    (
        '"prices"',
        '"broadcaster 7"',
        "5: publisher.1.name: 'broadcaster 7' is the name of a canister",
    ),
    ("subnet = 0", "subnet = 2", "6: publisher.1.subnet: there is no subnet 2"),
    ("subnet = 0", 'subnet = "0"', "6: publisher.1.subnet: should be"),
    ('"org.example.price"', '"org.*"', "7: publisher.1.namespace: 'org.\\*' is no namespace"),
    ("from = 60", "from = 200", "8: publisher.1.from: the last round is 80"),
    ("from = 60", "first = 60", "8: publisher.1.first: no such field"),
    ("from = 60", "from = 0", "8: publisher.1.from: should be a whole number from 1"),
    ("until = 64", "until = 50", "9: publisher.1.until: it begins in round 60"),
    ("until = 64", "every = 0", "9: publisher.1.every: should be"),
    ("until = 64", 'replay = "yes"', "9: publisher.1.replay: should be true or false"),
    (
        '"org.**"',
        '"org.***"',
        "13: subscriber.1.pattern: 'org.\\*\\*\\*' is no namespace or pattern",
    ),
    ("pattern =", "patern =", "13: subscriber.1.patern: no such field; did you mean pattern"),
    (
        '"org.**"',
        '"org.**"\nfilter = "a =="',
        "14: subscriber.1.filter: the filter has the end at 4",
    ),
    ('"org.**"', '"org.**"\nskip = [0, 0]', "14: subscriber.1.skip: a skip is"),
    ('"org.**"', '"org.**"\nskip = []', "14: subscriber.1.skip: a skip is"),
    (
        '"org.**"',
        '"org.**"' + FAULT.format(5, "burn", "reader"),
        '16: fault.1.what: should be "kill"',
    ),
    (
        '"org.**"',
        '"org.**"' + FAULT.format(81, "kill", "reader"),
        "15: fault.1.round: the last round is 80",
    ),
    (
        '"org.**"',
        '"org.**"' + FAULT.format(5, "kill", "nobody"),
        "17: fault.1.who: unknown canister 'nobody'",
    ),
    (
        '"org.**"',
        '"org.**"' + FAULT.format(5, "start", "reader"),
        "17: fault.1.who: reader is not stopped",
    ),
    (
        '"org.**"',
        '"org.**"' + FAULT.format(5, "retire", "reader"),
        "17: fault.1.who: reader cannot be retired",
    ),
    (
        '"org.**"',
        '"org.**"' + FAULT.format(5, "upgrade", "orchestrator"),
        "17: fault.1.who: the orchestrator",
    ),
    (
        '"org.**"',
        '"org.**"' + FAULT.format(9, "stop", "reader") + FAULT.format(5, "kill", "reader"),
        "17: fault.1.who: reader was killed before round 9",
    ),
    ('"org.**"', '"org.**"\n[fault]\nround = 5', "14: fault: should be a list of tables"),
    (
        '"org.**"',
        '"org.**"\n[[publisher]]\nname = "b"\nsubnet = 1\nnamespace = "org.example.price"',
        "17: publisher.2.namespace: only 'prices'",
    ),
]


@pytest.mark.parametrize(
    ("right", "wrong", "place"), MISTAKES, ids=[each[1][:40] for each in MISTAKES]
)
def test_a_line_about_a_mistake_in_a_scenario_names_the_place(
    tmp_path: Path, right: str, wrong: str, place: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(SMALL.strip().replace(right, wrong, 1))
    with pytest.raises(SettingsError, match=f"bad.toml:.*{place}") as error:
        load(str(path))
    assert all("bad.toml:" in line for line in str(error.value).splitlines())


def played(tmp_path: Path, text: str) -> tuple[int, str]:
    path = tmp_path / "played.toml"
    path.write_text(text)
    result = CliRunner().invoke(command, ["run", str(path)])
    return result.exit_code, result.output


def test_what_nobody_took_or_handled_is_said(tmp_path: Path) -> None:
    code, shown = played(tmp_path, SMALL.replace("[0, 1]", "[]"))
    assert code == 1
    assert "published 0 of 5 events" in shown
    assert "handled 0 of 5 events" in shown
    code, shown = played(tmp_path, SMALL + FAULT.format(5, "kill", "orchestrator"))
    assert code == 1
    assert "published 0 of 5 events" in shown
    assert "orchestrator was killed" in shown
    code, shown = played(tmp_path, SMALL + FAULT.format(70, "stop", "reader"))
    assert code == 0
    assert "reader       is stopped" in shown


def test_what_is_no_module_is_refused_by_its_name(tmp_path: Path) -> None:
    place = tmp_path / "no.wasm"
    with pytest.raises(Icrc72Error, match=r"no\.wasm: cannot be read"):
        read_module(place)
    place.write_bytes(b"hi\n")
    with pytest.raises(Icrc72Error, match=r"no\.wasm: not a WebAssembly module"):
        read_module(place)
    place.write_bytes(b"\0asm\1\0\0\0")
    assert read_module(place) == b"\0asm\1\0\0\0"
