"""The failures of trie readers, as separate types because different people are at fault.

A missing node is an incomplete proof, a malformed node is senseless data under a genuine hash, and
an unused or repeated node is a padded proof. A reader never treats any of them as the absence of a
key.
"""

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.words import counted


class TrieError(PubsubError):
    """Base of every failure of a trie, a proof or a compact proof."""


class MissingNode(TrieError):
    """A read needs the node or detached value `hash`, which is missing.

    `root` is the trie that is read, `key` the wanted key, and `depth` the number of nibbles of
    `key` above the missing node. If `hash` equals `root`, the whole trie is unknown (sp-trie:
    `InvalidStateRoot`, otherwise `IncompleteDatabase`).
    """

    def __init__(self, hash: bytes, root: bytes, key: bytes, depth: int) -> None:  # noqa: A002  # the field's name
        super().__init__(
            f"node {hash.hex()} is missing at nibble {depth} of key {key.hex()} under root"
            f" {root.hex()}"
        )
        self.hash = hash
        self.root = root
        self.key = key
        self.depth = depth


class BadNode(TrieError):
    """The bytes of node `hash` are not a trie node.

    `reason` says why. Both hashes are empty if the bytes were judged alone (`step`). An inline node
    has the hash of the node that contains it.
    """

    def __init__(self, hash: bytes, root: bytes, key: bytes, depth: int, reason: str) -> None:  # noqa: A002  # as above
        super().__init__(
            f"node {hash.hex()} at nibble {depth} of key {key.hex()} under root {root.hex()}:"
            f" {reason}"
        )
        self.hash = hash
        self.root = root
        self.key = key
        self.depth = depth
        self.reason = reason

    def placed(self, hash: bytes, root: bytes) -> "BadNode":  # noqa: A002  # as above
        """Return this failure with the node and the trie in which it was met."""
        return BadNode(hash, root, self.key, self.depth, self.reason)


class DuplicateNodes(TrieError):
    """A proof lists `hashes` more than once."""

    def __init__(self, hashes: tuple[bytes, ...]) -> None:
        super().__init__(
            f"the proof repeats {counted(len(hashes), 'node')}, first {hashes[0].hex()}"
        )
        self.hashes = hashes


class UnusedNodes(TrieError):
    """A proof has `count` nodes or items to which nothing refers.

    `hashes` has the hashes of those that are nodes.
    """

    def __init__(self, count: int, hashes: tuple[bytes, ...] = ()) -> None:
        super().__init__(f"the proof has {counted(count, 'unused node')}")
        self.count = count
        self.hashes = hashes


class IncompleteProof(TrieError):
    """A compact proof ends before its trie is complete."""


class ValueMismatch(TrieError):
    """A proof without values contradicts the expected value of `key`.

    Either the key is absent although a value was expected, or it is present although it should be
    absent. A different value is a `RootMismatch`, since the proof does not contain values.
    """

    def __init__(self, key: bytes, *, is_absent: bool) -> None:
        state = "absent, but a value was expected" if is_absent else "present, but was not expected"
        super().__init__(f"key 0x{key.hex()} is {state}")
        self.key = key


class ExtraneousValue(TrieError):
    """A proof without values has a value at `key`, which the reader knows."""

    def __init__(self, key: bytes) -> None:
        super().__init__(f"the value of key 0x{key.hex()} is not left out of the proof")
        self.key = key


class RootMismatch(TrieError):
    """A compact proof describes the trie `found`, not the trie `root` that was asked for."""

    def __init__(self, root: bytes, found: bytes) -> None:
        super().__init__(f"the proof is of trie {found.hex()}, not of {root.hex()}")
        self.root = root
        self.found = found


class ProofTooLarge(TrieError):
    """A compact proof takes more than `limit` items, or steps in search of child tries."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} items or steps")
        self.limit = limit
