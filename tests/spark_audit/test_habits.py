"""Habits are told from measures alone: runs of blocks held against thresholds (AU-2)."""

import json
from typing import Any

from support.forged_report import block

from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.patterns import HabitMemory

Publishers = dict[int, list[dict[str, Any]]]
LIMITS = Thresholds(relay_lag=5, stalled_blocks=3, at_budget_blocks=3, starved_blocks=2)


def _block(at: int, **values: Any) -> dict[str, Any]:
    figures = {"slot": at, "collator": b"\x01" * 32, "sealed": True, "budget": 1000, "used": 100}
    return block(at, block=bytes([at]) * 32, **{**figures, "stopped": False, "expired_valid": 0, **values})


def _found(rows: list[dict[str, Any]], publishers: Publishers | None = None) -> list[dict[str, Any]]:
    watch = HabitMemory(LIMITS)
    settled = list(watch.add(rows, lambda _s, at: (publishers or {}).get(at, []), lambda _s, _p: b""))
    return [*settled, *watch.open_runs()]


def _codes(rows: list[dict[str, Any]], publishers: Publishers | None = None) -> list[str]:
    return [row["code"] for row in _found(rows, publishers)]


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    reader = Reader(row["evidence"])
    reader.take(1)
    reader.bytes_()
    figures: dict[str, Any] = json.loads(reader.bytes_())
    return figures


def test_ordinary_blocks_have_no_habits() -> None:
    assert _codes([_block(at) for at in range(20)]) == []


def test_a_lagging_run_is_one_finding_with_its_length_and_worst() -> None:
    rows = [_block(at, relay_lag=lag) for at, lag in enumerate([1, 5, 9, 6, 1, 1, 7])]
    found = _found(rows)
    assert [row["code"] for row in found] == ["RelayParentLag", "RelayParentLag"]
    assert [(_figures(row)["blocks"], _figures(row)["most"]) for row in found] == [(3, 9), (1, 7)]


def test_standing_on_one_relay_parent_is_stalling_from_the_threshold_on() -> None:
    assert _codes([_block(at, relay_parent=min(at, 4)) for at in range(7)]) == []
    assert _codes([_block(at, relay_parent=min(at, 4)) for at in range(8)]) == ["StallingCollator"]


def test_a_collator_that_always_lands_at_the_budget_is_named() -> None:
    rows = [_block(at, used=960, collator=bytes([at % 2]) * 32) for at in range(6)]
    found = _found(rows)
    assert [(row["code"], row["collator"]) for row in found] == [
        ("AlwaysAtBudget", bytes(32)),
        ("AlwaysAtBudget", b"\x01" * 32),
    ]
    assert _codes([_block(at, used=960 if at % 2 else 100) for at in range(8)]) == []


def test_a_cursor_that_is_not_where_it_was_left_has_jumped() -> None:
    rows = [_block(0, cursor_after=b"here"), _block(1, cursor_before=b"here"), _block(2, cursor_before=b"there")]
    assert _codes(rows) == ["CursorJump"]


def test_entries_expired_when_judged_are_reported_by_block() -> None:
    assert _codes([_block(0, expired_valid=2), _block(1)]) == ["ExpiredDeliveredAsValid"]


def test_a_publisher_not_served_while_the_budget_runs_out_starves() -> None:
    served = {"publisher": 1, "complete": True, "unchanged": False}
    waiting = {"publisher": 2, "complete": False, "unchanged": False}
    rows = [_block(at, stopped=True) for at in range(3)]
    assert _codes(rows, {at: [served, waiting] for at in range(3)})[:1] == ["AlwaysAtBudget"]
    assert "Starvation" in _codes(rows[:2], {0: [served, waiting], 1: [served]})
    assert _codes([_block(at) for at in range(4)], {at: [waiting] for at in range(4)}) == []


def test_rejected_and_unjudged_blocks_make_no_habits() -> None:
    rows = [_block(at, relay_lag=9, status="rejected", verdict="BadSeal") for at in range(3)]
    rows += [_block(at, relay_lag=9, judged=False) for at in range(3, 6)]
    assert _codes(rows) == []
