"""Cheats with the inherent: omitted keys, held back messages, and false validation data (UP-15).

A message that a block hashes without need is not lost, but its author decides when it arrives. A
requested key that a block does not prove would leave its handler without an answer.
"""

from pubsub_emulator.collator.cheats.nodes import drops
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import (
    AddDescendant,
    AddHashed,
    AddMessage,
    CheatStep,
    Claim,
    DropHashed,
    DropMessage,
    HashMessages,
    Number,
    ParentHead,
)
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.header import aura_pre_digest
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber
from pubsub_emulator.runtime.framework.abridged import InboundMessageId, full_bytes, ordered
from pubsub_emulator.runtime.framework.message_chains import message_hash
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayStorageKey, TopKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.parachain.execute import execute_block
from pubsub_emulator.runtime.parachain.signed_body import SignedBody
from pubsub_emulator.runtime.parachain.storage import LAST_PROCESSED_DOWNWARD, LAST_PROCESSED_HRMP

_OMITTED = Verdict.OMITTED_BELOW_BUDGET
_ADVANCEMENT = Verdict.ADVANCEMENT_RULE
_MISREPORTED = Verdict.MESSAGES_MISREPORTED


# Requested keys


def _requested(situation: Situation) -> set[Hash]:
    """Return the nodes of the honest proof that only the requested keys need."""
    remaining = situation.walked.requested_bytes
    nodes = set()
    for name in list(situation.walked.taken)[len(situation.proof.static_nodes) :]:
        if remaining <= 0:
            break
        remaining -= node_cost(len(situation.walked.taken[name]))
        nodes.add(name)
    return nodes


def _nodes_of(situation: Situation, requested: RelayStorageKey) -> list[Hash]:
    """Return the nodes that one requested key needs and no static key does."""
    path: dict[Hash, bytes] = {}
    match requested:
        case TopKey(key):
            situation.relay.prove((key,), {}, path)
        case ChildKey(storage_key, key):
            situation.relay.prove((child_root_key(storage_key),), {storage_key: (key,)}, path)
    requested_nodes = _requested(situation)
    return [name for name in path if name in requested_nodes]


def _omit_one(situation: Situation, draws: Draws, *, absent: bool) -> Proposal:
    paths = []
    for requested, value in situation.walked.requested.items():
        if (value is None) == absent:
            path = _nodes_of(situation, requested)
            if path:
                paths.append(path)
    return drops([draws.choice(draws.choice(paths))]) if paths else None


@strategy(
    "omit-requested-key",
    "keep a value of the relay chain from the parachain",
    _OMITTED,
    on_proof=True,
)
def omit_requested_key(situation: Situation, draws: Draws) -> Proposal:
    """Omit a node on the path to a requested key that is present."""
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
    for requested in situation.walked.requested:
        if isinstance(requested, ChildKey):
            nodes = tries.setdefault(requested.storage_key, {})
            nodes.update(dict.fromkeys(_nodes_of(situation, requested)))
    choices = [list(nodes) for nodes in tries.values() if nodes]
    return drops(draws.choice(choices)) if choices else None


# Messages


@strategy(
    "hold-back-downward",
    "ignore the relay chain's orders for as long as it suits",
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
    for index in range(len(flat) - 1, -1, -1):
        sender, message = flat[index]
        size -= len(message.data)
        largest = situation.walked.statics.largest_messages.get(sender, 0)
        if index == 0 or size + largest <= situation.shares.limit:
            choices.append(index)
    if not choices:
        return None
    full_count = draws.choice(choices)
    steps: list[CheatStep] = []
    for queue, (sender, sent) in enumerate(messages.horizontal, start=1):
        first = sum(1 for other, _ in flat[:full_count] if other == sender)
        if first < len(sent):
            steps.append(HashMessages(queue, first))
    return tuple(steps)


@strategy("hash-before-full", "have a later message carried out first", _MISREPORTED)
def hash_before_full(situation: Situation, draws: Draws) -> Proposal:
    """Hash a message of a queue and leave later ones in full."""
    places = []
    for queue, (_, messages) in enumerate(situation.messages.queues()):
        places += [(queue, index, *messages[index]) for index in range(len(messages) - 1)]
    if not places:
        return None
    queue, index, sent_at, data = draws.choice(places)
    return (DropMessage(queue, index), AddHashed(queue, 0, sent_at, message_hash(data)))


@strategy(
    "hash-of-no-message", "have the parachain wait for a message that nobody sent", _MISREPORTED
)
def hash_of_no_message(situation: Situation, draws: Draws) -> Proposal:
    """Add the hash of a message that is in no queue."""
    index = len(situation.messages.hashed_downward)
    return (AddHashed(0, index, situation.relay.number, draws.take(32)),)


@strategy("beyond-the-share", "fill the block with messages", _MISREPORTED)
def beyond_the_share(situation: Situation, _draws: Draws) -> Proposal:
    """Include a full downward message for which the share has no room."""
    messages = situation.messages
    if situation.waiting is None or not messages.hashed_downward:
        return None
    full_count = len(messages.downward)
    first_hashed = situation.waiting.downward[full_count]
    return (DropHashed(0, 0), AddMessage(0, full_count, first_hashed.sent_at, first_hashed.msg))


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
        number=ParaBlockNumber(header.number),
        digest=(aura_pre_digest(situation.slot),),
        inherent=honest.inherent,
        plan=situation.walked,
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
    """Put another parent's header, or an empty one, into the inherent."""
    return (ParentHead(draws.choice((b"", draws.take(40), situation.honest.header.encode()))),)


@strategy(
    "wrong-proof-size",
    "use more room than a block has",
    Verdict.BAD_VALIDATION_DATA,
)
def wrong_proof_size(situation: Situation, draws: Draws) -> Proposal:
    """Put another maximum proof size into the inherent."""
    return (Number("max_pov_size", situation.spec.max_pov_size + draws.between(1, 9)),)


@strategy(
    "unwanted-descendants",
    "pretend to build behind the tip of the relay chain",
    Verdict.BAD_DESCENDANTS,
)
def unwanted_descendants(situation: Situation, _draws: Draws) -> Proposal:
    """Add a header on a chain without a relay parent offset."""
    if situation.spec.relay_parent_offset:
        return None
    return (AddDescendant(0, situation.parent.header.encode()),)
