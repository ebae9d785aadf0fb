"""Events: typed per pallet, SCALE-encodable, kept with the storage layers that they were deposited in.

    EventRecord = Phase ++ RuntimeEvent ++ Vec<H256> topics
    Phase       = 00 ApplyExtrinsic(u32) | 01 Finalization | 02 Initialization
    RuntimeEvent = u8 pallet index ++ u8 variant ++ fields

While a block runs, its events are in `Storage.log`, which rolls back with the layers (PS-10). `System` writes them to
`System::Events` at the end of the block, so the state root commits to them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, TypeVar, dataclass_transform

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader, encode_compact
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.pallet_indices import PALLET_INDEX, PALLET_NAME, declare
from pubsub_emulator.runtime.framework.storage import Storage

E = TypeVar("E", bound="Event")


class Event:
    """Base of all events; made by the decorator `event`."""

    __slots__ = ()

    PALLET: ClassVar[str]
    VARIANT: ClassVar[int]
    CODECS: ClassVar[tuple[tuple[str, Codec[Any]], ...]]
    HEAD: ClassVar[bytes]
    ENCODERS: ClassVar[tuple[tuple[str, Callable[[Any], bytes]], ...]]

    def encode(self) -> bytes:
        """SCALE bytes of the `RuntimeEvent`."""
        data = self.HEAD
        for name, encode in self.ENCODERS:
            data += encode(getattr(self, name))
        return data


_EVENTS: Final[dict[tuple[str, int], type[Event]]] = {}


@dataclass_transform(frozen_default=True)
def event(pallet: str, variant: int, *codecs: Codec[Any]) -> Callable[[type[E]], type[E]]:
    """Class decorator: register a subclass of `Event` as a value type; `codecs` are those of its fields in order.

    Raises `DefensiveFailure` if the variant is taken or codecs and fields differ in number.
    """

    def make(cls: type[E]) -> type[E]:
        made = value_type(cls)
        names = tuple(field.name for field in fields(made))  # type: ignore[arg-type]  # a dataclass since the line above
        if len(names) != len(codecs):
            raise DefensiveFailure(f"{pallet}::{cls.__name__} has {len(names)} fields and {len(codecs)} codecs")
        taken = _EVENTS.setdefault((pallet, variant), made)
        if taken is not made:
            raise DefensiveFailure(f"{pallet} variant {variant} is {taken.__name__} already")
        made.PALLET = pallet
        made.VARIANT = variant
        made.CODECS = tuple(zip(names, codecs, strict=True))
        made.HEAD = bytes((PALLET_INDEX[pallet], variant))
        made.ENCODERS = tuple((name, codec.encode) for name, codec in made.CODECS)
        return made

    return make


def events_of(pallet: str) -> tuple[type[Event], ...]:
    """The events that a pallet declares, ascending by variant."""
    declare(pallet)
    return tuple(_EVENTS[place] for place in sorted(place for place in _EVENTS if place[0] == pallet))


def read_event(reader: Reader) -> Event:
    """One `RuntimeEvent` from a reader. Raises `ScaleError`, also for events that no pallet declares."""
    at = reader.pos
    index, variant = reader.u8(), reader.u8()
    pallet = PALLET_NAME.get(index, "")
    declare(pallet)
    made = _EVENTS.get((pallet, variant))
    if made is None:
        raise ScaleError(f"unknown event {index}.{variant} at offset {at}")
    return made(*(codec.read(reader) for _, codec in made.CODECS))


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
    """SCALE bytes of `frame_system::Phase`."""
    match phase:
        case Initialization():
            return b"\x02"
        case Finalization():
            return b"\x01"
        case ApplyExtrinsic(index):
            return b"\x00" + index.to_bytes(4, "little")


def read_phase(reader: Reader) -> Phase:
    """The inverse of `encode_phase`."""
    at = reader.pos
    match reader.u8():
        case 0:
            return ApplyExtrinsic(reader.uint(4))
        case 1:
            return Finalization()
        case 2:
            return Initialization()
        case tag:
            raise ScaleError(f"unknown phase {tag} at offset {at}")


phase_codec: Codec[Phase] = Codec(
    "Phase",
    encode_phase,
    read_phase,
    type_info.Variants(
        ("frame_system", "Phase"),
        (
            type_info.Variant("ApplyExtrinsic", 0, (type_info.Field(type_info.U32),)),
            type_info.Variant("Finalization", 1),
            type_info.Variant("Initialization", 2),
        ),
    ),
)

INITIALIZATION: Final = Initialization()

EXECUTION_PHASE: Final = StorageValue("System", "ExecutionPhase", phase_codec)
"""`System::ExecutionPhase`: stored while a block runs, removed at its end."""


@value_type
class EventRecord:
    """One event with its phase and topics."""

    phase: Phase
    event: Event
    topics: tuple[Hash, ...] = ()

    def encode(self) -> bytes:
        """SCALE bytes of `frame_system::EventRecord`."""
        return encode_phase(self.phase) + self.event.encode() + _encode_topics(self.topics)


def _encode_topics(topics: tuple[Hash, ...]) -> bytes:
    return encode_compact(len(topics)) + b"".join(topics)


def read_record(reader: Reader) -> EventRecord:
    """The inverse of `EventRecord.encode`."""
    phase = read_phase(reader)
    found = read_event(reader)
    return EventRecord(phase, found, tuple(Hash(reader.take(32)) for _ in range(reader.length(32))))


def encode_records(records: Iterable[EventRecord]) -> bytes:
    """SCALE bytes of `Vec<EventRecord>`, as `System::Events` holds them."""
    parts: list[bytes] = []
    count = 0
    phase: Phase | None = None
    encoded = b""
    for record in records:
        if record.phase is not phase:  # one object for all events of a phase
            phase = record.phase
            encoded = encode_phase(phase)
        parts += (encoded, record.event.encode(), _encode_topics(record.topics) if record.topics else b"\x00")
        count += 1
    return encode_compact(count) + b"".join(parts)


def decode_records(data: bytes) -> list[EventRecord]:
    """The inverse of `encode_records`; refuses trailing bytes."""
    reader = Reader(data)
    out = [read_record(reader) for _ in range(reader.length())]
    reader.end()
    return out


def begin_phase(storage: Storage, phase: Phase) -> None:
    """Events deposited from now on belong to this phase. Call it outside of layers: it does not roll back."""
    EXECUTION_PHASE.put(storage, phase)
    storage.phase = phase


def end_phases(storage: Storage) -> None:
    """End the last phase: the block is complete."""
    EXECUTION_PHASE.kill(storage)
    storage.phase = None


def deposit(storage: Storage, what: Event, topics: tuple[Hash, ...] = ()) -> None:
    """Deposit an event in the current phase (initialization if no block runs). It rolls back with its layer.

    Unlike FRAME, this also keeps events of block 0.
    """
    storage.log.append(EventRecord(storage.phase or INITIALIZATION, what, topics))


def records(storage: Storage) -> list[EventRecord]:
    """The records deposited in this block so far, in order."""
    return [entry for entry in storage.log if isinstance(entry, EventRecord)]


def events(storage: Storage) -> list[Event]:
    """The events deposited in this block so far, in order, without phases and topics."""
    return [record.event for record in records(storage)]
