"""Which of very many filters match one row, without asking each (EV-13).

Each filter is filed under conditions of which any row it matches fulfils at least one: the first equality of a field,
else its kind, its pallet, its chain; what has none of these is asked for every row. Whatever is found there is asked
with its predicate, so the result is that of a scan.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

from pubsub_emulator.events.filters.algebra import All, Chain, Field, Filter, Kind, OneOf, Scalar, Step, typed
from pubsub_emulator.events.filters.predicate import Predicate, any_of, walk
from pubsub_emulator.events.rows import Row
from pubsub_emulator.events.values import Value

K = TypeVar("K", bound=Hashable)

Route: TypeAlias = tuple[object, ...]

_REST: Final[Route] = ("rest",)
_RANKS: Final = {"value": 0, "kind": 1, "pallet": 2, "chain": 3, "rest": 4}


class FilterIndex(Generic[K]):
    """Filters of many subscriptions by key."""

    def __init__(self) -> None:
        self._routes: dict[K, tuple[Route, ...]] = {}
        self._filed: dict[Route, dict[K, Predicate]] = {}
        self._paths: dict[str, dict[tuple[Route, ...], int]] = {}
        self._steps: dict[tuple[Route, ...], tuple[Step, ...]] = {}

    def __len__(self) -> int:
        return len(self._routes)

    def add(self, key: K, filters: Iterable[Filter]) -> None:
        """File the filters of a subscription; they replace those it had."""
        self.remove(key)
        listed = tuple(filters)
        predicate = any_of(listed)
        routes = tuple(dict.fromkeys(_routes(OneOf(*listed))))
        self._routes[key] = routes
        for route in routes:
            self._filed.setdefault(route, {})[key] = predicate
            if route[0] == "value":
                self._count(route[1], 1)  # type: ignore[arg-type]  # the path of a value's route

    def remove(self, key: K) -> None:
        """Forget a subscription; nothing happens when it is not there."""
        for route in self._routes.pop(key, ()):
            filed = self._filed[route]
            del filed[key]
            if not filed:
                del self._filed[route]
            if route[0] == "value":
                self._count(route[1], -1)  # type: ignore[arg-type]  # as in `add`

    def match(self, row: Row, fields: Mapping[str, Value] | None = None) -> list[K]:
        """The keys of all subscriptions that the row matches, in no particular order; `fields` if already decoded."""
        values = row.fields if fields is None else fields
        found: dict[K, bool] = {}
        for route in self._fulfilled(row, values):
            for key, predicate in self._filed.get(route, {}).items():
                if key not in found:
                    found[key] = predicate(row, values)
        return [key for key, matched in found.items() if matched]

    def _fulfilled(self, row: Row, fields: Mapping[str, Value]) -> Iterable[Route]:
        yield ("kind", row.kind)
        yield ("pallet", row.kind.partition(".")[0])
        yield ("chain", row.chain)
        yield _REST
        for first in fields.keys() & self._paths.keys() if len(self._paths) > len(fields) else self._paths:
            for path in self._paths[first]:
                value = walk(fields, self._steps[path])
                if value is None or isinstance(value, (bool, int, str)):
                    yield _value_route(path, value)

    def _count(self, path: tuple[Route, ...], by: int) -> None:
        first = str(path[0][1])
        paths = self._paths.setdefault(first, {})
        paths[path] = paths.get(path, 0) + by
        self._steps[path] = tuple(step for _, step in path)  # type: ignore[misc]  # made by `typed`
        if not paths[path]:
            del paths[path], self._steps[path]
            if not paths:
                del self._paths[first]


def _value_route(path: tuple[Route, ...], value: Scalar) -> Route:
    return ("value", path, type(value).__name__, value)


def _routes(part: Filter) -> tuple[Route, ...]:
    """Conditions of which every row that the filter matches fulfils one."""
    match part:
        case Kind(kind):
            return (("pallet", kind[:-2]),) if kind.endswith(".*") else (("kind", kind),)
        case Chain(chain):
            return (("chain", chain),)
        case Field(path, "=", (bool() | int() | str() | None) as value):
            return (_value_route(typed(path), value),)
        case Field(path, "in", tuple() as values):
            return tuple(_value_route(typed(path), value) for value in values)
        case OneOf(parts):
            return tuple(route for each in parts for route in _routes(each))
        case All(parts):
            return min((_routes(each) for each in parts), key=_rank, default=(_REST,))
        case _:
            return (_REST,)


def _rank(routes: tuple[Route, ...]) -> int:
    return max((_RANKS[str(route[0])] for route in routes), default=-1)
