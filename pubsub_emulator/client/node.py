"""One chain of a node: headers, storage and events."""

from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from pubsub_emulator.client import answers
from pubsub_emulator.client.decode import Walk, decode, read
from pubsub_emulator.client.errors import BadAnswer, NodeRefused, UnknownBlock
from pubsub_emulator.client.hashers import hashed
from pubsub_emulator.client.metadata import Enum, Metadata, Sequence, parse_metadata
from pubsub_emulator.client.rpc import Rpc
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import twox_128
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.words import counted

_EVENTS_KEY: Final = twox_128(b"System") + twox_128(b"Events")
_TIMESTAMP_KEY: Final = twox_128(b"Timestamp") + twox_128(b"Now")
_RUNTIMES: Final = 8
"""The number of runtimes whose metadata is cached."""
_PAGE: Final = 1000
"""The number of keys of a child trie that one request asks for."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """The header of a block."""

    hash: bytes
    number: int
    parent: bytes
    logs: tuple[bytes, ...]
    """The SCALE bytes of the digest items."""


@dataclass(frozen=True, slots=True)
class DecodedEvent:
    """One event of a block."""

    pallet: str
    name: str
    fields: dict[str, Any]
    """The fields by name, or by index if they have no names."""
    phase: str = field(default="", compare=False)
    """`Initialization`, `extrinsic N` or `Finalization`."""


class SubstrateNode:
    """One chain of a node.

    Every method raises `NodeUnavailable`, `NodeRefused` or `BadAnswer`.
    """

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc
        self._metadata: OrderedDict[tuple[str, int], Metadata] = OrderedDict()

    async def genesis_hash(self) -> bytes:
        """Return the hash of block 0."""
        block = await self.block_hash(0)
        if block is None:
            raise BadAnswer(f"{self.rpc.url}: the node has no block 0")
        return block

    async def block_hash(self, number: int) -> bytes | None:
        """Return the hash of the best chain's block at a height, or `None` above the best block."""
        return await self._read(answers.MAYBE_HASH, "chain_getBlockHash", number)

    async def best_head(self) -> bytes:
        """Return the hash of the best block."""
        return await self._read(answers.HASH, "chain_getBlockHash")

    async def finalized_head(self) -> bytes:
        """Return the hash of the newest final block."""
        return await self._read(answers.HASH, "chain_getFinalizedHead")

    async def header(self, block: bytes) -> BlockHeader:
        """Return the header of a block by its hash. Raises `UnknownBlock`."""
        head = await self._read(answers.MAYBE_HEAD, "chain_getHeader", hexed(block))
        if head is None:
            raise UnknownBlock(f"{self.rpc.url}: the node has no block {hexed(block)}")
        return BlockHeader(block, head.number, head.parent_hash, head.digest.logs)

    async def storage(self, key: bytes, block: bytes) -> bytes | None:
        """Return the value of a storage key at a block, or `None`."""
        return await self._read(answers.MAYBE_BYTES, "state_getStorage", hexed(key), hexed(block))

    async def child_storage(self, key: bytes, block: bytes) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield the keys and values of a child trie at a block, in the order of the keys.

        `key` is the storage key of the child trie, without the prefix of default child tries.
        """
        trie = hexed(child_root_key(key))
        last_key = None
        while True:
            page = (trie, "0x", _PAGE, None if last_key is None else hexed(last_key), hexed(block))
            keys = await self._read(answers.KEYS, "childstate_getKeysPaged", *page)
            for entry_key in keys:
                value = await self._read(
                    answers.BYTES, "childstate_getStorage", trie, hexed(entry_key), hexed(block)
                )
                yield entry_key, value
                last_key = entry_key
            if len(keys) < _PAGE:
                return

    async def metadata(self, block: bytes, parent: bytes | None = None) -> Metadata:
        """Return the metadata of the runtime that executed a block.

        The hash of the parent is requested if it is not given. Metadata is cached by the name and
        version of the runtime.
        """
        # The state after a block can already contain a new runtime. The block's events were encoded
        # by the runtime in the parent's state.
        if parent is None:
            parent = (await self.header(block)).parent
        at = block if parent == bytes(32) else parent
        try:
            version = await self.version(at)
        except NodeRefused:
            # The parent's state is pruned, or the node never had it.
            at = block
            version = await self.version(at)
        name = (version.spec_name, version.spec_version)
        if name not in self._metadata:
            raw = await self._read(answers.BYTES, "state_getMetadata", hexed(at))
            self._metadata[name] = parse_metadata(raw)
            if len(self._metadata) > _RUNTIMES:
                # The runtime that was added first is dropped.
                self._metadata.popitem(last=False)
        return self._metadata[name]

    async def version(self, at: bytes | None = None) -> answers.Version:
        """Return the version of the runtime in the state after a block, by default the best block.

        `at` is the hash of the block.
        """
        return await self._read(
            answers.VERSION, "state_getRuntimeVersion", *(() if at is None else (hexed(at),))
        )

    async def nonce(self, address: str) -> int:
        """Return the nonce of an account's next extrinsic."""
        return await self._read(answers.NUMBER, "system_accountNextIndex", address)

    async def events(self, block: bytes, parent: bytes | None = None) -> list[DecodedEvent]:
        """Return the events of a block in order.

        The hash of the parent is requested if it is not given.
        """
        raw = await self.storage(_EVENTS_KEY, block)
        if raw is None:
            return []
        metadata = await self.metadata(block, parent)
        try:
            return decode_events(metadata, raw)
        except ScaleError as error:
            raise BadAnswer(f"{self.rpc.url}: events of block 0x{block.hex()}: {error}") from error

    async def timestamp(self, block: bytes) -> int | None:
        """Return `Timestamp.Now` of a block in milliseconds, or `None` if the chain has none.

        Raises `BadAnswer` if it is not a u64 below 2^63.
        """
        raw = await self.storage(_TIMESTAMP_KEY, block)
        if raw is None:
            return None
        time = int.from_bytes(raw, "little")
        if len(raw) != 8 or time >= 2**63:
            raise BadAnswer(
                f"{self.rpc.url}: Timestamp.Now of block {hexed(block)} is {hexed(raw[:16])}"
            )
        return time

    async def item(self, block: bytes, pallet: str, name: str, *keys: bytes) -> object:
        """Return a decoded storage item at a block, or `None`.

        `keys` are the SCALE bytes of the item's keys.
        """
        metadata = await self.metadata(block)
        described = metadata.pallets.get(pallet)
        entry = None if described is None else described.storage.get(name)
        if described is None or entry is None:
            raise BadAnswer(f"{self.rpc.url}: the chain has no storage {pallet}.{name}")
        if len(keys) != len(entry.hashers):
            raise BadAnswer(
                f"{pallet}.{name} takes {counted(len(entry.hashers), 'key')}, not {len(keys)}"
            )
        storage_key = twox_128(described.prefix.encode()) + twox_128(name.encode())
        for hasher, key in zip(entry.hashers, keys, strict=True):
            storage_key += hashed(hasher, key)
        raw = await self.storage(storage_key, block)
        return None if raw is None else decode(metadata, entry.value, raw)

    async def _read(self, kind: TypeAdapter[T], method: str, *params: object) -> T:
        """Call a method and return the answer as the type of `kind`."""
        return answers.read(kind, await self.rpc.call(method, *params), f"{self.rpc.url}: {method}")


def decode_events(metadata: Metadata, raw: bytes) -> list[DecodedEvent]:
    """Decode the value of `System.Events`. Raises `ScaleError` or `BadAnswer`."""
    vec = metadata.types.get(metadata.events)
    if not isinstance(vec, Sequence):
        raise BadAnswer("System.Events is not a list")
    walk = Walk(metadata, raw)
    records = [read(walk, vec.item) for _ in range(walk.reader.length())]
    walk.reader.end()
    return [_event(metadata, record) for record in records]


def _event(metadata: Metadata, record: Any) -> DecodedEvent:
    """Return the event in a decoded `EventRecord`. Raises `BadAnswer` if it has none."""
    try:
        ((pallet, body),) = record["event"].items()
    except (TypeError, KeyError, AttributeError, ValueError):
        raise BadAnswer("an event record without its event") from None
    if isinstance(body, str):
        return DecodedEvent(pallet, body, {}, _phase(record))
    ((name, value),) = body.items()
    return DecodedEvent(pallet, name, _by_name(metadata, pallet, name, value), _phase(record))


def _phase(record: Any) -> str:
    """Return the phase of a decoded `EventRecord` in the form of `DecodedEvent.phase`."""
    phase = record.get("phase", "")
    index = phase.get("ApplyExtrinsic") if isinstance(phase, dict) else None
    return str(phase) if index is None else f"extrinsic {index}"


def _by_name(metadata: Metadata, pallet: str, name: str, value: Any) -> dict[str, Any]:
    """Return the decoded fields of an event by name, or by index if they have no names."""
    described = metadata.pallets.get(pallet)
    if described is None or described.events is None:
        return dict(value)
    kind = metadata.types.get(described.events)
    variants = kind.variants.values() if isinstance(kind, Enum) else ()
    fields = next((variant.fields for variant in variants if variant.name == name), ())
    if all(field.name is not None for field in fields):
        return dict(value)
    if len(fields) == 1:
        # `decode` replaces a single unnamed field by its value.
        return {"0": value}
    return {str(index): part for index, part in enumerate(value)}
