"""Filters: normal form, JSON, the index, and that predicate and SQL agree on both databases (EV-10
to EV-14).
"""

import random
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any as Json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.events.blocks import CHAINS, FIELDS, FILTERS, KINDS

from interchain_events.database.database import Database, migrate
from interchain_events.database.opening import open_database
from interchain_events.events import All, Chain, Field, Kind, Not, OneOf
from interchain_events.events.errors import BadFilter
from interchain_events.events.filters import normal
from interchain_events.events.filters.algebra import ANY, MAX_FILTERS, OPS, Filter, check_limits
from interchain_events.events.filters.codec import dump_filters, from_json, parse_filters, to_json
from interchain_events.events.filters.index import FilterIndex
from interchain_events.events.filters.normal import covers, normalize, simplify
from interchain_events.events.filters.predicate import any_of, matches
from interchain_events.events.filters.sql import LogColumns, where
from interchain_events.events.rows import Row
from interchain_events.events.values import encode_fields

ROW = st.builds(
    lambda chain, kind, fields: Row(
        1, 1, chain, block=1, index=0, kind=kind, id=b"", time=0, body=encode_fields(fields)
    ),
    CHAINS,
    KINDS,
    FIELDS,
)
LISTS = st.lists(FILTERS, max_size=4)


@given(LISTS, st.lists(ROW, min_size=1, max_size=5))
def test_ev_12_the_normal_form_matches_the_same_rows(
    filters: list[Filter], rows: list[Row]
) -> None:
    normal = normalize(filters)
    for row in rows:
        assert any_of(normal)(row, row.fields) == any_of(filters)(row, row.fields)
        for each in filters:
            assert matches(simplify(each), row) == matches(each, row)


@given(LISTS, st.randoms(use_true_random=False))
def test_ev_12_order_and_repetition_do_not_matter(
    filters: list[Filter], source: random.Random
) -> None:
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
        pytest.param(
            [Kind("A.One"), Kind("A.*")],
            (Kind("A.*"),),
            id="a kind within its pallet",
        ),
        pytest.param(
            [ANY, Chain(5)],
            (ANY,),
            id="any covers a chain",
        ),
        pytest.param(
            [All(Chain(5), Kind("A.One")), Chain(5)],
            (Chain(5),),
            id="a chain covers a conjunction",
        ),
        pytest.param(
            [Field("a", "=", 1), Field("a", "in", [1, 2])],
            (Field("a", "in", [1, 2]),),
            id="a value within a list",
        ),
        pytest.param(
            [Field("a", "=", True), Field("a", "=", 1)],
            (Field("a", "in", [True, 1]),),
            id="true is not one",
        ),
        pytest.param(
            [Field("a", "=", "xy"), Field("a", "prefix", "x")],
            (Field("a", "prefix", "x"),),
            id="a text within its prefix",
        ),
        pytest.param(
            [Not(Not(Chain(1))), OneOf(Chain(1))],
            (Chain(1),),
            id="a double negation",
        ),
        pytest.param(
            [Not(Chain(2)), Chain(1)],
            (Not(Chain(2)),),
            id="a chain within a negation",
        ),
        pytest.param(
            [],
            (),
            id="no filter",
        ),
        pytest.param(
            [OneOf(), All(OneOf(), Chain(1))],
            (),
            id="what never matches",
        ),
    ],
)
def test_ev_12_what_another_filter_covers_is_removed(
    filters: list[Filter], normal: tuple[Filter, ...]
) -> None:
    assert normalize(filters) == normal


@given(LISTS)
def test_filters_survive_json(filters: list[Filter]) -> None:
    assert parse_filters(dump_filters(filters)) == tuple(filters)


@given(
    st.lists(st.tuples(st.integers(0, 30), LISTS), max_size=20),
    st.sets(st.integers(0, 30)),
    st.lists(ROW),
)
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
        pytest.param(lambda: Kind("Balances"), "Pallet.Event", id="a kind without an event"),
        pytest.param(
            lambda: Kind("A.B; DROP TABLE log_rows"), "Pallet.Event", id="a kind with a statement"
        ),
        pytest.param(lambda: Chain(-1), "para id", id="a negative chain"),
        pytest.param(lambda: Chain(True), "para id", id="a chain that is a truth value"),
        pytest.param(lambda: Field("a b", "=", 1), "letters", id="a blank"),
        pytest.param(lambda: Field('a"b', "=", 1), "letters", id="a quotation mark"),
        pytest.param(lambda: Field((), "=", 1), "MAX_PATH", id="an empty path"),
        pytest.param(lambda: Field("a." + "1" * 5_000, "=", 1), "MAX_INDEX", id="a large index"),
        pytest.param(lambda: Field(["a", -1], "=", 1), "MAX_INDEX", id="a negative index"),
        pytest.param(
            lambda: Field(["a", True], "=", 1), "MAX_INDEX", id="an index that is a truth value"
        ),
        pytest.param(lambda: Field("a", "~", 1), "operator", id="an unknown operator"),
        pytest.param(lambda: Field("a", "<", None), "orders", id="an order of nothing"),
        pytest.param(lambda: Field("a", "prefix", 1), "prefix", id="a prefix that is a number"),
        pytest.param(lambda: Field("a", "in", 1), "list", id="a list that is a number"),
        pytest.param(lambda: Field("a", "in", [0] * 1001), "MAX_LIST", id="a long list"),
        pytest.param(lambda: Field("a", "=", 1.5), "float", id="a float"),
        pytest.param(lambda: Field("a", "=", "x" * 5000), "MAX_TEXT", id="a long text"),
        pytest.param(lambda: Field("a", "=", "\x00"), "U\\+0000", id="a zero byte"),
        pytest.param(lambda: Field("a", "=", 2**600), "MAX_INTEGER_BITS", id="a large number"),
        pytest.param(
            lambda: check_limits([ANY] * (MAX_FILTERS + 1)), "MAX_FILTERS", id="many filters"
        ),
        pytest.param(lambda: check_limits([OneOf(*[ANY] * 1000)]), "MAX_NODES", id="many nodes"),
        pytest.param(
            lambda: check_limits([reduce(lambda part, _: Not(part), range(20), ANY)]),
            "MAX_DEPTH",
            id="deep filters",
        ),
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
        ('[{"kind": "A.B"}, {"kind": 5}]', r"filters\[1\]: this is not a filter"),
        ('[{"all": [{"chain": "x"}]}]', r"filters\[0\].all\[0\]: a chain is"),
        ('[{"not": {"field": "a", "op": "=", "value": 1.5}}]', r"filters\[0\].not: value is"),
        ('[{"field": "a", "op": "=", "value": [1]}]', "value is"),
        ('[{"field": 5, "op": "=", "value": 1}]', "field is"),
        ('[{"any": false}]', "not a filter"),
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


def test_ev_14_filters_that_are_slow_to_compare_are_compared_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within all limits, every pair of a thousand parts would take a minute, and hold up every
    client.
    """
    counted: list[int] = []
    before = normal.Field.__eq__
    monkeypatch.setattr(
        normal.Field, "__eq__", lambda one, other: counted.append(1) or before(one, other)
    )
    wide = OneOf(*(Field(f"a{at}", "prefix", "x") for at in range(990)))
    nested = OneOf(
        *(
            All(*(OneOf(Field(f"b{at}{in_}", "<", 1), Chain(in_)) for in_ in range(5)))
            for at in range(60)
        )
    )
    for part in (wide, nested):
        assert len(normalize([part])) > 0
    assert len(counted) < 2_000_000


ROWS = st.lists(st.tuples(CHAINS, KINDS, FIELDS), min_size=1, max_size=6)


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgres"))],
)
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    if request.param == "sqlite":
        place = str(Path(tmp_path_factory.mktemp("filters")) / "rows.db")
    else:
        place = request.getfixturevalue("postgres").url()
    opened = open_database(place)
    table = "CREATE TABLE filtered (seq {INT} PRIMARY KEY, chain {INT}, kind {TEXT}, body {TEXT})"
    migrate(opened, "filtered", [[table]])
    yield opened
    opened.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(ROWS, st.lists(FILTERS, min_size=1, max_size=6))
def test_ev_11_sql_selects_exactly_what_the_predicate_matches(
    database: Database, rows: list[tuple[int | None, str, dict]], filters: list[Filter]
) -> None:
    made = [
        Row(seq, 1, chain, block=1, index=0, kind=kind, id=b"", time=0, body=encode_fields(fields))
        for seq, (chain, kind, fields) in enumerate(rows, 1)
    ]
    with database.transaction(write=True) as session:
        session.run("DELETE FROM filtered")
        session.run_many(
            "INSERT INTO filtered VALUES (?, ?, ?, ?)",
            [(row.seq, row.chain, row.kind, row.body) for row in made],
        )
        for part in filters:
            clause = where(part, LogColumns(database.dialect))
            query = f"SELECT seq FROM filtered WHERE {clause.sql} ORDER BY seq"  # noqa: S608
            found = session.run(query, clause.params)
            assert [seq for (seq,) in found] == [row.seq for row in made if matches(part, row)], (
                part
            )


@pytest.mark.parametrize("op", OPS)
def test_ev_10_a_missing_path_matches_no_operator_and_not_inverts_that(
    database: Database, op: str
) -> None:
    value = [1] if op == "in" else "1" if op == "prefix" else 1
    part = Field("a.0.b", op, value)
    bodies: list[dict] = [{}, {"a": 1}, {"a": []}, {"a": [{}]}, {"a": {"0": {"b": 1}}}]
    made = [
        Row(seq, 1, None, block=1, index=0, kind="A.B", id=b"", time=0, body=encode_fields(each))
        for seq, each in enumerate(bodies, 1)
    ]
    with database.transaction(write=True) as session:
        session.run("DELETE FROM filtered")
        session.run_many(
            "INSERT INTO filtered VALUES (?, NULL, 'A.B', ?)", [(row.seq, row.body) for row in made]
        )
        for each, is_match in ((part, False), (Not(part), True)):
            clause = where(each, LogColumns(database.dialect))
            found = session.run(f"SELECT count(*) FROM filtered WHERE {clause.sql}", clause.params)  # noqa: S608
            assert found == [(len(made) if is_match else 0,)]
            assert [matches(each, row) for row in made] == [is_match] * len(made)


def test_ev_14_a_filter_at_the_limits_runs_on_both(database: Database) -> None:
    wide = OneOf(*(All(Kind("A.One"), Field("a", "=", at)) for at in range(333)))
    long = Field("a", "in", [str(at) for at in range(999)])
    deep: Filter = Field("a", "=", 1)
    for _ in range(14):
        deep = Not(All(deep))
    with database.transaction() as session:
        for part in (wide, long, deep):
            clause = where(part, LogColumns(database.dialect))
            session.run(f"SELECT seq FROM filtered WHERE {clause.sql}", clause.params)  # noqa: S608
