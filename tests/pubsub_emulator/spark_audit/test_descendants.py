"""Relay headers in histories: the audit judges and counts them, and names cheats (UP-12, UP-15)."""

from pathlib import Path

import pytest

from pubsub_emulator.collator.cheats import WITH_OFFSET
from pubsub_emulator.emulator.scenario.file import parse_document
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.settings import SettingsError
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.store import HistoryWriter

OFFSET = 2
BLOCKS = 30


def _document() -> dict[str, object]:
    return {
        "name": "behind",
        "seed": "behind",
        "relay_blocks": BLOCKS,
        "segment_length": 10,
        "relay": {"session_length": 5},
        "publishers": [{"paras": [1000], "keys": 2, "update_rate": 0.5}],
        "subscribers": [
            {
                "para": 2000,
                "subscribe": [{"publishers": "all"}],
                "relay_parent_offset": OFFSET,
                "collators": [{}, {"strategies": list(WITH_OFFSET)}],
            }
        ],
    }


def test_the_audit_finds_cheats_with_relay_headers_and_counts_the_headers(tmp_path: Path) -> None:
    simulation = Simulation(parse_document(_document(), "behind"))
    with HistoryWriter(tmp_path / "history", "behind") as writer:
        simulation.network.observe(writer)
        simulation.run()
    result = audit(tmp_path / "history", tmp_path / "out", engine="python")
    assert set(result.codes) == {Verdict.BAD_DESCENDANTS.value}
    measured = list(result.results.rows(schema.BLOCK_MEASURES))
    shown = {row["descendants"] for row in measured if row["status"] == "included"}
    assert shown == {0, OFFSET + 1}
    assert {row["descendants"] for row in measured if row["chain"] == 2000} > {OFFSET + 1}


@pytest.mark.parametrize(
    ("offset", "lag", "reason"),
    [
        (256, 0, "relay_parent_offset: should be a whole number from 0 to 255, not 256"),
        (-1, 0, "relay_parent_offset: should be a whole number from 0 to 255, not -1"),
        (200, 56, "relay_parent_offset: the relay chain keeps 256 blocks"),
    ],
)
def test_an_offset_that_cannot_be_is_refused_with_its_place(
    offset: int, lag: int, reason: str
) -> None:
    document = _document()
    (subscriber,) = document["subscribers"]  # type: ignore[misc]  # a list of one
    subscriber |= {"relay_parent_offset": offset, "relay_parent_lag": lag}
    with pytest.raises(SettingsError, match=reason):
        Simulation(parse_document(document, "behind"))
