"""Sizes are exact: what sorting and counting by hand gives (AU-3)."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.forged_report import block

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.judge.aggregate import BLOCK_FIGURES, PUBLISHER_FIGURES, Sizes, nearest_rank

Row = dict[str, Any]
_PUBLISHER_COLUMNS = {column.name: column for column in schema.PUBLISHER_MEASURES.columns}


def _publisher(at: int, publisher: int, size: int) -> Row:
    row: Row = {name: None if column.nullable else 0 for name, column in _PUBLISHER_COLUMNS.items()}
    row |= {name: [] for name, column in _PUBLISHER_COLUMNS.items() if pa.types.is_list(column.type)}
    row |= {"network": "dev", "chain": 1, "position": at, "publisher": publisher, "value_bytes": size}
    return row | {"unchanged": False, "complete": True}


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


@given(st.lists(_figures, max_size=40), st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=20))
def test_sizes_are_what_counting_by_hand_gives(figures: list[Row], served: list[tuple[int, int]]) -> None:
    """Empty figures, negative ones, ties, one value and many."""
    blocks = [block(at, **values) for at, values in enumerate(figures)]
    publishers = [_publisher(at, publisher, size) for at, (publisher, size) in enumerate(served)]
    sizes, expected = _sizes(blocks, publishers), _obvious(blocks, publishers)
    assert sizes.keys() == expected.keys()
    for name, values in expected.items():
        row = sizes[name]
        count = len(values)
        assert (row["count"], row["total"], row["least"], row["most"]) == (count, sum(values), values[0], values[-1])
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
    assert [row[name] for name in ("least", "p50", "p90", "p99", "most")] == [0, 500, 900, 990, 1000]
