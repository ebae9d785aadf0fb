"""A block as a source tells it: JSON of `chain_getBlock`, verified by its own hash and extrinsics root."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.spark_audit.fetch.errors import WrongBlock
from pubsub_emulator.spark_audit.real_proofs.values import RawHeader, Values
from pubsub_emulator.trie import ordered_root, state_root

VALUES: Final = Values(WrongBlock)


@dataclass(frozen=True, slots=True)
class RawBlock:
    """A header and the extrinsics that it commits to, each with its length first."""

    header: RawHeader
    extrinsics: tuple[bytes, ...]


def read_block(place: str, data: object, wanted: Hash | None) -> RawBlock:
    """A block from the answer of `chain_getBlock`, which has to have the hash `wanted`. Raises `WrongBlock`."""
    block = data.get("block") if isinstance(data, dict) else None
    if not isinstance(block, dict):
        raise WrongBlock(f"{place}: there is no block")
    header = VALUES.header(place, block.get("header"))
    if wanted is not None and header.hash != wanted:
        raise WrongBlock(f"{place}: the header has the hash 0x{header.hash.hex()}, not 0x{wanted.hex()}")
    listed = block.get("extrinsics")
    if not isinstance(listed, list):
        raise WrongBlock(f"{place}: the block has no extrinsics")
    extrinsics = tuple(VALUES.hex(f"{place}: extrinsics[{at}]", each) for at, each in enumerate(listed))
    if header.extrinsics_root not in _roots(extrinsics):
        raise WrongBlock(f"{place}: the extrinsics do not have the root that the header states")
    return RawBlock(header, extrinsics)


def _roots(extrinsics: Sequence[bytes]) -> tuple[Hash, ...]:
    """The root in layout 0, and in layout 1, which runtimes with state version 1 for extrinsics have."""
    entries = [(encode_compact(at), each) for at, each in enumerate(extrinsics)]
    return ordered_root(extrinsics), state_root(entries, version=1)
