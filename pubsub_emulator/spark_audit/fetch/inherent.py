"""The inherents `set_validation_data` and `Timestamp.set` of a block, decoded by its metadata.

The structure of the call differs between runtimes. Its parts are found by their names, at any
depth:

    data: {validation_data: {parent_head, relay_parent_number, …}, relay_chain_state,
           downward_messages, horizontal_messages
           [, relay_parent_descendants [, collator_peer_id]]}
    data: {validation_data, relay_chain_state, relay_parent_descendants, collator_peer_id},
           inbound_messages_data: {downward_messages: {full_messages, hashed_messages},
           horizontal_messages: {…}}
    relay_parent_number, relay_parent_storage_root, relay_chain_state, …   this emulator's runtime
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeGuard

from pubsub_emulator.client.decode import MAX_DEPTH, Walk, read
from pubsub_emulator.client.errors import ClientError
from pubsub_emulator.client.metadata import Composite, Enum, Field, Metadata
from pubsub_emulator.client.metadata import Sequence as SequenceType
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import U32_MAX, Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import (
    InboundDownwardMessage,
    InboundHrmpMessage,
)
from pubsub_emulator.spark_audit.fetch.block import RawBlock
from pubsub_emulator.spark_audit.fetch.errors import WrongBlock
from pubsub_emulator.spark_audit.history.row import EPOCH
from pubsub_emulator.spark_audit.real_proofs.imported import RelayProof

_BARE: Final = (4, 5)
"""First bytes of extrinsics without a signature: the version of the format."""
_MESSAGES: Final = ("downward_messages", "horizontal_messages")
_LAST_TIME: Final = 253_402_300_799_000
"""Milliseconds from 1970 to the end of the year 9999."""

Parts = dict[str, tuple[object, bytes]]
"""Values with their SCALE bytes, by path: the names of the fields that lead to the value, joined by
dots."""


def relay_proof(  # noqa: PLR0917  # the parts of a block's identity
    place: str,
    metadata: Metadata,
    block: RawBlock,
    network: str,
    chain: ParaId,
    runtime: str,
    source: str,
) -> RelayProof:
    """Return the inherent of a block.

    `runtime` is the name of the runtime whose `metadata` this is, `source` describes where the
    block is from. Raises `WrongBlock`, whose message begins with `place`.
    """
    try:
        calls = dict(_calls(metadata, block.extrinsics))
        return _proof(
            place, calls, block, network=network, chain=chain, runtime=runtime, source=source
        )
    except (ScaleError, ClientError) as error:
        raise WrongBlock(f"{place}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Call:
    """The arguments of an extrinsic without a signature."""

    parts: Parts

    def get(self, name: str) -> object:
        """Return the value of the part of this name. Raises `ScaleError` if it does not exist."""
        part = self.find(name)
        if part is None:
            raise ScaleError(f"set_validation_data has no field {name}")
        return part[0]

    def find(self, name: str) -> tuple[object, bytes] | None:
        """Return value and bytes of the first part of this name, `None` if it does not exist."""
        return next((part for path, part in self.parts.items() if _last(path) == name), None)

    def under(self, name: str) -> Parts:
        """Return the parts inside of the part `name`, by their own names."""
        return {_last(path): part for path, part in self.parts.items() if name in path.split(".")}


def _calls(metadata: Metadata, extrinsics: Sequence[bytes]) -> Iterator[tuple[str, _Call]]:
    """Yield the two inherents, if they are in the block, with their names."""
    wanted: dict[bytes, tuple[str, tuple[Field, ...]]] = {}
    for pallet, call in (("ParachainSystem", "set_validation_data"), ("Timestamp", "set")):
        located = _call(metadata, pallet, call)
        if located is not None:
            index, fields = located
            wanted[index] = (f"{pallet}.{call}", fields)
    if not any(name.startswith("ParachainSystem") for name, _ in wanted.values()):
        raise ScaleError(
            "the runtime is not a parachain's: it has no call ParachainSystem.set_validation_data"
        )
    for extrinsic in extrinsics:
        outer = Reader(extrinsic)
        body = outer.bytes_()
        outer.end()
        # Signed extrinsics and other calls are skipped.
        if len(body) < 3 or body[0] not in _BARE or body[1:3] not in wanted:
            continue
        name, fields = wanted[body[1:3]]
        walk = Walk(metadata, body[3:])
        parts: Parts = {}
        _take(walk, fields, "", parts=parts)
        walk.reader.end()
        yield name, _Call(parts)


def _call(metadata: Metadata, pallet: str, call: str) -> tuple[bytes, tuple[Field, ...]] | None:
    """Return the two bytes with which a call begins, and its fields.

    Returns `None` if the runtime has no such call.
    """
    pallet_metadata = metadata.pallets.get(pallet)
    if pallet_metadata is None or pallet_metadata.calls is None:
        return None
    kind = metadata.types.get(pallet_metadata.calls)
    if not isinstance(kind, Enum):
        return None
    for index, variant in kind.variants.items():
        if variant.name == call:
            return bytes((pallet_metadata.index, index)), variant.fields
    return None


def _take(walk: Walk, fields: Sequence[Field], path: str, parts: Parts, depth: int = 0) -> None:
    """Read fields and add them to `parts`. Structs with named fields are read field by field.

    `path` begins the paths of the fields. Raises `ScaleError`.
    """
    walk.step()
    if depth > MAX_DEPTH:
        raise ScaleError(f"a type is nested deeper than {MAX_DEPTH}")
    reader = walk.reader
    for index, field in enumerate(fields):
        name = f"{path}{field.name or index}"
        kind = walk.metadata.types.get(field.type)
        start = reader.pos
        if (
            isinstance(kind, Composite)
            and kind.fields
            and all(inner.name is not None for inner in kind.fields)
        ):
            _take(walk, kind.fields, f"{name}.", parts=parts, depth=depth + 1)
            # `messages_used` needs the bytes of all messages together.
            if _last(name) in _MESSAGES:
                parts[name] = (None, reader.data[start : reader.pos])
            continue
        if _last(name) == "relay_parent_descendants" and isinstance(kind, SequenceType):
            value: object
            # Each header is stored with its own bytes, so that it can be hashed.
            encoded: list[bytes] = []
            for _ in range(reader.length()):
                header_start = reader.pos
                read(walk, kind.item)
                encoded.append(reader.data[header_start : reader.pos])
            value = encoded
        else:
            value = read(walk, field.type)
        parts[name] = (value, reader.data[start : reader.pos])


def _proof(  # noqa: PLR0917  # as `relay_proof`
    place: str,
    calls: dict[str, _Call],
    block: RawBlock,
    network: str,
    chain: ParaId,
    runtime: str,
    source: str,
) -> RelayProof:
    """Return the inherent, after it was compared with the block's header."""
    call = calls.get("ParachainSystem.set_validation_data")
    if call is None:
        raise WrongBlock(f"{place}: the block has no set_validation_data")
    header = block.header
    head = call.find("parent_head")
    if head is not None and (
        not isinstance(head[0], bytes) or blake2_256(head[0]) != header.parent
    ):
        raise WrongBlock(f"{place}: parent_head does not hash to the parent of the block")
    nodes = call.find("trie_nodes") or call.find("relay_chain_state")
    root = call.get("relay_parent_storage_root")
    if nodes is None or not _are_bytes(nodes[0]) or not isinstance(root, bytes) or len(root) != 32:
        raise WrongBlock(
            f"{place}: set_validation_data has no list of trie nodes, or no storage root"
        )
    max_pov = None if call.find("max_pov_size") is None else _u32(call.get("max_pov_size"))
    peer = call.find("collator_peer_id")
    descendants = call.find("relay_parent_descendants")
    return RelayProof(
        network=network,
        chain=chain,
        number=header.number,
        block=header.hash,
        parent=header.parent,
        state_root=header.state_root,
        relay_parent=RelayBlockNumber(_u32(call.get("relay_parent_number"))),
        relay_root=Hash(root),
        max_pov=max_pov,
        proof=tuple(nodes[0]),
        downward=_downward(call),
        horizontal=_horizontal(call),
        source=source,
        header=header.encoded,
        block_time=_time(calls.get("Timestamp.set")),
        runtime=runtime,
        descendants=tuple(_blobs(descendants[0])) if descendants is not None else (),
        collator_peer_id=None if peer is None or not isinstance(peer[0], bytes) else peer[0],
        messages_used=sum(
            len(part[1]) for name in _MESSAGES if (part := call.find(name)) is not None
        ),
    )


def _downward(call: _Call) -> tuple[InboundDownwardMessage, ...]:
    """Return the downward messages that the call has in full.

    In newer runtimes, the call has only the hashes of some messages.
    """
    parts = call.under("downward_messages")
    listed = (
        parts["full_messages"][0] if "full_messages" in parts else call.get("downward_messages")
    )
    return tuple(
        InboundDownwardMessage(RelayBlockNumber(sent_at), msg)
        for sent_at, msg in map(_message, _list(listed))
    )


def _horizontal(call: _Call) -> tuple[tuple[ParaId, tuple[InboundHrmpMessage, ...]], ...]:
    """Return the horizontal messages that the call has in full, by sender in ascending order.

    Newer runtimes list them as pairs of sender and message, older ones as one queue per sender.
    """
    parts = call.under("horizontal_messages")
    by_sender: dict[int, list[InboundHrmpMessage]] = {}
    if "full_messages" in parts:
        pairs = [
            (sender, [message]) for sender, message in map(_pair, _list(parts["full_messages"][0]))
        ]
    else:
        pairs = [
            (sender, _list(messages))
            for sender, messages in map(_pair, _list(call.get("horizontal_messages")))
        ]
    for sender, messages in pairs:
        queue = by_sender.setdefault(_u32(sender), [])
        queue += [
            InboundHrmpMessage(RelayBlockNumber(sent_at), data)
            for sent_at, data in map(_message, messages)
        ]
    return tuple((ParaId(sender), tuple(by_sender[sender])) for sender in sorted(by_sender))


def _message(value: object) -> tuple[int, bytes]:
    """Return the block number and the bytes of a message."""
    sent_at, data = _pair(value)
    if not isinstance(data, bytes):
        raise ScaleError("a message is not a block number and bytes")
    return _u32(sent_at), data


# The types of these values depend on metadata, which comes from a node. So they must be checked.


def _u32(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= U32_MAX:
        raise ScaleError(f"{str(value)[:40]!r} is not a u32")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ScaleError(f"{str(value)[:40]!r} is not a list")
    return value


def _blobs(value: object) -> list[bytes]:
    if not _are_bytes(value):
        raise ScaleError(f"{str(value)[:40]!r} is not a list of bytes")
    return value


def _pair(value: object) -> tuple[object, object]:
    parts = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(parts, list) or len(parts) != 2:
        raise ScaleError(f"{str(value)[:40]!r} is not a pair")
    return parts[0], parts[1]


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _are_bytes(value: object) -> TypeGuard[list[bytes]]:
    return isinstance(value, list) and all(isinstance(item, bytes) for item in value)


def _time(call: _Call | None) -> datetime | None:
    """Return the time that `Timestamp.set` states.

    Returns `None` if there is no such call, or if the time is beyond the year 9999.
    """
    part = None if call is None else next(iter(call.parts.values()), None)
    if part is None or not isinstance(part[0], int) or not 0 <= part[0] <= _LAST_TIME:
        return None
    return EPOCH + timedelta(milliseconds=part[0])
