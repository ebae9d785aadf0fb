"""Blocks in the JSON of `chain_getBlock`, checked by hash and extrinsics root."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.spark_audit.fetch.errors import WrongBlock
from pubsub_emulator.spark_audit.real_proofs.values import RawHeader, Values
from pubsub_emulator.trie import ordered_root, state_root

VALUES: Final = Values(WrongBlock)
"""Reads JSON values. Raises `WrongBlock` for wrong ones."""


@dataclass(frozen=True, slots=True)
class RawBlock:
    """A header, and the extrinsics that it commits to. Each extrinsic begins with its length."""

    header: RawHeader
    extrinsics: tuple[bytes, ...]


def read_block(place: str, data: object, wanted: Hash | None) -> RawBlock:
    """Return the block in an answer of `chain_getBlock`.

    Raises `WrongBlock` if it has another hash than `wanted`, or other extrinsics than its header
    commits to. `place` begins the message.
    """
    block = data.get("block") if isinstance(data, dict) else None
    if not isinstance(block, dict):
        raise WrongBlock(f"{place}: there is no block")
    header = VALUES.header(place, block.get("header"))
    if wanted is not None and header.hash != wanted:
        raise WrongBlock(
            f"{place}: the header has the hash 0x{header.hash.hex()}, not 0x{wanted.hex()}"
        )
    listed = block.get("extrinsics")
    if not isinstance(listed, list):
        raise WrongBlock(f"{place}: the block has no extrinsics")
    extrinsics = tuple(
        VALUES.hex(f"{place}: extrinsics[{index}]", extrinsic)
        for index, extrinsic in enumerate(listed)
    )
    if header.extrinsics_root not in _roots(extrinsics):
        raise WrongBlock(f"{place}: the extrinsics do not have the root that the header states")
    return RawBlock(header, extrinsics)


def _roots(extrinsics: Sequence[bytes]) -> tuple[Hash, ...]:
    """Return the two possible extrinsics roots: in trie layout 0 and in layout 1.

    A runtime uses layout 1 if its state version for extrinsics is 1.
    """
    entries = [(encode_compact(index), extrinsic) for index, extrinsic in enumerate(extrinsics)]
    return ordered_root(extrinsics), state_root(entries, version=1)
