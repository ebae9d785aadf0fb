"""The hashes of Substrate state: blake2b and xxhash, plain and as FRAME storage hashers.

`blake2_256` copies a prepared `hashlib` object. On short inputs, which state roots consist of, that
is a third cheaper than constructing one.
"""

from collections.abc import Iterable
from hashlib import blake2b, sha256
from typing import Final

from xxhash import xxh64_intdigest

from pubsub_emulator.primitives.types import Hash

new_blake2_256: Final = blake2b(digest_size=32).copy
"""Make an empty hash object, to which data is added piece by piece."""
_new_128: Final = blake2b(digest_size=16).copy


def blake2_256(data: bytes) -> Hash:
    """Return the 32-byte blake2b digest that names trie nodes, headers and messages."""
    hasher = new_blake2_256()
    hasher.update(data)
    return hasher.digest()  # type: ignore[return-value]  # a NewType call costs 50 ns in the hottest function there is


def by_hash(nodes: Iterable[bytes]) -> dict[Hash, bytes]:
    """Return each of `nodes` by its blake2b-256.

    Proofs have thousands of nodes, so this avoids a call of `blake2_256` for each.
    """
    nodes_by_hash: dict[Hash, bytes] = {}
    fresh = new_blake2_256
    update = blake2b.update
    digest = blake2b.digest
    for node in nodes:
        hasher = fresh()
        update(hasher, node)
        nodes_by_hash[digest(hasher)] = node  # type: ignore[index]  # as above
    return nodes_by_hash


def numbered_digests(prefix: bytes, first: int, count: int) -> bytes:
    """Return the concatenated blake2b-256 digests of `prefix` and a u64 number.

    The numbers are the `count` numbers from `first` on.
    """
    hasher_of_prefix = new_blake2_256()
    hasher_of_prefix.update(prefix)
    digests: list[bytes] = []
    for number in range(first, first + count):
        hasher = hasher_of_prefix.copy()
        hasher.update(number.to_bytes(8, "little"))
        digests.append(hasher.digest())
    return b"".join(digests)


def blake2_128(data: bytes) -> bytes:
    """Return the 16-byte blake2b digest, as `Blake2_128` storage hashers use it."""
    hasher = _new_128()
    hasher.update(data)
    return hasher.digest()


def token_hash(token: str) -> bytes:
    """Return the SHA-256 that is stored instead of a bearer token, 32 bytes.

    Tokens are random, so no salt is needed. A token that is not UTF-8 has a hash of its own. It is
    thus an unknown token and never an error.
    """
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def twox_64(data: bytes) -> bytes:
    """Return the xxHash64 with seed 0, little endian, 8 bytes."""
    return xxh64_intdigest(data, 0).to_bytes(8, "little")


def twox_128(data: bytes) -> bytes:
    """Return the xxHash64 with seeds 0 and 1 side by side, 16 bytes.

    Prefixes of pallets and storage items are made of it.
    """
    return xxh64_intdigest(data, 0).to_bytes(8, "little") + xxh64_intdigest(data, 1).to_bytes(
        8, "little"
    )


def twox_256(data: bytes) -> bytes:
    """Return the xxHash64 with seeds 0 to 3 side by side, 32 bytes."""
    return b"".join(xxh64_intdigest(data, seed).to_bytes(8, "little") for seed in range(4))


def twox64_concat(data: bytes) -> bytes:
    """Hash a key with FRAME's `Twox64Concat`: the xxHash64, then the key itself.

    The key follows so that it can be read back from storage.
    """
    return xxh64_intdigest(data, 0).to_bytes(8, "little") + data


def blake2_128_concat(data: bytes) -> bytes:
    """Hash a key with FRAME's `Blake2_128Concat`: the blake2b-128, then the key itself.

    Unlike with `twox64_concat`, an attacker cannot choose keys that collide.
    """
    return blake2_128(data) + data


def identity(data: bytes) -> bytes:
    """Return the key itself, as FRAME's `Identity`.

    Use it only for keys that are hashes already.
    """
    return data


def blake2_64(data: bytes) -> bytes:
    """Return the 8-byte blake2b digest, which identifies runtime APIs."""
    return blake2b(data, digest_size=8).digest()
