"""An event's fields are those that a client decodes from metadata, for every event there is (EV-4)."""

import random

import pytest
from support.event_networks import metadata_of_chains

from pubsub_emulator.client.metadata import Enum, Metadata, parse_metadata
from pubsub_emulator.client.node import decode_events
from pubsub_emulator.emulator.runtimes import EVERY
from pubsub_emulator.events.log.sources.fields import fields_of, kind_of
from pubsub_emulator.events.values import canonical
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.runtime.framework.events import EventRecord, Finalization, encode_records
from pubsub_emulator.runtime.framework.pallet import Event

CHAINS = {name: parse_metadata(raw) for name, raw in metadata_of_chains().items()}
ASKED_FOR = ("DomeEvents", "Prism")
"""Pallets that a relay chain has only when it is asked for them: not in the vectors' metadata."""
EVENTS = [
    kind
    for pallet in sorted(EVERY.pallets.values(), key=str)
    if pallet.name not in ASKED_FOR
    for _, kind in sorted(pallet.events.items())
]


def samples(kind: type[Event], count: int = 20) -> list[Event]:
    """Events from random bytes, those that decode."""
    draw = random.Random(kind.__qualname__)
    found: list[Event] = []
    for _ in range(20_000):
        reader = EVERY.reader(bytes(draw.choice((0, 0, 1, 2, 101, draw.randrange(256))) for _ in range(400)))
        try:
            found.append(kind(*(codec.read(reader) for _, codec in kind.CODECS)))
        except (PubsubError, IndexError):
            continue
        if len(found) == count:
            break
    return found


def knows(metadata: Metadata, kind: type[Event]) -> bool:
    pallet = metadata.pallets.get(kind.PALLET.name)
    events = metadata.types.get(pallet.events) if pallet is not None and pallet.events is not None else None
    return isinstance(events, Enum) and kind.VARIANT in events.variants


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: f"{kind.PALLET}.{kind.__name__}")
def test_ev_4_fields_are_as_metadata_gives_them(kind: type[Event]) -> None:
    chains = [metadata for metadata in CHAINS.values() if knows(metadata, kind)]
    compared = 0
    for event in samples(kind):
        record = encode_records([EventRecord(Finalization(), event, ())])
        for metadata in chains:
            try:
                (decoded,) = decode_events(metadata, record)
            except ScaleError:  # a byte for which Rust has no variant
                continue
            compared += 1
            assert f"{decoded.pallet}.{decoded.name}" == kind_of(event)
            assert canonical(decoded.fields) == fields_of(event)
            assert list(decoded.fields) == list(fields_of(event))
    assert compared
