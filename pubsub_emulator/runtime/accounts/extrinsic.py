"""Signed extrinsics (version 4), as clients send them, and the payload of their signatures.

    Compact length
    84             signed, version 4
    MultiAddress   the account that pays
    MultiSignature
    extra          Era, Compact nonce, Compact tip, u8 metadata mode
    call

    payload   call ++ extra ++ u32 spec version, u32 transaction version, genesis hash,
              birth block's hash, Option<metadata hash>; its blake2b-256 if it is longer than
              256 bytes

Bare extrinsics (04, 05) are inherents and calls of the emulator. A client's bare extrinsics are
refused, as are general ones (45).
"""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Reader, encode_bytes, encode_compact
from pubsub_emulator.primitives.signatures import LENGTH, Scheme
from pubsub_emulator.primitives.types import U64_MAX, Hash
from pubsub_emulator.runtime.framework.calls import CallReader, CallTable, EncodedCall
from pubsub_emulator.runtime.framework.origin import Address, multi_address

SIGNED: Final = 0x84
BARE: Final = (0x04, 0x05)
GENERAL: Final = 0x45
MAX_PLAIN_PAYLOAD: Final = 256
"""The maximum length, in bytes, of a payload that is signed without hashing."""


class UndecodableExtrinsic(PubsubError):
    """The bytes are not an extrinsic of this chain."""


@dataclass(frozen=True, slots=True)
class Era:
    """The validity of an extrinsic.

    It is `period` blocks, beginning with a block that is `phase` after a multiple of the period. A
    period of 0 means forever.
    """

    period: int = 0
    phase: int = 0

    def birth(self, now: int) -> int:
        """Return the block from which an extrinsic of this era is valid at block `now`."""
        if not self.period:
            return 0
        return (max(now, self.phase) - self.phase) // self.period * self.period + self.phase

    def death(self, now: int) -> int:
        """Return the first block in which an extrinsic of this era is no longer valid."""
        return self.birth(now) + self.period if self.period else U64_MAX

    def encode(self) -> bytes:
        """Return the SCALE bytes.

        They are 00, or two bytes for a period of 4 to 65,536 blocks, a power of two.
        """
        if not self.period:
            return b"\x00"
        quantum = max(self.period >> 12, 1)
        exponent = min(max(self.period.bit_length() - 2, 1), 15)
        return (exponent | self.phase // quantum << 4).to_bytes(2, "little")

    @staticmethod
    def read(reader: Reader) -> "Era":
        """Return the next era.

        Raises `ScaleError`.
        """
        start = reader.pos
        first = reader.u8()
        if first == 0:
            return Era()
        encoded = first | reader.u8() << 8
        period = 2 << encoded % 16
        phase = (encoded >> 4) * max(period >> 12, 1)
        if period < 4 or phase >= period:
            raise ScaleError(
                f"an era of {period} blocks cannot have the phase {phase}, at offset {start}"
            )
        return Era(period, phase)


@dataclass(frozen=True, slots=True)
class Extra:
    """The part of an extrinsic that is signed together with the call.

    It has era, nonce, tip in plancks, and metadata mode (0 or 1).
    """

    era: Era
    nonce: int
    tip: int
    mode: int = 0

    def encode(self) -> bytes:
        """Return the SCALE bytes."""
        return (
            self.era.encode()
            + encode_compact(self.nonce)
            + encode_compact(self.tip)
            + bytes((self.mode,))
        )


@dataclass(frozen=True, slots=True)
class SignedExtrinsic:
    """A signed extrinsic; `length` is in bytes and includes the prefix."""

    address: Address
    scheme: Scheme
    signature: bytes
    extra: Extra
    call: EncodedCall
    length: int

    def encode(self) -> bytes:
        """Return the SCALE bytes with their length."""
        signed = (
            bytes((SIGNED,))
            + multi_address.encode(self.address)
            + bytes((self.scheme,))
            + self.signature
        )
        return encode_bytes(signed + self.extra.encode() + self.call.encoded)


@dataclass(frozen=True, slots=True)
class BareExtrinsic:
    """An unsigned extrinsic.

    It is a bare one of version 4 or 5, or a general one, whose call is not read.
    """

    version: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Implicit:
    """The signed data that is not in the extrinsic."""

    spec_version: int
    transaction_version: int
    genesis: Hash
    birth: Hash

    def encode(self) -> bytes:
        """Return the SCALE bytes, without a metadata hash."""
        versions = self.spec_version.to_bytes(4, "little") + self.transaction_version.to_bytes(
            4, "little"
        )
        return versions + self.genesis + self.birth + b"\x00"


def payload(call: bytes, extra: Extra, implicit: Implicit) -> bytes:
    """Return the bytes that are signed."""
    data = call + extra.encode() + implicit.encode()
    return blake2_256(data) if len(data) > MAX_PLAIN_PAYLOAD else data


def decode(raw: bytes, calls: CallTable) -> SignedExtrinsic | BareExtrinsic:
    """Return the extrinsic that all of `raw` encodes, length included.

    Raises `UndecodableExtrinsic`.
    """
    try:
        return _read(CallReader(raw, calls))
    except ScaleError as error:
        raise UndecodableExtrinsic(str(error)) from error


def _read(reader: CallReader) -> SignedExtrinsic | BareExtrinsic:
    raw = reader.data
    length = reader.compact(32)
    if length != reader.remaining():
        raise ScaleError(f"the prefix says {length} bytes, {reader.remaining()} follow")
    version = reader.u8()
    if version in BARE or version == GENERAL:
        return BareExtrinsic(version, raw[reader.pos :])
    if version != SIGNED:
        raise ScaleError(f"an extrinsic cannot begin with {version:#04x}")
    extrinsic = _read_signed(reader, len(raw))
    reader.end()
    return extrinsic


def _read_signed(reader: CallReader, length: int) -> SignedExtrinsic:
    address = multi_address.read(reader)
    start = reader.pos
    try:
        scheme = Scheme(reader.u8())
    except ValueError:
        raise ScaleError(f"unknown signature scheme at offset {start}") from None
    signature = reader.take(LENGTH[scheme])
    era = Era.read(reader)
    nonce = reader.compact(32)
    tip = reader.compact(128)
    start = reader.pos
    mode = reader.u8()
    if mode > 1:
        raise ScaleError(f"unknown metadata mode {mode} at offset {start}")
    return SignedExtrinsic(
        address, scheme, signature, Extra(era, nonce, tip, mode), reader.calls.read(reader), length
    )
