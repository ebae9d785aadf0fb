"""All pallets of one kind of chain.

A `Runtime` decodes their events and errors, knows their storage items, and makes the objects that
run them.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Final

from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.dispatch import (
    DispatchError,
    ErrorReader,
    read_dispatch_error,
)
from pubsub_emulator.runtime.framework.events import EventRecord, read_phase
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.pallet import AnyItem, Event, Pallet, PalletError
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import EVENTS


class Runtime:
    """The pallets of a chain, built once from their classes.

    `pallets` are their declarations, by index and ascending.
    """

    def __init__(self, kinds: Iterable[type[Hooks]]) -> None:
        """Collect the declarations of the pallets.

        Raises `DefensiveFailure` if two pallets have one index or one name.
        """
        self.kinds: Final = tuple(sorted(kinds, key=lambda kind: kind.pallet.index))
        self.pallets: Final[Mapping[int, Pallet]] = {
            kind.pallet.index: kind.pallet for kind in self.kinds
        }
        if len({pallet.name for pallet in self.pallets.values()}) != len(self.kinds):
            raise DefensiveFailure("two pallets have one index or one name")
        self._errors: Final[Mapping[int, type[PalletError]]] = {
            index: pallet.errors
            for index, pallet in self.pallets.items()
            if pallet.errors is not None
        }
        items: dict[str, AnyItem] = {}
        for pallet in self.pallets.values():
            items |= {item.name: item for item in pallet.items.values()}
        self.items: Final[Mapping[str, AnyItem]] = {name: items[name] for name in sorted(items)}
        """The storage items by `Pallet.Item`, in the order of their names."""
        self._by_prefix: Final = {item.prefix: item for item in self.items.values()}

    def objects(
        self, existing: Iterable[Hooks], left_out: Container[type[Hooks]] = ()
    ) -> tuple[Hooks, ...]:
        """Return one object for each pallet except those in `left_out`, in order.

        The object of a pallet is that in `existing`, or a new one that is made without arguments.
        """
        known = {type(pallet): pallet for pallet in existing}
        return tuple(known.get(kind) or kind() for kind in self.kinds if kind not in left_out)

    def item_of(self, key: bytes) -> AnyItem | None:
        """Return the storage item of a full storage key, or `None`."""
        return self._by_prefix.get(key[:32])

    def reader(self, data: bytes) -> Reader:
        """Return a reader from which `read_event` and codecs of errors read."""
        return ErrorReader(data, self._errors)

    def read_event(self, reader: Reader) -> Event:
        """Read one `RuntimeEvent`.

        Raises `ScaleError`, also for events that no pallet of this runtime declares.
        """
        start = reader.pos
        index = reader.u8()
        variant = reader.u8()
        pallet = self.pallets.get(index)
        kind = None if pallet is None else pallet.events.get(variant)
        if kind is None:
            raise ScaleError(f"unknown event {index}.{variant} at offset {start}")
        return kind(*(codec.read(reader) for _, codec in kind.CODECS))

    def decode_error(self, data: bytes) -> DispatchError:
        """Return the failure that all of `data` encodes.

        Raises `ScaleError`.
        """
        reader = self.reader(data)
        error = read_dispatch_error(reader)
        reader.end()
        return error

    def decode_records(self, data: bytes) -> list[EventRecord]:
        """Decode the records that `events.encode_records` encoded.

        Raises `ScaleError`, also for trailing bytes.
        """
        reader = self.reader(data)
        records = []
        for _ in range(reader.length()):
            phase = read_phase(reader)
            event = self.read_event(reader)
            records.append(
                EventRecord(
                    phase, event, tuple(Hash(reader.take(32)) for _ in range(reader.length(32)))
                )
            )
        reader.end()
        return records

    def stored_events(self, storage: Storage) -> list[EventRecord]:
        """Return the events under `System::Events`, written by the last complete block."""
        raw = storage.get(EVENTS)
        return [] if raw is None else self.decode_records(raw)
