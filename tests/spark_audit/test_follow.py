"""A history that grows is audited as its segments land, with the findings of a whole run (AU-10)."""

from pathlib import Path
from threading import Event, Thread

from support.audits import Slip, drop_a_node, small_network

from pubsub_emulator.spark_audit.audit.follow import follow
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.store import HistoryWriter


def test_segments_are_judged_once_as_they_land(tmp_path: Path) -> None:
    stop = Event()

    def produce() -> None:
        network = small_network(segment_length=3)
        with HistoryWriter(tmp_path / "history", "dev") as writer:
            network.observe(Slip(writer, network, {5: drop_a_node}))
            network.step(14)
            network.finish()

    producer = Thread(target=produce)
    producer.start()
    judged = 0
    last = None
    for result in follow(tmp_path / "history", tmp_path / "out", stop, engine="python"):
        judged += result.units_judged
        last = result
        if not producer.is_alive() and result.units_judged + result.units_skipped == 5:
            stop.set()
    producer.join()
    assert judged == 5, "five segments, none of them twice"
    whole = audit(tmp_path / "history", tmp_path / "whole", engine="python")
    assert last is not None
    assert (last.digest, last.exit_code, last.codes) == (whole.digest, whole.exit_code, whole.codes)
    assert len(list(last.results.rows(schema.CHAINS))) == 3


def test_it_waits_for_a_history_that_is_not_there_yet(tmp_path: Path) -> None:
    stop = Event()
    stop.set()
    assert list(follow(tmp_path / "none", tmp_path / "out", stop)) == []
