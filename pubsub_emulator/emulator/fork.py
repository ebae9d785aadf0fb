"""Chains that continue from the state of another chain.

Pallets that describe a chain's own blocks, collators and messages start as at any genesis. The
others are kept: accounts, balances, published entries, and pallets that are not emulated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.primitives.hashing import twox_128
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import CODE, item_prefix
from pubsub_emulator.runtime.framework.fork import Fork
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.framework.storage import State


@dataclass(frozen=True, slots=True, eq=False)
class Forks:
    """The states from which the chains of a network continue."""

    relay: Fork | None = None
    parachains: Mapping[int, Fork] = field(default_factory=dict)
    """The forks of parachains by id."""

    def __bool__(self) -> bool:
        return self.relay is not None or bool(self.parachains)

    def roots(self) -> dict[str, str]:
        """Return the root of each state in hexadecimal digits, by chain."""
        return {chain: hexed(fork.root) for chain, fork in self.by_chain().items()}

    def by_chain(self) -> dict[str, Fork]:
        """Return the forks by chain: `relay`, or a parachain's id as text."""
        relay = {} if self.relay is None else {"relay": self.relay}
        return relay | {str(para): self.parachains[para] for para in sorted(self.parachains)}


NO_FORKS: Final = Forks()

OWN_SYSTEM_ITEMS: Final = (
    "Number",
    "ParentHash",
    "BlockHash",
    "Digest",
    "ExtrinsicCount",
    "Events",
    "EventCount",
    "EventTopics",
    "BlockWeight",
    "BlockSize",
    "ExecutionPhase",
    "ExtrinsicData",
    "AllExtrinsicsLen",
)
"""The items of `System` that describe a chain's own blocks. Its accounts are not among them."""
_KEPT: Final = frozenset({"System", "Balances", "Broadcaster"})
"""The emulated pallets with items that a fork preserves. Of `System`, these are all but
`OWN_SYSTEM_ITEMS`. Added pallets are preserved, too.
"""
_NOT_EMULATED: Final = (
    "ParaInclusion",
    "ParaInherent",
    "ParaScheduler",
    "ParasShared",
    "ParaSessionInfo",
    "AuraExt",
)
"""Pallets of other chains that are not emulated and describe the chain's own blocks."""
_OWN_KEYS: Final = (b":relay_dispatch_queue_remaining_capacity", CODE)


def base(fork: Fork, runtime: Runtime) -> State:
    """Return the state into which the genesis of a chain with this runtime is written.

    It is a copy of the fork's state, without the storage that describes the other chain's own
    blocks. Raises `StateUnavailable`.
    """
    state = fork.state.fork()
    emulated = (
        pallet.name
        for pallet in runtime.pallets.values()
        if pallet.items and pallet.name not in _KEPT
    )
    prefixes = [item_prefix("System", item) for item in OWN_SYSTEM_ITEMS]
    prefixes += [twox_128(name.encode()) for name in (*emulated, *_NOT_EMULATED)]
    for prefix in (*prefixes, *_OWN_KEYS):
        state.top.remove_prefix(prefix)
    return state
