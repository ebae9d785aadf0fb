"""The target that plays stories of canisters makes a surprising one smaller."""

import json

import pytest

from interchain_events.icrc72 import campaign
from interchain_events.icrc72.stories import Plan
from pubsub_emulator.fuzz.targets import ALL


def test_a_story_that_surprises_is_shrunk_and_a_cheat_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def played(plan: Plan) -> campaign.Outcome:
        return campaign.Outcome(plan, 1, "lost" if plan.upgrades else "")

    monkeypatch.setattr(campaign, "play_plan", played)
    (target,) = (each for each in ALL if each.name == "icrc")
    case = json.dumps(
        {**campaign.written(Plan(b"x", upgrades=2, deaths=1, churn=True)), "cheat": -1}
    ).encode()
    assert target.shrink is not None
    smallest = json.loads(target.shrink(case))
    assert (smallest["deaths"], smallest["upgrades"], smallest["churn"], smallest["cheat"]) == (
        0,
        2,
        False,
        -1,
    )
    cheat = json.dumps({"cheat": 3}).encode()
    assert target.shrink(cheat) == cheat
