"""A filter as a Python function of a row (EV-11).

`sql` compiles filters to SQL with the same meaning. A property test compares the two.
"""

import operator
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from interchain_events.events.filters.algebra import (
    All,
    Any,
    Chain,
    Field,
    Filter,
    Kind,
    Not,
    OneOf,
    Scalar,
    Step,
)
from interchain_events.events.rows import Row
from interchain_events.events.values import Value

Predicate: TypeAlias = Callable[[Row, Mapping[str, Value]], bool]
"""A function of a row and of its decoded fields."""


class Missing:
    """The type of `MISSING`."""


MISSING: Final = Missing()
"""The result for a path that does not exist. `None` is a value that a field can have."""
_ORDER: Final[dict[str, Callable[[typing.Any, typing.Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_filter(part: Filter) -> Predicate:
    """Return the predicate of a filter."""
    match part:
        case Any():
            return lambda _row, _fields: True
        case All(parts):
            every = [compile_filter(inner) for inner in parts]
            return lambda row, fields: all(predicate(row, fields) for predicate in every)
        case OneOf(parts):
            some = [compile_filter(inner) for inner in parts]
            return lambda row, fields: any(predicate(row, fields) for predicate in some)
        case Not(inner):
            inverted = compile_filter(inner)
            return lambda row, fields: not inverted(row, fields)
        case Chain(chain):
            return lambda row, _fields: row.chain == chain
        case Kind(kind):
            return _kind(kind)
        case Field(path, op, value):
            return _field(path, op, value)


def matches(part: Filter, row: Row) -> bool:
    """Return whether a row matches. For many rows, compile the filter instead."""
    return compile_filter(part)(row, row.fields)


def any_of(filters: Iterable[Filter]) -> Predicate:
    """Return the predicate of a subscription, which matches if one of its filters does."""
    return compile_filter(OneOf(*filters))


def walk(fields: Mapping[str, Value], path: tuple[Step, ...]) -> "Value | Missing":
    """Return the value at a path, `MISSING` if the path does not exist."""
    value: typing.Any = fields
    for step in path:
        if isinstance(step, str):
            if not isinstance(value, Mapping) or step not in value:
                return MISSING
        elif not isinstance(value, list) or step >= len(value):
            return MISSING
        value = value[step]
    return value  # type: ignore[no-any-return]  # a value of a value is a value


def same(field_value: object, value: Scalar) -> bool:
    """Return whether a field's value is equal to a scalar and of the same type.

    The type is compared because `True == 1` in Python.
    """
    return type(field_value) is type(value) and field_value == value


def _kind(kind: str) -> Predicate:
    """Return the predicate for a kind or for a pallet."""
    if kind.endswith(".*"):
        pallet = kind[:-1]
        return lambda row, _fields: row.kind.startswith(pallet)
    return lambda row, _fields: row.kind == kind


def _field(path: tuple[Step, ...], op: str, value: Scalar | tuple[Scalar, ...]) -> Predicate:
    """Return the predicate for the comparison of a field."""
    test = _test(op, value)

    def predicate(_row: Row, fields: Mapping[str, Value]) -> bool:
        value_there = walk(fields, path)
        return value_there is not MISSING and test(value_there)

    return predicate


def _test(op: str, value: Scalar | tuple[Scalar, ...]) -> Callable[[object], bool]:
    """Return the function that compares a field's value with `value`."""
    if isinstance(value, tuple):
        return lambda field_value: any(same(field_value, item) for item in value)
    if op == "=":
        return lambda field_value: same(field_value, value)
    if op == "!=":
        return lambda field_value: not same(field_value, value)
    if op == "prefix" and isinstance(value, str):
        return lambda field_value: isinstance(field_value, str) and field_value.startswith(value)
    ordered = _ORDER[op]
    return lambda field_value: type(field_value) is type(value) and ordered(field_value, value)
