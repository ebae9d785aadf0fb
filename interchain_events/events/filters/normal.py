"""The normal form of a subscription's filters (EV-12).

Each filter occurs once, none is covered by another one, and they are in one order. So sets of
filters that differ only in order, repetition or redundancy have the same normal form. `covers` may
fail to find that a filter covers another one, especially in very large sets. It never finds it
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
"""The number of comparisons for each part of the filters.

It is enough for all pairs of a hundred filters, and it limits the work for nested ones.
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
            return _conjunction([simplify(each) for each in parts])
        case OneOf(parts):
            return _disjunction([simplify(each) for each in parts])
        case Not(inner):
            match simplify(inner):
                case Not(again):
                    return again
                case Any():
                    return OneOf()
                case OneOf(()):
                    return ANY
                case turned:
                    return Not(turned)
        case Field(path, "in", tuple() as values):
            return _among(path, values)
        case _:
            return part


class Steps:
    """The number of comparisons that are left.

    Clients send the filters, and could send some that take long to compare.
    """

    __slots__ = ("left",)

    def __init__(self, left: int = 10_000) -> None:
        self.left = left


def covers(wide: Filter, narrow: Filter, steps: Steps | None = None) -> bool:
    """Return whether every row that `narrow` matches is certain to be matched by `wide`.

    Returns `False` when `steps` have been used up.
    """
    steps = Steps() if steps is None else steps
    steps.left -= 1
    if steps.left < 0:
        return False
    if isinstance(wide, Any) or wide == narrow:
        return True
    match narrow:
        case OneOf(parts):
            return all(covers(wide, each, steps) for each in parts)
        case All(parts) if any(covers(wide, each, steps) for each in parts):
            return True
        case _:
            pass
    match wide:
        case OneOf(parts):
            return any(covers(each, narrow, steps) for each in parts)
        case All(parts):
            return all(covers(each, narrow, steps) for each in parts)
        case Kind(kind) if kind.endswith(".*"):
            return isinstance(narrow, Kind) and narrow.kind.startswith(kind[:-1])
        case Not(out):
            return _excludes(out, narrow, steps)
        case Field():
            return isinstance(narrow, Field) and _field_covers(wide, narrow)
        case _:
            return False


def _excludes(out: Filter, narrow: Filter, steps: Steps) -> bool:
    """Return whether it is certain that no row is matched by both `out` and `narrow`."""
    match (out, narrow):
        case (_, Not(inner)):
            return covers(inner, out, steps)
        case (Chain(one), Chain(other)):
            return one != other
        case (Kind(one), Kind(other)) if not one.endswith(".*"):
            return not other.endswith(".*") and one != other
        case _:
            return False


def _field_covers(wide: Field, narrow: Field) -> bool:
    """Of two comparisons of one path, the narrow one an equality or a list."""
    if narrow.op not in {"=", "in"} or algebra.typed(wide.path) != algebra.typed(narrow.path):
        return False
    values = _values(narrow)
    match wide.op:
        case "=" | "in":
            return {*algebra.typed(values)} <= {*algebra.typed(_values(wide))}
        case "!=":
            return not any(
                same(each, wide.value) for each in values if not isinstance(wide.value, tuple)
            )
        case "prefix":
            start = str(wide.value)
            return all(isinstance(each, str) and each.startswith(start) for each in values)
        case _:
            return False


def _values(part: Field) -> tuple[Scalar, ...]:
    return part.value if isinstance(part.value, tuple) else (part.value,)


def _among(path: tuple[Step, ...], values: Iterable[Scalar]) -> Filter:
    """Return the equality with one of some values, each once and in one order."""
    listed = [
        value
        for _, value in sorted({*algebra.typed(values)}, key=lambda key: (key[0], str(key[1])))
    ]
    if not listed:
        return OneOf()
    return Field(path, "=", listed[0]) if len(listed) == 1 else Field(path, "in", listed)


def _flat(parts: Iterable[Filter], kind: type[All | OneOf]) -> list[Filter]:
    """Return the parts with those of a kind replaced by their own parts."""
    flat: list[Filter] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else (part,)
    return flat


def _conjunction(parts: list[Filter]) -> Filter:
    """Return a filter for rows that all parts match."""
    kept = _without_covered(
        [each for each in _flat(parts, All) if not isinstance(each, Any)], wide=False
    )
    if OneOf() in kept:
        return OneOf()
    if len(kept) == 1:
        return kept[0]
    return All(*kept) if kept else ANY


def _disjunction(parts: list[Filter]) -> Filter:
    """Return a filter for rows that some part matches."""
    kept = _without_covered(_gathered(_flat(parts, OneOf)), wide=True)
    return kept[0] if len(kept) == 1 else OneOf(*kept)


def _gathered(parts: Iterable[Filter]) -> list[Filter]:
    """Return alternatives, with the equalities of each path gathered into one list of values."""
    others: list[Filter] = []
    by_path: dict[tuple[tuple[str, Step], ...], list[Field]] = {}
    for each in parts:
        if isinstance(each, Field) and each.op in {"=", "in"}:
            by_path.setdefault(algebra.typed(each.path), []).append(each)
        else:
            others.append(each)
    for fields in by_path.values():
        gathered = list(chained.from_iterable(map(_values, fields)))
        starts = range(0, len(gathered), algebra.MAX_LIST)
        others += [_among(fields[0].path, gathered[at : at + algebra.MAX_LIST]) for at in starts]
    return others


def _without_covered(parts: list[Filter], *, wide: bool) -> tuple[Filter, ...]:
    """Return the parts in one order and each once, without the redundant ones.

    Of two parts of which one covers the other, the wide one remains if `wide`, otherwise the narrow
    one.
    """
    ordered = sorted(dict.fromkeys(parts), key=lambda each: dump_filters([each]))
    if wide and any(isinstance(each, Any) for each in ordered):
        return (ANY,)
    steps = Steps(_STEPS_A_PART * sum(map(algebra.size, ordered)))

    # Of two parts that cover each other, the first one remains.
    def is_redundant(at: int, other_at: int) -> bool:
        over, under = (other_at, at) if wide else (at, other_at)
        over_part, under_part = ordered[over], ordered[under]
        return covers(over_part, under_part, steps) and not (
            at < other_at and covers(under_part, over_part, steps)
        )

    places = range(len(ordered))
    kept = (
        at for at in places if not any(is_redundant(at, other) for other in places if other != at)
    )
    return tuple(ordered[at] for at in kept)
