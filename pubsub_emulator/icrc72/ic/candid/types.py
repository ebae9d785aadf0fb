"""Candid's data types, and when a value of one may be read as another.

A type is a node; recursion goes through `Named`, which is resolved in the definitions that it came from. A Python value
of a type looks like this:

  nat, int, nat8…int64     int
  float32, float64         its 4 or 8 bytes, little-endian: NaN equals itself, no float is computed with
  bool, text, null         bool, str, None
  reserved                 None
  principal                Principal
  vec nat8                 bytes
  vec t                    tuple
  opt t                    None or the value; () or (value,) where t has None among its values
  record                   a tuple in the order in which the fields are written, or the class bound to the type's name
  variant                  Variant(tag, value)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Generic, NamedTuple, TypeVar

from pubsub_emulator.icrc72.ic.errors import CandidError, DidError

Tag_co = TypeVar("Tag_co", bound=str, covariant=True)
Inside_co = TypeVar("Inside_co", covariant=True)


class Variant(NamedTuple, Generic[Tag_co, Inside_co]):
    """A value of a variant type: its tag, and what it carries (`None` for null). `match` narrows it by the tag."""

    tag: Tag_co
    value: Inside_co = None  # type: ignore[assignment]  # a tag that carries nothing


Make = Callable[[tuple[object, ...]], object]  # makes the Python value of a record from its fields

_DOWN_FROM_7F: Final = """null bool nat int nat8 nat16 nat32 nat64 int8 int16 int32 int64
    float32 float64 text reserved empty"""
PRIMITIVES: Final = {name: 0x7F - at for at, name in enumerate(_DOWN_FROM_7F.split())} | {"principal": 0x68}
"""The byte of each primitive type in a type table."""


@dataclass(frozen=True, eq=False, slots=True)
class Prim:
    """A primitive type."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Opt:
    """`opt inner`."""

    inner: "Type"


@dataclass(frozen=True, eq=False, slots=True)
class Vec:
    """`vec inner`."""

    inner: "Type"


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """One field of a record or one case of a variant."""

    id: int
    name: str
    type: "Type"


@dataclass(frozen=True, eq=False, slots=True)
class Record:
    """A record, its fields as written; `make` builds the Python value from them in that order."""

    fields: tuple[Field, ...]
    make: Make | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Cases:
    """A variant, its cases as written."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Named:
    """A type by its name in `definitions`."""

    name: str
    definitions: Mapping[str, "Type"] = field(repr=False)


@dataclass(frozen=True, eq=False, slots=True)
class Reference:
    """A function or service reference; values of it are skipped, never read."""

    kind: str


Type = Prim | Opt | Vec | Record | Cases | Named | Reference

PRIMS: Final = {name: Prim(name) for name in PRIMITIVES}


def resolved(type_: Type) -> Type:
    """The type behind names. Raises `DidError` for a name that is not defined or is defined as itself."""
    met = 0
    while isinstance(type_, Named):
        found = type_.definitions.get(type_.name)
        met += 1
        if found is None or met > len(type_.definitions):
            raise DidError(f"the type {type_.name} is not defined")
        type_ = found
    return type_


@lru_cache(maxsize=4096)
def hash_of(name: str) -> int:
    """The id of a field name."""
    found = 0
    for byte in name.encode():
        found = (found * 223 + byte) & 0xFFFFFFFF
    return found


def may_be_null(type_: Type) -> bool:
    """True when null is a subtype: opt, null and reserved. A missing field or argument of such a type is null."""
    type_ = resolved(type_)
    return isinstance(type_, Opt) or (isinstance(type_, Prim) and type_.name in {"null", "reserved"})


def is_blob(type_: Type) -> bool:
    """True for `vec nat8`, whose Python value is bytes."""
    inner = resolved(type_.inner) if isinstance(type_, Vec) else None
    return isinstance(inner, Prim) and inner.name == "nat8"


def is_readable(wire: Type, wanted: Type) -> bool:
    """True when `wire` may be read as `wanted` (Candid 0.1.8); a case nobody expects is refused when it is met."""
    seen: set[tuple[int, int]] = set()
    todo = [(wire, wanted)]
    while todo:
        one, other = todo.pop()
        one, other = resolved(one), resolved(other)
        if (id(one), id(other)) in seen:
            continue
        seen.add((id(one), id(other)))
        below = _rests_on(one, other)
        if below is None:
            return False
        todo += below
    return True


def _rests_on(wire: Type, wanted: Type) -> list[tuple[Type, Type]] | None:
    """The pairs on which `wire <: wanted` rests; `None` when it does not hold."""
    if isinstance(wanted, Opt) or (isinstance(wanted, Prim) and wanted.name == "reserved"):
        return []
    if isinstance(wire, Prim):
        if wire.name == "empty":
            return []
        same = isinstance(wanted, Prim) and (wire.name == wanted.name or (wire.name, wanted.name) == ("nat", "int"))
        return [] if same else None
    if isinstance(wire, Vec) and isinstance(wanted, Vec):
        return [(wire.inner, wanted.inner)]
    if isinstance(wire, Record) and isinstance(wanted, Record):
        has = {each.id: each.type for each in wire.fields}
        if any(each.id not in has and not may_be_null(each.type) for each in wanted.fields):
            return None
        return [(has[each.id], each.type) for each in wanted.fields if each.id in has]
    if isinstance(wire, Cases) and isinstance(wanted, Cases):
        takes = {each.id: each.type for each in wanted.fields}
        return [(each.type, takes[each.id]) for each in wire.fields if each.id in takes]
    return None


def checked_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The fields, when their ids differ. Raises `DidError`."""
    if len({each.id for each in fields}) != len(fields):
        raise DidError(f"two fields of one type have the same id: {', '.join(each.name for each in fields)[:200]}")
    return fields


def unencodable(value: object, type_: str) -> CandidError:
    """The error for a Python value that has no encoding under a type."""
    return CandidError(f"{type(value).__name__} {repr(value)[:80]} has no encoding as {type_}")
