"""The models of scenarios, frozen and checked on construction; the docstring of each field says what it means.

Sizes are bytes, times are relay blocks, shares are kept as millionths, so that no rounding depends on a machine.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from pubsub_emulator.collator.cheats import STRATEGIES, no_strategy
from pubsub_emulator.collator.draws import MILLION
from pubsub_emulator.emulator.network.actions import Act
from pubsub_emulator.emulator.settings import Model
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import U32_MAX, ParaId, PubsubKey, RelayBlockNumber

SYSTEM_PARA_THRESHOLD: Final = 2000
"""Ids below it are system parachains unless the scenario says otherwise (PS-7)."""


def _millionths(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a share is a number from 0 to 1")  # noqa: TRY004  # pydantic reports ValueError as a finding
    if not 0 <= value <= 1:
        raise ValueError(f"a share is a number from 0 to 1, not {value}")
    return round(value * MILLION)


def _share(millionths: int) -> float:
    return millionths / MILLION


def _network_name(name: str) -> str:
    if not all(letter.isalnum() or letter in "-_." for letter in name) or name.startswith("."):
        raise ValueError(f"a scenario's name is made of letters, digits, '-', '_' and '.', not {name!r}")
    return name


Share = Annotated[
    int,
    BeforeValidator(_millionths),
    PlainSerializer(_share, when_used="json"),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
]
Count = Annotated[int, Field(strict=True, ge=0, le=U32_MAX)]
Positive = Annotated[int, Field(strict=True, ge=1, le=U32_MAX)]
Block = Annotated[RelayBlockNumber, Field(strict=True, ge=1, le=U32_MAX)]
Para = Annotated[ParaId, Field(strict=True, ge=1, le=U32_MAX)]
Text = Annotated[str, Field(strict=True, min_length=1)]
Flag = Annotated[bool, Field(strict=True)]
Name = Annotated[Text, AfterValidator(_network_name)]


class Span(Model):
    """A range of sizes in bytes, both ends included."""

    min: Count
    """Bytes of the smallest."""
    max: Count
    """Bytes of the largest."""

    @model_validator(mode="after")
    def _ordered(self) -> "Span":
        if self.min > self.max:
            raise ValueError(f"min {self.min} exceeds max {self.max}")
        return self


class RelaySettings(Model):
    """The relay chain's configuration, by default the runtime's (PS-8, PS-15, PS-19)."""

    session_length: Positive = 50
    """Relay blocks per session."""
    system_para_threshold: Count = SYSTEM_PARA_THRESHOLD
    """Ids below it are system parachains, which need no registration (PS-7)."""
    ttl_policy: Literal["scan", "expiry_index"] = "scan"
    """How expired entries are found: by a scan of all entries, or with an index (PS-19)."""
    max_value_length: Positive | None = None
    """Most bytes of a value; 2,048 by default (PS-8)."""
    max_stored_keys: Positive | None = None
    """Most keys of a publisher; 1,024 by default (PS-8)."""
    max_total_storage_size: Positive | None = None
    """Most bytes of a publisher, 32 + value per key; 1,048,576 by default (PS-8)."""
    max_publishers: Positive | None = None
    """Most registered publishers; 1,000 by default."""
    publisher_deposit: Count | None = None
    """Deposit of a registration in plancks; 1,000,000,000,000 by default."""
    max_ttl_scans_per_idle: Positive | None = None
    """Most entries examined for expiry in a block; 500 by default (PS-19)."""
    missed_slots: Share = 0
    """Share of relay blocks before which a slot passes without a block."""


class PublisherGroup(Model):
    """Parachains that publish in the same way, each with its own keys."""

    paras: Annotated[tuple[Para, ...], Field(min_length=1)]
    """Their ids, each in one group only."""
    keys: Positive
    """Number of keys of each; key i of para p is `key_from_data(b"p/i")`."""
    value_size: Span | Count = 64
    """Bytes of each value, or a range from which each publish draws."""
    update_rate: Share = 0
    """Share of the keys updated in each relay block."""
    delete_rate: Share = 0
    """Share of the keys deleted in each relay block; the next update publishes a deleted key again."""
    ttl: Count | Annotated[tuple[Count, ...], Field(min_length=1)] = 0
    """Relay blocks for which an entry is valid, 0 forever; from several, each publish draws one."""
    first_block: Block = RelayBlockNumber(1)
    """The first relay block in which it publishes."""
    last_block: Block | None = None
    """The last relay block in which it publishes."""
    fill_per_block: Positive = 50
    """New keys published in each relay block, from `first_block` on."""
    offboard_at: Block | None = None
    """The relay block that schedules its offboarding, for the next session change (PS-11)."""

    def sizes(self) -> Span:
        """The value sizes as a range."""
        return self.value_size if isinstance(self.value_size, Span) else Span(min=self.value_size, max=self.value_size)

    def ttls(self) -> tuple[int, ...]:
        """The lifetimes to draw from."""
        return self.ttl if isinstance(self.ttl, tuple) else (self.ttl,)


class SubscriptionSettings(Model):
    """Keys of some publishers."""

    publishers: Annotated[tuple[Para, ...], Field(min_length=1)] | Literal["all", "system", "public"]
    """Whose keys: ids, or all publishers, system parachains, or the others."""
    keys: Positive | Literal["all"] = "all"
    """Number of keys of each publisher. With `all`, `system` and `public`, those with fewer keys give all."""
    first_key: Count = 0
    """Index of the first key."""
    missing_keys: Count = 0
    """Additional keys that nobody publishes, whose absence must be proven."""


class CollatorSettings(Model):
    """A collator; honest unless it has strategies."""

    strategies: tuple[Text, ...] = ()
    """Strategies from which it draws when it cheats; `pubsub fuzz --list` has the names."""
    rate: Share = MILLION
    """Share of its turns in which it cheats."""

    @field_validator("strategies")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in STRATEGIES:
                raise ValueError(no_strategy(name))
        return names


class Load(Model):
    """Messages that a subscriber receives in each relay block of a period."""

    first_block: Block
    """The first relay block of the period."""
    last_block: Block
    """The last relay block of the period."""
    downward_messages: Count = 0
    """Downward messages in each relay block."""
    downward_size: Count = 1024
    """Bytes of each downward message."""
    senders: tuple[Para, ...] = ()
    """Publishers that send one horizontal message each, the most of a parachain block."""
    horizontal_size: Count = 1024
    """Bytes of each horizontal message."""

    @model_validator(mode="after")
    def _ordered(self) -> "Load":
        if self.first_block > self.last_block:
            raise ValueError(f"first_block {self.first_block} exceeds last_block {self.last_block}")
        return self


class SubscriptionChange(Model):
    """New subscriptions in place of the old ones, from a relay block on (PS-63)."""

    at_block: Block
    """The relay block that sends the change."""
    subscribe: tuple[SubscriptionSettings, ...]
    """Its subscriptions from then on."""


class Order(Model):
    """A root call that governance sends a subscriber, about one publisher (PS-67)."""

    at_block: Block
    """The relay block that sends it."""
    call: Literal["clear_publisher_cache", "redeliver", "enable_publisher"]
    """The call."""
    publisher: Para
    """The publisher that it is about."""


class Subscriber(Model):
    """A parachain that reads what others publish."""

    para: Para
    """Its id."""
    name: Text = "subscriber"
    """Its name in tables; names must differ."""
    subscribe: tuple[SubscriptionSettings, ...]
    """Its first subscriptions."""
    changes: tuple[SubscriptionChange, ...] = ()
    """Later subscriptions, ascending by `at_block`."""
    collators: Annotated[tuple[CollatorSettings, ...], Field(min_length=1)] = Field(
        default_factory=lambda: (CollatorSettings(), CollatorSettings())
    )
    """Authors of its blocks in turn; two honest ones by default."""
    load: tuple[Load, ...] = ()
    """Messages that it receives, which leave less room for proofs."""
    orders: tuple[Order, ...] = ()
    """Calls that governance sends it."""
    cache: Literal["nodes", "none", "slots"] = "slots"
    """The cache policy (PS-69)."""
    handler: Literal["observe", "store"] = "observe"
    """The handler of deliveries: `store` writes the newest value to storage."""
    max_pov_size: Positive = 10 * 1024 * 1024
    """Bytes of the largest block, of which 85 % are for messages and proofs (PS-50)."""
    reserve_minimum: Flag = False
    """Whether messages leave 1 MiB of that for proofs, which small blocks need (PS-50)."""
    max_cache_bytes: Positive | None = None
    """Most bytes that policy `nodes` caches of a publisher; 4,194,304 by default (PS-62)."""
    meter_cache_reads: Flag = True
    """Whether reading cached nodes is charged (PS-45)."""
    max_trie_depth: Count | None = 16
    """Most child nodes on a path, beyond which a publisher is disabled; 0 for no limit (PS-68)."""
    blocks_per_relay_block: Positive = 1
    """Parachain blocks per relay block, which share their relay parent."""
    every: Positive = 1
    """Relay blocks between its turns."""
    relay_parent_lag: Count = 0
    """Relay blocks by which its relay parent is older than the newest."""

    @model_validator(mode="after")
    def _changes_ascend(self) -> "Subscriber":
        blocks = [change.at_block for change in self.changes]
        if any(later <= earlier for earlier, later in pairwise(blocks)):
            raise ValueError("changes must ascend by at_block, each block once")
        return self


class Acts(Model):
    """What is done before the traffic of a relay block."""

    at_block: Block
    """The first relay block that is built after it."""
    do: Annotated[tuple[Annotated[Act, Field(discriminator="kind")], ...], Field(min_length=1)]
    """The acts, in order."""


class Scenario(Model):
    """A whole network and what happens in it."""

    name: Name
    """The network's name in its history: letters, digits, `-`, `_` and `.`."""
    description: str = ""
    """For readers."""
    seed: Text
    """Every draw follows from it."""
    relay_blocks: Positive
    """The length of the run."""
    segment_length: Positive = 100
    """Relay blocks per segment of the history, which can be verified alone."""
    accounts: Flag = False
    """Whether all chains have accounts and take signed extrinsics, as those of `pubsub serve`."""
    relay: RelaySettings = Field(default_factory=RelaySettings)
    """The relay chain."""
    publishers: tuple[PublisherGroup, ...] = ()
    """Who publishes."""
    subscribers: tuple[Subscriber, ...] = ()
    """Who reads."""
    acts: tuple[Acts, ...] = ()
    """Single acts at their blocks, beside the traffic."""

    def document(self) -> dict[str, object]:
        """The content of a file with this scenario, without defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def group_of(self, para: ParaId) -> PublisherGroup | None:
        """The group that a publisher belongs to."""
        return next((group for group in self.publishers if para in group.paras), None)

    def names(self) -> dict[ParaId, str]:
        """The names of the chains in the file."""
        return {each.para: each.name for each in self.subscribers if "name" in each.model_fields_set}

    def publisher_ids(self) -> tuple[ParaId, ...]:
        """Every publisher, ascending."""
        return tuple(sorted(para for group in self.publishers for para in group.paras))

    def items(self, subscriptions: Iterable[SubscriptionSettings]) -> dict[ParaId, tuple[PubsubKey, ...]]:
        """The items of subscriptions: publishers ascending, keys ascending and distinct (PS-30)."""
        found: dict[ParaId, set[PubsubKey]] = {}
        for subscription in subscriptions:
            for para in self.select(subscription.publishers):
                group = self.group_of(para)
                held = group.keys if group is not None else 0
                wanted = held if subscription.keys == "all" else subscription.keys
                indexes = range(subscription.first_key, min(subscription.first_key + wanted, held))
                keys = found.setdefault(para, set())
                keys.update(published_key(para, index) for index in indexes)
                keys.update(missing_key(para, index) for index in range(subscription.missing_keys))
        return {para: tuple(sorted(found[para])) for para in sorted(found)}

    def select(self, publishers: tuple[ParaId, ...] | str) -> tuple[ParaId, ...]:
        """The publishers that a subscription names."""
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
