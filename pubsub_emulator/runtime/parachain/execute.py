"""The execution of a block: the inherent, then the signed extrinsics.

Author and verifier run the same code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from pubsub_emulator.primitives.header import DigestItem, Header
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.accounts.publisher import Published, Sent, sent_upward
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.abridged import progress
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome
from pubsub_emulator.runtime.framework.events import EventRecord
from pubsub_emulator.runtime.framework.message_chains import ZERO_HEAD, QueueLinks
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery, apply
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS, SubscriptionHandler
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan
from pubsub_emulator.runtime.pallet_subscriber.storage import LAST_RELAY_PARENT
from pubsub_emulator.runtime.parachain.accounts import execute_superuser, parachain_accounts
from pubsub_emulator.runtime.parachain.block import Inherent, QueueHeads, queue_heads
from pubsub_emulator.runtime.parachain.governance import execute_downward, is_root_call
from pubsub_emulator.runtime.parachain.ledger import (
    BlockLedger,
    accesses,
    added_bytes,
    make_ledger,
    own_bytes,
    own_state_of,
)
from pubsub_emulator.runtime.parachain.signed_body import NO_EXTRINSICS, Body, note_time
from pubsub_emulator.runtime.parachain.storage import (
    HRMP_WATERMARK,
    LAST_DMQ_MQC_HEAD,
    LAST_HRMP_MQC_HEADS,
    LAST_PROCESSED_DOWNWARD,
    LAST_PROCESSED_HRMP,
    queue_progress,
)

_ZERO: Final = RelayBlockNumber(0)


@dataclass(frozen=True, slots=True)
class BlockOutcome:
    """The result of a valid block."""

    state: State
    state_root: Hash
    events: tuple[EventRecord, ...]
    deliveries: tuple[Delivery, ...]
    ledger: BlockLedger
    plan: Plan
    extrinsics: tuple[DispatchOutcome, ...] = ()
    """The outcome of each signed extrinsic."""
    upward: tuple[Published | Sent, ...] = ()
    """The published entries and the messages that calls sent to the relay chain."""
    digest: tuple[DigestItem, ...] = ()
    """The header's digest without the seal."""
    hrmp_watermark: RelayBlockNumber = _ZERO
    """The relay block up to which all horizontal messages have been processed."""


def execute_block(  # noqa: PLR0917  # the parts of a block
    storage: Storage,
    spec: RuntimeSpec,
    parent: Header,
    number: ParaBlockNumber,
    digest: tuple[DigestItem, ...],
    inherent: Inherent,
    plan: Plan,
    handlers: Mapping[str, SubscriptionHandler] = HANDLERS,
    extrinsics: Body = NO_EXTRINSICS,
) -> BlockOutcome:
    """Execute a block and commit its state.

    `storage` must be over the parent's state, and must record reads for the ledger. `digest` is
    the header's digest at the beginning. The block adds an item if it applies new code. `plan` is
    the result of the walk over the block's proof. `extrinsics` run after the inherent. Raises
    `BadBody` for an extrinsic that cannot be part of the block.
    """
    before = storage.state.fork()
    own_state = own_state_of(before, plan.own_state)
    # What the block reads is counted at once, until its extrinsics run.
    storage.reader = own_state.read
    system.initialize(storage, number, parent.hash(), digest)
    system.note_extrinsic(storage, 0)
    if spec.accounts:
        note_time(storage, plan.statics)
    watermark = _note_messages(storage, inherent, plan.statics)
    deliveries = apply(storage, spec, plan, inherent.relay_parent_number, handlers[spec.handler])
    calls = 0
    for message in inherent.messages.downward:
        if is_root_call(message.msg):
            calls += 1
            if plan.calls is not None and calls > plan.calls:
                # The block has no room for the reads of this call.
                continue
        if spec.accounts:
            execute_superuser(storage, parachain_accounts(spec).calls, message.msg)
        else:
            execute_downward(storage, message.msg)
    # The ledger counts the reads so far separately from those of the extrinsics.
    storage.reader = None
    reads = tuple(storage.recorded or ())
    outcomes = extrinsics.run(storage, spec)
    system.note_applied(storage, 1 + len(outcomes))
    upward = sent_upward(storage)
    log = tuple(system.finalize(storage))
    cost = (extrinsics.length, added_bytes(before, reads, storage.recorded or ()))
    time = accesses(len(storage.recorded or ()), len(storage.written()), plan)
    own_state.add(reads)
    ledger = make_ledger(plan, inherent.messages_used, own_bytes(own_state), cost, time)
    logs = system.block_digest(storage, digest)
    root = storage.commit()
    return BlockOutcome(
        state=storage.state,
        state_root=root,
        events=log,
        deliveries=deliveries,
        ledger=ledger,
        plan=plan,
        extrinsics=outcomes,
        upward=upward,
        digest=logs,
        hrmp_watermark=watermark,
    )


def _note_messages(storage: Storage, inherent: Inherent, statics: StaticValues) -> RelayBlockNumber:
    """Store the progress in the message queues, and return the watermark (UP-8, UP-10)."""
    known = LAST_DMQ_MQC_HEAD.get(storage)
    head = downward_heads(storage, inherent, statics).kept
    if head != known:
        LAST_DMQ_MQC_HEAD.put(storage, head)
    before = LAST_HRMP_MQC_HEADS.get(storage)
    # The heads of closed channels are dropped. If a channel is opened again, its hash chain starts
    # from the zero head.
    heads = {
        sender: queue.kept
        for sender, queue in horizontal_heads(storage, inherent, statics).items()
        if sender in statics.hrmp_heads and queue.kept != ZERO_HEAD
    }
    if heads != before:
        LAST_HRMP_MQC_HEADS.put(storage, heads)
    earlier = queue_progress(storage, LAST_RELAY_PARENT.get(storage))
    present = progress(inherent.messages, earlier, inherent.relay_parent_number)
    if inherent.messages.downward:
        LAST_PROCESSED_DOWNWARD.put(storage, present.marks.downward)
    LAST_PROCESSED_HRMP.put(storage, present.marks.horizontal)
    HRMP_WATERMARK.put(storage, present.watermark)
    return present.watermark


_NO_LINKS: Final = QueueLinks()


def downward_heads(storage: Storage, inherent: Inherent, statics: StaticValues) -> QueueHeads:
    """Return the heads of the downward queue after a block's messages."""
    return queue_heads(
        LAST_DMQ_MQC_HEAD.get(storage),
        inherent.messages.links.get(None, _NO_LINKS),
        statics.dmq_head,
        partial(LAST_RELAY_PARENT.get, storage),
        inherent.relay_parent_number,
    )


def horizontal_heads(
    storage: Storage, inherent: Inherent, statics: StaticValues
) -> dict[ParaId, QueueHeads]:
    """Return the heads of all channels after a block's messages.

    Senders that are unknown to the relay chain are included.
    """
    heads = LAST_HRMP_MQC_HEADS.get(storage)
    last = partial(LAST_RELAY_PARENT.get, storage)
    sent = {
        sender: links for sender, links in inherent.messages.links.items() if sender is not None
    }
    new_heads: dict[ParaId, QueueHeads] = {}
    for sender in sorted({**heads, **statics.hrmp_heads, **sent}):
        links = sent.get(sender, _NO_LINKS)
        target = statics.hrmp_heads.get(sender, _NO_HEAD)
        new_heads[sender] = queue_heads(
            heads.get(sender, ZERO_HEAD), links, target, last, inherent.relay_parent_number
        )
    return new_heads


_NO_HEAD: Final = Hash(b"")
"""The target for a sender that the relay chain does not know. No messages lead to it."""
