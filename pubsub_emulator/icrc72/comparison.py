"""Comparison of values in filters (IC-26): numbers exactly, as fractions; a float with the double nearest to a word."""

import operator as op
import re
import struct
from fractions import Fraction
from typing import Final, TypeVar

from pubsub_emulator.icrc72.values import Value

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_HEX: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
_ASCII_LOWER: Final = str.maketrans({chr(at): chr(at + 32) for at in range(65, 91)})
_INFINITE: Final = float("inf")
_ORDERS: Final = {"==": op.eq, "!=": op.ne, "<>": op.ne, ">": op.gt, ">=": op.ge, "<": op.lt, "<=": op.le}
C = TypeVar("C", str, bytes, int, float)


def compare_word(found: Value, operator: str, text: str, *, literal: bool) -> bool:
    """Whether a value has the relation to a word; a `literal` one, in quotes, is text and no number, hex or bool."""
    if operator.endswith("~="):
        return found.tag == "Text" and _contains(found.value, operator, text)
    number = not literal and _NUMBER.fullmatch(text) is not None
    match found:
        case ("Text", words):
            return _ordered(words, operator, text)
        case ("Principal", who):
            return _ordered(who.text, operator, text)
        case ("Blob" | "Bytes", raw):
            is_hex = not literal and _HEX.fullmatch(text) is not None
            return _ordered(raw, operator, bytes.fromhex(text[2:]) if is_hex else text.encode(errors="replace"))
        case ("Bool", truth) if not literal and text in {"true", "false"}:
            return _ordered(int(truth), operator, int(text == "true"))
        case ("Float", raw) if number:
            return _ordered(_double(raw), operator, _nearest(text))
        case _ if number and (exact := _exact(found)) is not None:
            return _ordered(_order(exact, Fraction(text)), operator, 0)
    return operator in {"!=", "<>"}


def compare(found: Value, operator: str, other: Value) -> bool:
    """Whether two values have the relation: numbers with numbers, Text with Text, and so on."""
    if operator.endswith("~="):
        return found.tag == "Text" and other.tag == "Text" and _contains(found.value, operator, other.value)
    one, two = _comparable(found), _comparable(other)
    if one is not None and type(one) is type(two):
        return bool(_ORDERS[operator](one, two))
    if found.tag == "Float" and other.tag == "Float":
        return _ordered(_double(found.value), operator, _double(other.value))
    exact, wanted = _exact(found), _exact(other)
    if exact is not None and wanted is not None:
        return _ordered(_order(exact, wanted), operator, 0)
    return operator in {"!=", "<>"} and found != other


def _comparable(value: Value) -> str | bytes | bool | None:
    match value:
        case ("Text" | "Blob" | "Bytes" | "Bool", inside):
            return inside
        case ("Principal", who):
            return who.text
    return None


def _exact(value: Value) -> Fraction | float | None:
    """A number exactly; an infinity as float, which compares with fractions; `None` for NaN and what is no number."""
    if value.tag != "Float":
        return Fraction(value.value) if isinstance(value.value, int) and value.tag != "Bool" else None
    double = _double(value.value)
    if double != double:  # noqa: PLR0124 — NaN is what differs from itself
        return None
    return double if double in {_INFINITE, -_INFINITE} else Fraction(double)


def _order(one: Fraction | float, two: Fraction | float) -> int:
    return (one > two) - (one < two)


def _double(raw: bytes) -> float:
    found: float = struct.unpack("<d", raw)[0]
    return found


def _nearest(text: str) -> float:
    try:
        return float(Fraction(text))
    except OverflowError:
        return -_INFINITE if text.startswith("-") else _INFINITE


def _ordered(one: C, operator: str, two: C) -> bool:
    return bool(_ORDERS[operator](one, two))


def _contains(found: str, operator: str, words: str) -> bool:
    if "~~" in operator:
        found, words = found.translate(_ASCII_LOWER), words.translate(_ASCII_LOWER)
    return (words in found) != operator.startswith("!")
