"""A power cut at any change of the disk: what was acknowledged is whole afterwards, and what is
named is.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from support.plumbing.power import FileDisk, lay_files
from support.spark_audit.audits import growing

from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import store as history_store
from pubsub_emulator.spark_audit.history.manifest import COMMITS, Commit

Image = dict[Path, bytes]


def test_a_history_loses_no_segment_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FileDisk(tmp_path)
    acknowledged: list[Commit] = []
    stops: list[tuple[int, Image]] = []
    disk.on_change = lambda: stops.extend((len(acknowledged), image) for image in disk.images())
    written = history_store.write_commit

    def write(*args: Any, **options: Any) -> Commit:
        acknowledged.append(written(*args, **options))
        disk.on_change()
        return acknowledged[-1]

    monkeypatch.setattr(history_store, "write_commit", write)
    with disk.watched():
        list(growing(tmp_path / "history", 15, name="net"))
    assert len(acknowledged) == 8
    assert len(stops) >= 400
    [(_, end)] = stops[-1:]
    for known, image in stops:
        files = {str(path.relative_to("history")): data for path, data in image.items()}
        named = [
            json.loads(data)
            for path, data in files.items()
            if path.startswith(COMMITS) and path.endswith(".json")
        ]
        assert {body["digest"] for body in named} >= {
            commit.digest for commit in acknowledged[:known]
        }
        for body in named:
            for entry in body["files"]:
                assert files[entry["path"]] == end[Path("history", entry["path"])]


def test_an_audit_goes_on_after_a_power_cut_to_the_same_result(tmp_path: Path) -> None:
    history = tmp_path / "history"
    list(growing(history, 5, name="net"))
    whole = audit(history, tmp_path / "whole", engine="python")
    disk = FileDisk(tmp_path / "out")
    disk.root.mkdir()
    stops: list[Image] = []
    disk.on_change = lambda: stops.extend(disk.images())
    with disk.watched():
        audit(history, disk.root, engine="python")
    assert len(stops) >= 200
    for image in stops[:: len(stops) // 12]:
        out = lay_files(image, tmp_path / "after")
        assert audit(history, out, engine="python").digest == whole.digest
        assert not list(out.rglob(".*")), "what the ended run was at is swept"
    reports = [json.loads(image[Path("run_report.json")]) for image in stops[-2:]]
    for report, image in zip(reports, stops[-2:], strict=True):
        for name, files in report["tables"].items():
            assert all(image[Path(path)] for path in files), name
