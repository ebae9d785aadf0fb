"""The node that methods work on: kept blocks, runtimes, what may change the network, and who listens."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from pubsub_emulator.emulator.network.actions import Action
from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.node.at import At
from pubsub_emulator.node.chain.block import RELAY, Block, Chain, Moment
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.chain.timeline import Advance, Timeline
from pubsub_emulator.node.pool import Pool
from pubsub_emulator.node.rpc.method import Method
from pubsub_emulator.node.rpc.session import Session
from pubsub_emulator.node.rpc.transactions import Watches
from pubsub_emulator.primitives.types import PubsubKey
from pubsub_emulator.primitives.version import VERSION

T = TypeVar("T")

PROPERTIES: Final = {"ss58Format": 42, "tokenDecimals": 10, "tokenSymbol": "UNIT"}
CLIENT: Final = "pubsub-emulator"


class Control(Protocol):
    """The interface that changes the network: requests to whoever steps it."""

    async def act(self, todo: Iterable[Action]) -> list[int | None]:
        """Do all of it before the next step, or nothing: raises `PubsubError` for the first that cannot be."""

    async def build(self, todo: Iterable[Action] = ()) -> Moment:
        """Do all of it and build one relay block with it. Raises `PubsubError` when that fails."""

    def ask(self) -> None:
        """Something waits for a step: build it now, if blocks are built on demand."""

    async def rewind(self, moment: Moment, todo: Iterable[Action] = ()) -> None:
        """Go back to a kept moment, and do all of it then. Raises `PubsubError` where that is not possible."""

    async def aside(self, work: Callable[[LiveNetwork], T]) -> T:
        """Run `work` between two steps; it must leave the network as it is."""

    async def beside(self, work: Callable[[], T], *, executing: bool = False) -> T:
        """Run `work`, which changes nothing, in a thread; if it is `executing` the runtime, readers do not wait."""

    def set_mode(self, mode: str) -> None:
        """Build `instant`ly, with one extrinsic a step (`single`), or only when told to (`manual`)."""

    async def breathe(self) -> None:
        """Let others go on, when the caller has worked for long enough."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of `dev_snapshot`: a moment, the actions requested since then, the pools, and what follows it."""

    moment: Moment
    pending: tuple[Action, ...]
    pools: Mapping[Chain, Pool]
    before: str | None = None


@dataclass(slots=True)
class Node:
    """Everything that methods may use."""

    name: str
    timeline: Timeline
    live: LiveNetwork
    control: Control
    pools: dict[Chain, Pool]
    watches: Watches
    methods: Mapping[str, Method] = field(default_factory=dict)
    dev: bool = False
    floor: int = 0
    """The relay height with which the node began to listen."""
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    reverted: int = 0
    """Snapshots that are gone: names are not used again."""
    sessions: dict[Session, None] = field(default_factory=dict)
    version: str = VERSION
    draw: Callable[[str, Mapping[str, object]], str] | None = None
    """Makes a page of a difference under a title; `None` where nothing is drawn."""
    explain: Callable[["Node", Moment, Moment, BlockRecord], dict[str, object]] | None = None
    """Draws a candidate of a moment, given the moment before; `None` where nothing is drawn."""
    names: dict[PubsubKey, str] = field(default_factory=dict)
    """Names of keys that acts gave."""

    @property
    def network(self) -> Network:
        """The network."""
        return self.live.network

    def at(self, block: Block) -> At:
        """A block as runtime calls look at it."""
        relay = self.network.relay.runtime if block.chain is RELAY else None
        return At(relay, block.header, block.state, self.timeline.genesis.heads[block.chain].hash)

    def announce(self, advance: Advance) -> None:
        """Bring the pools up to date and tell every connection of a step or a rewind."""
        left = self.watches.retractable(advance) if advance.rewound else {}
        for chain, pool in self.pools.items():
            change = advance.chains[chain]
            at = self.at(change.view.best)
            if advance.rewound:
                pool.retract(at, left[chain])
            elif change.new:
                pool.advance(at, (extrinsic for block in change.new for extrinsic in block.body))
        self.watches.advanced(advance)
        for chain in self.pools:
            self.tell_pooled(chain)
        for session in list(self.sessions):
            session.advanced(advance)

    def reject(self, chain: Chain, extrinsics: Iterable[bytes]) -> None:
        """Drop extrinsics that a block could not be built with."""
        self.pools[chain].reject(self.at(self.timeline.views[chain].best), extrinsics)
        self.tell_pooled(chain)

    def tell_pooled(self, chain: Chain) -> None:
        """Tell the watchers of an extrinsic its status in the pool."""
        self.watches.pooled(chain, self.pools[chain].take_changes())

    def chain_name(self, chain: Chain) -> str:
        """The name of a chain."""
        return f"{self.name} relay chain" if chain is RELAY else f"{self.name} parachain {chain}"
