"""Alerts, the data of system events: conversion from facts and back (IC-38, RP-6).

An alert is a Map. Under each key (see `keys.toml`) it has an array of entries, and an entry is an
array of parts, whose types and order are the shape of the key. Optional parts at the end may be
missing. For other implementations, the reader is more tolerant than the writer: a single entry may
come without the outer array, and a number that is the only part without the inner one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import values as v
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.facts import Due, Fact, Facts, FactValue, MemberFact, MemberFacts
from interchain_events.icrc72.ic.principal import Principal

Part = int | str | Principal | v.Skip | None
"""The Python value of a part."""
Parts = tuple[Part, ...]


class _Kind(NamedTuple):
    """The type of a part."""

    write: Callable[[Part], v.Value]
    """Converts a part to an ICRC16 value."""
    read: Callable[[v.Value], Part]
    """Converts an ICRC16 value to a part. Raises `ConfigError` if it has another type."""
    optional: bool = False
    """Whether the part may be missing at the end of an entry. It is then read as `None`."""


def _required(write: Callable[[Part], v.Value], read: Callable[[v.Value], Part]) -> _Kind:
    """Return a type that refuses a value for which `read` returns `None`."""

    def required(value: v.Value) -> Part:
        found = read(value)
        if found is None:
            raise ConfigError("a part of an alert has another type")
        return found

    return _Kind(write, required)


def _optional(kind: _Kind, *, bare: bool = False) -> _Kind:
    """Return the optional form of a type.

    Null is written as `#Option(null)`. Other values are put into an Option, too, unless the type is
    `bare`. The reader accepts both forms.
    """

    def write(part: Part) -> v.Value:
        # The empty principal is `EVERYBODY` in a relay, which alerts write as null.
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

# Shapes: the types of an entry's parts in order.

_ID: Final = (_NUMBER,)
_PAIR: Final = (_NAME, _WHO)
_PLACE: Final = (_NUMBER, _WHO)
_SERVED: Final = (_Kind(_NUMBER.write, lambda value: v.as_nat(value) or 0), _WHO)
"""The id of a subscription and its broadcaster.

Some implementations write the namespace in place of the id, which is read as 0.
"""

_RELAY: Final = (_NAME, _WHO, _optional(_WHO), _FILTER, _SKIP)

_PAIRS: Final = (
    keys.PUBLISHER_ADD,
    keys.PUBLISHER_REMOVE,
    keys.SUBSCRIBER_ADD,
    keys.SUBSCRIBER_REMOVE,
)
_IDS: Final = (
    keys.REPLAY_REMOVE,
    keys.REPLAY_RELAY_REMOVE,
    keys.REPLAY_RELAYER_REMOVE,
    keys.ENTRY_REMOVE,
)
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
"""The shape of the entries under each key."""

_BROKER_KEYS: Final = {
    "pub": (keys.PUBLISHER_ADD, keys.PUBLISHER_REMOVE),
    "sub": (keys.SUBSCRIBER_ADD, keys.SUBSCRIBER_REMOVE),
    "relay": (keys.RELAY_ADD, keys.RELAY_REMOVE),
    "relayer": (keys.RELAYER_ADD, keys.RELAYER_REMOVE),
    "rp": (keys.REPLAY_ADD, keys.REPLAY_REMOVE),
    "rr": (keys.REPLAY_RELAY_ADD, keys.REPLAY_RELAY_REMOVE),
    "rf": (keys.REPLAY_RELAYER_ADD, keys.REPLAY_RELAYER_REMOVE),
}
"""For each kind of a broadcaster's facts, the keys for adding and removing."""
_REMOVES: Final = {
    "sb": keys.EXIT_REMOVE,
    "bc": keys.ENTRY_REMOVE,
    "rp": keys.PUBLISHER_REPLAY_REMOVE,
}
"""For each kind of a member's facts, the key for removing."""
_KIND_OF: Final = {add: kind for kind, (add, _) in _BROKER_KEYS.items()} | {
    remove: kind for kind, (_, remove) in _BROKER_KEYS.items()
}
"""The kind of a broadcaster's fact by either of its keys."""
_NAMED_BY: Final = {"pub": 2, "sub": 2, "relay": 3, "relayer": 2, "rp": 1, "rr": 1, "rf": 1}
"""How many parts of an entry belong to the key of the fact; the others are its value."""

_NESTED: Final = frozenset([keys.SUBSCRIBER_REPLAY_REMOVE, keys.REPLAY_REMOVE])
"""The keys under which ICRC-77 writes each id in an array of its own."""

_Entries = dict[str, list[v.Value]]
"""Entries by key, in the order in which they will be written."""


def _written(key: str, parts: Iterable[Part]) -> v.Value:
    """Return the entry of a key with these parts."""
    made = [kind.write(part) for kind, part in zip(_SHAPES[key], parts, strict=True)]
    return made[0] if _SHAPES[key] is _ID and key not in _NESTED else v.array(made)


def _add(made: _Entries, key: str, *parts: Part) -> None:
    made.setdefault(key, []).append(_written(key, parts))


def _alert(made: _Entries) -> v.Value:
    return v.map_((key, v.array(entries)) for key, entries in made.items())


def broker_alert(adds: Facts, removes: Iterable[Fact]) -> v.Value:
    """Return the data of a system event to a broadcaster."""
    made: _Entries = {}
    for fact in removes:
        _put_fact(made, _BROKER_KEYS[fact[0]][1], fact, ())
    for fact, value in adds.items():
        _put_fact(made, _BROKER_KEYS[fact[0]][0], fact, value)
    return _alert(made)


def _put_fact(made: _Entries, key: str, fact: Fact, value: FactValue | tuple[()]) -> None:
    """Add the entry of a fact.

    The parts after the fact's key are its value, or null in a removal. The value of a `sub`, `pub`
    or `relayer` fact has no place in the shape and is not written.
    """
    room = len(_SHAPES[key]) - len(fact[1:])
    rest = cast("Parts", value) if value and room else (None,) * room
    _add(made, key, *fact[1:], *rest)


def read_broker_alert(data: v.Value) -> tuple[list[tuple[Fact, FactValue]], list[Fact]]:
    """Return the additions, with their values, and the removals of an alert to a broadcaster.

    Entries under other keys are ignored. Raises `ConfigError` if an entry does not have its shape.
    """
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
    """Yield the canonical key and the parts of each entry of an alert.

    Keys without a shape are skipped. Raises `ConfigError` if an entry does not have its shape.
    """
    for name, value in data.value if data.tag == "Map" else ():
        key = keys.canonical(name)
        shape = _SHAPES.get(key)
        if shape is None:
            continue
        for item in _items(value, alone=len(shape) > 1):
            inner = v.as_items(item) or ()
            if item.tag == "Map" and key == keys.EXIT_ADD:
                yield from ((key, parts) for parts in _activated(item.value))
            # Several ids may be in one array instead of in one each.
            elif shape is _ID and inner and all(each.tag == "Nat" for each in inner):
                yield from ((key, _parts(key, shape, each)) for each in inner)
            else:
                yield key, _parts(key, shape, item)


def _items(value: v.Value, *, alone: bool) -> tuple[v.Value, ...]:
    """Return the entries under a key.

    A value that is not an array is a single entry. An array that begins with a number or a text is
    a single entry, too, except if all its items are numbers and an entry has only one part (`alone`
    is false): then each number is an entry.
    """
    items = v.as_items(value)
    if items is None:
        return (value,)
    numbers = all(each.tag == "Nat" for each in items)
    flat = items and items[0].tag in {"Nat", "Text"} and (alone or not numbers)
    return (value,) if flat else items


def _parts(key: str, shape: tuple[_Kind, ...], item: v.Value) -> Parts:
    """Return the parts of one entry.

    Where the shape is only an id, further parts are ignored: some implementations repeat the
    namespace and the subscriber, which follow from the id. Raises `ConfigError` if the entry does
    not have its shape.
    """
    given = v.as_items(item)
    if given is None:
        given = (item,)
    elif shape is _ID:
        given = given[:1]
    missing = shape[len(given) :]
    if len(given) > len(shape) or not all(each.optional for each in missing):
        raise ConfigError(f"an entry of {key} has {len(shape)} parts, not {len(given)}")
    return (
        *(kind.read(each) for kind, each in zip(shape, given, strict=False)),
        *(None for _ in missing),
    )


def _activated(entry: tuple[tuple[str, v.Value], ...]) -> Iterator[Parts]:
    """Yield the entries of the alias `icrc72:subscriber:activated`.

    It has a Map{subscriptionId, broadcasters}, which is one entry for each broadcaster.
    """
    number = _NUMBER.read(v.first(entry, "subscriptionId") or v.option(None))
    for each in v.as_items(v.first(entry, "broadcasters")) or ():
        yield number, _WHO.read(each)


def member_alert(
    role: str,
    adds: MemberFacts,
    removes: Iterable[MemberFact],
    errors: Iterable[tuple[int, int, str]],
) -> v.Value:
    """Return the data of a system event to a member, whose `role` is publisher or subscriber.

    An error is the id of a publication or subscription, a code of `keys.CODES` and a namespace.
    """
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
    """Return the data of a system event that has one entry."""
    return v.map_({key: v.array([_written(key, parts)])})


def error_entry(number: int, code: int, namespace: str = "", missed: int | None = None) -> v.Value:
    """Return one entry of an error alert.

    `code` is one of `keys.CODES`, or 0, which means unauthorized and is not written. `missed` is
    the first event that the subscriber does not get.
    """
    parts: dict[str, v.Value] = {
        "error": v.text(keys.CODES.get(code, "unauthorized")),
        "id": v.nat(number),
    }
    if code:
        parts["code"] = v.nat(code)
    if namespace:
        parts["namespace"] = v.text(namespace)
    if missed is not None:
        parts["eventId"] = v.nat(missed)
    return v.map_(parts)


class Exit(NamedTuple):
    """An exit of a subscription, in an alert to a subscriber."""

    subscription: int
    broadcaster: Principal


class DueReplay(NamedTuple):
    """A replay that a publisher has to make."""

    id: int
    namespace: str
    start: int
    """The first id."""
    end: int | None
    """The id after the last one; `None` for all events that exist."""
    entry: Principal


class Announced(NamedTuple):
    """A replay that begins for a subscriber."""

    id: int
    exit: Principal
    """The broadcaster that delivers it."""


class Trouble(NamedTuple):
    """An error of a publication or subscription."""

    id: int
    """The id of the publication or subscription, 0 if it is missing."""
    code: int
    """One of `keys.CODES`, or 0 for unauthorized."""
    namespace: str
    """Empty if it is missing."""
    missed: int | None
    """The first event that a suspended subscriber does not get."""


class MemberAlert:
    """The content of a system event to a publisher or subscriber."""

    def __init__(self, data: v.Value) -> None:
        """Read an alert. Raises `ConfigError` if an entry does not have its shape."""
        # Any: `entries` has checked the types of the parts against the shapes.
        found: defaultdict[str, list[Any]] = defaultdict(list)
        for key, parts in entries(data):
            found[key].append(parts)
        self.entries: dict[int, list[Principal]] = {}
        """For each publication, its entries in the order of the partitions."""
        for number, who in found[keys.ENTRY_ADD]:
            self.entries.setdefault(number, []).append(who)
        self.lost: list[int] = [number for (number,) in found[keys.ENTRY_REMOVE]]
        """Publications that have no entries any more."""
        self.exits = [Exit(*parts) for parts in found[keys.EXIT_ADD]]
        """Subscriptions and the exits that serve them now."""
        self.left = [Exit(*parts) for parts in found[keys.EXIT_REMOVE]]
        """Subscriptions and the exits that do not serve them any more."""
        self.replays = [DueReplay(*parts) for parts in found[keys.PUBLISHER_REPLAY_ADD]]
        """Replays that a publisher has to make."""
        self.replays_lost: list[int] = [number for (number,) in found[keys.PUBLISHER_REPLAY_REMOVE]]
        """Replays that a publisher has to stop."""
        self.announced = [Announced(*parts) for parts in found[keys.SUBSCRIBER_REPLAY_ADD]]
        """Replays that begin for a subscriber."""
        self.finished: list[int] = [number for (number,) in found[keys.SUBSCRIBER_REPLAY_REMOVE]]
        """Replays that have ended for a subscriber."""
        self.errors = list(_errors(data))

    def of_subscriber(self) -> "MemberAlert | None":
        """Return an alert that has only a subscriber's replays, or `None` if it has none."""
        if not self.announced and not self.finished:
            return None
        found = MemberAlert(v.map_(()))
        found.announced = self.announced
        found.finished = self.finished
        return found


def _errors(data: v.Value) -> Iterator[Trouble]:
    """Yield the errors of an alert. Missing parts are 0, 0, an empty text and `None`."""
    for name, value in data.value if data.tag == "Map" else ():
        if keys.canonical(name) in {keys.PUBLISHER_ERROR, keys.SUBSCRIBER_ERROR}:
            for item in v.as_items(value) or (value,):
                if item.tag != "Map":
                    raise ConfigError(f"an entry of {name} is a Map")
                # Reversed, because the first of repeated keys counts.
                said = dict(reversed(item.value))
                number, code, missed = (
                    v.as_nat(said.get(key)) for key in ("id", "code", "eventId")
                )
                namespace = v.as_text(said.get("namespace")) or ""
                yield Trouble(number or 0, code or 0, namespace, missed)
