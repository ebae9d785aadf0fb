"""Invariants under drawn schedules, refusals, crashes and upgrades: I1, I2, I9, R2, R7, IC-51."""

import pytest

from pubsub_emulator.icrc72 import campaign
from pubsub_emulator.icrc72.ic import stable
from pubsub_emulator.icrc72.stories import Plan, Surprise, begin, calm, check, finish


@pytest.mark.parametrize(
    "plan",
    [
        Plan(b"campaign 1696", delay=1, refuse=30, load=20),  # a relay became wider while it could not send
        Plan(b"campaign 2904", delay=1, refuse=30, load=20, churn=True, upgrades=2),  # moved before it knew its exit
        Plan(b"campaign 3753", delay=3, refuse=30, load=50, churn=True),  # moved before it was notified of anything
        Plan(b"campaign 8043", delay=3, refuse=30, load=20, pauses=1),  # its entry was taken for dead at the end
        Plan(b"november 499", delay=0, refuse=30, load=50, pauses=1),  # a former exit came back behind a new one
    ],
)
def test_i1_i2_subscribers_that_begin_in_a_storm_miss_nothing(plan: Plan) -> None:
    assert campaign.play_plan(plan).surprise == ""


def test_a_role_canister_goes_on_from_its_own_state_bytes() -> None:
    story = begin(Plan(b"bytes", rounds=40))
    finish(story)
    for each in story.network.running():
        kept = story.network.canister(each).pre_upgrade()
        assert stable.encode(stable.decode(kept)) == kept


def test_a_story_can_fail() -> None:
    story = begin(Plan(b"fail", rounds=10))
    for _ in range(60):
        story.network.step()
    calm(story)
    check(story)
    who = next(iter(story.steady))
    story.system.app(who).data.pop(3)
    with pytest.raises(Surprise, match="missing"):
        check(story)
