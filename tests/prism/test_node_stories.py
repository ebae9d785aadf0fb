"""Stories of a whole node under a clock that jumps (PR-3, PR-5, PR-52 to PR-62).

`python -m support.story_campaign prism` plays very many; docs/measured.md has the figures.
"""

from collections.abc import Iterable

from support.story_campaign import Player, db_sync_player, prism_player

STORIES = 40
SURPRISED = (2_620, 5_801, 11_649, 33_246)
"""A rewind left a processed block less deep than it was, and what was in it was said to be in no processed block.

In the others a rewind took back a block that the chain still has, and the node did not look into it again.
"""

OVER_DB_SYNC = (*range(12), 25, 49, 77, 115, 160)
"""The last five had an operation PENDING that came back in a block of db-sync that settled before the node looked."""


def test_pr_52_and_pr_60_clients_and_statuses_are_right_whatever_happens() -> None:
    _play(prism_player(), range(STORIES))


def _play(player: Player, seeds: Iterable[int]) -> None:
    with player as play:
        for seed in seeds:
            try:
                play(seed)
            except Exception as error:
                raise AssertionError(f"story {seed}: {error!r}") from error


def test_pr_5_and_pr_60_stories_that_once_ended_with_a_surprise_do_not_any_more() -> None:
    _play(prism_player(), SURPRISED)


def test_pr_52_and_pr_60_they_are_right_over_a_db_sync_that_is_rolled_back(postgres_url: str) -> None:
    _play(db_sync_player(postgres_url), OVER_DB_SYNC)
