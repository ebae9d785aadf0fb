"""Stories keep every message, to the byte, and the states at their end. IC-12, I13."""

import json

import pytest
from support.icrc72.golden_stories import FILE, STORIES, digest_of

from interchain_events.icrc72.stories import drawn

GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(STORIES))
def test_ic_12_i13_a_story_keeps_its_trace_and_its_states(number: int) -> None:
    assert digest_of(number) == GOLDEN[str(number)]


def test_the_stories_have_every_kind_of_trouble() -> None:
    plans = [drawn(b"golden %d" % number) for number in range(STORIES)]
    for name in ("delay", "refuse", "churn", "pauses", "downs", "deaths", "upgrades"):
        assert any(getattr(each, name) for each in plans), name
    assert any(each.calm for each in plans)
