"""Comparison of values in filters (IC-26).

Numbers are compared exactly, as fractions. Only a float is compared with the double nearest to the
number in the filter, because `0.1` in a filter must equal the float 0.1. Values of different kinds
are unequal and in no order.
"""

import operator as op
import re
import struct
from fractions import Fraction
from typing import Final, TypeVar

from interchain_events.icrc72.values import Value

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_HEX: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
_ASCII_LOWER: Final = str.maketrans({chr(at): chr(at + 32) for at in range(65, 91)})
"""Maps ASCII letters to lower case. Other letters keep their case in comparisons without case."""
_INFINITE: Final = float("inf")
_ORDERS: Final = {
    "==": op.eq,
    "!=": op.ne,
    "<>": op.ne,
    ">": op.gt,
    ">=": op.ge,
    "<": op.lt,
    "<=": op.le,
}
C = TypeVar("C", str, bytes, int, float)


def compare_word(value: Value, operator: str, text: str, *, literal: bool) -> bool:
    """Return whether a value is in a relation to a word of a filter.

    The value's tag decides whether the word is read as a number, hex bytes, true or false, or text.
    A `literal` word, in which characters are escaped, is only text.
    """
    if operator.endswith("~="):
        return value.tag == "Text" and _contains(value.value, operator, text)
    number = not literal and _NUMBER.fullmatch(text) is not None
    match value:
        case ("Text", words):
            return _ordered(words, operator, text)
        case ("Principal", who):
            return _ordered(who.text, operator, text)
        case ("Blob" | "Bytes", raw):
            is_hex = not literal and _HEX.fullmatch(text) is not None
            return _ordered(
                raw, operator, bytes.fromhex(text[2:]) if is_hex else text.encode(errors="replace")
            )
        case ("Bool", truth) if not literal and text in {"true", "false"}:
            return _ordered(int(truth), operator, int(text == "true"))
        case ("Float", raw) if number:
            return _ordered(_double(raw), operator, _nearest(text))
        case _ if number and (exact := _exact(value)) is not None:
            return _ordered(_order(exact, Fraction(text)), operator, 0)
    return operator in {"!=", "<>"}


def compare(value: Value, operator: str, other: Value) -> bool:
    """Return whether `value operator other` holds.

    Numbers are compared with numbers of any tag, and other values only with those of the same kind.
    Values of different kinds are unequal, and no other relation holds between them.
    """
    if operator.endswith("~="):
        return (
            value.tag == "Text"
            and other.tag == "Text"
            and _contains(value.value, operator, other.value)
        )
    left = _comparable(value)
    right = _comparable(other)
    if left is not None and type(left) is type(right):
        return bool(_ORDERS[operator](left, right))
    if value.tag == "Float" and other.tag == "Float":
        return _ordered(_double(value.value), operator, _double(other.value))
    left_number = _exact(value)
    right_number = _exact(other)
    if left_number is not None and right_number is not None:
        return _ordered(_order(left_number, right_number), operator, 0)
    return operator in {"!=", "<>"} and value != other


def _comparable(value: Value) -> str | bytes | bool | None:
    """Return the Python value by which a value that is not a number is compared, or `None`."""
    match value:
        case ("Text" | "Blob" | "Bytes" | "Bool", inside):
            return inside
        case ("Principal", who):
            return who.text
    return None


def _exact(value: Value) -> Fraction | float | None:
    """Return a number as an exact fraction, or `None` for NaN and values that are not numbers.

    Infinities stay floats, which Python compares with fractions correctly.
    """
    if value.tag != "Float":
        return (
            Fraction(value.value) if isinstance(value.value, int) and value.tag != "Bool" else None
        )
    double = _double(value.value)
    if double != double:  # noqa: PLR0124 — NaN is what differs from itself
        return None
    return double if double in {_INFINITE, -_INFINITE} else Fraction(double)


def _order(one: Fraction | float, two: Fraction | float) -> int:
    """Return -1, 0 or 1 if the first number is less than, equal to or greater than the second."""
    return (one > two) - (one < two)


def _double(raw: bytes) -> float:
    number: float = struct.unpack("<d", raw)[0]
    return number


def _nearest(text: str) -> float:
    """Return the double that is nearest to a decimal number, which may be infinite."""
    try:
        return float(Fraction(text))
    except OverflowError:
        return -_INFINITE if text.startswith("-") else _INFINITE


def _ordered(one: C, operator: str, two: C) -> bool:
    return bool(_ORDERS[operator](one, two))


def _contains(text: str, operator: str, words: str) -> bool:
    """Return whether a text contains another one: `~~` ignores case, `!` negates."""
    if "~~" in operator:
        text = text.translate(_ASCII_LOWER)
        words = words.translate(_ASCII_LOWER)
    return (words in text) != operator.startswith("!")
