"""The state after a block of another chain, from which an emulated chain can continue."""

from dataclasses import dataclass

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import U32_MAX, Hash
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.framework.system import NUMBER


class BadFork(PubsubError):
    """A state that an emulated chain cannot continue from."""


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """The state after a block of another chain."""

    state: State
    number: int
    """The height of the block."""
    block: Hash
    """The hash of the block, or 32 zero bytes if it is unknown."""
    source: str
    """Where the state comes from, for messages."""

    @property
    def root(self) -> Hash:
        """Return the root of the original state."""
        return self.state.root()


def state_number(state: State, source: str) -> int:
    """Return the block number that a state has under `System.Number`.

    `source` is named in errors. Raises `BadFork` if the number is missing or not a number, and
    `StateUnavailable`.
    """
    raw = state.top.get(NUMBER.key)
    if raw is None or not 4 <= len(raw) <= 8 or int.from_bytes(raw, "little") >= U32_MAX:
        raise BadFork(
            f"{source}: the state's block is unknown: System.Number is missing or not a number"
        )
    return int.from_bytes(raw, "little")
