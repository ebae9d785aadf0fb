"""The process that runs drawn modules (`pubsub fuzz --target canister-run`).

It reads inputs and writes results, each with its length in four bytes before it. An input is a
module and what happens to it, see `play`. A result begins with `read`, `refused` or `surprise`.
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
"""Limits with which a module can do harm in milliseconds and not in seconds."""
_SHOWN: Final = 60
_ROUNDS: Final = 2


class Checked(WasmCanister):
    """A canister that compares its state after a trap or a query with that before."""

    def __init__(self, wasm: bytes) -> None:
        super().__init__(wasm, limits=LIMITS)
        self._before = b""

    def snapshot(self) -> object:
        """Make a snapshot, and keep the state."""
        made = super().snapshot()
        self._before = self.state_bytes()
        return made

    def restore(self, snapshot: object) -> None:
        """Restore a snapshot. Raises `AssertionError` if anything differs from the state before."""
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
    """Install a drawn module and let things happen to it. Returns a short description.

    Raises `IcError` if the module is refused, and `AssertionError` if its state is not restored.
    """
    choices = Choices(data)
    network = CanisterNetwork(1)
    who = network.create(0, _made(choices))
    happenings = 1 + choices.below(6)
    seen = {_happen(network, who, choices) for _ in range(happenings)}
    return ", ".join(sorted(seen))[:200]


def _made(choices: Choices) -> Checked:
    text = drawn_module(choices)
    return Checked(bytes(wasmtime.wat2wasm(text)))


def _happen(network: CanisterNetwork, who: Principal, choices: Choices) -> str:
    """Let one thing happen to a canister, and return a short description of the result."""
    match choices.below(6):
        case 0 | 1:
            method = choices.choice(("a", "b", "q"))
            ticket = network.submit(ANONYMOUS, who, method, NOTHING)
            network.step(_ROUNDS)
            answer = ticket.answer
            return "no answer" if answer is None else f"{answer.code} {answer.message[:_SHOWN]}"
        case 2:
            answer = network.query(ANONYMOUS, who, "q", NOTHING)
            return f"query {answer.code} {answer.message[:_SHOWN]}"
        case 3:
            network.step(_ROUNDS)
            return "rounds"
        case _:
            other = _made(choices)
            network.stop(who)
            network.step(_ROUNDS)
            if network.status(who) != "stopped":
                network.start(who)
                return "not stopped"
            done = network.upgrade(who, other)
            network.start(who)
            return "upgraded" if done else "upgrade trapped"


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Play each input of a stream until it ends."""
    while length := source.read(4):
        data = source.read(int.from_bytes(length, "little"))
        try:
            result = f"read {play(data)}"
        except (IcError, wasmtime.WasmtimeError) as error:
            result = f"refused {error}"
        except Exception as error:  # noqa: BLE001  # a surprise is what is looked for
            result = f"surprise {type(error).__name__}: {error}"
        raw = result.encode(errors="replace")[:1000]
        target.write(len(raw).to_bytes(4, "little") + raw)
        target.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
