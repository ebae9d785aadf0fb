"""Origins of calls, checks of origins, and `MultiAddress`.

Calls and extrinsics name an account by a `MultiAddress`, of which only `Id` is looked up:

    00 Id [u8; 32]          01 Index Compact<()>      02 Raw Vec<u8>
    03 Address32 [u8; 32]   04 Address20 [u8; 20]
"""

from dataclasses import dataclass
from typing import Annotated, Final

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader, encode_bytes
from pubsub_emulator.primitives.type_info import (
    ACCOUNT_ID,
    BYTES,
    U8,
    UNIT,
    ArrayOf,
    CompactOf,
    Field,
    Named,
    Variant,
)
from pubsub_emulator.primitives.types import AccountId, ParaId
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, CannotLookup

_PARACHAIN_ORIGIN: Final = 50
"""Pallet index of `ParachainsOrigin` on Polkadot."""


@dataclass(frozen=True, slots=True)
class Root:
    """Governance."""


@dataclass(frozen=True, slots=True)
class Signed:
    """An account that signed an extrinsic."""

    account: AccountId


@dataclass(frozen=True, slots=True)
class Parachain:
    """A parachain, proven by the relay chain: `parachains_origin::Origin::Parachain`."""

    para: ParaId


@dataclass(frozen=True, slots=True)
class Unsigned:
    """No origin, as of inherents (`RawOrigin::None`)."""


Origin = Root | Signed | Parachain | Unsigned


def ensure_root(origin: Origin) -> None:
    """Raise `BadOrigin` unless the origin is root."""
    if not isinstance(origin, Root):
        raise BadOrigin


def ensure_signed(origin: Origin) -> AccountId:
    """Return the account that signed.

    Raises `BadOrigin` for any other origin.
    """
    if not isinstance(origin, Signed):
        raise BadOrigin
    return origin.account


def ensure_signed_or_root(origin: Origin) -> None:
    """Raise `BadOrigin` unless the origin is an account or root."""
    if not isinstance(origin, Signed | Root):
        raise BadOrigin


def ensure_unsigned(origin: Origin) -> None:
    """Raise `BadOrigin` unless the origin is `Unsigned`."""
    if not isinstance(origin, Unsigned):
        raise BadOrigin


def encode_origin(origin: Origin) -> bytes:
    """Return the SCALE bytes of the relay chain's `OriginCaller`."""
    match origin:
        case Root():
            return b"\x00\x00"
        case Signed(account):
            return b"\x00\x01" + account
        case Unsigned():
            return b"\x00\x02"
        case Parachain(para):
            return bytes((_PARACHAIN_ORIGIN, 0)) + para.to_bytes(4, "little")


def _read_origin(reader: Reader) -> Origin:
    start = reader.pos
    match reader.take(2):
        case b"\x00\x00":
            return Root()
        case b"\x00\x01":
            return Signed(AccountId(reader.take(32)))
        case b"\x00\x02":
            return Unsigned()
        case b"\x32\x00":
            return Parachain(ParaId(reader.uint(4)))
    raise ScaleError(f"no origin at offset {start}")


origin_caller: Final[Codec[Origin]] = Codec(
    "OriginCaller", encode_origin, _read_origin, Named("OriginCaller")
)
OriginCaller = Annotated[Origin, origin_caller]
"""An origin as an argument of a call."""


MULTI_ADDRESS: Final = type_info.Variants(
    type_info.path("sp_runtime::multiaddress::MultiAddress"),
    (
        Variant("Id", 0, (Field(ACCOUNT_ID, type_name="AccountId"),)),
        Variant("Index", 1, (Field(CompactOf(UNIT), type_name="AccountIndex"),)),
        Variant("Raw", 2, (Field(BYTES, type_name="Vec<u8>"),)),
        Variant("Address32", 3, (Field(ArrayOf(32, U8), type_name="[u8; 32]"),)),
        Variant("Address20", 4, (Field(ArrayOf(20, U8), type_name="[u8; 20]"),)),
    ),
    (type_info.Parameter("AccountId", ACCOUNT_ID), type_info.Parameter("AccountIndex", UNIT)),
)


@dataclass(frozen=True, slots=True)
class OtherAddress:
    """An address that is never looked up here: `variant` 1 to 4 and its contents."""

    variant: int
    data: bytes


Address = AccountId | OtherAddress

_SIZES: Final = {1: 0, 3: 32, 4: 20}


def _encode(address: Address) -> bytes:
    if not isinstance(address, OtherAddress):
        return b"\x00" + address
    data = encode_bytes(address.data) if address.variant == 2 else address.data
    return bytes((address.variant,)) + data


def _read(reader: Reader) -> Address:
    start = reader.pos
    variant = reader.u8()
    if variant == 0:
        return AccountId(reader.take(32))
    if variant == 2:
        return OtherAddress(variant, reader.bytes_())
    size = _SIZES.get(variant)
    if size is None:
        raise ScaleError(f"MultiAddress has no variant {variant}, at offset {start}")
    return OtherAddress(variant, reader.take(size))


multi_address: Final[Codec[Address]] = Codec("MultiAddress", _encode, _read, MULTI_ADDRESS)
MultiAddress = Annotated[Address, multi_address]
"""An address as an argument of a call."""


def lookup(address: Address) -> AccountId:
    """Return the account that an address names.

    Raises `CannotLookup` for all addresses except `Id`.
    """
    if isinstance(address, OtherAddress):
        raise CannotLookup
    return address
