"""What a node costs, at every length where its length prefix grows (PS-43)."""

import pytest

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.pallet_subscriber.meter import Cut, Meter


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 16_383, 16_384, 16_385, 70_000])
def test_ps_43_a_node_is_charged_its_length_and_that_of_its_compact_prefix(length: int) -> None:
    node = bytes(length)
    meter = Meter(RuntimeSpec(ParaId(1), {}), {blake2_256(node): node}, 1_048_576)
    assert meter.read(blake2_256(node), b"key", 0) == node
    assert meter.used == length + len(encode_compact(length)) == node_cost(length)


def test_ps_52_a_node_that_is_not_there_is_charged_nothing() -> None:
    meter = Meter(RuntimeSpec(ParaId(1), {}), {}, 1_048_576)
    with pytest.raises(Cut) as cut:
        meter.read(blake2_256(b""), b"key", 3)
    assert (meter.used, cut.value.missing.depth) == (0, 3)
