"""Executing a block: what its inherent does to the parachain's state. Author and verifier run the same lines."""

from collections.abc import Mapping
from dataclasses import dataclass

from pubsub_emulator.primitives.header import DigestItem, Header
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber, ParaId
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.events import EventRecord, records
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery, apply
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, decode_spec
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS, SubscriptionHandler
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan
from pubsub_emulator.runtime.parachain.block import (
    HorizontalMessages,
    InboundDownwardMessage,
    Inherent,
    message_chain,
)
from pubsub_emulator.runtime.parachain.genesis import LAST_DMQ_MQC_HEAD, LAST_HRMP_MQC_HEADS
from pubsub_emulator.runtime.parachain.governance import CODE, execute_downward
from pubsub_emulator.runtime.parachain.ledger import Ledger, make_ledger, own_state_bytes
from pubsub_emulator.runtime.parachain.static_keys import NO_MESSAGES, StaticValues


@dataclass(frozen=True, slots=True)
class BlockOutcome:
    """What a valid block made of its parent's state."""

    state: State
    state_root: Hash
    events: tuple[EventRecord, ...]
    deliveries: tuple[Delivery, ...]
    ledger: Ledger
    plan: Plan


def runtime_spec(storage: Storage) -> RuntimeSpec:
    """The runtime that the next block is executed with."""
    return decode_spec(storage.get(CODE) or b"")


def execute_block(  # noqa: PLR0917  # a block has this many parts
    storage: Storage,
    spec: RuntimeSpec,
    parent: Header,
    number: ParaBlockNumber,
    digest: tuple[DigestItem, ...],
    inherent: Inherent,
    plan: Plan,
    handlers: Mapping[str, SubscriptionHandler] = HANDLERS,
) -> BlockOutcome:
    """Carry out a block whose proof was read as `plan`, and commit. `storage` must lie over the parent's state.

    `storage` records reads: what of them only happened here, and not in the walk, is part of the ledger too.
    """
    before = storage.state.fork()
    system.initialize(storage, number, parent.hash(), digest)
    system.note_extrinsic(storage, 0)
    _note_messages(storage, inherent.downward, inherent.horizontal, plan.statics)
    deliveries = apply(storage, spec, plan, inherent.relay_parent_number, handlers[spec.handler])
    for message in inherent.downward:
        execute_downward(storage, message.msg)
    system.note_applied(storage, 1)
    log = tuple(records(storage))
    system.finalize(storage)
    ledger = make_ledger(plan, inherent.messages_used, own_state_bytes(before, storage.recorded or ()))
    root = storage.commit()
    return BlockOutcome(storage.state, root, log, deliveries, ledger, plan)


def _note_messages(
    storage: Storage,
    downward: tuple[InboundDownwardMessage, ...],
    horizontal: HorizontalMessages,
    statics: StaticValues,
) -> None:
    if downward:
        head = message_chain(LAST_DMQ_MQC_HEAD.get(storage), tuple((m.sent_at, m.msg) for m in downward))
        LAST_DMQ_MQC_HEAD.put(storage, head)
    before = LAST_HRMP_MQC_HEADS.get(storage)
    # A closed channel is forgotten: if it is opened again, its chain begins anew.
    heads = {
        sender: head
        for sender, head in horizontal_heads(before, horizontal).items()
        if sender in statics.hrmp_heads and head != NO_MESSAGES
    }
    if heads != before:
        LAST_HRMP_MQC_HEADS.put(storage, heads)


def horizontal_heads(heads: Mapping[ParaId, Hash], horizontal: HorizontalMessages) -> dict[ParaId, Hash]:
    """The channel heads after these messages."""
    out = dict(heads)
    for sender, messages in horizontal:
        out[sender] = message_chain(out.get(sender, NO_MESSAGES), tuple((m.sent_at, m.data) for m in messages))
    return out
