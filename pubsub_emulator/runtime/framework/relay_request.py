"""The relay keys that a parachain's runtime asks its collator to prove (UP-1).

The names and the layout are those of `cumulus_primitives_core`:

    RelayProofRequest { keys: Vec<RelayStorageKey> }
    RelayStorageKey   0  Top(Vec<u8>)
                      1  Child { storage_key: Vec<u8>, key: Vec<u8> }

A child trie's `storage_key` is written without `:child_storage:default:`. Requests are read from
runtimes and nodes that are not trusted, so decoding limits the number of keys and bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader, encode_bytes
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.type_info import BYTES, Field, Variant, Variants, path

MAX_REQUESTED_KEYS: Final = 131_072
"""The maximum number of keys in a request that is decoded."""

MAX_REQUEST_BYTES: Final = 8 * 1_048_576
"""The maximum length of an encoded request that is decoded, in bytes."""

MAX_STORAGE_KEY: Final = 1_024
"""The maximum length of one key, or of the storage key of a child trie, in bytes."""

_TOP: Final = 0
_CHILD: Final = 1


@dataclass(frozen=True, slots=True, order=True)
class TopKey:
    """A key of the relay chain's top trie: `RelayStorageKey::Top`."""

    key: bytes


@dataclass(frozen=True, slots=True, order=True)
class ChildKey:
    """A key of one of the relay chain's child tries: `RelayStorageKey::Child`."""

    storage_key: bytes
    """The storage key of the child trie, without the prefix `:child_storage:default:`."""
    key: bytes


RelayStorageKey = TopKey | ChildKey
"""One key of a request."""


@dataclass(frozen=True, slots=True)
class RelayProofRequest:
    """The keys that a runtime wants in the relay chain's proof, in the runtime's order."""

    keys: tuple[RelayStorageKey, ...] = ()

    def encode(self) -> bytes:
        """Return the SCALE bytes.

        The number of keys is not limited. Raises `ScaleError` if a key is too long.
        """
        return relay_proof_request.encode(self)

    @staticmethod
    def decode(data: bytes) -> "RelayProofRequest":
        """Return the request that all of `data` encodes.

        Raises `ScaleError`, also for a request that exceeds a limit.
        """
        if len(data) > MAX_REQUEST_BYTES:
            raise ScaleError(f"{len(data)} bytes; a request has at most {MAX_REQUEST_BYTES}")
        count = Reader(data).length()
        if count > MAX_REQUESTED_KEYS:
            raise ScaleError(f"{count} keys; a request has at most {MAX_REQUESTED_KEYS}")
        return relay_proof_request.decode(data)

    def top(self) -> tuple[bytes, ...]:
        """Return the requested keys of the top trie, in order and each once."""
        keys = {requested.key: None for requested in self.keys if isinstance(requested, TopKey)}
        return tuple(keys)

    def children(self) -> dict[bytes, tuple[bytes, ...]]:
        """Return the requested keys of each child trie, tries and keys in order and each once."""
        tries: dict[bytes, dict[bytes, None]] = {}
        for requested in self.keys:
            if isinstance(requested, ChildKey):
                tries.setdefault(requested.storage_key, {})[requested.key] = None
        return {storage_key: tuple(keys) for storage_key, keys in tries.items()}


def _encode_key(requested: RelayStorageKey) -> bytes:
    index = _TOP
    parts: tuple[bytes, ...] = (requested.key,)
    if isinstance(requested, ChildKey):
        index = _CHILD
        parts = (requested.storage_key, requested.key)
    for part in parts:
        if len(part) > MAX_STORAGE_KEY:
            raise ScaleError(f"{len(part)} bytes; a storage key has at most {MAX_STORAGE_KEY}")
    return bytes((index,)) + b"".join(map(encode_bytes, parts))


def _read_key(reader: Reader) -> RelayStorageKey:
    start = reader.pos
    index = reader.u8()
    if index == _TOP:
        return TopKey(_read_bytes(reader))
    if index == _CHILD:
        storage_key = _read_bytes(reader)
        return ChildKey(storage_key, _read_bytes(reader))
    raise ScaleError(f"a relay storage key is 0, Top, or 1, Child, not {index}, at offset {start}")


def _read_bytes(reader: Reader) -> bytes:
    start = reader.pos
    data = reader.bytes_()
    if len(data) > MAX_STORAGE_KEY:
        raise ScaleError(
            f"{len(data)} bytes at offset {start}; a storage key has at most {MAX_STORAGE_KEY}"
        )
    return data


relay_storage_key: Final[Codec[RelayStorageKey]] = Codec(
    "RelayStorageKey",
    _encode_key,
    _read_key,
    Variants(
        path("cumulus_primitives_core::RelayStorageKey"),
        (
            Variant("Top", _TOP, (Field(BYTES),)),
            Variant("Child", _CHILD, (Field(BYTES, "storage_key"), Field(BYTES, "key"))),
        ),
    ),
)


def _as_tuple(keys: Iterable[RelayStorageKey]) -> tuple[RelayStorageKey, ...]:
    return tuple(keys)


relay_proof_request: Final[Codec[RelayProofRequest]] = struct(
    RelayProofRequest,
    scale.vec(relay_storage_key).map("Vec<RelayStorageKey>", _as_tuple, list),
    rust="cumulus_primitives_core::RelayProofRequest",
)
"""The codec of a request. Unlike `RelayProofRequest.decode`, it reads any number of keys."""
