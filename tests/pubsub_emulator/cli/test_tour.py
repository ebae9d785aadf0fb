"""`pubsub tour`: acts, each of which says how to go on, and one digest."""

import json
import re
import shlex

import pytest
from click.testing import CliRunner
from support.plumbing.snapshots import Snapshot

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.laboratory import tour


def test_the_tour_comes_to_the_same_digest_twice_and_its_commands_exist(
    snapshot: Snapshot,
) -> None:
    first, second = (CliRunner().invoke(pubsub, ["tour", "--json"]) for _ in range(2))
    assert first.exit_code == 0, f"{first.output} {first.exception}"
    assert first.stdout == second.stdout
    document = json.loads(first.stdout)
    assert [len(act["told"]) for act in document["acts"]] == [2] * 5
    acts = ["\n".join((act["act"], *act["told"], act["next"])) for act in document["acts"]]
    snapshot("tour", "\n\n".join(acts))
    for act in document["acts"]:
        for command in act["next"].split(", then "):
            name = shlex.split(command)[1:]
            group = [word for word in name if not word.startswith("-")][
                : 2 if name[0] in {"icrc72", "distributor"} else 1
            ]
            assert CliRunner().invoke(pubsub, [*group, "--help"]).exit_code == 0, command


def test_figures_name_their_subject_and_parts_add_up() -> None:
    document = json.loads(CliRunner().invoke(pubsub, ["tour", "--json"]).stdout)
    relay_chain, prism, icrc72, replay, distributor = (act["told"] for act in document["acts"])
    delivered, market, wallet = re.findall(r"(\d+) (?:prices|to the)", relay_chain[1])
    assert int(delivered) == int(market) + int(wallet)
    anchored = re.search(r"anchored (\d+) operations", prism[0])
    judged = re.search(r"(\d+) were applied, and (\d+), .* was rejected", prism[1])
    assert anchored is not None
    assert judged is not None
    assert int(anchored[1]) == int(judged[1]) + int(judged[2])
    heard = re.search(r"the (\d+) prices of relay blocks 1 to 17,", icrc72[1])
    missed = re.search(r"relay blocks 18 to 32; their (\d+) prices", replay[0])
    assert heard is not None
    assert missed is not None
    assert f"{heard[1]} + {missed[1]} = {int(heard[1]) + int(missed[1])} prices" in replay[1]
    assert "newest 5 prices on 3 networks: alastria, fabric, hashnet" in distributor[0]
    assert "5 events once, and a subscriber got 5 notifications" in distributor[1]


def test_an_act_that_does_not_come_to_its_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tour, "extensions", lambda: ())
    monkeypatch.setattr(tour.Tour, "build", lambda _self, _until: None)
    done = CliRunner().invoke(pubsub, ["tour"])
    assert isinstance(done.exception, tour.TourFailed)
    assert "nothing was delivered" in str(done.exception)
