"""The normal form of a subscription's filters (EV-12).

Each filter occurs once, is not covered by another one, and has a fixed place in the order. So sets
of filters that differ only in order, repetition or redundancy have the same normal form. `covers`
may miss that a filter covers another one, especially in very large sets, but it never claims it
wrongly.
"""

from collections.abc import Iterable
from itertools import chain as chained
from typing import Final

from interchain_events.events.filters import algebra
from interchain_events.events.filters.algebra import (
    ANY,
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
from interchain_events.events.filters.codec import dump_filters
from interchain_events.events.filters.predicate import same

_STEPS_A_PART: Final = 128
"""The number of comparisons that each part of the filters adds to `Steps`.

It suffices for all pairs of a hundred filters, and limits the work for nested ones.
"""


def normalize(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """Return the normal form. It matches the same rows as `filters`."""
    return _without_covered(_gathered(_flat(map(simplify, filters), OneOf)), wide=True)


def simplify(part: Filter) -> Filter:
    """Return a filter that matches the same rows and is simpler.

    Conjunctions and disjunctions become flat and ordered, and `Not(Not(f))` becomes `f`.
    """
    match part:
        case All(parts):
            return _conjunction([simplify(inner) for inner in parts])
        case OneOf(parts):
            return _disjunction([simplify(inner) for inner in parts])
        case Not(inner):
            match simplify(inner):
                case Not(again):
                    return again
                case Any():
                    return OneOf()
                case OneOf(()):
                    return ANY
                case simplified:
                    return Not(simplified)
        case Field(path, "in", tuple() as values):
            return _among(path, values)
        case _:
            return part


class Steps:
    """The number of comparisons that are left.

    It is limited because clients could send filters that take long to compare.
    """

    __slots__ = ("left",)

    def __init__(self, left: int = 10_000) -> None:
        self.left = left


def covers(wide: Filter, narrow: Filter, steps: Steps | None = None) -> bool:
    """Return whether `wide` certainly matches every row that `narrow` matches.

    Returns `False` if it is not certain, or if `steps` are used up.
    """
    steps = Steps() if steps is None else steps
    steps.left -= 1
    if steps.left < 0:
        return False
    if isinstance(wide, Any) or wide == narrow:
        return True
    match narrow:
        case OneOf(parts):
            return all(covers(wide, inner, steps) for inner in parts)
        case All(parts) if any(covers(wide, inner, steps) for inner in parts):
            return True
        case _:
            pass
    match wide:
        case OneOf(parts):
            return any(covers(inner, narrow, steps) for inner in parts)
        case All(parts):
            return all(covers(inner, narrow, steps) for inner in parts)
        case Kind(kind) if kind.endswith(".*"):
            return isinstance(narrow, Kind) and narrow.kind.startswith(kind[:-1])
        case Not(excluded):
            return _excludes(excluded, narrow, steps)
        case Field():
            return isinstance(narrow, Field) and _field_covers(wide, narrow)
        case _:
            return False


def _excludes(excluded: Filter, narrow: Filter, steps: Steps) -> bool:
    """Return whether `excluded` and `narrow` certainly never match the same row."""
    match (excluded, narrow):
        case (_, Not(inner)):
            return covers(inner, excluded, steps)
        case (Chain(one), Chain(other)):
            return one != other
        case (Kind(one), Kind(other)) if not one.endswith(".*"):
            return not other.endswith(".*") and one != other
        case _:
            return False


def _field_covers(wide: Field, narrow: Field) -> bool:
    """Return whether `wide` certainly matches every row that `narrow` matches.

    The result is true only if both have the same path, and if `narrow` is an equality or a list.
    """
    if narrow.op not in {"=", "in"} or algebra.typed(wide.path) != algebra.typed(narrow.path):
        return False
    values = _values(narrow)
    match wide.op:
        case "=" | "in":
            return {*algebra.typed(values)} <= {*algebra.typed(_values(wide))}
        case "!=":
            # Only the operator `in` has several values.
            (excluded,) = _values(wide)
            return not any(same(value, excluded) for value in values)
        case "prefix":
            start = str(wide.value)
            return all(isinstance(value, str) and value.startswith(start) for value in values)
        case _:
            return False


def _values(part: Field) -> tuple[Scalar, ...]:
    return part.value if isinstance(part.value, tuple) else (part.value,)


def _among(path: tuple[Step, ...], values: Iterable[Scalar]) -> Filter:
    """Return a filter for rows whose field has one of the values, without duplicates, in order."""
    ordered = sorted({*algebra.typed(values)}, key=lambda key: (key[0], str(key[1])))
    unique = [value for _, value in ordered]
    if not unique:
        return OneOf()
    if len(unique) == 1:
        return Field(path, "=", unique[0])
    return Field(path, "in", unique)


def _flat(parts: Iterable[Filter], kind: type[All | OneOf]) -> list[Filter]:
    """Return the parts, with each part of type `kind` replaced by its own parts."""
    flat: list[Filter] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else (part,)
    return flat


def _conjunction(parts: list[Filter]) -> Filter:
    """Return a filter for rows that all parts match."""
    relevant: list[Filter] = [part for part in _flat(parts, All) if not isinstance(part, Any)]
    needed = _without_covered(relevant, wide=False)
    if OneOf() in needed:
        # This part does not match any row.
        return OneOf()
    if len(needed) == 1:
        return needed[0]
    return All(*needed) if needed else ANY


def _disjunction(parts: list[Filter]) -> Filter:
    """Return a filter for rows that some part matches."""
    needed = _without_covered(_gathered(_flat(parts, OneOf)), wide=True)
    return needed[0] if len(needed) == 1 else OneOf(*needed)


def _gathered(parts: Iterable[Filter]) -> list[Filter]:
    """Return alternatives, with the equalities of each path replaced by one list of values.

    A list longer than `MAX_LIST` is divided.
    """
    others: list[Filter] = []
    by_path: dict[tuple[tuple[str, Step], ...], list[Field]] = {}
    for part in parts:
        if isinstance(part, Field) and part.op in {"=", "in"}:
            by_path.setdefault(algebra.typed(part.path), []).append(part)
        else:
            others.append(part)
    for fields in by_path.values():
        values = list(chained.from_iterable(map(_values, fields)))
        others += (
            _among(fields[0].path, values[start : start + algebra.MAX_LIST])
            for start in range(0, len(values), algebra.MAX_LIST)
        )
    return others


def _without_covered(parts: list[Filter], *, wide: bool) -> tuple[Filter, ...]:
    """Return the parts in a fixed order, each once, without the redundant ones.

    If one part covers another, the covering one remains if `wide` is true, otherwise the covered
    one.
    """
    ordered = sorted(dict.fromkeys(parts), key=lambda part: dump_filters([part]))
    if wide and any(isinstance(part, Any) for part in ordered):
        return (ANY,)
    steps = Steps(_STEPS_A_PART * sum(map(algebra.size, ordered)))

    def is_redundant(index: int, other_index: int) -> bool:
        part = ordered[index]
        other = ordered[other_index]
        covering, covered = (other, part) if wide else (part, other)
        if not covers(covering, covered, steps):
            return False
        # Of two parts that cover each other, the first one remains.
        return not (index < other_index and covers(covered, covering, steps))

    indices = range(len(ordered))
    return tuple(
        ordered[index]
        for index in indices
        if not any(is_redundant(index, other) for other in indices if other != index)
    )
