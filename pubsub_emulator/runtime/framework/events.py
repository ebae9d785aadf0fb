"""Events of pallets, with their SCALE encoding.

They are typed per pallet. Each belongs to the storage layer in which it was deposited.

    EventRecord = Phase ++ RuntimeEvent ++ Vec<H256> topics
    Phase       = 00 ApplyExtrinsic(u32) | 01 Finalization | 02 Initialization
    RuntimeEvent = u8 pallet index ++ u8 variant ++ fields

While a block runs, its events are in `Storage.log`, which rolls back with the layers (PS-10).
`System` writes them to `System::Events` at the end of the block, so the state root commits to them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Final, TypeVar, dataclass_transform

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader, encode_compact
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.runtime.framework.codecs import codec_of
from pubsub_emulator.runtime.framework.pallet import Event, Pallet
from pubsub_emulator.runtime.framework.storage import Storage

E = TypeVar("E", bound=Event)


@dataclass_transform(frozen_default=True)
def event(pallet: Pallet, variant: int) -> Callable[[type[E]], type[E]]:
    """Make a subclass of `Event` a value type and an event of `pallet`.

    The annotations of its fields name their codecs. Raises `DefensiveFailure` if one does not, or
    if the variant is taken.
    """

    def make(cls: type[E]) -> type[E]:
        value_class = value_type(cls)
        declared = pallet.events.setdefault(variant, value_class)
        if declared is not value_class:
            raise DefensiveFailure(f"{pallet} variant {variant} is {declared.__name__} already")
        value_class.PALLET = pallet
        value_class.VARIANT = variant
        members = fields(value_class)  # type: ignore[arg-type]  # a dataclass
        value_class.CODECS = tuple((member.name, codec_of(member.type)) for member in members)
        value_class.HEAD = bytes((pallet.index, variant))
        value_class.ENCODERS = tuple((name, codec.encode) for name, codec in value_class.CODECS)
        return value_class

    return make


@value_type
class ApplyExtrinsic:
    """The event comes from the extrinsic with this index; inherents count."""

    index: int


@dataclass(frozen=True, slots=True)
class Finalization:
    """The event comes from `on_idle` or `on_finalize`."""


@dataclass(frozen=True, slots=True)
class Initialization:
    """The event comes from `on_initialize`."""


Phase = ApplyExtrinsic | Finalization | Initialization


def encode_phase(phase: Phase) -> bytes:
    """Return the SCALE bytes of `frame_system::Phase`."""
    match phase:
        case Initialization():
            return b"\x02"
        case Finalization():
            return b"\x01"
        case ApplyExtrinsic(index):
            return b"\x00" + index.to_bytes(4, "little")


def read_phase(reader: Reader) -> Phase:
    """Read a phase that `encode_phase` wrote."""
    start = reader.pos
    match reader.u8():
        case 0:
            return ApplyExtrinsic(reader.uint(4))
        case 1:
            return Finalization()
        case 2:
            return Initialization()
        case tag:
            raise ScaleError(f"unknown phase {tag} at offset {start}")


_PHASE: Final = type_info.variants(
    "frame_system::Phase",
    ("ApplyExtrinsic", 0, type_info.U32),
    ("Finalization", 1),
    ("Initialization", 2),
)
phase_codec: Codec[Phase] = Codec("Phase", encode_phase, read_phase, _PHASE)

INITIALIZATION: Final = Initialization()


@value_type
class EventRecord:
    """One event with its phase and topics."""

    phase: Phase
    event: Event
    topics: tuple[Hash, ...] = ()

    def encode(self) -> bytes:
        """Return the SCALE bytes of `frame_system::EventRecord`."""
        return encode_phase(self.phase) + self.event.encode() + _encode_topics(self.topics)


def _encode_topics(topics: tuple[Hash, ...]) -> bytes:
    return encode_compact(len(topics)) + b"".join(topics)


def encode_records(records: Iterable[EventRecord]) -> bytes:
    """Return the SCALE bytes of `Vec<EventRecord>`, as `System::Events` holds them."""
    parts: list[bytes] = []
    count = 0
    phase: Phase | None = None
    encoded = b""
    for record in records:
        # All events of a phase share one object, so its identity suffices.
        if record.phase is not phase:
            phase = record.phase
            encoded = encode_phase(phase)
        parts += (
            encoded,
            record.event.encode(),
            _encode_topics(record.topics) if record.topics else b"\x00",
        )
        count += 1
    return encode_compact(count) + b"".join(parts)


_EVENT: Final = type_info.Named("RuntimeEvent")
_OF: Final = (type_info.Parameter("E", _EVENT), type_info.Parameter("T", type_info.H256))
_TOPICS: Final = type_info.SequenceOf(type_info.H256)
_RECORD: Final = type_info.struct(
    "frame_system::EventRecord", *_OF, phase=_PHASE, event=_EVENT, topics=_TOPICS
)
encoded_records: Final[Codec[bytes]] = Codec(
    "Vec<EventRecord>",
    bytes,
    lambda reader: reader.take(reader.remaining()),
    type_info.SequenceOf(_RECORD),
)
"""Records that are not decoded, because only a `Runtime` knows the events."""


def deposit(storage: Storage, pallet_event: Event, topics: tuple[Hash, ...] = ()) -> None:
    """Deposit an event in the current phase.

    It rolls back with its layer. Unlike in FRAME, block 0 has events.
    """
    storage.log.append(EventRecord(storage.phase or INITIALIZATION, pallet_event, topics))


def records(storage: Storage) -> list[EventRecord]:
    """Return the records deposited in this block so far, in order."""
    return [entry for entry in storage.log if isinstance(entry, EventRecord)]


def events(storage: Storage) -> list[Event]:
    """Return the events deposited in this block so far, in order, without phases and topics."""
    return [record.event for record in records(storage)]
