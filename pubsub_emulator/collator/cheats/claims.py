"""Cheats with false claims.

They claim another relay parent, other messages, another post-state or another parent.
"""

from dataclasses import replace

from pubsub_emulator.collator.author import RelayAccess, descendants
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import (
    AddDescendant,
    AddMessage,
    AddSender,
    CheatStep,
    Claim,
    DropDescendant,
    DropHashed,
    DropMessage,
    DropSender,
    Number,
    Stuff,
    claimed_results,
    difference,
)
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.types import RelayBlockNumber
from pubsub_emulator.runtime.pallet_subscriber.plan import plan
from pubsub_emulator.runtime.pallet_subscriber.storage import LAST_RELAY_PARENT
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.parachain.descendants import count_fault

_MISREPORTED = Verdict.MESSAGES_MISREPORTED
_ROOT = Verdict.ROOT_MISMATCH


def _last_relay_parent(situation: Situation) -> int:
    return LAST_RELAY_PARENT.get(situation.storage) or 0


def _older(situation: Situation) -> list[RelayAccess]:
    root = situation.relay.storage_root
    return [
        relay
        for relay in situation.others
        if relay.storage_root != root and relay.number < situation.relay.number
    ]


def _buildable(situation: Situation, relay: RelayAccess) -> bool:
    """Return whether the author knows all relay headers of a block on `relay`."""
    return count_fault(situation.spec, descendants(situation.spec, relay)) is None


def _built_on(situation: Situation, relay: RelayAccess) -> Proposal:
    """Return the steps to the honest block on another relay block, with that block's messages."""
    messages = situation.messages.until(relay.number)
    full = situation.proof_of(relay)
    calls = situation.calls_in(messages)
    walked = plan(
        situation.view,
        relay.storage_root,
        full.nodes,
        situation.spec.budget(messages.weight),
        calls,
        authorities=situation.authorities_on(relay),
    )
    inherent = situation.inherent(relay, walked, messages)
    steps: list[CheatStep] = [
        Number("relay_parent_number", relay.number),
        Claim("relay_parent_storage_root", inherent.relay_parent_storage_root),
    ]
    steps += difference(situation.walked.taken, walked.taken)
    steps += [
        DropMessage(0, index)
        for index in range(len(situation.messages.downward) - 1, len(messages.downward) - 1, -1)
    ]
    steps += [
        DropHashed(0, index)
        for index in range(
            len(situation.messages.hashed_downward) - 1, len(messages.hashed_downward) - 1, -1
        )
    ]
    known = dict(messages.horizontal)
    for queue, (sender, sent) in enumerate(situation.messages.horizontal, start=1):
        steps += [
            DropMessage(queue, index)
            for index in range(len(sent) - 1, len(known.get(sender, ())) - 1, -1)
        ]
    steps += [
        DropSender(sender) for sender, _ in situation.messages.horizontal if sender not in known
    ]
    steps += [DropDescendant(0) for _ in situation.honest.inherent.descendants]
    steps += [
        AddDescendant(index, header.encode()) for index, header in enumerate(inherent.descendants)
    ]
    outcome = situation.outcome_of(walked, inherent=inherent)
    return (*steps, *claimed_results(situation.honest.header, outcome))


@strategy("stale-root", "prove against an older relay state than the block claims", _ROOT)
def stale_root(situation: Situation, draws: Draws) -> Proposal:
    """Use the proof and root of an older relay block as those of the newer one."""
    older = _older(situation)
    if not older:
        return None
    relay = draws.choice(older)
    walked = situation.walk_as_if(relay=relay)
    steps = difference(situation.walked.taken, walked.taken)
    if draws.one_in(2):
        # The claimed root remains that of the relay parent.
        return steps or None
    return (*steps, Claim("relay_parent_storage_root", relay.storage_root))


@strategy("decreased-relay-parent", "show old values again", Verdict.RELAY_PARENT_DECREASED)
def decreased_relay_parent(situation: Situation, draws: Draws) -> Proposal:
    """Build an otherwise honest block on a relay block older than the parent's."""
    last = _last_relay_parent(situation)
    older = [
        relay for relay in situation.others if relay.number < last and _buildable(situation, relay)
    ]
    return _built_on(situation, draws.choice(older)) if older else None


@strategy("unknown-relay-parent", "build on a relay block that never existed", _ROOT)
def unknown_relay_parent(situation: Situation, draws: Draws) -> Proposal:
    """Claim a relay parent that the relay chain does not have."""
    known = [relay.number for relay in (situation.relay, *situation.others)]
    return (Number("relay_parent_number", max(known) + draws.between(1, 1000)),)


@strategy("foreign-root", "prove against a state of one's own making", _ROOT)
def foreign_root(situation: Situation, draws: Draws) -> Proposal:
    """Use a complete proof of a state that no relay block has; perhaps claim its root, too."""
    if situation.foreign is None:
        return None
    walked = situation.walk_as_if(relay=situation.foreign)
    steps = difference(situation.walked.taken, walked.taken)
    if draws.one_in(2):
        return steps or None
    return (*steps, Claim("relay_parent_storage_root", situation.foreign.storage_root))


@strategy("claimed-root", "have the header of the proof say something else than the proof", _ROOT)
def claimed_root(_situation: Situation, draws: Draws) -> Proposal:
    """Claim some other storage root over the honest proof."""
    return (Claim("relay_parent_storage_root", draws.take(32)),)


@strategy("equivocation", "have two valid blocks for one slot, and choose later which to show")
def equivocation(situation: Situation, draws: Draws) -> Proposal:
    """Build a second valid block for the same slot on another relay parent; see `equivocates`."""
    last = _last_relay_parent(situation)
    choices = [
        relay
        for relay in situation.others
        if last <= relay.number != situation.relay.number and _buildable(situation, relay)
    ]
    return _built_on(situation, draws.choice(choices)) if choices else None


def _places(situation: Situation) -> list[tuple[int, int, int, bytes]]:
    """Return all messages as `(queue, index, sent_at, bytes)`."""
    places: list[tuple[int, int, int, bytes]] = []
    for queue, (_, messages) in enumerate(situation.messages.queues()):
        places += [(queue, index, *message) for index, message in enumerate(messages)]
    return places


@strategy("drop-message", "censor a message", _MISREPORTED)
def drop_message(situation: Situation, draws: Draws) -> Proposal:
    """Omit one message."""
    places = _places(situation)
    if not places:
        return None
    queue, index, _, _ = draws.choice(places)
    if queue and len(situation.messages.horizontal[queue - 1][1]) == 1:
        return (DropSender(situation.messages.horizontal[queue - 1][0]),)
    return (DropMessage(queue, index),)


@strategy("alter-message", "replace an order by another one", _MISREPORTED)
def alter_message(situation: Situation, draws: Draws) -> Proposal:
    """Change a message's bytes or the block that sent it."""
    places = _places(situation)
    if not places:
        return None
    queue, index, sent_at, data = draws.choice(places)
    if draws.one_in(3):
        sent_at += 1
    else:
        data += draws.take(1)
    return (DropMessage(queue, index), AddMessage(queue, index, sent_at, data))


@strategy("reorder-messages", "change the sequence of orders", _MISREPORTED)
def reorder_messages(situation: Situation, draws: Draws) -> Proposal:
    """Move a message to the end of its queue.

    Horizontal messages are in the order of sending on the wire, so only those of one relay block
    can be moved.
    """
    queues = situation.messages.queues()
    movable = []
    for queue, (_, messages) in enumerate(queues):
        for index, message in enumerate(messages):
            following = messages[index + 1 :]
            same_block = all(sent_at == message[0] for sent_at, _ in following)
            if following != messages[index:-1] and (queue == 0 or same_block):
                movable.append((queue, index, *message))
    if not movable:
        return None
    queue, index, sent_at, data = draws.choice(movable)
    return (DropMessage(queue, index), AddMessage(queue, len(queues[queue][1]) - 1, sent_at, data))


@strategy(
    "forge-message",
    "give orders in the name of the relay chain or of another parachain",
    _MISREPORTED,
)
def forge_message(situation: Situation, draws: Draws) -> Proposal:
    """Add a message that nobody sent, to the downward queue or to a possibly missing channel."""
    data = draws.take(draws.between(0, 40))
    if draws.one_in(2):
        return (
            AddMessage(
                0, draws.below(len(situation.messages.downward) + 1), situation.relay.number, data
            ),
        )
    sender = draws.choice([*situation.proof.statics.hrmp_heads, 1234])
    queue = 1 + sum(1 for other, _ in situation.messages.horizontal if other < sender)
    opened = (
        ()
        if any(other == sender for other, _ in situation.messages.horizontal)
        else (AddSender(sender),)
    )
    return (*opened, AddMessage(queue, 0, situation.relay.number, data))


@strategy("stuff-messages", "fill the whole block with messages", _MISREPORTED)
def stuff_messages(situation: Situation, _draws: Draws) -> Proposal:
    """Add a message so large that the downward messages exceed their share."""
    return (Stuff(situation.relay.number, situation.shares.limit + 1),)


# Post-state and parent


@strategy(
    "wrong-state-root",
    "claim another state than executing the block gives",
    Verdict.STATE_ROOT_MISMATCH,
)
def wrong_state_root(situation: Situation, draws: Draws) -> Proposal:
    """Claim another post-state root, possibly the parent's."""
    return (
        Claim("state_root", draws.choice((draws.take(32), situation.parent.header.state_root))),
    )


@strategy(
    "withheld-delivery",
    "execute the block without one of its deliveries",
    Verdict.STATE_ROOT_MISMATCH,
)
def withheld_delivery(situation: Situation, draws: Draws) -> Proposal:
    """Claim the state in which one change was not delivered, with the honest proof."""
    walked = situation.walked
    if not walked.changes:
        return None
    withheld = draws.choice(walked.changes)
    # `walk_as_if` makes a separate plan, so it can be changed here.
    false = situation.walk_as_if()
    false.changes = [
        change
        for change in false.changes
        if (change.para, change.key) != (withheld.para, withheld.key)
    ]
    root = situation.state_root_after(false)
    return (Claim("state_root", root),) if root != situation.honest.header.state_root else None


@strategy("moved-cursor", "have the next walk begin elsewhere", Verdict.STATE_ROOT_MISMATCH)
def moved_cursor(situation: Situation, draws: Draws) -> Proposal:
    """Claim the state with another cursor, with the honest proof."""
    false = situation.walk_as_if()
    items = [item for item in situation.subscribed_items if item != false.cursor]
    if not items:
        return None
    false.cursor = draws.choice(items)
    return (Claim("state_root", situation.state_root_after(false)),)


@strategy(
    "later-relay-parent",
    "make entries look older or younger than they are",
    Verdict.STATE_ROOT_MISMATCH,
)
def later_relay_parent(situation: Situation, draws: Draws) -> Proposal:
    """Claim the post-state of the same block at another relay height."""
    number = RelayBlockNumber(situation.relay.number + draws.between(1, 9))
    inherent = replace(situation.honest.inherent, relay_parent_number=number)
    return (Claim("state_root", situation.state_root_after(situation.walked, inherent=inherent)),)


@strategy("bad-parent", "build on a block that is not the newest", Verdict.BAD_PARENT)
def bad_parent(situation: Situation, draws: Draws) -> Proposal:
    """Claim another parent: a random one, a grandparent, or the right one at a wrong height."""
    kind = draws.below(3)
    if kind == 0:
        return (Claim("parent_hash", draws.take(32)),)
    if kind == 1:
        return (Claim("parent_hash", situation.parent.header.parent_hash),)
    number = draws.choice((situation.parent.header.number, situation.parent.header.number + 2))
    root = situation.state_root_after(situation.walked, number=number)
    return (Number("number", number), Claim("state_root", root))
