"""Memory of states, which have many small containers that are empty, or equal in many canisters.

An empty dict takes 64 bytes, a dict with one item 184 or 232, and an empty deque 760. A subscriber
has some 40 such containers in its own state and in those of its broadcaster and the orchestrator.

- A dict that is mostly empty is `nothing()`, which all states share, until an item is put into it.
  `put` and `take_out` return the dict in which an item was put, or from which it was taken out. The
  caller assigns it, because it may be another one than before. The fields have the type `Mapping`,
  so that mypy refuses other changes.
- `put_shared` is `put` for a dict that is equal in many states, which then have the same object.
- `put_single` is `put` for a dict that mostly has one item, which then is a `Single`.
- `Line` replaces a deque.

All of them are saved in upgrades like ordinary dicts and deques.
"""

from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")

_FEW: Final = 4
"""The most items of a shared dict. With more it is rarely equal to another, and slow to copy."""


class Line(list[T]):
    """A queue: items are appended at its end and taken from its front.

    An empty deque has room for 64 items. Taking an item from the front of a list moves the others,
    which for 10,000 of them takes a few microseconds.
    """

    __slots__ = ()


class Shared(dict[K, V]):
    """A dict that cannot be changed, because many states refer to it."""

    __slots__ = ()

    def _refuse(self, *_arguments: object, **_named: object) -> NoReturn:
        raise TypeError("this dict is shared: `put` and `take_out` return a changed one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type["Shared[K, V]"], tuple[dict[K, V]]]:
        """Let `copy` make an equal one in one step, as it cannot put items in."""
        return Shared, (dict(self),)


class Single(Mapping[K, V]):
    """A mapping with one item, in 48 bytes. It cannot be changed.

    It is slower to read than a dict, so use it where it is read a few times for each message.
    """

    __slots__ = ("_key", "_value")

    def __init__(self, key: K, value: V) -> None:
        self._key = key
        self._value = value

    def __getitem__(self, key: K) -> V:
        if key == self._key:
            return self._value
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return bool(key == self._key)

    def __iter__(self) -> Iterator[K]:
        yield self._key

    def __len__(self) -> int:
        return 1


_NOTHING: Final[Shared[Any, Any]] = Shared()


def nothing() -> Mapping[Any, Any]:
    """Return the empty dict that all states share."""
    return _NOTHING


def put(known: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    """Put an item into a dict, and return the dict, or a new one if it cannot be changed."""
    if type(known) is Shared or type(known) is Single:
        return {**known, key: value}
    cast("dict[K, V]", known)[key] = value
    return known


def put_single(known: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    """Put an item into a dict that mostly has one, and return the dict or a `Single`."""
    if not known or (len(known) == 1 and key in known):
        return Single(key, value)
    return put(known, key, value)


def put_all(known: Mapping[K, V], more: Mapping[K, V]) -> Mapping[K, V]:
    """Return a dict with the items of both."""
    return {**known, **more} if more else known


def put_shared(known: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    """Return a dict with one more item, usually one to which other states refer already.

    Use it for dicts that are equal in the states of many canisters. Values must be hashable. Keys
    and values must have the same types in all states, since 1 and `True` count as equal.
    """
    if len(known) > _FEW:
        return put(known, key, value)
    return shared({**known, key: value})


def shared(known: Mapping[K, V]) -> Mapping[K, V]:
    """Return a dict with these items, usually one to which other states refer already.

    What `put_shared` says about keys and values is true here, too.
    """
    return cast("Mapping[K, V]", _shared(tuple(known.items())))


@lru_cache(maxsize=1 << 12)
def _shared(items: tuple[tuple[Hashable, Hashable], ...]) -> Shared[Hashable, Hashable]:
    return Shared(items)


def take_out(known: Mapping[K, V], key: K) -> Mapping[K, V]:
    """Remove a key if it is there, and return the dict without it.

    A dict keeps its room after its last key was removed. So this is `nothing()` then.
    """
    if key not in known:
        return known
    if len(known) == 1:
        return nothing()
    own = dict(known) if type(known) is Shared else cast("dict[K, V]", known)
    del own[key]
    return own


def newest(known: Mapping[K, V], most: int) -> Mapping[K, V]:
    """Remove the items that were put in first, so that at most `most` are left."""
    while len(known) > most:
        known = take_out(known, next(iter(known)))
    return known
