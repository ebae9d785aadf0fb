"""BABE in the headers of relay chains: who made a block, and which authorities come next.

PreRuntime "BABE"   01 Primary      u32 authority, u64 slot, [u8; 32] output, [u8; 64] proof
                    02 Secondary    u32 authority, u64 slot
                    03 SecondaryVRF u32 authority, u64 slot, [u8; 32] output, [u8; 64] proof
Consensus "BABE"    01 NextEpochData  Vec<([u8; 32], u64)> authorities, [u8; 32] randomness
Seal "BABE"         [u8; 64]: Sr25519 over the hash of the header without the seal

The source is polkadot-sdk, `substrate/primitives/consensus/babe`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import BABE_ENGINE, DigestItem, DigestKind, Header
from pubsub_emulator.primitives.scale import Codec, Reader
from pubsub_emulator.primitives.types import Slot

SIGNATURE_LENGTH: Final = 64
_PRIMARY: Final = 1
_SECONDARY: Final = 2
_SECONDARY_VRF: Final = 3
_VRF_LENGTH: Final = 32 + 64
_VRF: Final = {_PRIMARY: _VRF_LENGTH, _SECONDARY: 0, _SECONDARY_VRF: _VRF_LENGTH}
"""The bytes after the slot, by kind of claim."""
_NEXT_EPOCH: Final = 1
_Read = TypeVar("_Read")

Authority = tuple[bytes, int]
"""An Sr25519 public key and a weight."""
_key: Final = scale.fixed(32).described(
    type_info.wrapper("sp_consensus_babe::app::Public", type_info.ArrayOf(32, type_info.U8))
)
authorities: Final[Codec[list[Authority]]] = scale.vec(scale.pair(_key, scale.u64))
"""The codec of `Babe.Authorities` and `Babe.NextAuthorities`."""


@dataclass(frozen=True, slots=True)
class NextEpoch:
    """The announcement in the first block of an epoch: the epoch after this one."""

    authorities: tuple[Authority, ...]
    randomness: bytes


def pre_digest(slot: Slot, authority: int = 0) -> DigestItem:
    """Return the item by which an authority claims a slot as its secondary author."""
    data = bytes((_SECONDARY,)) + authority.to_bytes(4, "little") + slot.to_bytes(8, "little")
    return DigestItem(DigestKind.PRE_RUNTIME, BABE_ENGINE, data)


def next_epoch_digest(announced: NextEpoch) -> DigestItem:
    """Return the item that announces an epoch."""
    encoded = authorities.encode(list(announced.authorities))
    data = bytes((_NEXT_EPOCH,)) + encoded + announced.randomness
    return DigestItem(DigestKind.CONSENSUS, BABE_ENGINE, data)


def seal(signature: bytes) -> DigestItem:
    """Return the last item of a header."""
    return DigestItem(DigestKind.SEAL, BABE_ENGINE, signature)


def secondary_author(slot: Slot, authorities_count: int, randomness: bytes) -> int:
    """Return the index of the authority that may claim a slot without a primary author."""
    drawn = blake2_256(randomness + slot.to_bytes(8, "little"))
    return int.from_bytes(drawn, "big") % authorities_count


def _last(header: Header, kind: DigestKind, read: Callable[[bytes], _Read | None]) -> _Read | None:
    """Return the last of BABE's items of a kind that `read` understands, or `None`."""
    last: _Read | None = None
    for item in header.digest:
        if item.kind is kind and item.engine == BABE_ENGINE:
            understood = read(item.data)
            if understood is not None:
                last = understood
    return last


def claimed_authority(header: Header) -> int | None:
    """Return the index of the authority that claims to have made the block, or `None`."""
    return _last(header, DigestKind.PRE_RUNTIME, _index)


def _index(data: bytes) -> int | None:
    """Return the index in a claim, or `None` for bytes that are not a claim."""
    size = _VRF.get(data[0]) if data else None
    if size is None or len(data) < 1 + 4 + 8 + size:
        return None
    return int.from_bytes(data[1:5], "little")


def announced_epoch(header: Header) -> NextEpoch | None:
    """Return the epoch that a header announces, or `None`."""
    return _last(header, DigestKind.CONSENSUS, _next_epoch)


def _next_epoch(data: bytes) -> NextEpoch | None:
    """Return the announcement in a consensus log, or `None` if the log is another one."""
    reader = Reader(data)
    try:
        if reader.u8() != _NEXT_EPOCH:
            return None
        announced = tuple(authorities.read(reader))
        return NextEpoch(announced, reader.take(32))
    except ScaleError:
        return None


def sealed_by(header: Header) -> tuple[Header, bytes] | None:
    """Return a header without its seal, and the signature; `None` without a seal at the end."""
    if not header.digest:
        return None
    last = header.digest[-1]
    if last.kind is not DigestKind.SEAL or last.engine != BABE_ENGINE:
        return None
    if len(last.data) != SIGNATURE_LENGTH:
        return None
    bare = Header(
        parent_hash=header.parent_hash,
        number=header.number,
        state_root=header.state_root,
        extrinsics_root=header.extrinsics_root,
        digest=header.digest[:-1],
    )
    return bare, last.data
