"""The result of a step of a network, and the snapshot that can undo it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pubsub_emulator.emulator.network.parachain import Parachain
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.relay.chain import RelaySnapshot
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.executive import Block, Extrinsic
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec


class UnknownParachain(PubsubError):
    """The id of a parachain that the network does not have."""


def unknown_parachain(para: int, known: Iterable[ParaId]) -> UnknownParachain:
    """Return the error for `para` in a network with the parachains `known`."""
    return UnknownParachain(
        f"there is no parachain {para}. Parachains: {', '.join(map(str, known)) or 'none'}"
    )


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step."""

    number: RelayBlockNumber
    """The height of the relay block."""
    block: Block
    """The relay block."""
    records: tuple[BlockRecord, ...]
    """All candidates judged for the relay block, in order."""
    parachains: tuple[ParaId, ...]
    """All parachains of the network."""
    idle: Mapping[ParaId, str] = field(default_factory=dict)
    """Parachains that could not build a block in their turn, with the reason."""

    def __repr__(self) -> str:
        refused = f", {len(self.refused)} refused" if self.refused else ""
        return (
            f"<Step: relay block {self.number}, {counted(len(self.records), 'candidate')}{refused}>"
        )

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the relay block's events."""
        return tuple(record.event for record in self.block.events)

    def deliveries(self, para: int) -> tuple[Delivery, ...]:
        """Return the deliveries to a parachain in this step. Raises `UnknownParachain`."""
        if para not in self.parachains:
            raise unknown_parachain(para, self.parachains)
        delivered: list[Delivery] = []
        for record in self.records:
            if record.chain == para and record.outcome is not None:
                delivered += record.outcome.deliveries
        return tuple(delivered)

    @property
    def refused(self) -> tuple[BlockRecord, ...]:
        """Return the invalid candidates."""
        return tuple(record for record in self.records if record.refusal is not None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A network at one moment. It is cheap, because it shares its data with the network."""

    relay: RelaySnapshot
    parachains: tuple[Parachain, ...]
    extrinsics: tuple[Extrinsic, ...]
    """Calls for the next relay block."""
    offered: tuple[bytes, ...] = ()
    """Signed extrinsics for the next relay block."""
    ordered: Mapping[ParaId, RuntimeSpec] = field(default_factory=dict)
    """The newest runtime that was sent to each parachain."""
