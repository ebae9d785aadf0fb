"""Configurations of publications and subscriptions: what is accepted, how one key changes them, how they are shown."""

from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.errors import ConfigError, FilterError
from pubsub_emulator.icrc72.filters import parse
from pubsub_emulator.icrc72.ic.errors import PrincipalError
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.stable import stable
from pubsub_emulator.icrc72.namespaces import is_system
from pubsub_emulator.icrc72.services import MAP, type_codec
from pubsub_emulator.icrc72.settings import Settings
from pubsub_emulator.icrc72.skip import Skip, skip_of
from pubsub_emulator.icrc72.values import (
    Pairs,
    Value,
    array,
    as_items,
    as_nat,
    as_principal,
    as_text,
    blob,
    boolean,
    class_,
    nat,
    opened,
    text,
)

MODES: Final = ("fifo", "priority", "unordered")
MEMO_BYTES: Final = 32

stable(Skip)

C = TypeVar("C", "PublicationConfig", "SubscriptionConfig")


@stable
@dataclass(frozen=True, slots=True)
class PublicationConfig:
    """The configuration that a publication's controllers have set."""

    creator: Principal
    controllers: tuple[Principal, ...]
    lists: dict[str, tuple[Principal, ...]] = field(default_factory=dict)
    canisters: dict[str, tuple[Principal, str]] = field(default_factory=dict)
    mode: str = "fifo"
    partitions: int = 1
    priorities: dict[Principal, int] = field(default_factory=dict)
    trusted: bool = False
    replay: bool = False
    price: tuple[int, Principal | None] | None = None
    """Per event, and the ledger; `None` for cycles."""
    max_range: int | None = None
    max_concurrent: int | None = None
    others: dict[str, Value] = field(default_factory=dict)
    memo: bytes | None = None

    def pairs(self) -> Pairs:
        """The pairs of a publication in `PublicationInfo`."""
        found: list[tuple[str, Value]] = [
            (keys.list_key(which), array(blob(each) for each in members)) for which, members in self.lists.items()
        ]
        for which, (canister, name) in self.canisters.items():
            found.append((keys.icrc75_key(which), array([blob(canister), text(name)])))
        found += [(keys.MODE, text(self.mode)), (keys.PARTITIONS, nat(self.partitions))]
        if self.priorities:
            ranks = array(array([blob(who), nat(rank)]) for who, rank in self.priorities.items())
            found.append((keys.PRIORITIES, ranks))
        if self.trusted:
            found.append((keys.TRUSTED, boolean(True)))
        found.append((keys.CREATOR, blob(self.creator)))
        found.append((keys.CONTROLLERS_ADD, array(blob(each) for each in self.controllers)))
        if self.memo is not None:
            found.append((keys.MEMO, blob(self.memo)))
        if self.replay:
            found += [(keys.REPLAY, boolean(True)), (keys.CAPABLE, boolean(True))]
        if self.price is not None:
            amount, ledger = self.price
            currency = text("cycles" if ledger is None else f"icrc2:{ledger.text}")
            found.append((keys.PRICING, class_(("perEvent", nat(amount)), ("currency", currency))))
        for key, number in ((keys.MAX_RANGE, self.max_range), (keys.MAX_CONCURRENT, self.max_concurrent)):
            if number is not None:
                found.append((key, nat(number)))
        return (*found, *self.others.items())


@stable
@dataclass(frozen=True, slots=True)
class SubscriptionConfig:
    """The configuration that a subscriber has set."""

    controllers: tuple[Principal, ...]
    skip: Skip | None = None
    filter: str | None = None
    stopped: bool = False
    others: dict[str, Value] = field(default_factory=dict)
    memo: bytes | None = None

    def pairs(self) -> Pairs:
        """The pairs of a subscription in `SubscriptionInfo`."""
        found: list[tuple[str, Value]] = []
        if self.skip is not None:
            found.append((keys.SKIP, self.skip.value))
        if self.filter is not None:
            found.append((keys.FILTER, text(self.filter)))
        found.append((keys.STOPPED, boolean(self.stopped)))
        found.append((keys.SUBSCRIPTION_ADD, array(blob(each) for each in self.controllers)))
        if self.memo is not None:
            found.append((keys.SUBSCRIPTION_MEMO, blob(self.memo)))
        return (*found, *self.others.items())


def check_memo(memo: bytes | None, most: int = MEMO_BYTES) -> None:
    """Raises `ConfigError` for a memo of more than `most` bytes; ICRC-72 gives no bound for publications."""
    if memo is not None and len(memo) > most:
        raise ConfigError(f"a memo has at most {most} bytes, not {len(memo)}")


def check_same(given: Pairs, made: C, known: C, what: str) -> None:
    """Raises `ConfigError` when something is registered again with a configuration that it does not have."""
    if given and replace(made, memo=None) != replace(known, memo=None):
        raise ConfigError(f"{what} is registered with another configuration, which only an update changes")


def check_size(config: Pairs | PublicationConfig | SubscriptionConfig, settings: Settings) -> None:
    """Raises `ConfigError` for a configuration that is too large."""
    size = type_codec("orchestrator", MAP).size(config if isinstance(config, tuple) else config.pairs())
    if size > settings.config_bytes:
        raise ConfigError(f"a configuration has at most {settings.config_bytes} bytes, not {size}")


def new_publication(creator: Principal, config: Pairs) -> PublicationConfig:
    """The configuration of a new publication. Raises `ConfigError`."""
    made = PublicationConfig(creator, (creator,))
    for key, value in config:
        made = changed_publication(made, key, value, new=True)
    return made


def new_subscription(subscriber: Principal, config: Pairs) -> SubscriptionConfig:
    """The configuration of a new subscription. Raises `ConfigError`."""
    made = SubscriptionConfig((subscriber,))
    for key, value in config:
        made = changed_subscription(made, key, value)
    return made


def changed_publication(
    config: PublicationConfig, written: str, value: Value, *, new: bool = False
) -> PublicationConfig:
    """The configuration after one key was set. Raises `ConfigError`."""
    key = keys.canonical(written)
    if key in {keys.CONTROLLERS_ADD, keys.CONTROLLERS_REMOVE}:
        return replace(config, controllers=_controllers(config.controllers, key == keys.CONTROLLERS_ADD, key, value))
    for which in keys.LISTS:
        changed = _changed_list(config, which, key, value)
        if changed is not None:
            return changed
    if key in {keys.MODE, keys.PARTITIONS}:
        if key == keys.PARTITIONS and not new:
            raise ConfigError(f"{key} is set at registration only")
        return _mode(config, key, value)
    if key == keys.PRIORITIES:
        return replace(config, priorities=_priorities(value))
    if key in {keys.TRUSTED, keys.REPLAY}:
        truth = _bool(key, value)
        return replace(config, trusted=truth) if key == keys.TRUSTED else replace(config, replay=truth)
    if key == keys.PRICING:
        return replace(config, price=_price(value))
    if key == keys.MAX_RANGE:
        return replace(config, max_range=_positive(key, value))
    if key == keys.MAX_CONCURRENT:
        return replace(config, max_concurrent=_positive(key, value))
    return replace(config, others={**config.others, _foreign(written): value})


def changed_subscription(config: SubscriptionConfig, written: str, value: Value) -> SubscriptionConfig:
    """The configuration after one key was set. Raises `ConfigError`."""
    key = keys.canonical(written)
    if key in {keys.SUBSCRIPTION_ADD, keys.SUBSCRIPTION_REMOVE}:
        adds = key == keys.SUBSCRIPTION_ADD
        return replace(config, controllers=_controllers(config.controllers, adds, key, value))
    if key == f"{keys.SKIP}:remove" or (key == keys.SKIP and opened(value) is None):
        return replace(config, skip=None)
    if key == f"{keys.FILTER}:remove" or (key == keys.FILTER and opened(value) is None):
        return replace(config, filter=None)
    if key == keys.SKIP:
        return replace(config, skip=skip_of(value))
    if key == keys.FILTER:
        return replace(config, filter=filter_text(value))
    if key == keys.STOPPED:
        return replace(config, stopped=_bool(key, value))
    return replace(config, others={**config.others, _foreign(written): value})


def filter_text(value: Value) -> str:
    """A filter, when it can be parsed. Raises `ConfigError`."""
    written = None if (inside := opened(value)) is None else as_text(inside)
    if written is None:
        raise ConfigError("a filter is a Text")
    try:
        parse(written)
    except FilterError as error:
        raise ConfigError(str(error)) from error
    return written


def _changed_list(config: PublicationConfig, which: str, key: str, value: Value) -> PublicationConfig | None:
    name, canister = keys.list_key(which), keys.icrc75_key(which)
    if key in {name, f"{name}:add", f"{name}:remove"}:
        given = _principals(key, value)
        had = config.lists.get(which, ())
        if key.endswith(":add"):
            given = tuple(dict.fromkeys((*had, *given)))
        elif key.endswith(":remove"):
            if which not in config.lists:
                return config  # a list that is empty would shut everybody out
            given = tuple(each for each in had if each not in given)
        return replace(config, lists={**config.lists, which: given})
    if key == f"{canister}:remove":
        return replace(config, canisters={each: at for each, at in config.canisters.items() if each != which})
    if key == canister:
        return replace(config, canisters={**config.canisters, which: _list_canister(key, value)})
    return None


def _controllers(had: tuple[Principal, ...], adds: bool, key: str, value: Value) -> tuple[Principal, ...]:
    given = _principals(key, value)
    if adds:
        return tuple(dict.fromkeys((*had, *given)))
    left = tuple(each for each in had if each not in given)
    if not left:
        raise ConfigError("the last controller cannot be removed")
    return left


def _foreign(key: str) -> str:
    if is_system(key):
        raise ConfigError(f"the key {key[:80]!r} is not known here")
    return key


def _principals(key: str, value: Value) -> tuple[Principal, ...]:
    items = as_items(value)
    found = [as_principal(each) for each in items or ()]
    if items is None or None in found:
        raise ConfigError(f"{key} is an Array of principals as Blob")
    return tuple(dict.fromkeys(each for each in found if each is not None))


def _list_canister(key: str, value: Value) -> tuple[Principal, str]:
    items = as_items(value)
    if items is not None and len(items) == 2:
        canister, name = as_principal(items[0]), as_text(items[1])
        if canister is not None and name is not None:
            return canister, name
    raise ConfigError(f"{key} is Array[Blob canister, Text list]")


def _mode(config: PublicationConfig, key: str, value: Value) -> PublicationConfig:
    if key == keys.MODE:
        mode = as_text(value)
        if mode is None or mode not in MODES:
            raise ConfigError(f"{key} is one of {', '.join(MODES)}")
        return replace(config, mode=mode)
    count = as_nat(value)
    if count is None or not 1 <= count <= 16:
        raise ConfigError(f"{key} is a Nat from 1 to 16")
    return replace(config, partitions=count)


def _priorities(value: Value) -> dict[Principal, int]:
    items = as_items(value)
    found: dict[Principal, int] = {}
    for each in items or ():
        pair = as_items(each) or ()
        who, rank = (as_principal(pair[0]), as_nat(pair[1])) if len(pair) == 2 else (None, None)
        if who is None or rank is None:
            items = None
            break
        found[who] = rank
    if items is None:
        raise ConfigError(f"{keys.PRIORITIES} is an Array of Array[Blob subscriber, Nat]")
    return found


def _price(value: Value) -> tuple[int, Principal | None]:
    parts = {name: inside for name, inside, _ in value.value} if value.tag == "Class" else {}
    amount, currency = as_nat(parts.get("perEvent")), as_text(parts.get("currency"))
    if amount is not None and currency == "cycles":
        return amount, None
    if amount is not None and currency is not None and currency.startswith("icrc2:"):
        try:
            return amount, Principal.from_text(currency.removeprefix("icrc2:"))
        except PrincipalError as error:
            raise ConfigError(str(error)) from error
    raise ConfigError(f"{keys.PRICING} is Class{{perEvent Nat, currency Text icrc2:<ledger> or cycles}}")


def _positive(key: str, value: Value) -> int:
    number = as_nat(value)
    if number is None or number < 1:
        raise ConfigError(f"{key} is a positive Nat")
    return number


def _bool(key: str, value: Value) -> bool:
    if value.tag != "Bool":
        raise ConfigError(f"{key} is a Bool")
    return value.value


def replay_config(config: Pairs, filter_: str | None, skip: Skip | None) -> tuple[str | None, Skip | None]:
    """Filter and skip of a replay: those of its configuration, or else of the subscription. Raises `ConfigError`."""
    for written, value in config:
        key = keys.canonical(written)
        inside = opened(value)
        if key == keys.REPLAY_FILTER:
            filter_ = None if inside is None else filter_text(inside)
        elif key == keys.REPLAY_SKIP:
            skip = None if inside is None else skip_of(inside)
        elif key == keys.REPLAY_ISOLATED:
            if value.tag != "Bool":
                raise ConfigError(f"{key} is a Bool")
        elif is_system(written):
            raise ConfigError(f"the key {written[:80]!r} is not known here")
    return filter_, skip
