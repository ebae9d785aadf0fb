"""Candid values as JSON, the form of test vectors and traces.

The type decides how a value is written:

  nat, int, nat8…int64     a decimal text, because JSON numbers lose digits in many readers
  float32, float64         `0x…`, the bytes with the most significant first
  bool, text, null         as in JSON
  principal                its text
  blob (vec nat8)          `0x…`
  vec                      a list
  opt                      `[]` or `[x]`
  record                   an object, or a list if its fields are named 0, 1, …
  variant                  `{"Tag": x}`
"""

from collections.abc import Callable
from typing import Any, Final

from interchain_events.icrc72.ic.candid import types as t
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.principal import Principal

_FLOATS: Final = frozenset(["float32", "float64"])


def from_json(type_: t.Type, written: Any) -> Any:
    """Return the Python value of a type from its JSON form.

    Raises `CandidError` if the JSON does not have the form of the type.
    """
    try:
        return _read(type_, written)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CandidError(f"{repr(written)[:80]} is not the JSON form of the type") from error


def to_json(type_: t.Type, value: Any) -> Any:
    """Return the JSON form of a Python value, which must have the type.

    A variant that was read through another reading of a method (see `readings.did`) may have a tag
    that differs from the type's in the size of its letters. It is shown as the type's.

    Raises `CandidError` if the type is a function or service reference, or lacks a variant's case.
    """
    type_ = t.resolved(type_)
    if isinstance(type_, t.Prim):
        return _primitive_to_json(type_.name, value)
    if isinstance(type_, t.Opt):
        if not t.may_be_null(type_.inner):
            value = () if value is None else (value,)
        return [to_json(type_.inner, item) for item in value]
    if t.is_blob(type_):
        return "0x" + value.hex()
    if isinstance(type_, t.Vec):
        return [to_json(type_.inner, item) for item in value]
    if isinstance(type_, t.Record):
        fields = type_.fields
        forms = [to_json(field.type, part) for field, part in zip(fields, value, strict=True)]
        if _is_tuple(type_):
            return forms
        return {field.name: form for field, form in zip(fields, forms, strict=True)}
    if isinstance(type_, t.Cases):
        case = _case(type_, value[0])
        return {case.name: to_json(case.type, value[1])}
    raise CandidError("references have no JSON form")


def _case(type_: t.Cases, tag: str) -> t.Field:
    """Return the case with the name `tag`, or the first that differs in upper and lower case only.

    Raises `CandidError` if there is no such case.
    """
    for field in type_.fields:
        if field.name == tag:
            return field
    for field in type_.fields:
        if field.name.casefold() == tag.casefold():
            return field
    raise _no_case(tag)


def _no_case(tag: object) -> CandidError:
    """Return the error for a tag that a variant does not have."""
    return CandidError(f"the variant has no case {str(tag)[:80]}")


def _is_tuple(type_: t.Record) -> bool:
    """Return whether the fields of a record are named 0, 1, … in this order."""
    fields = type_.fields
    return bool(fields) and all(field.name == str(number) for number, field in enumerate(fields))


def _primitive_to_json(name: str, value: Any) -> Any:
    """Return the JSON form of a value of a primitive type."""
    if name in _FLOATS:
        return "0x" + value[::-1].hex()
    if name == "principal":
        return value.text
    return value if name in {"bool", "text", "null", "reserved"} else str(value)


def _read(type_: t.Type, written: Any) -> Any:
    """Return the value without turning the errors of malformed JSON into `CandidError`."""
    type_ = t.resolved(type_)
    if isinstance(type_, t.Prim):
        return _PRIMITIVES[type_.name if type_.name in _PRIMITIVES else "number"](written)
    if isinstance(type_, t.Opt):
        inner = tuple(_read(type_.inner, item) for item in written)
        if t.may_be_null(type_.inner):
            return inner
        return inner[0] if inner else None
    if t.is_blob(type_):
        return bytes.fromhex(written.removeprefix("0x"))
    if isinstance(type_, t.Vec):
        return tuple(_read(type_.inner, item) for item in written)
    if isinstance(type_, t.Record):
        parts = written
        if not isinstance(written, list):
            parts = [written[field.name] for field in type_.fields]
        values = tuple(
            _read(field.type, part) for field, part in zip(type_.fields, parts, strict=True)
        )
        return values if type_.make is None else type_.make(values)
    if isinstance(type_, t.Cases):
        ((tag, inside),) = written.items()
        for case in type_.fields:
            if case.name == tag:
                return t.Variant(tag, _read(case.type, inside))
        raise _no_case(tag)
    raise CandidError("references have no JSON form")


def _float(written: str) -> bytes:
    # JSON has the most significant byte first, values have the least significant one first.
    return bytes.fromhex(written.removeprefix("0x"))[::-1]


_PRIMITIVES: Final[dict[str, Callable[[Any], Any]]] = {
    "number": int,
    "null": lambda _written: None,
    "reserved": lambda _written: None,
    "bool": bool,
    "text": str,
    "principal": Principal.from_text,
    "float32": _float,
    "float64": _float,
}
