"""Random changes to the list of nodes, several at once, with nodes from anywhere."""

from collections.abc import Sequence

from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import Add, CheatStep, Drop, Insert, Swap, difference
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.parachain.block import Verdict

_ANY = (
    Verdict.DUPLICATE_NODE,
    Verdict.UNSORTED_PROOF,
    Verdict.ROOT_MISMATCH,
    Verdict.OMITTED_BELOW_BUDGET,
    Verdict.UNUSED_NODES,
)


@strategy("any-mutation", "anything that a changed list of nodes may yield", *_ANY, on_proof=True)
def any_mutation(situation: Situation, draws: Draws) -> Proposal:
    """Apply one to four mutations of: drop, add, alter, repeat, move.

    Added nodes are from this, an older or a foreign relay state, or are junk.
    """
    nodes = situation.canonical
    steps: list[CheatStep] = []
    for _ in range(draws.choice((1, 1, 1, 2, 3, 4))):
        kind = draws.below(7)
        node = draws.choice(nodes)
        if kind == 0:
            steps.append(Drop(blake2_256(node)))
        elif kind == 1:
            steps.append(Add(_material(situation, draws)))
        elif kind == 2:
            steps += [Drop(blake2_256(node)), Add(_altered(node, draws))]
        elif kind == 3:
            steps += [Drop(blake2_256(node)), Add(_material(situation, draws))]
        elif kind == 4:
            steps.append(Insert(draws.below(len(nodes) + 1), node))
        elif kind == 5:
            steps += [Drop(blake2_256(node)), Insert(draws.below(len(nodes)), node)]
        else:
            steps.append(Swap(draws.below(len(nodes)), draws.below(len(nodes))))
    return tuple(steps)


@strategy("any-subset", "anything that fewer nodes may yield", *_ANY[2:4], on_proof=True)
def any_subset(situation: Situation, draws: Draws) -> Proposal:
    """Omit a random subset of the nodes: few, half or most of them."""
    keep = draws.choice((30, 128, 250))
    omitted = [blake2_256(node) for node in situation.canonical if draws.below(256) >= keep]
    return tuple(Drop(node_hash) for node_hash in omitted)


@strategy(
    "another-set", "anything that another set of genuine nodes may yield", *_ANY[2:], on_proof=True
)
def another_set(situation: Situation, draws: Draws) -> Proposal:
    """Use a random subset of the full proof, or all of it.

    Half of the time it includes all honest nodes.
    """
    nodes = situation.proof.nodes
    taken = situation.walked.taken
    keep = draws.choice((128, 250, 256))
    honest = draws.one_in(2)
    chosen: dict[Hash, bytes] = {
        node_hash: node
        for node_hash, node in nodes.items()
        if draws.below(256) < keep or (honest and node_hash in taken)
    }
    return difference(taken, chosen)


@strategy("drop-and-restore", "nothing, since the honest block results", on_proof=True)
def drop_and_restore(situation: Situation, draws: Draws) -> Proposal:
    """Omit a node and put it back, which gives the honest block."""
    node = draws.choice(situation.canonical)
    return (Drop(blake2_256(node)), Add(node))


def _material(situation: Situation, draws: Draws) -> bytes:
    sources = [situation.relay, *situation.others[:2]]
    if situation.foreign is not None:
        sources.append(situation.foreign)
    nodes: Sequence[bytes] = situation.listed(draws.choice(sources))
    return (
        draws.choice(nodes) if nodes and not draws.one_in(5) else draws.take(draws.between(0, 70))
    )


def _altered(node: bytes, draws: Draws) -> bytes:
    kind = draws.below(5)
    index = draws.below(len(node))
    if kind == 0:
        return node[:index]
    if kind == 1:
        return node + draws.take(1)
    if kind == 2:
        return node[:index] + draws.take(1) + node[index:]
    return node[:index] + bytes((node[index] ^ 1 << draws.below(8),)) + node[index + 1 :]


MUTATIONS = (any_mutation, any_subset, another_set, drop_and_restore)
