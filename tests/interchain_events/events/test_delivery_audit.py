"""Deliveries written down, joined with the log: each cheat is found, and nothing honest is accused
(EV-40, EV-41).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from pyspark import SparkContext
from support.events.blocks import block_hash, make_block

from interchain_events.delivery_audit.deliveries import Audited, DeliveriesError, audit_deliveries
from interchain_events.events.cheats import CHEATS
from interchain_events.events.filters.algebra import (
    ANY,
    All,
    Chain,
    Field,
    Filter,
    Kind,
    Not,
    OneOf,
)
from interchain_events.events.filters.predicate import any_of
from interchain_events.events.log.sql_store import SqlStore, open_store
from interchain_events.events.rows import ChainBlock, Row
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.deliveries import DeliveryRecorder, export_log
from interchain_events.events.subscriptions.hub import Hub, Message
from interchain_events.events.subscriptions.registry import Subscription

pytestmark = pytest.mark.spark
DAY = 1_700_000_000_000
HONEST: tuple[tuple[Filter, ...], ...] = (
    (ANY,),
    (Kind("A.*"), Chain(2000)),
    (Not(Field("n", ">=", 10**20)),),
    (
        All(Field("n", "!=", 3), Field("who", "prefix", "0x0")),
        Field("xs.0", "in", [1, "a", None, True]),
    ),
    (OneOf(Field("n", "<", -5), Field("who", ">", "0x05")),),
    (Kind("Never.Seen"),),
)
COMPARED: tuple[Filter, ...] = (
    *(
        Field("n", op, value)
        for op in ("=", "!=", "<", "<=", ">", ">=")
        for value in (0, -1, 10**20, "x")
    ),
    *(Not(Field("xs.1", "=", "a")), Field("xs.5", "!=", 1), Field("xs", "!=", 1), OneOf(), All()),
)


def grow(store: SqlStore, first: int, last: int, *, branch: int = 0, parent: int = 0) -> None:
    for number in range(first, last + 1):
        fields = {
            "n": (-1) ** number * 10 ** (number % 25),
            "who": bytes((number % 9,)),
            "xs": [number % 3, "a"],
        }
        para = ChainBlock(
            2000, number, block_hash(number, -1), 0, [("B.Two", {"n": number, "xs": [None, True]})]
        )
        before = block_hash(number - 1, parent if number == first else branch)
        store.append(
            [
                make_block(
                    number, [("A.One", fields), ("A.Two", {})], [para], branch=branch, parent=before
                )
            ]
        )


def deliver(  # noqa: PLR0917  # a stream has this many parts
    store: SqlStore,
    recorder: DeliveryRecorder,
    subscription: Subscription,
    name: str,
    after: Cursor,
    rows: int,
) -> Cursor:
    """One stream of an honest service, by the hub, which ends after so many rows; returns its last
    cursor.
    """
    hub = Hub(store.head())
    number = hub.open(subscription.filters, after.seq, batches=subscription.batches)
    recorder.opened(subscription, name, after)
    cursor, how = after, "disconnected"
    while rows > 0:
        request = hub.wants(number)
        if request is not None:
            hub.filled(number, request, store.read(request.after, request.limit, request.where))
        message = hub.take(number) or hub.heartbeat(number)
        assert message is not None
        recorder.delivered(name, message)
        cursor = message.cursor
        rows = rows - len(message.rows) if message.rows else 0
    recorder.ended(name, cursor, how)
    return cursor


def subscription(name: str, filters: Sequence[Filter], *, batches: bool = False) -> Subscription:
    return Subscription(name, tuple(filters), Cursor(0, 0), batches)


@contextmanager
def recorded(
    folder: Path, network: str, blocks: int
) -> Iterator[tuple[SqlStore, DeliveryRecorder]]:
    """The log of a network with so many blocks, and what writes its deliveries down beside it."""
    store, ticks = open_store(str(folder / f"{network}.db"), network), count(DAY, 1_000)
    grow(store, 1, blocks)
    with DeliveryRecorder(folder / "out", network, lambda: next(ticks)) as recorder:
        yield store, recorder
    export_log(store, folder / "out")
    store.close()


def honest(folder: Path) -> None:
    """Streams that are disconnected, rewound, resumed, and read again from an old cursor."""
    with recorded(folder, "honest", 30) as (store, recorder):
        cursors = {}
        for at, filters in enumerate(HONEST):
            each = subscription(f"honest-{at}", filters, batches=at % 2 == 0)
            cursors[each] = deliver(store, recorder, each, f"{at}-first", Cursor(0, 5), 20)
        store.rewind(20)
        grow(store, 21, 40, branch=1, parent=0)
        for each, cursor in cursors.items():
            common = store.common(cursor.epoch)
            assert common == 60
            resumed = Cursor(1, min(cursor.seq, common))
            deliver(store, recorder, each, f"{each.name}-second", resumed, 1_000)
            deliver(store, recorder, each, f"{each.name}-again", Cursor(1, 0), 7)


def cheating(folder: Path) -> None:
    """A stream of each cheat, and an honest one."""
    filters = (Kind("A.One"),)
    with recorded(folder, "cheats", 20) as (store, recorder):
        rows = store.read(0, 10**6).rows
        due = [row for row in rows if any_of(filters)(row, row.fields)]
        others = [row for row in rows if row not in due]
        for cheat in CHEATS.values():
            _receive(recorder, subscription(cheat.name, filters), cheat.change(due, others[2:]))
        _receive(recorder, subscription("honest", filters), due)


def compared(folder: Path) -> None:
    """A stream of each of the filters that compare."""
    with recorded(folder, "compared", 26) as (store, recorder):
        for at, part in enumerate(COMPARED):
            deliver(store, recorder, subscription(f"{at}", (part,)), f"{at}", Cursor(0, 0), 1_000)


@pytest.fixture(scope="module")
def audited(spark: SparkContext, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """One audit of all that these wrote."""
    folder = tmp_path_factory.mktemp("deliveries")
    for write in (honest, cheating, compared):
        write(folder)
    return audit_deliveries(spark, folder / "out")


def found_in(audited: Audited, network: str) -> list[tuple[str, str, str]]:
    return [
        (row["subscription"], row["finding"], row["day"])
        for row in audited.findings
        if row["network"] == network
    ]


def test_ev_40_nothing_honest_is_accused_whatever_its_filters_and_rewinds(audited: Audited) -> None:
    assert found_in(audited, "honest") == []
    assert audited.streams == 3 * len(HONEST) + len(CHEATS) + 1 + len(COMPARED)
    assert audited.taken_back > 0


def test_ev_41_every_cheat_is_found_by_its_name(audited: Audited) -> None:
    expected = {(cheat.name, cheat.found_as, "2023-11-14") for cheat in CHEATS.values()}
    assert {*found_in(audited, "cheats")} == expected


def test_ev_11_spark_selects_what_the_predicate_matches(audited: Audited) -> None:
    assert found_in(audited, "compared") == []


def test_a_folder_without_tables_is_refused(spark: SparkContext, tmp_path: Path) -> None:
    with pytest.raises(DeliveriesError, match="no table event_log"):
        audit_deliveries(spark, tmp_path)


def _receive(recorder: DeliveryRecorder, who: Subscription, rows: Sequence[Row]) -> None:
    recorder.opened(who, who.name, Cursor(0, 0))
    for row in rows:
        recorder.delivered(who.name, Message((row,), Cursor(0, row.seq)))
    recorder.ended(who.name, Cursor(0, max(row.seq for row in rows)), "disconnected")
