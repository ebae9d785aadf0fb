"""The algebra of filters: constructors, checked when a filter is made (EV-10, EV-14).

- `Any()` matches every row.
- `All(f, …)` matches rows that every part matches, and `OneOf(f, …)` rows that some part matches.
  An empty `All` matches every row, and an empty `OneOf` does not match any.
- `Not(f)` matches rows that `f` does not match.
- `Chain(2000)` matches rows of a parachain, `Chain(None)` rows of the leading chain.
- `Kind("Balances.Transfer")` matches rows of one kind, `Kind("Balances.*")` of a whole pallet.
- `Field("amount", ">=", 5)` compares a field. The operators are `=`, `!=`, `<`, `<=`, `>`, `>=`,
  `in` and `prefix`.

A path consists of names and indices: `"dispatch_info.weight"`, or `("xs", 0)` for the first item of
the list `xs`. A comparison does not match if its path does not exist, not even with `!=`. `Not`
inverts this, too.

Values of different types are never equal and have no order, so `Field("x", "!=", "5")` matches the
number 5. `<`, `<=`, `>` and `>=` order integers as numbers and texts by code points.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from interchain_events.events.errors import BadFilter
from interchain_events.events.values import is_unstorable

Scalar: TypeAlias = bool | int | str | None
"""A value with which a field can be compared."""
Step: TypeAlias = str | int
"""A step of a path: the name of a field, or an index in a list."""
S = TypeVar("S", bound=Scalar)

OPS: Final = ("=", "!=", "<", "<=", ">", ">=", "in", "prefix")
"""The operators of `Field`."""
_ORDERED: Final = ("<", "<=", ">", ">=")

MAX_DEPTH: Final = 16
"""The greatest depth of nested filters."""
MAX_NODES: Final = 1_000
"""The greatest number of parts of one subscription's filters, including the values of lists."""
MAX_PATH: Final = 16
"""The greatest number of steps of a path."""
MAX_INDEX: Final = 1_000_000
"""The greatest index in a path."""
MAX_TEXT: Final = 4_096
"""The greatest length of a text, in characters."""
MAX_LIST: Final = 1_000
"""The greatest number of values of `in`."""
MAX_INTEGER_BITS: Final = 512
"""The greatest size of an integer, in bits."""
MAX_FILTERS: Final = 100
"""The greatest number of filters of one subscription."""

_SHOWN: Final = 80
"""The number of characters of a value that an error shows."""
_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,128}")
_KIND: Final = re.compile(r"[A-Za-z0-9_]{1,128}\.(\*|[A-Za-z0-9_]{1,128})")


@dataclass(frozen=True, slots=True)
class Any:
    """A filter that matches every row."""


@dataclass(frozen=True, slots=True, init=False)
class _Parts:
    """A filter that consists of several others."""

    parts: "tuple[Filter, ...]"

    def __init__(self, *parts: "Filter") -> None:
        object.__setattr__(self, "parts", parts)


class All(_Parts):
    """A filter that matches rows that every part matches."""

    __slots__ = ()


class OneOf(_Parts):
    """A filter that matches rows that some part matches."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Not:
    """A filter that matches rows that its part does not match."""

    part: "Filter"


@dataclass(frozen=True, slots=True)
class Chain:
    """A filter that matches rows of one parachain, or of the leading chain for `None`.

    Raises `BadFilter` if `chain` is not the id of a parachain.
    """

    chain: int | None

    def __post_init__(self) -> None:
        chain: object = self.chain
        if chain is not None and (
            isinstance(chain, bool) or not isinstance(chain, int) or not 0 <= chain < 2**32
        ):
            raise BadFilter(f"a chain is a para id or None, not {_shown(chain)}")


@dataclass(frozen=True, slots=True)
class Kind:
    """A filter that matches rows of one kind, `Pallet.Event`, or of a pallet, `Pallet.*`.

    Raises `BadFilter` if the text has neither form.
    """

    kind: str

    def __post_init__(self) -> None:
        if not _KIND.fullmatch(str(self.kind)):
            raise BadFilter(f"a kind is written Pallet.Event or Pallet.*, not {_shown(self.kind)}")


@dataclass(frozen=True, slots=True, init=False)
class Field:
    """A filter that compares the field at `path` with `value`.

    For `in`, `value` is a tuple of scalars. Raises `BadFilter` if the path, the operator or the
    value is not valid.
    """

    path: tuple[Step, ...]
    op: str
    value: Scalar | tuple[Scalar, ...]

    def __init__(
        self, path: str | Iterable[Step], op: str, value: Scalar | Iterable[Scalar]
    ) -> None:
        steps = parse_path(path) if isinstance(path, str) else tuple(path)
        _check_path(steps)
        if op not in OPS:
            raise BadFilter(f"an operator is one of {' '.join(OPS)}, not {_shown(op)}")
        object.__setattr__(self, "path", steps)
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "value", _checked(op, value))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Field)
            and self.path == other.path
            and self._identity() == other._identity()
        )

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        """Return the fields with the types of their values, because `1 == True` in Python."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return typed(self.path), self.op, isinstance(self.value, tuple), typed(values)


Filter: TypeAlias = Any | All | OneOf | Not | Chain | Kind | Field

ANY: Final = Any()
"""The filter that matches every row."""


def typed(values: Iterable[S]) -> tuple[tuple[str, S], ...]:
    """Return values with the names of their types.

    So `True` differs from 1, and the name `"0"` from the index 0.
    """
    return tuple((type(value).__name__, value) for value in values)


def parse_path(text: str) -> tuple[Step, ...]:
    """Return the steps of a path, for example `("a", "b", 0)` for `"a.b.0"`.

    The first step is always a name. Later ones that consist of digits are indices. Raises
    `BadFilter` for an index with very many digits, which Python refuses to convert.
    """
    first, *rest = text.split(".")
    steps: list[Step] = [first]
    for step in rest:
        is_index = step.isdecimal() and step.isascii()
        if is_index and len(step) > _SHOWN:
            raise BadFilter(f"a path's index is 0 to MAX_INDEX, {MAX_INDEX}, not {_shown(step)}")
        steps.append(int(step) if is_index else step)
    return tuple(steps)


def check_limits(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """Return the filters of one subscription as a tuple.

    Raises `BadFilter` with the name of a limit that they exceed (EV-14).
    """
    checked = tuple(filters)
    if len(checked) > MAX_FILTERS:
        raise BadFilter(f"{len(checked)} filters exceed MAX_FILTERS, {MAX_FILTERS}")
    nodes = sum(map(size, checked))
    if nodes > MAX_NODES:
        raise BadFilter(f"{nodes} parts of filters exceed MAX_NODES, {MAX_NODES}")
    return checked


def size(part: Filter, depth: int = 1) -> int:
    """Return the number of a filter's parts, including the values of lists.

    `depth` is that of `part` in the whole filter. Raises `BadFilter` if the filter is nested too
    deeply or is not a filter.
    """
    if depth > MAX_DEPTH:
        raise BadFilter(f"a filter is nested deeper than MAX_DEPTH, {MAX_DEPTH}")
    match part:
        case All(parts) | OneOf(parts):
            return 1 + sum(size(inner, depth + 1) for inner in parts)
        case Not(inner):
            return 1 + size(inner, depth + 1)
        case Field(value=tuple() as values):
            return 1 + len(values)
        case Any() | Chain() | Kind() | Field():
            return 1
        case _:
            raise BadFilter(f"{part!r} is not a filter")


def _check_path(steps: tuple[object, ...]) -> None:
    """Raise `BadFilter` unless the steps are a path."""
    if not 1 <= len(steps) <= MAX_PATH:
        raise BadFilter(f"a path has 1 to MAX_PATH, {MAX_PATH}, steps, not {len(steps)}")
    for step in steps:
        if isinstance(step, str):
            if not _NAME.fullmatch(step):
                raise BadFilter(
                    f"a path's name is made of letters, digits and _, not {_shown(step)}"
                )
        elif isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= MAX_INDEX:
            raise BadFilter(f"a path's index is 0 to MAX_INDEX, {MAX_INDEX}, not {_shown(step)}")


def _checked(op: str, value: Scalar | Iterable[Scalar]) -> Scalar | tuple[Scalar, ...]:
    """Return the value of a field's comparison, a tuple for `in`.

    Raises `BadFilter` if the operator does not accept the value.
    """
    if op == "in":
        if isinstance(value, (str, int)) or value is None:
            raise BadFilter(f"`in` takes a list, not {_shown(value)}")
        values = tuple(_scalar(item) for item in value)
        if len(values) > MAX_LIST:
            raise BadFilter(f"a list of {len(values)} exceeds MAX_LIST, {MAX_LIST}")
        return values
    scalar = _scalar(value)
    if op == "prefix" and not isinstance(scalar, str):
        raise BadFilter(f"`prefix` takes a text, not {_shown(scalar)}")
    if op in _ORDERED and (scalar is None or isinstance(scalar, bool)):
        raise BadFilter(f"`{op}` orders integers and texts, not {_shown(scalar)}")
    return scalar


def _scalar(value: object) -> Scalar:
    """Return a value that must be a scalar. Raises `BadFilter` if it is not or exceeds a limit."""
    match value:
        case None | bool():
            return value
        case int():
            if value.bit_length() > MAX_INTEGER_BITS:
                raise BadFilter(f"an integer has at most MAX_INTEGER_BITS, {MAX_INTEGER_BITS}")
            return value
        case str():
            if len(value) > MAX_TEXT:
                raise BadFilter(f"a text of {len(value)} exceeds MAX_TEXT, {MAX_TEXT}")
            if is_unstorable(value):
                raise BadFilter("a text contains U+0000 or a lone surrogate")
            return value
        case _:
            raise BadFilter(
                f"a value is a text, an integer, true, false or null, not {type(value).__name__}"
            )


def _shown(value: object) -> str:
    """Return the beginning of a value, for an error. A client's text may be very long."""
    return repr(value)[:_SHOWN]
