"""Alerts: the data of system events, written from facts and read back into them (IC-38, RP-6).

A fact is a tuple of its names and has a value. Unknown facts in an alert are skipped: one
entry that nobody can read must not hide the others.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.errors import ConfigError
from pubsub_emulator.eventplane.icrc72.skip import Skip, skip_of
from pubsub_emulator.eventplane.icrc72.values import (
    array,
    as_items,
    as_nat,
    as_principal,
    as_text,
    blob,
    first,
    map_,
    nat,
    option,
    text,
)

Fact = tuple[Any, ...]
Facts = list[tuple[Fact, Any]]


def _filter(value: str | None) -> Variant:
    return option(None if value is None else text(value))


def _skip(value: Skip | None) -> Variant:
    return option(None if value is None else value.value)


def _pair(fact: Fact, _value: Any) -> Variant:
    return array([text(fact[1]), blob(fact[2])])


def _relay(fact: Fact, value: Any) -> Variant:
    filter_, skip = value or (None, None)
    subscriber = option(blob(fact[3]) if fact[3] else None)
    return array([text(fact[1]), blob(fact[2]), subscriber, _filter(filter_), _skip(skip)])


def _replay(fact: Fact, value: Any) -> Variant:
    namespace, hands, subscriber, filter_, skip, publisher = value
    parts = [
        nat(fact[1]),
        text(namespace),
        blob(hands),
        blob(subscriber),
        _filter(filter_),
        _skip(skip),
        blob(publisher),
    ]
    return array(parts)


def _replay_relay(fact: Fact, value: Any) -> Variant:
    namespace, target, publisher, filter_, skip = value
    return array([nat(fact[1]), text(namespace), blob(target), blob(publisher), _filter(filter_), _skip(skip)])


def _replay_relayer(fact: Fact, value: Any) -> Variant:
    namespace, source = value
    return array([nat(fact[1]), text(namespace), blob(source)])


def _number(fact: Fact, _value: Any) -> Variant:
    return nat(fact[1])


_BROKER_KEYS: Final[Mapping[str, tuple[str, str, Callable[[Fact, Any], Variant], Callable[[Fact, Any], Variant]]]] = {
    "pub": (keys.PUBLISHER_ADD, keys.PUBLISHER_REMOVE, _pair, _pair),
    "sub": (keys.SUBSCRIBER_ADD, keys.SUBSCRIBER_REMOVE, _pair, _pair),
    "relay": (keys.RELAY_ADD, keys.RELAY_REMOVE, _relay, _relay),
    "relayer": (keys.RELAYER_ADD, keys.RELAYER_REMOVE, _pair, _pair),
    "rp": (keys.REPLAY_ADD, keys.REPLAY_REMOVE, _replay, _number),
    "rr": (keys.REPLAY_RELAY_ADD, keys.REPLAY_RELAY_REMOVE, _replay_relay, _number),
    "rf": (keys.REPLAY_RELAYER_ADD, keys.REPLAY_RELAYER_REMOVE, _replay_relayer, _number),
}


def broker_alert(adds: Mapping[Fact, Any], removes: Iterable[Fact]) -> Variant:
    """The data of a system event to a broadcaster."""
    entries: dict[str, list[Variant]] = {}
    for fact in removes:
        _, key, _, write = _BROKER_KEYS[fact[0]]
        entries.setdefault(key, []).append(write(fact, None))
    for fact, value in adds.items():
        key, _, write, _ = _BROKER_KEYS[fact[0]]
        entries.setdefault(key, []).append(write(fact, value))
    return map_((key, array(parts)) for key, parts in entries.items())


def read_broker_alert(data: Variant) -> tuple[Facts, list[Fact]]:
    """Additions with their values, and removals, of a system event to a broadcaster."""
    adds: Facts = []
    removes: list[Fact] = []
    for name, value in data.value if data.tag == "Map" else ():
        read = _BROKER_READERS.get(keys.canonical(name))
        if read is None:
            continue
        for item in as_items(value) or ():
            try:
                fact, inside = read(item)
            except (ConfigError, TypeError, ValueError, IndexError):
                continue  # an entry that is none: the others count
            if name.endswith(":add"):
                adds.append((fact, inside))
            else:
                removes.append(fact)
    return adds, removes


def _some(value: Any) -> Any:
    if value is None:
        raise ConfigError("an entry of an alert has a value of another type")
    return value


def _opened(value: Variant) -> Variant | None:
    if value.tag != "Option":
        return value
    inside: Variant | None = value.value
    return inside


def _read_filter(value: Variant) -> str | None:
    inside = _opened(value)
    return None if inside is None else _some(as_text(inside))


def _read_skip(value: Variant) -> Skip | None:
    inside = _opened(value)
    return None if inside is None else skip_of(inside)


def _read_pair(kind: str) -> Callable[[Variant], tuple[Fact, Any]]:
    def read(item: Variant) -> tuple[Fact, Any]:
        namespace, who = _some(as_items(item))
        return (kind, _some(as_text(namespace)), _some(as_principal(who))), ()

    return read


def _read_relay(item: Variant) -> tuple[Fact, Any]:
    namespace, target, subscriber, filter_, skip = _some(as_items(item))
    who = _opened(subscriber)
    whose = Principal() if who is None else _some(as_principal(who))
    fact = ("relay", _some(as_text(namespace)), _some(as_principal(target)), whose)
    return fact, (_read_filter(filter_), _read_skip(skip))


def _read_replay(item: Variant) -> tuple[Fact, Any]:
    number, namespace, hands, subscriber, filter_, skip, publisher = _some(as_items(item))
    what = (
        _some(as_text(namespace)),
        _some(as_principal(hands)),
        _some(as_principal(subscriber)),
        _read_filter(filter_),
        _read_skip(skip),
        _some(as_principal(publisher)),
    )
    return ("rp", _some(as_nat(number))), what


def _read_replay_relay(item: Variant) -> tuple[Fact, Any]:
    number, namespace, target, publisher, filter_, skip = _some(as_items(item))
    way = (
        _some(as_text(namespace)),
        _some(as_principal(target)),
        _some(as_principal(publisher)),
        _read_filter(filter_),
        _read_skip(skip),
    )
    return ("rr", _some(as_nat(number))), way


def _read_replay_relayer(item: Variant) -> tuple[Fact, Any]:
    number, namespace, source = _some(as_items(item))
    return ("rf", _some(as_nat(number))), (_some(as_text(namespace)), _some(as_principal(source)))


def _read_number(kind: str) -> Callable[[Variant], tuple[Fact, Any]]:
    def read(item: Variant) -> tuple[Fact, Any]:
        number = as_nat(item)
        if number is None:
            (inside,) = _some(as_items(item))
            number = _some(as_nat(inside))
        return (kind, number), ()

    return read


_BROKER_READERS: Final[Mapping[str, Callable[[Variant], tuple[Fact, Any]]]] = {
    keys.PUBLISHER_ADD: _read_pair("pub"),
    keys.PUBLISHER_REMOVE: _read_pair("pub"),
    keys.SUBSCRIBER_ADD: _read_pair("sub"),
    keys.SUBSCRIBER_REMOVE: _read_pair("sub"),
    keys.RELAY_ADD: _read_relay,
    keys.RELAY_REMOVE: _read_relay,
    keys.RELAYER_ADD: _read_pair("relayer"),
    keys.RELAYER_REMOVE: _read_pair("relayer"),
    keys.REPLAY_ADD: _read_replay,
    keys.REPLAY_REMOVE: _read_number("rp"),
    keys.REPLAY_RELAY_ADD: _read_replay_relay,
    keys.REPLAY_RELAY_REMOVE: _read_number("rr"),
    keys.REPLAY_RELAYER_ADD: _read_replay_relayer,
    keys.REPLAY_RELAYER_REMOVE: _read_number("rf"),
}


def member_alert(
    role: str, adds: Mapping[Fact, Any], removes: Iterable[Fact], errors: Iterable[tuple[int, int, str]]
) -> Variant:
    """The data of a system event to a publisher or subscriber."""
    entries: dict[str, list[Variant]] = {}
    for fact in removes:
        if fact[0] == "bc":
            entries.setdefault(keys.ENTRY_REMOVE, []).append(nat(fact[1]))
        elif fact[0] == "sb":
            entries.setdefault(keys.EXIT_REMOVE, []).append(array([nat(fact[1]), blob(fact[2])]))
        else:
            entries.setdefault(keys.PUBLISHER_REPLAY_REMOVE, []).append(nat(fact[1]))
    for fact, value in adds.items():
        if fact[0] == "bc":
            parts = [array([nat(fact[1]), blob(each)]) for each in value]
            entries.setdefault(keys.ENTRY_ADD, []).extend(parts)
        elif fact[0] == "sb":
            entries.setdefault(keys.EXIT_ADD, []).append(array([nat(fact[1]), blob(fact[2])]))
        else:
            namespace, start, end, entry = value
            last = option(None if end is None else nat(end))
            parts = [nat(fact[1]), text(namespace), nat(start), last, blob(entry)]
            entries.setdefault(keys.PUBLISHER_REPLAY_ADD, []).append(array(parts))
    key = keys.PUBLISHER_ERROR if role == "publisher" else keys.SUBSCRIBER_ERROR
    for number, code, namespace in errors:
        entries.setdefault(key, []).append(error_entry(number, code, namespace))
    return map_((key, array(parts)) for key, parts in entries.items())


def error_entry(number: int, code: int, namespace: str = "", missed: int | None = None) -> Variant:
    """One entry of an error alert."""
    parts = {"error": text(keys.CODES.get(code, "unauthorized")), "id": nat(number)}
    if code:
        parts["code"] = nat(code)
    if namespace:
        parts["namespace"] = text(namespace)
    if missed is not None:
        parts["eventId"] = nat(missed)
    return map_(parts)


class MemberAlert:
    """The content of a system event to a publisher or subscriber."""

    def __init__(self, data: Variant) -> None:
        self.entries: dict[int, list[Principal]] = {}
        """Of each publication, its broadcasters by partition."""
        self.lost: list[int] = []
        self.exits: list[tuple[int, Principal]] = []
        self.left: list[tuple[int, Principal]] = []
        self.errors: list[tuple[int, int, str, int | None]] = []
        """Id, code, namespace and first missed event."""
        self.replays: list[tuple[int, str, int, int | None, Principal]] = []
        self.replays_lost: list[int] = []
        self.announced: list[tuple[int, Principal]] = []
        self.finished: list[int] = []
        for name, value in data.value if data.tag == "Map" else ():
            read = _MEMBER_READERS.get(keys.canonical(name))
            if read is None:
                continue
            for item in _entries_of(value):
                try:
                    read(self, item)
                except (ConfigError, TypeError, ValueError, IndexError):
                    continue  # an entry that is none: the others count


def _entries_of(value: Variant) -> tuple[Variant, ...]:
    items = as_items(value)
    if items is None:
        return (value,)
    flat = len(items) == 2 and items[0].tag == "Nat" and items[1].tag in {"Blob", "Principal"}
    return (value,) if flat else items


def _read_entry(alert: MemberAlert, item: Variant) -> None:
    number, who = _some(as_items(item))
    alert.entries.setdefault(_some(as_nat(number)), []).append(_some(as_principal(who)))


def _read_lost(alert: MemberAlert, item: Variant) -> None:
    alert.lost.append(_read_number("bc")(item)[0][1])


def _read_exit(alert: MemberAlert, item: Variant) -> None:
    if item.tag == "Map":  # the alias: Map{subscriptionId, broadcasters}
        number = _some(as_nat(first(item.value, "subscriptionId")))
        for each in _some(as_items(first(item.value, "broadcasters"))):
            alert.exits.append((number, _some(as_principal(each))))
        return
    number, who = _some(as_items(item))
    alert.exits.append((as_nat(number) or 0, _some(as_principal(who))))


def _read_left(alert: MemberAlert, item: Variant) -> None:
    number, who = _some(as_items(item))
    alert.left.append((as_nat(number) or 0, _some(as_principal(who))))


def _read_error(alert: MemberAlert, item: Variant) -> None:
    pairs = _some(item.value if item.tag == "Map" else None)
    number, code = as_nat(first(pairs, "id")) or 0, as_nat(first(pairs, "code")) or 0
    missed = as_nat(first(pairs, "eventId"))
    alert.errors.append((number, code, as_text(first(pairs, "namespace")) or "", missed))


def _read_replay_due(alert: MemberAlert, item: Variant) -> None:
    number, namespace, start, end, entry = _some(as_items(item))
    last = _opened(end)
    until = None if last is None else _some(as_nat(last))
    what = (_some(as_nat(number)), _some(as_text(namespace)), _some(as_nat(start)), until, _some(as_principal(entry)))
    alert.replays.append(what)


def _read_replay_lost(alert: MemberAlert, item: Variant) -> None:
    alert.replays_lost.append(_read_number("rp")(item)[0][1])


def _read_announced(alert: MemberAlert, item: Variant) -> None:
    number, who = _some(as_items(item))
    alert.announced.append((_some(as_nat(number)), _some(as_principal(who))))


def _read_finished(alert: MemberAlert, item: Variant) -> None:
    alert.finished.append(_read_number("rp")(item)[0][1])


_MEMBER_READERS: Final[Mapping[str, Callable[[MemberAlert, Variant], None]]] = {
    keys.ENTRY_ADD: _read_entry,
    keys.ENTRY_REMOVE: _read_lost,
    keys.PUBLISHER_ERROR: _read_error,
    keys.PUBLISHER_REPLAY_ADD: _read_replay_due,
    keys.PUBLISHER_REPLAY_REMOVE: _read_replay_lost,
    keys.EXIT_ADD: _read_exit,
    keys.EXIT_REMOVE: _read_left,
    keys.SUBSCRIBER_ERROR: _read_error,
    keys.SUBSCRIBER_REPLAY_ADD: _read_announced,
    keys.SUBSCRIBER_REPLAY_REMOVE: _read_finished,
}

__all__ = ["Fact", "Facts", "MemberAlert", "broker_alert", "error_entry", "member_alert", "read_broker_alert"]
