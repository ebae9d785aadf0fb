"""Cheats with the inherent: requested keys, messages, validation data, relay headers (UP-15).

A message that a block hashes without need is not lost, but its author decides when it arrives. A
requested key that a block does not prove would leave its handler without an answer.
"""

from collections.abc import Sequence
from dataclasses import replace

from pubsub_emulator.collator.cheats.nodes import drops
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import (
    AddDescendant,
    AddHashed,
    AddMessage,
    Claim,
    DropDescendant,
    DropHashed,
    DropMessage,
    HashMessages,
    Number,
    ParentHead,
    Step,
    difference,
)
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.primitives import babe, schnorrkel
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.header import Header, aura_pre_digest
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber
from pubsub_emulator.runtime.framework.abridged import InboundMessageId, full_bytes, ordered
from pubsub_emulator.runtime.framework.message_chains import message_hash
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayStorageKey, TopKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.plan import plan
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.parachain.descendants import authority_keys
from pubsub_emulator.runtime.parachain.execute import execute_block
from pubsub_emulator.runtime.parachain.signed_body import SignedBody
from pubsub_emulator.runtime.parachain.storage import LAST_PROCESSED_DOWNWARD, LAST_PROCESSED_HRMP

_OMITTED = Verdict.OMITTED_BELOW_BUDGET
_ADVANCEMENT = Verdict.ADVANCEMENT_RULE
_MISREPORTED = Verdict.MESSAGES_MISREPORTED


# Requested keys


def _requested(situation: Situation) -> set[Hash]:
    """Return the nodes of the honest proof that only the requested keys need."""
    left = situation.walked.requested_bytes
    found = set()
    for name in list(situation.walked.taken)[len(situation.proof.static_nodes) :]:
        if left <= 0:
            break
        left -= node_cost(len(situation.walked.taken[name]))
        found.add(name)
    return found


def _nodes_of(situation: Situation, asked: RelayStorageKey) -> list[Hash]:
    """Return the nodes that one requested key needs and no static key does."""
    path: dict[Hash, bytes] = {}
    match asked:
        case TopKey(key):
            situation.relay.prove((key,), {}, path)
        case ChildKey(storage_key, key):
            situation.relay.prove((child_root_key(storage_key),), {storage_key: (key,)}, path)
    own = _requested(situation)
    return [name for name in path if name in own]


def _omit_one(situation: Situation, draws: Draws, *, absent: bool) -> Proposal:
    values = situation.walked.requested
    wanted = [asked for asked, value in values.items() if (value is None) == absent]
    paths = [path for path in (_nodes_of(situation, asked) for asked in wanted) if path]
    return drops([draws.choice(draws.choice(paths))]) if paths else None


@strategy(
    "omit-requested-key",
    "keep a value of the relay chain from the parachain",
    _OMITTED,
    on_proof=True,
)
def omit_requested_key(situation: Situation, draws: Draws) -> Proposal:
    """Omit a node on the way to a requested key that is present."""
    return _omit_one(situation, draws, absent=False)


@strategy(
    "omit-requested-absence",
    "leave open whether a requested key is there",
    _OMITTED,
    on_proof=True,
)
def omit_requested_absence(situation: Situation, draws: Draws) -> Proposal:
    """Omit a node that proves the absence of a requested key."""
    return _omit_one(situation, draws, absent=True)


@strategy(
    "omit-requested-trie",
    "treat a child trie of the request as if it could not be read",
    _OMITTED,
    on_proof=True,
)
def omit_requested_trie(situation: Situation, draws: Draws) -> Proposal:
    """Omit all nodes of one requested child trie."""
    tries: dict[bytes, dict[Hash, None]] = {}
    for asked in situation.walked.requested:
        if isinstance(asked, ChildKey):
            nodes = tries.setdefault(asked.storage_key, {})
            nodes.update(dict.fromkeys(_nodes_of(situation, asked)))
    choices = [list(nodes) for nodes in tries.values() if nodes]
    return drops(draws.choice(choices)) if choices else None


# Messages


@strategy(
    "hold-back-downward",
    "take no order of the relay chain as long as it suits",
    _ADVANCEMENT,
)
def hold_back_downward(situation: Situation, _draws: Draws) -> Proposal:
    """Hash all downward messages, against the basic rule."""
    return (HashMessages(0, 0),) if situation.messages.downward else None


@strategy(
    "hold-back-horizontal",
    "have the messages of another parachain wait",
    _ADVANCEMENT,
)
def hold_back_horizontal(situation: Situation, draws: Draws) -> Proposal:
    """Hash the last horizontal messages although there is room for them (the advanced rule)."""
    messages = situation.messages
    flat = ordered(messages)
    _, size = full_bytes(messages)
    choices = []
    for at in range(len(flat) - 1, -1, -1):
        sender, message = flat[at]
        size -= len(message.data)
        largest = situation.walked.statics.largest_messages.get(sender, 0)
        if at == 0 or size + largest <= situation.spec.messages_limit:
            choices.append(at)
    if not choices:
        return None
    kept = draws.choice(choices)
    steps: list[Step] = []
    for queue, (sender, sent) in enumerate(messages.horizontal, start=1):
        first = sum(1 for other, _ in flat[:kept] if other == sender)
        if first < len(sent):
            steps.append(HashMessages(queue, first))
    return tuple(steps)


@strategy("hash-before-full", "have a later message carried out first", _MISREPORTED)
def hash_before_full(situation: Situation, draws: Draws) -> Proposal:
    """Hash a message of a queue and leave later ones in full."""
    places = []
    for queue, (_, messages) in enumerate(situation.messages.queues()):
        places += [(queue, at, *messages[at]) for at in range(len(messages) - 1)]
    if not places:
        return None
    queue, at, sent_at, data = draws.choice(places)
    return (DropMessage(queue, at), AddHashed(queue, 0, sent_at, message_hash(data)))


@strategy(
    "hash-of-no-message", "have the parachain wait for a message that nobody sent", _MISREPORTED
)
def hash_of_no_message(situation: Situation, draws: Draws) -> Proposal:
    """Add the hash of a message that is in no queue."""
    at = len(situation.messages.hashed_downward)
    return (AddHashed(0, at, situation.relay.number, draws.take(32)),)


@strategy("beyond-the-share", "fill the block with messages", _MISREPORTED)
def beyond_the_share(situation: Situation, _draws: Draws) -> Proposal:
    """Take a downward message in full for which the share has no room."""
    messages = situation.messages
    if situation.waiting is None or not messages.hashed_downward:
        return None
    taken = len(messages.downward)
    extra = situation.waiting.downward[taken]
    return (DropHashed(0, 0), AddMessage(0, taken, extra.sent_at, extra.msg))


@strategy(
    "wrong-mark",
    "have a message processed twice, or passed over",
    Verdict.STATE_ROOT_MISMATCH,
)
def wrong_mark(situation: Situation, draws: Draws) -> Proposal:
    """Claim the state with another `reverse_idx` of the last processed message."""
    storage = Storage(situation.parent.state.fork())
    honest = situation.honest
    header = honest.header
    outcome = execute_block(
        storage,
        situation.spec,
        situation.parent.header,
        ParaBlockNumber(header.number),
        (aura_pre_digest(situation.slot),),
        honest.inherent,
        situation.walked,
        extrinsics=SignedBody(honest.extrinsics),
    )
    false = Storage(outcome.state)
    item = LAST_PROCESSED_DOWNWARD if draws.one_in(2) else LAST_PROCESSED_HRMP
    mark = item.get(false)
    if mark is None:
        return None
    item.put(false, InboundMessageId(mark.sent_at, mark.reverse_idx + draws.between(1, 3)))
    return (Claim("state_root", false.commit()),)


# Validation data


@strategy(
    "wrong-parent-head",
    "have the relay chain see another parent than the parachain",
    Verdict.BAD_VALIDATION_DATA,
)
def wrong_parent_head(situation: Situation, draws: Draws) -> Proposal:
    """State another parent's header, or none, in the inherent."""
    return (ParentHead(draws.choice((b"", draws.take(40), situation.honest.header.encode()))),)


@strategy(
    "wrong-proof-size",
    "have room that a block does not have",
    Verdict.BAD_VALIDATION_DATA,
)
def wrong_proof_size(situation: Situation, draws: Draws) -> Proposal:
    """State another maximum proof size."""
    return (Number("max_pov_size", situation.spec.max_pov_size + draws.between(1, 9)),)


@strategy(
    "unwanted-descendants",
    "pretend to build behind the tip of the relay chain",
    Verdict.BAD_DESCENDANTS,
)
def unwanted_descendants(situation: Situation, _draws: Draws) -> Proposal:
    """Add a header where the chain wants none."""
    if situation.spec.relay_parent_offset:
        return None
    return (AddDescendant(0, situation.parent.header.encode()),)


def _shown(situation: Situation) -> tuple[Header, ...]:
    """Return the relay headers of the honest block."""
    return situation.honest.inherent.descendants


def _instead(situation: Situation, headers: Sequence[Header]) -> tuple[Step, ...]:
    """Return the steps that show these relay headers instead of the honest ones.

    The proof has the authorities that these headers need.
    """
    steps: list[Step] = [DropDescendant(0) for _ in _shown(situation)]
    steps += [AddDescendant(at, header.encode()) for at, header in enumerate(headers)]
    authorities = authority_keys(situation.spec, headers)
    if authorities != situation.authorities:
        walked = plan(
            situation.view,
            situation.relay.storage_root,
            situation.proof_of(situation.relay, authorities).nodes,
            situation.allowed,
            situation.calls_in(situation.messages),
            authorities=authorities,
        )
        steps += difference(situation.walked.taken, walked.taken)
    return tuple(steps)


@strategy(
    "cut-descendants",
    "build on a relay block that may still be abandoned",
    Verdict.BAD_DESCENDANTS,
)
def cut_descendants(situation: Situation, draws: Draws) -> Proposal:
    """Leave out one of the relay headers, or all of them."""
    headers = list(_shown(situation))
    if not headers:
        return None
    if draws.one_in(3):
        return _instead(situation, ())
    del headers[draws.below(len(headers))]
    return _instead(situation, headers)


@strategy(
    "swap-descendants",
    "show headers of the relay chain that are not its newest blocks",
    Verdict.BAD_DESCENDANTS,
)
def swap_descendants(situation: Situation, draws: Draws) -> Proposal:
    """Swap two relay headers, or show one of them twice."""
    headers = list(_shown(situation))
    if len(headers) < 2:
        return None
    at = draws.below(len(headers) - 1)
    if draws.one_in(2):
        headers[at + 1] = headers[at]
    else:
        headers[at], headers[at + 1] = headers[at + 1], headers[at]
    return _instead(situation, headers)


@strategy(
    "forge-descendant",
    "pretend that the relay chain went on with another block",
    Verdict.BAD_DESCENDANTS,
)
def forge_descendant(situation: Situation, draws: Draws) -> Proposal:
    """Change the last relay header, under its old seal or a stranger's, or without a seal."""
    headers = list(_shown(situation))
    if not headers:
        return None
    last = headers[-1]
    bare = replace(last, extrinsics_root=Hash(draws.take(32)), digest=last.digest[:-1])
    strangers = babe.seal(schnorrkel.sign(schnorrkel.pair(situation.stranger), bare.hash()))
    seals = draws.choice(((last.digest[-1],), (strangers,), ()))
    headers[-1] = replace(bare, digest=(*bare.digest, *seals))
    return _instead(situation, headers)


@strategy(
    "descendants-of-another-block",
    "pass off a chain of relay headers as that of the relay parent",
    Verdict.BAD_DESCENDANTS,
)
def descendants_of_another_block(situation: Situation, draws: Draws) -> Proposal:
    """Show as many relay headers, but from an older relay block on."""
    wanted = len(_shown(situation))
    root = situation.relay.storage_root
    others = [
        relay.headers[:wanted]
        for relay in situation.others
        if wanted and relay.storage_root != root and len(relay.headers) >= wanted
    ]
    return _instead(situation, draws.choice(others)) if others else None


@strategy(
    "another-offset",
    "choose how far a block is behind the relay chain's tip",
    Verdict.BAD_DESCENDANTS,
)
def another_offset(situation: Situation, draws: Draws) -> Proposal:
    """Show the relay headers of a smaller or a larger offset."""
    wanted = len(_shown(situation))
    if not wanted:
        return None
    known = situation.relay.headers
    others = [count for count in range(1, wanted + 2) if count != wanted and count <= len(known)]
    if not others:
        return None
    return _instead(situation, known[: draws.choice(others)])
