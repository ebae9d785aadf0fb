"""Pallet `DomeEvents`: one call that publishes an event, and one event that reports it (ID-50)."""

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from interchain_events.pallets.dome_events.global_id import (
    MOST_URL,
    NoGlobalIdError,
    global_id,
)
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import U64_MAX, AccountId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.codecs import U64
from pubsub_emulator.runtime.framework.dispatch import ModuleError, dispatchable, ensure
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hashers import Blake2_128Concat
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError
from pubsub_emulator.runtime.framework.items import StorageMap, StorageValue
from pubsub_emulator.runtime.framework.origin import Origin, ensure_signed
from pubsub_emulator.runtime.framework.pallet import Event, Pallet, PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("DomeEvents", 106, "pallet_dome_events")
MOST_NAME: Final = 32
"""The maximum length of a network's name in bytes."""
MOST_TYPE: Final = 255 * 4
"""The maximum length of a type in bytes: 255 characters in UTF-8."""
MOST_METADATA: Final = 32
"""The maximum number of metadata of an event."""
MOST_METADATUM: Final = 256 * 4
"""The maximum length of one of them in bytes: 256 characters in UTF-8."""

NETWORK: Final = StorageValue(PALLET, "Network", "The network's name.", scale.bytes_, b"")
UNIQUE: Final = StorageValue(
    PALLET, "Unique", "Whether an id is taken only once.", scale.boolean, True
)
COUNT: Final = StorageValue(PALLET, "Count", "How many events there are.", scale.u64, 0)
PUBLISHED: Final = StorageMap(
    PALLET,
    "Published",
    "The index of the first event of an id.",
    Blake2_128Concat,
    scale.bytes_,
    scale.u64,
)

_HASH: Final = scale.fixed(32)
_METADATA: Final = scale.vec(scale.bytes_)
_WEIGHT: Final = Weight(25_000_000, 4_096)


class Publication(NamedTuple):
    """The arguments of `emit_new_event`, in order; texts in UTF-8."""

    event_type: bytes
    data_location: bytes
    relevant_metadata: list[bytes]
    entity_id: bytes
    previous_entity_hash: bytes
    iss: bytes | None
    network: bytes


@event(PALLET, 0)
class EventDOMEv1(Event):
    """An event was published; `index` counts from 0 and is the event's id on this network."""

    event_type: bytes
    data_location: bytes
    relevant_metadata: Annotated[list[bytes], _METADATA]
    entity_id: Annotated[bytes, _HASH]
    previous_entity_hash: Annotated[bytes, _HASH]
    iss: Annotated[bytes | None, scale.option(_HASH)]
    network: bytes
    author: AccountId
    index: U64


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `DomeEvents`."""

    WrongNetwork = 0, "The event is for another network."
    BadGlobalId = 1, "`dataLocation` has no global id."
    TooLong = 2, "A field is longer than it may be, or the type is empty."
    AlreadyPublished = 3, "The network has an event of that id."


class DomeEvents(Hooks):
    """The events of the network `name`.

    Unless `unique`, an id may be published again, as in public contracts.
    """

    pallet = PALLET

    def __init__(self, name: str, *, unique: bool = True) -> None:
        self._name = name.encode()
        self._unique = unique

    def genesis(self, storage: Storage) -> None:
        """Write the network's name and whether ids are unique."""
        NETWORK.put(storage, self._name)
        UNIQUE.put(storage, self._unique)

    @dispatchable(0, weight=_WEIGHT)
    def emit_new_event(  # noqa: PLR0917  # a call's arguments come in order
        self,
        storage: Storage,
        origin: Origin,
        event_type: bytes,
        data_location: bytes,
        relevant_metadata: Annotated[list[bytes], _METADATA],
        entity_id: Annotated[bytes, _HASH],
        previous_entity_hash: Annotated[bytes, _HASH],
        iss: Annotated[bytes | None, scale.option(_HASH)],
        network: bytes,
    ) -> None:
        """Publish an event.

        Errors: `BadOrigin`, `WrongNetwork`, `TooLong`, `BadGlobalId`, `AlreadyPublished`. Emits
        `EventDOMEv1`.
        """
        author = ensure_signed(origin)
        ensure(network == NETWORK.get(storage), Error.WrongNetwork)
        _check_lengths(event_type, data_location, relevant_metadata)
        try:
            name = global_id(data_location.decode("ascii")).encode()
        except (UnicodeDecodeError, NoGlobalIdError):
            raise ModuleError(Error.BadGlobalId) from None
        index = COUNT.get(storage)
        if PUBLISHED.contains(storage, name):
            ensure(not UNIQUE.get(storage), Error.AlreadyPublished)
        else:
            PUBLISHED.insert(storage, name, index)
        COUNT.put(storage, min(index + 1, U64_MAX))
        fields = (
            event_type,
            data_location,
            relevant_metadata,
            entity_id,
            previous_entity_hash,
            iss,
            network,
        )
        deposit(storage, EventDOMEv1(*fields, author, index))

    def integrity_test(self) -> None:
        """Check the length of the network's name.

        Raises `IntegrityError` if it is empty or too long.
        """
        if not 1 <= len(self._name) <= MOST_NAME:
            raise IntegrityError(f"{PALLET}: a network's name has 1 to {MOST_NAME} bytes")


@dataclass(frozen=True, slots=True)
class DomeEventsConfig:
    """A pallet `DomeEvents` to be added to a relay chain."""

    network: str
    """The network's name."""
    unique: bool = True
    """Whether each id is accepted only once."""

    def make(self) -> DomeEvents:
        """Return the pallet."""
        return DomeEvents(self.network, unique=self.unique)

    def genesis(self, pallet: DomeEvents, storage: Storage) -> None:
        """Write the network's name and whether ids are unique."""
        pallet.genesis(storage)


def _check_lengths(event_type: bytes, data_location: bytes, metadata: list[bytes]) -> None:
    """Raise `ModuleError` with `TooLong` if a field of an event is too long."""
    too_long = (
        not 1 <= len(event_type) <= MOST_TYPE
        or len(data_location) > MOST_URL
        or len(metadata) > MOST_METADATA
        or any(len(value) > MOST_METADATUM for value in metadata)
    )
    ensure(not too_long, Error.TooLong)
