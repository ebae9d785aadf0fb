"""Deliveries of operations, answers of channel 7: cheats are found, nobody honest is accused
(EV-40, EV-41, PR-61).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from support.plumbing.told import alone
from support.prism.prism_chain import Branches, running, until
from support.prism.wallet import Wallet, add

from interchain_events.delivery_audit.deliveries import audit_deliveries
from interchain_events.delivery_audit.statuses import audit_statuses
from interchain_events.events.cheats import CHEATS
from interchain_events.events.filters.predicate import any_of
from interchain_events.events.log.sql_store import SqlStore
from interchain_events.events.rows import Row
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.deliveries import DeliveryRecorder, export_log
from interchain_events.events.subscriptions.hub import Message
from interchain_events.events.subscriptions.registry import Subscription
from interchain_events.prism import Status
from interchain_events.prism import cheats as prism_cheats
from interchain_events.prism.cheats import STATUS_CHEATS, ToldStatus
from interchain_events.prism.client import TakenBack
from interchain_events.prism.core.filters import OWNERS, Filter, FilterType
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.status import FINAL, OperationPlace, OperationStatus, StatusUpdate
from interchain_events.prism.make import atala_object
from interchain_events.prism.service.service import FINISHED
from interchain_events.prism.status_deliveries import StatusDeliveries
from interchain_events.prism.tables.operations import (
    NETWORK,
    Event,
    OperationLog,
    log_filter,
    read_events,
    row_of,
)

HASH, OTHER = sha256(b"one"), sha256(b"other")


def history() -> tuple[list[bytes], list[Filter]]:
    """Operations of two wallets, and every kind of filter."""
    a, b = Wallet("a"), Wallet("b")
    batch, theirs = a.issue(HASH, OTHER), b.issue(HASH)
    steps = [a.created, b.created, a.update(add("s")), batch.signed, theirs.signed]
    steps += [
        a.revoke(batch, HASH),
        a.revoke(batch, OTHER),
        b.revoke(theirs),
        a.revoke(batch),
        a.revoke(batch, HASH),
    ]
    steps += [each.update(add("t"), previous=HASH) for each in (a, b)]
    steps += [b.deactivate(), a.deactivate()]
    filters = [
        Filter(kind, a.suffix if kind in OWNERS else None, status=status)
        for kind in FilterType
        for status in (None, Status.APPLIED, Status.REJECTED)
        if kind is not FilterType.REVOKE_CREDENTIAL_FILTER
    ]
    filters += [
        Filter(FilterType.REVOKE_CREDENTIAL_FILTER, None, HASH, each)
        for each in (None, batch.batch_id)
    ]
    return [each.raw for each in steps], filters


@alone
async def test_ev_40_filters_of_operations_match_as_rows_of_a_log(log: Any) -> None:
    raw, filters = history()
    async with running(log, Branches()) as node:
        await node.processed(node.chain.build(atala_object(raw)))
        rows = OperationLog(log.database).read(0, 100).rows
        for each in filters:
            page = OperationLog(log.database).read(0, 100, log_filter(each))
            predicate = any_of((log_filter(each),))
            assert [row for row in rows if predicate(row, row.fields)] == page.rows, each


@pytest.mark.spark
def test_ev_40_and_ev_41_honest_streams_pass_and_every_cheat_is_found(
    spark: SparkContext, log: Any, tmp_path: Path
) -> None:
    raw, filters = history()
    filters = [
        filters[0],
        filters[-1],
    ]  # Spark plans a join for each; the test above compares them all
    out = tmp_path / "out"

    async def story(recorder: DeliveryRecorder) -> None:
        async with running(log, Branches(), recorder=recorder) as node:
            await node.processed(node.chain.build(atala_object(raw[:6])))
            kept = [
                await node.client.subscribe([each], batches=True, everything=True)
                for each in filters
            ]
            for turn in range(2):
                for at, each in enumerate(kept):
                    try:
                        _, kept[at] = await node.seen(each)
                    except TakenBack as cut:
                        kept[at] = cut.subscription
                await until(lambda: node.service.events.open_streams == 0)
                if turn == 0:
                    number = node.chain.build(atala_object(raw[6:8]))
                    await node.processed(number)
                    node.chain.drop_to(number - 1)
                    node.chain.build(atala_object(raw[6:]))
                    await until(lambda: node.service.processor.position().seq_no == len({*raw}))

    with DeliveryRecorder(out, NETWORK, lambda: 1_700_000_000_000) as recorder:
        asyncio.run(story(recorder))
        with log.database.transaction() as session:
            events = read_events(session, 0, 100)
        due, others = split(filters[0], events)
        for cheat in prism_cheats.CHEATS.values():
            receive(
                recorder,
                f"prism {cheat.name}",
                filters[0],
                map(row_of, cheat.change(due, others)),
                events,
            )
        receive(recorder, "honest", filters[0], map(row_of, due), events)
        applied = Filter(FilterType.ANONYMOUS_ANY_FILTER, status=Status.APPLIED)
        asked, unasked = (list(map(row_of, some)) for some in split(applied, events))
        for general in CHEATS.values():
            receive(recorder, general.name, applied, general.change(asked, unasked), events)
    export_log(OperationLog(log.database), out)
    found = defaultdict(set)
    audited = audit_deliveries(spark, out)
    for each in audited.findings:
        found[each["subscription"]].add(each["finding"])
    expected = {cheat.name: {cheat.found_as} for cheat in CHEATS.values()}
    expected |= {f"prism {cheat.name}": {cheat.found_as} for cheat in prism_cheats.CHEATS.values()}
    assert found == expected
    assert audited.streams == 2 * len(filters) + len(expected) + 1


def split(each: Filter, events: list[Event]) -> tuple[list[Event], list[Event]]:
    """The events that a filter matches, and the others."""
    matches = any_of((log_filter(each),))
    rows = map(row_of, events)
    matching = [matches(row, row.fields) for row in rows]
    due = [event for event, is_due in zip(events, matching, strict=True) if is_due]
    return due, [event for event in events if event not in due]


def receive(
    recorder: DeliveryRecorder, name: str, each: Filter, rows: Iterable[Row], events: list[Event]
) -> None:
    """One stream of these rows from the start, whose last cursor is that of the last event there
    is.
    """
    recorder.opened(
        Subscription(name, (log_filter(each),), Cursor(1, 0), batches=False), name, Cursor(1, 0)
    )
    for row in rows:
        recorder.delivered(name, Message((row,), Cursor(1, row.seq)))
    recorder.ended(name, Cursor(1, events[-1].seq_no), "disconnected")


def at(number: int, branch: int = 0) -> OperationPlace:
    return OperationPlace(number, bytes((branch,)) * 32, 0, 0, number * 6_000)


def life(first: int) -> list[StatusUpdate]:
    """Scheduled, built, dropped by a reorganisation, built again, confirmed, approved."""
    again = at(first + 1, 1)
    return [
        StatusUpdate(OperationStatus.PENDING),
        StatusUpdate(OperationStatus.IN_BLOCK, place=at(first)),
        StatusUpdate(OperationStatus.PENDING),
        StatusUpdate(OperationStatus.IN_BLOCK, place=again),
        StatusUpdate(OperationStatus.CONFIRMATION_LEVEL, 1, place=again),
        StatusUpdate(OperationStatus.CONFIRMATION_LEVEL, 2, place=again),
        StatusUpdate(OperationStatus.APPROVED, place=again),
    ]


def stream(
    recorder: StatusDeliveries, name: str, truths: list[StatusUpdate], told: list[ToldStatus]
) -> None:
    """One operation's life, with one stream over it that tells this."""
    operation = sha256(name.encode())
    recorder.began(name, operation)
    for turn, truth in enumerate(truths):
        recorder.held(operation, truth)
        for each in told:
            if each.turn == turn:
                recorder.record(name, each.update)
        recorder.waits(name)
    recorder.stopped(name, FINISHED if told and told[-1].update.status in FINAL else "disconnected")


@pytest.mark.spark
def test_ev_41_every_cheat_of_channel_7_is_found_by_its_name(
    spark: SparkContext, tmp_path: Path
) -> None:
    due = [ToldStatus(turn, update) for turn, update in enumerate(life(10))]
    others = [ToldStatus(turn, update) for turn, update in enumerate(life(50))]
    with StatusDeliveries(tmp_path, lambda: 1_700_000_000_000) as recorder:
        stream(recorder, "another", life(50), others)
        stream(recorder, "honest", life(10), due)
        stream(recorder, "honest and slow", life(10), [due[0], due[3], due[-1]])
        for cheat in STATUS_CHEATS.values():
            stream(recorder, cheat.name, life(10), cheat.change(due, others))
        hung_up = sha256(b"hung up")
        recorder.began("hung up", hung_up)
        recorder.held(hung_up, due[0].update)
        recorder.record("hung up", due[0].update)
        recorder.stopped("hung up", FINISHED)
    audited = audit_statuses(spark, tmp_path)
    found = defaultdict(set)
    for each in audited.findings:
        found[each["operation"]].add(each["finding"])
    expected = {
        sha256(name.encode()).hex(): {cheat.found_as} for name, cheat in STATUS_CHEATS.items()
    }
    assert found == expected | {hung_up.hex(): {"withheld"}}
    assert audited.streams == len(STATUS_CHEATS) + 4
    assert {each["day"] for each in audited.findings} == {"2023-11-14"}


def test_ev_40_use_case_7_a_node_records_true_events_and_those_it_reported(
    log: SqlStore, tmp_path: Path
) -> None:
    async def story(recorder: StatusDeliveries) -> list[str]:
        async with running(log, Branches(), depth=1, status_recorder=recorder) as node:
            node.chain.build()
            ids, _ = await node.client.schedule([Wallet("a").created.raw])
            told, watching = node.watch(ids[0])
            await until(lambda: node.chain.pool and told)
            kept = len(node.chain.blocks)
            acts = (node.chain.build_pool, lambda: (node.chain.drop_to(kept), node.chain.build()))
            for act in (*acts, node.chain.build_pool, node.chain.build):
                length = len(told)
                act()
                await until(lambda length=length: len(told) > length)
            await watching
            await until(lambda: node.service.events.open_streams == 0)
        return [OperationStatus(each).name for each in told]

    with StatusDeliveries(tmp_path / "out") as recorder:
        told = asyncio.run(story(recorder))
    assert told == ["PENDING", "IN_BLOCK", "PENDING", "IN_BLOCK", "APPROVED"]
    for name in ("status_truths", "status_answers"):
        rows = sorted(
            pq.read_table(tmp_path / "out" / name).to_pylist(), key=lambda row: row["order"]
        )
        assert [row["status"] for row in rows] == told
    (ended,) = pq.read_table(tmp_path / "out" / "status_streams").to_pylist()
    assert ended["ended"] == FINISHED
