"""No cheat between the two halves of another one hides anything, and the memory for patterns stays
bounded, whatever candidates claim.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.spark_audit.forged_report import block
from support.spark_audit.two_step_cheats import ALL, FAR, SHAPES, campaign

from pubsub_emulator.spark_audit.judge import patterns
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.patterns import MOST_SEALS, SLOT_WINDOW, HabitMemory

FEW = ("future-slot", "later-relay-parent", "omit-node", *FAR)
"""Strategies that claim another place in time, and an ordinary one."""


@pytest.mark.parametrize(
    ("first", "shape"),
    [
        *(("equivocation", shape) for shape in SHAPES),
        ("wrong-state-root", "segments"),
    ],
)
def test_a_cheat_between_two_halves_of_another_hides_nothing(
    tmp_path: Path, first: str, shape: str
) -> None:
    plain, hidden = campaign(tmp_path, first, FEW, shape)
    assert any(code == "Equivocation" for _, _, code, *_ in plain)
    assert plain - hidden == {}


@pytest.mark.slow
@pytest.mark.parametrize("first", list(ALL)[::12])
def test_no_strategy_is_hidden_by_another_one(tmp_path: Path, first: str) -> None:
    """A sample. All pairs take hours; `support.spark_audit.two_step_cheats` runs them."""
    plain, hidden = campaign(tmp_path, first, FEW, "segments")
    assert plain - hidden == {}


Row = dict[str, Any]


def _seal(at: int, slot_now: int, slot: int, author: int = 1, name: int | None = None) -> Row:
    """A refused candidate that is sealed for a slot."""
    figures = {"slot": slot, "collator": author.to_bytes(32, "big"), "sealed": True}
    times = {"slot_now": slot_now}
    hashed = (at if name is None else name).to_bytes(32, "big")
    return block(
        at, block=hashed, status="rejected", verdict="BadSeal", judged=True, **figures, **times
    )


def _found(memory: HabitMemory, rows: list[Row]) -> Iterator[Row]:
    return memory.add(rows, lambda _s, _p: [], lambda _s, _p: b"header")


def _slots(rows: list[Row]) -> list[int]:
    out = []
    for row in _found(HabitMemory(Thresholds()), rows):
        assert row["code"] == "Equivocation"
        out.append(int(row["detail"].rpartition(" ")[2]))
    return out


@pytest.mark.parametrize("claimed", [0, 900, 1000 + SLOT_WINDOW, 10**6, 2**40, 2**63 - 1])
def test_a_claimed_slot_makes_the_memory_forget_nothing(claimed: int) -> None:
    rows = [_seal(0, 1000, 1000), _seal(1, 1000, claimed), _seal(2, 1001, 1000)]
    assert _slots(rows) == [1000]


def test_two_headers_count_within_the_window_of_the_slot() -> None:
    near = [
        _seal(0, 5000, 5000 + SLOT_WINDOW),
        _seal(1, 5000 + 2 * SLOT_WINDOW, 5000 + SLOT_WINDOW),
    ]
    assert _slots(near) == [5000 + SLOT_WINDOW]
    early = [_seal(0, 5000, 5001 + SLOT_WINDOW), _seal(1, 5001, 5001 + SLOT_WINDOW)]
    assert _slots(early) == []
    late = [_seal(0, 5000, 5000), _seal(1, 5001 + SLOT_WINDOW, 5000)]
    assert _slots(late) == []


def test_without_the_relay_chains_time_included_blocks_move_the_memory_on() -> None:
    rows = [_seal(at, 0, slot) for at, slot in enumerate([10**12, 10**6, 10**12])]
    for row in rows:
        row["slot_now"] = None
    assert _slots(rows) == []
    rows[0] |= {"status": "included", "verdict": None}
    rows[0] |= {"budget": 1, "used": 0, "stopped": False, "expired_valid": 0, "relay_lag": 0}
    assert _slots(rows) == [10**12]


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(-1100, 2**40), st.integers(1, 3))))
def test_a_memory_that_was_written_and_read_finds_the_same(
    seals: list[tuple[int, int, int]],
) -> None:
    times = sorted(now for now, _, _ in seals)
    rows = [
        _seal(at, now, max(now + ahead, 0), author)
        for at, (now, (_, ahead, author)) in enumerate(zip(times, seals, strict=True))
    ]
    whole = list(_found(HabitMemory(Thresholds()), rows))
    memory = HabitMemory(Thresholds())
    parts = []
    for row in rows:
        parts += _found(memory, [row])
        memory = HabitMemory.from_json(json.loads(json.dumps(memory.to_json())), Thresholds())
    assert parts == whole


def test_seals_stay_bounded_and_a_crowd_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seals of thousands of authors, which only a chain with ever new collators can have."""
    monkeypatch.setattr(patterns, "MOST_SEALS", 64)
    memory = HabitMemory(Thresholds())
    rows = [_seal(at, 5000, 5000 + at % 300, author=at) for at in range(1000)]
    assert list(_found(memory, rows)) == []
    assert len(memory.slots) <= 64
    assert memory.crowded
    assert HabitMemory.from_json(memory.to_json(), Thresholds()).crowded
    # The seals for the slots near the present one are the ones that stay.
    assert {slot for slot, _ in memory.slots} >= {5000, 5001, 5002}


def test_the_farthest_seals_are_forgotten_first_and_reported_ones_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slot that was reported and forgotten would be reported again."""
    monkeypatch.setattr(patterns, "MOST_SEALS", 8)
    memory = HabitMemory(Thresholds())
    near = [4990, 4998, 4999, 5000, 5001, 5002]
    slots = [4000, 4000, 4300, 5690, *near]
    rows = [_seal(at, 5000, slot, author=slot) for at, slot in enumerate(slots)]
    assert [row["code"] for row in _found(memory, rows)] == ["Equivocation"]
    assert sorted(slot for slot, _ in memory.slots) == [4000, *near]
    assert {slot for slot, _ in memory.reported} == {4000}
    assert list(_found(memory, [_seal(99, 5000, 4000, author=4000)])) == []


@pytest.mark.parametrize("name", ["slot", "collator", "sealed"])
def test_a_block_without_slot_author_or_seal_is_no_seal(name: str) -> None:
    memory = HabitMemory(Thresholds())
    rows = [_seal(at, 1000, 1000) | {name: None} for at in range(2)]
    assert list(_found(memory, rows)) == []
    assert memory.slots == {}


def test_one_set_of_collators_is_no_crowd() -> None:
    memory = HabitMemory(Thresholds())
    claims = [*range(3000 - SLOT_WINDOW - 50, 3000 + SLOT_WINDOW + 50), *range(10**6, 10**6 + 9000)]
    rows = [_seal(at, 3000, slot, author=slot % 7) for at, slot in enumerate(claims)]
    assert list(_found(memory, rows)) == []
    assert len(memory.slots) == 2 * SLOT_WINDOW + 1 < MOST_SEALS
    assert not memory.crowded


def test_runs_and_publishers_stay_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_RUNS", 64)
    limits = Thresholds(relay_lag=1, starved_blocks=1)
    memory = HabitMemory(limits)
    count = 100
    rows = []
    for at in range(count):
        row = _seal(at, at, at, author=at)
        row |= {"status": "included", "verdict": None, "relay_lag": 5, "stopped": True}
        rows.append(row | {"budget": 10, "used": 1, "expired_valid": 0, "relay_parent": at})
    met = {"publisher": 0, "resolved": False, "unchanged": False}
    found = list(memory.add(rows, lambda _s, at: [{**met, "publisher": at}], lambda _s, _p: None))
    assert len(memory.runs) <= 64
    assert len(memory.known) <= 64
    # Runs that the memory had no room for are findings.
    open_runs = list(memory.open_runs())
    lagging = [row for row in (*found, *open_runs) if row["code"] == "RelayParentLag"]
    assert len({row["collator"] for row in lagging}) == count


def test_runs_go_on_after_a_memory_was_written_and_read() -> None:
    """Lag, a standing relay parent, a full budget and hunger, with a cursor that jumps."""
    limits = Thresholds(relay_lag=1, stalled_blocks=2, at_budget_blocks=2, starved_blocks=2)
    rows = []
    for at in range(12):
        row = _seal(at, at, at, author=at % 2)
        row |= {"status": "included", "verdict": None, "relay_lag": at % 5, "stopped": at % 7 > 2}
        row |= {"budget": 10, "used": 5, "expired_valid": 0, "relay_parent": at // 3}
        cursor = None if at % 4 else b"here"
        rows.append(row | {"cursor_before": b"here", "cursor_after": cursor})
    met = {"publisher": 7, "resolved": False, "unchanged": False}

    def told(memory: HabitMemory, part: list[Row]) -> list[Row]:
        return list(memory.add(part, lambda _s, at: [met] if at == 3 else [], lambda *_: None))

    memory = HabitMemory(limits)
    whole = told(memory, rows)
    codes = {row["code"] for row in (*whole, *memory.open_runs())}
    assert codes == {
        "RelayParentLag",
        "StallingCollator",
        "AlwaysAtBudget",
        "Starvation",
        "CursorJump",
    }
    other = HabitMemory(limits)
    parts = []
    for row in rows:
        parts += told(other, [row])
        other = HabitMemory.from_json(json.loads(json.dumps(other.to_json())), limits)
    assert parts == whole
    assert list(other.open_runs()) == list(memory.open_runs())
    assert other.to_json() == memory.to_json()
