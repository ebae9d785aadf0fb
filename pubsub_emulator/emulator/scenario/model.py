"""The models of scenarios, which are immutable and checked when they are created.

The string below each field is its documentation. Sizes are in bytes and times in relay blocks.
Shares are stored as millionths, so that rounding does not depend on the machine.
"""

from collections.abc import Iterable
from itertools import chain as chained
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
from pubsub_emulator.emulator.network.actions import Act, RelayKey
from pubsub_emulator.files.settings import Model
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import U32_MAX, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.pallet_subscriber.config import (
    MAX_EXTRA_KEYS,
    MAX_RELAY_PARENT_OFFSET,
)

SYSTEM_PARA_THRESHOLD: Final = 2000
"""Lower ids are system parachains, unless the scenario sets another threshold (PS-7)."""


def _millionths(value: object) -> object:
    """Convert a share from 0 to 1 to millionths."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a share is a number from 0 to 1")  # noqa: TRY004  # pydantic reports ValueError as a finding
    if not 0 <= value <= 1:
        raise ValueError(f"a share is a number from 0 to 1, not {value}")
    return round(value * MILLION)


def _share(millionths: int) -> float:
    return millionths / MILLION


def _network_name(name: str) -> str:
    if not all(letter.isalnum() or letter in "-_." for letter in name) or name.startswith("."):
        raise ValueError(
            f"a scenario's name is made of letters, digits, '-', '_' and '.', not {name!r}"
        )
    return name


Share = Annotated[
    int,
    BeforeValidator(_millionths),
    PlainSerializer(_share, when_used="json"),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
]
Count = Annotated[int, Field(strict=True, ge=0, le=U32_MAX)]
Offset = Annotated[int, Field(strict=True, ge=0, le=MAX_RELAY_PARENT_OFFSET)]
Positive = Annotated[int, Field(strict=True, ge=1, le=U32_MAX)]
Block = Annotated[RelayBlockNumber, Field(strict=True, ge=1, le=U32_MAX)]
Para = Annotated[ParaId, Field(strict=True, ge=1, le=U32_MAX)]
Text = Annotated[str, Field(strict=True, min_length=1)]
Flag = Annotated[bool, Field(strict=True)]
Name = Annotated[Text, AfterValidator(_network_name)]


class Span(Model):
    """A range of sizes in bytes, including both ends."""

    min: Count
    """The smallest size in bytes."""
    max: Count
    """The largest size in bytes."""

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
    """Parachains with lower ids are system parachains, which need no registration (PS-7)."""
    ttl_policy: Literal["scan", "expiry_index"] = "scan"
    """How expired entries are found: by a scan of all entries, or with an index (PS-19)."""
    max_value_length: Positive | None = None
    """The maximum size of a value in bytes; 2,048 by default (PS-8)."""
    max_stored_keys: Positive | None = None
    """The maximum number of keys of a publisher; 1,024 by default (PS-8)."""
    max_total_storage_size: Positive | None = None
    """The maximum size of a publisher in bytes, 32 + value per key; 1,048,576 by default (PS-8)."""
    max_publishers: Positive | None = None
    """The maximum number of registered publishers; 1,000 by default."""
    publisher_deposit: Count | None = None
    """The deposit of a registration in plancks; 1,000,000,000,000 by default."""
    max_ttl_scans_per_idle: Positive | None = None
    """The maximum number of entries examined for expiry in a block; 500 by default (PS-19)."""
    max_downward_message_size: Positive | None = None
    """The size of the largest downward message in bytes; 262,144 by default."""
    max_downward_bytes: Positive | None = None
    """The bytes of downward messages that may wait for a parachain, by default as many as fit into
    the smallest block, up to 1,048,576. More wait as hashes (UP-9).
    """
    max_horizontal_message_size: Positive | None = None
    """The size of the largest horizontal message in bytes; 102,400 by default."""
    max_channel_bytes: Positive | None = None
    """The bytes that may wait in a channel; 102,400 by default. More than a block's share wait as
    hashes (UP-9).
    """
    missed_slots: Share = 0
    """The share of relay blocks before which a slot passes without a block."""


class PublisherGroup(Model):
    """Parachains that publish in the same way, each with its own keys."""

    paras: Annotated[tuple[Para, ...], Field(min_length=1)]
    """The ids of the parachains; each can be in one group only."""
    keys: Positive
    """The number of keys of each publisher; key i of para p is `key_from_data(b"p/i")`."""
    value_size: Span | Count = 64
    """The size of each value in bytes, or a range from which each publish draws."""
    update_rate: Share = 0
    """The share of the keys updated in each relay block."""
    delete_rate: Share = 0
    """The share of the keys deleted in each relay block; the next update publishes a deleted key
    again.
    """
    ttl: Count | Annotated[tuple[Count, ...], Field(min_length=1)] = 0
    """The relay blocks for which an entry is valid, 0 for ever; from a list, each publish draws
    one.
    """
    first_block: Block = RelayBlockNumber(1)
    """The first relay block in which the group publishes."""
    last_block: Block | None = None
    """The last relay block in which the group publishes."""
    fill_per_block: Positive = 50
    """The number of new keys published in each relay block from `first_block` on."""
    offboard_at: Block | None = None
    """The relay block that schedules the offboarding, for the next session change (PS-11)."""

    def sizes(self) -> Span:
        """Return the value sizes as a range."""
        if isinstance(self.value_size, Span):
            return self.value_size
        return Span(min=self.value_size, max=self.value_size)

    def ttls(self) -> tuple[int, ...]:
        """Return the lifetimes to draw from."""
        return self.ttl if isinstance(self.ttl, tuple) else (self.ttl,)


class SubscriptionSettings(Model):
    """A selection of keys of some publishers."""

    publishers: (
        Annotated[tuple[Para, ...], Field(min_length=1)] | Literal["all", "system", "public"]
    )
    """The publishers: ids, or `all`, `system` parachains, or all others (`public`)."""
    keys: Positive | Literal["all"] = "all"
    """The number of keys of each; with `all`, `system` and `public`, publishers may have fewer."""
    first_key: Count = 0
    """The index of the first key."""
    missing_keys: Count = 0
    """The number of additional keys that are never published, whose absence must be proven."""


class CollatorSettings(Model):
    """A collator, which is honest unless it has strategies."""

    strategies: tuple[Text, ...] = ()
    """The strategies from which the collator draws when it cheats; `pubsub fuzz --list` prints
    them.
    """
    rate: Share = MILLION
    """The share of the collator's turns in which it cheats."""

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
    """The number of downward messages in each relay block."""
    downward_size: Count = 1024
    """The size of each downward message in bytes."""
    senders: tuple[Para, ...] = ()
    """Publishers that send one horizontal message each per relay block, which is the maximum."""
    horizontal_size: Count = 1024
    """The size of each horizontal message in bytes."""

    @model_validator(mode="after")
    def _ordered(self) -> "Load":
        if self.first_block > self.last_block:
            raise ValueError(f"first_block {self.first_block} exceeds last_block {self.last_block}")
        return self


class SubscriptionChange(Model):
    """New subscriptions that replace the old ones from a relay block on (PS-63)."""

    at_block: Block
    """The relay block that sends the change."""
    subscribe: tuple[SubscriptionSettings, ...]
    """The subscriptions from then on."""


class Order(Model):
    """A root call about one publisher that governance sends to a subscriber (PS-67)."""

    at_block: Block
    """The relay block that sends the call."""
    call: Literal["clear_publisher_cache", "redeliver", "enable_publisher"]
    """The call."""
    publisher: Para
    """The publisher."""


class Subscriber(Model):
    """A parachain that reads published keys."""

    para: Para
    """The parachain's id."""
    name: Text = "subscriber"
    """The name in tables, which must be unique."""
    subscribe: tuple[SubscriptionSettings, ...]
    """The first subscriptions."""
    extra_keys: Annotated[tuple[RelayKey, ...], Field(max_length=MAX_EXTRA_KEYS)] = ()
    """Relay keys that blocks prove besides the subscriptions: `Mmr.RootHash`, `Paras.Heads(2000)`,
    `System.Account(5Grw…)`, `0x…`, or `child:STORAGE_KEY/KEY` for a key of any child trie (UP-2).
    """
    charge_extra_keys: Flag = False
    """Whether the proof of `extra_keys` is charged to the budget of pub-sub (UP-13)."""
    changes: tuple[SubscriptionChange, ...] = ()
    """Later subscriptions, in ascending order of `at_block`."""
    collators: Annotated[tuple[CollatorSettings, ...], Field(min_length=1)] = Field(
        default_factory=lambda: (CollatorSettings(), CollatorSettings())
    )
    """The authors of blocks in the order of their turns; two honest ones by default."""
    load: tuple[Load, ...] = ()
    """Messages that the parachain receives, which leave less room for proofs."""
    orders: tuple[Order, ...] = ()
    """Calls that governance sends to the parachain."""
    cache: Literal["nodes", "none", "slots"] = "slots"
    """The cache policy (PS-69)."""
    handler: Literal["observe", "store"] = "observe"
    """The handler of deliveries: `store` writes the newest value to storage."""
    max_pov_size: Positive = 10 * 1024 * 1024
    """The size of the largest block in bytes, of which 85 % are for messages and proofs (PS-50)."""
    reserve_minimum: Flag = False
    """Whether messages leave 1 MiB of that for proofs, which small blocks need (PS-50)."""
    max_cache_bytes: Positive | None = None
    """The maximum of cached bytes per publisher with policy `nodes`; 4,194,304 by default (PS-62).
    """
    meter_cache_reads: Flag = True
    """Whether reading cached nodes is charged (PS-45)."""
    max_trie_depth: Count | None = 16
    """The maximum number of child nodes on a path; deeper publishers are disabled; 0 is no limit
    (PS-68).
    """
    blocks_per_relay_block: Positive = 1
    """The number of parachain blocks per turn, which share their relay parent."""
    every: Positive = 1
    """The number of relay blocks between turns."""
    relay_parent_lag: Count = 0
    """The number of relay blocks by which the relay parent is older than the newest one."""
    relay_parent_offset: Offset = 0
    """The number of the relay parent's descendants that blocks show with their seals, by which the
    relay parent is older as well (UP-12).
    """

    @model_validator(mode="after")
    def _changes_ascend(self) -> "Subscriber":
        blocks = [change.at_block for change in self.changes]
        if any(later <= earlier for earlier, later in pairwise(blocks)):
            raise ValueError("changes must ascend by at_block, each block once")
        return self


class Acts(Model):
    """Actions before the traffic of a relay block."""

    at_block: Block
    """The first relay block after the acts."""
    do: Annotated[tuple[Annotated[Act, Field(discriminator="kind")], ...], Field(min_length=1)]
    """The acts, in order."""


class Scenario(Model):
    """A network and what happens in it."""

    name: Name
    """The network's name in its history: letters, digits, `-`, `_` and `.`."""
    description: str = ""
    """A description for readers."""
    seed: Text
    """The seed of all draws."""
    relay_blocks: Positive
    """The length of the run in relay blocks."""
    segment_length: Positive = 100
    """The number of relay blocks per segment of the history; segments can be verified separately.
    """
    accounts: Flag = False
    """Whether all chains have accounts and accept signed extrinsics, like those of `pubsub serve`.
    """
    relay: RelaySettings = Field(default_factory=RelaySettings)
    """The relay chain."""
    publishers: tuple[PublisherGroup, ...] = ()
    """The groups of publishers."""
    subscribers: tuple[Subscriber, ...] = ()
    """The subscribers."""
    acts: tuple[Acts, ...] = ()
    """Single acts at their blocks, in addition to the traffic."""

    def document(self) -> dict[str, object]:
        """Return the content of a file with this scenario, without defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def group_of(self, para: ParaId) -> PublisherGroup | None:
        """Return the group that a publisher belongs to, or `None`."""
        return next((group for group in self.publishers if para in group.paras), None)

    def names(self) -> dict[ParaId, str]:
        """Return the names that the file gives to chains."""
        return {
            subscriber.para: subscriber.name
            for subscriber in self.subscribers
            if "name" in subscriber.model_fields_set
        }

    def publisher_ids(self) -> tuple[ParaId, ...]:
        """Return the ids of all publishers in ascending order."""
        return tuple(sorted(chained.from_iterable(group.paras for group in self.publishers)))

    def items(
        self, subscriptions: Iterable[SubscriptionSettings]
    ) -> dict[ParaId, tuple[PubsubKey, ...]]:
        """Return the keys that subscriptions select, by publisher.

        Publishers and keys are in ascending order and distinct (PS-30).
        """
        selected: dict[ParaId, set[PubsubKey]] = {}
        for subscription in subscriptions:
            for para in self.select(subscription.publishers):
                group = self.group_of(para)
                count = group.keys if group is not None else 0
                wanted = count if subscription.keys == "all" else subscription.keys
                first = subscription.first_key
                keys = selected.setdefault(para, set())
                for index in range(first, min(first + wanted, count)):
                    keys.add(published_key(para, index))
                for index in range(subscription.missing_keys):
                    keys.add(missing_key(para, index))
        return {para: tuple(sorted(selected[para])) for para in sorted(selected)}

    def select(self, publishers: tuple[ParaId, ...] | str) -> tuple[ParaId, ...]:
        """Return the publishers that a subscription names: ids, `all`, `system` or `public`."""
        if isinstance(publishers, tuple):
            return publishers
        threshold = self.relay.system_para_threshold
        match publishers:
            case "system":
                return tuple(para for para in self.publisher_ids() if para < threshold)
            case "public":
                return tuple(para for para in self.publisher_ids() if para >= threshold)
            case _:
                return self.publisher_ids()


def published_key(para: ParaId, index: int) -> PubsubKey:
    """Return key `index` of a scenario's publisher."""
    return key_from_data(b"%d/%d" % (para, index))


def missing_key(para: ParaId, index: int) -> PubsubKey:
    """Return a key that no publisher of a scenario ever writes."""
    return key_from_data(b"%d/never/%d" % (para, index))
