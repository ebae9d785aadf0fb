"""Chains that continue from the state of another chain: what they keep of it and what they replace.

The emulated chain replaces the pallets that describe its own blocks, its collators and the messages between its chains:
these start as at any genesis, and the fork's items in them are removed. It keeps accounts, balances, everything that
was published, and all pallets that are not emulated, which nothing here writes to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import twox_128
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import CODE, item_prefix
from pubsub_emulator.primitives.types import U32_MAX, Hash
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.framework.system import NUMBER


class BadFork(PubsubError):
    """A state that no chain here can go on from."""


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """The state after a block of another chain; never written.

    `block` is the hash of that block, 32 zeros where only the state is known; `source` is for people.
    """

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
"""What of `System` is of a chain's blocks; its accounts are not."""
OWN_RELAY_PALLETS: Final = (
    "Babe",
    "Session",
    "Configuration",
    "ParaInclusion",
    "ParaInherent",
    "ParaScheduler",
    "ParasShared",
    "ParaSessionInfo",
    "Paras",
    "Dmp",
    "Hrmp",
    "Registrar",
    "MessageQueue",
    "Timestamp",
    "TransactionPayment",
    "Sudo",
)
OWN_PARACHAIN_PALLETS: Final = (
    "Aura",
    "AuraExt",
    "ParachainSystem",
    "ParachainInfo",
    "Subscriber",
    "Consumer",
    "Timestamp",
    "TransactionPayment",
    "Sudo",
)
OWN_RELAY_KEYS: Final = (b":relay_dispatch_queue_remaining_capacity", CODE)
OWN_PARACHAIN_KEYS: Final = (CODE,)


def relay_base(fork: Fork) -> State:
    """The state that a relay chain's genesis is written over. Raises `StateUnavailable`."""
    return _without(fork, OWN_RELAY_PALLETS, OWN_RELAY_KEYS)


def parachain_base(fork: Fork) -> State:
    """The state that a parachain's genesis is written over. Raises `StateUnavailable`."""
    return _without(fork, OWN_PARACHAIN_PALLETS, OWN_PARACHAIN_KEYS)


def state_number(state: State, source: str) -> int:
    """The number of the block that a state is of, as the state itself says. Raises `BadFork`, `StateUnavailable`."""
    raw = state.top.get(NUMBER.key)
    if raw is None or not 4 <= len(raw) <= 8 or int.from_bytes(raw, "little") >= U32_MAX:
        raise BadFork(f"{source}: the state's block is unknown: System.Number is missing or not a number")
    return int.from_bytes(raw, "little")


def _without(fork: Fork, pallets: tuple[str, ...], keys: tuple[bytes, ...]) -> State:
    state = fork.state.fork()
    prefixes = [item_prefix("System", item) for item in OWN_SYSTEM_ITEMS]
    prefixes += [twox_128(pallet.encode()) for pallet in pallets]
    for prefix in (*prefixes, *keys):
        state.top.remove_prefix(prefix)
    return state
