"""Encoding of a canister's state as bytes, for upgrades and for comparison.

A state consists of `None`, bools, integers, texts, bytes, principals, tuples, lists, lines, dicts,
sets and instances of registered dataclasses and named tuples. Each value has exactly one encoding:
a tag byte, a LEB128 length or count, and the parts. Dicts keep their order, and sets are sorted.
Values are trees: an object that occurs twice is written twice, and becomes two objects.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, TypeVar, cast, dataclass_transform

from interchain_events.icrc72.ic.candid.carried import EncodedVariant, Message
from interchain_events.icrc72.ic.candid.encode import leb128, sleb128
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.candid.wire import Reader
from interchain_events.icrc72.ic.errors import IcError
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.memory import Line, Shared, Single

C = TypeVar("C", bound=type)
T = TypeVar("T")

_CLASSES: Final[dict[str, type]] = {"Variant": Variant}
"""The registered classes by name."""


class StableError(IcError):
    """Bytes are not an encoded state, or a value cannot be part of a state."""


def stable(cls: C) -> C:
    """Register a dataclass or named tuple, so that its instances can be part of a state.

    Raises `StableError` if another class of the same name is registered: names identify classes in
    the encoding.
    """
    if _CLASSES.setdefault(cls.__name__, cls) is not cls:
        raise StableError(f"two classes of states are called {cls.__name__}")
    return cls


@dataclass_transform(field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a class a dataclass with slots, and register it with `stable`."""
    return stable(dataclass(slots=True)(cls))


def encode(value: object) -> bytes:
    """Return the bytes of a value. Raises `StableError` if a part has an unregistered type."""
    out = bytearray()
    _write(value, out)
    return bytes(out)


def decode(data: bytes) -> object:
    """Return the value from bytes that `encode` made.

    Raises `StableError` or `CandidError` if the bytes are malformed. This is not safe for bytes
    that others made: they can also cause other errors.
    """
    reader = Reader(data)
    value = _read(reader)
    if reader.at != len(data):
        raise StableError("bytes follow the state")
    return value


def _write(value: object, out: bytearray) -> None:
    """Append the encoding of a value.

    Its exact type counts: an instance of a subclass is not written like one of its base class.
    """
    kind = type(value)
    simple = _WRITERS.get(kind)
    if simple is not None:
        simple(value, out)
        return
    name = kind.__name__
    if _CLASSES.get(name) is not kind:
        raise StableError(f"{name} cannot be part of a state")
    out += b"R"
    _raw(name.encode(), out)
    if is_dataclass(kind):
        _all([getattr(value, field_.name) for field_ in fields(kind)], out)
    else:
        _all(cast("tuple[object, ...]", value), out)


def _raw(raw: bytes, out: bytearray) -> None:
    """Append a length and bytes."""
    leb128(len(raw), out)
    out += raw


def _all(parts: Collection[object], out: bytearray) -> None:
    """Append a count and the encodings of the parts."""
    leb128(len(parts), out)
    for part in parts:
        _write(part, out)


def _tagged(tag: bytes, write: Callable[[T, bytearray], None]) -> Callable[[T, bytearray], None]:
    """Return a writer that puts a tag before the content."""

    def tagged(value: T, out: bytearray) -> None:
        out += tag
        write(value, out)

    return tagged


def _dict(value: Mapping[object, object], out: bytearray) -> None:
    """Append a count and the encodings of each key and its value."""
    leb128(len(value), out)
    for key, part in value.items():
        _write(key, out)
        _write(part, out)


def _set(value: Collection[object], out: bytearray) -> None:
    """Append a count and the encodings of a set's members in ascending order."""
    # The order of iteration may differ between runs, so the encodings are sorted.
    encodings = sorted(encode(part) for part in value)
    leb128(len(encodings), out)
    for encoding in encodings:
        out += encoding


_WRITERS: Final[dict[type, Callable[[Any, bytearray], None]]] = {
    type(None): _tagged(b"N", lambda _value, _out: None),
    bool: lambda value, out: out.extend(b"T" if value else b"F"),
    int: _tagged(b"I", sleb128),
    str: _tagged(b"S", lambda value, out: _raw(value.encode(), out)),
    bytes: _tagged(b"B", _raw),
    Message: _tagged(b"B", _raw),
    EncodedVariant: lambda value, out: _write(Variant(*value), out),
    Principal: _tagged(b"P", _raw),
    tuple: _tagged(b"t", _all),
    list: _tagged(b"l", _all),
    Line: _tagged(b"q", _all),
    dict: _tagged(b"d", _dict),
    Shared: _tagged(b"d", _dict),
    Single: _tagged(b"d", _dict),
    set: _tagged(b"s", _set),
    frozenset: _tagged(b"f", _set),
}


def _read(reader: Reader) -> object:
    """Read one value. Raises `StableError` if its tag is unknown."""
    tag = reader.take(1)
    read = _READERS.get(tag)
    if read is None:
        raise StableError(f"{tag!r} begins no value of a state")
    return read(reader)


def _parts(reader: Reader) -> list[object]:
    return [_read(reader) for _ in range(reader.leb())]


def _record(reader: Reader) -> object:
    """Read an instance of a registered class: its name, and its fields in their order."""
    name = reader.take(reader.leb()).decode()
    parts = _parts(reader)
    cls = _CLASSES.get(name)
    if cls is None:
        raise StableError(f"there is no class {name} of states")
    return _filled(cls, parts) if is_dataclass(cls) else cls(*parts)


def _filled(kind: type, parts: list[object]) -> object:
    """Make an instance of a dataclass with these fields, bypassing `__init__` and frozen fields."""
    instance: object = object.__new__(kind)
    for field_, part in zip(fields(kind), parts, strict=True):
        object.__setattr__(instance, field_.name, part)
    return instance


_READERS: Final[dict[bytes, Callable[[Reader], object]]] = {
    b"N": lambda _reader: None,
    b"T": lambda _reader: True,
    b"F": lambda _reader: False,
    b"I": Reader.sleb,
    b"S": lambda reader: reader.take(reader.leb()).decode(),
    b"B": lambda reader: reader.take(reader.leb()),
    b"P": lambda reader: Principal(reader.take(reader.leb())),
    b"t": lambda reader: tuple(_parts(reader)),
    b"l": _parts,
    b"q": lambda reader: Line(_parts(reader)),
    # A dict comprehension evaluates the key before the value, which is their order in the bytes.
    b"d": lambda reader: {_read(reader): _read(reader) for _ in range(reader.leb())},
    b"s": lambda reader: set(_parts(reader)),
    b"f": lambda reader: frozenset(_parts(reader)),
    b"R": _record,
}
