"""Deliveries of operations, audited: each cheat is found, and nothing honest is accused (EV-40, EV-41)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from support.prism import Wallet
from support.prism_chain import Branches, running, until
from support.told import alone

from pubsub_emulator.events.cheats import CHEATS
from pubsub_emulator.events.filters.predicate import any_of
from pubsub_emulator.events.rows import Row
from pubsub_emulator.events.subscriptions.cursor import Cursor
from pubsub_emulator.events.subscriptions.deliveries import DeliveryRecorder, export_log
from pubsub_emulator.events.subscriptions.hub import Message
from pubsub_emulator.events.subscriptions.registry import Subscription
from pubsub_emulator.prism import cheats as prism_cheats
from pubsub_emulator.prism.client import TakenBack
from pubsub_emulator.prism.core.filters import OWNERS, Filter, FilterType
from pubsub_emulator.prism.core.identifiers import sha256
from pubsub_emulator.prism.core.messages import AddService, Service
from pubsub_emulator.prism.core.process import Status
from pubsub_emulator.prism.make import atala_object
from pubsub_emulator.prism.tables.operations import NETWORK, Event, OperationLog, log_filter, read_events, row_of
from pubsub_emulator.spark_audit.spark.deliveries import audit_deliveries

HASH, OTHER = sha256(b"one"), sha256(b"other")


def history() -> tuple[list[bytes], list[Filter]]:
    """Operations of two wallets, and every kind of filter."""
    a, b = Wallet("a"), Wallet("b")
    batch, theirs = a.issue(HASH, OTHER), b.issue(HASH)
    steps = [a.created, b.created, a.update(AddService(Service("s", "T", "a:b"))), batch.signed, theirs.signed]
    steps += [a.revoke(batch, HASH), a.revoke(batch, OTHER), b.revoke(theirs), a.revoke(batch), a.revoke(batch, HASH)]
    steps += [each.update(AddService(Service("t", "T", "a:b")), previous=HASH) for each in (a, b)]
    steps += [b.deactivate(), a.deactivate()]
    filters = [
        Filter(kind, a.suffix if kind in OWNERS else None, status=status)
        for kind in FilterType
        for status in (None, Status.APPLIED, Status.REJECTED)
        if kind is not FilterType.REVOKE_CREDENTIAL_FILTER
    ]
    filters += [Filter(FilterType.REVOKE_CREDENTIAL_FILTER, None, HASH, each) for each in (None, batch.batch_id)]
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
    filters = [filters[0], filters[-1]]  # Spark plans a join for each; the test above compares them all
    out = tmp_path / "out"

    async def story(recorder: DeliveryRecorder) -> None:
        async with running(log, Branches(), recorder=recorder) as node:
            await node.processed(node.chain.build(atala_object(raw[:6])))
            kept = [await node.client.subscribe([each], batches=True, everything=True) for each in filters]
            for turn in range(2):
                for at, each in enumerate(kept):
                    try:
                        async with aclosing(node.client.events(each)) as messages:
                            async for message in messages:
                                kept[at] = message.subscription
                                if message.live:
                                    break
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
            receive(recorder, f"prism {cheat.name}", filters[0], map(row_of, cheat.change(due, others)), events)
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


def receive(recorder: DeliveryRecorder, name: str, each: Filter, rows: Iterable[Row], events: list[Event]) -> None:
    """One stream of these rows from the start, whose last cursor is that of the last event there is."""
    recorder.opened(Subscription(name, (log_filter(each),), Cursor(1, 0), batches=False), name, Cursor(1, 0))
    for row in rows:
        recorder.delivered(name, Message((row,), Cursor(1, row.seq)))
    recorder.ended(name, Cursor(1, events[-1].seq_no), "disconnected")
