"""The wording of verdicts: ranges of numbers, values in Candid's text form, types that misfit."""

import json
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from interchain_events.icrc72.ic.candid import types as t
from interchain_events.icrc72.ic.candid.types import Type, Variant
from interchain_events.icrc72.ic.candid.wire import Reader, read_header
from interchain_events.icrc72.ic.errors import CandidError, DidError, shown
from interchain_events.icrc72.ic.principal import Principal

LONGEST: Final = 300
"""The most characters of a value in a verdict."""
_RANGES: Final = 8
"""How many ranges of numbers are named."""


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers in order as text, `1 to 54, 60`."""
    lows: list[int] = []
    highs: list[int] = []
    for number in sorted(set(numbers)):
        if highs and number == highs[-1] + 1:
            highs[-1] = number
        else:
            lows.append(number)
            highs.append(number)
    words = [
        shown(low) if low == high else f"{shown(low)} to {shown(high)}"
        for low, high in zip(lows, highs, strict=True)
    ]
    more = len(words) - _RANGES
    listed = ", ".join(words[:_RANGES]) or "none"
    return f"{listed} and {more} more ranges" if more > 0 else listed


def first_disorder(numbers: list[int]) -> str:
    """Return the first two numbers that do not ascend as text, or an empty text."""
    for before, after in pairwise(numbers):
        if after < before:
            return f"{shown(after)} after {shown(before)}"
    return ""


def difference(ids: list[int], due: list[int]) -> str:
    """Return how a list of ids differs from the one that is due."""
    words: list[str] = []
    missing = set(due) - set(ids)
    strange = set(ids) - set(due)
    twice = {identifier for identifier, count in Counter(ids).items() if count > 1}
    if missing:
        words.append(f"{ranges(missing)} missing")
    if strange:
        words.append(f"{ranges(strange)} not due")
    if twice:
        words.append(f"{ranges(twice)} more than once")
    if not words:
        words.append(first_disorder(ids) or "another order")
    return f"{', '.join(words)}; due are {ranges(due)}"


def candid_text(value: object) -> str:
    """Return a decoded value in Candid's text form, cut after `LONGEST` characters.

    Tuples without names are vectors here: the types that would tell records apart are not known.
    """
    words = _text(value)
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}…"


def _text(value: object) -> str:
    """Return a value as text. Long vectors and blobs are cut before they are written."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return shown(value)
        case float():
            return repr(value)
        case str():
            return json.dumps(value[:LONGEST], ensure_ascii=False)
        case Principal():
            return f'principal "{value.text}"'
        case bytes():
            escaped = "".join(rf"\{byte:02x}" for byte in value[:LONGEST])
            return f'blob "{escaped}"'
        case Variant():
            inner = "" if value.value is None else f" = {_text(value.value)}"
            return f"variant {{ {value.tag}{inner} }}"
        case tuple():
            names = getattr(value, "_fields", None)
            parts = [_text(part) for part in value[:LONGEST]]
            if names is None:
                return f"vec {{ {'; '.join(parts)} }}" if parts else "vec {}"
            fields = [f"{name} = {part}" for name, part in zip(names, parts, strict=False)]
            return f"record {{ {'; '.join(fields)} }}"
    return str(value)[:LONGEST]


def misfit(data: bytes, wanted: tuple[Type, ...]) -> str:
    """Return how the types of a message differ from the expected ones, or an empty text.

    The text has the form `in the items: text instead of nat`.
    """
    try:
        wire = read_header(Reader(data))
        for position, type_ in enumerate(wanted):
            if position >= len(wire):
                return (
                    "" if t.may_be_null(type_) else f"{position} arguments instead of {len(wanted)}"
                )
            difference = _misfit(wire[position], type_, set())
            if difference:
                return difference
    except (CandidError, DidError, RecursionError):
        pass
    return ""


def _misfit(wire: Type, wanted: Type, seen: set[tuple[int, int]]) -> str:
    """Return the first part of two types that does not fit, with its place, or an empty text."""
    wire = t.resolved(wire)
    wanted = t.resolved(wanted)
    if (id(wire), id(wanted)) in seen or t.is_readable(wire, wanted):
        return ""
    seen.add((id(wire), id(wanted)))
    if isinstance(wire, t.Vec) and isinstance(wanted, t.Vec):
        return _within("the items", _misfit(wire.inner, wanted.inner, seen))
    if isinstance(wire, t.Record) and isinstance(wanted, t.Record):
        given_types = {field.id: field.type for field in wire.fields}
        for field in wanted.fields:
            if field.id not in given_types:
                if not t.may_be_null(field.type):
                    return f"no field {field.name}"
                continue
            words = _misfit(given_types[field.id], field.type, seen)
            if words:
                return _within(field.name, words)
    if isinstance(wire, t.Cases) and isinstance(wanted, t.Cases):
        wanted_cases = {case.id: case for case in wanted.fields}
        for given_case in wire.fields:
            case = wanted_cases.get(given_case.id)
            words = "" if case is None else _misfit(given_case.type, case.type, seen)
            if case is not None and words:
                return _within(case.name, words)
    return f"{_kind(wire)} instead of {_kind(wanted)}"


def _within(place: str, words: str) -> str:
    """Return a misfit with the place where it is."""
    return f"in {place}: {words}" if words else ""


def _kind(type_: Type) -> str:
    """Return a type in a few words."""
    match type_:
        case t.Prim(name):
            return name
        case t.Vec():
            return "blob" if t.is_blob(type_) else f"vec {_kind(t.resolved(type_.inner))}"
        case t.Opt():
            return f"opt {_kind(t.resolved(type_.inner))}"
        case t.Record():
            return "a record"
        case t.Cases():
            return "a variant"
        case t.Reference(kind):
            return f"a {kind}"
        case t.Named():
            return _kind(t.resolved(type_))
