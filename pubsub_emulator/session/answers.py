"""The answers of a node's methods for sessions, as typed values."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, StrictBool, TypeAdapter

from pubsub_emulator.client.answers import Answer, Bytes, Count, Hash, Para, Text
from pubsub_emulator.emulator.scenario.model import missing_key, published_key
from pubsub_emulator.primitives.pubsub import Infinite, TimedOut, TtlState, ValidFor
from pubsub_emulator.primitives.types import PubsubKey
from pubsub_emulator.runtime.parachain.ledger import BlockLedger, PublisherLedger

MOST_NAMES: Final = 1 << 18
"""The maximum number of keys whose names are known without being typed."""


def _freshness(value: object) -> TtlState | None:
    """Return the lifetime of an entry from its JSON form. Raises `ValueError` for another form."""
    match value:
        case None:
            return None
        case "Infinite":
            return Infinite()
        case "TimedOut":
            return TimedOut()
        case {"ValidFor": int(blocks)}:
            return ValidFor(blocks)
    raise ValueError("no state of an entry's lifetime")


Freshness = Annotated[TtlState | None, BeforeValidator(_freshness)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ParachainSetting(Answer):
    """A parachain of the network. A parachain on demand publishes and does not subscribe."""

    para: Para
    on_demand: StrictBool


class Origin(Answer):
    """The state that a chain continues from."""

    chain: Text
    root: Hash
    source: Text | None


class PublisherSetting(Answer):
    """A publisher of the scenario, and how many keys it has."""

    para: Para
    keys: Count


class Setting(Answer):
    """The facts of a network that do not change."""

    name: Text
    relay_blocks: Count
    """The number of relay blocks of the scenario."""
    publishers: tuple[PublisherSetting, ...]
    missing_keys: Count
    """Keys of each publisher that are subscribed and never published."""
    accounts: StrictBool
    """Whether the chains have the profile with accounts."""
    first: Count
    """The height of the first relay block, above 0 if the relay chain is forked."""
    max_value_length: Count
    parachains: tuple[ParachainSetting, ...]
    forks: tuple[Origin, ...]

    def key_names(self) -> dict[PubsubKey, str]:
        """Return the names of the first `MOST_NAMES` keys.

        The keys of the publishers come first, then the subscribed keys that are never published.
        """
        return dict(islice(self._named_keys(), MOST_NAMES))

    def _named_keys(self) -> Iterator[tuple[PubsubKey, str]]:
        """Yield all keys with their names. There may be very many."""
        for group in self.publishers:
            for index in range(group.keys):
                yield published_key(group.para, index), f"{group.para}/{index}"
        for group in self.publishers:
            for index in range(self.missing_keys):
                yield missing_key(group.para, index), f"{group.para}/never/{index}"


class ParachainStatus(Answer):
    """A parachain with its newest block."""

    para: Para
    number: Count
    hash: Hash
    subscribed_keys: Count
    collators: Count
    cheating: Count
    """The number of collators that cheat."""
    waiting: Count
    """The number of messages that wait to be sent."""


class NewestRuntime(Answer):
    """A parachain's newest runtime."""

    code: Bytes
    in_force: StrictBool


class Built(Answer):
    """A parachain block that was judged."""

    para: Para
    number: Count
    hash: Hash
    verdict: Text | None
    """The verdict by which the block was refused, `None` for a valid block."""
    evidence: tuple[Text, ...]
    strategy: Text | None
    """The strategies of the collator that cheated, `None` if it did not."""
    delivered: Count
    """The number of deliveries, removals included."""
    removed: Count
    """The number of deliveries that report a removed key."""
    stopped: StrictBool
    """Whether the walk stopped at the budget."""


class Idle(Answer):
    """A parachain that could not build in its turn."""

    para: Para
    why: Text


class Failure(Answer):
    """A message to the relay chain that failed."""

    para: Para
    instruction: Count | None
    """The index of the instruction that failed, `None` if the message was not executed at all."""
    why: Text


class RelayBlockOutcome(Answer):
    """A relay block with all that was built for it."""

    number: Count
    hash: Hash
    blocks: tuple[Built, ...]
    failures: tuple[Failure, ...]
    idle: tuple[Idle, ...]

    @property
    def valid(self) -> tuple[Built, ...]:
        """The parachain blocks that the relay block included."""
        return tuple(block for block in self.blocks if block.verdict is None)

    @property
    def refused(self) -> tuple[Built, ...]:
        """The parachain blocks that were refused."""
        return tuple(block for block in self.blocks if block.verdict is not None)


class DeliveredKey(Answer):
    """A delivery to a subscriber. The value is `None` if the key was removed."""

    para: Para
    number: Count
    """The height of the subscriber's block that delivered it."""
    included_at: Count
    """The height of the relay block that included that block."""
    publisher: Para
    key: Hash
    value: Bytes | None
    ttl_state: Freshness


class CollatorStatus(Answer):
    """A collator of a parachain."""

    collator: Count
    key: Bytes
    strategies: tuple[Text, ...]
    rate: Share
    """The share of its turns in which the collator tries its strategies."""


class Portion(Answer):
    """The bytes of one publisher in the ledger of a block."""

    para: Para
    unchanged: StrictBool
    complete: StrictBool
    top_path_bytes: Count
    child_node_bytes: Count
    value_bytes: Count
    cache_charges: Count
    row_charges: Count
    cached_bytes: Count


class Ledger(Answer):
    """The bytes of a block by their use."""

    block: Hash
    number: Count
    relay_parent: Count
    budget: Count
    used: Count
    messages_bytes: Count
    static_bytes: Count
    map_charges: Count
    proof_bytes: Count
    proof_nodes: Count
    own_state_bytes: Count
    cache_state_bytes: Count
    extrinsics_state_bytes: Count
    ref_time: Count
    publishers: tuple[Portion, ...]

    def ledger(self) -> BlockLedger:
        """Return the ledger without the block's hash and heights."""
        figures = self.model_dump(exclude={"block", "number", "relay_parent"})
        publishers = tuple(PublisherLedger(**row) for row in figures.pop("publishers"))
        return BlockLedger(**figures, publishers=publishers)


class Counted(Answer):
    """The number of a parachain's collators."""

    collators: Count


class Chosen(Counted):
    """The collator that cheats from now on, and the number of all collators."""

    collator: Count
    """The collator's number in the order of turns, from 1 on."""


class Publishers(Answer):
    """Everyone who is registered or has published, as JSON."""

    publishers: list[dict[str, object]]


BLOCK: Final[TypeAdapter[RelayBlockOutcome | None]] = TypeAdapter(RelayBlockOutcome | None)
CANDIDATES: Final[TypeAdapter[list[dict[str, object]] | None]] = TypeAdapter(
    list[dict[str, object]] | None
)
CHOSEN: Final = TypeAdapter(Chosen)
COLLATORS: Final = TypeAdapter(tuple[CollatorStatus, ...])
COUNTED: Final = TypeAdapter(Counted)
DELIVERIES: Final = TypeAdapter(tuple[DeliveredKey, ...])
LEDGER: Final[TypeAdapter[Ledger | None]] = TypeAdapter(Ledger | None)
PARACHAINS: Final = TypeAdapter(tuple[ParachainStatus, ...])
PUBLISHERS: Final = TypeAdapter(Publishers)
RUNTIME: Final = TypeAdapter(NewestRuntime)
SETTING: Final = TypeAdapter(Setting)
