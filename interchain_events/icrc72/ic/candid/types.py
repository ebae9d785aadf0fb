"""Candid's data types, and the rules for reading a value of one type as another.

A type is a tree of nodes. A recursive type refers to itself by name: its `Named` node is looked up
in the definitions of the same file or message.

Python values of Candid types:

  nat, int, nat8…int64     int
  float32, float64         the 4 or 8 bytes, little-endian
  bool, text, null         bool, str, None
  reserved                 None
  principal                Principal
  vec nat8                 bytes
  vec t                    tuple
  opt t                    None or the value; () or (value,) if null is also a value of t
  record                   a tuple with the fields in the order of the `.did` file, or an instance
                           of the class that the parser was given for the type's name
  variant                  Variant(tag, value)

Floats stay bytes because they are mostly passed on, and a NaN must equal itself when messages are
compared. Filters decode them when they need the number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Generic, NamedTuple, TypeVar

from interchain_events.icrc72.ic.errors import CandidError, DidError

Tag_co = TypeVar("Tag_co", bound=str, covariant=True)
Inside_co = TypeVar("Inside_co", covariant=True)


class Variant(NamedTuple, Generic[Tag_co, Inside_co]):
    """A value of a variant type.

    A type checker narrows the type of `value` after a `match` on `tag`.
    """

    tag: Tag_co
    """The name of the case."""
    value: Inside_co = None  # type: ignore[assignment]  # a tag that carries nothing
    """The value inside, or `None` for a case of type null."""


Make = Callable[[tuple[object, ...]], object]
"""Makes the Python value of a record from the tuple of its fields."""

# In the order of their opcodes. These lines are split into names, so they are no docstring.
_DOWN_FROM_7F: Final = """null bool nat int nat8 nat16 nat32 nat64 int8 int16 int32 int64
    float32 float64 text reserved empty"""
PRIMITIVES: Final = {name: 0x7F - at for at, name in enumerate(_DOWN_FROM_7F.split())} | {
    "principal": 0x68
}
"""The opcode of each primitive type as a byte.

The bytes are the signed LEB128 of -1 (null) to -17 (empty), and of -24 (principal).
"""


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
    """The 32-bit number in messages: the hash of the name, or the name itself if it is a number."""
    name: str
    """The name in the `.did` file, or the id in decimal if the type was read from a message."""
    type: "Type"


@dataclass(frozen=True, eq=False, slots=True)
class Record:
    """A record type."""

    fields: tuple[Field, ...]
    """The fields in the order of the `.did` file, which need not be the order of their ids."""
    make: Make | None = None
    """Makes the Python value from the fields, in the order of `fields`; `None` leaves a tuple."""


@dataclass(frozen=True, eq=False, slots=True)
class Cases:
    """A variant type."""

    fields: tuple[Field, ...]
    """The cases in the order of the `.did` file, which need not be the order of their ids."""


@dataclass(frozen=True, eq=False, slots=True)
class Named:
    """A reference to a type by its name in `definitions`."""

    name: str
    definitions: Mapping[str, "Type"] = field(repr=False)
    """The definitions of the file or message. The type may be added to them later."""


@dataclass(frozen=True, eq=False, slots=True)
class Reference:
    """The type of a function, service or future reference.

    The reader skips values of such a type, and the writer refuses them: the protocol has none.
    """

    kind: str
    """`func`, `service` or `future` (a type of a later version of Candid)."""


Type = Prim | Opt | Vec | Record | Cases | Named | Reference

PRIMS: Final = {name: Prim(name) for name in PRIMITIVES}
"""The only node of each primitive type. Readers compare these nodes by identity."""


def resolved(type_: Type) -> Type:
    """Return the type that a chain of names leads to.

    Raises `DidError` if a name is not defined, or only by itself (`type A = B; type B = A`).
    """
    # More steps than definitions mean that a name was met twice.
    met = 0
    while isinstance(type_, Named):
        definition = type_.definitions.get(type_.name)
        met += 1
        if definition is None or met > len(type_.definitions):
            raise DidError(f"the type {type_.name} is not defined")
        type_ = definition
    return type_


@lru_cache(maxsize=4096)
def hash_of(name: str) -> int:
    """Return the 32-bit id of a field name: its UTF-8 bytes as digits in base 223, modulo 2^32."""
    number = 0
    for byte in name.encode():
        number = (number * 223 + byte) & 0xFFFFFFFF
    return number


def may_be_null(type_: Type) -> bool:
    """Return whether null is a value of the type, which holds for opt, null and reserved.

    A field or argument of such a type may be missing from a message.
    """
    type_ = resolved(type_)
    return isinstance(type_, Opt) or (
        isinstance(type_, Prim) and type_.name in {"null", "reserved"}
    )


def is_blob(type_: Type) -> bool:
    """Return whether the type is `vec nat8`, whose Python value is bytes."""
    inner = resolved(type_.inner) if isinstance(type_, Vec) else None
    return isinstance(inner, Prim) and inner.name == "nat8"


def is_readable(wire: Type, wanted: Type) -> bool:
    """Return whether a value of type `wire` may be read as type `wanted` (Candid 0.1.8).

    One relation is laxer than Candid's subtyping: a variant may have cases that `wanted` lacks. The
    reader refuses such a case only when it meets a value of it.
    """
    # Recursive types are compared coinductively: a pair that is being compared is taken to hold.
    seen: set[tuple[int, int]] = set()
    todo = [(wire, wanted)]
    while todo:
        one_wire, one_wanted = todo.pop()
        one_wire = resolved(one_wire)
        one_wanted = resolved(one_wanted)
        if (id(one_wire), id(one_wanted)) in seen:
            continue
        seen.add((id(one_wire), id(one_wanted)))
        inner_pairs = _inner_pairs(one_wire, one_wanted)
        if inner_pairs is None:
            return False
        todo += inner_pairs
    return True


def _inner_pairs(wire: Type, wanted: Type) -> list[tuple[Type, Type]] | None:
    """Return the pairs of inner types that must also be readable.

    Returns `None` if the outer types do not fit.
    """
    # Candid reads every type as an `opt`: a value that does not fit becomes null.
    if isinstance(wanted, Opt) or (isinstance(wanted, Prim) and wanted.name == "reserved"):
        return []
    if isinstance(wire, Prim):
        if wire.name == "empty":
            return []
        same = isinstance(wanted, Prim) and (
            wire.name == wanted.name or (wire.name, wanted.name) == ("nat", "int")
        )
        return [] if same else None
    if isinstance(wire, Vec) and isinstance(wanted, Vec):
        return [(wire.inner, wanted.inner)]
    if isinstance(wire, Record) and isinstance(wanted, Record):
        wire_types = {field.id: field.type for field in wire.fields}
        pairs: list[tuple[Type, Type]] = []
        for field in wanted.fields:
            if field.id in wire_types:
                pairs.append((wire_types[field.id], field.type))
            elif not may_be_null(field.type):
                return None
        return pairs
    if isinstance(wire, Cases) and isinstance(wanted, Cases):
        wanted_types = {case.id: case.type for case in wanted.fields}
        return [
            (case.type, wanted_types[case.id]) for case in wire.fields if case.id in wanted_types
        ]
    return None


def checked_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields unchanged.

    Raises `DidError` if two of them have the same id. This happens with two names of the same hash,
    and with a name whose hash is also written as a number.
    """
    if len({field.id for field in fields}) != len(fields):
        raise DidError(
            "two fields of one type have the same id:"
            f" {', '.join(field.name for field in fields)[:200]}"
        )
    return fields


def unencodable(value: object, type_: str) -> CandidError:
    """Return the error for a Python value that cannot be encoded as a type."""
    return CandidError(f"{type(value).__name__} {repr(value)[:80]} has no encoding as {type_}")
