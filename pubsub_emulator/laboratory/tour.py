"""The tour: acts on one network, in one process, without anything that is not determined.

The first act publishes and subscribes over the relay chain. Distributions add acts, which follow
its blocks. Everything is determined by the scenario, so the digest is the same on every machine
with the same distributions.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import FunctionType
from typing import Final, NamedTuple

from pubsub_emulator.emulator.network.records import Observer, RelayRecord
from pubsub_emulator.emulator.observers.digest import RunDigest
from pubsub_emulator.emulator.relay.runtime import AddedPallet
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.extension import attribute, extensions
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished

SCENARIO: Final = "oracle"
_LIVE: Final = 16


class TourFailed(PubsubError):
    """An act of the tour had a wrong result, which is a defect of this program."""


class Act(NamedTuple):
    """A part of the tour."""

    title: str
    play: Callable[[], Iterator[str]]
    """Plays the act and yields the lines to print. Raises `TourFailed`."""
    further: str
    """The command to try next."""


class _Published(Observer):
    """Counts the values that are published."""

    def __init__(self) -> None:
        self.count = 0

    def relay_block(self, record: RelayRecord) -> None:
        """Count the events of a block."""
        self.count += sum(isinstance(event, DataPublished) for event in record.events)


class Tour:
    """The network that all acts share, and the digest of their results."""

    def __init__(self, added: tuple[AddedPallet, ...] = ()) -> None:
        self.simulation = Simulation(load_bundled(SCENARIO), added=added)
        self.chain_digest = RunDigest()
        self.network = self.simulation.network
        self.network.observe(self.chain_digest)
        self.published = _Published()
        self.network.observe(self.published)
        self.after_each_block: list[Callable[[], object]] = []
        """Called after each block that is built."""
        self.delivered = 0
        """The number of values that subscribers received, each counted once per subscriber."""
        self.delivered_to: Counter[ParaId] = Counter()
        """The same number by subscriber."""
        self.parts: list[bytes] = []

    def build(self, until: int) -> None:
        """Build relay blocks up to a height."""
        while self.network.number < until:
            step = self.simulation.step()
            for record in step.records:
                if record.outcome is not None:
                    values = sum(
                        delivery.value is not None for delivery in record.outcome.deliveries
                    )
                    self.delivered += values
                    self.delivered_to[record.chain] += values
            for call in self.after_each_block:
                call()

    def digest(self) -> Hash:
        """Return one hash over the chain and the results of all acts so far."""
        return blake2_256(b"".join((self.chain_digest.value, *self.parts)))

    def note(self, *results: object) -> None:
        """Add an act's result to the digest."""
        self.parts.append(blake2_256(repr(results).encode()))

    def relay_chain(self) -> Iterator[str]:
        """Publish and subscribe over the relay chain."""
        self.build(_LIVE)
        published = self.published.count
        yield (
            f"In relay blocks 1 to {_LIVE}, two oracles published {published} prices into tries of"
            " the relay chain."
        )
        shares = [
            f"{self.delivered_to[subscriber.para]} to the {subscriber.name}"
            for subscriber in self.simulation.scenario.subscribers
        ]
        yield (
            f"By pruned storage proofs, {self.delivered} prices were delivered until then:"
            f" {' and '.join(shares)}."
        )
        must(published > 0 and self.delivered > 0, "nothing was delivered")
        self.note("relay", published, self.delivered)


def must(holds: bool, error: str) -> None:
    """Raise `TourFailed` unless a result is right."""
    if not holds:
        raise TourFailed(f"the tour failed: {error}")


def begin(stack: ExitStack) -> tuple[Tour, list[Act]]:
    """Return a tour and its acts, with those of all distributions. `stack` closes what they open.

    Raises `BadExtension`.
    """
    modules = [extension.acts for extension in extensions() if extension.acts]
    added: list[AddedPallet] = []
    for module in modules:
        added += attribute(module, "ADDED", tuple)
    tour = Tour(tuple(added))
    first = Act(
        "Publish and subscribe over the relay chain (RFC-0160)",
        tour.relay_chain,
        "pubsub step oracle",
    )
    acts = [first]
    for module in modules:
        acts += attribute(module, "acts", FunctionType)(tour, stack)
    return tour, acts
