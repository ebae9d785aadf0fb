"""The relay state that a block's proof shows: requested keys, read and kept for handlers.

The author and the verifier read the requested keys in the same way and order, after the static
keys (UP-13). Handlers then read their values through `RelayStateProof` (UP-14), whose methods have
the names and the meaning of those of `cumulus_pallet_parachain_system::RelayChainStateProof`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.runtime.framework.relay_keys import relay_key_name
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayStorageKey, TopKey
from pubsub_emulator.runtime.framework.static_keys import StaticValues, static_value
from pubsub_emulator.trie.descent import Lookups

T = TypeVar("T")
RequestedValues = dict[RelayStorageKey, bytes | None]
"""The values of requested keys; `None` for a key that is proven absent or cannot be read."""


def read_requested(
    keys: Iterable[RelayStorageKey],
    top: Lookups,
    child: Callable[[Hash], Lookups],
    into: RequestedValues,
) -> None:
    """Read requested keys in order, and put their values into `into`.

    `child` opens the child trie with a root. A key whose path has a malformed node counts as
    absent, because the relay root commits to that node. If `top` or a child trie raises because a
    node is missing, the key being read is the first of `keys` that is not in `into`.
    """
    tries: dict[bytes, Lookups | None] = {}
    for requested in keys:
        match requested:
            case TopKey(key):
                into[requested] = static_value(top, key)
            case ChildKey(storage_key, key):
                if storage_key not in tries:
                    root = static_value(top, child_root_key(storage_key))
                    empty = root is None or root == EMPTY_TRIE_ROOT
                    readable = root is not None and len(root) == len(EMPTY_TRIE_ROOT)
                    tries[storage_key] = (
                        None if empty or not readable or root is None else child(Hash(root))
                    )
                trie = tries[storage_key]
                into[requested] = None if trie is None else static_value(trie, key)


class RelayReadError(PubsubError):
    """A value of the relay state cannot be read by a handler."""


class NotRequested(RelayReadError):
    """The runtime did not request the key, so no block proves it: the handler has a defect."""


class AbsentEntry(RelayReadError):
    """The key is proven absent, and the handler gave no fallback."""


class UndecodableEntry(RelayReadError):
    """The value does not decode as the type that the handler wants."""


class RelayStateProof:
    """The static and requested values of a relay state that a verified proof shows."""

    __slots__ = ("_requested", "_statics")

    def __init__(
        self, requested: Mapping[RelayStorageKey, bytes | None], statics: StaticValues
    ) -> None:
        self._requested = requested
        self._statics = statics.values

    def read_entry(self, key: bytes, codec: Codec[T], fallback: T | None = None) -> T:
        """Return the decoded value of a key of the top trie, or `fallback` if it is absent.

        Raises `AbsentEntry` if it is absent and there is no fallback, `UndecodableEntry` if `codec`
        refuses it, and `NotRequested` if the key was not requested.
        """
        value = self.read_optional_entry(key, codec)
        if value is None:
            value = fallback
        if value is None:
            raise AbsentEntry(f"{relay_key_name(TopKey(key))} is absent")
        return value

    def read_optional_entry(self, key: bytes, codec: Codec[T]) -> T | None:
        """Return the decoded value of a key of the top trie, or `None` if it is absent.

        Raises `UndecodableEntry` and `NotRequested`.
        """
        requested = TopKey(key)
        if requested in self._requested:
            value = self._requested[requested]
        elif key in self._statics:
            value = self._statics[key]
        else:
            raise NotRequested(f"{relay_key_name(requested)} is not requested")
        if value is None:
            return None
        try:
            return codec.decode(value)
        except ScaleError as error:
            raise UndecodableEntry(f"{relay_key_name(requested)}: {error}") from error

    def read_child_storage(self, storage_key: bytes, key: bytes) -> bytes | None:
        """Return the value of a key of a child trie, or `None` if it is absent.

        Raises `NotRequested`.
        """
        requested = ChildKey(storage_key, key)
        if requested not in self._requested:
            raise NotRequested(f"{relay_key_name(requested)} is not requested")
        return self._requested[requested]
