"""The node that methods work on: kept blocks, runtimes, what may change the network, and who listens."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.node import api
from pubsub_emulator.node.chain.actions import Action
from pubsub_emulator.node.chain.block import RELAY, Block, Chain, Moment
from pubsub_emulator.node.chain.timeline import Advance, Timeline
from pubsub_emulator.node.rpc.method import Method
from pubsub_emulator.node.rpc.session import Session
from pubsub_emulator.node.types import At, RuntimeVersion, metadata, runtime_version
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.version import VERSION

PROPERTIES: Final = {"ss58Format": 42, "tokenDecimals": 10, "tokenSymbol": "UNIT"}
CLIENT: Final = "pubsub-emulator"


class CannotBuild(PubsubError):
    """Blocks cannot be built until a rewind: a step failed without any new input."""


class Control(Protocol):
    """What changes the network: requests to whoever steps it."""

    async def act(self, todo: Iterable[Action]) -> list[int | None]:
        """Do all of it before the next step, or nothing: raises `PubsubError` for the first that cannot be."""

    async def build(self, todo: Iterable[Action] = ()) -> Moment:
        """Do all of it and build one relay block with it. Raises `PubsubError` when that fails."""

    def ask(self) -> None:
        """Something waits for a step: build it now, if blocks are built on demand."""

    async def rewind(self, moment: Moment, todo: Iterable[Action] = ()) -> None:
        """Go back to a kept moment, and do all of it then. Raises `PubsubError` where that is not possible."""

    def asked(self) -> tuple[Action, ...]:
        """What was asked for since the last step."""

    def set_mode(self, mode: str) -> None:
        """Build `instant`ly, with one extrinsic a step (`single`), or only when told to (`manual`)."""

    async def breathe(self) -> None:
        """Let others go on, when the caller has worked for long enough."""


class Runtimes:
    """What the chains' runtimes answer."""

    def __init__(self, network: Network, genesis: Mapping[Chain, Block]) -> None:
        self._relay = network.relay.runtime
        self._genesis = {chain: block.hash for chain, block in genesis.items()}

    def at(self, block: Block) -> At:
        """A block as runtime calls look at it."""
        relay = self._relay if block.chain is RELAY else None
        return At(relay, block.header, block.state, self._genesis[block.chain])

    def version(self, block: Block) -> RuntimeVersion:
        """The runtime that a block's state is read with."""
        return runtime_version(self.at(block))

    def metadata(self, block: Block, version: int) -> bytes:
        """Metadata of that version. Raises `UnknownMetadataVersion`."""
        return metadata(self.at(block), version)

    def call(self, block: Block, name: str, data: bytes) -> bytes:
        """What a runtime function returns. Raises `UnknownFunction`, and `ApiFailed` when it fails."""
        return api.call(self.at(block), name, data)

    def storage_pairs(self, block: Block, values: Mapping[str, Any]) -> list[tuple[bytes, bytes | None]]:
        """Keys and values that `{Pallet: {Item: value}}` stands for. Raises `PubsubError`."""
        raise api.UnknownFunction(f"storage by name of block {block.number}: {', '.join(values)}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What `dev_snapshot` keeps: a moment, and what was asked for since then."""

    moment: Moment
    asked: tuple[Action, ...]


@dataclass(slots=True)
class Node:
    """Everything that methods may use."""

    name: str
    timeline: Timeline
    network: Network
    runtimes: Runtimes
    control: Control
    methods: Mapping[str, Method] = field(default_factory=dict)
    dev: bool = False
    floor: int = 0
    """The relay height with which the node began to listen."""
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    reverted: int = 0
    """Snapshots that are gone: names are not used again."""
    sessions: dict[Session, None] = field(default_factory=dict)
    version: str = VERSION

    def announce(self, advance: Advance) -> None:
        """Tell every connection of a step or a rewind."""
        for session in list(self.sessions):
            session.advanced(advance)

    def chain_name(self, chain: Chain) -> str:
        """What a chain calls itself."""
        return f"{self.name} relay chain" if chain is RELAY else f"{self.name} parachain {chain}"
