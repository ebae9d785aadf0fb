"""The traffic of a scenario in a relay block: a pure function of both, also for a network that was restored."""

from dataclasses import dataclass

from pubsub_emulator.collator.draws import Draws
from pubsub_emulator.emulator.scenario.model import Load, PublisherGroup, Scenario, published_key
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber


@dataclass(frozen=True, slots=True)
class Publication:
    """One key that a publisher sends to the relay chain."""

    key: PubsubKey
    value: bytes
    ttl: int


def publications(scenario: Scenario, group: PublisherGroup, para: ParaId, block: RelayBlockNumber) -> list[Publication]:
    """The keys that a publisher sends while `block` is built: new keys first, then updates."""
    if not _active(group, block):
        return []
    stream = Draws(scenario.seed.encode(), f"publisher/{para}/block/{block}")
    filled = _filled(group, block)
    first = range(filled, min(filled + group.fill_per_block, group.keys))
    updated = stream.places(filled, stream.share(filled, group.update_rate))
    sizes, lifetimes = group.sizes(), group.ttls()
    return [
        Publication(
            published_key(para, index), stream.take(stream.between(sizes.min, sizes.max)), stream.choice(lifetimes)
        )
        for index in (*first, *updated)
    ]


def deletions(scenario: Scenario, group: PublisherGroup, para: ParaId, block: RelayBlockNumber) -> list[PubsubKey]:
    """Keys that a publisher deletes in `block`."""
    filled = _filled(group, block)
    if not _active(group, block) or not group.delete_rate:
        return []
    stream = Draws(scenario.seed.encode(), f"publisher/{para}/deletes/{block}")
    return [published_key(para, index) for index in stream.places(filled, stream.share(filled, group.delete_rate))]


def loads(load: tuple[Load, ...], block: RelayBlockNumber) -> list[Load]:
    """The loads that are active in `block`."""
    return [each for each in load if each.first_block <= block <= each.last_block]


def message(scenario: Scenario, label: str, size: int) -> bytes:
    """A meaningless message of `size` bytes: one hash, repeated."""
    word = Draws(scenario.seed.encode(), label).take(32)
    return (word * (size // 32 + 1))[:size]


def _active(group: PublisherGroup, block: RelayBlockNumber) -> bool:
    return group.first_block <= block and (group.last_block is None or block <= group.last_block)


def _filled(group: PublisherGroup, block: RelayBlockNumber) -> int:
    """The number of keys published before `block`."""
    return min(max(block - group.first_block, 0) * group.fill_per_block, group.keys)
