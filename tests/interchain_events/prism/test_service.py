"""PR-50 to PR-54, PR-60 to PR-63: every answer of the service, and the use cases of subscribers,
over gRPC.
"""

import asyncio
import random
from contextlib import aclosing
from functools import partial, partialmethod
from typing import Any

import grpc
import pytest
from support.prism.prism_chain import Branches, Running, play, played, refused, until
from support.prism.prism_log import Chain
from support.prism.wallet import ANY, Wallet, add, new_key, secret

from interchain_events.events.errors import LimitReached
from interchain_events.events.filters.algebra import OneOf
from interchain_events.events.log.sql_store import SqlStore
from interchain_events.events.subscriptions.cursor import Cursor, encode_cursor, log_tag
from interchain_events.events.subscriptions.streams import Streams
from interchain_events.prism.client import ClientMessage, NodeError, TakenBack
from interchain_events.prism.core.filters import Filter, FilterType, matches
from interchain_events.prism.core.identifiers import METHOD, sha256
from interchain_events.prism.core.ledger import MemoryLedger
from interchain_events.prism.core.messages import RemoveKey, Usage
from interchain_events.prism.core.process import DecidedOperation, Status, process, read_object
from interchain_events.prism.make import Signed, atala_object, create_did, issue_batch
from interchain_events.prism.protocol import prism_pb2 as pb
from interchain_events.prism.service.rpc import NAME
from interchain_events.prism.service.service import PrismLimits
from interchain_events.prism.tables.operations import OperationLog
from interchain_events.prism.tables.processor import Processor
from interchain_events.prism.tables.registry import PrismRegistry

A, HASH = "a" * 64, bytes(32)


async def call(node: Running, method: str, request: Any, answer: Any) -> Any:
    return await node.client._call(method, request, answer.FromString)


async def first(
    node: Running, request: pb.GetSubscriptionEventsStreamRequest
) -> pb.SubscriptionEvents:
    stream = node.client._stream(
        "GetSubscriptionEventsStream", request, pb.SubscriptionEvents.FromString
    )
    try:
        async for message in stream:
            return message  # type: ignore[no-any-return]  # untyped stubs
    except grpc.aio.AioRpcError as error:
        raise NodeError(error.code(), error.details() or "") from error
    raise AssertionError


BAD_FILTERS = [
    ([], "filters: at least one is needed"),
    (
        [pb.SubscriptionFilter(type=pb.ANONYMOUS_ANY_FILTER)] * 65,
        "filters: at most 64 are allowed, not 65",
    ),
    ([pb.SubscriptionFilter()], r"filters\[0\].type: unknown filter type 0"),
    (
        [pb.SubscriptionFilter(type=pb.UPDATE_DID_FILTER)],
        r"did_suffix: UPDATE_DID_FILTER needs the suffix of a DID",
    ),
    (
        [pb.SubscriptionFilter(type=pb.CREATE_DID_FILTER, did_suffix=A)],
        "did_suffix: CREATE_DID_FILTER does not take the suffix of a DID",
    ),
    (
        [pb.SubscriptionFilter(type=pb.UPDATE_DID_FILTER, did_suffix=A.upper())],
        "a DID, or its suffix of 64 hex digits in lower case, is needed",
    ),
    (
        [pb.SubscriptionFilter(type=pb.REVOKE_CREDENTIAL_FILTER)],
        "credential_hash: 32 bytes are needed, not 0",
    ),
    (
        [pb.SubscriptionFilter(type=pb.CREATE_DID_FILTER, credential_hash=HASH)],
        "only REVOKE_CREDENTIAL_FILTER takes",
    ),
    (
        [
            pb.SubscriptionFilter(
                type=pb.REVOKE_CREDENTIAL_FILTER, credential_hash=HASH, credential_batch_id="x"
            )
        ],
        "credential_batch_id: 64",
    ),
    (
        [pb.SubscriptionFilter(type=pb.ANONYMOUS_ANY_FILTER, statuses=[0])],
        "statuses: unknown status 0",
    ),
]


@played()
async def test_pr_50_every_field_of_a_filter_is_checked(node: Running) -> None:
    for filters, words in BAD_FILTERS:
        request = pb.NewSubscriptionRequest(filters=filters)
        answer = call(node, "NewSubscription", request, pb.NewSubscriptionResponse)
        await refused(answer, grpc.StatusCode.INVALID_ARGUMENT, words)


@played(on="any_log")
async def test_pr_50_a_filter_may_name_its_did_as_a_whole(node: Running, any_log: SqlStore) -> None:
    wallet = Wallet("a")
    names = (wallet.suffix, METHOD + wallet.suffix, wallet.created.did)
    await node.client.subscribe([Filter(FilterType.UPDATE_DID_FILTER, each) for each in names])
    filters = any_log.database.select("SELECT did_suffix FROM subscription_filters")
    assert filters == [(wallet.suffix,)]
    bad = [Filter(FilterType.UPDATE_DID_FILTER, f"{METHOD}{A}:AAAA")]
    await refused(
        node.client.subscribe(bad),
        grpc.StatusCode.INVALID_ARGUMENT,
        r"filters\[0\].did_suffix: the",
    )


@played(on="any_log")
async def test_pr_40_owners_are_told_of_their_storage_entries(node: Running) -> None:
    owner, other = Wallet("a", stores=True), Wallet("b", stores=True)
    entry = owner.store(b"1")
    late = owner.change(entry, b"3")
    subscribed = [
        await node.client.subscribe([Filter(kind, METHOD + owner.suffix)])
        for kind in (FilterType.STORAGE_ENTRIES_FILTER, FilterType.DID_OWNER_ANY_FILTER)
    ]
    changed = owner.change(entry, b"2")
    signed = (owner.created, other.created, other.store(b"x"), entry, changed, late)
    await node.processed(node.chain.anchor_now(*signed))
    stored, _ = await node.seen(subscribed[0])
    assert [(each.seq_no, each.type, each.reason) for each in stored] == [
        (4, pb.CREATE_STORAGE_ENTRY, pb.NONE),
        (5, pb.UPDATE_STORAGE_ENTRY, pb.NONE),
        (6, pb.UPDATE_STORAGE_ENTRY, pb.WRONG_PREVIOUS_HASH),
    ]
    assert {each.storage_entry_id for each in stored} == {entry.hash.hex()}
    assert {each.did_suffix for each in stored} == {owner.suffix}
    everything, _ = await node.seen(subscribed[1])
    assert [each.seq_no for each in everything] == [1, 4, 5, 6]
    assert everything[0].storage_entry_id == ""


@played(on="any_log")
async def test_pr_41_an_event_says_that_the_whole_batch_was_revoked(node: Running) -> None:
    wallet = Wallet("a")
    batch = wallet.issue(HASH, b"x" * 32)
    watched = Filter(FilterType.REVOKE_CREDENTIAL_FILTER, None, HASH)
    where = await node.client.subscribe([watched])
    signed = (wallet.created, batch.signed, wallet.revoke(batch, HASH), wallet.revoke(batch))
    await node.processed(node.chain.anchor_now(*signed))
    found, _ = await node.seen(where)
    assert [(each.seq_no, each.revokes_whole_batch) for each in found] == [(3, False), (4, True)]


@played(on="any_log")
async def test_pr_50_to_pr_54_subscriptions_are_stored_as_pr_30_and_pr_31_say(
    node: Running, any_log: SqlStore
) -> None:
    await node.processed(node.chain.anchor_now(Wallet("a").created))
    both = [
        Filter(FilterType.UPDATE_DID_FILTER, A, status=each)
        for each in (Status.APPLIED, Status.REJECTED)
    ]
    where = await node.client.subscribe(
        [*both, Filter(FilterType.REVOKE_CREDENTIAL_FILTER, None, HASH, A)]
    )
    key = sha256(where.token.encode())
    with any_log.database.transaction() as session:
        ((token, after, batches, seq_no, epoch),) = session.run("SELECT * FROM subscriptions")
        filters = session.run("SELECT * FROM subscription_filters ORDER BY filter_no")
    assert (bytes(token), bytes(after), bool(batches), seq_no, epoch) == (
        key,
        Wallet("a").created.id,
        False,
        1,
        0,
    )
    assert [
        (row[1], row[2], row[3], row[4], row[5] and bytes(row[5]), row[6]) for row in filters
    ] == [
        (0, "UPDATE_DID_FILTER", A, None, None, None),
        (1, "REVOKE_CREDENTIAL_FILTER", None, None, HASH, A),
    ]
    await node.client.cancel(where)
    with any_log.database.transaction() as session:
        assert (
            session.run("SELECT 1 FROM subscriptions UNION ALL SELECT 1 FROM subscription_filters")
            == []
        )


@played(on="any_log")
async def test_pr_51_where_a_stream_begins(node: Running) -> None:
    wallets = [Wallet(name) for name in "abc"]
    request = pb.NewSubscriptionRequest(
        filters=[pb.SubscriptionFilter(type=pb.ANONYMOUS_ANY_FILTER)]
    )
    empty = await call(node, "NewSubscription", request, pb.NewSubscriptionResponse)
    assert empty.events_after == b""
    await node.processed(node.chain.anchor_now(wallets[0].created, wallets[1].created))
    made = await call(node, "NewSubscription", request, pb.NewSubscriptionResponse)
    assert made.events_after == wallets[1].created.id
    await node.processed(node.chain.anchor_now(wallets[2].created))
    token = made.subscription_token
    for start, seq_no in (
        ({}, 1),
        ({"events_after": b""}, 1),
        ({"since_subscription": False}, 1),
        ({"since_subscription": True}, 3),
        ({"events_after": wallets[0].created.id}, 2),
        ({"cursor": made.cursor}, 3),
        ({"cursor": empty.cursor}, 1),
    ):
        found = await first(
            node, pb.GetSubscriptionEventsStreamRequest(subscription_token=token, **start)
        )
        assert [each.seq_no for each in found.events] == [seq_no], start
    place = found.events[0].position
    assert (place.number, place.hash, place.time) == (2, node.chain.blocks[1][0].hash, 12_000)
    bad = grpc.StatusCode.INVALID_ARGUMENT
    for start, code, words in (
        ({"events_after": HASH}, bad, "events_after: no processed operation"),
        ({"events_after": b"x"}, bad, "events_after: an operation id has 32 bytes, not 1"),
        ({"cursor": "x"}, bad, "cursor: the cursor is damaged"),
        ({"cursor": ""}, bad, "cursor: the cursor is damaged"),
    ):
        request = pb.GetSubscriptionEventsStreamRequest(subscription_token=token, **start)
        await refused(first(node, request), code, words)
    unknown = pb.GetSubscriptionEventsStreamRequest(subscription_token="x", cursor="x")  # noqa: S106  # no password
    await refused(
        first(node, unknown),
        grpc.StatusCode.NOT_FOUND,
        "subscription_token: no subscription has this token",
    )


@played(limits=PrismLimits(heartbeat_seconds=0.05))
async def test_an_idle_stream_has_heartbeats(node: Running) -> None:
    """A client can tell a stream without events from a connection that is gone."""
    await node.processed(node.chain.anchor_now(Wallet("a").created))
    where = await node.client.subscribe([Filter(FilterType.DID_OWNER_ANY_FILTER, A)])
    async with aclosing(node.client.events(where)) as stream:
        found = [await anext(stream) for _ in range(4)]
    assert [len(message.events) for message in found] == [0] * 4
    assert [message.live for message in found[1:]] == [True] * 3
    assert len({message.subscription.cursor for message in found[1:]}) == 1


@played()
async def test_pr_6_a_cursor_of_the_event_log_is_foreign(node: Running, log: SqlStore) -> None:
    where = await node.client.subscribe([ANY])
    foreign = encode_cursor(Cursor(0, 0), log_tag("net", log.id))
    request = pb.GetSubscriptionEventsStreamRequest(subscription_token=where.token, cursor=foreign)
    await refused(first(node, request), grpc.StatusCode.INVALID_ARGUMENT, "of another log")
    beyond = encode_cursor(Cursor(0, 9), node.service.events.tag)
    request = pb.GetSubscriptionEventsStreamRequest(subscription_token=where.token, cursor=beyond)
    await refused(first(node, request), grpc.StatusCode.INVALID_ARGUMENT, "beyond the end")


@played(on="any_log")
async def test_pr_51_a_cursor_beyond_a_cut_ends_with_where_to_resume(
    node: Running,
) -> None:
    a, b, c = (Wallet(name) for name in "abc")
    where = await node.client.subscribe([ANY], everything=True)
    await node.processed(node.chain.anchor_now(a.created))
    await node.processed(node.chain.anchor_now(b.created))
    _, where = await node.seen(where)
    node.chain.drop_to(2)
    node.chain.anchor_now(c.created)
    await until(lambda: node.service.processor.position().epoch == 1)
    await until(lambda: node.service.processor.position().seq_no == 2)
    with pytest.raises(TakenBack) as found:
        await node.seen(where)
    assert (found.value.seq_no, found.value.operation_id) == (1, a.created.id)
    events, _ = await node.seen(found.value.subscription)
    assert [each.operation_id for each in events] == [c.created.id]
    later = pb.GetSubscriptionEventsStreamRequest(
        subscription_token=where.token, cursor=where.cursor
    )
    await refused(first(node, later), grpc.StatusCode.FAILED_PRECONDITION, "reverted")


@played()
async def test_pr_53_cancelling_ends_streams_and_forgets(node: Running) -> None:
    where = await node.client.subscribe([ANY])
    stream = node.client.events(where, reconnect=False)
    assert (await anext(stream)).live
    await node.client.cancel(where)
    await refused(anext(stream), grpc.StatusCode.CANCELLED)
    await refused(
        node.client.cancel(where), grpc.StatusCode.NOT_FOUND, "no subscription has this token"
    )
    stream = node.client.events(where, reconnect=False)
    await refused(anext(stream), grpc.StatusCode.NOT_FOUND, "no subscription has this token")


@played(limits=PrismLimits(heartbeat_seconds=0.1))
async def test_pr_53_another_process_cancels_at_the_next_heartbeat(
    node: Running, log: SqlStore
) -> None:
    where = await node.client.subscribe([ANY])
    stream = node.client.events(where, reconnect=False)
    await anext(stream)
    PrismRegistry(log.database).cancel(where.token)
    await refused(anext(stream), grpc.StatusCode.CANCELLED)


@played()
async def test_pr_52_pages_without_a_match_are_heartbeats(
    node: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OperationLog, "read", partialmethod(OperationLog.read, span=20))
    await node.processed(
        node.chain.build(atala_object([Wallet(f"{at}").created.raw for at in range(45)]))
    )
    where = await node.client.subscribe(
        [Filter(FilterType.DID_OWNER_ANY_FILTER, A)], everything=True
    )
    found = []
    async with aclosing(node.client.events(where)) as stream:
        async for message in stream:
            found.append(
                (node.service.events.cursor(message.subscription.cursor).seq, message.live)
            )
            if message.live:
                break
    assert found == [(20, False), (40, False), (45, True)]


@played()
async def test_pr_52_no_stream_is_live_before_it_has_all_earlier_rows(
    node: Running,
) -> None:
    node.service.events.notice = lambda: None  # type: ignore[method-assign]  # it looks by itself, once a second
    await node.processed(node.chain.anchor_now(Wallet("a").created, Wallet("b").created))
    where = await node.client.subscribe([ANY], everything=True)
    async with aclosing(node.client.events(where)) as stream:
        found = [await anext(stream) for _ in range(3)]
    assert [(len(each.events), each.live) for each in found] == [(1, False), (1, False), (0, True)]


@played(limits=PrismLimits(subscriptions_per_client=3, streams_per_client=2))
async def test_pr_54_limits_have_names(node: Running) -> None:
    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
    held = [await node.client.subscribe([ANY]) for _ in range(3)]
    await refused(node.client.subscribe([ANY]), exhausted, "3 subscriptions")
    await node.client.cancel(held.pop())
    held.append(await node.client.subscribe([ANY]))
    streams = [node.client.events(each, reconnect=False) for each in held]
    for each in streams[:2]:
        await anext(each)
    await refused(anext(streams[2]), exhausted, "2 streams")
    ids, _ = await node.client.schedule([Wallet("a").created.raw])
    await refused(anext(node.client.statuses(ids[0])), exhausted, "2 streams")
    await streams[0].aclose()
    await until(lambda: node.service.events.open_streams == 1)
    assert (await anext(node.client.statuses(ids[0]))).status == pb.PENDING


@played(limits=PrismLimits(full_reads=1))
async def test_pr_54_sync_ups_of_everything_from_the_start_are_few(node: Running) -> None:
    raw = [Wallet(f"{at}").created.raw for at in range(30)]
    await node.processed(node.chain.build(atala_object(raw)))
    where = await node.client.subscribe([ANY], everything=True)
    with node.service.events.held("x", reads_all=True):
        await refused(
            anext(node.client.events(where, reconnect=False)),
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "from the start",
        )
        now = await node.client.subscribe([ANY])
        assert (await anext(node.client.events(now, reconnect=False))).live


def test_pr_54_one_client_does_not_take_all_places_of_those_who_read_everything() -> None:
    streams = Streams(PrismLimits(full_reads=4))
    with streams.held("slow", reads_all=True), streams.held("slow", reads_all=True):
        with (
            pytest.raises(LimitReached, match="in at most 2 streams"),
            streams.held("slow", reads_all=True),
        ):
            pytest.fail("it has half of the places")
        others = (streams.held(name, reads_all=True) for name in ("other", "third"))
        with (
            streams.held("slow"),
            next(others),
            next(others),
            pytest.raises(LimitReached, match="4 streams"),
        ):
            streams.held("fourth", reads_all=True).__enter__()


@played()
async def test_pr_53_shutdown_is_unavailable(node: Running) -> None:
    where = await node.client.subscribe([ANY])
    stream = node.client.events(where, reconnect=False)
    await anext(stream)
    node.service.events.stop()
    await refused(anext(stream), grpc.StatusCode.UNAVAILABLE)
    await refused(node.client.subscribe([ANY]), grpc.StatusCode.UNAVAILABLE, "shutdown")


# Channel 7


@played(on="any_log")
async def test_pr_63_what_may_be_scheduled(node: Running) -> None:
    a = Wallet("a")
    bad = grpc.StatusCode.INVALID_ARGUMENT
    for operations, words in (
        ([], "at least one operation is needed"),
        ([a.created.raw] * 2, r"\[1\]: the request has this operation twice"),
        ([a.created.raw, b"\xff"], r"\[1\]"),
        ([b""], r"\[0\]: UNSUPPORTED_OPERATION"),
        ([a.created.raw + b"\x4a\x00"], r"\[0\]: MALFORMED_OPERATION"),
    ):
        await refused(node.client.schedule(operations), bad, words)
    big = [Wallet(f"{at}").created.raw for at in range(80)]
    await refused(node.client.schedule(big), bad, "at most 16384")
    ids, _ = await node.client.schedule([a.created.raw])
    assert ids == [a.created.id]
    exists = grpc.StatusCode.ALREADY_EXISTS
    await refused(
        node.client.schedule([Wallet("b").created.raw, a.created.raw]), exists, r"\[1\].*RECEIVED"
    )
    await until(lambda: node.chain.pool)
    await node.processed(node.chain.build_pool())
    await refused(node.client.schedule([a.created.raw]), exists, "APPLIED")
    assert not node.service.scheduled.waiting()


@played(on="any_log", depth=3)
async def test_pr_63_cancelling(node: Running) -> None:
    a, failed = Wallet("a"), grpc.StatusCode.FAILED_PRECONDITION
    node.chain.is_away = True
    ids, token = await node.client.schedule([a.created.raw])
    await refused(
        node.client.cancel_operation(HASH, token), grpc.StatusCode.NOT_FOUND, "no operation"
    )
    await refused(
        node.client.cancel_operation(b"x", token), grpc.StatusCode.INVALID_ARGUMENT, "32 bytes"
    )
    await refused(node.client.cancel_operation(ids[0], "x"), failed, "token")
    await node.client.cancel_operation(ids[0], token)
    await refused(node.client.cancel_operation(ids[0], token), failed, "CANCELLED")
    found = [each.status async for each in node.client.statuses(ids[0])]
    assert found == [pb.CANCELLED]
    node.chain.is_away = False
    assert not node.service.scheduled.waiting()
    ids, token = await node.client.schedule([a.created.raw, Wallet("b").created.raw])
    await until(lambda: node.chain.pool)
    assert len(node.chain.pool) == 1
    node.chain.build_pool()
    await until(lambda: node.service.branch.place(ids[0]) is not None)
    await refused(node.client.cancel_operation(ids[0], token), failed, "in a block")


@played(limits=PrismLimits(pending_blocks=3))
async def test_pr_63_what_waits_too_long_is_cancelled(node: Running) -> None:
    await node.processed(node.chain.build())  # from the block that the node knows, it counts
    ids, _ = await node.client.schedule([Wallet("a").created.raw])
    found, watching = node.watch(ids[0])
    await until(lambda: found)
    for _ in range(2):
        await node.processed(node.chain.build())
        assert found == [pb.PENDING]
    for _ in range(2):  # one more where the node first saw the operation in the block after
        await node.processed(node.chain.build())
    await watching
    assert found == [pb.PENDING, pb.CANCELLED]


@played(depth=5, limits=PrismLimits(pending_blocks=3))
async def test_pr_63_what_others_anchored_is_given_up_for_running_streams_only(
    node: Running,
) -> None:
    created = Wallet("a").created
    node.chain.anchor_now(created)
    await until(lambda: node.service.branch.place(created.id) is not None)
    found, watching = node.watch(created.id)
    await until(lambda: found == [pb.IN_BLOCK])
    node.chain.drop_to(1)
    node.chain.build()
    await until(lambda: found == [pb.IN_BLOCK, pb.PENDING])
    assert (await anext(node.client.statuses(created.id))).status == pb.PENDING
    for _ in range(3):
        node.chain.build()
        await until(lambda: node.service.branch.number == len(node.chain.blocks))
    await watching
    assert found == [pb.IN_BLOCK, pb.PENDING, pb.CANCELLED]
    await refused(
        anext(node.client.statuses(created.id)), grpc.StatusCode.NOT_FOUND, "no operation"
    )


def test_pr_63_what_was_not_handed_over_is_handed_over_later(log: SqlStore) -> None:
    chain = Branches()

    async def before(node: Running) -> None:
        node.chain.is_away = True
        await node.client.schedule([Wallet("a").created.raw])

    async def after(node: Running) -> None:
        await until(lambda: node.chain.pool)
        await node.processed(node.chain.build_pool())
        assert node.service.processor.position().seq_no == 1

    play(log, before, chain)
    chain.is_away = False
    chain._changed = asyncio.Event()
    play(log, after, chain)


@played(depth=20)
async def test_pr_63_what_a_reorganisation_dropped_is_handed_over_again(node: Running) -> None:
    await until(lambda: node.service.branch.number == 1)
    ids, _ = await node.client.schedule([Wallet("a").created.raw])
    await until(lambda: node.chain.pool)
    number = node.chain.build_pool()
    await until(lambda: node.service.branch.place(ids[0]) is not None)
    node.chain.drop_to(number - 1)
    node.chain.pool.clear()  # the transaction is lost with its block
    for at in range(number, 9):
        assert not node.chain.pool
        assert node.chain.build() == at
        await until(lambda at=at: node.service.branch.number == at)
    assert not node.chain.pool
    node.chain.build()  # the eighth best block since it was handed over at the first
    await until(lambda: node.chain.pool)
    assert len(node.chain.pool) == 1
    node.chain.build_pool()
    await until(lambda: node.service.branch.place(ids[0]) is not None)


@played(chain=partial(Branches, is_away=True))
async def test_a_node_waits_for_its_chain(node: Running) -> None:
    where = await node.client.subscribe([ANY], everything=True)
    assert node.service.processor.position().seq_no == 0
    node.chain.is_away = False
    number = node.chain.anchor_now(Wallet("a").created)
    await node.processed(number)
    events, _ = await node.seen(where)
    assert [each.seq_no for each in events] == [1]


@played()
async def test_pr_61_unknown_operations_are_not_found(node: Running) -> None:
    await refused(anext(node.client.statuses(HASH)), grpc.StatusCode.NOT_FOUND, "no operation")
    await refused(anext(node.client.statuses(b"x")), grpc.StatusCode.INVALID_ARGUMENT, "32 bytes")


@played(depth=2)
async def test_pr_60_rejected_is_not_said_while_a_copy_may_still_apply(node: Running) -> None:
    a = Wallet("a")
    made = a.update(add("s"))
    node.chain.anchor_now(made)
    node.chain.build()
    await node.processed(node.chain.build() - 2)
    assert (await anext(node.client.statuses(made.id))).status == pb.REJECTED
    node.chain.anchor_now(a.created, made)
    await until(lambda: node.service.branch.place(made.id) is not None)
    seen, watching = node.watch(made.id)
    await until(lambda: seen)
    node.chain.build()
    await until(lambda: len(seen) == 2)
    node.chain.build()
    await watching
    assert seen == [pb.IN_BLOCK, pb.CONFIRMATION_LEVEL, pb.APPROVED]


# Filters on the databases


def test_pr_40_sql_matches_what_the_predicate_matches(any_log: SqlStore) -> None:
    draw = random.Random(5)
    a, b = Wallet("a"), Wallet("b")
    batches = [a.issue(HASH), a.issue(sha256(b"x")), b.issue(HASH)]
    pool: list[Signed] = [a.created, b.created, *(each.signed for each in batches)]
    for wallet in (a, b):
        pool += [wallet.update(add(f"{at}")) for at in range(3)]
    owners = (a, a, b)
    for owner, batch in zip(owners, batches, strict=True):
        pool += [owner.revoke(batch, HASH), owner.revoke(batch, sha256(b"x")), owner.revoke(batch)]
    pool += [a.deactivate(), Signed(b"", b""), b.revoke(batches[0], HASH)]
    chain, ledger, outcomes = Chain(any_log), MemoryLedger(), list[DecidedOperation]()
    for _ in range(40):
        objects = [atala_object([draw.choice(pool).raw for _ in range(3)]) for _ in range(2)]
        chain.build(*objects)
        found = [process(ledger, each) for raw in objects for each in read_object(raw) or ()]
        outcomes += [each for each in found if each is not None]
    Processor(any_log.database, any_log, depth=0).run()
    assert len({each.status for each in outcomes}) == 2
    registry, operations = PrismRegistry(any_log.database), OperationLog(any_log.database)
    suffixes, hashes = (a.suffix, b.suffix), (HASH, sha256(b"x"))
    filters = [
        Filter(kind, suffix, credential, batch, status)
        for kind in FilterType
        for suffix in (suffixes if kind <= FilterType.CREDENTIALS_REVOCATION_FILTER else (None,))
        for credential in (hashes if kind is FilterType.REVOKE_CREDENTIAL_FILTER else (None,))
        for batch in (
            (None, batches[0].batch_id) if kind is FilterType.REVOKE_CREDENTIAL_FILTER else (None,)
        )
        for status in (None, Status.APPLIED, Status.REJECTED)
    ]
    for _ in range(60):
        chosen = draw.sample(filters, draw.randrange(1, 5))
        token, _ = registry.add(chosen, Cursor(0, 0), "me")
        page = operations.read(0, 500, OneOf(*registry.get(token).filters))
        wanted = [
            number
            for number, row in enumerate(outcomes, 1)
            if any(matches(each, row) for each in chosen)
        ]
        assert [each.seq for each in page.rows] == wanted


def test_the_service_has_its_name() -> None:
    assert NAME == "eventplane.prism.v1.PrismNode"


CREDENTIAL, OTHER = sha256(b"credential"), sha256(b"another")


@played()
async def test_use_cases_1_to_4_and_6_each_filter_gives_its_operations(node: Running) -> None:
    """PR-21, PR-22, PR-25, PR-40, PR-41; whoever asks, as operations are public: PR-43."""
    a, b = Wallet("a"), Wallet("b")
    signer = {"m": (Usage.MASTER_KEY, secret("m")), "i": (Usage.ISSUING_KEY, secret("i"))}
    stolen = issue_batch(a.suffix, CREDENTIAL, "issuing", b.issuing).signed
    batch, theirs = a.issue(CREDENTIAL, OTHER), b.issue(CREDENTIAL)
    stale = a.update(add("s"), previous=CREDENTIAL)
    updates = [a.update(new_key("k")), stale, a.update(RemoveKey("k"))]
    revocations = [a.revoke(batch, CREDENTIAL), a.revoke(batch, OTHER), a.revoke(batch)]
    other = b.revoke(theirs, CREDENTIAL)
    kind, owner = (
        FilterType.REVOKE_CREDENTIAL_FILTER,
        [a.created, *updates, batch.signed, *revocations],
    )
    issuer = (FilterType.CREDENTIALS_ISSUANCE_FILTER, FilterType.CREDENTIALS_REVOCATION_FILTER)
    wanted = [
        ([Filter(FilterType.CREATE_DID_FILTER, status=Status.APPLIED)], [a.created, b.created]),
        ([Filter(FilterType.UPDATE_DID_FILTER, a.suffix)], updates),
        ([Filter(each, a.suffix) for each in issuer], [batch.signed, *revocations]),
        ([Filter(kind, None, CREDENTIAL, batch.batch_id)], [revocations[0], revocations[2]]),
        ([Filter(kind, None, CREDENTIAL)], [revocations[0], revocations[2], other]),
        ([Filter(FilterType.DID_OWNER_ANY_FILTER, a.suffix)], owner),
    ]
    asked = [await node.client.subscribe(filters) for filters, _ in wanted]
    others = [
        create_did(signer, signed_with="i"),
        b.created,
        b.update(new_key("k")),
        theirs.signed,
        stolen,
    ]
    number = 0
    for operations in (
        [a.created, *others[:3]],
        [*updates, batch.signed, *others[3:]],
        [*revocations, other],
    ):
        number = node.chain.anchor_now(*operations)
    await node.processed(number)
    for (filters, operations), where in zip(wanted, asked, strict=True):
        events, _ = await node.seen(where)
        assert [each.operation_id for each in events] == [each.id for each in operations], filters
    assert [each.reason for each in events].count(pb.WRONG_PREVIOUS_HASH) == 1


def mixed(count: int) -> list[bytes]:
    """So many operations of several kinds."""
    found: list[Any] = []
    wallets: list[Wallet] = []
    while len(found) < count:
        wallet = Wallet(f"w{len(wallets)}")
        wallets.append(wallet)
        batch = wallet.issue(CREDENTIAL)
        found += [
            wallet.created,
            wallet.update(new_key("k")),
            batch.signed,
            wallet.revoke(batch, CREDENTIAL),
        ]
        found += [wallet.update(new_key("x"), previous=CREDENTIAL), wallet.deactivate()]
    return [each.raw for each in found[:count]]


@pytest.mark.parametrize("batches", [False, True])
@played()
async def test_use_case_5_away_for_a_thousand_operations(node: Running, batches: bool) -> None:
    """PR-51, PR-52."""
    await node.processed(node.chain.anchor_now(Wallet("first").created))
    where = await node.client.subscribe([Filter(FilterType.ANONYMOUS_ANY_FILTER)], batches=batches)
    _, where = await node.seen(where)
    raw = mixed(1_000)
    for at in range(0, 1_000, 40):
        number = node.chain.build(atala_object(raw[at : at + 40]))
    await node.processed(number)
    messages: list[ClientMessage] = []
    async with aclosing(node.client.events(where)) as stream:
        async for message in stream:
            messages.append(message)
            if message.live and not message.events:
                node.chain.anchor_now(Wallet("last").created)
            if message.live and message.events:
                break
    events = [each for message in messages for each in message.events]
    assert [each.signed_operation for each in events] == [*raw, Wallet("last").created.raw]
    assert [each.seq_no for each in events] == list(range(2, 1_003))
    sizes = {len(message.events) for message in messages}
    assert max(sizes) == (100 if batches else 1)
