"""The verdicts that a block must meet, computed from its author's knowledge.

The block's own proof is not used. The verifier runs the walk over the nodes that it received. Here
the walk runs over the whole relay state, and its nodes are compared with the proof as sets, which
is the literal form of PS-52. If the two results differ, one of them is wrong.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.primitives.ed25519 import public_key, verify
from pubsub_emulator.primitives.hashing import blake2_256, by_hash
from pubsub_emulator.primitives.header import DigestItem, turn_of
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.message_chains import ZERO_HEAD
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, plan
from pubsub_emulator.runtime.pallet_subscriber.storage import LAST_RELAY_PARENT
from pubsub_emulator.runtime.parachain.block import Candidate, Inherent, Verdict
from pubsub_emulator.runtime.parachain.descendants import authority_keys
from pubsub_emulator.runtime.parachain.signed_body import BadBody
from pubsub_emulator.runtime.parachain.storage import LAST_DMQ_MQC_HEAD, LAST_HRMP_MQC_HEADS


def expected(situation: Situation, candidate: Candidate) -> tuple[Verdict, ...]:
    """Return every verdict that holds for a block, in the order of PS-52.

    It is empty for a valid block.
    """
    header = candidate.header
    inherent = candidate.inherent
    verdicts: list[Verdict] = []
    if _bad_seal(situation, candidate):
        verdicts.append(Verdict.BAD_SEAL)
    if (
        header.parent_hash != situation.parent.header.hash()
        or header.number != situation.parent.header.number + 1
    ):
        verdicts.append(Verdict.BAD_PARENT)
    last = LAST_RELAY_PARENT.get(situation.storage)
    if last is not None and inherent.relay_parent_number < last:
        verdicts.append(Verdict.RELAY_PARENT_DECREASED)
    if (
        inherent.parent_head != situation.parent.header.encode()
        or inherent.max_pov_size != situation.spec.max_pov_size
    ):
        verdicts.append(Verdict.BAD_VALIDATION_DATA)
    offset = situation.spec.relay_parent_offset
    wrong_number = len(inherent.descendants) != (offset + 1 if offset else 0)
    # A list times a truth value, here and below, is the list or an empty one.
    verdicts += [Verdict.BAD_DESCENDANTS] * wrong_number
    weight = inherent.messages.weight
    misreported = _exceeds_or_disorders(situation, inherent)
    relay = situation.relay_at(inherent.relay_parent_number)
    if relay is None:
        verdicts += [Verdict.MESSAGES_MISREPORTED] * misreported
        verdicts += list_verdicts(inherent.proof)
        return (*verdicts, Verdict.ROOT_MISMATCH)
    authorities = authority_keys(situation.spec, inherent.descendants)
    full = situation.proof_of(relay, authorities)
    present = {blake2_256(node) for node in inherent.proof}
    walked = situation.walked
    as_honest = (
        relay is situation.relay
        and inherent.messages == situation.messages
        and authorities == situation.authorities
    )
    if not as_honest:
        walked = plan(
            situation.view,
            relay.storage_root,
            full.nodes,
            situation.spec.budget(weight),
            situation.calls_in(inherent.messages),
            authorities=authorities,
        )
    set_faults = set_verdicts(walked.taken, relay.storage_root, present)
    if present.issuperset(full.static_nodes):
        # Nobody but the authorities can seal, so the genuine headers are the only valid ones.
        forged = not wrong_number and inherent.descendants != relay.headers[: offset + 1]
        verdicts += [Verdict.BAD_DESCENDANTS] * bool(offset and forged)
        misreported = misreported or not _leads_to_heads(situation, inherent, walked.statics)
    verdicts += [Verdict.MESSAGES_MISREPORTED] * misreported
    if present.issuperset(full.static_nodes) and _holds_back(situation, inherent, walked.statics):
        verdicts.append(Verdict.ADVANCEMENT_RULE)
    verdicts += list_verdicts(inherent.proof)
    if (
        inherent.relay_parent_storage_root != relay.storage_root
        and Verdict.ROOT_MISMATCH not in set_faults
    ):
        verdicts.append(Verdict.ROOT_MISMATCH)
    verdicts += set_faults
    complete = Verdict.OMITTED_BELOW_BUDGET not in set_faults and present.issuperset(walked.taken)
    checks = situation.rules.checks
    if checks is not None:
        counted = checks(tuple(verdict.value for verdict in verdicts))
        verdicts = [verdict for verdict in verdicts if verdict.value in counted]
        # Rules that do not check omissions accept the proof, so the block has the results of the
        # walk over the proof itself.
        if not complete and not verdicts:
            received = by_hash(inherent.proof)
            calls = situation.calls_in(inherent.messages)
            budget = situation.spec.budget(weight)
            walked = plan(
                situation.view,
                relay.storage_root,
                received,
                budget,
                calls,
                authorities=authorities,
            )
            complete = True
    if complete:
        try:
            root, digest = _results(situation, candidate, walked)
        except BadBody:
            verdicts.append(Verdict.BAD_EXTRINSIC)
        else:
            wrong = header.state_root != root or header.unsealed() != digest
            verdicts += [Verdict.STATE_ROOT_MISMATCH] * wrong
    return tuple(verdicts)


def expected_of_proof(situation: Situation, proof: tuple[bytes, ...]) -> tuple[Verdict, ...]:
    """Return the verdicts for a proof without its block, under the situation's budget."""
    present = {blake2_256(node) for node in proof}
    return (
        *list_verdicts(proof),
        *set_verdicts(situation.walked.taken, situation.relay.storage_root, present),
    )


def list_verdicts(proof: tuple[bytes, ...]) -> list[Verdict]:
    """Return the verdicts that follow from the order of the nodes."""
    verdicts = []
    if any(count > 1 for count in Counter(proof).values()):
        verdicts.append(Verdict.DUPLICATE_NODE)
    if any(a > b for a, b in pairwise(proof)):
        verdicts.append(Verdict.UNSORTED_PROOF)
    return verdicts


def set_verdicts(
    canonical: Mapping[Hash, bytes], relay_root: Hash, present: set[Hash]
) -> list[Verdict]:
    """Return the verdicts that follow from comparing two sets of nodes.

    `canonical` has the nodes of which the proof must consist, `present` the hashes of its nodes.
    """
    if relay_root not in present:
        return [Verdict.ROOT_MISMATCH]
    if not present.issuperset(canonical):
        return [Verdict.OMITTED_BELOW_BUDGET]
    return [] if len(present) == len(canonical) else [Verdict.UNUSED_NODES]


def _bad_seal(situation: Situation, candidate: Candidate) -> bool:
    header = candidate.header
    slot = header.aura_slot()
    signature = header.aura_seal()
    if slot is None or signature is None:
        return True
    before = situation.parent.header.aura_slot()
    author = public_key(turn_of(slot, situation.seeds))
    return not (
        (before is None or before < slot)
        and slot <= situation.slot_now
        and header.extrinsics_root == candidate.extrinsics_root()
        and verify(author, header.pre_hash(), signature)
    )


def _wire(inherent: Inherent) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
    """Return the horizontal messages in the order of the wire.

    The full ones are `(sent_at, sender, size)`, the hashed ones `(sent_at, sender)`.
    """
    full = []
    for sender, sent in inherent.messages.horizontal:
        full += [(message.sent_at, int(sender), len(message.data)) for message in sent]
    hashed = []
    for sender, messages in inherent.messages.hashed_horizontal:
        hashed += [(message.sent_at, int(sender)) for message in messages]
    return sorted(full), sorted(hashed)


def _exceeds_or_disorders(situation: Situation, inherent: Inherent) -> bool:
    """Return whether a kind of messages exceeds its share, or a hashed one precedes a full one."""
    limit = situation.shares.limit
    full, hashed = _wire(inherent)
    downward = sum(len(message.msg) for message in inherent.messages.downward)
    horizontal = sum(size for _, _, size in full)
    return (
        downward > limit
        or horizontal > _horizontal_room(situation, downward)
        or bool(full and hashed and hashed[0] < full[-1][:2])
    )


def _horizontal_room(situation: Situation, downward: int) -> int:
    """Return the bytes of full horizontal messages beside `downward` bytes of downward ones."""
    rule = situation.shares.room
    limit = situation.shares.limit
    return 2 * limit - min(downward, limit) if rule is None else rule(downward)


def _holds_back(situation: Situation, inherent: Inherent, statics: StaticValues) -> bool:
    """Return whether a message is hashed although the rules want it in full (UP-10)."""
    messages = inherent.messages
    full, hashed = _wire(inherent)
    basic = bool(messages.hashed_downward) and not messages.downward
    rule = situation.shares.may_hash
    if rule is not None and messages.hashed_downward and statics.largest_downward is not None:
        size = sum(len(message.msg) for message in messages.downward)
        basic = basic or not rule(size, statics.largest_downward, situation.shares.limit)
    if not hashed:
        return basic
    sizes = sum(size for _, _, size in full)
    next_one = statics.largest_messages.get(ParaId(hashed[0][1]), 0)
    return basic or not full or sizes + next_one <= situation.shares.limit


def _leads_to_heads(situation: Situation, inherent: Inherent, statics: StaticValues) -> bool:
    """Return whether the messages lead from the parachain's known heads to the relay parent's."""
    known = LAST_HRMP_MQC_HEADS.get(situation.storage)
    sent: dict[ParaId | None, list[tuple[int, bytes]]] = {}
    for sender, links in inherent.messages.links.items():
        sent[sender] = [*links.full, *links.hashed]
    downward = sent.pop(None, [])
    last = LAST_RELAY_PARENT.get(situation.storage)

    def leads(before: Hash, messages: list[tuple[int, bytes]], head: Hash) -> bool:
        # If the queue was removed and created again since the last block, its chain starts from
        # the zero head, and all of its messages are newer than the last relay parent.
        numbers = (inherent.relay_parent_number, *(sent_at for sent_at, _ in messages))
        newer = last is not None and last < min(numbers)
        starts = (before, ZERO_HEAD) if newer else (before,)
        return any(_chained(start, messages) == head for start in starts)

    return (
        leads(LAST_DMQ_MQC_HEAD.get(situation.storage), downward, statics.dmq_head)
        and all(sender in statics.hrmp_heads for sender in sent)
        and all(
            leads(known.get(sender, ZERO_HEAD), sent.get(sender, []), head)
            for sender, head in statics.hrmp_heads.items()
        )
    )


def _chained(head: Hash, messages: list[tuple[int, bytes]]) -> Hash:
    for sent_at, hashed in messages:
        head = blake2_256(head + sent_at.to_bytes(4, "little") + hashed)
    return head


def _results(
    situation: Situation, candidate: Candidate, walked: Plan
) -> tuple[Hash, tuple[DigestItem, ...]]:
    """Return the post-state root and the unsealed digest that the block should have.

    If everything that they depend on is as in the honest block, execution is skipped.
    """
    honest = situation.honest
    header = candidate.header
    inherent = candidate.inherent
    as_honest = (
        walked.missing is None
        and inherent.relay_parent_number == honest.inherent.relay_parent_number
        and inherent.messages == honest.inherent.messages
        and header.number == honest.header.number
        and header.initial_digest() == honest.header.initial_digest()
        and candidate.extrinsics == honest.extrinsics
    )
    if as_honest:
        return honest.header.state_root, honest.header.unsealed()
    outcome = situation.outcome_of(
        walked,
        inherent=inherent,
        digest=header.initial_digest(),
        number=header.number,
        extrinsics=candidate.extrinsics,
    )
    return outcome.state_root, outcome.digest
