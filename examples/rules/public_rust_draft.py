"""What do the known defects of the public Rust draft cost, and what do they let through?"""

from contextlib import suppress
from dataclasses import replace

from pubsub_emulator import CachePolicy, follow, rule


@rule
def runtime(spec):
    return replace(spec, cache=CachePolicy.NODES)


@rule
def checks(verdicts):
    """Skip two checks: the parachain system never calls `process_proof`.

    Nobody looks for omitted or unused nodes.
    """
    return tuple(each for each in verdicts if each not in {"OmittedBelowBudget", "UnusedNodes"})


@rule
def roots(before, after):
    """Keep only the processed roots that changed in this block; the others are lost."""
    return {para: root for para, root in after.items() if before.get(para) != root}


@rule
def keep(para, nodes, keys):
    """Eviction runs for each key, so that the path of the last one is all that stays cached."""
    path = {}

    def read(node, key, depth):
        path[node] = nodes[node]
        return nodes[node]

    with suppress(KeyError, StopIteration):  # the walk stopped on this path
        follow(next(iter(nodes)), keys[-1], read)
    return path


@rule
def reserve(item_cost):
    """Room is asked for a node and not for a value of any size."""
    return min(item_cost, 600)
