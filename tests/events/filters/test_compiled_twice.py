"""Predicate and SQL agree for any filter and any rows, on both databases (EV-10, EV-11)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.events import CHAINS, FIELDS, FILTERS, KINDS

from pubsub_emulator.database.database import Database, migrate
from pubsub_emulator.database.opening import open_database
from pubsub_emulator.events.filters.algebra import OPS, All, Field, Filter, Kind, Not, OneOf
from pubsub_emulator.events.filters.predicate import matches
from pubsub_emulator.events.filters.sql import LogColumns, where
from pubsub_emulator.events.rows import Row
from pubsub_emulator.events.values import encode_fields

ROWS = st.lists(st.tuples(CHAINS, KINDS, FIELDS), min_size=1, max_size=6)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgres"))]
)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    if request.param == "sqlite":
        place = str(Path(tmp_path_factory.mktemp("filters")) / "rows.db")
    else:
        place = request.getfixturevalue("postgres").get_uri()
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
        Row(seq, 1, chain, 1, 0, kind, b"", 0, encode_fields(fields))
        for seq, (chain, kind, fields) in enumerate(rows, 1)
    ]
    with database.transaction(write=True) as session:
        session.run("DELETE FROM filtered")
        session.run_many(
            "INSERT INTO filtered VALUES (?, ?, ?, ?)", [(row.seq, row.chain, row.kind, row.body) for row in made]
        )
        for part in filters:
            clause = where(part, LogColumns(database.dialect))
            found = session.run(f"SELECT seq FROM filtered WHERE {clause.sql} ORDER BY seq", clause.params)  # noqa: S608
            assert [seq for (seq,) in found] == [row.seq for row in made if matches(part, row)], part


@pytest.mark.parametrize("op", OPS)
def test_ev_10_a_path_that_is_missing_matches_under_no_operator_and_not_turns_that_round(
    database: Database, op: str
) -> None:
    value = [1] if op == "in" else "1" if op == "prefix" else 1
    part = Field("a.0.b", op, value)
    bodies: list[dict] = [{}, {"a": 1}, {"a": []}, {"a": [{}]}, {"a": {"0": {"b": 1}}}]
    made = [Row(seq, 1, None, 1, 0, "A.B", b"", 0, encode_fields(each)) for seq, each in enumerate(bodies, 1)]
    with database.transaction(write=True) as session:
        session.run("DELETE FROM filtered")
        session.run_many("INSERT INTO filtered VALUES (?, NULL, 'A.B', ?)", [(row.seq, row.body) for row in made])
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
