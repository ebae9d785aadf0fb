"""Stories of a whole node under a clock that jumps (PR-3, PR-5, PR-52 to PR-62).

`python -m support.story_campaign prism` plays very many; docs/prism.md has the figures.
"""

from support.story_campaign import prism_player

STORIES = 40


def test_pr_52_and_pr_60_clients_and_statuses_are_right_whatever_happens() -> None:
    with prism_player() as play:
        for seed in range(STORIES):
            try:
                play(seed)
            except Exception as error:
                raise AssertionError(f"story {seed}: {error!r}") from error
