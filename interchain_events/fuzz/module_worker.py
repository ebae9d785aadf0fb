"""The process that runs drawn modules (`pubsub fuzz --target canister-run`).

It reads inputs and writes results. Each is preceded by its length in four bytes. An input has a
module and its calls (see `play`). A result begins with `read`, `refused` or `surprise`.
"""

import sys
from typing import BinaryIO, Final

import wasmtime

from interchain_events.fuzz.drawn_modules import Choices, drawn_module
from interchain_events.icrc72.ic.errors import IcError
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.wasm.canister import NOTHING, WasmCanister, WasmLimits

LIMITS: Final = WasmLimits(
    instructions=20_000_000,
    memory_bytes=8 << 20,
    stable_bytes=8 << 20,
)
"""Limits so small that a module reaches them in milliseconds."""
_SHOWN: Final = 60
_ROUNDS: Final = 2


class Checked(WasmCanister):
    """A canister that checks that traps and queries do not change its state."""

    def __init__(self, wasm: bytes) -> None:
        super().__init__(wasm, limits=LIMITS)
        self._before = b""

    def snapshot(self) -> object:
        """Return a snapshot, and remember the state."""
        snapshot = super().snapshot()
        self._before = self.state_bytes()
        return snapshot

    def restore(self, snapshot: object) -> None:
        """Restore a snapshot. Raises `AssertionError` if the state differs from the one before."""
        super().restore(snapshot)
        self._compare("the copy")
        # Make a new instance from the copy, and a new copy of this instance.
        self._throw_away()
        self._live()
        self._changed = True
        self._compare("a new instance")

    def _compare(self, what: str) -> None:
        if self.state_bytes() != self._before:
            raise AssertionError(f"{what} differs from the state before")


def play(data: bytes) -> str:
    """Install a drawn module, and call, query or upgrade it. Returns a short description.

    Raises `IcError` if the module is refused, and `AssertionError` if its state is not restored.
    """
    choices = Choices(data)
    network = CanisterNetwork(1)
    canister = network.create(0, _made(choices))
    count = 1 + choices.below(6)
    results = {_act(network, canister, choices) for _ in range(count)}
    return ", ".join(sorted(results))[:200]


def _made(choices: Choices) -> Checked:
    text = drawn_module(choices)
    return Checked(bytes(wasmtime.wat2wasm(text)))


def _act(network: CanisterNetwork, canister: Principal, choices: Choices) -> str:
    """Call, query or upgrade a canister, or run rounds. Returns a short description."""
    match choices.below(6):
        case 0 | 1:
            method = choices.choice(("a", "b", "q"))
            ticket = network.submit(ANONYMOUS, canister, method, NOTHING)
            network.step(_ROUNDS)
            answer = ticket.answer
            return "no answer" if answer is None else f"{answer.code} {answer.message[:_SHOWN]}"
        case 2:
            answer = network.query(ANONYMOUS, canister, "q", NOTHING)
            return f"query {answer.code} {answer.message[:_SHOWN]}"
        case 3:
            network.step(_ROUNDS)
            return "rounds"
        case _:
            other = _made(choices)
            network.stop(canister)
            network.step(_ROUNDS)
            if network.status(canister) != "stopped":
                network.start(canister)
                return "not stopped"
            done = network.upgrade(canister, other)
            network.start(canister)
            return "upgraded" if done else "upgrade trapped"


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Play each input of a stream until it ends."""
    while length := source.read(4):
        data = source.read(int.from_bytes(length, "little"))
        try:
            result = f"read {play(data)}"
        except (IcError, wasmtime.WasmtimeError) as error:
            result = f"refused {error}"
        except Exception as error:  # noqa: BLE001  # any other exception is a surprise
            result = f"surprise {type(error).__name__}: {error}"
        raw = result.encode(errors="replace")[:1000]
        target.write(len(raw).to_bytes(4, "little") + raw)
        target.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
