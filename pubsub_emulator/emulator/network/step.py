"""The result of a network's step, and what is kept to undo it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pubsub_emulator.emulator.network.parachain import Parachain
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.relay.chain import RelaySnapshot
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.executive import Block, Extrinsic
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec


class UnknownParachain(PubsubError):
    """The network has no parachain with this id."""


def unknown_parachain(para: int, known: Iterable[ParaId]) -> UnknownParachain:
    """The error for `para` in a network of the `known` parachains."""
    return UnknownParachain(f"there is no parachain {para}; there are {', '.join(map(str, known)) or 'none'}")


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step: the relay block, and every candidate judged for it, in order."""

    number: RelayBlockNumber
    block: Block
    records: tuple[BlockRecord, ...]
    parachains: tuple[ParaId, ...]
    """All parachains of the network."""
    idle: Mapping[ParaId, str] = field(default_factory=dict)
    """Parachains that could not build in their turn, each with the reason."""

    def __repr__(self) -> str:
        refused = f", {len(self.refused)} refused" if self.refused else ""
        return f"<Step: relay block {self.number}, {len(self.records)} candidates{refused}>"

    @property
    def events(self) -> tuple[Event, ...]:
        """The relay block's events."""
        return tuple(record.event for record in self.block.events)

    def deliveries(self, para: int) -> tuple[Delivery, ...]:
        """The deliveries to a parachain in this step. Raises `UnknownParachain`."""
        if para not in self.parachains:
            raise unknown_parachain(para, self.parachains)
        outcomes = (record.outcome for record in self.records if record.chain == para)
        return tuple(delivery for outcome in outcomes if outcome is not None for delivery in outcome.deliveries)

    @property
    def refused(self) -> tuple[BlockRecord, ...]:
        """The invalid candidates."""
        return tuple(record for record in self.records if record.refusal is not None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A network at one moment. It shares its data with the network, so it is cheap."""

    relay: RelaySnapshot
    parachains: tuple[Parachain, ...]
    extrinsics: tuple[Extrinsic, ...]
    offered: tuple[bytes, ...] = ()
    ordered: Mapping[ParaId, RuntimeSpec] = field(default_factory=dict)
