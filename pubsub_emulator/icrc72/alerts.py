"""Alerts: the data of system events, written from facts and read back into them (IC-38, RP-6).

Every entry of an alert has a shape: the parts of its array, in order. Parts at the end may be left out when they are
optional. Entries stand in an array; one entry alone may stand there without an array of its own, and so may a number.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, cast

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.errors import ConfigError
from pubsub_emulator.icrc72.facts import Due, Fact, Facts, FactValue, MemberFact, MemberFacts
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.values import (
    Skip,
    Value,
    array,
    as_items,
    as_nat,
    as_principal,
    as_text,
    blob,
    first,
    map_,
    nat,
    opened,
    option,
    skip_of,
    text,
)

Part = int | str | Principal | Skip | None
Parts = tuple[Part, ...]


class _Kind(NamedTuple):
    """The type of a part: how it is written and read. What is optional reads as `None` where it is left out."""

    write: Callable[[Part], Value]
    read: Callable[[Value], Part]
    optional: bool = False


def _required(write: Callable[[Part], Value], read: Callable[[Value], Part]) -> _Kind:
    def required(value: Value) -> Part:
        found = read(value)
        if found is None:
            raise ConfigError("a part of an alert has another type")
        return found

    return _Kind(write, required)


def _optional(kind: _Kind, *, bare: bool = False) -> _Kind:
    """An optional field; `bare` is written without an Option around it where it is not null."""

    def write(part: Part) -> Value:
        inside = kind.write(part) if part not in {None, Principal()} else None
        return inside if bare and inside is not None else option(inside)

    def read(value: Value) -> Part:
        inside = opened(value)
        return None if inside is None else kind.read(inside)

    return _Kind(write, read, optional=True)


_NUMBER: Final = _required(lambda part: nat(cast("int", part)), as_nat)
_NAME: Final = _required(lambda part: text(cast("str", part)), as_text)
_WHO: Final = _required(lambda part: blob(cast("Principal", part)), as_principal)
_FILTER: Final = _optional(_NAME)
_MOD: Final = _Kind(lambda part: cast("Skip", part).value, skip_of)
_SKIP: Final = _optional(_MOD)
_BARE: Final = (_optional(_NAME, bare=True), _optional(_MOD, bare=True))
"""Filter and skip as ICRC-77 writes them: `#Text` and `#Array`, or `#Option(null)`."""


_ID: Final = (_NUMBER,)
_PAIR: Final = (_NAME, _WHO)
_PLACE: Final = (_NUMBER, _WHO)
_SERVED: Final = (_Kind(_NUMBER.write, lambda value: as_nat(value) or 0), _WHO)
"""Of a subscription the id, or in its place a namespace, and the broadcaster."""

_RELAY: Final = (_NAME, _WHO, _optional(_WHO), _FILTER, _SKIP)

_SHAPES: Final[Mapping[str, tuple[_Kind, ...]]] = {
    keys.PUBLISHER_ADD: _PAIR,
    keys.PUBLISHER_REMOVE: _PAIR,
    keys.SUBSCRIBER_ADD: _PAIR,
    keys.SUBSCRIBER_REMOVE: _PAIR,
    keys.RELAY_ADD: _RELAY,
    keys.RELAY_REMOVE: _RELAY,
    keys.RELAYER_ADD: _PAIR,
    keys.RELAYER_REMOVE: _PAIR,
    keys.REPLAY_ADD: (_NUMBER, _NAME, _WHO, _WHO, *_BARE, _optional(_WHO, bare=True)),
    keys.REPLAY_REMOVE: _ID,
    keys.REPLAY_RELAY_ADD: (_NUMBER, _NAME, _WHO, _WHO, *_BARE),
    keys.REPLAY_RELAY_REMOVE: _ID,
    keys.REPLAY_RELAYER_ADD: (_NUMBER, _NAME, _WHO),
    keys.REPLAY_RELAYER_REMOVE: _ID,
    keys.ENTRY_ADD: _PLACE,
    keys.ENTRY_REMOVE: _ID,
    keys.PUBLISHER_REPLAY_ADD: (_NUMBER, _NAME, _NUMBER, _optional(_NUMBER), _WHO),
    keys.PUBLISHER_REPLAY_REMOVE: _ID,
    keys.EXIT_ADD: _SERVED,
    keys.EXIT_REMOVE: _SERVED,
    keys.SUBSCRIBER_REPLAY_ADD: _PLACE,
    keys.SUBSCRIBER_REPLAY_REMOVE: _ID,
}

_BROKER_KEYS: Final = {
    "pub": (keys.PUBLISHER_ADD, keys.PUBLISHER_REMOVE),
    "sub": (keys.SUBSCRIBER_ADD, keys.SUBSCRIBER_REMOVE),
    "relay": (keys.RELAY_ADD, keys.RELAY_REMOVE),
    "relayer": (keys.RELAYER_ADD, keys.RELAYER_REMOVE),
    "rp": (keys.REPLAY_ADD, keys.REPLAY_REMOVE),
    "rr": (keys.REPLAY_RELAY_ADD, keys.REPLAY_RELAY_REMOVE),
    "rf": (keys.REPLAY_RELAYER_ADD, keys.REPLAY_RELAYER_REMOVE),
}
_NAMED_BY: Final = {"pub": 2, "sub": 2, "relay": 3, "relayer": 2, "rp": 1, "rr": 1, "rf": 1}
"""How many parts of an entry name a fact; the others are its value."""

_KIND_OF: Final = {key: kind for kind, both in _BROKER_KEYS.items() for key in both}


def _written(key: str, parts: Iterable[Part]) -> Value:
    made = [kind.write(part) for kind, part in zip(_SHAPES[key], parts, strict=True)]
    return made[0] if _SHAPES[key] is _ID and key not in _NESTED else array(made)


_NESTED: Final = frozenset([keys.SUBSCRIBER_REPLAY_REMOVE, keys.REPLAY_REMOVE])
"""Keys of ids that stand in arrays of their own."""


class _Entries:
    """The entries of an alert that is being written."""

    def __init__(self) -> None:
        self._by_key: dict[str, list[Value]] = {}

    def add(self, key: str, *parts: Part) -> None:
        self.put(key, _written(key, parts))

    def put(self, key: str, entry: Value) -> None:
        self._by_key.setdefault(key, []).append(entry)

    def alert(self) -> Value:
        return map_((key, array(entries)) for key, entries in self._by_key.items())


def broker_alert(adds: Facts, removes: Iterable[Fact]) -> Value:
    """The data of a system event to a broadcaster."""
    made = _Entries()
    for fact in removes:
        _put_fact(made, _BROKER_KEYS[fact[0]][1], fact, ())
    for fact, value in adds.items():
        _put_fact(made, _BROKER_KEYS[fact[0]][0], fact, value)
    return made.alert()


def _put_fact(made: _Entries, key: str, fact: Fact, value: FactValue | tuple[()]) -> None:
    """A fact is written with its value where its shape has room for it; without one that is nothing."""
    room = len(_SHAPES[key]) - len(fact[1:])
    rest: Parts = (None,) * room
    if value and room:
        rest = cast("Parts", value)
    made.add(key, *fact[1:], *rest)


def read_broker_alert(data: Value) -> tuple[list[tuple[Fact, FactValue]], list[Fact]]:
    """Additions with their values, and removals, of a system event to a broadcaster. Raises `ConfigError`."""
    adds: list[tuple[Fact, FactValue]] = []
    removes: list[Fact] = []
    for key, parts in entries(data):
        kind = _KIND_OF.get(key)
        if kind is None:
            continue
        named = parts[: _NAMED_BY[kind]]
        if kind == "relay" and named[2] is None:
            named = (*named[:2], Principal())
        fact = cast("Fact", (kind, *named))
        if key.endswith(":add"):
            adds.append((fact, cast("FactValue", parts[len(named) :])))
        else:
            removes.append(fact)
    return adds, removes


def entries(data: Value) -> Iterator[tuple[str, Parts]]:
    """Every entry of an alert by its key; keys without a shape are skipped. Raises `ConfigError`."""
    for name, value in data.value if data.tag == "Map" else ():
        key = keys.canonical(name)
        shape = _SHAPES.get(key)
        if shape is None:
            continue
        for item in _items(value, alone=len(shape) > 1):
            inner = as_items(item) or ()
            if item.tag == "Map" and key == keys.EXIT_ADD:
                yield from ((key, parts) for parts in _activated(item.value))
            elif shape is _ID and inner and all(each.tag == "Nat" for each in inner):
                yield from ((key, _parts(key, shape, each)) for each in inner)
            else:
                yield key, _parts(key, shape, item)


def _items(value: Value, *, alone: bool) -> tuple[Value, ...]:
    """The entries under a key: those of an array, or what stands there alone."""
    items = as_items(value)
    if items is None:
        return (value,)
    numbers = all(each.tag == "Nat" for each in items)
    flat = items and items[0].tag in {"Nat", "Text"} and (alone or not numbers)
    return (value,) if flat else items


def _parts(key: str, shape: tuple[_Kind, ...], item: Value) -> Parts:
    """The parts of one entry. What follows an id, such as namespace and subscriber, says no more than the id."""
    given = as_items(item)
    given = (item,) if given is None else given[:1] if shape is _ID else given
    missing = shape[len(given) :]
    if len(given) > len(shape) or not all(each.optional for each in missing):
        raise ConfigError(f"an entry of {key} has {len(shape)} parts, not {len(given)}")
    return (*(kind.read(each) for kind, each in zip(shape, given, strict=False)), *(None for _ in missing))


def _activated(entry: tuple[tuple[str, Value], ...]) -> Iterator[Parts]:
    """The alias of an exit: Map{subscriptionId, broadcasters}."""
    number = _NUMBER.read(first(entry, "subscriptionId") or option(None))
    for each in as_items(first(entry, "broadcasters")) or ():
        yield number, _WHO.read(each)


def member_alert(
    role: str, adds: MemberFacts, removes: Iterable[MemberFact], errors: Iterable[tuple[int, int, str]]
) -> Value:
    """The data of a system event to a publisher or subscriber."""
    made = _Entries()
    for fact in removes:
        if fact[0] == "sb":
            made.add(keys.EXIT_REMOVE, *fact[1:])
        else:
            made.add(keys.ENTRY_REMOVE if fact[0] == "bc" else keys.PUBLISHER_REPLAY_REMOVE, fact[1])
    for fact, value in adds.items():
        if fact[0] == "bc":
            for each in cast("tuple[Principal, ...]", value):
                made.add(keys.ENTRY_ADD, fact[1], each)
        elif fact[0] == "sb":
            made.add(keys.EXIT_ADD, *fact[1:])
        else:
            made.add(keys.PUBLISHER_REPLAY_ADD, fact[1], *cast("Due", value))
    key = keys.PUBLISHER_ERROR if role == "publisher" else keys.SUBSCRIBER_ERROR
    for error in errors:
        made.put(key, error_entry(*error))
    return made.alert()


def one_entry(key: str, *parts: Part) -> Value:
    """The data of a system event with one entry."""
    return map_({key: array([_written(key, parts)])})


def error_entry(number: int, code: int, namespace: str = "", missed: int | None = None) -> Value:
    """One entry of an error alert."""
    parts: dict[str, Value] = {"error": text(keys.CODES.get(code, "unauthorized")), "id": nat(number)}
    if code:
        parts["code"] = nat(code)
    if namespace:
        parts["namespace"] = text(namespace)
    if missed is not None:
        parts["eventId"] = nat(missed)
    return map_(parts)


class MemberAlert:
    """The content of a system event to a publisher or subscriber. Raises `ConfigError`."""

    def __init__(self, data: Value) -> None:
        found: dict[str, list[Parts]] = {}
        for key, parts in entries(data):
            found.setdefault(key, []).append(parts)
        self.entries: dict[int, list[Principal]] = {}
        """Of each publication, its broadcasters by partition."""
        for number, who in cast("list[tuple[int, Principal]]", found.get(keys.ENTRY_ADD, [])):
            self.entries.setdefault(number, []).append(who)
        self.lost = _ids(found, keys.ENTRY_REMOVE)
        self.exits = cast("list[tuple[int, Principal]]", found.get(keys.EXIT_ADD, []))
        self.left = cast("list[tuple[int, Principal]]", found.get(keys.EXIT_REMOVE, []))
        self.replays = cast(
            "list[tuple[int, str, int, int | None, Principal]]", found.get(keys.PUBLISHER_REPLAY_ADD, [])
        )
        self.replays_lost = _ids(found, keys.PUBLISHER_REPLAY_REMOVE)
        self.announced = cast("list[tuple[int, Principal]]", found.get(keys.SUBSCRIBER_REPLAY_ADD, []))
        self.finished = _ids(found, keys.SUBSCRIBER_REPLAY_REMOVE)
        self.errors = list(_errors(data))
        """Id, code, namespace and first missed event."""


def _ids(found: Mapping[str, list[Parts]], key: str) -> list[int]:
    return [cast("int", number) for (number,) in found.get(key, [])]


def _errors(data: Value) -> Iterator[tuple[int, int, str, int | None]]:
    for name, value in data.value if data.tag == "Map" else ():
        if keys.canonical(name) in {keys.PUBLISHER_ERROR, keys.SUBSCRIBER_ERROR}:
            for item in as_items(value) or (value,):
                if item.tag != "Map":
                    raise ConfigError(f"an entry of {name} is a Map")
                number, code, namespace, missed = (
                    first(item.value, key) for key in ("id", "code", "namespace", "eventId")
                )
                yield as_nat(number) or 0, as_nat(code) or 0, as_text(namespace) or "", as_nat(missed)
