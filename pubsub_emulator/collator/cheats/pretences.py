"""Cheats that walk honestly with a false state.

The state has another cursor, cache, budget or set of subscriptions. Each block is consistent,
including its post-state root. If the walk takes the same nodes under the false state, there is no
cheat.
"""

from collections.abc import Callable
from dataclasses import replace

from pubsub_emulator.collator.cheats.situation import Situation, without_publisher
from pubsub_emulator.collator.cheats.steps import Add, CheatStep, claimed_results, difference
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, merge_subscriptions
from pubsub_emulator.runtime.pallet_subscriber.meter import DisableReason
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan
from pubsub_emulator.runtime.parachain.block import Verdict

_OMITTED = Verdict.OMITTED_BELOW_BUDGET
_UNUSED = Verdict.UNUSED_NODES


def _as_walked(situation: Situation, walked: Plan) -> Proposal:
    """Return the steps from the honest block to the block of this walk.

    Returns `None` if the cheat does not apply.
    """
    steps = difference(situation.walked.taken, walked.taken)
    if not steps or walked.missing is not None:
        return None
    if situation.budget is None:
        outcome = situation.outcome_of(walked)
        steps = (*steps, *claimed_results(situation.honest.header, outcome))
    return steps


def _pretend(situation: Situation, lie: Callable[[Storage], None]) -> Proposal:
    return _as_walked(situation, situation.walk_as_if(pretend=lie))


def _changed_publisher(situation: Situation, draws: Draws) -> tuple[ParaId, Hash] | None:
    changed = [
        (para, plan.root)
        for para, plan in situation.walked.publishers.items()
        if plan.root and not plan.unchanged
    ]
    return draws.choice(changed) if changed else None


@strategy(
    "as-if-unchanged",
    "keep a publisher's news from the parachain",
    _OMITTED,
    _UNUSED,
    on_proof=True,
)
def as_if_unchanged(situation: Situation, draws: Draws) -> Proposal:
    """Build as if a publisher were resolved under its current root."""
    publisher = _changed_publisher(situation, draws)
    if publisher is None:
        return None
    para, root = publisher

    def lie(storage: Storage) -> None:
        items.PROCESSED_ROOTS.put(storage, {**items.PROCESSED_ROOTS.get(storage), para: root})

    return _pretend(situation, lie)


@strategy(
    "as-if-changed",
    "walk a settled publisher again, to bloat the block",
    _UNUSED,
    _OMITTED,
    on_proof=True,
)
def as_if_changed(situation: Situation, draws: Draws) -> Proposal:
    """Build as if a publisher had never been resolved."""
    settled = [
        para for para, publisher in situation.walked.publishers.items() if publisher.unchanged
    ]
    if not settled:
        return None
    para = draws.choice(settled)
    roots = items.PROCESSED_ROOTS.get(situation.storage)

    def lie(storage: Storage) -> None:
        items.PROCESSED_ROOTS.put(
            storage, {other: root for other, root in roots.items() if other != para}
        )

    return _pretend(situation, lie)


@strategy(
    "as-if-cursor",
    "serve favourites first, and others when nothing is left",
    _OMITTED,
    _UNUSED,
    on_proof=True,
)
def as_if_cursor(situation: Situation, draws: Draws) -> Proposal:
    """Build as if the walk began at another item."""
    known = situation.subscribed_items
    if not known:
        return None
    item = draws.choice(known)
    return _pretend(situation, lambda storage: items.PROCESSING_CURSOR.put(storage, item))


@strategy(
    "reorder-items", "serve publishers from the last to the first", _OMITTED, _UNUSED, on_proof=True
)
def reorder_items(situation: Situation, _draws: Draws) -> Proposal:
    """Walk the publishers in descending order."""
    backwards = dict(reversed(list(situation.spec.subscriptions.items())))
    spec = replace(situation.spec, subscriptions=backwards)
    return _as_walked(
        situation, situation.walk_as_if(spec=spec, pretend=items.PROCESSING_CURSOR.kill)
    )


@strategy("as-if-smaller-budget", "do less work and blame the budget", _OMITTED, on_proof=True)
def as_if_smaller_budget(situation: Situation, draws: Draws) -> Proposal:
    """Build as if the budget were smaller."""
    least = situation.spec.max_item_cost
    budget = least + draws.below(
        max(min(situation.allowed, least + situation.walked.used + 160) - least, 1)
    )
    return _as_walked(situation, situation.walk_as_if(budget=budget))


@strategy("over-budget", "take more of the block than pub-sub may have", _UNUSED, on_proof=True)
def over_budget(situation: Situation, draws: Draws) -> Proposal:
    """Build as if the budget were larger or unlimited."""
    more = 1 << 40 if draws.one_in(2) else draws.between(1, 4000)
    return _as_walked(situation, situation.walk_as_if(budget=situation.allowed + more))


@strategy(
    "as-if-fewer-subscriptions", "drop a subscription that costs", _OMITTED, _UNUSED, on_proof=True
)
def as_if_fewer_subscriptions(situation: Situation, draws: Draws) -> Proposal:
    """Build as if a publisher, or one key of it, were not subscribed."""
    spec = situation.spec
    if not spec.subscriptions:
        return None
    para = draws.choice(list(spec.subscriptions))
    if draws.one_in(2):
        return _as_walked(situation, situation.walk_as_if(spec=without_publisher(spec, para)))
    omitted = draws.choice(spec.subscriptions[para])
    remaining = []
    for publisher, keys in spec.subscriptions.items():
        remaining_keys = [key for key in keys if (publisher, key) != (para, omitted)]
        remaining.append((publisher, remaining_keys))
    return _as_walked(situation, situation.walk_as_if(spec=_subscribing(spec, remaining)))


@strategy(
    "as-if-more-subscriptions",
    "deliver keys that nobody subscribed to",
    _UNUSED,
    _OMITTED,
    on_proof=True,
)
def as_if_more_subscriptions(situation: Situation, draws: Draws) -> Proposal:
    """Build as if one more key were subscribed."""
    spec = situation.spec
    para = draws.choice([*spec.subscriptions, ParaId(999)])
    more = [(p, list(keys)) for p, keys in spec.subscriptions.items()] + [
        (para, [PubsubKey(draws.take(32))])
    ]
    return _as_walked(situation, situation.walk_as_if(spec=_subscribing(spec, more)))


def _subscribing(spec: RuntimeSpec, declared: list[tuple[ParaId, list[PubsubKey]]]) -> RuntimeSpec:
    return replace(spec, subscriptions=merge_subscriptions(declared))


@strategy(
    "as-if-disabled",
    "have a publisher skipped as if it were unreadable",
    _OMITTED,
    _UNUSED,
    on_proof=True,
)
def as_if_disabled(situation: Situation, draws: Draws) -> Proposal:
    """Build as if a publisher were disabled."""
    if not situation.spec.subscriptions:
        return None
    para = draws.choice(list(situation.spec.subscriptions))
    return _pretend(
        situation, lambda s: items.DISABLED_PUBLISHERS.insert(s, para, DisableReason.UNDECODABLE)
    )


@strategy(
    "as-if-delivered", "hold a value back as if it were known", _OMITTED, _UNUSED, on_proof=True
)
def as_if_delivered(situation: Situation, draws: Draws) -> Proposal:
    """Build as if an entry that changed had been delivered before."""
    changes = [change for change in situation.walked.changes if change.entry is not None]
    if not changes:
        return None
    change = draws.choice(changes)
    row = items.LastDelivered(change.entry_hash, 0, situation.relay.number)
    return _pretend(
        situation,
        lambda storage: delivered.put(storage, situation.spec, change.para, change.key, row),
    )


@strategy(
    "as-if-cached",
    "leave out a node as if the parachain remembered it",
    _OMITTED,
    _UNUSED,
    on_proof=True,
)
def as_if_cached(situation: Situation, draws: Draws) -> Proposal:
    """Build as if nodes of a publisher's paths were cached."""
    walked = [plan for plan in situation.walked.publishers.values() if plan.visited]
    if not walked:
        return None
    plan = draws.choice(walked)

    def lie(storage: Storage) -> None:
        info = items.CACHE_INFO.get(storage, plan.para)
        items.CACHE_INFO.insert(
            storage, plan.para, items.CacheInfo(info.generation, info.nodes + 1, info.bytes)
        )
        for node_hash, node in draws.sample(
            list(plan.visited.items()), draws.between(1, len(plan.visited))
        ):
            items.CACHED_TRIE_NODES.insert(storage, (plan.para, info.generation), node_hash, node)

    return _pretend(situation, lie)


@strategy("as-if-not-cached", "include cached nodes again", _UNUSED, _OMITTED, on_proof=True)
def as_if_not_cached(situation: Situation, _draws: Draws) -> Proposal:
    """Build as if nothing were cached."""

    def lie(storage: Storage) -> None:
        for para in situation.spec.subscriptions:
            items.CACHE_INFO.remove(storage, para)
            items.CACHE_SLOTS.clear(storage, para)

    return _pretend(situation, lie)


@strategy(
    "poison-cache",
    "have forged nodes remembered, and believed later",
    _OMITTED,
    _UNUSED,
    on_proof=True,
)
def poison_cache(situation: Situation, draws: Draws) -> Proposal:
    """Use nodes of a state that no relay block has as if they belonged to the genuine root."""
    if situation.foreign is None:
        return None
    genuine = situation.proof.nodes
    forged = situation.proof_of(situation.foreign).nodes
    foreign = [node for node_hash, node in forged.items() if node_hash not in genuine]
    if not foreign:
        return None
    added: tuple[CheatStep, ...] = tuple(Add(node) for node in foreign)
    if draws.one_in(2):
        return added
    static = situation.proof.static_nodes
    omitted = {
        h: n for h, n in situation.walked.taken.items() if h not in forged and h not in static
    }
    return (*difference(omitted, {}), *added)
