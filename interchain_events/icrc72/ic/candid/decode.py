"""Strict reading of Candid: a message has the expected types or is refused (IC-11b).

Values are coerced as in Candid 0.1.8. A message whose types cannot be read as the expected ones is
refused as a whole. Under `opt`, each value counts: one that does not fit becomes null. Additional
fields and arguments are skipped.

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
"""How many type tables a decoder caches readers for. Strangers may send any number of them."""

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
            if reads is None:  # not `or`: a known header without arguments has an empty list
                reads = self._prepare(reader)
            found = [read(reader) for read in reads]
        except CandidError as error:
            raise CandidError(f"byte {reader.at}: {error}") from error
        except RecursionError as error:
            raise CandidError(f"byte {reader.at}: values are nested too deep") from error
        if reader.at != len(data):
            raise CandidError(
                f"byte {reader.at}: the message ends here, {len(data) - reader.at} bytes follow"
            )
        # After the expected values come the `None`s of skipped arguments.
        return tuple(found[: len(self._types)])

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
        for at, wanted in enumerate(self._types):
            if at >= len(wire):
                if not t.may_be_null(wanted):
                    raise CandidError(f"argument {at} is missing")
                reads.append(_always(_nothing_of(wanted)))
            elif not t.is_readable(wire[at], wanted):
                raise CandidError(f"argument {at} does not have the expected type")
            else:
                reads.append(plans.reader(wire[at], wanted))
        reads += [plans.skipper(each) for each in wire[len(self._types) :]]
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
        known = self._readers.get((id(wire), id(wanted)))
        if known is None:
            # The keys are object ids. Python may reuse an id as soon as its object is gone.
            self._kept += [wire, wanted]
            known = self._readers[id(wire), id(wanted)] = self._make(wire, wanted)
        return known

    def _make(self, wire: t.Type, wanted: t.Type) -> Read:
        """Make the reader for a pair of resolved types.

        Types that do not fit get a reader that raises `_Mismatch`, because the value may be under
        an `opt`, which then becomes null, or in a case that never occurs.
        """
        if isinstance(wire, t.Prim) and (wire is wanted or wire.name == "empty"):
            return _PRIMITIVE_READERS[wire.name]
        if isinstance(wanted, t.Prim):
            if wanted.name == "reserved":
                return _always(None, after=self.skipper(wire))
            same = isinstance(wire, t.Prim) and (wire.name, wanted.name) == _NAT_AS_INT
            return Reader.leb if same else _mismatch
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
        types and blobs cannot, and get their readers directly for speed.
        """
        made: list[Read] = []

        def read(reader: Reader) -> object:
            if not made:
                made.append(self.reader(wire, wanted))
            return made[0](reader)

        simple = t.resolved(wire)
        return (
            self.reader(wire, wanted) if isinstance(simple, t.Prim) or t.is_blob(simple) else read
        )

    def _opt(self, wire: t.Type, wanted: t.Opt) -> Read:
        """Make the reader that reads any type as an optional type.

        A value of a type that is not `opt` is read as if it were inside one, unless the inner type
        has null among its values: then it is skipped and the result is null.
        """
        wrapped = t.may_be_null(wanted.inner)
        nothing = _nothing_of(wanted)
        if isinstance(wire, t.Prim) and wire.name in {"null", "reserved"}:
            return _always(nothing)
        inside = wire.inner if isinstance(wire, t.Opt) else wire
        if not isinstance(wire, t.Opt) and wrapped:
            return _always(nothing, after=self._lazy(wire, wire))
        within = self._lazy(inside, wanted.inner)
        inner = _as_it_is(within) if self._strict else _tried(within, self._lazy(inside, inside))
        if not isinstance(wire, t.Opt):
            return lambda reader: None if (value := inner(reader)) is _NOTHING else value

        def read(reader: Reader) -> object:
            there = reader.byte()
            if there > 1:
                raise CandidError("an optional value must begin with 0 or 1")
            reader.count()
            if not there:
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

        `as_bytes` says that the result is bytes. Both types cannot be `vec nat8`, which has a
        reader of its own, so this is for a `vec empty` that is read as `vec nat8`.
        """
        item = self._lazy(wire, wanted)

        def read(reader: Reader) -> object:
            count = reader.leb()
            reader.count(count + 1)
            reader.enter()
            found = tuple([item(reader) for _ in range(count)])
            reader.depth -= 1
            return bytes(cast("tuple[int, ...]", found)) if as_bytes else found

        return read

    def _record(self, wire: t.Record, wanted: t.Record) -> Read:
        """Make the reader of a record.

        Fields come in the order of the message and are put where `wanted` has them. Additional
        fields are skipped. Missing fields are null if their types permit it; otherwise the records
        do not fit.
        """
        places = {each.id: at for at, each in enumerate(wanted.fields)}
        steps: list[tuple[int, Read]] = []
        for each in wire.fields:
            at = places.pop(each.id, None)
            field = each.type if at is None else wanted.fields[at].type
            # Position -1 marks a field that is read and dropped.
            steps.append((-1 if at is None else at, self._lazy(each.type, field)))
        blank: list[object] = [None] * len(wanted.fields)
        for at in places.values():
            if not t.may_be_null(wanted.fields[at].type):
                return _mismatch
            blank[at] = _nothing_of(wanted.fields[at].type)
        make = wanted.make

        def read(reader: Reader) -> object:
            reader.count()
            reader.enter()
            values = blank[:]
            for at, step in steps:
                value = step(reader)
                if at >= 0:
                    values[at] = value
            reader.depth -= 1
            return tuple(values) if make is None else make(tuple(values))

        return read

    def _variant(self, wire: t.Cases, wanted: t.Cases) -> Read:
        """Make the reader of a variant.

        A case that `wanted` lacks is a mismatch only if a value of it occurs.
        """
        takes = {each.id: each for each in wanted.fields}
        cases: list[tuple[str, Read]] = []
        for each in wire.fields:
            case = takes.get(each.id)
            cases.append(
                ("", _mismatch) if case is None else (case.name, self._lazy(each.type, case.type))
            )

        def read(reader: Reader) -> object:
            at = reader.leb()
            if at >= len(cases):
                raise CandidError(f"the variant has no case {shown(at)}")
            reader.count()
            reader.enter()
            name, inner = cases[at]
            value = inner(reader)
            reader.depth -= 1
            return t.Variant(name, value)

        return read


def _mismatch(_reader: Reader) -> object:
    """Refuse a value of a type that does not fit."""
    raise _Mismatch("a value does not have the expected type")


def _tried(read: Read, skip: Read) -> Read:
    """Return a reader that gives `_NOTHING` for a value that does not fit, and skips it."""

    def read_or_skip(reader: Reader) -> object:
        # The budget is not restored: values that are read twice cost twice.
        at, depth = reader.at, reader.depth
        try:
            return read(reader)
        except _Mismatch:
            reader.at, reader.depth = at, depth
            skip(reader)
            return _NOTHING

    return read_or_skip


def _as_it_is(inner: Read) -> Read:
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
    found = t.resolved(type_)
    return () if isinstance(found, t.Opt) and t.may_be_null(found.inner) else None


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
