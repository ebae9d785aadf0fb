"""Stories of a whole node under a clock that jumps (PR-3, PR-5, PR-52 to PR-62).

`python -m support.story_campaign prism` plays very many; docs/measured.md has the figures.
"""

import pytest
from support.story_campaign import prism_player

STORIES = 40
SURPRISED = (2_620, 5_801, 11_649, 33_246)
"""A rewind left a processed block less deep than it was, and what was in it was said to be in no processed block.

In the others a rewind took back a block that the chain still has, and the node did not look into it again.
"""


def test_pr_52_and_pr_60_clients_and_statuses_are_right_whatever_happens() -> None:
    with prism_player() as play:
        for seed in range(STORIES):
            try:
                play(seed)
            except Exception as error:
                raise AssertionError(f"story {seed}: {error!r}") from error


@pytest.mark.parametrize("seed", SURPRISED)
def test_pr_5_and_pr_60_stories_that_once_ended_with_a_surprise_do_not_any_more(seed: int) -> None:
    with prism_player() as play:
        play(seed)
