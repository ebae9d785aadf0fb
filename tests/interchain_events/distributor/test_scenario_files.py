"""Scenario files: what is played, what is expected, and errors that name file, line and field."""

from pathlib import Path

import pytest

from interchain_events.distributor.simulation.file import parse_scenario, read_scenario
from interchain_events.distributor.simulation.script import play_file
from pubsub_emulator.files.settings import SettingsError

EXAMPLES = Path(__file__).parents[3] / "examples" / "distributor"
HEAD = 'title = "x"\n[networks.a]\n[networks.b]\n[subscriptions.s]\n'


def _with(*steps: str) -> str:
    return HEAD + "".join(f"[[steps]]\n{step}\n" for step in steps)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.toml")))
def test_the_examples_are_as_they_say(name: str) -> None:
    scenario = read_scenario(EXAMPLES / name)
    stage = play_file(scenario)
    assert stage.failures == []
    assert stage.world.digest() == play_file(scenario).world.digest()
    assert stage.world.digest() != play_file(scenario, 1).world.digest()


def test_every_kind_of_step_does_what_it_says() -> None:
    text = _with(
        'at = 1\ndo = "refuse"\nnetwork = "a"',
        'at = 2\ndo = "publish"\nevent = 1\nentity = 1\nstatus = 201',
        'at = 3\ndo = "expect"\nevent = 1\non = { a = 0, b = 1 }\nacknowledged = { s = 1'
        " }\ndead_letters = 1",
        'at = 4\ndo = "accept"\nnetwork = "a"',
        'at = 5\ndo = "redrive"',
        'at = 6\ndo = "expect"\nevent = 1\non = { a = 1 }\ndead_letters = 0',
        'at = 7\ndo = "publish"\nevent = 1\nentity = 2\nstatus = 409',
        'at = 8\ndo = "publish"\nevent = 1\nentity = 1\nstatus = 200',
        'at = 9\ndo = "store-down"',
        'at = 10\ndo = "publish"\nevent = 3\nstatus = 503',
        'at = 11\ndo = "store-up"',
        'at = 12\ndo = "slow"\nnetwork = "a"\nseconds = 5',
        'at = 13\ndo = "publish"\nevent = 4\nentity = 4\nstatus = 201',
        'at = 14\ndo = "expect"\nevent = 4\non = { a = 0, b = 1 }',
        'at = 25\ndo = "slow"\nnetwork = "a"\nseconds = 0',
        'at = 26\ndo = "subscriber"\nsubscription = "s"\nstatus = 500',
        'at = 27\ndo = "stranger"\nnetwork = "b"\nevent = 5\nentity = 5',
        'at = 28\ndo = "kill"',
        'at = 29\ndo = "subscriber"\nsubscription = "s"\nstatus = 200',
        'at = 60\ndo = "expect"\nevent = 5\non = { a = 1, b = 1 }\nacknowledged = { s = 1 }',
        'at = 61\ndo = "lie"\nnetwork = "a"',
        'at = 62\ndo = "publish"\nevent = 6\nentity = 6\nstatus = 201',
        'at = 63\ndo = "honest"\nnetwork = "a"',
        'at = 64\ndo = "expect"\nevent = 6\non = { a = 0, b = 1 }',
        'at = 200\ndo = "expect"\nevent = 6\non = { a = 1, b = 1 }',
        'at = 201\ndo = "faults"\nfaults = { lost = 1000 }',
        'at = 202\ndo = "rewind"\nnetwork = "b"\nevents = 1',
        'at = 203\ndo = "down"\nnetwork = "a"',
        'at = 204\ndo = "publish"\nevent = 7\nentity = 7\nstatus = 201',
        'at = 205\ndo = "mute"\nnetwork = "b"',
    )
    assert play_file(parse_scenario(text, "x.toml")).failures == []


def test_what_is_not_as_expected_is_said_with_its_step() -> None:
    text = _with(
        'at = 1\ndo = "publish"\nevent = 1\nstatus = 202',
        'at = 2.5\ndo = "expect"\nevent = 1\non = { a = 2 }\ncalls = 7',
    )
    assert play_file(parse_scenario(text, "x.toml")).failures == [
        "steps.2, after 2.5 s: event 1 on a: 2, not 1",
        "steps.2, after 2.5 s: calls: 7, not 2",
        "steps.1: status 202, not 201",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = 5 5", "x.toml:1: not TOML: Expected newline"),
        ('title = "x"\n[networks.a]\n', "x.toml: steps: missing: a list of at least one, each"),
        (
            _with('at = 1\ndo = "dance"'),
            "x.toml:7: steps.1.do: 'dance' is not known; known: ",
        ),
        (
            _with('at = 1\ndo = "publsh"'),
            "x.toml:7: steps.1.do: 'publsh' is not known; did you mean publish",
        ),
        (_with("at = 1\nevent = 1"), "x.toml:5: steps.1.do: missing; known: publish, stranger"),
        (
            _with('at = 1\ndo = "faults"\nfaults = { lots = 1 }'),
            "x.toml:8: steps.1.faults.lots: no such field; ",
        ),
        (
            _with('at = 1\ndo = "faults"\nfault = {}'),
            "x.toml:5: steps.1.faults: missing: a table { lost, ",
        ),
        (
            _with('at = 1\ndo = "publish"'),
            "x.toml:5: steps.1.event: missing: a whole number from 1 to 10,000",
        ),
        (
            _with('at = 1\ndo = "publish"\nevent = "one"'),
            "x.toml:8: steps.1.event: should be a whole number from",
        ),
        (
            _with('at = 1\ndo = "down"\nnetwork = "c"'),
            "x.toml:8: steps.1.network: unknown network 'c'",
        ),
        (
            _with('at = 1\ndo = "redrive"\nmore = 1'),
            "x.toml:8: steps.1.more: no such field; known: at, do",
        ),
        (
            _with('at = 2\ndo = "redrive"', 'at = 1\ndo = "redrive"'),
            "x.toml:9: steps.2.at: 1 is before the step",
        ),
        (
            _with('at = 1\ndo = "kill"\nreplica = 1'),
            "x.toml:8: steps.1.replica: the last replica is 0, counted from 0",
        ),
        (_with('at = 1\ndo = "expect"'), "x.toml:5: steps.1: expects nothing"),
        (
            _with('at = 1\ndo = "expect"\non = { a = 1 }'),
            "x.toml:5: steps.1: on and acknowledged need an event",
        ),
        (
            _with('at = 1\ndo = "expect"\nevent = 1\non = { c = 1 }'),
            "x.toml:9: steps.1.on: unknown network 'c'",
        ),
        (
            _with('at = 1\ndo = "expect"\nevent = 1\nacknowledged = { t = 1 }'),
            "x.toml:9: steps.1.acknowledged: unknown subscription 't'; known: s",
        ),
        (
            HEAD.replace("[networks.a]", "[networks.A]") + '[[steps]]\nat = 1\ndo = "redrive"',
            "x.toml:2: networks.A",
        ),
        (
            HEAD.replace("[networks.b]", "[networks.b]\nlegacy = true")
            + '[[steps]]\nat = 1\ndo = "rewind"\nnetwork = "b"\nevents = 1',
            "x.toml:9: steps.1.network: a legacy network may hide that its log was cut",
        ),
        (HEAD + "[[steps]]\nat = nan\ndo = 'redrive'", "x.toml:6: steps.1"),
        (
            HEAD + "[[steps]]\nat = -1\ndo = 'redrive'",
            "x.toml:6: steps.1.at: should be a number from 0 to 2,592,000",
        ),
    ],
)
def test_an_error_names_file_line_and_field(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_scenario(text, "x.toml")
    assert str(caught.value).startswith(message)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing, binary = tmp_path / "missing.toml", tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    for path in (missing, binary, tmp_path):
        with pytest.raises(SettingsError) as caught:
            read_scenario(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
