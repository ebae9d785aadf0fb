"""The node that methods work on, and the interface through which they change its network."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain as chained
from typing import Final, Protocol, TypeVar

from pubsub_emulator.emulator.network.actions import Action
from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.node.at import At
from pubsub_emulator.node.chain.block import RELAY, Chain, Moment, StoredBlock
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.chain.timeline import Advance, Timeline
from pubsub_emulator.node.pool import Pool
from pubsub_emulator.node.rpc.method import Method
from pubsub_emulator.node.rpc.session import RpcSession
from pubsub_emulator.node.rpc.transactions import Watches
from pubsub_emulator.primitives.types import PubsubKey
from pubsub_emulator.version import VERSION

T = TypeVar("T")

PROPERTIES: Final = {"ss58Format": 42, "tokenDecimals": 10, "tokenSymbol": "UNIT"}
"""The chain's properties: address format, and the decimals and symbol of the token."""
CLIENT: Final = "pubsub-emulator"
"""The name of the client software, as `system_name` returns it."""


class Control(Protocol):
    """Requests to the thread or task that builds blocks.

    Methods never change the network themselves, because a block may be under construction.
    """

    async def act(self, todo: Iterable[Action]) -> list[int | None]:
        """Apply all actions before the next step, or leave the network unchanged.

        Raises `PubsubError` for the first action that is refused.
        """

    async def build(self, todo: Iterable[Action] = ()) -> Moment:
        """Apply all actions and build one relay block with them.

        Raises `PubsubError` if an action or the block fails.
        """

    def ask(self) -> None:
        """Request a step for something that waits.

        This only has an effect if blocks are built on demand.
        """

    async def rewind(self, moment: Moment, todo: Iterable[Action] = ()) -> None:
        """Return the network to a stored moment and apply actions there.

        Raises `PubsubError` if that is not possible.
        """

    async def aside(self, work: Callable[[LiveNetwork], T]) -> T:
        """Call `work` with the network between two steps and return its result.

        `work` must leave the network as it is.
        """

    async def beside(self, work: Callable[[], T], *, executing: bool = False) -> T:
        """Call `work`, which must not change anything, in another thread and return its result.

        Set `executing` if `work` runs the runtime. Such work has threads of its own, so that short
        reads do not wait for it.
        """

    def set_mode(self, mode: str) -> None:
        """Set the mode in which blocks are built, by its name.

        `instant` builds a block when something waits, `single` does the same with one extrinsic in
        each block, and `manual` builds only on request.
        """

    async def breathe(self) -> None:
        """Let other tasks run if the caller has been running for a while."""


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A moment that `dev_snapshot` stored."""

    moment: Moment
    pending: tuple[Action, ...]
    """Actions that were requested after the moment."""
    pools: Mapping[Chain, Pool]
    """Copies of the pools."""
    before: str | None = None
    """A description of the action that follows, if the snapshot exists to undo it."""
    branch: str | None = None
    """The name of the branch that was left here, if the snapshot exists to return to it."""


@dataclass(slots=True)
class RpcNode:
    """Everything that methods can use."""

    name: str
    """The name of the scenario."""
    timeline: Timeline
    live: LiveNetwork
    control: Control
    """The interface that changes the network."""
    pools: dict[Chain, Pool]
    """The transaction pool of each chain."""
    watches: Watches
    """The watched extrinsics."""
    methods: Mapping[str, Method] = field(default_factory=dict)
    """The available methods by each of their names."""
    dev: bool = False
    """Whether unsafe methods are available (`--dev`)."""
    floor: int = 0
    """The height of the newest relay block when the node started."""
    snapshots: dict[str, StoredSnapshot] = field(default_factory=dict)
    """The snapshots by name, the oldest first."""
    branch: str = "main"
    """The name of the present branch of the network."""
    dropped_snapshots: int = 0
    """The number of deleted snapshots. It is part of new names, so that no name is used twice."""
    sessions: dict[RpcSession, None] = field(default_factory=dict)
    """The open connections. The dictionary is an ordered set."""
    version: str = VERSION
    """The version of the client software."""
    draw: Callable[[str, Mapping[str, object]], str] | None = None
    """Renders a difference as an HTML page, given a title. `None` if the node renders nothing."""
    explain: Callable[["RpcNode", Moment, Moment, BlockRecord], dict[str, object]] | None = None
    """Renders a candidate, given the moments before and after it. `None` if the node renders
    nothing.
    """
    names: dict[PubsubKey, str] = field(default_factory=dict)
    """Names of published keys, from actions that used a name."""

    @property
    def network(self) -> Network:
        """Return the present network."""
        return self.live.network

    def at(self, block: StoredBlock) -> At:
        """Return a block as runtime calls see it."""
        relay = self.network.relay.runtime if block.chain is RELAY else None
        genesis = self.timeline.genesis.heads[block.chain].hash
        return At(relay, block.header, block.state, genesis, self.network.rules)

    def announce(self, advance: Advance) -> None:
        """Update the pools after a step or a rewind, and notify all connections.

        The watchers of extrinsics are notified first, and then all other subscriptions.
        """
        retractable = self.watches.retractable(advance) if advance.rewound else {}
        for chain, pool in self.pools.items():
            change = advance.chains[chain]
            at = self.at(change.view.best)
            if advance.rewound:
                pool.retract(at, retractable[chain])
            elif change.new:
                pool.advance(at, chained.from_iterable(block.body for block in change.new))
        self.watches.advanced(advance)
        for chain in self.pools:
            self.tell_pooled(chain)
        for session in list(self.sessions):
            session.advanced(advance)

    def reject(self, chain: Chain, extrinsics: Iterable[bytes]) -> None:
        """Drop extrinsics because a block that contained them could not be built."""
        self.pools[chain].reject(self.at(self.timeline.views[chain].best), extrinsics)
        self.tell_pooled(chain)

    def tell_pooled(self, chain: Chain) -> None:
        """Notify the watchers of extrinsics whose status in the pool has changed."""
        self.watches.pooled(chain, self.pools[chain].take_changes())

    def chain_name(self, chain: Chain) -> str:
        """Return the display name of a chain."""
        return f"{self.name} relay chain" if chain is RELAY else f"{self.name} parachain {chain}"
