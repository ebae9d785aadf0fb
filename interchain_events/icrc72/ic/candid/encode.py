"""Writing Candid.

The types of a method never change, so an encoder writes their type table once, when it is made, and
puts the same bytes before the values of every message.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from interchain_events.icrc72.ic.candid import types as t
from interchain_events.icrc72.ic.candid.carried import EncodedVariant
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.principal import Principal

Write = Callable[[object, bytearray], None]
"""Appends a value of one type to a buffer. Raises `CandidError` if the value does not fit."""

MAGIC: Final = b"DIDL"
"""The first four bytes of every message."""

_SEQUENCES: Final = (list, tuple)
"""The Python types of a vec. A union in a call of `isinstance` would be made for each value."""


_LONG: Final = range(1 << 28, 1 << 64)
"""The numbers whose bytes are cached.

Most of them are times in nanoseconds, and the messages of a round have the same few times. Larger
numbers, which anybody may send, could be of any length.
"""


_SHORT: Final = 80
"""The most characters of a text whose bytes are cached."""


def leb128(number: int, out: bytearray) -> None:
    """Append a natural number in unsigned LEB128."""
    if number in _LONG:
        out += _long_leb128(number)
        return
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


@lru_cache(maxsize=1024)
def _long_leb128(number: int) -> bytes:
    """Return a natural number in unsigned LEB128."""
    groups: list[int] = []
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def sleb128(number: int, out: bytearray) -> None:
    """Append an integer in signed LEB128."""
    while not -64 <= number < 64:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number & 0x7F)


class Encoder:
    """A writer for the arguments or the results of one method."""

    __slots__ = ("_count", "_sized", "_writers", "header")

    def __init__(self, types: Sequence[t.Type]) -> None:
        table = _Table()
        places = [table.index(type_) for type_ in types]
        header = bytearray(MAGIC)
        leb128(len(table.entries), header)
        for entry in table.entries:
            header += entry
        leb128(len(places), header)
        for place in places:
            sleb128(place, header)
        self.header = bytes(header)
        """The bytes before the values of each message."""
        self._writers = [_writer(type_, {}) for type_ in types]
        self._count = len(types)
        self._sized: tuple[object, int] | None = None

    def encode(self, *values: object) -> bytes:
        """Return the message that contains `values`, one per type of this encoder.

        Raises `CandidError` if the number of values is wrong or one does not have its type.
        """
        return bytes(self.written(values))

    def written(self, values: tuple[object, ...]) -> bytearray:
        """Return the same message in a buffer, from which the caller makes its own kind of bytes.

        Raises `CandidError` like `encode`.
        """
        if len(values) != self._count:
            raise CandidError(f"{self._count} values are encoded, not {len(values)}")
        out = bytearray(self.header)
        try:
            for write, value in zip(self._writers, values, strict=True):
                write(value, out)
        except RecursionError as error:
            raise CandidError("the value is too deep to be encoded") from error
        return out

    def size(self, value: object) -> int:
        """Return how many bytes a value takes in a message, without the header.

        Only for encoders of one type. The size of the last value is remembered.
        """
        # By identity: the values are immutable, and comparing them would take as long as encoding.
        if self._sized is None or self._sized[0] is not value:
            self._sized = value, len(self.written((value,))) - len(self.header)
        return self._sized[1]

    def encoded(self, value: t.Variant[Any, Any]) -> EncodedVariant:
        """Return a value with its encoding. Only for encoders of one variant type.

        Raises `CandidError` like `encode`.
        """
        made = EncodedVariant(*value)
        made.encoding = bytes(self.written((value,))[len(self.header) :])
        made.table = self.header
        return made


class _Table:
    """A type table that is being built."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        """The entries in the order in which the table contains them."""
        self._places: dict[int, int] = {}
        """Indices by the `id` of the type's node."""

    def index(self, type_: t.Type) -> int:
        """Return the index of a type, after adding it and its inner types to the table.

        Primitive types have negative indices and are not in the table. Raises `CandidError` if the
        type is a reference.
        """
        type_ = t.resolved(type_)
        if isinstance(type_, t.Prim):
            return t.PRIMITIVES[type_.name] - 0x80
        if isinstance(type_, t.Reference):
            raise CandidError(f"{type_.kind} references are not written")
        known = self._places.get(id(type_))
        if known is not None:
            return known
        # Reserve the place before the inner types are added: a recursive type refers to it.
        place = len(self.entries)
        self._places[id(type_)] = place
        self.entries.append(b"")
        entry = bytearray()
        if isinstance(type_, t.Opt | t.Vec):
            entry.append(0x6E if isinstance(type_, t.Opt) else 0x6D)
            sleb128(self.index(type_.inner), entry)
        elif isinstance(type_, t.Record | t.Cases):
            entry.append(0x6C if isinstance(type_, t.Record) else 0x6B)
            leb128(len(type_.fields), entry)
            for field in sorted(type_.fields, key=lambda field: field.id):
                leb128(field.id, entry)
                sleb128(self.index(field.type), entry)
        self.entries[place] = bytes(entry)
        return place


def _writer(type_: t.Type, writers: dict[int, list[Write]]) -> Write:
    """Return the function that writes values of a type.

    `writers` has a list for each type that was met, by the type's object id. The list is empty
    while the type's writer is being made, and has the writer afterwards. A recursive type meets its
    own empty list, and gets a function that looks the writer up when it is called. The writer of a
    variant is made before those of its cases. So the recursion of ICRC16 values, which goes through
    a variant, does not need such look-ups.
    """
    type_ = t.resolved(type_)
    if isinstance(type_, t.Prim):
        return _PRIMITIVE_WRITERS[type_.name]
    known = writers.get(id(type_))
    if known is not None:
        return known[0] if known else lambda value, out: known[0](value, out)  # noqa: PLW0108 — it is not made yet
    cell: list[Write] = []
    writers[id(type_)] = cell
    if t.is_blob(type_):
        write: Write = _write_blob
    elif isinstance(type_, t.Opt):
        write = _opt_writer(_writer(type_.inner, writers), wrapped=t.may_be_null(type_.inner))
    elif isinstance(type_, t.Vec):
        write = _vec_writer(_writer(type_.inner, writers))
    elif isinstance(type_, t.Record):
        fields = type_.fields
        positions = sorted(range(len(fields)), key=lambda position: fields[position].id)
        write = _record_writer(
            [(position, _writer(fields[position].type, writers)) for position in positions]
        )
    elif isinstance(type_, t.Cases):
        cases: dict[str, tuple[bytes, Write]] = {}
        write = _variant_writer(type_, cases)
        cell.append(write)
        for number, case in enumerate(sorted(type_.fields, key=lambda field: field.id)):
            tag = bytearray()
            leb128(number, tag)
            cases[case.name] = bytes(tag), _writer(case.type, writers)
        return write
    else:
        raise CandidError("references are not written")
    cell.append(write)
    return write


def _opt_writer(inner: Write, *, wrapped: bool) -> Write:
    """Return the writer of an optional type.

    `wrapped` says that the inner type has null among its values. `None` would then be ambiguous, so
    such values come as `()` or `(value,)`.
    """

    def write(value: object, out: bytearray) -> None:
        if value is None:
            out.append(0)
        else:
            out.append(1)
            inner(value, out)

    def write_wrapped(value: object, out: bytearray) -> None:
        if not isinstance(value, tuple) or len(value) > 1:
            raise t.unencodable(value, "an optional of an optional type: () or (value,)")
        out.append(len(value))
        for item in value:
            inner(item, out)

    return write_wrapped if wrapped else write


def _vec_writer(inner: Write) -> Write:
    """Return the writer of a vector type."""

    def write(value: object, out: bytearray) -> None:
        if not isinstance(value, _SEQUENCES):
            raise t.unencodable(value, "vec")
        count = len(value)
        # Most lengths take one byte, and writing it here takes less time than a call.
        if count < 0x80:
            out.append(count)
        else:
            leb128(count, out)
        for item in value:
            inner(item, out)

    return write


def _record_writer(fields: list[tuple[int, Write]]) -> Write:
    """Return the writer of a record type.

    `fields` are in the order of the message, by id, and each has its position in the Python tuple.
    """
    count = len(fields)

    def write(value: object, out: bytearray) -> None:
        if not isinstance(value, tuple) or len(value) != count:
            raise t.unencodable(value, f"a record of {count} fields")
        for at, inner in fields:
            inner(value[at], out)

    return write


def _variant_writer(type_: t.Cases, cases: dict[str, tuple[bytes, Write]]) -> Write:
    """Return the writer of a variant type.

    `cases` has, for each case by name, its position in the order of ids (in LEB128) and the writer
    of its value. A message contains the position and then the value.
    """

    @cache
    def header() -> bytes:
        return Encoder((type_,)).header

    def refused(value: object) -> CandidError:
        return t.unencodable(value, f"a variant of {', '.join(cases)[:120]}")

    def write(value: object, out: bytearray) -> None:
        # Almost all values are `Variant`s, whose length is known.
        if type(value) is t.Variant:
            name, inside = value
        elif type(value) is EncodedVariant and value.table == header():
            out += value.encoding
            return
        elif isinstance(value, tuple) and len(value) == 2:
            name, inside = value
        else:
            raise refused(value)
        case = cases.get(name)
        if case is None:
            raise refused(value)
        tag, inner = case
        out += tag
        inner(inside, out)

    return write


def _write_blob(value: object, out: bytearray) -> None:
    if not isinstance(value, bytes):
        raise t.unencodable(value, "blob")
    leb128(len(value), out)
    out += value


def _write_text(value: object, out: bytearray) -> None:
    if not isinstance(value, str):
        raise t.unencodable(value, "text")
    try:
        if len(value) <= _SHORT:
            out += _short_text(value)
            return
        raw = value.encode()
    except UnicodeEncodeError as error:
        raise t.unencodable(value, "text") from error
    leb128(len(raw), out)
    out += raw


@lru_cache(maxsize=1 << 12)
def _short_text(value: str) -> bytes:
    """Return the encoding of a text. Most texts are keys and namespaces, which occur often."""
    out = bytearray()
    raw = value.encode()
    leb128(len(raw), out)
    return bytes(out + raw)


def _write_null(value: object, _out: bytearray) -> None:
    if value is not None:
        raise t.unencodable(value, "null")


def _write_bool(value: object, out: bytearray) -> None:
    if not isinstance(value, bool):
        raise t.unencodable(value, "bool")
    out.append(value)


def _write_nat(value: object, out: bytearray) -> None:
    # A bool is an int in Python, but not a nat, so `isinstance` would not do.
    if type(value) is not int or value < 0:
        raise t.unencodable(value, "nat")
    # As in a vector, most numbers take one byte.
    if value < 0x80:
        out.append(value)
    else:
        leb128(value, out)


def _write_int(value: object, out: bytearray) -> None:
    if type(value) is not int:
        raise t.unencodable(value, "int")
    sleb128(value, out)


def _write_principal(value: object, out: bytearray) -> None:
    if not isinstance(value, Principal):
        raise t.unencodable(value, "principal")
    out.append(1)
    out.append(len(value))
    out += value


def _fixed(name: str, size: int, *, signed: bool) -> Write:
    """Return the writer of an integer type with a fixed size in bytes."""

    def write(value: object, out: bytearray) -> None:
        if type(value) is not int:
            raise t.unencodable(value, name)
        try:
            out += value.to_bytes(size, "little", signed=signed)
        except OverflowError as error:
            raise t.unencodable(value, name) from error

    return write


def _fitting(name: str, fits: Callable[[Any], bool], raw: Callable[[Any], bytes]) -> Write:
    """Return the writer of a type whose values are accepted by `fits` and written by `raw`."""

    def write(value: object, out: bytearray) -> None:
        if not fits(value):
            raise t.unencodable(value, name)
        out += raw(value)

    return write


def _float(name: str, size: int) -> Write:
    return _fitting(name, lambda value: isinstance(value, bytes) and len(value) == size, bytes)


_PRIMITIVE_WRITERS: Final[dict[str, Write]] = {
    "null": _write_null,
    "bool": _write_bool,
    "nat": _write_nat,
    "int": _write_int,
    "text": _write_text,
    "reserved": lambda _value, _out: None,
    "empty": _fitting("empty", lambda _value: False, bytes),
    "principal": _write_principal,
    "float32": _float("float32", 4),
    "float64": _float("float64", 8),
    **{f"nat{bits}": _fixed(f"nat{bits}", bits // 8, signed=False) for bits in (8, 16, 32, 64)},
    **{f"int{bits}": _fixed(f"int{bits}", bits // 8, signed=True) for bits in (8, 16, 32, 64)},
}
