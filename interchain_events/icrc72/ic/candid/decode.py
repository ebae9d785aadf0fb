"""Strict reading of Candid: a message has the expected types or is refused (IC-11b).

Values are coerced as in Candid 0.1.8. A message is refused as a whole if its types cannot be read
as the expected ones. Under `opt`, values are judged one by one: a value that does not fit becomes
null. Additional fields and arguments are skipped.

A reader is a function for one pair of a type in the message and an expected type. Readers are made
when a message first needs them. Messages of one sender usually begin with the same type table, so a
decoder caches the readers by the bytes of the table.
"""

from collections.abc import Callable, Sequence
from typing import Final, cast

from interchain_events.icrc72.ic.candid import types as t
from interchain_events.icrc72.ic.candid.wire import Reader, read_header
from interchain_events.icrc72.ic.errors import CandidError, shown

Read = Callable[[Reader], object]
"""Reads one value.

Raises `CandidError`, or its subclass `_Mismatch` if the value is well-formed but does not fit.
"""

_NOTHING: Final = object()
"""Marks a value under `opt` that did not fit."""
_NAT_AS_INT: Final = ("nat", "int")
"""The only pair of different primitive types of which one may be read as the other."""

KEPT_TABLES: Final = 64
"""For how many type tables a decoder caches readers. Strangers may send any number of them."""

KEPT_MESSAGES: Final = 32
"""How many of the last messages a decoder caches with their values.

Values are immutable, so they can be shared. Observers of the network read the same message as the
receiver, and many answers are equal.
"""
KEPT_BYTES: Final = 1 << 16
"""The longest message that is cached."""


class _Mismatch(CandidError):
    """A well-formed value does not fit the expected type. The `opt` around it becomes null."""


class Decoder:
    """A reader for the arguments or the results of one method."""

    __slots__ = ("_kept", "_recent", "_strict", "_types")

    def __init__(self, types: Sequence[t.Type], *, strict: bool = False) -> None:
        """Expect values of `types`.

        `strict` refuses a value under `opt` that does not fit, which Candid reads as null.
        """
        self._types = tuple(types)
        self._strict = strict
        self._kept: dict[bytes, list[Read]] = {}
        self._recent: dict[bytes, tuple[object, ...]] = {}

    def decode(self, data: bytes) -> tuple[object, ...]:
        """Return the values of a message, one per expected type.

        Raises only `CandidError`, with the position of the byte at which reading stopped.
        """
        values = self._recent.get(data)
        if values is None:
            values = self._decode(data)
            if len(data) <= KEPT_BYTES:
                if len(self._recent) >= KEPT_MESSAGES:
                    del self._recent[next(iter(self._recent))]
                self._recent[data] = values
        return values

    def _decode(self, data: bytes) -> tuple[object, ...]:
        """Decode a message that is not cached."""
        reader = Reader(data)
        try:
            reads = self._known(reader)
            # A known header without arguments has an empty list.
            if reads is None:
                reads = self._prepare(reader)
            values = [read(reader) for read in reads]
        except CandidError as error:
            raise CandidError(f"byte {reader.at}: {error}") from error
        except RecursionError as error:
            raise CandidError(f"byte {reader.at}: values are nested too deep") from error
        if reader.at != len(data):
            raise CandidError(
                f"byte {reader.at}: the message ends here, {len(data) - reader.at} bytes follow"
            )
        # After the expected values come the `None`s of skipped arguments.
        return tuple(values[: len(self._types)])

    def _known(self, reader: Reader) -> list[Read] | None:
        """Return the cached readers for the header of a message and advance to the first value.

        A header states its own length, so a message that begins with its bytes has this header.
        """
        for header, reads in self._kept.items():
            if reader.data.startswith(header):
                reader.at = len(header)
                return reads
        return None

    def _prepare(self, reader: Reader) -> list[Read]:
        """Read the header of a message, and make and cache the readers for its values.

        Missing arguments get a reader that reads no bytes. Additional ones get readers that skip
        them.
        """
        wire = read_header(reader)
        plans = _Plans(strict=self._strict)
        reads: list[Read] = []
        for position, wanted in enumerate(self._types):
            if position >= len(wire):
                if not t.may_be_null(wanted):
                    raise CandidError(f"argument {position} is missing")
                reads.append(_always(_nothing_of(wanted)))
            elif not t.is_readable(wire[position], wanted):
                raise CandidError(f"argument {position} does not have the expected type")
            else:
                reads.append(plans.reader(wire[position], wanted))
        reads += [plans.skipper(extra) for extra in wire[len(self._types) :]]
        if len(self._kept) >= KEPT_TABLES:
            del self._kept[next(iter(self._kept))]
        self._kept[reader.data[: reader.at]] = reads
        return reads


class _Plans:
    """The readers for the types of one type table."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._readers: dict[tuple[int, int], Read] = {}
        self._kept: list[t.Type] = []

    def reader(self, wire: t.Type, wanted: t.Type) -> Read:
        """Return the function that reads values of type `wire` as `wanted`."""
        wire = t.resolved(wire)
        wanted = t.resolved(wanted)
        key = (id(wire), id(wanted))
        read = self._readers.get(key)
        if read is None:
            # The keys are object ids, which Python may reuse when an object is gone. So both
            # objects are kept.
            self._kept += [wire, wanted]
            read = self._make(wire, wanted)
            self._readers[key] = read
        return read

    def _make(self, wire: t.Type, wanted: t.Type) -> Read:
        """Make the reader for a pair of resolved types.

        Types that do not fit get a reader that raises `_Mismatch` when it is called. The value may
        be under an `opt`, which then becomes null, or in a case that never occurs.
        """
        if isinstance(wire, t.Prim) and (wire is wanted or wire.name == "empty"):
            return _PRIMITIVE_READERS[wire.name]
        if isinstance(wanted, t.Prim):
            if wanted.name == "reserved":
                return _always(None, after=self.skipper(wire))
            fits = isinstance(wire, t.Prim) and (wire.name, wanted.name) == _NAT_AS_INT
            return Reader.leb if fits else _mismatch
        if isinstance(wanted, t.Opt):
            return self._opt(wire, wanted)
        if isinstance(wire, t.Vec) and isinstance(wanted, t.Vec):
            if t.is_blob(wire) and t.is_blob(wanted):
                return _blob
            return self._vec(wire.inner, wanted.inner, as_bytes=t.is_blob(wanted))
        if isinstance(wire, t.Record) and isinstance(wanted, t.Record):
            return self._record(wire, wanted)
        if isinstance(wire, t.Cases) and isinstance(wanted, t.Cases):
            return self._variant(wire, wanted)
        if isinstance(wire, t.Reference) and wire is wanted:
            return _REFERENCES[wire.kind]
        return _mismatch

    def skipper(self, wire: t.Type) -> Read:
        """Return a reader for values that are not expected, which checks them as their own type."""
        return self.reader(wire, wire)

    def _lazy(self, wire: t.Type, wanted: t.Type) -> Read:
        """Return a reader that makes the real reader when it is first called.

        Types may contain themselves, so readers of inner types cannot be made at once. Primitive
        types and blobs do not contain other types, so their readers are made at once, for speed.
        """
        simple = t.resolved(wire)
        if isinstance(simple, t.Prim) or t.is_blob(simple):
            return self.reader(wire, wanted)
        cached: list[Read] = []

        def read(reader: Reader) -> object:
            if not cached:
                cached.append(self.reader(wire, wanted))
            return cached[0](reader)

        return read

    def _opt(self, wire: t.Type, wanted: t.Opt) -> Read:
        """Make the reader that reads any type as an optional type.

        A value of a type that is not `opt` is read as if it were inside one, unless the inner type
        has null among its values: then it is skipped and the result is null.
        """
        wrapped = t.may_be_null(wanted.inner)
        nothing = _nothing_of(wanted)
        if isinstance(wire, t.Prim) and wire.name in {"null", "reserved"}:
            return _always(nothing)
        if not isinstance(wire, t.Opt) and wrapped:
            return _always(nothing, after=self._lazy(wire, wire))
        wire_inner = wire.inner if isinstance(wire, t.Opt) else wire
        read_inner = self._lazy(wire_inner, wanted.inner)
        if self._strict:
            inner = _strict_opt(read_inner)
        else:
            inner = _lenient_opt(read_inner, self._lazy(wire_inner, wire_inner))

        def read_bare(reader: Reader) -> object:
            value = inner(reader)
            return None if value is _NOTHING else value

        if not isinstance(wire, t.Opt):
            return read_bare

        def read(reader: Reader) -> object:
            flag = reader.byte()
            if flag > 1:
                raise CandidError("an optional value must begin with 0 or 1")
            reader.count()
            if not flag:
                return nothing
            reader.enter()
            value = inner(reader)
            reader.depth -= 1
            if value is _NOTHING:
                return nothing
            return (value,) if wrapped else value

        return read

    def _vec(self, wire: t.Type, wanted: t.Type, *, as_bytes: bool) -> Read:
        """Make the reader of a vector with items of type `wire` that are read as `wanted`.

        With `as_bytes`, the result is bytes. This is for a `vec empty` that is read as `vec nat8`;
        a `vec nat8` has another reader.
        """
        item = self._lazy(wire, wanted)

        def read(reader: Reader) -> object:
            count = reader.leb()
            reader.count(count + 1)
            reader.enter()
            items = tuple([item(reader) for _ in range(count)])
            reader.depth -= 1
            return bytes(cast("tuple[int, ...]", items)) if as_bytes else items

        return read

    def _record(self, wire: t.Record, wanted: t.Record) -> Read:
        """Make the reader of a record.

        Fields come in the order of the message and are put where `wanted` has them. Additional
        fields are skipped. Missing fields are null if their types permit it; otherwise the records
        do not fit.
        """
        missing = {field.id: position for position, field in enumerate(wanted.fields)}
        steps: list[tuple[int, Read]] = []
        for field in wire.fields:
            position = missing.pop(field.id, -1)
            # Position -1 marks a field that is read and dropped.
            expected = field.type if position < 0 else wanted.fields[position].type
            steps.append((position, self._lazy(field.type, expected)))
        blank: list[object] = [None] * len(wanted.fields)
        for position in missing.values():
            if not t.may_be_null(wanted.fields[position].type):
                return _mismatch
            blank[position] = _nothing_of(wanted.fields[position].type)
        make = wanted.make

        def read(reader: Reader) -> object:
            reader.count()
            reader.enter()
            values = blank[:]
            for position, step in steps:
                value = step(reader)
                if position >= 0:
                    values[position] = value
            reader.depth -= 1
            return tuple(values) if make is None else make(tuple(values))

        return read

    def _variant(self, wire: t.Cases, wanted: t.Cases) -> Read:
        """Make the reader of a variant.

        A case that `wanted` lacks is a mismatch only if a value of it occurs.
        """
        wanted_cases = {case.id: case for case in wanted.fields}
        cases: list[tuple[str, Read]] = []
        for wire_case in wire.fields:
            case = wanted_cases.get(wire_case.id)
            if case is None:
                cases.append(("", _mismatch))
            else:
                cases.append((case.name, self._lazy(wire_case.type, case.type)))

        def read(reader: Reader) -> object:
            number = reader.leb()
            if number >= len(cases):
                raise CandidError(f"the variant has no case {shown(number)}")
            reader.count()
            reader.enter()
            name, inner = cases[number]
            value = inner(reader)
            reader.depth -= 1
            return t.Variant(name, value)

        return read


def _mismatch(_reader: Reader) -> object:
    """Refuse a value of a type that does not fit."""
    raise _Mismatch("a value does not have the expected type")


def _lenient_opt(read: Read, skip: Read) -> Read:
    """Return a reader that gives `_NOTHING` for a value that does not fit, and skips it."""

    def read_or_skip(reader: Reader) -> object:
        # The budget is not restored, so a value that is read twice is counted twice.
        start = reader.at
        depth = reader.depth
        try:
            return read(reader)
        except _Mismatch:
            reader.at = start
            reader.depth = depth
            skip(reader)
            return _NOTHING

    return read_or_skip


def _strict_opt(inner: Read) -> Read:
    """Return a reader that refuses the message if a value under `opt` does not fit (strict)."""

    def read(reader: Reader) -> object:
        try:
            return inner(reader)
        except _Mismatch as error:
            raise CandidError(
                "an optional value has another type than the interface says"
            ) from error

    return read


def _always(value: object, after: Read | None = None) -> Read:
    """Return a reader whose result is always `value`. It calls `after` to skip bytes."""

    def read(reader: Reader) -> object:
        if after is not None:
            after(reader)
        return value

    return read


def _nothing_of(type_: t.Type) -> object:
    """Return the Python value of null for a type, which is `()` for `opt opt t` and the like."""
    resolved = t.resolved(type_)
    return () if isinstance(resolved, t.Opt) and t.may_be_null(resolved.inner) else None


def _blob(reader: Reader) -> bytes:
    return reader.take(reader.leb())


def _bool(reader: Reader) -> bool:
    byte = reader.byte()
    if byte > 1:
        raise CandidError("a bool must be 0 or 1")
    return byte == 1


def _empty(_reader: Reader) -> object:
    raise CandidError("there is no value of type empty")


def _fixed(size: int, *, signed: bool) -> Read:
    return lambda reader: int.from_bytes(reader.take(size), "little", signed=signed)


def _is_open(reader: Reader) -> bool:
    """Read the flag of a reference. An opaque reference, marked by 0, has no further bytes."""
    flag = reader.byte()
    if flag > 1:
        raise CandidError("a reference must begin with 0 or 1")
    return flag == 1


def _skip_service(reader: Reader) -> None:
    """Check and skip a reference to a service, which is a principal or opaque."""
    if _is_open(reader):
        reader.principal_bytes()


def _skip_func(reader: Reader) -> None:
    """Check and skip a reference to a function: a service and the name of a method, or opaque."""
    if _is_open(reader):
        _skip_service(reader)
        reader.text()


def _skip_future(reader: Reader) -> None:
    """Skip a value of a type from a later version of Candid, which states its length in bytes."""
    length = reader.leb()
    references = reader.leb()
    if references:
        raise CandidError("a value of an unknown type holds references")
    reader.take(length)


_REFERENCES: Final[dict[str, Read]] = {
    "service": _skip_service,
    "func": _skip_func,
    "future": _skip_future,
}

_PRIMITIVE_READERS: Final[dict[str, Read]] = {
    "null": lambda _reader: None,
    "reserved": lambda _reader: None,
    "empty": _empty,
    "bool": _bool,
    "nat": Reader.leb,
    "int": Reader.sleb,
    "text": Reader.text,
    "principal": Reader.principal,
    "float32": lambda reader: reader.take(4),
    "float64": lambda reader: reader.take(8),
    **{f"nat{bits}": _fixed(bits // 8, signed=False) for bits in (8, 16, 32, 64)},
    **{f"int{bits}": _fixed(bits // 8, signed=True) for bits in (8, 16, 32, 64)},
}
