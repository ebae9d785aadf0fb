"""Configurations of publications, subscriptions and replays: parsing, changes and display.

A configuration arrives as pairs of a key and an ICRC16 value. Each pair changes an immutable
record. Unknown reserved keys and wrong types are errors. Keys that are not reserved are kept and
returned.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeVar

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import values as v
from interchain_events.icrc72.errors import ConfigError, FilterError
from interchain_events.icrc72.filters import parse
from interchain_events.icrc72.ic.errors import PrincipalError
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import stable
from interchain_events.icrc72.memory import nothing
from interchain_events.icrc72.services import MAP, type_codec
from interchain_events.icrc72.settings import Settings

MODES: Final = ("fifo", "priority", "unordered")
"""The modes in which events of a publication are delivered."""
MEMO_BYTES: Final = 32
"""The longest memo of a subscription or replay."""

stable(v.Skip)

C = TypeVar("C", "PublicationConfig", "SubscriptionConfig")
T = TypeVar("T")


class _Field(NamedTuple):
    """The connection of a key to a field of a configuration."""

    name: str
    """The name of the field."""
    read: Callable[[str, v.Value], object] | None
    """Parses a value, given the key and the value; `None` if this key only shows the field."""
    show: Callable[[Any], v.Value]
    """Returns the ICRC16 value of the field."""


@stable
@dataclass(frozen=True, slots=True)
class PublicationConfig:
    """The configuration of a publication."""

    creator: Principal
    controllers: tuple[Principal, ...]
    lists: dict[str, tuple[Principal, ...]] = field(default_factory=dict)
    """The lists of principals by their names in `keys.LISTS`."""
    canisters: dict[str, tuple[Principal, str]] = field(default_factory=dict)
    """List canisters and their lists, by the names in `keys.LISTS`."""
    mode: str = "fifo"
    """One of `MODES`."""
    partitions: int = 1
    priorities: dict[Principal, int] = field(default_factory=dict)
    """The ranks of subscribers; the higher, the earlier."""
    trusted: bool = False
    """Whether notifications are sent by guaranteed calls (IC-46)."""
    replay: bool = False
    """Whether events can be replayed."""
    price: tuple[int, Principal | None] | None = None
    """The price of each replayed event, and its ledger or `None` for cycles."""
    max_range: int | None = None
    """How many ids a replay may have."""
    max_concurrent: int | None = None
    """How many replays may run at once."""
    others: Mapping[str, v.Value] = field(default_factory=nothing)
    """The keys that are not reserved."""
    memo: bytes | None = None

    def pairs(self) -> v.Pairs:
        """Return the configuration as pairs, as `PublicationInfo` contains it."""
        pairs = [(keys.list_key(which), _blobs(members)) for which, members in self.lists.items()]
        for which, (canister, name) in self.canisters.items():
            pairs.append((keys.icrc75_key(which), v.array([v.blob(canister), v.text(name)])))
        return (*pairs, *_shown(self, _PUBLICATION), *self.others.items())


@stable
@dataclass(frozen=True, slots=True)
class PublisherConfig:
    """The configuration of a publisher that has joined another one's publication.

    It only says how this publisher replays its own events. The creator has the configuration of the
    publication instead.
    """

    replay: bool = False
    """Whether it can replay its events."""
    price: tuple[int, Principal | None] | None = None
    """The price of each event, if it is another one than the publication's."""
    max_range: int | None = None
    """How many ids a replay may have, if it is another number than the publication's."""
    others: Mapping[str, v.Value] = field(default_factory=nothing)
    """The keys that are not reserved."""


@stable
@dataclass(frozen=True, slots=True)
class SubscriptionConfig:
    """The configuration of a subscription."""

    controllers: tuple[Principal, ...]
    skip: v.Skip | None = None
    filter: str | None = None
    stopped: bool = False
    """Whether no events are sent."""
    others: Mapping[str, v.Value] = field(default_factory=nothing)
    """The keys that are not reserved."""
    memo: bytes | None = None

    def pairs(self) -> v.Pairs:
        """Return the configuration as pairs, as `SubscriptionInfo` contains it."""
        return (*_shown(self, _SUBSCRIPTION), *self.others.items())


def _shown(config: object, fields: Mapping[str, _Field]) -> Iterator[tuple[str, v.Value]]:
    """Yield the pairs of a configuration's fields, except those that are unset or false.

    `stopped` is always shown.
    """
    for key, field_ in fields.items():
        value = getattr(config, field_.name)
        if value not in (None, {}) and (value is not False or key == keys.STOPPED):
            yield key, field_.show(value)


def check_memo(memo: bytes | None, most: int = MEMO_BYTES) -> None:
    """Check the length of a memo. Raises `ConfigError` if it has more than `most` bytes.

    ICRC-72 gives no limit for publications; these pass a larger one.
    """
    if memo is not None and len(memo) > most:
        raise ConfigError(f"a memo has at most {most} bytes, not {len(memo)}")


def check_same(given: v.Pairs, new: C, known: C, item: str) -> None:
    """Check a configuration that is given when an item is registered again.

    `new` is the parsed form of `given`, and `item` names the item in the error. Raises
    `ConfigError` if the configuration is not empty and differs from the known one, apart from the
    memo.
    """
    if given and replace(new, memo=None) != replace(known, memo=None):
        raise ConfigError(
            f"{item} is registered with another configuration, which only an update changes"
        )


def check_size(
    config: v.Pairs | PublicationConfig | SubscriptionConfig, settings: Settings
) -> None:
    """Check the size of a configuration. Raises `ConfigError`."""
    pairs = config if isinstance(config, tuple) else config.pairs()
    size = type_codec("orchestrator", MAP).size(pairs)
    if size > settings.config_bytes:
        raise ConfigError(f"a configuration has at most {settings.config_bytes} bytes, not {size}")


def new_publication(
    creator: Principal, config: v.Pairs, memo: bytes | None = None
) -> PublicationConfig:
    """Return the configuration of a new publication. Raises `ConfigError`."""
    publication = PublicationConfig(creator, (creator,), memo=memo)
    for key, value in config:
        publication = changed_publication(publication, key, value, new=True)
    return publication


def joined_publisher(publication: PublicationConfig, config: v.Pairs) -> PublisherConfig:
    """Return the configuration of a publisher that joins a publication.

    It may repeat the publication's configuration, but not change it. Raises `ConfigError`.
    """
    publisher = PublisherConfig()
    for written, value in config:
        key = keys.canonical(written)
        field_ = _PUBLISHER.get(key)
        if field_ is not None and field_.read is not None:
            publisher = replace(publisher, **{field_.name: field_.read(key, value)})  # type: ignore[arg-type]
        elif not written.lower().startswith(_OURS):
            publisher = replace(publisher, others={**publisher.others, written: value})
        elif changed_publication(publication, written, value, new=True) != publication:
            raise ConfigError(
                f"{written[:80]} is another one in the publication, which only its controllers"
                " change"
            )
    return publisher


def new_subscription(
    subscriber: Principal, config: v.Pairs, memo: bytes | None = None
) -> SubscriptionConfig:
    """Return the configuration of a new subscription. Raises `ConfigError`."""
    subscription = _first_subscription(subscriber)
    if memo is not None:
        subscription = replace(subscription, memo=memo)
    for key, value in config:
        subscription = changed_subscription(subscription, key, value)
    return subscription


@lru_cache(maxsize=1 << 10)
def _first_subscription(subscriber: Principal) -> SubscriptionConfig:
    """Return the configuration of a subscription without keys.

    Most subscriptions have it, and a subscriber has at least two of them, which share it.
    """
    return SubscriptionConfig((subscriber,))


def read_publication(config: v.Pairs) -> PublicationConfig:
    """Parse the configuration of a publication in another canister's answer.

    Keys and values that are not understood are ignored. The first of repeated keys counts.
    """
    creator = v.as_principal(v.first(config, keys.CREATOR))
    publication = PublicationConfig(Principal() if creator is None else creator, ())
    return _read(publication, config, partial(changed_publication, new=True))


def read_subscription(config: v.Pairs) -> SubscriptionConfig:
    """Parse the configuration of a subscription in another canister's answer.

    Keys and values that are not understood are ignored. The first of repeated keys counts.
    """
    return _read(SubscriptionConfig(()), config, changed_subscription)


def _read(config: C, pairs: v.Pairs, changed: Callable[[C, str, v.Value], C]) -> C:
    """Return a configuration after all changes that are understood."""
    # Reversed, so that the first of repeated keys is applied last.
    for key, value in reversed(pairs):
        with suppress(ConfigError):
            config = changed(config, key, value)
    return config


def changed_publication(
    config: PublicationConfig, written: str, value: v.Value, *, new: bool = False
) -> PublicationConfig:
    """Return the configuration of a publication after one key was set.

    With `new`, the publication is being registered; only then can the partitions be set. Raises
    `ConfigError`.
    """
    key = keys.canonical(written)
    if key == keys.PARTITIONS and not new:
        raise ConfigError(f"{key} is set at registration only")
    for which in keys.LISTS:
        changed = _changed_list(config, which, key, value)
        if changed is not None:
            return changed
    if key in {keys.CONTROLLERS_ADD, keys.CONTROLLERS_REMOVE}:
        return replace(config, controllers=_controllers(config.controllers, key, value))
    return _changed(config, _PUBLICATION.get(key), written, value)


def changed_subscription(
    config: SubscriptionConfig, written: str, value: v.Value
) -> SubscriptionConfig:
    """Return the configuration of a subscription after one key was set. Raises `ConfigError`."""
    key = keys.canonical(written)
    if key in {keys.SUBSCRIPTION_ADD, keys.SUBSCRIPTION_REMOVE}:
        return replace(config, controllers=_controllers(config.controllers, key, value))
    if key in {f"{keys.SKIP}:remove", f"{keys.FILTER}:remove"}:
        key = key.removesuffix(":remove")
        value = v.option(None)
    return _changed(config, _SUBSCRIPTION.get(key), written, value)


def _changed(config: C, known: _Field | None, written: str, value: v.Value) -> C:
    """Set a field, or keep a key that is not reserved among the others."""
    if known is not None and known.read is not None:
        new = known.read(keys.canonical(written), value)
        # This saves a copy in the usual case: a value that is the default or was set before.
        if new == getattr(config, known.name):
            return config
        changes = {known.name: new}
        return replace(config, **changes)  # type: ignore[arg-type]  # `read` returns the field's type
    _check_unknown(written)
    return replace(config, others={**config.others, written: value})


_OURS: Final = ("icrc72:", "icrc77:")
"""The prefixes of the keys that are known here. Other drafts define those with other prefixes."""


def _check_unknown(written: str) -> None:
    """Check a key that is not known. Raises `ConfigError` if it belongs to ICRC-72 or ICRC-77.

    Keys of other extensions, such as `icrc75:…` and `icrc92:…`, are kept and returned.
    """
    if written.lower().startswith(_OURS):
        raise ConfigError(f"the key {written[:80]!r} is not known here")


def filter_text(value: v.Value) -> str:
    """Return the text of a filter. Raises `ConfigError` if it is not a Text or cannot be parsed."""
    written = v.as_text(v.opened(value))
    if written is None:
        raise ConfigError("a filter is a Text")
    try:
        parse(written)
    except FilterError as error:
        raise ConfigError(str(error)) from error
    return written


def _changed_list(
    config: PublicationConfig, which: str, key: str, value: v.Value
) -> PublicationConfig | None:
    """Apply a key of one of the four lists or its list canister.

    Returns `None` if the key does not belong to this list.
    """
    name = keys.list_key(which)
    canister = keys.icrc75_key(which)
    if key in {name, f"{name}:add", f"{name}:remove"}:
        given = _principals(key, value)
        former = config.lists.get(which, ())
        if key.endswith(":add"):
            given = tuple(dict.fromkeys((*former, *given)))
        elif key.endswith(":remove"):
            # Without this, removing from a missing list would create an empty one, which excludes
            # everybody.
            if which not in config.lists:
                return config
            given = tuple(member for member in former if member not in given)
        return replace(config, lists={**config.lists, which: given})
    if key == f"{canister}:remove":
        canisters = dict(config.canisters)
        canisters.pop(which, None)
        return replace(config, canisters=canisters)
    if key == canister:
        return replace(config, canisters={**config.canisters, which: _list_canister(key, value)})
    return None


def _controllers(former: tuple[Principal, ...], key: str, value: v.Value) -> tuple[Principal, ...]:
    """Return the controllers after adding or removing some. The last one cannot be removed."""
    given = _principals(key, value)
    if key.endswith(":add"):
        return tuple(dict.fromkeys((*former, *given)))
    left = tuple(controller for controller in former if controller not in given)
    if not left:
        raise ConfigError("the last controller cannot be removed")
    return left


def _blobs(principals: tuple[Principal, ...]) -> v.Value:
    return v.array(v.blob(principal) for principal in principals)


def _principals(key: str, value: v.Value) -> tuple[Principal, ...]:
    """Parse an array of principals, and drop repetitions. Raises `ConfigError`."""
    error = ConfigError(f"{key} is an Array of principals as Blob")
    items = v.as_items(value)
    if items is None:
        raise error
    principals: dict[Principal, None] = {}
    for item in items:
        principal = v.as_principal(item)
        if principal is None:
            raise error
        principals[principal] = None
    return tuple(principals)


def _list_canister(key: str, value: v.Value) -> tuple[Principal, str]:
    """Parse a list canister and the name of its list. Raises `ConfigError`."""
    items = v.as_items(value) or ()
    if len(items) == 2:
        canister = v.as_principal(items[0])
        name = v.as_text(items[1])
        if canister is not None and name is not None:
            return canister, name
    raise ConfigError(f"{key} is Array[Blob canister, Text list]")


def _reader(read: Callable[[v.Value], T | None], words: str) -> Callable[[str, v.Value], T]:
    """Return a parser that raises `ConfigError` with a description if `read` returns `None`."""

    def parse_value(key: str, value: v.Value) -> T:
        parsed = read(value)
        if parsed is None:
            raise ConfigError(f"{key} is {words}")
        return parsed

    return parse_value


def _as_mode(value: v.Value) -> str | None:
    mode = (v.as_text(value) or "").lower()
    return mode if mode in MODES else None


def _as_partitions(value: v.Value) -> int | None:
    count = v.as_nat(value)
    return count if count in range(1, 17) else None


_mode = _reader(_as_mode, f"one of {', '.join(MODES)}")
_partitions = _reader(_as_partitions, "a Nat from 1 to 16")
_positive = _reader(lambda value: v.as_nat(value) or None, "a positive Nat")
_bool = _reader(lambda value: value.value if value.tag == "Bool" else None, "a Bool")


def _priorities(key: str, value: v.Value) -> dict[Principal, int]:
    """Parse the ranks of subscribers. Raises `ConfigError`."""
    error = ConfigError(f"{key} is an Array of Array[Blob subscriber, Nat]")
    items = v.as_items(value)
    if items is None:
        raise error
    ranks: dict[Principal, int] = {}
    for item in items:
        pair = v.as_items(item) or ()
        if len(pair) != 2:
            raise error
        subscriber = v.as_principal(pair[0])
        rank = v.as_nat(pair[1])
        if subscriber is None or rank is None:
            raise error
        ranks[subscriber] = rank
    return ranks


def _price(key: str, value: v.Value) -> tuple[int, Principal | None]:
    """Parse the price of a replayed event, and the ledger or `None` for cycles."""
    parts = {name: inside for name, inside, _ in value.value} if value.tag == "Class" else {}
    amount = v.as_nat(parts.get("perEvent"))
    currency = v.as_text(parts.get("currency")) or ""
    if amount is not None and currency == "cycles":
        return amount, None
    if amount is not None and currency.startswith("icrc2:"):
        try:
            return amount, Principal.from_text(currency.removeprefix("icrc2:"))
        except PrincipalError as error:
            raise ConfigError(str(error)) from error
    raise ConfigError(f"{key} is Class{{perEvent Nat, currency Text icrc2:<ledger> or cycles}}")


def _priced(price: tuple[int, Principal | None]) -> v.Value:
    """Return the ICRC16 value of a price, which `_price` parses."""
    amount, ledger = price
    currency = "cycles" if ledger is None else f"icrc2:{ledger.text}"
    return v.class_(("perEvent", v.nat(amount)), ("currency", v.text(currency)))


def _ranks(priorities: dict[Principal, int]) -> v.Value:
    """Return the ICRC16 value of the ranks of subscribers, which `_priorities` parses."""
    return v.array(
        v.array([v.blob(subscriber), v.nat(rank)]) for subscriber, rank in priorities.items()
    )


def _optional(read: Callable[[v.Value], object]) -> Callable[[str, v.Value], object]:
    """Return a parser that accepts an empty Option, too, as `None`."""
    return lambda _key, value: None if v.opened(value) is None else read(value)


# Keys without a parser only show their field. Some of them can be set, but not by a `_Field`: see
# `_controllers`. The others are refused.
_PUBLICATION: Final = {
    keys.MODE: _Field("mode", _mode, v.text),
    keys.PARTITIONS: _Field("partitions", _partitions, v.nat),
    keys.PRIORITIES: _Field("priorities", _priorities, _ranks),
    keys.TRUSTED: _Field("trusted", _bool, v.boolean),
    keys.CREATOR: _Field("creator", None, v.blob),
    keys.CONTROLLERS_ADD: _Field("controllers", None, _blobs),
    keys.MEMO: _Field("memo", None, v.blob),
    keys.REPLAY: _Field("replay", _bool, v.boolean),
    keys.CAPABLE: _Field("replay", None, v.boolean),
    keys.PRICING: _Field("price", _price, _priced),
    keys.MAX_RANGE: _Field("max_range", _positive, v.nat),
    keys.MAX_CONCURRENT: _Field("max_concurrent", _positive, v.nat),
}
_PUBLISHER: Final = {key: _PUBLICATION[key] for key in (keys.REPLAY, keys.PRICING, keys.MAX_RANGE)}
"""The keys that a publisher gives for itself."""
_SUBSCRIPTION: Final = {
    keys.SKIP: _Field("skip", _optional(v.skip_of), lambda skip: skip.value),
    keys.FILTER: _Field("filter", _optional(filter_text), v.text),
    keys.STOPPED: _Field("stopped", _bool, v.boolean),
    keys.SUBSCRIPTION_ADD: _Field("controllers", None, _blobs),
    keys.SUBSCRIPTION_MEMO: _Field("memo", None, v.blob),
}


def replay_config(
    config: v.Pairs, filter_: str | None, skip: v.Skip | None
) -> tuple[str | None, v.Skip | None]:
    """Return filter and skip of a replay.

    `filter_` and `skip` are those of the subscription, which the configuration of the replay may
    replace or clear. Raises `ConfigError`.
    """
    for written, value in config:
        # Hints for payment (`icrc77:payment…`) have no effect: the price is the publication's.
        key = keys.canonical(written)
        inside = v.opened(value)
        if key == keys.REPLAY_FILTER:
            filter_ = None if inside is None else filter_text(inside)
        elif key == keys.REPLAY_SKIP:
            skip = None if inside is None else v.skip_of(inside)
        elif key == keys.REPLAY_ISOLATED:
            _bool(key, value)
        elif key.partition(":")[2].partition(":")[0] != "payment":
            _check_unknown(written)
    return filter_, skip
