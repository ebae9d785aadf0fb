"""`MultiAddress`: the ways in which calls and extrinsics name an account. Only `Id` is looked up.

00 Id [u8; 32] | 01 Index Compact<()> | 02 Raw Vec<u8> | 03 Address32 [u8; 32] | 04 Address20 [u8; 20]
"""

from dataclasses import dataclass
from typing import Annotated, Final

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader, encode_bytes
from pubsub_emulator.primitives.type_info import ACCOUNT_ID, BYTES, U8, UNIT, ArrayOf, CompactOf, Field, Variant
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.framework.dispatch import CannotLookup

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
    at = reader.pos
    variant = reader.u8()
    if variant == 0:
        return AccountId(reader.take(32))
    if variant == 2:
        return OtherAddress(variant, reader.bytes_())
    size = _SIZES.get(variant)
    if size is None:
        raise ScaleError(f"MultiAddress has no variant {variant}, at offset {at}")
    return OtherAddress(variant, reader.take(size))


multi_address: Final[Codec[Address]] = Codec("MultiAddress", _encode, _read, MULTI_ADDRESS)
MultiAddress = Annotated[Address, multi_address]
"""An address as an argument of a call."""


def lookup(address: Address) -> AccountId:
    """The account that an address names. Raises `CannotLookup` for all but `Id`."""
    if isinstance(address, OtherAddress):
        raise CannotLookup
    return address
