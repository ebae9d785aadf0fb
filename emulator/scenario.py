"""What a scenario says: who publishes what how often, who subscribes to it, who cheats, how full the blocks are.

Frozen models, checked on construction; `emulator.scenario_file` reads them from TOML. Sizes are bytes, times are relay
blocks, shares are numbers from 0 to 1 that are kept as millionths, so that no rounding depends on a machine.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator, model_validator

from collator.cheats import STRATEGIES
from emulator.seeded import MILLION
from primitives.pubsub import key_from_data
from primitives.types import U32_MAX, ParaId, PubsubKey, RelayBlockNumber

SYSTEM_PARA_THRESHOLD: Final = 2000
"""Ids below it are system parachains unless the scenario says otherwise (PS-7)."""


class Misplaced(ValueError):  # pydantic reports ValueErrors as findings; this one knows its field
    """A field that is well-formed and does not go with another part of the scenario."""

    def __init__(self, location: tuple[str | int, ...], reason: str) -> None:
        self.location = location
        super().__init__(reason)


def _millionths(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a share is a number from 0 to 1")  # noqa: TRY004  # pydantic reports ValueError as a finding
    if not 0 <= value <= 1:
        raise ValueError(f"a share is a number from 0 to 1, not {value}")
    return round(value * MILLION)


def _share(millionths: int) -> float:
    return millionths / MILLION


Share = Annotated[int, BeforeValidator(_millionths), PlainSerializer(_share, when_used="json")]
Count = Annotated[int, Field(strict=True, ge=0, le=U32_MAX)]
Positive = Annotated[int, Field(strict=True, ge=1, le=U32_MAX)]
Block = Annotated[RelayBlockNumber, Field(strict=True, ge=1, le=U32_MAX)]
Para = Annotated[ParaId, Field(strict=True, ge=1, le=U32_MAX)]
Text = Annotated[str, Field(strict=True, min_length=1)]


class Model(BaseModel):
    """Closed and frozen: an unknown field is a typing error of the author's, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Span(Model):
    """A range of sizes in bytes, both ends included."""

    min: Count
    max: Count

    @model_validator(mode="after")
    def _ordered(self) -> "Span":
        if self.min > self.max:
            raise ValueError(f"min {self.min} exceeds max {self.max}")
        return self


class RelaySettings(Model):
    """The relay chain's configuration; what is not given keeps the runtime's default (PS-8, PS-15, PS-19)."""

    session_length: Positive = 50
    """Relay blocks per session."""
    system_para_threshold: Count = SYSTEM_PARA_THRESHOLD
    ttl_policy: Literal["scan", "expiry_index"] = "scan"
    max_value_length: Positive | None = None
    max_stored_keys: Positive | None = None
    max_total_storage_size: Positive | None = None
    max_publishers: Positive | None = None
    publisher_deposit: Count | None = None
    max_ttl_scans_per_idle: Count | None = None


class PublisherGroup(Model):
    """Parachains that publish in the same manner, each keys of its own."""

    paras: Annotated[tuple[Para, ...], Field(min_length=1)]
    keys: Positive
    """How many keys each of them holds; key i of para p is `key_from_data(b"p/i")`."""
    value_size: Span | Count = 64
    update_rate: Share = 0
    """Share of the keys that is published anew in each relay block."""
    delete_rate: Share = 0
    """Share of the keys that is deleted in each relay block; a deleted key comes back with its next update."""
    ttl: Count | Annotated[tuple[Count, ...], Field(min_length=1)] = 0
    """Relay blocks that an entry is valid for, 0 for ever; of several, each publish draws one."""
    first_block: Block = RelayBlockNumber(1)
    last_block: Block | None = None
    """The publisher is silent before the one and after the other."""
    fill_per_block: Positive = 50
    """How many keys are published for the first time in each relay block, from `first_block` on."""
    offboard_at: Block | None = None
    """The relay block in which the para is scheduled to be offboarded, at the next session change (PS-11)."""

    def sizes(self) -> Span:
        """The value sizes as a range."""
        return self.value_size if isinstance(self.value_size, Span) else Span(min=self.value_size, max=self.value_size)

    def ttls(self) -> tuple[int, ...]:
        """The lifetimes to draw from."""
        return self.ttl if isinstance(self.ttl, tuple) else (self.ttl,)


class Subscription(Model):
    """Keys of some publishers."""

    publishers: Annotated[tuple[Para, ...], Field(min_length=1)] | Literal["all", "system", "public"]
    keys: Positive | Literal["all"] = "all"
    """How many of each publisher's keys."""
    first_key: Count = 0
    """The first of them, by index."""
    missing_keys: Count = 0
    """Keys beside them that nobody ever publishes: their absence has to be proven."""


class CollatorSettings(Model):
    """A collator; honest unless it has strategies."""

    strategies: tuple[Text, ...] = ()
    """What it tries when it cheats, one drawn each time; names as in `collator.cheats`."""
    rate: Share = MILLION
    """How often it cheats when it is its turn."""

    @field_validator("strategies")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in STRATEGIES:
                near = get_close_matches(name, STRATEGIES, n=3, cutoff=0)
                raise ValueError(f"no strategy is called {name!r}; near to it are {', '.join(near)}")
        return names


class Load(Model):
    """Messages that a subscriber receives in each relay block of a period."""

    first_block: Block
    last_block: Block
    downward_messages: Count = 0
    downward_size: Count = 1024
    senders: tuple[Para, ...] = ()
    """Publishers that send one horizontal message each: the relay chain takes no more from a parachain block."""
    horizontal_size: Count = 1024

    @model_validator(mode="after")
    def _ordered(self) -> "Load":
        if self.first_block > self.last_block:
            raise ValueError(f"first_block {self.first_block} exceeds last_block {self.last_block}")
        return self


class SubscriptionChange(Model):
    """New subscriptions in place of the old ones, from a relay block on (PS-63)."""

    at_block: Block
    subscribe: tuple[Subscription, ...]


class Order(Model):
    """A root call that governance sends a subscriber, about one publisher (PS-67)."""

    at_block: Block
    call: Literal["clear_publisher_cache", "redeliver", "enable_publisher"]
    publisher: Para


class Subscriber(Model):
    """A parachain that reads what others publish."""

    para: Para
    name: Text = "subscriber"
    subscribe: tuple[Subscription, ...]
    changes: tuple[SubscriptionChange, ...] = ()
    collators: Annotated[tuple[CollatorSettings, ...], Field(min_length=1)] = (CollatorSettings(), CollatorSettings())
    load: tuple[Load, ...] = ()
    orders: tuple[Order, ...] = ()
    cache: Literal["nodes", "none", "slots"] = "slots"
    """The cache policy (PS-69)."""
    handler: Literal["observe", "store"] = "observe"
    """What is done with deliveries."""
    max_pov_size: Positive = 10 * 1024 * 1024
    reserve_minimum: bool = False
    max_cache_bytes: Positive | None = None
    meter_cache_reads: bool = True
    max_trie_depth: Count | None = 16
    """Child nodes on a path before a publisher is disabled; 0 switches the limit off (PS-68)."""
    blocks_per_relay_block: Positive = 1
    """Parachain blocks between two relay blocks; all but the first share their relay parent."""
    every: Positive = 1
    """Relay blocks from one turn of the parachain to the next."""
    relay_parent_lag: Count = 0
    """Relay blocks that the relay parent stands behind the newest one."""

    @model_validator(mode="after")
    def _changes_ascend(self) -> "Subscriber":
        blocks = [change.at_block for change in self.changes]
        if any(later <= earlier for earlier, later in pairwise(blocks)):
            raise ValueError("changes must ascend by at_block, each block once")
        return self


class Scenario(Model):
    """A whole network and what happens in it."""

    name: Text
    description: str = ""
    seed: Text
    relay_blocks: Positive
    segment_length: Positive = 100
    """Relay blocks per segment of the history: each starts at a checkpoint of every chain and can be verified alone."""
    relay: RelaySettings = RelaySettings()
    publishers: tuple[PublisherGroup, ...] = ()
    subscribers: tuple[Subscriber, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> "Scenario":
        published = frozenset(self._listed_once("publishers", (group.paras for group in self.publishers)))
        self._listed_once("subscribers", ((subscriber.para,) for subscriber in self.subscribers))
        for at, subscriber in enumerate(self.subscribers):
            place = ("subscribers", at)
            for wanted in subscriber.subscribe:
                _refuse_unknown((*place, "subscribe"), wanted.publishers, published)
            for number, change in enumerate(subscriber.changes):
                for wanted in change.subscribe:
                    _refuse_unknown((*place, "changes", number, "subscribe"), wanted.publishers, published)
            for number, load in enumerate(subscriber.load):
                _refuse_unknown((*place, "load", number, "senders"), load.senders, published)
            for number, order in enumerate(subscriber.orders):
                _refuse_unknown((*place, "orders", number, "publisher"), (order.publisher,), published)
        return self

    def _listed_once(self, field: str, groups: Iterable[tuple[ParaId, ...]]) -> list[ParaId]:
        seen: list[ParaId] = []
        for at, paras in enumerate(groups):
            for para in paras:
                if para in seen:
                    raise Misplaced((field, at), f"para {para} stands there more than once")
                seen.append(para)
        return seen

    def document(self) -> dict[str, Any]:
        """What a file that describes this scenario holds, without what says no more than a default."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def group_of(self, para: ParaId) -> PublisherGroup | None:
        """The group that a publisher belongs to."""
        return next((group for group in self.publishers if para in group.paras), None)

    def publisher_ids(self) -> tuple[ParaId, ...]:
        """Every publisher, ascending."""
        return tuple(sorted(para for group in self.publishers for para in group.paras))

    def items(self, subscriptions: Iterable[Subscription]) -> dict[ParaId, tuple[PubsubKey, ...]]:
        """What subscriptions ask for: publishers ascending, keys ascending and each once (PS-30)."""
        found: dict[ParaId, set[PubsubKey]] = {}
        for subscription in subscriptions:
            for para in self._select(subscription.publishers):
                group = self.group_of(para)
                held = group.keys if group is not None else 0
                wanted = held if subscription.keys == "all" else subscription.keys
                indexes = range(subscription.first_key, min(subscription.first_key + wanted, held))
                keys = found.setdefault(para, set())
                keys.update(published_key(para, index) for index in indexes)
                keys.update(missing_key(para, index) for index in range(subscription.missing_keys))
        return {para: tuple(sorted(found[para])) for para in sorted(found)}

    def _select(self, publishers: tuple[ParaId, ...] | str) -> tuple[ParaId, ...]:
        if isinstance(publishers, tuple):
            return publishers
        threshold = self.relay.system_para_threshold
        wanted = {"all": (True, False), "system": (True,), "public": (False,)}[publishers]
        return tuple(para for para in self.publisher_ids() if (para < threshold) in wanted)


def published_key(para: ParaId, index: int) -> PubsubKey:
    """Key `index` of a scenario's publisher."""
    return key_from_data(b"%d/%d" % (para, index))


def missing_key(para: ParaId, index: int) -> PubsubKey:
    """A key that no publisher of a scenario ever writes."""
    return key_from_data(b"%d/never/%d" % (para, index))


def _refuse_unknown(place: tuple[str | int, ...], paras: tuple[ParaId, ...] | str, known: frozenset[ParaId]) -> None:
    for para in paras if isinstance(paras, tuple) else ():
        if para not in known:
            raise Misplaced(place, f"{para} is no publisher of this scenario")
