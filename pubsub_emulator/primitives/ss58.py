"""SS58 addresses: an account's 32 bytes with a network prefix and a checksum, in base 58.

prefix   1 byte below 64, else 2 bytes: 01 and the low 14 bits mixed as SS58 has them.
         A first byte of 128 or more is reserved.
account  32 bytes
check    2 bytes, the start of blake2b-512("SS58PRE" ++ prefix ++ account)
"""

from hashlib import blake2b
from typing import Final

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import AccountId

GENERIC: Final = 42
_DIGITS: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_LONGEST: Final = 64
_RESERVED: Final = 0x80
"""The smallest first byte that SS58 reserves."""


class BadAddress(PubsubError):
    """The text is not the address of an account."""


def decode_address(text: str) -> AccountId:
    """Return the account of an address with any network prefix.

    Raises `BadAddress`.
    """
    if not text or len(text) > _LONGEST or any(digit not in _DIGITS for digit in text):
        raise BadAddress(f"{text[:_LONGEST]!r} is not in base 58")
    number = 0
    for digit in text:
        number = number * 58 + _DIGITS.index(digit)
    zeros = len(text) - len(text.lstrip("1"))
    raw = bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
    if raw and raw[0] >= _RESERVED:
        raise BadAddress(f"{text!r} begins with the reserved byte {raw[0]}")
    prefix = 2 if raw and raw[0] & 0x40 else 1
    if len(raw) != prefix + 34:
        raise BadAddress(f"{text!r} is not the address of an account of 32 bytes")
    if raw[-2:] != _checksum(raw[:-2]):
        raise BadAddress(f"{text!r} has a wrong checksum")
    return AccountId(raw[prefix:-2])


def encode_address(account: bytes, prefix: int = GENERIC) -> str:
    """Return the address of an account.

    `prefix` must be below 64.
    """
    raw = bytes((prefix,)) + account
    raw += _checksum(raw)
    number = int.from_bytes(raw, "big")
    digits = ""
    while number:
        number, digit = divmod(number, 58)
        digits = _DIGITS[digit] + digits
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + digits


def _checksum(data: bytes) -> bytes:
    return blake2b(b"SS58PRE" + data).digest()[:2]
