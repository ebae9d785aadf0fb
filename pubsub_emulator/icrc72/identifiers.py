"""Event identifiers: naturals of any size, as Crockford base32, as blobs, and how publishers give them (IC-25)."""

from typing import Final

from pubsub_emulator.icrc72.errors import IdentifierError
from pubsub_emulator.icrc72.ic.errors import shown
from pubsub_emulator.icrc72.ic.principal import Principal

OWN: Final = 1 << 64  # ids below this are given by the publication's creator; partitions are counted modulo it

_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES: Final = {
    **{digit: at for at, digit in enumerate(_DIGITS)},
    **{digit.lower(): at for at, digit in enumerate(_DIGITS)},
    **dict.fromkeys("oO", 0),
    **dict.fromkeys("iIlL", 1),
}


def to_text(identifier: int) -> str:
    """Canonical Crockford base32: upper case, no leading zeros, no check symbol."""
    if identifier < 0:
        raise IdentifierError(f"{shown(identifier)} is no identifier: it is negative")
    digits = [_DIGITS[identifier & 31]]
    while identifier := identifier >> 5:
        digits.append(_DIGITS[identifier & 31])
    return "".join(reversed(digits))


def from_text(text: str) -> int:
    """Parse Crockford base32, in any case and with hyphens, without `0x`. Raises `IdentifierError`."""
    if not text or text.startswith(("-", "0x", "0X")) or text.endswith("-"):
        raise IdentifierError(f"{text[:80]!r} is no identifier")
    found = 0
    for letter in text:
        if letter == "-":
            continue
        value = _VALUES.get(letter)
        if value is None:
            raise IdentifierError(f"{text[:80]!r} is no identifier: {letter!r} is no digit of Crockford base32")
        found = found << 5 | value
    return found


def from_blob(blob: bytes) -> int:
    """A blob as a natural, big-endian."""
    return int.from_bytes(blob, "big")


def first_id(source: Principal, creator: Principal) -> int:
    """The first id that `source` gives in a publication of `creator`: nobody else comes near it."""
    return 1 if source == creator else int.from_bytes(source, "big") << 64 | 1
