"""The nodes that reads of a trie touch, with their cost in a proof."""

from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.trie.nodes import Node


class Recording:
    """The nodes and detached values that some reads of one trie touch, each once.

    The trie must not be written while they are recorded. `beside` is a recording of other reads of
    the same trie, and `shared` the cost of the nodes that it had before this one. So the two cost
    together `cost + beside.cost - shared - beside.shared`.

    The rest spares the trie work:

    visited  its own nodes that are recorded
    starts   where to set out, by the first bytes of a key: a recorded node, and the nibble at which
             it starts
    absent   the beginning of keys that are absent and touch recorded nodes only, or `None`
    """

    __slots__ = ("absent", "beside", "cost", "nodes", "shared", "starts", "visited")

    def __init__(self, beside: "Recording | None" = None) -> None:
        self.nodes: set[bytes] = set()
        self.cost = 0
        self.shared = 0
        self.beside = beside
        self.visited: set[object] = set()
        self.starts: dict[bytes, tuple[Node, int]] = {}
        self.absent: bytes | None = None

    def add(self, node: bytes) -> None:
        """Record a node or detached value, given by its bytes."""
        nodes = self.nodes
        if node not in nodes:
            nodes.add(node)
            cost = len(node)
            # This repeats the usual cases of `node_cost`.
            if cost < 0x40:
                cost += 1
            elif cost < 0x4000:
                cost += 2
            else:
                cost = node_cost(cost)
            self.cost += cost
            beside = self.beside
            if beside is not None and node in beside.nodes:
                self.shared += cost

    def copy_from(self, other: "Recording") -> None:
        """Begin with the nodes of another recording, of a trie with the same root."""
        self.nodes = other.nodes.copy()
        self.cost = other.cost
        self.shared = other.shared
        self.visited = other.visited.copy()
