"""The verdict on a block that this process built itself, without executing it twice.

An honest author runs the same `plan` and the same `execute_block` as the verifier. Where one
process is both, as in a simulated network, the verifier may take the author's outcome instead of
repeating these two. Everything else is checked as in `validate_block`:

    the same block     the candidate has the bytes that the author made
    the same state     header and state root of the parent are those that the author built on
    the checks         seal, parent, relay parent, validation data, messages, order of nodes,
                       relay headers, queue heads, advancement, state root, digest
    the proof          its nodes are exactly those that the author's walk took

A walk reads only the nodes that it takes, so the walk over such a proof is the author's. If
anything differs, the block is not confirmed and has to be judged. Blocks with rules or handlers of
others are never confirmed, because only a second execution shows that these are pure.
"""

from collections.abc import Mapping
from typing import Final

from pubsub_emulator.collator.author import Authored
from pubsub_emulator.primitives.hashing import by_hash
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.handler import (
    HANDLERS,
    Observe,
    StoreHandler,
    SubscriptionHandler,
)
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, Offence
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.runtime.parachain.validate import (
    RelayContext,
    check_advancement,
    check_descendants,
    check_digest,
    check_message_heads,
    check_messages_weight,
    check_node_order,
    check_parent,
    check_relay_parent,
    check_seal,
    check_state,
    check_validation_data,
)
from pubsub_emulator.runtime.rules import SHIPPED

_OWN_HANDLERS: Final = (Observe, StoreHandler)


def confirmed(
    parent: ChainHead,
    candidate: Candidate,
    relay: RelayContext,
    authored: Authored,
    handlers: Mapping[str, SubscriptionHandler] = HANDLERS,
) -> BlockOutcome | None:
    """Return the outcome of judging `candidate` on `parent` if `authored` already has it.

    `authored` must be the result of `author` in this process, with the same handlers. Returns
    `None` if the block has to be judged, whatever its verdict may be. Raises as `check_state`.
    """
    if candidate.encode() != authored.candidate.encode():
        return None
    if parent.header != authored.parent or parent.state.root() != authored.parent_root:
        return None
    storage = Storage(parent.state.fork())
    spec = check_state(storage, handlers, parent.rules)
    if spec.rules or type(handlers[spec.handler]) not in _OWN_HANDLERS:
        return None
    inherent = candidate.inherent
    outcome = authored.outcome
    walked = outcome.plan
    relay_root = relay.storage_root
    if relay_root is None or inherent.relay_parent_storage_root != relay_root:
        return None
    if walked.missing is not None or by_hash(inherent.proof).keys() != walked.taken.keys():
        return None
    header = candidate.header
    offences: list[Offence] = [
        *check_seal(AUTHORITIES.get(storage), parent.header, candidate, relay.slot_now),
        *check_parent(parent.header, header),
        *check_relay_parent(storage, inherent),
        *check_validation_data(spec, parent.header, inherent),
        *check_messages_weight(spec, inherent, SHIPPED),
        *check_node_order(inherent.proof),
        *check_descendants(spec, inherent, relay_root, walked.statics),
        *check_message_heads(storage, inherent, walked.statics),
        *check_advancement(spec, inherent, walked.statics, SHIPPED),
        *check_digest(header, outcome),
    ]
    if offences or outcome.state_root != header.state_root:
        return None
    return outcome
