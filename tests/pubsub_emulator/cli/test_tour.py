"""`pubsub tour`: acts, each of which says how to go on, and one digest."""

import json
import shlex

import pytest
from click.testing import CliRunner

from pubsub_emulator.cli.commands.tour import run as tour
from pubsub_emulator.cli.main import pubsub


def test_the_tour_comes_to_the_same_digest_twice_and_its_commands_exist() -> None:
    first, second = (CliRunner().invoke(pubsub, ["tour", "--json"]) for _ in range(2))
    assert first.exit_code == 0, f"{first.output} {first.exception}"
    assert first.stdout == second.stdout
    document = json.loads(first.stdout)
    assert [len(act["told"]) for act in document["acts"]] == [2] * 5
    for act in document["acts"]:
        for command in act["next"].split(", then "):
            name = shlex.split(command)[1:]
            group = [word for word in name if not word.startswith("-")][
                : 2 if name[0] in {"icrc72", "distributor"} else 1
            ]
            assert CliRunner().invoke(pubsub, [*group, "--help"]).exit_code == 0, command


def test_an_act_that_does_not_come_to_its_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tour, "extensions", lambda: ())
    monkeypatch.setattr(tour.Tour, "build", lambda _self, _until: None)
    done = CliRunner().invoke(pubsub, ["tour"])
    assert isinstance(done.exception, tour.TourFailed)
    assert "nothing was delivered" in str(done.exception)
