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
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    words = [shown(low) if low == high else f"{shown(low)} to {shown(high)}" for low, high in found]
    more = len(words) - _RANGES
    listed = ", ".join(words[:_RANGES]) or "none"
    return f"{listed} and {more} more ranges" if more > 0 else listed


def first_disorder(numbers: list[int]) -> str:
    """Return the first two numbers that do not ascend as text, or an empty text."""
    for before, after in pairwise(numbers):
        if after < before:
            return f"{shown(after)} after {shown(before)}"
    return ""


def difference(found: list[int], due: list[int]) -> str:
    """Return how a list of ids differs from the one that is due."""
    words: list[str] = []
    missing = set(due) - set(found)
    strange = set(found) - set(due)
    twice = {each for each, count in Counter(found).items() if count > 1}
    if missing:
        words.append(f"{ranges(missing)} missing")
    if strange:
        words.append(f"{ranges(strange)} not due")
    if twice:
        words.append(f"{ranges(twice)} more than once")
    if not words:
        words.append(first_disorder(found) or "another order")
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
            parts = [_text(each) for each in value[:LONGEST]]
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
        for at, type_ in enumerate(wanted):
            if at >= len(wire):
                return "" if t.may_be_null(type_) else f"{at} arguments instead of {len(wanted)}"
            words = _misfit(wire[at], type_, set())
            if words:
                return words
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
        has = {each.id: each.type for each in wire.fields}
        for each in wanted.fields:
            if each.id not in has:
                if not t.may_be_null(each.type):
                    return f"no field {each.name}"
            elif words := _misfit(has[each.id], each.type, seen):
                return _within(each.name, words)
    if isinstance(wire, t.Cases) and isinstance(wanted, t.Cases):
        takes = {each.id: each for each in wanted.fields}
        for given in wire.fields:
            case = takes.get(given.id)
            words = "" if case is None else _misfit(given.type, case.type, seen)
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
