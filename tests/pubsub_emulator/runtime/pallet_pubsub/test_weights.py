"""What calls of the pallet weigh, in figures, and the constants that metadata names (PS-23)."""

from dataclasses import replace

import pytest
from support.runtime.pallet_pubsub.world import MOCK, World

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.pallet_pubsub import Config, TtlPolicy, weights

READ, WRITE, CALL = 25_000_000, 100_000_000, 15_000_000
BY_POLICY = [(TtlPolicy.SCAN, 0), (TtlPolicy.EXPIRY_INDEX, 1)]
"""A policy, and the rows of the index that belong to an entry with a time to live."""
ENTRY = 2 + 2048 + 8
"""The longest entry: the length of its value, the value, when it was published and how long it
lives.
"""


@pytest.mark.parametrize(("policy", "index"), BY_POLICY)
def test_each_call_weighs_the_accesses_that_it_makes(policy: TtlPolicy, index: int) -> None:
    config = Config(ttl_policy=policy)
    assert weights.publish(config, 0) == Weight(
        CALL + 4 * READ + (5 + 2 * index) * WRITE, 4 * 700 + ENTRY
    )
    longer = weights.publish(config, 10)
    assert longer == weights.publish(config, 0) + Weight(20_000, 0)
    removed = Weight(READ + (2 + index) * WRITE, 700 + ENTRY)
    assert weights.remove_key(config) == removed
    several = Weight(2 * READ + 4 * WRITE, 2 * 700)
    assert weights.delete_keys(config, 0) == several + Weight(CALL + READ, 700)
    assert weights.delete_keys(config, 3) == several + Weight(CALL + READ, 700) + removed * 3
    assert weights.register_publisher() == Weight(CALL + 5 * READ + 4 * WRITE, 5 * 700)
    gone = several + Weight(CALL + 4 * READ + 5 * WRITE, 4 * 700)
    assert weights.deregister_publisher(config, 0) == gone
    assert weights.deregister_publisher(config, 2) == gone + removed * 2
    assert weights.deregister_publisher(config) == weights.deregister_publisher(
        config, config.max_stored_keys
    )
    assert weights.on_idle_base() == Weight(CALL + 3 * READ + WRITE, 3 * 700)
    assert weights.examine_row() == weights.enter_publisher() == Weight(READ, 700)


def test_the_constants_of_the_pallet_are_those_of_its_configuration() -> None:
    config = replace(MOCK, max_publishers=77, publisher_deposit=1 << 70, max_ttl_scans_per_idle=9)
    found = {each.name: each.value for each in World(config).pallet.constants()}
    assert found == {
        "MaxValueLength": scale.u32.encode(config.max_value_length),
        "MaxStoredKeys": scale.u32.encode(config.max_stored_keys),
        "MaxTotalStorageSize": scale.u32.encode(config.max_total_storage_size),
        "MaxPublishers": scale.u32.encode(77),
        "PublisherDeposit": scale.u128.encode(1 << 70),
        "SystemParaThreshold": scale.u32.encode(config.system_para_threshold),
        "MaxTtlScansPerIdle": scale.u32.encode(9),
    }
