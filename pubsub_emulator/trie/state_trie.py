"""The interface of a state's tries.

`Trie` has all nodes of a state; `PartialTrie` and `LazyTrie` do not.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, Self

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie.difference import Difference
from pubsub_emulator.trie.recording import Recording


class StateTrie(Protocol):
    """A trie that can be read, written, forked and proven.

    A trie that lacks nodes raises `MissingNode` if it needs one of them.
    """

    def fork(self) -> Self:
        """Return a snapshot.

        Neither trie sees later writes to the other.
        """

    def __len__(self) -> int: ...

    def __bool__(self) -> bool: ...

    def __contains__(self, key: bytes) -> bool: ...

    def get(self, key: bytes) -> bytes | None:
        """Return the value under `key`, or `None`."""

    def get_recorded(self, key: bytes, recording: Recording) -> bytes | None:
        """Return the value under `key`, and record what reading it touches, as `prove`.

        The trie must not be written between the calls with one `recording`.
        """

    def insert(self, key: bytes, value: bytes) -> None:
        """Put `value` under `key`."""

    def update(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Apply many changes; `None` deletes a key."""

    def remove_prefix(self, prefix: bytes) -> int | None:
        """Remove every key that starts with `prefix`."""

    def items(
        self, prefix: bytes = b"", after: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return the entries whose keys start with `prefix`, ascending, strictly after `after`."""

    def keys(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[bytes]:
        """Return the keys of `items`."""

    def differences(self, other: Self) -> Iterator[Difference]:
        """Return every key whose value differs: the key, the value here, the value in `other`."""

    def root(self) -> Hash:
        """Return the Merkle root."""

    def merkle_value(self, key: bytes) -> bytes | None:
        """Return the hash, or the bytes of an inline node, of the subtree below `key`."""

    def prove(self, keys: Iterable[bytes], into: dict[Hash, bytes]) -> None:
        """Add to `into` every node and detached value that reading `keys` touches."""
