"""Scenario files: what is played, what is expected, and errors that name file, line and field."""

from pathlib import Path

import pytest
from support.plumbing.snapshots import Snapshot

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


MISTAKES = (
    "title = 5 5",
    'title = "x"\n[networks.a]\n',
    _with('at = 1\ndo = "dance"'),
    _with('at = 1\ndo = "publsh"'),
    _with("at = 1\nevent = 1"),
    _with('at = 1\ndo = "faults"\nfaults = { lots = 1 }'),
    _with('at = 1\ndo = "faults"\nfault = {}'),
    _with('at = 1\ndo = "publish"'),
    _with('at = 1\ndo = "publish"\nevent = "one"'),
    _with('at = 1\ndo = "down"\nnetwork = "c"'),
    _with('at = 1\ndo = "redrive"\nmore = 1'),
    _with('at = 2\ndo = "redrive"', 'at = 1\ndo = "redrive"'),
    _with('at = 1\ndo = "kill"\nreplica = 1'),
    _with('at = 1\ndo = "expect"'),
    _with('at = 1\ndo = "expect"\non = { a = 1 }'),
    _with('at = 1\ndo = "expect"\nevent = 1\non = { c = 1 }'),
    _with('at = 1\ndo = "expect"\nevent = 1\nacknowledged = { t = 1 }'),
    HEAD.replace("[networks.a]", "[networks.A]") + '[[steps]]\nat = 1\ndo = "redrive"',
    HEAD.replace("[networks.b]", "[networks.b]\nlegacy = true")
    + '[[steps]]\nat = 1\ndo = "rewind"\nnetwork = "b"\nevents = 1',
    HEAD + "[[steps]]\nat = nan\ndo = 'redrive'",
    HEAD + "[[steps]]\nat = -1\ndo = 'redrive'",
)
"""Scenarios that cannot be played."""


def test_an_error_names_file_line_and_field(snapshot: Snapshot) -> None:
    texts = []
    for text in MISTAKES:
        with pytest.raises(SettingsError) as refused:
            parse_scenario(text, "x.toml")
        assert str(refused.value).startswith("x.toml:")
        own = "\n".join(line for line in text.splitlines() if line not in HEAD.splitlines())
        texts.append(f"{own}\n  {refused.value}\n")
    snapshot("scenario-mistakes", "\n".join(texts))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing, binary = tmp_path / "missing.toml", tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    for path in (missing, binary, tmp_path):
        with pytest.raises(SettingsError) as caught:
            read_scenario(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
