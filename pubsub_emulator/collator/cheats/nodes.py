"""Cheats with the list of nodes.

Omissions hide data or starve a publisher, additions bloat the block or smuggle data, and some
cheats change the order.
"""

from collections.abc import Iterable

from pubsub_emulator.collator.cheats.situation import Situation, without_publisher
from pubsub_emulator.collator.cheats.steps import Add, CheatStep, Clear, Drop, Insert, Swap
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, node_cost
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.pallet_subscriber.storage import CACHE_INFO, CACHED_TRIE_NODES
from pubsub_emulator.runtime.parachain.block import Verdict

_OMITTED = Verdict.OMITTED_BELOW_BUDGET
_ROOT = Verdict.ROOT_MISMATCH


def drops(hashes: Iterable[Hash]) -> tuple[CheatStep, ...]:
    """Return the steps that omit these nodes."""
    return tuple(Drop(node_hash) for node_hash in hashes)


def _publisher(situation: Situation, draws: Draws) -> ParaId | None:
    published = [
        para
        for para, publisher in situation.walked.publishers.items()
        if publisher.root is not None
    ]
    return draws.choice(published) if published else None


@strategy(
    "omit-node",
    "hide a change behind one missing node, and save its bytes",
    _OMITTED,
    _ROOT,
    on_proof=True,
)
def omit_node(situation: Situation, draws: Draws) -> Proposal:
    """Omit one node that the walk takes."""
    return drops([draws.choice(list(situation.walked.taken))])


@strategy(
    "omit-value", "keep the path of an entry, and hide its new value", _OMITTED, on_proof=True
)
def omit_value(situation: Situation, draws: Draws) -> Proposal:
    """Omit the detached value of an entry that changed."""
    taken = situation.walked.taken
    values = [
        change.entry_hash for change in situation.walked.changes if change.entry_hash in taken
    ]
    return drops([draws.choice(values)]) if values else None


@strategy(
    "omit-publisher", "silence a publisher by leaving it out of the block", _OMITTED, on_proof=True
)
def omit_publisher(situation: Situation, draws: Draws) -> Proposal:
    """Omit the nodes that only one publisher needs, including its top path."""
    para = _publisher(situation, draws)
    if para is None:
        return None
    without = situation.walk_as_if(spec=without_publisher(situation.spec, para)).taken
    return drops(node_hash for node_hash in situation.walked.taken if node_hash not in without)


@strategy("omit-child-root-path", "leave open which root a publisher has", _OMITTED, on_proof=True)
def omit_child_root_path(situation: Situation, draws: Draws) -> Proposal:
    """Omit the top path to a publisher's child root, except for nodes that the static keys need."""
    para = _publisher(situation, draws)
    if para is None:
        return None
    path: dict[Hash, bytes] = {}
    child, _ = situation.rules.placed(para, ())
    situation.relay.prove((child_root_key(child),), {}, path)
    taken = situation.walked.taken
    static = situation.proof.static_nodes
    return drops(node_hash for node_hash in path if node_hash in taken and node_hash not in static)


@strategy(
    "omit-static-path",
    "leave open what the relay chain says about the parachain itself",
    _OMITTED,
    on_proof=True,
)
def omit_static_path(situation: Situation, draws: Draws) -> Proposal:
    """Omit a node of the static keys' paths other than the root."""
    below = [
        node_hash
        for node_hash in situation.proof.static_nodes
        if node_hash != situation.relay.storage_root
    ]
    return drops([draws.choice(below)]) if below else None


@strategy("truncate-early", "do less work than the budget asks for", _OMITTED, _ROOT, on_proof=True)
def truncate_early(situation: Situation, draws: Draws) -> Proposal:
    """End the proof at some point of the walk, as if the stop rule had fired there."""
    taken = list(situation.walked.taken)
    return drops(taken[draws.below(len(taken)) :])


@strategy(
    "skip-big-node",
    "pass over an expensive entry and deliver cheap ones after it",
    _OMITTED,
    on_proof=True,
)
def skip_big_node(situation: Situation, _draws: Draws) -> Proposal:
    """Omit the largest node below the static keys, and use its bytes for nodes after the stop."""
    walked = situation.walked
    static = situation.proof.static_nodes
    others = [node_hash for node_hash in walked.taken if node_hash not in static]
    if not others:
        return None
    biggest = max(others, key=lambda node_hash: (len(walked.taken[node_hash]), node_hash))
    freed = node_cost(len(walked.taken[biggest]))
    beyond = situation.walk_as_if(budget=situation.allowed + freed).taken
    return (
        Drop(biggest),
        *(Add(node) for node_hash, node in beyond.items() if node_hash not in walked.taken),
    )


@strategy("empty-proof", "skip all work", _ROOT, on_proof=True)
def empty_proof(_situation: Situation, _draws: Draws) -> Proposal:
    """List no nodes at all."""
    return (Clear(),)


_OMITTED = Verdict.OMITTED_BELOW_BUDGET
_ROOT = Verdict.ROOT_MISMATCH
_UNUSED = Verdict.UNUSED_NODES
_DUPLICATE = Verdict.DUPLICATE_NODE
_UNSORTED = Verdict.UNSORTED_PROOF


@strategy("add-junk", "fill the block with bytes of one's own choice", _UNUSED, on_proof=True)
def add_junk(_situation: Situation, draws: Draws) -> Proposal:
    """Add bytes that are not a node of any trie, possibly empty."""
    return (Add(draws.take(draws.choice((0, 1, 33, 120)))),)


@strategy(
    "add-cached-node", "have the chain pay twice for what it remembers", _UNUSED, on_proof=True
)
def add_cached_node(situation: Situation, draws: Draws) -> Proposal:
    """Add a node of the subscriber's own cache."""
    taken = situation.walked.taken
    cached: list[bytes] = []
    for para in situation.spec.subscriptions:
        generation = (para, CACHE_INFO.get(situation.storage, para).generation)
        rows = CACHED_TRIE_NODES.items(situation.storage, generation)
        cached += [node for node_hash, node in rows if node_hash not in taken]
    return (Add(draws.choice(cached)),) if cached else None


@strategy(
    "add-needless-node",
    "slip in a genuine node that the walk has no use for",
    _UNUSED,
    on_proof=True,
)
def add_needless_node(situation: Situation, draws: Draws) -> Proposal:
    """Add a node of the full proof that the walk did not take.

    It is below a settled root, cached, or after the stop.
    """
    taken = situation.walked.taken
    spare = [node for node_hash, node in situation.proof.nodes.items() if node_hash not in taken]
    return (Add(draws.choice(spare)),) if spare else None


@strategy("add-unsubscribed-path", "deliver what nobody asked for", _UNUSED, on_proof=True)
def add_unsubscribed_path(situation: Situation, draws: Draws) -> Proposal:
    """Add the path of a key that is not subscribed, or of a publisher that is not."""
    subscribed = list(situation.spec.subscriptions)
    para = draws.choice(subscribed) if subscribed else None
    path: dict[Hash, bytes] = {}
    if para is None or draws.one_in(3):
        situation.relay.prove((draws.take(32),), {}, path)
    else:
        keys = [PubsubKey(draws.take(32)) for _ in range(4)]
        situation.relay.prove((), dict((situation.rules.placed(para, keys),)), path)
    taken = situation.walked.taken
    added = tuple(Add(node) for node_hash, node in path.items() if node_hash not in taken)
    return added or None


@strategy(
    "duplicate-node",
    "make up for a missing node by counting another twice",
    _DUPLICATE,
    on_proof=True,
)
def duplicate_node(situation: Situation, draws: Draws) -> Proposal:
    """List a node twice, side by side."""
    return (Add(draws.choice(situation.canonical)),)


@strategy(
    "duplicate-apart",
    "hide a repeated node from a verifier that compares only neighbours",
    _DUPLICATE,
    on_proof=True,
)
def duplicate_apart(situation: Situation, draws: Draws) -> Proposal:
    """List a node twice, not side by side if there are others."""
    nodes = situation.canonical
    index = draws.below(len(nodes))
    return (Insert(len(nodes) if 2 * index < len(nodes) else 0, nodes[index]),)


@strategy(
    "duplicate-instead",
    "keep the number of nodes right while one is left out",
    _DUPLICATE,
    on_proof=True,
)
def duplicate_instead(situation: Situation, draws: Draws) -> Proposal:
    """Omit one node and list another twice."""
    nodes = situation.canonical
    if len(nodes) < 2:
        return None
    one, other = draws.sample(nodes, 2)
    return (Drop(blake2_256(one)), Add(other))


@strategy("bit-flip", "pass off an altered node", _OMITTED, _ROOT, on_proof=True)
def bit_flip(situation: Situation, draws: Draws) -> Proposal:
    """Flip one bit of one node."""
    node = draws.choice(situation.canonical)
    bit = draws.below(8 * len(node))
    altered = bytearray(node)
    altered[bit >> 3] ^= 1 << (bit & 7)
    return (Drop(blake2_256(node)), Add(bytes(altered)))


@strategy(
    "resize-node", "pass off a node with bytes removed or added", _OMITTED, _ROOT, on_proof=True
)
def resize_node(situation: Situation, draws: Draws) -> Proposal:
    """Cut bytes off the end of a node or append some, which lax decoders do not notice."""
    node = draws.choice(situation.canonical)
    altered = (
        node + draws.take(draws.between(1, 4))
        if draws.one_in(2)
        else node[: draws.below(len(node))]
    )
    return (Drop(blake2_256(node)), Add(altered))


@strategy("reorder-list", "have two encodings of one block", _UNSORTED, on_proof=True)
def reorder_list(situation: Situation, draws: Draws) -> Proposal:
    """Swap two nodes."""
    count = len(situation.canonical)
    if count < 2:
        return None
    one, other = draws.sample(range(count), 2)
    return (Swap(one, other),)


@strategy("walk-order-list", "list the nodes as the walk reads them", _UNSORTED, on_proof=True)
def walk_order_list(situation: Situation, _draws: Draws) -> Proposal:
    """List the same nodes in the order of the walk."""
    wanted = list(situation.walked.taken.values())
    listed = list(situation.canonical)
    steps: list[CheatStep] = []
    for index, node in enumerate(wanted):
        present = listed.index(node)
        if present != index:
            steps.append(Swap(index, present))
            listed[index], listed[present] = listed[present], listed[index]
    return tuple(steps) or None


@strategy(
    "value-as-node",
    "have a value, which a publisher chooses, read as a node",
    _OMITTED,
    _ROOT,
    on_proof=True,
)
def value_as_node(situation: Situation, draws: Draws) -> Proposal:
    """List, in place of a node, an entry whose bytes encode a node made by the attacker."""
    node = draws.choice(list(situation.walked.taken.values()))
    forged = PublishedEntry(
        b"\x00" + node, draws.below(9), RelayBlockNumber(situation.relay.number)
    ).encode()
    return (Drop(blake2_256(node)), Add(forged))
