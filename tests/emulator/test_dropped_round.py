"""What the relay chain does not include has not happened, nor what was judged on top of it (PS-53)."""

from dataclasses import replace

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.round import Round
from pubsub_emulator.emulator.network.schedule import Schedule
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId


def test_ps53_what_was_judged_on_top_of_a_block_that_is_not_included_is_forgotten_with_it() -> None:
    network = Network.of(publishers=[1000], subscribers={2000: {1000: [key_from_data(b"key")]}})
    network.publish(1000, key_from_data(b"key"), b"value")
    records = [record for step in network.step(3) for record in step.records]
    included = next(record for record in records if record.chain == 2000)
    refused = replace(included, outcome=None)
    other = next(record for record in records if record.chain == 1000)
    now = Round(network.relay, Schedule(1, 100), b"seed", unjudged=False)
    now.records = [refused, included, other, refused]

    now.drop(ParaId(2000))

    assert now.records == [refused, other]
