"""Stories of a whole node under a clock that jumps (PR-3, PR-5, PR-52 to PR-62, EV-40).

`python -m support.plumbing.story_campaign prism` plays very many; docs/measured.md has the figures.
"""

from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from support.plumbing.story_campaign import Player, db_sync_player, prism_player

from interchain_events.delivery_audit.statuses import audit_statuses
from interchain_events.prism.core.errors import Reason
from interchain_events.prism.core.status import (
    BestBlock,
    Branch,
    OperationPlace,
    OperationState,
    OperationStatus,
)
from interchain_events.prism.status_deliveries import StatusDeliveries

STORIES = 40
SURPRISED = (2_620, 5_801, 11_649, 33_246)
"""A rewind left a processed block less deep than it was, and what was in it was said to be in no
processed block.

In the others a rewind took back a block that the chain still has, and the node did not look into it
again.
"""

OVER_DB_SYNC = (*range(12), 25, 49, 77, 115, 160)
"""The last five had an operation PENDING that came back in a block of db-sync that settled before
the node looked.
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the nodes of these stories wrote down of channel 7."""
    folder = tmp_path_factory.mktemp("recorded")
    _play(prism_player(lambda: StatusDeliveries(folder)), range(STORIES))
    return folder


@pytest.mark.xdist_group("spark")
def test_pr_52_and_pr_60_clients_and_statuses_are_right_whatever_happens(recorded: Path) -> None:
    assert len(pq.read_table(recorded / "status_answers")) > STORIES


@pytest.mark.spark
def test_ev_40_no_honest_node_is_accused_whatever_happens_to_its_chain_and_clients(
    spark: SparkContext, recorded: Path
) -> None:
    audited = audit_statuses(spark, recorded)
    assert audited.findings == []
    assert audited.answers == len(pq.read_table(recorded / "status_answers"))


def _play(player: Player, seeds: Iterable[int]) -> None:
    with player as play:
        for seed in seeds:
            try:
                play(seed)
            except Exception as error:
                raise AssertionError(f"story {seed}: {error!r}") from error


def test_pr_5_and_pr_60_stories_that_once_ended_with_a_surprise_do_not_any_more() -> None:
    _play(prism_player(), SURPRISED)


def test_pr_52_and_pr_60_they_are_right_over_a_db_sync_that_is_rolled_back(
    postgres_url: str,
) -> None:
    _play(db_sync_player(postgres_url), OVER_DB_SYNC)


def test_pr_62_an_operation_that_returns_in_a_processed_block_is_not_pending() -> None:
    """What no story has: the branch alone."""
    name, branch, places = (
        bytes(32),
        Branch(),
        [OperationPlace(1, bytes((each,)) * 32, 0, 0, 0) for each in range(2)],
    )
    here, there = (BestBlock(1, each.hash, {name: each}) for each in places)
    branch.go_to(0, [here], 1, processed=0)
    assert branch.go_to(0, [there], 1, processed=1) == set()
    found = branch.status(name, OperationState(rejected=(places[1], Reason.UNKNOWN_DID)))
    assert found is not None
    assert found.status is OperationStatus.REJECTED
