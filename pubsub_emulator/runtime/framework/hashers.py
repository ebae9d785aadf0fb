"""FRAME's storage hashers, which turn the keys of maps into parts of storage keys."""

from collections.abc import Callable
from typing import Final, TypeVar

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import (
    blake2_128_concat,
    blake2_256,
    identity,
    twox64_concat,
    twox_64,
)
from pubsub_emulator.primitives.scale import Codec, Reader

K = TypeVar("K")


class Hasher:
    """A storage hasher.

    `skip` is the length of the hash before the key, or `None` if the key cannot be read back.
    """

    def __init__(self, name: str, hash_: Callable[[bytes], bytes], skip: int | None) -> None:
        self.name = name
        self.hash = hash_
        self.skip = skip

    def read(self, reader: Reader, codec: Codec[K]) -> K:
        """Read the key after its hash.

        Raises `DefensiveFailure` if this hasher does not store the key.
        """
        if self.skip is None:
            raise DefensiveFailure(f"{self.name} does not keep its keys")
        reader.take(self.skip)
        return codec.read(reader)

    def __repr__(self) -> str:
        return self.name


Twox64Concat: Final = Hasher("Twox64Concat", twox64_concat, 8)
Blake2_128Concat: Final = Hasher("Blake2_128Concat", blake2_128_concat, 16)
Identity: Final = Hasher("Identity", identity, 0)
Twox64: Final = Hasher("Twox64", twox_64, None)
Blake2_256: Final = Hasher("Blake2_256", blake2_256, None)
