"""Event identifiers: naturals of any size, as Crockford base32, as blobs, and whose they are (IC-25)."""

from typing import Final

from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.ic.words import shown
from pubsub_emulator.eventplane.icrc72.errors import IdentifierError

OWN: Final = 1 << 64
"""Ids below this belong to the publication's creator."""

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
    """Parse Crockford base32: any case, hyphens between digits, I and L as 1, O as 0.

    `0x` in front is refused: it is meant as hexadecimal. Raises `IdentifierError`.
    """
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


def belongs_to(identifier: int, source: Principal, creator: Principal) -> bool:
    """True when `source` may use the id in a publication of `creator`."""
    return identifier >> 64 == (0 if source == creator else int.from_bytes(source, "big"))


def own_id(number: int, source: Principal, creator: Principal) -> int:
    """The id with which `source` names its event `number` in a publication of `creator`."""
    return number if source == creator else int.from_bytes(source, "big") << 64 | number
