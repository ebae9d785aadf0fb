"""Chains that continue from the state of another chain.

Pallets of a chain's own blocks, collators and messages start as at any genesis. Accounts, balances, what was published
and pallets that are not emulated stay as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import twox_128
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import CODE, item_prefix
from pubsub_emulator.primitives.types import U32_MAX, Hash
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.framework.system import NUMBER


class BadFork(PubsubError):
    """A state that no chain here can go on from."""


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """The state after a block of another chain, which has 32 zeros where it is not known; `source` is for people."""

    state: State
    number: int
    block: Hash
    source: str

    @property
    def root(self) -> Hash:
        """The root of the state as it was taken over."""
        return self.state.root()


@dataclass(frozen=True, slots=True, eq=False)
class Forks:
    """The states that a network's chains continue from, those of parachains by id."""

    relay: Fork | None = None
    parachains: Mapping[int, Fork] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.relay is not None or bool(self.parachains)

    def roots(self) -> dict[str, str]:
        """The root of each state in hex, by chain."""
        return {chain: hexed(fork.root) for chain, fork in self.by_chain().items()}

    def by_chain(self) -> dict[str, Fork]:
        """The forks by chain, `relay` or a parachain's id."""
        relay = {} if self.relay is None else {"relay": self.relay}
        return relay | {str(para): self.parachains[para] for para in sorted(self.parachains)}


NO_FORKS: Final = Forks()

OWN_SYSTEM_ITEMS: Final = (
    *("Number", "ParentHash", "BlockHash", "Digest", "ExtrinsicCount", "Events", "EventCount", "EventTopics"),
    *("BlockWeight", "BlockSize", "ExecutionPhase", "ExtrinsicData", "AllExtrinsicsLen"),
)
"""What of `System` is of a chain's blocks; its accounts are not."""
_KEPT: Final = frozenset({"System", "Balances", "Broadcaster", "DomeEvents"})
"""The emulated pallets with items that a fork keeps; of `System`, all but `OWN_SYSTEM_ITEMS`."""
_NOT_EMULATED: Final = ("ParaInclusion", "ParaInherent", "ParaScheduler", "ParasShared", "ParaSessionInfo", "AuraExt")
"""Pallets with items on other chains that describe a chain's own blocks."""
_OWN_KEYS: Final = (b":relay_dispatch_queue_remaining_capacity", CODE)


def base(fork: Fork, runtime: Runtime) -> State:
    """The state that the genesis of a chain with this runtime is written over. Raises `StateUnavailable`."""
    state = fork.state.fork()
    emulated = (pallet.name for pallet in runtime.pallets.values() if pallet.items and pallet.name not in _KEPT)
    prefixes = [item_prefix("System", item) for item in OWN_SYSTEM_ITEMS]
    prefixes += [twox_128(name.encode()) for name in (*emulated, *_NOT_EMULATED)]
    for prefix in (*prefixes, *_OWN_KEYS):
        state.top.remove_prefix(prefix)
    return state


def state_number(state: State, source: str) -> int:
    """The number of the block that a state is of, as the state itself says. Raises `BadFork`, `StateUnavailable`."""
    raw = state.top.get(NUMBER.key)
    if raw is None or not 4 <= len(raw) <= 8 or int.from_bytes(raw, "little") >= U32_MAX:
        raise BadFork(f"{source}: the state's block is unknown: System.Number is missing or not a number")
    return int.from_bytes(raw, "little")
