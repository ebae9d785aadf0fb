"""How often an audit asks an object store: what the driver asks does not grow by results, and a
task reads once.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.plumbing.object_store import s3_server
from support.spark_audit.audits import write_history

from pubsub_emulator.spark_audit.audit import rounds
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.engine.engine import Answer, PythonMapper, Unit
from pubsub_emulator.spark_audit.history import storage

READ, WRITTEN = 1, 1
"""Requests for a small file: its bytes, and its upload on the condition that it is not there."""
TASK = READ * (9 + 3) + WRITTEN * 7
"""Of a task: a segment's files, what it needs of the segment before, and what it writes."""


class Requests:
    """The requests that a server has logged, by who asked."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.who = "driver"
        self.seen = 0
        self.count: Counter[str] = Counter()

    def turn_to(self, who: str) -> None:
        """Note who asks from now on."""
        seen = self.log.read_bytes().count(b" HTTP/1.1")
        self.count[self.who] += seen - self.seen
        self.who, self.seen = who, seen


def test_the_driver_asks_for_manifests_and_a_task_for_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = Requests(tmp_path / "log")
    give_out = PythonMapper.map

    def told(mapper: PythonMapper, unit: Unit, *given: Any) -> list[Answer]:
        is_fold = "befores" in given[0][0]
        requests.turn_to(
            unit.__name__.replace("judge_or_fold", "fold_chains" if is_fold else "judge_segment")
        )
        try:
            return give_out(mapper, unit, *given)
        finally:
            requests.turn_to("driver")

    monkeypatch.setattr(PythonMapper, "map", told)
    storage._remote.cache_clear()
    found: dict[int, Counter[str]] = {}
    with s3_server(monkeypatch, requests.log) as bucket:
        for segments in (2, 5):
            write_history(f"{bucket}/h{segments}", 2 * segments - 1, segment_length=2)  # type: ignore[arg-type]
            requests.turn_to("driver")
            requests.count.clear()
            result = audit(f"{bucket}/h{segments}", f"{bucket}/out{segments}", engine="python")
            requests.turn_to("driver")
            assert result.report["segments"] == segments
            found[segments] = requests.count.copy()
        for name in ("ROUND", "ROUND_OF_CORE"):
            monkeypatch.setattr(rounds, name, 2)
        requests.count.clear()
        again = audit(f"{bucket}/h5", f"{bucket}/again", engine="python")
        requests.turn_to("driver")
    storage._remote.cache_clear()
    assert (found[5]["driver"] - found[2]["driver"]) / 3 <= READ, found
    assert found[5]["judge_segment"] <= 5 * TASK, found
    assert again.digest == result.digest
    assert requests.count["read_manifests"] == 3 * READ, "of later rounds"
    assert requests.count["remove_files"] > 4, "parts of tables, and files of results"
