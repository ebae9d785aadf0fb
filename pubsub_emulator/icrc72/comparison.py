"""How a filter compares values (IC-26): numbers exactly, as fractions; a float with the double nearest to a word."""

import re
import struct
from fractions import Fraction
from typing import Any, Final

from pubsub_emulator.eventplane.ic.candid.types import Variant

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_HEX: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
_INTEGERS: Final = frozenset(["Nat", "Int", *(f"{kind}{bits}" for kind in ("Nat", "Int") for bits in (8, 16, 32, 64))])
_ASCII_LOWER: Final = str.maketrans({chr(at): chr(at + 32) for at in range(65, 91)})
_INFINITE: Final = float("inf")
_KINDS: Final = {
    "Text": "text",
    "Principal": "text",
    "Blob": "bytes",
    "Bytes": "bytes",
    "Bool": "bool",
    "Float": "number",
    **dict.fromkeys(_INTEGERS, "number"),
}


def compare_word(found: Variant, operator: str, text: str, *, literal: bool) -> bool:
    """Whether a value has the relation to a word; a `literal` one, in quotes, is text and no number, hex or bool."""
    tag, inside = found
    if operator.endswith("~="):
        return tag == "Text" and _contains(inside, operator, text)
    if tag in {"Text", "Principal"}:
        return _ordered(inside if tag == "Text" else inside.text, operator, text)
    if tag in {"Blob", "Bytes"}:
        is_hex = not literal and _HEX.fullmatch(text) is not None
        return _ordered(inside, operator, bytes.fromhex(text[2:]) if is_hex else text.encode(errors="replace"))
    if not literal:
        if tag == "Bool" and text in {"true", "false"}:
            return _ordered(inside, operator, text == "true")
        if tag in _INTEGERS and _NUMBER.fullmatch(text):
            return _ordered(Fraction(inside), operator, Fraction(text))
        if tag == "Float" and _NUMBER.fullmatch(text):
            return _ordered(_double(inside), operator, _nearest(text))
    return operator in {"!=", "<>"}


def compare(found: Variant, operator: str, other: Variant) -> bool:
    """Whether two values have the relation: numbers with numbers, Text with Text, and so on."""
    if operator.endswith("~="):
        return found.tag == other.tag == "Text" and _contains(found.value, operator, other.value)
    kinds = _KINDS.get(found.tag), _KINDS.get(other.tag)
    if kinds[0] is None or kinds[0] != kinds[1]:
        return operator in {"!=", "<>"} and found != other
    if kinds[0] == "number":
        return _numbers(found, operator, other)
    one = found.value.text if found.tag == "Principal" else found.value
    two = other.value.text if other.tag == "Principal" else other.value
    return _ordered(one, operator, two)


def _numbers(found: Variant, operator: str, other: Variant) -> bool:
    if found.tag == "Float" and other.tag == "Float":
        return _ordered(_double(found.value), operator, _double(other.value))
    one, two = _exact(found), _exact(other)
    if one is None or two is None:
        return operator in {"!=", "<>"}
    return _ordered(one, operator, two)


def _exact(value: Variant) -> Fraction | float | None:
    """A number exactly; an infinity as float, which compares with fractions; `None` for NaN."""
    if value.tag != "Float":
        return Fraction(value.value)
    double = _double(value.value)
    if double != double:  # noqa: PLR0124 — NaN is what differs from itself
        return None
    return double if double in {_INFINITE, -_INFINITE} else Fraction(double)


def _double(raw: bytes) -> float:
    found: float = struct.unpack("<d", raw)[0]
    return found


def _nearest(text: str) -> float:
    try:
        return float(Fraction(text))
    except OverflowError:
        return -_INFINITE if text.startswith("-") else _INFINITE


def _ordered(one: Any, operator: str, two: Any) -> bool:
    if operator == "==":
        return bool(one == two)
    if operator in {"!=", "<>"}:
        return bool(one != two)
    if operator == ">":
        return bool(one > two)
    if operator == ">=":
        return bool(one >= two)
    return bool(one < two if operator == "<" else one <= two)


def _contains(found: str, operator: str, words: str) -> bool:
    if "~~" in operator:
        found, words = found.translate(_ASCII_LOWER), words.translate(_ASCII_LOWER)
    return (words in found) != operator.startswith("!")
