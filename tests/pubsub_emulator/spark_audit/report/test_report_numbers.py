"""What the report draws is what the tables hold: added up here row by row, in plain Python."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.spark_audit.audits import KEYS, SUBSCRIBER, small_network
from support.spark_audit.forged_report import Reported, block, chain, forge

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.parachain import Pace
from pubsub_emulator.emulator.observers.metrics import Metrics
from pubsub_emulator.pages.words import percent, size
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge.aggregate import nearest_rank
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.report import charts
from pubsub_emulator.spark_audit.report.axes import LETTER, NARROW, WIDE, Spec, powers_of_two, steps
from pubsub_emulator.spark_audit.report.breakdown import MOST_PARTS, ByteShare, where_bytes_go
from pubsub_emulator.spark_audit.report.culprits import CollatorFindings, culprits, unread
from pubsub_emulator.spark_audit.report.delays import MOST_BARS, delays
from pubsub_emulator.spark_audit.report.savings import Savings, savings
from pubsub_emulator.spark_audit.report.series import MOST_BINS, bin_width, bytes_over_time

pytestmark = pytest.mark.xdist_group("browser")  # where the audited history is made
CHAINS = [("dev", number) for number in (1000, 2000, 2001, 2002, 2100)]


def _blocks(results: Results, number: int) -> list[Row]:
    return [row for row in results.rows(schema.BLOCK_MEASURES) if row["chain"] == number]


def _valid(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["status"] != "rejected" and row["verdict"] is None]


@pytest.mark.parametrize("place", CHAINS)
def test_bins_hold_every_candidate_once(reported: Reported, place: tuple[str, int]) -> None:
    rows = _blocks(reported.results, place[1])
    series = bytes_over_time(reported.results, place)
    good = _valid(rows)
    assert sum(each.blocks for each in series.bins) == len(good)
    assert sum(each.proof_bytes for each in series.bins) == sum(row["proof_bytes"] for row in good)
    assert sum(each.faulty for each in series.bins) == sum(
        row["verdict"] is not None for row in rows
    )
    for each in series.bins:
        mine = [
            row for row in good if each.first <= row["relay_parent"] + row["relay_lag"] <= each.last
        ]
        assert each.largest == max(row["proof_bytes"] for row in mine)
        assert each.used == max(row["used"] for row in mine)
        assert each.budget == min(row["budget"] for row in mine)
        for name in ("cache_net", "ref_time", "proof_size"):
            assert getattr(each, name) == sum(row[name] for row in mine)


@given(st.integers(1, 10**9), st.integers(1, 200))
def test_a_bin_is_no_wider_than_it_must_be(span: int, most: int) -> None:
    width = bin_width(span, most)
    assert -(-span // width) <= most
    smaller = [
        step * 10**power for power in range(10) for step in (1, 2, 5) if step * 10**power < width
    ]
    assert all(-(-span // each) > most for each in smaller)


def test_a_long_history_is_drawn_in_few_bins_and_loses_nothing(tmp_path: Path) -> None:
    rows = [
        block(at, proof_bytes=at, verdict="BadSeal" if at % 7 == 0 else None)
        for at in range(1, 1000)
    ]
    out = forge(tmp_path, {schema.CHAINS: [chain()], schema.BLOCK_MEASURES: rows})
    series = bytes_over_time(Results.open(out), ("dev", 1))
    assert series.width == 20
    assert len(series.bins) == 50 <= MOST_BINS
    assert sum(each.proof_bytes for each in series.bins) == sum(
        at for at in range(1, 1000) if at % 7
    )
    assert sum(each.faulty for each in series.bins) == 999 // 7


@pytest.mark.parametrize("place", CHAINS)
def test_the_parts_weigh_what_the_whole_weighs(reported: Reported, place: tuple[str, int]) -> None:
    tree = where_bytes_go(reported.results, place, {})
    total = [
        row["total"]
        for row in reported.results.rows(schema.SUMMARIES)
        if (row["chain"], row["scope"], row["measure"]) == (place[1], "chain", "proof_bytes")
    ]
    assert [tree.bytes] == total
    assert sum(part.bytes for part in tree.parts) == tree.bytes
    for part in tree.parts:
        assert not part.parts or sum(small.bytes for small in part.parts) == part.bytes


def test_a_publishers_parts_are_its_columns(reported: Reported) -> None:
    rows = [row for row in reported.results.rows(schema.PUBLISHER_MEASURES) if row["chain"] == 2000]
    found = {part.name: part for part in where_bytes_go(reported.results, ("dev", 2000), {}).parts}
    for publisher in (1000, 2100):
        mine = [row for row in rows if row["publisher"] == publisher]
        part = found[f"publisher {publisher}"]
        assert {small.name: small.bytes for small in part.parts} == {
            "top path": sum(row["top_path_bytes"] for row in mine),
            "child nodes": sum(row["child_node_bytes"] for row in mine),
            "values": sum(row["value_bytes"] for row in mine),
        }
        assert dict(part.facts)["deliveries"] == sum(row["deliveries"] for row in mine)
        assert dict(part.facts)["blocks that met it"] == len(mine)
        assert dict(part.facts)["of them, with an unchanged root"] == sum(
            row["unchanged"] for row in mine
        )


def test_small_publishers_are_added_up_and_not_left_out(tmp_path: Path) -> None:
    publishers = [
        {column.name: 0 for column in schema.PUBLISHER_MEASURES.columns}
        | {
            "network": "dev",
            "chain": 1,
            "position": 1,
            "number": 1,
            "publisher": at,
            "value_bytes": at,
        }
        | {"unchanged": False, "resolved": True, "delays": []}
        for at in range(1, 101)
    ]
    blocks = [block(1, proof_bytes=5050 + 9)]
    tables = {
        schema.CHAINS: [chain()],
        schema.BLOCK_MEASURES: blocks,
        schema.PUBLISHER_MEASURES: publishers,
    }
    tree = where_bytes_go(Results.open(forge(tmp_path, tables)), ("dev", 1), {})
    assert len(tree.parts) == MOST_PARTS
    assert sum(part.bytes for part in tree.parts) == tree.bytes == 5059
    assert tree.parts[-1].name == f"{101 - MOST_PARTS + 1} others"
    assert (
        any(part.name == "not attributed" and part.bytes == 9 for part in tree.parts)
        or tree.parts[-1].bytes
    )


def test_causes_and_proof_are_the_full_proof(reported: Reported) -> None:
    for place in CHAINS:
        good = [
            row
            for row in _valid(_blocks(reported.results, place[1]))
            if row["saved_pruned"] is not None
        ]
        found = savings(reported.results).get(place)
        if not sum(row["unpruned_bytes"] or 0 for row in good):
            assert found is None
            continue
        assert found is not None
        assert found.proven + found.unchanged + found.cached + found.pruned == found.full
        assert found.full == sum(row["proof_bytes"] + row["saved_pruned"] for row in good)
        assert found.unchanged == sum(row["saved_unchanged"] for row in good) > 0
        assert found.cache_net == sum(row["cache_net"] for row in good)
        assert found.cache_net == found.cached - found.cache_state


def test_delays_are_exact_whatever_the_bars(tmp_path: Path) -> None:
    held = [1] * 50 + [3] * 40 + [200] * 9 + [977]
    row = {column.name: 0 for column in schema.PUBLISHER_MEASURES.columns}
    row |= {
        "network": "dev",
        "chain": 1,
        "publisher": 7,
        "unchanged": False,
        "resolved": True,
        "delays": held,
    }
    tables = {
        schema.CHAINS: [chain()],
        schema.BLOCK_MEASURES: [block(0)],
        schema.PUBLISHER_MEASURES: [row],
    }
    found = delays(Results.open(forge(tmp_path, tables)), ("dev", 1))
    assert found is not None
    assert found.percentiles == tuple(
        (each, sorted(held)[nearest_rank(100, each) - 1]) for each in (50, 90, 99)
    )
    assert (found.deliveries, found.longest) == (100, 977)
    assert [(bar.first, bar.last, bar.deliveries) for bar in found.bars] == [
        (0, 49, 90),
        (200, 249, 9),
        (950, 999, 1),
    ]
    assert len(found.bars) <= MOST_BARS


def test_collators_answer_for_what_the_tables_say(reported: Reported) -> None:
    rows = list(reported.results.rows(schema.FINDINGS))
    blocks = list(reported.results.rows(schema.BLOCK_MEASURES))
    found = culprits(reported.results)
    assert {(severity, code): count for severity, code, count in found.codes} == Counter(
        (row["severity"], row["code"]) for row in rows
    )
    assert [severity for severity, _, _ in found.codes] == ["warning", "info"]
    for each in found.collators:
        mine = [
            row for row in blocks if (row["chain"], row["collator"]) == (each.chain[1], each.key)
        ]
        assert each.candidates == len(mine)
        assert each.faulty == sum(row["verdict"] is not None for row in mine) > 0
        assert each.findings == Counter(row["code"] for row in rows if row["collator"] == each.key)
    assert (
        sum(each.findings.total() for each in found.collators) == len(rows) == len(found.findings)
    )


def test_what_could_not_be_read_is_told(reported: Reported) -> None:
    assert list(unread(reported.results).units) == list(reported.results.rows(schema.READ_ERRORS))
    assert len(unread(reported.results).units) == 1


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.0 KiB"),
        (-5 << 20, "-5.0 MiB"),
        (3 << 40, "3.0 TiB"),
        (1 << 60, "1,048,576.0 TiB"),
    ],
)
def test_sizes_are_in_binary_units(count: int, words: str) -> None:
    assert size(count) == words


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (0, 0, "none"),
        (0, 5, "0 %"),
        (1, 3, "33 %"),
        (1, 300, "0.3 %"),
    ],
)
def test_shares_are_told_with_what_precision_they_have(part: int, whole: int, words: str) -> None:
    assert percent(part, whole) == words


def test_delays_are_those_that_the_network_saw(tmp_path: Path) -> None:
    config = small_network().config
    paces = {SUBSCRIBER: Pace(every=3)}
    slow = [
        replace(each, pace=paces.get(each.spec.para_id, each.pace)) for each in config.parachains
    ]
    network, seen = Network(replace(config, parachains=tuple(slow))), Metrics()
    with HistoryWriter(tmp_path / "history", "dev") as writer:
        network.observe(writer)
        for at in range(12):
            network.publish(1000, KEYS[at % len(KEYS)], b"value %d" % at)
            for step in network.step():
                seen.note(network, step)
        network.finish()
    rows = list(
        audit(tmp_path / "history", tmp_path / "out", engine="python").results.rows(
            schema.PUBLISHER_MEASURES
        )
    )
    found = Counter(delay for row in rows for delay in row["delays"])
    assert found == seen.subscribers[SUBSCRIBER].latency
    assert len(found) > 1
    assert all(row["delays"] == sorted(row["delays"]) for row in rows)


WIDTHS = pytest.mark.parametrize("width", [WIDE, NARROW])


def _ordered(spec: Spec) -> list[str]:
    """The rows of a bar chart, from the top."""
    order: list[str] = spec["encoding"]["y"]["sort"]
    return order


@WIDTHS
def test_collators_whose_names_look_alike_stay_apart(width: int) -> None:
    keys = [bytes(4) + bytes([at]) * 28 for at in range(3)]
    places = [(network, 2000) for network in ("a" * 40 + "1", "a" * 40 + "2")]
    found = [
        CollatorFindings(place, key, findings=Counter({"BadSeal": 2}))
        for place in places
        for key in keys
    ]
    spec = charts.collators(found, width, {})
    assert len(set(_ordered(spec))) == 6
    assert {row["collator"] for row in spec["datasets"]["rows"]} == set(_ordered(spec))
    assert all(row["findings"] == 2 for row in spec["datasets"]["rows"])


@WIDTHS
def test_a_legend_has_room_right_of_the_names_of_collators(width: int) -> None:
    codes = ["OmittedBelowBudget", "RelayParentDecreased", "BadSeal", "UnusedNodes"]
    collator = CollatorFindings(("demo", 2000), bytes(range(32)), findings=Counter(codes))
    spec = charts.collators([collator], width, {})
    [name] = _ordered(spec)
    columns: int = spec["encoding"]["color"]["legend"]["columns"]
    assert columns * max(map(len, codes)) * LETTER <= width - len(name) * LETTER
    assert columns == (4 if width == WIDE else 1)


@WIDTHS
def test_chains_of_networks_with_long_names_stay_apart_and_keep_their_number(width: int) -> None:
    rows = [
        Savings(
            ("network-" * 9 + str(at), 2000 + at % 2),
            1,
            10,
            proven=4,
            unchanged=3,
            cached=2,
            pruned=1,
            cache_state=5,
            cache_net=-3,
        )
        for at in range(6)
    ]
    spec = charts.savings(rows, width, {})
    assert len(set(_ordered(spec))) == 6
    assert all(("2000", "2001")[at % 2] in name for at, name in enumerate(_ordered(spec)))
    shown = spec["datasets"]["rows"]
    assert [
        sum(row["bytes"] for row in shown if row["chain"] == name) for name in _ordered(spec)
    ] == [10] * 6


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=30))
def test_an_icicle_has_no_gap_and_no_overlap(sizes: list[int]) -> None:
    ranked = sorted(sizes, reverse=True)
    parts = tuple(
        ByteShare(f"publisher {at}", size, (ByteShare("values", size),))
        for at, size in enumerate(ranked)
    )
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
