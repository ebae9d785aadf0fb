"""The seven use cases, over gRPC."""

from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

import pytest
from support.prism import Wallet, secret
from support.prism_chain import Branches, Running, play, played, until

from pubsub_emulator.events.log.sql_store import SqlStore
from pubsub_emulator.prism.client import ClientSubscription, Message
from pubsub_emulator.prism.core.filters import Filter, FilterType
from pubsub_emulator.prism.core.identifiers import sha256
from pubsub_emulator.prism.core.messages import AddKey, AddService, RemoveKey, Service, Usage
from pubsub_emulator.prism.core.process import Status
from pubsub_emulator.prism.make import atala_object, create_did, issue_batch, public_key
from pubsub_emulator.prism.protocol import prism_pb2 as pb

HASH, OTHER = sha256(b"credential"), sha256(b"another")
Story = Callable[[Running], Coroutine[Any, Any, None]]


async def seen(
    node: Running, subscription: ClientSubscription
) -> tuple[list[pb.SubscriptionEvent], ClientSubscription]:
    """Everything up to the seam."""
    events: list[pb.SubscriptionEvent] = []
    async with aclosing(node.client.events(subscription, reconnect=False)) as messages:
        async for message in messages:
            events += message.events
            subscription = message.subscription
            if message.live:
                break
    return events, subscription


def key(name: str, usage: Usage = Usage.AUTHENTICATION_KEY) -> AddKey:
    return AddKey(public_key(name, usage, secret(name)))


@played()
async def test_use_cases_1_to_4_and_6_each_filter_gives_its_operations(node: Running) -> None:
    """PR-21, PR-22, PR-25, PR-40, PR-41; whoever asks, as operations are public: PR-43."""
    a, b = Wallet("a"), Wallet("b")
    signer = {"m": (Usage.MASTER_KEY, secret("m")), "i": (Usage.ISSUING_KEY, secret("i"))}
    stolen = issue_batch(a.suffix, HASH, "issuing", b.issuing).signed
    batch, theirs = a.issue(HASH, OTHER), b.issue(HASH)
    stale = a.update(AddService(Service("s", "T", "a:b")), previous=HASH)
    updates = [a.update(key("k")), stale, a.update(RemoveKey("k"))]
    revocations = [a.revoke(batch, HASH), a.revoke(batch, OTHER), a.revoke(batch)]
    other = b.revoke(theirs, HASH)
    kind, owner = FilterType.REVOKE_CREDENTIAL_FILTER, [a.created, *updates, batch.signed, *revocations]
    issuer = (FilterType.CREDENTIALS_ISSUANCE_FILTER, FilterType.CREDENTIALS_REVOCATION_FILTER)
    wanted = [
        ([Filter(FilterType.CREATE_DID_FILTER, status=Status.APPLIED)], [a.created, b.created]),
        ([Filter(FilterType.UPDATE_DID_FILTER, a.suffix)], updates),
        ([Filter(each, a.suffix) for each in issuer], [batch.signed, *revocations]),
        ([Filter(kind, None, HASH, batch.batch_id)], [revocations[0], revocations[2]]),
        ([Filter(kind, None, HASH)], [revocations[0], revocations[2], other]),
        ([Filter(FilterType.DID_OWNER_ANY_FILTER, a.suffix)], owner),
    ]
    asked = [await node.client.subscribe(filters) for filters, _ in wanted]
    others = [create_did(signer, signed_with="i"), b.created, b.update(key("k")), theirs.signed, stolen]
    number = 0
    for operations in ([a.created, *others[:3]], [*updates, batch.signed, *others[3:]], [*revocations, other]):
        number = node.chain.anchor_now(*operations)
    await node.processed(number)
    for (filters, operations), where in zip(wanted, asked, strict=True):
        events, _ = await seen(node, where)
        assert [each.operation_id for each in events] == [each.id for each in operations], filters
    assert [each.reason for each in events].count(pb.WRONG_PREVIOUS_HASH) == 1


def mixed(count: int) -> list[bytes]:
    """So many operations of several kinds."""
    found: list[Any] = []
    wallets: list[Wallet] = []
    while len(found) < count:
        wallet = Wallet(f"w{len(wallets)}")
        wallets.append(wallet)
        batch = wallet.issue(HASH)
        found += [wallet.created, wallet.update(key("k")), batch.signed, wallet.revoke(batch, HASH)]
        found += [wallet.update(key("x"), previous=HASH), wallet.deactivate()]
    return [each.raw for each in found[:count]]


@pytest.mark.parametrize("batches", [False, True])
@played()
async def test_use_case_5_away_for_a_thousand_operations(node: Running, batches: bool) -> None:
    """PR-51, PR-52."""
    await node.processed(node.chain.anchor_now(Wallet("first").created))
    where = await node.client.subscribe([Filter(FilterType.ANONYMOUS_ANY_FILTER)], batches=batches)
    _, where = await seen(node, where)
    raw = mixed(1_000)
    for at in range(0, 1_000, 40):
        number = node.chain.build(atala_object(raw[at : at + 40]))
    await node.processed(number)
    messages: list[Message] = []
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


@pytest.mark.parametrize("lag", [0, 2, 5])
def test_use_case_7_the_status_of_an_operation(log: SqlStore, lag: int) -> None:
    """PR-60 to PR-63: scheduled, built, dropped by a reorg, built again, confirmed."""

    async def story(node: Running) -> None:
        chain = node.chain
        chain.build()
        chain.build()
        ids, _ = await node.client.schedule([Wallet("a").created.raw])
        updates, watching = node.watch(
            ids[0], lambda each: (pb.OperationStatus.Name(each.status), each.confirmation_level)
        )
        await until(lambda: chain.pool and updates)
        wanted = [("PENDING", 0)]
        for act, expected in (
            (chain.build_pool, ("IN_BLOCK", 0)),
            (lambda: (chain.drop_to(3), chain.build()), ("PENDING", 0)),
            (chain.build_pool, ("IN_BLOCK", 0)),
            *((chain.build, ("CONFIRMATION_LEVEL", level)) for level in range(1, 3 + lag)),
        ):
            act()
            wanted.append(expected)
            await until(lambda: len(updates) >= len(wanted))
        chain.build()
        await watching
        assert updates == [*wanted, ("APPROVED", 0)]

    play(log, story, Branches(lag), depth=3)
