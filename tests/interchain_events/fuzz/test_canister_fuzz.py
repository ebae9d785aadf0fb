"""The target that runs drawn modules finds what it looks for."""

import os
import signal
from contextlib import suppress

import pytest

from interchain_events.fuzz.module_targets import Worker
from interchain_events.fuzz.module_worker import play
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.errors import IcError
from interchain_events.icrc72.ic.wasm.canister import WasmCanister
from interchain_events.icrc72.ic.wasm.instance import Instance
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.errors import DefensiveFailure

INPUTS = [Draws(b"test", f"{number}").take(400) for number in range(40)]


def surprises() -> int:
    """Play all inputs, and return how many show a state that is not that before."""
    found = 0
    for data in INPUTS:
        try:
            play(data)
        except IcError:
            pass
        except AssertionError:
            found += 1
    return found


def test_drawn_modules_run_and_show_nothing() -> None:
    assert surprises() == 0


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (WasmCanister, "_roll_back"),
        (Instance, "set_globals"),
    ],
)
def test_a_state_that_is_not_restored_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    monkeypatch.setattr(owner, name, lambda *_: None)
    assert surprises() > 0


def test_the_process_runs_one_input_after_another() -> None:
    worker = Worker()
    outcomes = set()
    for data in INPUTS[:8]:
        try:
            outcomes.add(worker.run(data))
        except Icrc72Error as refusal:
            outcomes.add(f"refused: {refusal}")
    worker.end()
    assert len(outcomes) > 2


@pytest.mark.parametrize(
    ("seconds", "memory", "words"),
    [
        (0.0, 1 << 30, "no end after 0.0 seconds"),
        (60.0, 1 << 20, "more than 1 MiB of memory"),
    ],
)
def test_an_input_that_takes_too_much_is_a_surprise(
    seconds: float, memory: int, words: str
) -> None:
    worker = Worker(seconds=seconds, memory=memory)
    with pytest.raises(DefensiveFailure, match=words):
        worker.run(INPUTS[0])


def test_a_process_that_ends_is_a_surprise_and_is_replaced() -> None:
    worker = Worker()
    os.kill(worker.pid(), signal.SIGKILL)
    with pytest.raises(DefensiveFailure, match="the process ended with code -9"):
        worker.run(INPUTS[0])
    with suppress(Icrc72Error):
        worker.run(INPUTS[0])
    worker.end()
