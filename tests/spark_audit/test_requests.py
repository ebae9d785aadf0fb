"""How often an audit asks an object store: what the driver asks does not grow by results, and a task reads once."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from support.audits import write_history
from support.object_store import s3_server

from pubsub_emulator.spark_audit.audit import rounds
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.engine import engine
from pubsub_emulator.spark_audit.engine.engine import Answer, PythonMapper, Unit
from pubsub_emulator.spark_audit.history import storage
from pubsub_emulator.spark_audit.history.storage import RemoteStore

DRIVER_A_SEGMENT = 2
"""Its manifest is read; all else of the driver is the same for two segments and for eight."""
FILES = 9
"""Of a segment: each is read once by the task that judges it, and relay headers and checkpoints by the next one."""


@pytest.fixture
def bucket() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as address:
        storage._remote.cache_clear()
        yield address
    storage._remote.cache_clear()


def test_the_driver_asks_for_manifests_and_a_task_for_its_files(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[tuple[str, str]] = Counter()
    at = ["driver"]
    for name in ("open", "stamp", "names", "walk", "put", "remove", "clear", "exists"):
        real = getattr(RemoteStore, name)

        def counted(store: RemoteStore, *given: object, name: str = name, real: object = real) -> object:
            held = store._held
            asked[at[0], name] += held is None or given[0] not in held
            return real(store, *given)  # type: ignore[operator]  # a method of the store

        monkeypatch.setattr(RemoteStore, name, counted)
    give_out = PythonMapper.map

    def told(mapper: PythonMapper, unit: Unit, *given: Any) -> list[Answer]:
        at[0] = unit.__name__.replace("judge_or_fold", "fold_chains" if "befores" in given[0][0] else "judge_segment")
        try:
            return give_out(mapper, unit, *given)
        finally:
            at[0] = "driver"

    monkeypatch.setattr(engine.PythonMapper, "map", told)
    found: dict[int, Counter[str]] = {}
    for segments in (2, 8):
        write_history(f"{bucket}/h{segments}", 2 * segments - 1, segment_length=2)  # type: ignore[arg-type]
        asked.clear()
        result = audit(f"{bucket}/h{segments}", f"{bucket}/out{segments}", engine="python")
        assert result.report["segments"] == segments
        found[segments] = Counter()
        for (where, _), count in asked.items():
            found[segments][where] += count
        opened = asked["judge_segment", "open"]
        assert opened <= segments * (FILES + 3), asked
    grown = (found[8]["driver"] - found[2]["driver"]) / 6
    assert grown <= DRIVER_A_SEGMENT, found
    for name in ("ROUND", "ROUND_OF_CORE"):
        monkeypatch.setattr(rounds, name, 2)
    asked.clear()
    again = audit(f"{bucket}/h8", f"{bucket}/again", engine="python")
    assert again.digest == result.digest
    assert asked["read_manifests", "open"] == 6, "of later rounds"
    assert asked["driver", "remove"] < 4 < asked["remove_files", "remove"], "parts of tables, and files of results"
