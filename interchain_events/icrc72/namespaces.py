"""Namespaces, patterns with wildcards, system namespaces (IC-24), and ids of events (IC-25).

A namespace consists of segments joined by dots. In a pattern, `*` stands for one segment and `**`
for any number of them; beside other characters, `*` stands for any characters within a segment. The
draft keeps namespaces "as generic as possible", so a segment has any printable characters. A
deployment may restrict them to letters, digits, `_` and `-`.

System namespaces begin with `icrc72:`; the orchestrator sends system events in those of the form
`icrc72:<role>:sys:<principal>`.
"""

import re
import unicodedata
from contextlib import suppress
from functools import lru_cache
from sys import intern
from typing import Final

from interchain_events.icrc72.errors import IdentifierError, NamespaceError
from interchain_events.icrc72.ic.errors import PrincipalError, shown
from interchain_events.icrc72.ic.principal import Principal

MOST_SEGMENTS: Final = 16
MOST_BYTES: Final = 256

_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""A segment without wildcards, where they are restricted."""
_SYSTEM: Final = re.compile(r"icrc[0-9]+:", re.ASCII | re.IGNORECASE)
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_SYSTEM_OF: Final = re.compile(
    r"icrc72:(broadcaster|publisher|subscriber):sys:([a-z2-7-]+)", re.ASCII
)


def is_system(name: str) -> bool:
    """Return whether a text begins with `icrc<digits>:`, in any case, and so is reserved."""
    return _SYSTEM.match(name) is not None


@lru_cache(maxsize=1 << 14)
def system_namespace(role: str, principal: Principal) -> str:
    """Return the namespace of the system events for a principal in a role.

    The texts are cached because the states of several canisters contain the same ones.
    """
    return f"icrc72:{role}:sys:{principal.text}"


def system_role(name: str) -> str | None:
    """Return the role of a system namespace, or `None` for any other text.

    Its principal is not parsed: it takes less time to compare the text with `system_namespace`.
    """
    match = _SYSTEM_OF.fullmatch(name)
    # Interned, since the keys of all members contain it.
    return None if match is None else intern(match[1])


def system_owner(name: str) -> tuple[str, Principal] | None:
    """Return the role and principal of a system namespace, or `None` for any other text."""
    match = _SYSTEM_OF.fullmatch(name)
    with suppress(PrincipalError):
        return None if match is None else (match[1], Principal.from_text(match[2]))
    return None


def check_namespace(name: str, *, narrow: bool = False) -> None:
    """Check the namespace of a publication. Raises `NamespaceError`.

    `narrow` allows only segments of 1 to 64 letters, digits, `_` and `-`.
    """
    for segment in _segments(name):
        if "*" in segment or not _is_segment(segment, narrow=narrow):
            raise NamespaceError(
                f"{name[:80]!r} is not a namespace: {segment[:70]!r} is not a segment"
            )


def check_pattern(pattern: str, *, narrow: bool = False) -> None:
    """Check the pattern of a subscription. Raises `NamespaceError`.

    `narrow` restricts segments as in `check_namespace`, and wildcards to whole segments.
    """
    for segment in _segments(pattern):
        if segment in {"*", "**"}:
            continue
        # A wildcard may be a part of a segment, unless it is `**` or the rules are narrow. The rest
        # must be a segment.
        fixed = segment if narrow or "**" in segment else segment.replace("*", "")
        if "*" in fixed or not _is_segment(fixed, narrow=narrow):
            raise NamespaceError(
                f"{pattern[:80]!r} is neither a namespace nor a pattern:"
                f" {segment[:70]!r} is not a segment"
            )


def _segments(name: str) -> list[str]:
    """Return the segments of a name. Raises `NamespaceError` if it is too long.

    A name must be in Unicode's composed form, so that names that look alike are the same.
    """
    shown = repr(name[:80])
    if len(name.encode(errors="replace")) > MOST_BYTES:
        raise NamespaceError(f"{shown} has more than {MOST_BYTES} bytes")
    if not unicodedata.is_normalized("NFC", name):
        raise NamespaceError(f"{shown} is not in the composed form of Unicode (NFC)")
    segments = name.split(".")
    if len(segments) > MOST_SEGMENTS:
        raise NamespaceError(f"{shown} has more than {MOST_SEGMENTS} segments")
    return segments


def _is_segment(segment: str, *, narrow: bool) -> bool:
    """Return whether a text is a segment without wildcards."""
    if narrow:
        return _SEGMENT.fullmatch(segment) is not None
    return segment != "" and segment.isprintable() and not any(map(str.isspace, segment))


def has_wildcard(pattern: str) -> bool:
    """Return whether a pattern may match more than one namespace."""
    return "*" in pattern


def matches(pattern: str, namespace: str) -> bool:
    """Return whether a namespace matches a pattern.

    A system namespace matches only itself, so that no wildcard reveals system events.
    """
    if pattern == namespace:
        return True
    if "*" not in pattern or is_system(namespace) or is_system(pattern):
        return False
    return _matches(tuple(pattern.split(".")), tuple(namespace.split(".")))


@lru_cache(maxsize=1 << 14)
def _matches(pattern: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether segments match, in time proportional to the product of the two lengths.

    `reached` has the lengths of all prefixes of the name that the pattern matches so far.
    """
    reached = {0}
    for segment in pattern:
        if segment == "**":
            reached = set(range(min(reached), len(name) + 1))
        else:
            reached = {
                at + 1 for at in reached if at < len(name) and _matches_segment(segment, name[at])
            }
        if not reached:
            return False
    return len(name) in reached


def _matches_segment(pattern: str, segment: str) -> bool:
    """Return whether a segment matches one of a pattern, in which `*` stands for any characters.

    The parts between wildcards are looked for from left to right, each once, so the time is bounded
    by the product of the two lengths.
    """
    if pattern == segment:
        return True
    first, *parts = pattern.split("*")
    if not parts or not segment.startswith(first):
        return False
    *middle, last = parts
    position = len(first)
    for part in middle:
        index = segment.find(part, position)
        if index < 0:
            return False
        position = index + len(part)
    return len(segment) - position >= len(last) and segment.endswith(last)


def cleaned(segment: str) -> str:
    """Return a segment with `_` in place of characters that IC-24 does not allow (IC-55)."""
    return _FOREIGN.sub("_", segment)


OWN: Final = 1 << 64
"""How many ids each publisher of a publication has.

Ids below it belong to the creator.
"""


def partition_of(identifier: int, partitions: int) -> int:
    """Return the partition of an event by its id.

    The part of the id that names the publisher does not count, so each publisher's ids go to the
    partitions in turn.
    """
    return identifier % OWN % partitions


_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES: Final = {digit: at for at, digit in enumerate(_DIGITS)}
_VALUES.update({digit.lower(): at for at, digit in enumerate(_DIGITS)})
# Crockford's base32 reads letters that look like digits as these digits.
_VALUES.update({"o": 0, "O": 0, **dict.fromkeys("iIlL", 1)})


def to_text(identifier: int) -> str:
    """Return an id in canonical Crockford base32.

    It is in upper case, without leading zeros and check symbol. Raises `IdentifierError` if the id
    is negative.
    """
    if identifier < 0:
        raise IdentifierError(f"{shown(identifier)} is no identifier: it is negative")
    digits = [_DIGITS[identifier & 31]]
    identifier >>= 5
    while identifier:
        digits.append(_DIGITS[identifier & 31])
        identifier >>= 5
    return "".join(reversed(digits))


def from_text(text: str) -> int:
    """Parse an id in Crockford base32, in any case and with hyphens between digits.

    Raises `IdentifierError`.
    """
    if not text or text.startswith(("-", "0x", "0X")) or text.endswith("-"):
        raise IdentifierError(f"{text[:80]!r} is no identifier")
    number = 0
    for letter in text:
        if letter == "-":
            continue
        value = _VALUES.get(letter)
        if value is None:
            raise IdentifierError(
                f"{text[:80]!r} is no identifier: {letter!r} is no digit of Crockford base32"
            )
        number = number << 5 | value
    return number


def from_blob(blob: bytes) -> int:
    """Return a blob as a natural number, big-endian."""
    return int.from_bytes(blob, "big")


def first_id(source: Principal, creator: Principal) -> int:
    """Return the first id that a publisher gives to events of a publication.

    The creator counts from 1. Any other publisher counts from its principal times 2^64, plus 1, so
    ids of different publishers never meet.
    """
    return 1 if source == creator else int.from_bytes(source, "big") << 64 | 1
