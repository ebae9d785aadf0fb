from collections import Counter
from dataclasses import replace
from pathlib import Path

from support.audits import KEYS, SUBSCRIBER, small_network

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.parachain import Pace
from pubsub_emulator.emulator.observers.metrics import Metrics
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.store import HistoryWriter


def test_delays_are_those_that_the_network_saw(tmp_path: Path) -> None:
    config = small_network().config
    paces = {SUBSCRIBER: Pace(every=3)}
    slow = [replace(each, pace=paces.get(each.spec.para_id, each.pace)) for each in config.parachains]
    network, seen = Network(replace(config, parachains=tuple(slow))), Metrics()
    with HistoryWriter(tmp_path / "history", "dev") as writer:
        network.observe(writer)
        for at in range(12):
            network.publish(1000, KEYS[at % len(KEYS)], b"value %d" % at)
            for step in network.step():
                seen.note(network, step)
        network.finish()
    rows = list(audit(tmp_path / "history", tmp_path / "out", engine="python").results.rows(schema.PUBLISHER_MEASURES))
    found = Counter(delay for row in rows for delay in row["delays"])
    assert found == seen.subscribers[SUBSCRIBER].latency
    assert len(found) > 1
    assert all(row["delays"] == sorted(row["delays"]) for row in rows)
