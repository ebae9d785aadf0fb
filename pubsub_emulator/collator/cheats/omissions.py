"""Cheats that omit something: to hide a change, to starve a publisher, or to save bytes."""

from collections.abc import Iterable

from pubsub_emulator.collator.cheats.situation import Situation, without_publisher
from pubsub_emulator.collator.cheats.steps import Add, Clear, Drop, Step
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.collator.draws import Draws
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.rules import rules_of

_OMITTED = Verdict.OMITTED_BELOW_BUDGET
_ROOT = Verdict.ROOT_MISMATCH


def drops(hashes: Iterable[Hash]) -> tuple[Step, ...]:
    """The steps that omit these nodes."""
    return tuple(Drop(node_hash) for node_hash in hashes)


def _publisher(situation: Situation, draws: Draws) -> ParaId | None:
    met = [para for para, publisher in situation.walked.publishers.items() if publisher.root is not None]
    return draws.choice(met) if met else None


@strategy("omit-node", "hide a change behind one missing node, and save its bytes", _OMITTED, _ROOT, on_proof=True)
def omit_node(situation: Situation, draws: Draws) -> Proposal:
    """Omit one node that the walk takes."""
    return drops([draws.choice(list(situation.walked.taken))])


@strategy("omit-value", "keep the path of an entry, and hide its new value", _OMITTED, on_proof=True)
def omit_value(situation: Situation, draws: Draws) -> Proposal:
    """Omit the detached value of an entry that changed."""
    taken = situation.walked.taken
    values = [change.entry_hash for change in situation.walked.changes if change.entry_hash in taken]
    return drops([draws.choice(values)]) if values else None


@strategy("omit-publisher", "silence a publisher: nothing of it is in the block", _OMITTED, on_proof=True)
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
    child, _ = rules_of(situation.spec.rules).placed(para, ())
    situation.relay.prove((child_root_key(child),), {}, path)
    taken, static = situation.walked.taken, situation.proof.static_nodes
    return drops(node_hash for node_hash in path if node_hash in taken and node_hash not in static)


@strategy("omit-static-path", "leave open what the relay chain says of the parachain itself", _OMITTED, on_proof=True)
def omit_static_path(situation: Situation, draws: Draws) -> Proposal:
    """Omit a node of the static keys' paths other than the root."""
    below = [node_hash for node_hash in situation.proof.static_nodes if node_hash != situation.relay.storage_root]
    return drops([draws.choice(below)]) if below else None


@strategy("truncate-early", "do less work than the budget asks for", _OMITTED, _ROOT, on_proof=True)
def truncate_early(situation: Situation, draws: Draws) -> Proposal:
    """End the proof at some point of the walk, as if the stop rule had fired there."""
    taken = list(situation.walked.taken)
    return drops(taken[draws.below(len(taken)) :])


@strategy("skip-big-node", "pass over an expensive entry and deliver cheap ones after it", _OMITTED, on_proof=True)
def skip_big_node(situation: Situation, draws: Draws) -> Proposal:
    """Omit the largest node below the static keys, and use its bytes for nodes after the stop."""
    del draws
    walked, static = situation.walked, situation.proof.static_nodes
    mine = [node_hash for node_hash in walked.taken if node_hash not in static]
    if not mine:
        return None
    biggest = max(mine, key=lambda node_hash: (len(walked.taken[node_hash]), node_hash))
    freed = node_cost(len(walked.taken[biggest]))
    beyond = situation.walk_as_if(budget=situation.allowed + freed).taken
    return (Drop(biggest), *(Add(node) for node_hash, node in beyond.items() if node_hash not in walked.taken))


@strategy("empty-proof", "skip all work", _ROOT, on_proof=True)
def empty_proof(situation: Situation, draws: Draws) -> Proposal:
    """List no nodes at all."""
    del situation, draws
    return (Clear(),)
