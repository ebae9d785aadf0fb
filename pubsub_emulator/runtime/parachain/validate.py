"""The verdict on a candidate: the checks of PS-52, in their order.

They compare the candidate with data that the relay chain attests.

    what is checked                                           verdicts
    the seal           author, turn, signature, body          BadSeal
    the chain          parent, relay parent                   BadParent, RelayParentDecreased
                       parent head, max_pov_size              BadValidationData
                       descendants of the relay parent        BadDescendants
    the messages       heads, order, share and weight         MessagesMisreported
                       only those without room are hashed     AdvancementRule
    the proof          the list of nodes, then `plan`         DuplicateNode … UnusedNodes
    the state          `execute_block`                        BadExtrinsic, StateRootMismatch

A block is executed on a fork of the parent's state, so an invalid one changes nothing (PS-53). The
nodes of a valid block are exactly those that the plan took. So for one state, relay parent and set
of messages, there is only one valid inherent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import lt

from pubsub_emulator.primitives.ed25519 import verify
from pubsub_emulator.primitives.errors import DefensiveFailure, PubsubError, ScaleError
from pubsub_emulator.primitives.hashing import by_hash
from pubsub_emulator.primitives.header import ENVIRONMENT_UPDATED, Header, turn_of
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.abridged import (
    advancement_faults,
    order_faults,
    share_faults,
)
from pubsub_emulator.runtime.framework.relay_keys import key_name, relay_key_name
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import (
    ImpossibleConfig,
    RuntimeSpec,
    rules_for,
)
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS, SubscriptionHandler
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, RootCall, plan
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.block import (
    Candidate,
    ChainHead,
    Inherent,
    InvalidBlock,
    Offence,
    Verdict,
)
from pubsub_emulator.runtime.parachain.descendants import (
    authority_keys,
    count_fault,
    descendant_fault,
)
from pubsub_emulator.runtime.parachain.execute import (
    BlockOutcome,
    downward_heads,
    execute_block,
    horizontal_heads,
)
from pubsub_emulator.runtime.parachain.governance import ensure_handler, root_calls, sound_runtime
from pubsub_emulator.runtime.parachain.signed_body import BadBody, SignedBody
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.runtime.rules import SHIPPED, Rules


@dataclass(frozen=True, slots=True)
class RelayContext:
    """Facts that the relay chain attests."""

    number: RelayBlockNumber
    storage_root: Hash | None
    """The storage root of block `number`, or `None` if there is no such block."""
    slot_now: Slot
    """The newest slot that a block judged now may claim."""


class BadState(PubsubError):
    """A state with values that a parachain's blocks never write. Blocks on it cannot be judged."""


Judged = tuple[BlockOutcome, None] | tuple[None, InvalidBlock]
"""The outcome of a valid block, or the refusal of a block."""


def judge_block(
    parent: ChainHead,
    candidate: Candidate,
    relay: RelayContext,
    handlers: Mapping[str, SubscriptionHandler] = HANDLERS,
) -> Judged:
    """Judge a candidate as `validate_block`, but return the refusal instead of raising it."""
    try:
        return validate_block(parent, candidate, relay, handlers), None
    except InvalidBlock as refusal:
        return None, refusal


def validate_block(
    parent: ChainHead,
    candidate: Candidate,
    relay: RelayContext,
    handlers: Mapping[str, SubscriptionHandler] = HANDLERS,
) -> BlockOutcome:
    """Judge a candidate on top of `parent`, which is not changed.

    Raises `InvalidBlock` with the first verdict and all offences, and `BadState` if the state of
    `parent` is not a parachain's.
    """
    wanted = candidate.inherent.relay_parent_number
    if relay.number != wanted:
        raise DefensiveFailure(f"context of relay block {relay.number} for a block on {wanted}")
    try:
        return _validated(parent, candidate, relay, handlers)
    except (ScaleError, ImpossibleConfig) as error:
        # This is never caused by bytes of the candidate or the relay chain, which lead to verdicts
        # (PS-54).
        raise BadState(
            f"the state below block {candidate.header.number} makes no sense: {error}"
        ) from error


def check_state(
    storage: Storage,
    handlers: Mapping[str, SubscriptionHandler] = HANDLERS,
    rules: Rules = SHIPPED,
) -> RuntimeSpec:
    """Return the runtime of a state.

    Raises `ScaleError` or `ImpossibleConfig` if blocks on it cannot be judged with these handlers
    and rules.
    """
    spec = sound_runtime(storage.get(CODE) or b"")
    rules_for(spec, rules)
    ensure_handler(spec, handlers)
    if not AUTHORITIES.get(storage):
        raise ImpossibleConfig("there are no authorities")
    return spec


def _validated(
    parent: ChainHead,
    candidate: Candidate,
    relay: RelayContext,
    handlers: Mapping[str, SubscriptionHandler],
) -> BlockOutcome:
    """Run all checks, and execute the block if its proof has all nodes.

    If there is a rule `checks`, it chooses the offences that count. A block may then be executed
    although its proof lacks nodes.
    """
    inherent = candidate.inherent
    storage = Storage(parent.state.fork())
    spec = check_state(storage, handlers, parent.rules)
    view = SubscriberView(storage, spec, parent.rules)
    offences = [
        *check_seal(AUTHORITIES.get(storage), parent.header, candidate, relay.slot_now),
        *check_parent(parent.header, candidate.header),
        *check_relay_parent(storage, inherent),
        *check_validation_data(spec, parent.header, inherent),
        *check_messages_weight(spec, inherent, view.rules),
        *check_node_order(inherent.proof),
    ]
    storage.start_recording()
    walked, walk_offences = _walk(view, inherent, relay.storage_root)
    offences += walk_offences
    outcome = None
    checks = view.rules.checks
    if checks is not None:
        counted = checks(tuple(offence.verdict.value for offence in offences))
        offences = [offence for offence in offences if offence.verdict.value in counted]
    if walked is not None and (walked.missing is None or (checks is not None and not offences)):
        header = candidate.header
        claimed = header.state_root
        try:
            outcome = execute_block(
                storage,
                spec,
                parent.header,
                number=ParaBlockNumber(header.number),
                digest=header.initial_digest(),
                inherent=inherent,
                plan=walked,
                handlers=handlers,
                extrinsics=SignedBody(candidate.extrinsics),
            )
        except BadBody as error:
            offences.append(Offence(Verdict.BAD_EXTRINSIC, str(error), (error.raw,)))
        if outcome is not None and outcome.state_root != claimed:
            detail = f"claimed {claimed.hex()}, executing gives {outcome.state_root.hex()}"
            offences.append(
                Offence(Verdict.STATE_ROOT_MISMATCH, detail, (claimed, outcome.state_root))
            )
        if outcome is not None:
            offences += check_digest(header, outcome)
    if offences:
        raise InvalidBlock(offences)
    if outcome is None:
        raise DefensiveFailure("a block without offences was not executed")
    return outcome


def _walk(
    view: SubscriberView, inherent: Inherent, relay_root: Hash | None
) -> tuple[Plan | None, list[Offence]]:
    """Run the plan over the proof, and check the claimed root and the messages.

    Returns the plan, or `None` if the relay parent is unknown, and the offences.
    """
    if relay_root is None:
        detail = f"the relay chain has no block {inherent.relay_parent_number}"
        return None, [Offence(Verdict.ROOT_MISMATCH, detail)]
    offences = []
    if inherent.relay_parent_storage_root != relay_root:
        claimed = inherent.relay_parent_storage_root
        detail = f"claims storage root {claimed.hex()}, the relay parent's is {relay_root.hex()}"
        offences.append(Offence(Verdict.ROOT_MISMATCH, detail, (claimed, relay_root)))
    spec = view.spec
    budget = spec.budget(inherent.messages.weight)
    calls = root_calls(spec, inherent.messages)
    authorities = authority_keys(spec, inherent.descendants)
    walked, proof_offences = judge_proof(
        view, relay_root, inherent.proof, budget, calls, authorities=authorities
    )
    if walked.statics.values:
        offences += check_descendants(spec, inherent, relay_root, walked.statics)
        offences += check_message_heads(view.storage, inherent, walked.statics)
        offences += check_advancement(spec, inherent, walked.statics, view.rules)
    return walked, offences + proof_offences


def judge_proof(
    view: SubscriberView,
    relay_root: Hash,
    proof: tuple[bytes, ...],
    budget: int,
    calls: Sequence[RootCall] | None = None,
    *,
    authorities: tuple[bytes, ...] = (),
) -> tuple[Plan, list[Offence]]:
    """Walk over `proof`, and check that it has exactly the needed nodes.

    The nodes may be in any order. `authorities` are the static keys that a block with relay headers
    needs (`authority_keys`). Returns the plan and the offences.
    """
    source = by_hash(proof)
    walked = plan(view, relay_root, source, budget, calls, authorities=authorities)
    missing = walked.missing
    if missing is None:
        return walked, _unused(source, walked)
    if missing.node_hash == relay_root:
        detail = f"the proof lacks the relay parent's root node {relay_root.hex()}"
        return walked, [Offence(Verdict.ROOT_MISMATCH, detail, (relay_root,))]
    wanted = _wanted_key(view.spec, walked, missing.key)
    detail = (
        f"node {missing.node_hash.hex()} is missing on the way to {wanted}, at"
        f" nibble {missing.depth}, when {walked.used:,} of the {walked.budget:,} bytes for messages"
        " and proof are used"
    )
    return walked, [Offence(Verdict.OMITTED_BELOW_BUDGET, detail, (missing.node_hash, missing.key))]


def _wanted_key(spec: RuntimeSpec, walked: Plan, key: bytes) -> str:
    """Return the text for the key whose path has a missing node.

    Static and requested keys are named.
    """
    if key in walked.statics.values or not walked.statics.values:
        return f"static key {key_name(key)}"
    # Requested keys are read in order, and before the maps are charged.
    next_requested = spec.extra_keys[len(walked.requested) : len(walked.requested) + 1]
    if next_requested and not walked.map_charges:
        return f"requested key {relay_key_name(next_requested[0])}"
    return f"key {key.hex()}"


def _unused(source: Mapping[Hash, bytes], walked: Plan) -> list[Offence]:
    """Check that a complete walk took all nodes of the proof."""
    # The hashes are compared and not their numbers, because a proof could have an unneeded node in
    # place of a needed one.
    if source.keys() == walked.taken.keys():
        return []
    unused = tuple(node_hash for node_hash in source if node_hash not in walked.taken)
    return [
        Offence(Verdict.UNUSED_NODES, f"{len(unused)} nodes that the walk did not take", unused)
    ]


def check_seal(
    authorities: tuple[bytes, ...], parent: Header, candidate: Candidate, slot_now: Slot
) -> list[Offence]:
    """Check the author's turn and signature, and that the header commits to the body (PS-80)."""
    header = candidate.header
    slot = header.aura_slot()
    seal = header.aura_seal()
    if slot is None or seal is None or len(header.initial_digest()) != 1:
        return [Offence(Verdict.BAD_SEAL, "the digest is not one slot and one seal")]
    offences = []
    message = header.pre_hash()
    expected = turn_of(slot, authorities)
    if not verify(expected, message, seal):
        signer = next((key for key in authorities if verify(key, message, seal)), None)
        if signer is None:
            offences.append(
                Offence(Verdict.BAD_SEAL, "no collator of this chain made the signature", (seal,))
            )
        else:
            detail = f"slot {slot} is the turn of {expected.hex()}, not of {signer.hex()}"
            offences.append(Offence(Verdict.BAD_SEAL, detail, (signer,)))
    before = parent.aura_slot()
    if slot > slot_now or (before is not None and slot <= before):
        detail = f"slot {slot} is not after the parent's, {before}, and at most {slot_now}"
        offences.append(Offence(Verdict.BAD_SEAL, detail))
    if header.extrinsics_root != candidate.extrinsics_root():
        offences.append(
            Offence(
                Verdict.BAD_SEAL,
                "the header does not commit to this body",
                (header.extrinsics_root,),
            )
        )
    return offences


def check_digest(header: Header, outcome: BlockOutcome) -> list[Offence]:
    """Check that the header's digest says whether the block applied new code.

    The item must follow the slot, because the execution of the block adds it there.
    """
    if header.unsealed() == outcome.digest:
        return []
    did = "applies" if ENVIRONMENT_UPDATED in outcome.digest else "does not apply"
    detail = f"the block {did} new code, which its digest does not say in this place"
    return [Offence(Verdict.STATE_ROOT_MISMATCH, detail)]


def check_parent(parent: Header, header: Header) -> list[Offence]:
    """Check that the header has the parent's hash and the next number."""
    if header.parent_hash == parent.hash() and header.number == parent.number + 1:
        return []
    claimed = header.parent_hash
    actual = parent.hash()
    detail = (
        f"block {header.number} on {claimed.hex()} does not follow {parent.number}, {actual.hex()}"
    )
    return [Offence(Verdict.BAD_PARENT, detail, (claimed, actual))]


def check_relay_parent(storage: Storage, inherent: Inherent) -> list[Offence]:
    """Check that the relay parent is not older than the last block's (PS-32)."""
    last = items.LAST_RELAY_PARENT.get(storage)
    if last is None or inherent.relay_parent_number >= last:
        return []
    return [
        Offence(
            Verdict.RELAY_PARENT_DECREASED,
            f"relay parent {inherent.relay_parent_number} after {last}",
        )
    ]


def check_validation_data(spec: RuntimeSpec, parent: Header, inherent: Inherent) -> list[Offence]:
    """Check that the inherent has the parent's header and the chain's proof size (UP-7).

    It must also have the number of relay headers that the chain's offset requires (UP-12).
    """
    offences = []
    if inherent.parent_head != parent.encode():
        detail = f"the parent head is not the header of block {parent.number}"
        offences.append(Offence(Verdict.BAD_VALIDATION_DATA, detail, (inherent.parent_head,)))
    fault = count_fault(spec, inherent.descendants)
    if fault is not None:
        offences.append(Offence(Verdict.BAD_DESCENDANTS, fault))
    if inherent.max_pov_size != spec.max_pov_size:
        detail = f"max_pov_size {inherent.max_pov_size}, this chain has {spec.max_pov_size}"
        offences.append(Offence(Verdict.BAD_VALIDATION_DATA, detail))
    return offences


def check_descendants(
    spec: RuntimeSpec, inherent: Inherent, relay_root: Hash, statics: StaticValues
) -> list[Offence]:
    """Check that the relay headers are a chain that authorities sealed (UP-12).

    A wrong number of headers is an offence by `check_validation_data`, which needs no relay state.
    """
    headers = inherent.descendants
    if not spec.relay_parent_offset or count_fault(spec, headers) is not None:
        return []
    fault = descendant_fault(headers, relay_root, statics)
    return [] if fault is None else [Offence(Verdict.BAD_DESCENDANTS, fault)]


def check_messages_weight(spec: RuntimeSpec, inherent: Inherent, rules: Rules) -> list[Offence]:
    """Check that full messages stay within their shares and come before hashed ones (UP-9, UP-10).

    Both shares together are not more than messages may take of a block (PS-50).
    """
    messages = inherent.messages
    faults = [*share_faults(messages, spec.shares(rules)), *order_faults(messages)]
    return [Offence(Verdict.MESSAGES_MISREPORTED, detail) for detail in faults]


def check_advancement(
    spec: RuntimeSpec, inherent: Inherent, statics: StaticValues, rules: Rules
) -> list[Offence]:
    """Check that messages are hashed only if they exceed the shares of a block (UP-10)."""
    shares = spec.shares(rules)
    faults = advancement_faults(
        inherent.messages, shares, statics.largest_messages, statics.largest_downward
    )
    return [Offence(Verdict.ADVANCEMENT_RULE, detail) for detail in faults]


def check_message_heads(
    storage: Storage, inherent: Inherent, statics: StaticValues
) -> list[Offence]:
    """Check that the messages lead exactly from the last heads to those at the relay parent."""
    offences = []
    head = downward_heads(storage, inherent, statics).end
    if head != statics.dmq_head:
        detail = (
            f"downward messages hash to {head.hex()}, the queue's head is {statics.dmq_head.hex()}"
        )
        offences.append(Offence(Verdict.MESSAGES_MISREPORTED, detail, (head, statics.dmq_head)))
    heads = horizontal_heads(storage, inherent, statics)
    strangers = [
        sender
        for sender in inherent.messages.links
        if sender is not None and sender not in statics.hrmp_heads
    ]
    if strangers:
        detail = (
            f"messages from {', '.join(map(str, strangers))}, which have no channel to this chain"
        )
        offences.append(Offence(Verdict.MESSAGES_MISREPORTED, detail))
    for sender, target in statics.hrmp_heads.items():
        end = heads[sender].end
        if end != target:
            detail = (
                f"messages from {sender} hash to {end.hex()}, the channel's head is {target.hex()}"
            )
            offences.append(Offence(Verdict.MESSAGES_MISREPORTED, detail, (end, target)))
    return offences


def check_node_order(proof: tuple[bytes, ...]) -> list[Offence]:
    """Check that the nodes are strictly ascending.

    Repeated nodes and nodes after a larger one are separate offences.
    """
    if all(map(lt, proof, islice(proof, 1, None))):
        return []
    offences = []
    repeated = tuple(
        dict.fromkeys(node for node, following in pairwise(sorted(proof)) if node == following)
    )
    if repeated:
        offences.append(
            Offence(
                Verdict.DUPLICATE_NODE, f"{len(repeated)} nodes are listed more than once", repeated
            )
        )
    unsorted = next(
        (index for index in range(1, len(proof)) if proof[index] < proof[index - 1]), None
    )
    if unsorted is not None:
        detail = f"node {unsorted} is smaller than the one before it"
        offences.append(Offence(Verdict.UNSORTED_PROOF, detail, (proof[unsorted],)))
    return offences
