"""The lowest layer of reading Candid: LEB128, text, principals and the type table.

Messages come from strangers, so their cost is bounded: a message of n bytes has at most
100,000 + 16·n values, and values nest at most 256 deep (IC-11b). Without these bounds a few bytes
could ask for a huge `vec null`, whose items take no bytes.
"""

from collections.abc import Callable
from typing import Final

from interchain_events.icrc72.ic.candid import types as t
from interchain_events.icrc72.ic.errors import CandidError, PrincipalError, shown
from interchain_events.icrc72.ic.principal import Principal

DEPTH: Final = 256
"""How deep values may be nested."""
SPARE: Final = 100_000
"""How many values any message may have, however short it is."""
PER_BYTE: Final = 16
"""How many more values it may have for each of its bytes."""

_BY_CODE: Final = {code - 0x80: t.PRIMS[name] for name, code in t.PRIMITIVES.items()}
"""Primitive types by the negative index that a type table uses for them."""


class Reader:
    """A message with the current position, the nesting depth and the remaining budget of values.

    All methods advance the position and raise `CandidError` if the bytes end too early or are
    malformed. After an error, the position shows where reading stopped.
    """

    __slots__ = ("at", "budget", "data", "depth")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.budget = SPARE + PER_BYTE * len(data)
        self.depth = 0

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        at = self.at
        end = at + count
        if end > len(self.data):
            raise CandidError(
                f"the length {shown(count)} is due, {len(self.data) - at} bytes are left"
            )
        self.at = end
        return self.data[at:end]

    def byte(self) -> int:
        """Return the next byte."""
        at = self.at
        if at >= len(self.data):
            raise CandidError("the message ends too early")
        self.at = at + 1
        return self.data[at]

    def leb(self) -> int:
        """Read a natural number in unsigned LEB128. Redundant trailing zero groups are accepted."""
        data = self.data
        at = self.at
        size = len(data)
        shift = 0
        number = 0
        start = at
        while at < size:
            byte = data[at]
            at += 1
            # Adding group by group takes quadratic time, which a stranger could exploit with a
            # number of many thousand bytes.
            if shift > 448:
                return self._long_leb(start)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.at = at
                return number
            shift += 7
        raise CandidError("the message ends in a number")

    def sleb(self) -> int:
        """Read an integer in signed LEB128. Redundant sign extension is accepted."""
        start = self.at
        number = self.leb()
        # Bit 6 of the last byte is the sign. Each byte has 7 bits of the number.
        is_negative = self.data[self.at - 1] & 0x40
        return number - (1 << 7 * (self.at - start)) if is_negative else number

    def _long_leb(self, start: int) -> int:
        """Read a number that begins at `start`, however long, in less than quadratic time."""
        data = self.data
        end = start
        while end < len(data) and data[end] >= 0x80:
            end += 1
        if end >= len(data):
            raise CandidError("the message ends in a number")
        self.at = end + 1
        return _joined([byte & 0x7F for byte in data[start : end + 1]])

    def index(self) -> int:
        """Read a type index, which is signed LEB128 of at most 64 bits.

        Indices from 0 refer to the type table; negative ones are opcodes.
        """
        index = self.sleb()
        if not -(1 << 63) <= index < 1 << 63:
            raise CandidError("a type index has more than 64 bits")
        return index

    def text(self) -> str:
        """Read text, which is its length in bytes and its UTF-8 bytes."""
        raw = self.take(self.leb())
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise CandidError("text is not UTF-8") from error

    def principal(self) -> Principal:
        """Read a principal. Opaque principals, which only a system could resolve, are refused."""
        flag = self.byte()
        if flag > 1:
            raise CandidError("a principal must begin with 0 or 1")
        if not flag:
            raise CandidError("a principal is opaque")
        return self.principal_bytes()

    def principal_bytes(self) -> Principal:
        """Read the bytes of a principal, which follow the flag of a reference."""
        try:
            return Principal(self.take(self.leb()))
        except PrincipalError as error:
            raise CandidError(str(error)) from error

    def enter(self) -> None:
        """Enter a nested value. Raises `CandidError` beyond depth 256.

        The caller decrements `depth` when it has read the value.
        """
        self.depth += 1
        if self.depth > DEPTH:
            raise CandidError(f"values are nested deeper than {DEPTH}")

    def count(self, values: int = 1) -> None:
        """Take values from the budget.

        Raises `CandidError` if the message has more values than its length allows. Callers count
        before they read, so that a claimed length alone costs no memory.
        """
        self.budget -= values
        if self.budget < 0:
            raise CandidError("the message has more values than its length allows")


def _joined(groups: list[int]) -> int:
    """Return the number made of groups of 7 bits, lowest first.

    Joining halves recursively does most of the work on short numbers, so it is not quadratic.
    """
    if len(groups) <= 64:
        number = 0
        for position, group in enumerate(groups):
            number |= group << 7 * position
        return number
    half = len(groups) // 2
    return _joined(groups[:half]) | _joined(groups[half:]) << 7 * half


def read_header(reader: Reader) -> tuple[t.Type, ...]:
    """Read the magic `DIDL`, the type table and the list of argument types.

    Returns the argument types and leaves the reader at the first value. Every length is compared
    with the length of the message before it is used. Raises `CandidError`.
    """
    if reader.take(4) != b"DIDL":
        raise CandidError("the message must begin with `DIDL`")
    count = reader.leb()
    if count > len(reader.data):
        raise CandidError(f"the type table is longer than the message: {shown(count)}")
    table: dict[str, t.Type] = {}
    referred: list[int] = []
    methods: list[int] = []
    for position in range(count):
        table[str(position)] = _entry(reader, table, referred, methods)
    if referred and max(referred) >= count:
        raise CandidError(f"the type table has no type {max(referred)}")
    for index in methods:
        method = table.get(str(index))
        if not isinstance(method, t.Reference) or method.kind != "func":
            raise CandidError(f"the method of a service has type {index}, which is not a function")
    arguments = reader.leb()
    if arguments > len(reader.data):
        raise CandidError(
            f"the message of {len(reader.data)} bytes has too many values: {shown(arguments)}"
        )
    types: list[t.Type] = []
    for _ in range(arguments):
        index = reader.index()
        if index >= count:
            raise CandidError(f"the type table has no type {index}")
        types.append(_type_at(index, table))
    return tuple(types)


def _type_at(index: int, table: dict[str, t.Type]) -> t.Type:
    """Return the type with an index. Negative indices are those of primitive types."""
    if index >= 0:
        return table.get(str(index)) or t.Named(str(index), table)
    primitive = _BY_CODE.get(index)
    if primitive is None:
        raise CandidError(f"no primitive type has the code {index}")
    return primitive


def _entry(
    reader: Reader, table: dict[str, t.Type], referred: list[int], methods: list[int]
) -> t.Type:
    """Read one entry of the type table.

    Entries may refer to later ones, so references become `Named` nodes. Their indices are added to
    `referred`, and those of the methods of services also to `methods`. The caller checks the
    indices when it has read the whole table.
    """

    def inner_type() -> t.Type:
        index = reader.index()
        referred.append(index)
        return t.Named(str(index), table) if index >= 0 else _type_at(index, table)

    before = len(referred)
    code = reader.index()
    if code == -18:
        return t.Opt(inner_type())
    if code == -19:
        return t.Vec(inner_type())
    if code in {-20, -21}:
        fields = _fields(reader, inner_type)
        return t.Record(fields) if code == -20 else t.Cases(fields)
    if code == -22:
        # The argument types and the result types of a function are only checked.
        for _ in range(2):
            for _ in range(_bounded(reader)):
                inner_type()
        for _ in range(_bounded(reader)):
            if reader.byte() not in {1, 2, 3}:
                raise CandidError("a function has an unknown annotation")
        return t.Reference("func")
    if code == -23:
        _methods(reader, inner_type)
        methods += referred[before:]
        return t.Reference("service")
    if code < -24:
        # Candid reserves these opcodes for future types and gives their length, so that today's
        # readers can skip them.
        reader.take(reader.leb())
        return t.Reference("future")
    raise CandidError(f"no composite type has the code {code}")


def _bounded(reader: Reader) -> int:
    """Read the length of a list whose items take at least one byte each."""
    count = reader.leb()
    if count > len(reader.data) - reader.at:
        raise CandidError(f"a list in the type table is longer than the message: {shown(count)}")
    return count


def _fields(reader: Reader, inner_type: Callable[[], t.Type]) -> tuple[t.Field, ...]:
    """Read the fields of a record or variant, whose ids must ascend and have at most 32 bits.

    `inner_type` reads the type of a field.
    """
    fields: list[t.Field] = []
    last = -1
    for _ in range(_bounded(reader)):
        identity = reader.leb()
        if not last < identity < 1 << 32:
            raise CandidError("the fields of a type are not in ascending order of 32-bit ids")
        last = identity
        fields.append(t.Field(identity, str(identity), inner_type()))
    return tuple(fields)


def _methods(reader: Reader, inner_type: Callable[[], t.Type]) -> None:
    """Check and skip the methods of a service, whose names must ascend."""
    last: str | None = None
    for _ in range(_bounded(reader)):
        name = reader.text()
        if last is not None and name <= last:
            raise CandidError("the methods of a service are not in ascending order")
        last = name
        inner_type()
