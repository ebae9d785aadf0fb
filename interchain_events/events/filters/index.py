"""An index that finds the filters that match a row without evaluating all of them (EV-13).

Each filter is filed under conditions ("routes") of which every matching row fulfils at least one.
If the filter requires a field to have a certain value, this is the condition, otherwise its kind,
its pallet or its chain. A filter that requires none of these is evaluated for every row.

For a row, only the filters under the conditions that the row fulfils are evaluated. The other
filters cannot match it.
"""

from collections.abc import Hashable, Iterable, Mapping
from itertools import chain as chained
from typing import Final, Generic, TypeAlias, TypeVar

from interchain_events.events.filters.algebra import (
    All,
    Chain,
    Field,
    Filter,
    Kind,
    OneOf,
    Scalar,
    Step,
    typed,
)
from interchain_events.events.filters.predicate import Predicate, any_of, walk
from interchain_events.events.rows import Row
from interchain_events.events.values import Value

K = TypeVar("K", bound=Hashable)

Route: TypeAlias = tuple[object, ...]
"""A condition: its rank and its value."""

_REST: Final[Route] = ("rest",)
"""The route of filters that are evaluated for every row."""
_RANKS: Final = {"value": 0, "kind": 1, "pallet": 2, "chain": 3, "rest": 4}
"""The ranks of routes. Routes of lower ranks are preferred, because fewer rows fulfil them."""


class FilterIndex(Generic[K]):
    """The filters of many subscriptions, by the subscriptions' keys."""

    def __init__(self) -> None:
        self._routes: dict[K, tuple[Route, ...]] = {}
        """The routes under which each subscription is filed."""
        self._filed: dict[Route, dict[K, Predicate]] = {}
        """The subscriptions under each route, with their predicates."""
        self._paths: dict[str, dict[tuple[Route, ...], int]] = {}
        """The paths that occur in routes and the number of these routes, by the path's first
        name."""
        self._steps: dict[tuple[Route, ...], tuple[Step, ...]] = {}
        """The steps of each path."""

    def __len__(self) -> int:
        return len(self._routes)

    def add(self, key: K, filters: Iterable[Filter]) -> None:
        """File the filters of a subscription, and remove those that it had before."""
        self.remove(key)
        alternatives = tuple(filters)
        predicate = any_of(alternatives)
        routes = tuple(dict.fromkeys(_routes(OneOf(*alternatives))))
        self._routes[key] = routes
        for route in routes:
            self._filed.setdefault(route, {})[key] = predicate
            if route[0] == "value":
                self._count(route[1], 1)  # type: ignore[arg-type]  # the path of a value's route

    def remove(self, key: K) -> None:
        """Remove a subscription, if it is there."""
        for route in self._routes.pop(key, ()):
            filed = self._filed[route]
            del filed[key]
            if not filed:
                del self._filed[route]
            if route[0] == "value":
                self._count(route[1], -1)  # type: ignore[arg-type]  # as in `add`

    def match(self, row: Row, fields: Mapping[str, Value] | None = None) -> list[K]:
        """Return the keys of all subscriptions that match a row, in any order.

        `fields` are the row's decoded fields, if the caller has them.
        """
        values = row.fields if fields is None else fields
        results: dict[K, bool] = {}
        for route in self._fulfilled(row, values):
            for key, predicate in self._filed.get(route, {}).items():
                if key not in results:
                    results[key] = predicate(row, values)
        return [key for key, is_match in results.items() if is_match]

    def _fulfilled(self, row: Row, fields: Mapping[str, Value]) -> Iterable[Route]:
        """Yield the routes that a row fulfils."""
        yield ("kind", row.kind)
        yield ("pallet", row.kind.partition(".")[0])
        yield ("chain", row.chain)
        yield _REST
        # A path exists only if the row has its first name. The intersection is worth its cost only
        # if there are more paths than fields.
        names: Iterable[str] = self._paths
        if len(self._paths) > len(fields):
            names = fields.keys() & self._paths.keys()
        for first in names:
            for path in self._paths[first]:
                value = walk(fields, self._steps[path])
                if value is None or isinstance(value, (bool, int, str)):
                    yield _value_route(path, value)

    def _count(self, path: tuple[Route, ...], by: int) -> None:
        """Add to the number of a path's routes. Forget the path if there are none any more."""
        first = str(path[0][1])
        paths = self._paths.setdefault(first, {})
        paths[path] = paths.get(path, 0) + by
        self._steps[path] = tuple(step for _, step in path)  # type: ignore[misc]  # made by `typed`
        if not paths[path]:
            del paths[path], self._steps[path]
            if not paths:
                del self._paths[first]


def _value_route(path: tuple[Route, ...], value: Scalar) -> Route:
    """Return the route of a field's value.

    The route contains the name of the value's type, because `1 == True` in Python.
    """
    return ("value", path, type(value).__name__, value)


def _routes(part: Filter) -> tuple[Route, ...]:
    """Return routes for a filter: every row that it matches fulfils at least one of them."""
    match part:
        case Kind(kind) if kind.endswith(".*"):
            return (("pallet", kind[:-2]),)
        case Kind(kind):
            return (("kind", kind),)
        case Chain(chain):
            return (("chain", chain),)
        case Field(path, "=", (bool() | int() | str() | None) as value):
            return (_value_route(typed(path), value),)
        case Field(path, "in", tuple() as values):
            return tuple(_value_route(typed(path), value) for value in values)
        case OneOf(parts):
            return tuple(chained.from_iterable(map(_routes, parts)))
        case All(parts):
            return min((_routes(inner) for inner in parts), key=_rank, default=(_REST,))
        case _:
            return (_REST,)


def _rank(routes: tuple[Route, ...]) -> int:
    """Return the greatest rank of a filter's routes.

    Of the parts of an `All`, the one with the least result is used.
    """
    return max((_RANKS[str(route[0])] for route in routes), default=-1)
