"""The hashes of Substrate state: blake2b and xxhash, plain and as FRAME storage hashers.

`blake2_256` copies one prepared `hashlib` object: on short inputs that is a third cheaper than constructing one, and
state roots are made of short inputs.
"""

from collections.abc import Iterable
from hashlib import blake2b, sha256
from typing import Final

from xxhash import xxh64_intdigest

from pubsub_emulator.primitives.types import Hash

new_blake2_256: Final = blake2b(digest_size=32).copy
"""Makes an empty hash object, to which data is added piece by piece."""
_new_128: Final = blake2b(digest_size=16).copy


def blake2_256(data: bytes) -> Hash:
    """The 32-byte blake2b digest that names trie nodes, headers and messages."""
    hasher = new_blake2_256()
    hasher.update(data)
    return hasher.digest()  # type: ignore[return-value]  # a NewType call costs 50 ns in the hottest function there is


def by_hash(nodes: Iterable[bytes]) -> dict[Hash, bytes]:
    """Each of `nodes` by its blake2b-256; without a call for each, which proofs have by the thousand."""
    out: dict[Hash, bytes] = {}
    fresh, update, digest = new_blake2_256, blake2b.update, blake2b.digest
    for node in nodes:
        hasher = fresh()
        update(hasher, node)
        out[digest(hasher)] = node  # type: ignore[index]  # as above
    return out


def counted(prefix: bytes, first: int, count: int) -> bytes:
    """The blake2b-256 of `prefix` and a u64, for `count` numbers from `first` on, one after the other."""
    begun = new_blake2_256()
    begun.update(prefix)
    out: list[bytes] = []
    for number in range(first, first + count):
        hasher = begun.copy()
        hasher.update(number.to_bytes(8, "little"))
        out.append(hasher.digest())
    return b"".join(out)


def blake2_128(data: bytes) -> bytes:
    """The 16-byte blake2b digest, as `Blake2_128` storage hashers use it."""
    hasher = _new_128()
    hasher.update(data)
    return hasher.digest()


def token_hash(token: str) -> bytes:
    """The SHA-256 that is stored of a bearer token, 32 bytes. Tokens are random, so no salt is needed.

    A token that is not UTF-8 has a hash too, and no other token has the same: it is unknown, never an error.
    """
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def twox_64(data: bytes) -> bytes:
    """xxHash64 with seed 0, little endian, 8 bytes."""
    return xxh64_intdigest(data, 0).to_bytes(8, "little")


def twox_128(data: bytes) -> bytes:
    """xxHash64 with seeds 0 and 1 side by side, 16 bytes: pallet and storage item prefixes."""
    return xxh64_intdigest(data, 0).to_bytes(8, "little") + xxh64_intdigest(data, 1).to_bytes(8, "little")


def twox_256(data: bytes) -> bytes:
    """xxHash64 with seeds 0 to 3 side by side, 32 bytes."""
    return b"".join(xxh64_intdigest(data, seed).to_bytes(8, "little") for seed in range(4))


def twox64_concat(data: bytes) -> bytes:
    """FRAME `Twox64Concat`: the hash, then the key itself, so that keys can be read back from storage."""
    return xxh64_intdigest(data, 0).to_bytes(8, "little") + data


def blake2_128_concat(data: bytes) -> bytes:
    """FRAME `Blake2_128Concat`: as `twox64_concat`, with a hash for which an attacker cannot choose colliding keys."""
    return blake2_128(data) + data


def identity(data: bytes) -> bytes:
    """FRAME `Identity`: the key itself. Only for keys that are hashes already."""
    return data


def blake2_64(data: bytes) -> bytes:
    """The 8-byte blake2b digest, which identifies runtime APIs."""
    return blake2b(data, digest_size=8).digest()
