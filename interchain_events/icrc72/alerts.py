"""Alerts, the content of system events: facts, their data and back (IC-38, RP-6).

`BrokerAlert` and `MemberAlert` are the only form of an alert. The orchestrator makes them and keeps
them until they are confirmed, and each receiver reads the same ones from the data.

The data are a Map. Under each key (see `keys.toml`) it has an array of entries, and an entry is an
array of parts, whose types and order are the shape of the key. Optional parts at the end may be
missing. For other implementations, the reader is more tolerant than the writer: a single entry may
come without the outer array, and a number that is the only part without the inner one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast, get_args

from interchain_events.icrc72 import facts as f
from interchain_events.icrc72 import keys
from interchain_events.icrc72 import values as v
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import record

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
        part = read(value)
        if part is None:
            raise ConfigError("a part of an alert has another type")
        return part

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


class _Form(NamedTuple):
    """How the facts of a class are written."""

    add: str
    """The key of additions."""
    remove: str
    """The key of removals."""
    value: Callable[..., Any] | None = None
    """The class of the value, whose parts follow those of the fact; `None` if it is not written."""


_FORMS: Final[Mapping[type, _Form]] = {
    f.PublisherFact: _Form(keys.PUBLISHER_ADD, keys.PUBLISHER_REMOVE),
    f.SubscriberFact: _Form(keys.SUBSCRIBER_ADD, keys.SUBSCRIBER_REMOVE),
    f.RelayFact: _Form(keys.RELAY_ADD, keys.RELAY_REMOVE, f.Width),
    f.RelayerFact: _Form(keys.RELAYER_ADD, keys.RELAYER_REMOVE),
    f.ReplayFact: _Form(keys.REPLAY_ADD, keys.REPLAY_REMOVE, f.Delivering),
    f.ReplayRelayFact: _Form(keys.REPLAY_RELAY_ADD, keys.REPLAY_RELAY_REMOVE, f.Forwarding),
    f.ReplayRelayerFact: _Form(keys.REPLAY_RELAYER_ADD, keys.REPLAY_RELAYER_REMOVE, f.Handing),
    f.EntriesFact: _Form(keys.ENTRY_ADD, keys.ENTRY_REMOVE, Principal),
    f.ExitFact: _Form(keys.EXIT_ADD, keys.EXIT_REMOVE),
    f.DueFact: _Form(keys.PUBLISHER_REPLAY_ADD, keys.PUBLISHER_REPLAY_REMOVE, f.Due),
    f.BegunFact: _Form(keys.SUBSCRIBER_REPLAY_ADD, keys.SUBSCRIBER_REPLAY_REMOVE, Principal),
}
"""The form of each class of facts. An `EntriesFact` is written once for each of its principals."""
_CLASSES: Final[Mapping[str, Callable[..., f.Fact | f.MemberFact]]] = {
    **{form.add: kind for kind, form in _FORMS.items()},
    **{form.remove: kind for kind, form in _FORMS.items()},
}
"""The class of facts that has a key."""
_ADDS: Final = frozenset(form.add for form in _FORMS.values())
_OF_BROKERS: Final = get_args(f.Fact)
_OF_MEMBERS: Final = get_args(f.MemberFact)

_NESTED: Final = frozenset([keys.SUBSCRIBER_REPLAY_REMOVE, keys.REPLAY_REMOVE])
"""The keys under which ICRC-77 writes each id in an array of its own."""

_Entries = dict[str, list[v.Value]]
"""Entries by key, in the order in which they will be written."""


def _written(key: str, parts: Iterable[Part]) -> v.Value:
    """Return the entry of a key with these parts."""
    shape = _SHAPES[key]
    values = [kind.write(part) for kind, part in zip(shape, parts, strict=True)]
    return values[0] if shape is _ID and key not in _NESTED else v.array(values)


def _alert(entries: _Entries) -> v.Value:
    """Return the data of a system event with these entries."""
    return v.map_((key, v.array(values)) for key, values in entries.items())


def _put(entries: _Entries, key: str, fact: f.Fact | f.MemberFact, value: object = None) -> None:
    """Add the entry of a fact: its parts, then those of its value, or null in a removal.

    The shapes of some keys have no room for a value. It is then not written.
    """
    # The last field of a fact is its kind. It is not written, because the key implies it.
    fact_parts = cast("Parts", fact[:-1])
    room = len(_SHAPES[key]) - len(fact_parts)
    value_parts: Parts = (None,) * room
    if room and value is not None:
        value_parts = (value,) if isinstance(value, Principal) else cast("Parts", value)
    entries.setdefault(key, []).append(_written(key, (*fact_parts, *value_parts)))


@record
class BrokerAlert:
    """The content of a system event to a broadcaster."""

    adds: dict[f.Fact, f.FactValue]
    """Facts that it has to add or change, with their values."""
    removes: tuple[f.Fact, ...]
    """Facts that it has to drop."""

    @property
    def facts(self) -> tuple[f.Fact, ...]:
        """Return all facts of the alert, removals first."""
        return (*self.removes, *self.adds)

    def data(self) -> v.Value:
        """Return the data of the system event."""
        written: _Entries = {}
        for fact in self.removes:
            _put(written, _FORMS[type(fact)].remove, fact)
        for fact, value in self.adds.items():
            _put(written, _FORMS[type(fact)].add, fact, value)
        return _alert(written)

    @classmethod
    def read(cls, data: v.Value) -> "BrokerAlert":
        """Return the content of a system event.

        Entries under other keys are ignored. The value of a subscriber, publisher or relayer is
        `()`, because it is not written. Raises `ConfigError` if an entry does not have its shape.
        """
        adds: dict[f.Fact, f.FactValue] = {}
        removes: list[f.Fact] = []
        for key, parts in entries(data):
            kind = _CLASSES[key]
            if kind not in _OF_BROKERS:
                continue
            fact, rest = _read_fact(kind, parts)
            if key in _ADDS:
                value = _FORMS[cast("type", kind)].value
                adds[cast("f.Fact", fact)] = () if value is None else value(*rest)
            else:
                removes.append(cast("f.Fact", fact))
        return cls(adds, tuple(removes))


def _read_fact(
    kind: Callable[..., f.Fact | f.MemberFact], parts: Parts
) -> tuple[f.Fact | f.MemberFact, Parts]:
    """Return the fact of an entry, and the parts of its value."""
    # Any: `entries` has checked the types of the parts against the shapes.
    count = len(cast("Any", kind)._fields) - 1
    fact_parts = list(parts[:count])
    if kind is f.RelayFact and fact_parts[-1] is None:
        fact_parts[-1] = f.EVERYBODY
    return kind(*fact_parts), parts[count:]


def entries(data: v.Value) -> Iterator[tuple[str, Parts]]:
    """Yield the canonical key and the parts of each entry of an alert.

    Keys without a shape are skipped. Raises `ConfigError` if an entry does not have its shape.
    """
    if data.tag != "Map":
        return
    for name, value in data.value:
        key = keys.canonical(name)
        shape = _SHAPES.get(key)
        if shape is None:
            continue
        for item in _items(value, alone=len(shape) > 1):
            inner = v.as_items(item) or ()
            if item.tag == "Map" and key == keys.EXIT_ADD:
                for parts in _activated(item.value):
                    yield key, parts
            elif shape is _ID and inner and all(number.tag == "Nat" for number in inner):
                # Several ids may be in one array, instead of one array for each.
                for number in inner:
                    yield key, _parts(key, shape, number)
            else:
                yield key, _parts(key, shape, item)


def _items(value: v.Value, *, alone: bool) -> tuple[v.Value, ...]:
    """Return the entries under a key.

    A value that is not an array is a single entry. An array that begins with a number or a text is
    a single entry, too, if entries of the key have several parts (`alone`). If they have only one
    part, such an array is a single entry unless it consists of numbers, each of which is an entry.
    """
    items = v.as_items(value)
    if items is None:
        return (value,)
    all_numbers = all(item.tag == "Nat" for item in items)
    is_entry = items and items[0].tag in {"Nat", "Text"} and (alone or not all_numbers)
    return (value,) if is_entry else items


def _parts(key: str, shape: tuple[_Kind, ...], item: v.Value) -> Parts:
    """Return the parts of one entry.

    If the shape is only an id, further parts are ignored, because some implementations add the
    namespace and the subscriber. Raises `ConfigError` if the entry does not have its shape.
    """
    given = v.as_items(item)
    if given is None:
        given = (item,)
    elif shape is _ID:
        given = given[:1]
    missing = shape[len(given) :]
    if len(given) > len(shape) or not all(kind.optional for kind in missing):
        raise ConfigError(f"an entry of {key} has {len(shape)} parts, not {len(given)}")
    parts = [kind.read(value) for kind, value in zip(shape, given, strict=False)]
    return (*parts, *(None for _ in missing))


def _activated(entry: tuple[tuple[str, v.Value], ...]) -> Iterator[Parts]:
    """Yield the entries of the alias `icrc72:subscriber:activated`.

    It has a Map{subscriptionId, broadcasters}, which is one entry for each broadcaster.
    """
    number = _NUMBER.read(v.first(entry, "subscriptionId") or v.option(None))
    for broadcaster in v.as_items(v.first(entry, "broadcasters")) or ():
        yield number, _WHO.read(broadcaster)


@record
class MemberAlert:
    """The content of a system event to a publisher or subscriber."""

    adds: dict[f.MemberFact, f.MemberValue]
    """Facts that it has to know from now on, with their values."""
    removes: tuple[f.MemberFact, ...]
    """Facts that are no longer true."""
    errors: tuple[f.Trouble, ...] = ()

    @property
    def facts(self) -> tuple[f.MemberFact, ...]:
        """Return all facts of the alert, removals first."""
        return (*self.removes, *self.adds)

    def entries(self) -> dict[int, tuple[Principal, ...]]:
        """Return the entries of each publication, by partition.

        A publication that loses all its entries has an empty tuple. These publications come first.
        """
        entries: dict[int, tuple[Principal, ...]] = {
            fact.publication: () for fact in self.removes if isinstance(fact, f.EntriesFact)
        }
        for fact, value in self.adds.items():
            if isinstance(fact, f.EntriesFact):
                entries.pop(fact.publication, None)
                entries[fact.publication] = cast("tuple[Principal, ...]", value)
        return entries

    def due(self) -> dict[int, f.Due]:
        """Return the replays that a publisher has to make."""
        return {
            fact.replay: cast("f.Due", value)
            for fact, value in self.adds.items()
            if isinstance(fact, f.DueFact)
        }

    def begun(self) -> "MemberAlert | None":
        """Return an alert that has only the subscriber's replays, or `None` if it has none."""
        adds: f.MemberFacts = {
            fact: value for fact, value in self.adds.items() if isinstance(fact, f.BegunFact)
        }
        removes = tuple(fact for fact in self.removes if isinstance(fact, f.BegunFact))
        if not adds and not removes:
            return None
        return MemberAlert(dict(adds), removes)

    def data(self, role: str) -> v.Value:
        """Return the data of the system event. `role` is publisher or subscriber."""
        written: _Entries = {}
        for fact in self.removes:
            _put(written, _FORMS[type(fact)].remove, fact)
        for fact, value in self.adds.items():
            add = _FORMS[type(fact)].add
            if isinstance(fact, f.EntriesFact):
                for entry in cast("tuple[Principal, ...]", value):
                    _put(written, add, fact, entry)
            else:
                _put(written, add, fact, value)
        error_key = keys.PUBLISHER_ERROR if role == "publisher" else keys.SUBSCRIBER_ERROR
        for error in self.errors:
            written.setdefault(error_key, []).append(_written_error(error))
        return _alert(written)

    @classmethod
    def read(cls, data: v.Value) -> "MemberAlert":
        """Return the content of a system event.

        Entries under other keys are ignored. Raises `ConfigError` if an entry does not have its
        shape.
        """
        adds: dict[f.MemberFact, f.MemberValue] = {}
        removes: list[f.MemberFact] = []
        for key, parts in entries(data):
            kind = _CLASSES[key]
            if kind not in _OF_MEMBERS:
                continue
            read, rest = _read_fact(kind, parts)
            fact = cast("f.MemberFact", read)
            if key not in _ADDS:
                removes.append(fact)
                continue
            match fact:
                case f.EntriesFact():
                    before = cast("tuple[Principal, ...]", adds.get(fact, ()))
                    adds[fact] = (*before, cast("Principal", rest[0]))
                case f.ExitFact():
                    adds[fact] = True
                case f.DueFact():
                    adds[fact] = f.Due(*cast("Any", rest))
                case f.BegunFact():
                    adds[fact] = cast("Principal", rest[0])
        return cls(adds, tuple(removes), tuple(_errors(data)))


def _written_error(error: f.Trouble) -> v.Value:
    """Return one entry of an error alert. Code 0, which means unauthorized, is not written."""
    parts: dict[str, v.Value] = {
        "error": v.text(keys.CODES.get(error.code, "unauthorized")),
        "id": v.nat(error.id),
    }
    if error.code:
        parts["code"] = v.nat(error.code)
    if error.namespace:
        parts["namespace"] = v.text(error.namespace)
    if error.missed is not None:
        parts["eventId"] = v.nat(error.missed)
    return v.map_(parts)


def _errors(data: v.Value) -> Iterator[f.Trouble]:
    """Yield the errors of an alert.

    A missing id or code is read as 0, a missing namespace as an empty text, and a missing event as
    `None`. Raises `ConfigError` if an entry is not a Map.
    """
    if data.tag != "Map":
        return
    for name, value in data.value:
        if keys.canonical(name) not in {keys.PUBLISHER_ERROR, keys.SUBSCRIBER_ERROR}:
            continue
        for item in v.as_items(value) or (value,):
            if item.tag != "Map":
                raise ConfigError(f"an entry of {name} is a Map")
            # Reversed, because the first of repeated keys counts.
            parts = dict(reversed(item.value))
            yield f.Trouble(
                v.as_nat(parts.get("id")) or 0,
                v.as_nat(parts.get("code")) or 0,
                v.as_text(parts.get("namespace")) or "",
                v.as_nat(parts.get("eventId")),
            )
