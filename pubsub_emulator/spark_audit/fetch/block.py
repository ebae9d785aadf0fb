"""A block as a source tells it: JSON of `chain_getBlock`, verified by its own hash and extrinsics root."""

from collections.abc import Sequence
from dataclasses import dataclass

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import U32_MAX, Hash
from pubsub_emulator.spark_audit.fetch.errors import WrongBlock
from pubsub_emulator.trie import ordered_root, state_root


@dataclass(frozen=True, slots=True)
class RawHeader:
    """A header; `encoded` is its SCALE, digest included, and `hash` is computed from it."""

    number: int
    hash: Hash
    parent: Hash
    state_root: Hash
    extrinsics_root: Hash
    encoded: bytes


@dataclass(frozen=True, slots=True)
class RawBlock:
    """A header and the extrinsics that it commits to, each with its length first."""

    header: RawHeader
    extrinsics: tuple[bytes, ...]


def read_header(place: str, data: object) -> RawHeader:
    """A header from JSON. Raises `WrongBlock`."""
    if not isinstance(data, dict):
        raise WrongBlock(f"{place}: there is no header")
    digest = data.get("digest")
    logs = digest.get("logs") if isinstance(digest, dict) else None
    if not isinstance(logs, list):
        raise WrongBlock(f"{place}: the header has no digest.logs, without which its hash is not known")
    number = _number(place, data.get("number"))
    parent, root, body = (
        _hash(f"{place}: {name}", data.get(name)) for name in ("parentHash", "stateRoot", "extrinsicsRoot")
    )
    items = b"".join(read_hex(f"{place}: digest.logs[{at}]", log) for at, log in enumerate(logs))
    encoded = parent + encode_compact(number) + root + body + encode_compact(len(logs)) + items
    return RawHeader(number, blake2_256(encoded), parent, root, body, encoded)


def read_block(place: str, data: object, wanted: Hash | None) -> RawBlock:
    """A block from the answer of `chain_getBlock`, which has to have the hash `wanted`. Raises `WrongBlock`."""
    block = data.get("block") if isinstance(data, dict) else None
    if not isinstance(block, dict):
        raise WrongBlock(f"{place}: there is no block")
    header = read_header(place, block.get("header"))
    if wanted is not None and header.hash != wanted:
        raise WrongBlock(f"{place}: the header has the hash 0x{header.hash.hex()}, not 0x{wanted.hex()}")
    listed = block.get("extrinsics")
    if not isinstance(listed, list):
        raise WrongBlock(f"{place}: the block has no extrinsics")
    extrinsics = tuple(read_hex(f"{place}: extrinsics[{at}]", each) for at, each in enumerate(listed))
    if header.extrinsics_root not in _roots(extrinsics):
        raise WrongBlock(f"{place}: the extrinsics do not have the root that the header states")
    return RawBlock(header, extrinsics)


def read_hex(place: str, value: object) -> bytes:
    """The bytes of a 0x string. Raises `WrongBlock`."""
    if not isinstance(value, str) or not value.startswith("0x"):
        raise WrongBlock(f"{place} is {str(value)[:40]!r}, not a 0x string")
    try:
        return bytes.fromhex(value[2:])
    except ValueError:
        raise WrongBlock(f"{place} is not hex") from None


def _roots(extrinsics: Sequence[bytes]) -> tuple[Hash, ...]:
    """The root in layout 0, and in layout 1, which runtimes with state version 1 for extrinsics have."""
    return (
        ordered_root(extrinsics),
        state_root([(encode_compact(at), each) for at, each in enumerate(extrinsics)], version=1),
    )


def _hash(place: str, value: object) -> Hash:
    raw = read_hex(place, value)
    if len(raw) != 32:
        raise WrongBlock(f"{place} has {len(raw)} bytes, not 32")
    return Hash(raw)


def _number(place: str, value: object) -> int:
    number = None
    if isinstance(value, str) and value.startswith("0x") and value[2:].isalnum():
        try:
            number = int(value, 16)
        except ValueError:
            number = None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if number is None or not 0 <= number <= U32_MAX:
        raise WrongBlock(f"{place}: number is {str(value)[:40]!r}, not a block number")
    return number
