"""Metrics count what happened in a network and change nothing in it (PS-71)."""

import json
from dataclasses import replace

import pytest

from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.observers.metrics import Metrics
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec

PUBLISHER, SYSTEM, SUBSCRIBER = ParaId(2100), ParaId(1000), ParaId(3000)
KEYS = tuple(sorted(key_from_data(b"key %d" % i) for i in range(5)))


def _network(policy: CachePolicy = CachePolicy.NODES, *strategies: str) -> Network:
    """2100 publishes and is not registered."""
    spec = replace(RuntimeSpec(SUBSCRIBER, {SYSTEM: KEYS}), cache=policy)
    collators = ((strategies, MILLION), ((), 0))
    chains = [ParachainConfig(spec, collators)]
    chains += [ParachainConfig.publisher(RuntimeSpec(para, {})) for para in (SYSTEM, PUBLISHER)]
    return Network(NetworkConfig(tuple(chains), seed=b"metrics"))


def _step(network: Network, metrics: Metrics, blocks: int) -> None:
    for _ in range(blocks):
        metrics.note(network, network.step()[0])


@pytest.mark.parametrize("policy", list(CachePolicy), ids=lambda policy: policy.value)
def test_ps71_the_metrics_of_a_network_are_what_happened_in_it(policy: CachePolicy) -> None:
    network, metrics = _network(policy), Metrics()
    for key in KEYS:
        network.publish(SYSTEM, key, bytes(40), ttl=4)
    network.publish(PUBLISHER, KEYS[0], b"", ttl=4)
    network.publish(SYSTEM, KEYS[0], bytes(5000))
    _step(network, metrics, 2)
    # sent with the blocks of step 1, executed in relay block 2, seen on the relay parent 2 in step
    # 3
    assert (metrics.published, metrics.ttl_rows) == (5, 5)
    assert metrics.failures == {
        "Broadcaster::PublishNotAuthorized": 1,
        "Broadcaster::ValueTooLong": 1,
    }
    mine = metrics.subscribers[SUBSCRIBER]
    assert (mine.pending, mine.cursor_age, mine.latency) == (5, 0, {})
    _step(network, metrics, 1)
    assert (mine.pending, mine.latency) == (0, {1: 5})
    cached = mine.cache_nodes > 0, mine.cache_bytes > 0
    assert cached == (
        (policy is CachePolicy.NODES,) * 2
    )  # five keys are too few for slots to be worth a row
    _step(network, metrics, 4)
    # expired in block 6, removed in it, and gone for the subscriber in block 7
    assert (metrics.ttl_rows, metrics.expiry_lag) == (0, {0: 5})
    assert (mine.pending, mine.cache_nodes) == (0, 0)
    assert metrics.verdicts == {}
    assert json.loads(json.dumps(metrics.json()))["subscribers"]["3000"]["latency"] == {"1": 5}


def test_ps71_verdicts_are_counted_by_kind() -> None:
    network, metrics = _network(CachePolicy.NODES, "empty-proof"), Metrics()
    for key in KEYS:
        network.publish(SYSTEM, key, bytes(40))
    _step(network, metrics, 8)
    assert list(metrics.verdicts) == ["RootMismatch"]
    assert metrics.verdicts["RootMismatch"] > 1
    assert metrics.subscribers[SUBSCRIBER].cursor_age == 0


def test_metrics_change_nothing() -> None:
    one, other = _network(), _network()
    metrics = Metrics()
    for network in (one, other):
        network.publish(SYSTEM, KEYS[0], b"value", ttl=2)
    _step(one, metrics, 5)
    other.step(5)
    assert one.relay.header == other.relay.header
    assert {para: chain.header for para, chain in one.parachains.items()} == {
        para: chain.header for para, chain in other.parachains.items()
    }
