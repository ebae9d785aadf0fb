"""The hashers of storage maps by their names in metadata."""

from collections.abc import Callable
from typing import Final

from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.primitives.hashing import blake2_128, twox_128
from pubsub_emulator.runtime.framework.hashers import (
    Blake2_128Concat,
    Blake2_256,
    Identity,
    Twox64,
    Twox64Concat,
)

_HASHERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    **{
        hasher.name: hasher.hash
        for hasher in (Blake2_128Concat, Twox64Concat, Identity, Blake2_256, Twox64)
    },
    "Blake2_128": blake2_128,
    "Twox128": twox_128,
}
CONCATENATING: Final = {"Blake2_128Concat": 16, "Twox64Concat": 8, "Identity": 0}
"""The sizes of hashes in bytes, of the hashers that append the key itself to its hash."""


def hashed(hasher: str, key: bytes) -> bytes:
    """Return the part of a storage key that stands for one key of a map.

    Raises `BadAnswer` if the hasher is not supported.
    """
    if hasher not in _HASHERS:
        raise BadAnswer(f"keys hashed with {hasher} are not supported")
    return _HASHERS[hasher](key)
