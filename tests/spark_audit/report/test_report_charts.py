"""What the charts are told to draw."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.spark_audit.report import charts
from pubsub_emulator.spark_audit.report.axes import NARROW, WIDE, Spec, powers_of_two, steps
from pubsub_emulator.spark_audit.report.breakdown import ByteShare
from pubsub_emulator.spark_audit.report.culprits import Collator
from pubsub_emulator.spark_audit.report.savings import Savings

WIDTHS = pytest.mark.parametrize("width", [WIDE, NARROW])


def _ordered(spec: Spec) -> list[str]:
    """The rows of a bar chart, from the top."""
    order: list[str] = spec["encoding"]["y"]["sort"]
    return order


@WIDTHS
def test_collators_whose_names_look_alike_stay_apart(width: int) -> None:
    keys = [bytes(4) + bytes([at]) * 28 for at in range(3)]
    places = [(network, 2000) for network in ("a" * 40 + "1", "a" * 40 + "2")]
    found = [Collator(place, key, findings=Counter({"BadSeal": 2})) for place in places for key in keys]
    spec = charts.collators(found, width, {})
    assert len(set(_ordered(spec))) == 6
    assert {row["collator"] for row in spec["datasets"]["rows"]} == set(_ordered(spec))
    assert all(row["findings"] == 2 for row in spec["datasets"]["rows"])


@WIDTHS
def test_chains_of_networks_with_long_names_stay_apart_and_keep_their_number(width: int) -> None:
    rows = [Savings(("network-" * 9 + str(at), 2000 + at % 2), 1, 10, 4, 3, 2, 1, 5, -3) for at in range(6)]
    spec = charts.savings(rows, width, {})
    assert len(set(_ordered(spec))) == 6
    assert all(("2000", "2001")[at % 2] in name for at, name in enumerate(_ordered(spec)))
    shown = spec["datasets"]["rows"]
    assert [sum(row["bytes"] for row in shown if row["chain"] == name) for name in _ordered(spec)] == [10] * 6


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=30))
def test_an_icicle_has_no_gap_and_no_overlap(sizes: list[int]) -> None:
    ranked = sorted(sizes, reverse=True)
    parts = tuple(ByteShare(f"publisher {at}", size, (ByteShare("values", size),)) for at, size in enumerate(ranked))
    rows = charts.where_bytes_go(ByteShare("dev 1", sum(ranked), parts), WIDE)["datasets"]["rows"]
    for level in (0, 1):
        slabs = [row for row in rows if row["top"] == level]
        assert [row["from"] for row in slabs] == [0, *(row["to"] for row in slabs)][:-1]
        assert slabs[-1]["to"] == sum(ranked)
    assert sum(row["to"] - row["from"] for row in rows if row["top"] == 2) == sum(ranked)


@given(st.integers(-(1 << 50), 0), st.integers(0, 1 << 50), st.integers(2, 8))
def test_ticks_are_even_hold_nought_and_are_few(least: int, most: int, count: int) -> None:
    ticks = steps(least, most, count)
    assert 0 in ticks
    assert len(ticks) <= count + 1
    assert len({after - before for before, after in pairwise(ticks)}) <= 1
    assert least <= ticks[0] <= ticks[-1] <= most


@given(st.integers(1, 1 << 40), st.integers(0, 20))
def test_sizes_on_a_logarithmic_axis_are_powers_of_two_within_it(low: int, doublings: int) -> None:
    high = low << doublings
    powers = powers_of_two(low, high)
    assert len(powers) <= 7
    assert all(low <= power <= high and power.bit_count() == 1 for power in powers)
    assert powers or doublings == 0
