"""What is told from measures: exact sizes (AU-3), and habits, runs of blocks held against
thresholds (AU-2).
"""

import json
import tracemalloc
import zlib
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.spark_audit.forged_report import block

from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import canonical_json
from pubsub_emulator.spark_audit.judge import units
from pubsub_emulator.spark_audit.judge.aggregate import (
    BLOCK_FIGURES,
    MOST_VALUES,
    PUBLISHER_FIGURES,
    Sizes,
    ValueCounts,
    nearest_rank,
    rounded,
)
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.patterns import HabitMemory

Row = dict[str, Any]
_PUBLISHER_COLUMNS = {column.name: column for column in schema.PUBLISHER_MEASURES.columns}


def _publisher(at: int, publisher: int, size: int) -> Row:
    row: Row = {name: None if column.nullable else 0 for name, column in _PUBLISHER_COLUMNS.items()}
    row |= {
        name: [] for name, column in _PUBLISHER_COLUMNS.items() if pa.types.is_list(column.type)
    }
    row |= {
        "network": "dev",
        "chain": 1,
        "position": at,
        "publisher": publisher,
        "value_bytes": size,
    }
    return row | {"unchanged": False, "resolved": True}


def _sizes(blocks: list[Row], publishers: list[Row]) -> dict[tuple[str, str, str], Row]:
    tables = schema.BLOCK_MEASURES.arrow(blocks), schema.PUBLISHER_MEASURES.arrow(publishers)
    sizes = Sizes()
    sizes.add(*tables)
    rows = list(sizes.rows("dev", 1))
    schema.SUMMARIES.arrow(rows)
    return {(row["scope"], row["subject"], row["measure"]): row for row in rows}


def _obvious(blocks: list[Row], publishers: list[Row]) -> dict[tuple[str, str, str], list[int]]:
    """Every value under its name, ascending."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for row in blocks:
        if row["status"] == "rejected" or row["verdict"] is not None:
            continue
        share = None if row["used"] is None else row["used"] * 1_000_000 // row["budget"]
        for name, value in [(name, row[name]) for name in BLOCK_FIGURES] + [("budget_ppm", share)]:
            if value is not None:
                found.setdefault(("chain", "", name), []).append(value)
                if row["collator"] is not None:
                    found.setdefault(("collator", row["collator"].hex(), name), []).append(value)
    for row in publishers:
        for name in PUBLISHER_FIGURES:
            if row[name] is not None:
                found.setdefault(("publisher", str(row["publisher"]), name), []).append(row[name])
    return {name: sorted(values) for name, values in found.items()}


_figures = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["included", "included", "imported", "rejected"]),
        "verdict": st.sampled_from([None, None, None, "BadSeal"]),
        "collator": st.sampled_from([None, b"\xab" * 32, b"\x01" * 32]),
        "proof_bytes": st.integers(0, 50),
        "cache_net": st.none() | st.integers(-(2**40), 2**40),
        "used": st.none() | st.integers(0, 10**7),
        "budget": st.integers(1, 10**7),
    }
)


@given(
    st.lists(_figures, max_size=40),
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=20),
)
def test_sizes_are_what_counting_by_hand_gives(
    figures: list[Row], served: list[tuple[int, int]]
) -> None:
    """Empty figures, negative ones, ties, one value and many."""
    blocks = [block(at, **values) for at, values in enumerate(figures)]
    publishers = [_publisher(at, publisher, size) for at, (publisher, size) in enumerate(served)]
    sizes, expected = _sizes(blocks, publishers), _obvious(blocks, publishers)
    assert sizes.keys() == expected.keys()
    for name, values in expected.items():
        row = sizes[name]
        count = len(values)
        assert (row["count"], row["total"], row["min"], row["max"]) == (
            count,
            sum(values),
            values[0],
            values[-1],
        )
        for percent in (50, 90, 99):
            assert row[f"p{percent}"] == values[nearest_rank(count, percent) - 1]


@given(st.integers(1, 500), st.integers(1, 100))
def test_the_nearest_rank_is_the_least_that_covers_the_share(count: int, percent: int) -> None:
    rank = nearest_rank(count, percent)
    assert 1 <= rank <= count
    assert rank * 100 >= count * percent
    assert rank == 1 or (rank - 1) * 100 < count * percent


def test_a_chain_is_known_by_its_percentiles() -> None:
    blocks = [block(at, proof_bytes=10 * at) for at in range(101)]
    row = _sizes(blocks, [])["chain", "", "proof_bytes"]
    assert [row[name] for name in ("min", "p50", "p90", "p99", "max")] == [
        0,
        500,
        900,
        990,
        1000,
    ]


@pytest.mark.parametrize("count", [MOST_VALUES, MOST_VALUES + 1])
def test_percentiles_are_exact_up_to_the_greatest_number_of_values(count: int) -> None:
    """With more values they are rounded down. The other figures always are exact."""
    values = [1_000_001 + 2 * number for number in range(count)]
    figure = ValueCounts()
    for part in (values[:100], values[100:], values[:1]):
        figure.add(part)
    row = figure.row()
    total = sum(values) + values[0]
    assert (row["count"], row["total"]) == (count + 1, total)
    assert (row["min"], row["max"]) == (values[0], values[-1])
    median = sorted([*values, values[0]])[nearest_rank(count + 1, 50) - 1]
    assert figure.coarse is (count > MOST_VALUES)
    assert row["p50"] == (max(rounded(median), values[0]) if figure.coarse else median)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (0, 0),
        (255, 255),
        (256, 256),
        (257, 256),
        (511, 510),
        (1023, 1020),
        (-255, -255),
        (-257, -258),
        ((1 << 40) + (1 << 33) - 1, 1 << 40),
    ],
)
def test_a_rounded_value_has_eight_digits_and_is_not_greater(value: int, result: int) -> None:
    assert rounded(value) == result


Publishers = dict[int, list[dict[str, Any]]]
LIMITS = Thresholds(relay_lag=5, stalled_blocks=3, at_budget_blocks=3, starved_blocks=2)


def _block(at: int, **values: Any) -> dict[str, Any]:
    figures = {"slot": at, "collator": b"\x01" * 32, "sealed": True, "budget": 1000, "used": 100}
    return block(
        at, block=bytes([at]) * 32, **{**figures, "stopped": False, "expired_valid": 0, **values}
    )


def _found(
    rows: list[dict[str, Any]], publishers: Publishers | None = None
) -> list[dict[str, Any]]:
    watch = HabitMemory(LIMITS)
    settled = list(
        watch.add(rows, lambda _s, at: (publishers or {}).get(at, []), lambda _s, _p: b"")
    )
    return [*settled, *watch.open_runs()]


def _codes(rows: list[dict[str, Any]], publishers: Publishers | None = None) -> list[str]:
    return [row["code"] for row in _found(rows, publishers)]


def _told(row: dict[str, Any]) -> dict[str, Any]:
    reader = Reader(row["evidence"])
    reader.take(1)
    reader.bytes_()
    figures: dict[str, Any] = json.loads(reader.bytes_())
    return figures


def test_ordinary_blocks_have_no_habits() -> None:
    assert _codes([_block(at) for at in range(20)]) == []


def test_a_lagging_run_is_one_finding_with_its_length_and_worst() -> None:
    rows = [_block(at, relay_lag=lag) for at, lag in enumerate([1, 5, 9, 6, 1, 1, 7])]
    found = _found(rows)
    assert [row["code"] for row in found] == ["RelayParentLag", "RelayParentLag"]
    assert [(_told(row)["blocks"], _told(row)["most"]) for row in found] == [(3, 9), (1, 7)]


def test_standing_on_one_relay_parent_is_stalling_from_the_threshold_on() -> None:
    assert _codes([_block(at, relay_parent=min(at, 4)) for at in range(7)]) == []
    assert _codes([_block(at, relay_parent=min(at, 4)) for at in range(8)]) == ["StallingCollator"]


def test_a_collator_that_always_lands_at_the_budget_is_named() -> None:
    rows = [_block(at, used=960, collator=bytes([at % 2]) * 32) for at in range(6)]
    found = _found(rows)
    assert [(row["code"], row["collator"]) for row in found] == [
        ("AlwaysAtBudget", bytes(32)),
        ("AlwaysAtBudget", b"\x01" * 32),
    ]
    assert _codes([_block(at, used=960 if at % 2 else 100) for at in range(8)]) == []


def test_a_cursor_that_is_not_where_it_was_left_has_jumped() -> None:
    rows = [
        _block(0, cursor_after=b"here"),
        _block(1, cursor_before=b"here"),
        _block(2, cursor_before=b"there"),
    ]
    [found] = _found(rows)
    assert (found["code"], found["position"]) == ("CursorJump", 2)
    assert found["detail"] == "the cursor is not where the block before left it"
    assert _told(found) == {"after": None, "before": b"there".hex()}


def test_entries_expired_when_judged_are_reported_by_block() -> None:
    [found] = _found([_block(0, expired_valid=2), _block(1)])
    assert found["code"] == "ExpiredDeliveredAsValid"
    assert found["detail"].startswith("2 entries had expired when the block was judged, 1 after")
    assert _told(found) == {"deliveries": 2, "relay_lag": 1}


def test_a_publisher_not_served_while_the_budget_runs_out_starves() -> None:
    served = {"publisher": 1, "resolved": True, "unchanged": False}
    waiting = {"publisher": 2, "resolved": False, "unchanged": False}
    rows = [_block(at, stopped=True) for at in range(3)]
    assert _codes(rows, {at: [served, waiting] for at in range(3)})[:1] == ["AlwaysAtBudget"]
    assert "Starvation" in _codes(rows[:2], {0: [served, waiting], 1: [served]})
    assert _codes([_block(at) for at in range(4)], {at: [waiting] for at in range(4)}) == []


def test_rejected_and_unjudged_blocks_make_no_habits() -> None:
    rows = [_block(at, relay_lag=9, status="rejected", verdict="BadSeal") for at in range(3)]
    rows += [_block(at, relay_lag=9, judged=False) for at in range(3, 6)]
    assert _codes(rows) == []


def test_a_figure_takes_few_bytes_however_many_blocks_there_are() -> None:
    """A network has thousands of figures, which are in memory together."""
    figure = ValueCounts()
    for at in range(40):
        figure.add([at * 1_000 + 7 * number for number in range(100)])
        size = figure.values.itemsize * len(figure.values)
        assert size == figure.counts.itemsize * len(figure.counts) <= 16 * MOST_VALUES
    assert figure.row()["count"] == 4_000
    assert ValueCounts.from_json(json.loads(json.dumps(figure.to_json()))) == figure


def test_the_states_of_a_fold_are_written_and_read_chain_by_chain() -> None:
    """Of the text of all states, no more than a chain's is in memory."""
    rng = Random(5)
    rows = [
        block(at, **{name: rng.randrange(1 << 40) for name in BLOCK_FIGURES}) for at in range(400)
    ]
    state = units._ChainState(HabitMemory(Thresholds()), Sizes())
    state.sizes.add(schema.BLOCK_MEASURES.arrow(rows), schema.PUBLISHER_MEASURES.arrow([]))
    line = len(canonical_json([0, state.memory.to_json(), state.sizes.to_json(), ""]))
    chains = 40
    tracemalloc.start()
    packed = units._pack(dict.fromkeys(range(chains), state))
    found = [len(each) for each in units._lines(packed)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == chains
    assert min(found) >= line - 2
    assert peak - 3 * len(packed) < 10 * line < chains * line / 3


def test_a_state_that_is_cut_off_is_an_error() -> None:
    with pytest.raises(zlib.error, match="cut off"):
        list(units._lines(zlib.compress(b"a\nb\n" * 100)[:-6]))
    assert list(units._lines(zlib.compress(b"a\nb\n"))) == [b"a", b"b"]
