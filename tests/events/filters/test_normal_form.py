"""Normal form, JSON and the index of filters (EV-10, EV-12, EV-13, EV-14)."""

import random
from typing import Any as Json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.events import CHAINS, FIELDS, FILTERS, KINDS

from pubsub_emulator.events.errors import BadFilter
from pubsub_emulator.events.filters import normal
from pubsub_emulator.events.filters.algebra import (
    ANY,
    MAX_FILTERS,
    All,
    Any,
    Chain,
    Field,
    Filter,
    Kind,
    Not,
    OneOf,
    check_limits,
)
from pubsub_emulator.events.filters.codec import dump_filters, from_json, parse_filters, to_json
from pubsub_emulator.events.filters.index import FilterIndex
from pubsub_emulator.events.filters.normal import covers, normalize, simplify
from pubsub_emulator.events.filters.predicate import any_of, matches
from pubsub_emulator.events.rows import Row
from pubsub_emulator.events.values import encode_fields

ROW = st.builds(
    lambda chain, kind, fields: Row(1, 1, chain, 1, 0, kind, b"", 0, encode_fields(fields)), CHAINS, KINDS, FIELDS
)
LISTS = st.lists(FILTERS, max_size=4)


@given(LISTS, st.lists(ROW, min_size=1, max_size=5))
def test_ev_12_the_normal_form_matches_the_same_rows(filters: list[Filter], rows: list[Row]) -> None:
    normal = normalize(filters)
    for row in rows:
        assert any_of(normal)(row, row.fields) == any_of(filters)(row, row.fields)
        for each in filters:
            assert matches(simplify(each), row) == matches(each, row)


@given(LISTS, st.randoms(use_true_random=False))
def test_ev_12_order_and_repetition_do_not_matter(filters: list[Filter], source: random.Random) -> None:
    shuffled = [*filters, *filters[:2]]
    source.shuffle(shuffled)
    assert normalize(shuffled) == normalize(filters)
    assert normalize(normalize(filters)) == normalize(filters)


@given(FILTERS, FILTERS, st.lists(ROW, min_size=1, max_size=5))
def test_ev_12_what_is_said_to_cover_does(wide: Filter, narrow: Filter, rows: list[Row]) -> None:
    if covers(wide, narrow):
        assert all(matches(wide, row) for row in rows if matches(narrow, row))


@pytest.mark.parametrize(
    ("filters", "normal"),
    [
        ([Kind("A.One"), Kind("A.*")], (Kind("A.*"),)),
        ([ANY, Chain(5)], (ANY,)),
        ([All(Chain(5), Kind("A.One")), Chain(5)], (Chain(5),)),
        ([Field("a", "=", 1), Field("a", "in", [1, 2])], (Field("a", "in", [1, 2]),)),
        ([Field("a", "=", True), Field("a", "=", 1)], (Field("a", "in", [True, 1]),)),
        ([Field("a", "=", "xy"), Field("a", "prefix", "x")], (Field("a", "prefix", "x"),)),
        ([Not(Not(Chain(1))), OneOf(Chain(1))], (Chain(1),)),
        ([Not(Chain(2)), Chain(1)], (Not(Chain(2)),)),
        ([], ()),
        ([OneOf(), All(OneOf(), Chain(1))], ()),
    ],
)
def test_ev_12_what_another_filter_covers_is_removed(filters: list[Filter], normal: tuple[Filter, ...]) -> None:
    assert normalize(filters) == normal


@given(LISTS)
def test_filters_survive_json(filters: list[Filter]) -> None:
    assert parse_filters(dump_filters(filters)) == tuple(filters)


@given(st.lists(st.tuples(st.integers(0, 30), LISTS), max_size=20), st.sets(st.integers(0, 30)), st.lists(ROW))
def test_ev_13_the_index_finds_what_a_scan_finds(
    filed: list[tuple[int, list[Filter]]], removed: set[int], rows: list[Row]
) -> None:
    index: FilterIndex[int] = FilterIndex()
    for key, filters in filed:
        index.add(key, filters)
    for key in removed:
        index.remove(key)
    left = {key: filters for key, filters in filed if key not in removed}
    for row in rows:
        scanned = sorted(key for key, filters in left.items() if any_of(filters)(row, row.fields))
        assert sorted(index.match(row)) == scanned
    for key in left:
        index.remove(key)
    assert not vars(index)["_filed"]
    assert not vars(index)["_paths"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Kind("Balances"), "Pallet.Event"),
        (lambda: Kind("A.B; DROP TABLE log_rows"), "Pallet.Event"),
        (lambda: Chain(-1), "para id"),
        (lambda: Chain(True), "para id"),
        (lambda: Field("a b", "=", 1), "letters"),
        (lambda: Field('a"b', "=", 1), "letters"),
        (lambda: Field((), "=", 1), "MAX_PATH"),
        (lambda: Field(["a", -1], "=", 1), "MAX_INDEX"),
        (lambda: Field(["a", True], "=", 1), "MAX_INDEX"),
        (lambda: Field("a", "~", 1), "operator"),
        (lambda: Field("a", "<", None), "orders"),
        (lambda: Field("a", "prefix", 1), "prefix"),
        (lambda: Field("a", "in", 1), "list"),
        (lambda: Field("a", "in", [0] * 1001), "MAX_LIST"),
        (lambda: Field("a", "=", 1.5), "float"),
        (lambda: Field("a", "=", "x" * 5000), "MAX_TEXT"),
        (lambda: Field("a", "=", "\x00"), "U\\+0000"),
        (lambda: Field("a", "=", 2**600), "MAX_INTEGER_BITS"),
        (lambda: check_limits([ANY] * (MAX_FILTERS + 1)), "MAX_FILTERS"),
        (lambda: check_limits([OneOf(*[ANY] * 1000)]), "MAX_NODES"),
        (lambda: check_limits([_nested(20)]), "MAX_DEPTH"),
    ],
)
def test_ev_14_what_is_over_a_limit_is_refused_with_its_name(make: Json, words: str) -> None:
    with pytest.raises(BadFilter, match=words):
        make()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("{}", "filters: a JSON list"),
        ('[{"kind": "A.B"}, {"kind": 5}]', r"filters\[1\]: no filter is written"),
        ('[{"all": [{"chain": "x"}]}]', r"filters\[0\].all\[0\]: a chain is"),
        ('[{"not": {"field": "a", "op": "=", "value": 1.5}}]', r"filters\[0\].not: value is"),
        ('[{"field": "a", "op": "=", "value": [1]}]', "value is"),
        ('[{"field": 5, "op": "=", "value": 1}]', "field is"),
        ('[{"any": false}]', "no filter"),
        ('[{"any": true, "chain": 1}]', "one of any"),
        ("[5]", "JSON object"),
        ("[" * 100_000, "not JSON"),
        ('[{"all": 5}]', "JSON list of filters"),
        ("[" + ",".join(['{"any":true}'] * 101) + "]", "MAX_FILTERS"),
        ('{"a":1' + " " * 2_000_000 + "}", "MAX_BYTES"),
    ],
)
def test_bad_json_names_its_place(text: str, words: str) -> None:
    with pytest.raises(BadFilter, match=words):
        parse_filters(text)


def test_a_dotted_path_walks_names_and_indices() -> None:
    assert from_json({"field": "a.b.0", "op": "=", "value": 1}) == Field(("a", "b", 0), "=", 1)
    assert from_json({"field": "0.1", "op": "=", "value": 1}) == Field(("0", 1), "=", 1)
    assert to_json(Field("a.0", "in", [1])) == {"field": ["a", 0], "op": "in", "value": [1]}
    assert Field("a", "=", 1) != Field("a", "=", True)


def _nested(depth: int) -> Filter:
    part: Filter = Any()
    for _ in range(depth):
        part = Not(part)
    return part


def test_ev_14_filters_that_are_slow_to_compare_are_compared_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within all limits, every pair of a thousand parts would take a minute, and hold up every client."""
    counted: list[int] = []
    before = normal.Field.__eq__
    monkeypatch.setattr(normal.Field, "__eq__", lambda one, other: counted.append(1) or before(one, other))
    wide = OneOf(*(Field(f"a{at}", "prefix", "x") for at in range(990)))
    nested = OneOf(*(All(*(OneOf(Field(f"b{at}{in_}", "<", 1), Chain(in_)) for in_ in range(5))) for at in range(60)))
    for part in (wide, nested):
        assert len(normalize([part])) > 0
    assert len(counted) < 2_000_000
