"""Alerts: the data of system events, written from facts and read back into them (IC-38, RP-6).

Every entry of an alert has a shape: the parts of its array, in order. Parts at the end may be left out when they are
optional. Entries stand in an array; one entry alone may stand there without an array of its own, and so may a number.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72 import values as v
from pubsub_emulator.icrc72.errors import ConfigError
from pubsub_emulator.icrc72.facts import Due, Fact, Facts, FactValue, MemberFact, MemberFacts
from pubsub_emulator.icrc72.ic.principal import Principal

Part = int | str | Principal | v.Skip | None
Parts = tuple[Part, ...]


class _Kind(NamedTuple):
    """The type of a part: how it is written and read. What is optional reads as `None` where it is left out."""

    write: Callable[[Part], v.Value]
    read: Callable[[v.Value], Part]
    optional: bool = False


def _required(write: Callable[[Part], v.Value], read: Callable[[v.Value], Part]) -> _Kind:
    def required(value: v.Value) -> Part:
        found = read(value)
        if found is None:
            raise ConfigError("a part of an alert has another type")
        return found

    return _Kind(write, required)


def _optional(kind: _Kind, *, bare: bool = False) -> _Kind:
    """An optional field; `bare` is written without an Option around it where it is not null."""

    def write(part: Part) -> v.Value:
        inside = kind.write(part) if part not in {None, Principal()} else None
        return inside if bare and inside is not None else v.option(inside)

    def read(value: v.Value) -> Part:
        inside = v.opened(value)
        return None if inside is None else kind.read(inside)

    return _Kind(write, read, optional=True)


_NUMBER: Final = _required(lambda part: v.nat(cast("int", part)), v.as_nat)
_NAME: Final = _required(lambda part: v.text(cast("str", part)), v.as_text)
_WHO: Final = _required(lambda part: v.blob(cast("Principal", part)), v.as_principal)
_FILTER: Final = _optional(_NAME)
_MOD: Final = _Kind(lambda part: cast("v.Skip", part).value, v.skip_of)
_SKIP: Final = _optional(_MOD)
_BARE: Final = (_optional(_NAME, bare=True), _optional(_MOD, bare=True))
"""Filter and skip as ICRC-77 writes them: `#Text` and `#Array`, or `#Option(null)`."""


_ID: Final = (_NUMBER,)
_PAIR: Final = (_NAME, _WHO)
_PLACE: Final = (_NUMBER, _WHO)
_SERVED: Final = (_Kind(_NUMBER.write, lambda value: v.as_nat(value) or 0), _WHO)
"""Of a subscription the id, or in its place a namespace, and the broadcaster."""

_RELAY: Final = (_NAME, _WHO, _optional(_WHO), _FILTER, _SKIP)

_PAIRS: Final = (keys.PUBLISHER_ADD, keys.PUBLISHER_REMOVE, keys.SUBSCRIBER_ADD, keys.SUBSCRIBER_REMOVE)
_IDS: Final = (keys.REPLAY_REMOVE, keys.REPLAY_RELAY_REMOVE, keys.REPLAY_RELAYER_REMOVE, keys.ENTRY_REMOVE)
_SHAPES: Final[Mapping[str, tuple[_Kind, ...]]] = {
    **dict.fromkeys((*_PAIRS, keys.RELAYER_ADD, keys.RELAYER_REMOVE), _PAIR),
    **dict.fromkeys((keys.RELAY_ADD, keys.RELAY_REMOVE), _RELAY),
    **dict.fromkeys((*_IDS, keys.PUBLISHER_REPLAY_REMOVE, keys.SUBSCRIBER_REPLAY_REMOVE), _ID),
    **dict.fromkeys((keys.ENTRY_ADD, keys.SUBSCRIBER_REPLAY_ADD), _PLACE),
    **dict.fromkeys((keys.EXIT_ADD, keys.EXIT_REMOVE), _SERVED),
    keys.REPLAY_ADD: (_NUMBER, _NAME, _WHO, _WHO, *_BARE, _optional(_WHO, bare=True)),
    keys.REPLAY_RELAY_ADD: (_NUMBER, _NAME, _WHO, _WHO, *_BARE),
    keys.REPLAY_RELAYER_ADD: (_NUMBER, _NAME, _WHO),
    keys.PUBLISHER_REPLAY_ADD: (_NUMBER, _NAME, _NUMBER, _optional(_NUMBER), _WHO),
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
_REMOVES: Final = {"sb": keys.EXIT_REMOVE, "bc": keys.ENTRY_REMOVE, "rp": keys.PUBLISHER_REPLAY_REMOVE}
_KIND_OF: Final = {key: kind for kind, both in _BROKER_KEYS.items() for key in both}
_NAMED_BY: Final = {"pub": 2, "sub": 2, "relay": 3, "relayer": 2, "rp": 1, "rr": 1, "rf": 1}
"""How many parts of an entry name a fact; the others are its value."""

_NESTED: Final = frozenset([keys.SUBSCRIBER_REPLAY_REMOVE, keys.REPLAY_REMOVE])  # ids in arrays of their own

_Entries = dict[str, list[v.Value]]


def _written(key: str, parts: Iterable[Part]) -> v.Value:
    made = [kind.write(part) for kind, part in zip(_SHAPES[key], parts, strict=True)]
    return made[0] if _SHAPES[key] is _ID and key not in _NESTED else v.array(made)


def _add(made: _Entries, key: str, *parts: Part) -> None:
    made.setdefault(key, []).append(_written(key, parts))


def _alert(made: _Entries) -> v.Value:
    return v.map_((key, v.array(entries)) for key, entries in made.items())


def broker_alert(adds: Facts, removes: Iterable[Fact]) -> v.Value:
    """The data of a system event to a broadcaster."""
    made: _Entries = {}
    for fact in removes:
        _put_fact(made, _BROKER_KEYS[fact[0]][1], fact, ())
    for fact, value in adds.items():
        _put_fact(made, _BROKER_KEYS[fact[0]][0], fact, value)
    return _alert(made)


def _put_fact(made: _Entries, key: str, fact: Fact, value: FactValue | tuple[()]) -> None:
    """A fact is written with its value where its shape has room for it; without one that is nothing."""
    room = len(_SHAPES[key]) - len(fact[1:])
    rest = cast("Parts", value) if value and room else (None,) * room
    _add(made, key, *fact[1:], *rest)


def read_broker_alert(data: v.Value) -> tuple[list[tuple[Fact, FactValue]], list[Fact]]:
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


def entries(data: v.Value) -> Iterator[tuple[str, Parts]]:
    """Every entry of an alert by its key; keys without a shape are skipped. Raises `ConfigError`."""
    for name, value in data.value if data.tag == "Map" else ():
        key = keys.canonical(name)
        shape = _SHAPES.get(key)
        if shape is None:
            continue
        for item in _items(value, alone=len(shape) > 1):
            inner = v.as_items(item) or ()
            if item.tag == "Map" and key == keys.EXIT_ADD:
                yield from ((key, parts) for parts in _activated(item.value))
            elif shape is _ID and inner and all(each.tag == "Nat" for each in inner):
                yield from ((key, _parts(key, shape, each)) for each in inner)
            else:
                yield key, _parts(key, shape, item)


def _items(value: v.Value, *, alone: bool) -> tuple[v.Value, ...]:
    items = v.as_items(value)
    if items is None:
        return (value,)
    numbers = all(each.tag == "Nat" for each in items)
    flat = items and items[0].tag in {"Nat", "Text"} and (alone or not numbers)
    return (value,) if flat else items


def _parts(key: str, shape: tuple[_Kind, ...], item: v.Value) -> Parts:
    """The parts of one entry. What follows an id, such as namespace and subscriber, says no more than the id."""
    given = v.as_items(item)
    given = (item,) if given is None else given[:1] if shape is _ID else given
    missing = shape[len(given) :]
    if len(given) > len(shape) or not all(each.optional for each in missing):
        raise ConfigError(f"an entry of {key} has {len(shape)} parts, not {len(given)}")
    return (*(kind.read(each) for kind, each in zip(shape, given, strict=False)), *(None for _ in missing))


def _activated(entry: tuple[tuple[str, v.Value], ...]) -> Iterator[Parts]:
    """The alias of an exit: Map{subscriptionId, broadcasters}."""
    number = _NUMBER.read(v.first(entry, "subscriptionId") or v.option(None))
    for each in v.as_items(v.first(entry, "broadcasters")) or ():
        yield number, _WHO.read(each)


def member_alert(
    role: str, adds: MemberFacts, removes: Iterable[MemberFact], errors: Iterable[tuple[int, int, str]]
) -> v.Value:
    """The data of a system event to a publisher or subscriber."""
    made: _Entries = {}
    for fact in removes:
        _add(made, _REMOVES[fact[0]], *fact[1:])
    for fact, value in adds.items():
        if fact[0] == "bc":
            for each in cast("tuple[Principal, ...]", value):
                _add(made, keys.ENTRY_ADD, fact[1], each)
        elif fact[0] == "sb":
            _add(made, keys.EXIT_ADD, *fact[1:])
        else:
            _add(made, keys.PUBLISHER_REPLAY_ADD, fact[1], *cast("Due", value))
    key = keys.PUBLISHER_ERROR if role == "publisher" else keys.SUBSCRIBER_ERROR
    for error in errors:
        made.setdefault(key, []).append(error_entry(*error))
    return _alert(made)


def one_entry(key: str, *parts: Part) -> v.Value:
    """The data of a system event with one entry."""
    return v.map_({key: v.array([_written(key, parts)])})


def error_entry(number: int, code: int, namespace: str = "", missed: int | None = None) -> v.Value:
    """One entry of an error alert."""
    parts: dict[str, v.Value] = {"error": v.text(keys.CODES.get(code, "unauthorized")), "id": v.nat(number)}
    if code:
        parts["code"] = v.nat(code)
    if namespace:
        parts["namespace"] = v.text(namespace)
    if missed is not None:
        parts["eventId"] = v.nat(missed)
    return v.map_(parts)


class MemberAlert:
    """The content of a system event to a publisher or subscriber. Raises `ConfigError`."""

    def __init__(self, data: v.Value) -> None:
        found: defaultdict[str, list[Any]] = defaultdict(list)  # the types of their parts are those of the shapes
        for key, parts in entries(data):
            found[key].append(parts)
        self.entries: dict[int, list[Principal]] = {}  # of each publication, its broadcasters by partition
        for number, who in found[keys.ENTRY_ADD]:
            self.entries.setdefault(number, []).append(who)
        self.lost: list[int] = [number for (number,) in found[keys.ENTRY_REMOVE]]
        self.exits: list[tuple[int, Principal]] = found[keys.EXIT_ADD]
        self.left: list[tuple[int, Principal]] = found[keys.EXIT_REMOVE]
        self.replays: list[tuple[int, str, int, int | None, Principal]] = found[keys.PUBLISHER_REPLAY_ADD]
        self.replays_lost: list[int] = [number for (number,) in found[keys.PUBLISHER_REPLAY_REMOVE]]
        self.announced: list[tuple[int, Principal]] = found[keys.SUBSCRIBER_REPLAY_ADD]
        self.finished: list[int] = [number for (number,) in found[keys.SUBSCRIBER_REPLAY_REMOVE]]
        self.errors = list(_errors(data))  # id, code, namespace and first missed event


def _errors(data: v.Value) -> Iterator[tuple[int, int, str, int | None]]:
    for name, value in data.value if data.tag == "Map" else ():
        if keys.canonical(name) in {keys.PUBLISHER_ERROR, keys.SUBSCRIBER_ERROR}:
            for item in v.as_items(value) or (value,):
                if item.tag != "Map":
                    raise ConfigError(f"an entry of {name} is a Map")
                said = dict(reversed(item.value))
                number, code, missed = (v.as_nat(said.get(key)) for key in ("id", "code", "eventId"))
                yield number or 0, code or 0, v.as_text(said.get("namespace")) or "", missed
