"""The node that a session works on: in process for a scenario, or at a URL."""

from abc import ABC, abstractmethod
from typing import Final, NamedTuple

from pubsub_emulator.client.errors import NodeRefused
from pubsub_emulator.emulator.fork import NO_FORKS, Forks
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.block import Chain
from pubsub_emulator.node.local import LocalNode
from pubsub_emulator.node.rpc.errors import RpcError
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.session.command import CommandError

RELAY: Final = "relay"


class Deposited(NamedTuple):
    """An event of a block: its phase, the pallet, its name, and all of it in words."""

    phase: str
    pallet: str
    name: str
    text: str
    error: str = ""
    """The error of a call that failed."""


class NodeApi(ABC):
    """The methods of a node, and the states of its chains.

    A chain is `relay` or a parachain's id.
    """

    url: str = ""
    """The node's URL. It is empty for a node in this process."""

    @abstractmethod
    def ask(self, method: str, *params: object, chain: str = RELAY) -> object:
        """Return the answer of a method, as JSON.

        Raises `NodeRefused` and every other `PubsubError`.
        """

    @abstractmethod
    def state(self, chain: str, block: bytes) -> State:
        """Return the state after a block.

        Raises `CommandError` or `ClientError` if the node does not keep the block.
        """

    def local(self) -> LocalNode:
        """Return the node in this process.

        Raises `CommandError` if the session uses a node at a URL.
        """
        raise CommandError(
            "this is for a session over a scenario; `pubsub step SCENARIO` begins one"
        )

    def events_by_metadata(self, block: bytes) -> list[Deposited]:
        """Return the events of a relay block, decoded by the chain's metadata.

        Only a node at a URL does this. Raises `ClientError`, or `CommandError` in this process.
        """
        raise CommandError(f"block 0x{block.hex()} is not read by metadata in this process")

    def item_by_metadata(self, pallet: str, name: str, keys: tuple[bytes, ...]) -> object:
        """Return an item of the newest state, decoded by the chain's metadata.

        Raises `ClientError`.
        """
        raise CommandError(
            f"{pallet}.{name} is not read by metadata in this process, nor by {len(keys)} keys"
        )

    def close(self) -> None:  # noqa: B027  # nothing to release in process
        """Close the connections to the node."""


class InProcess(NodeApi):
    """A scenario's network in this process."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        accounts: bool = False,
        forks: Forks = NO_FORKS,
        rules: Rules = SHIPPED,
    ) -> None:
        """Start a node for a scenario.

        `accounts` gives all chains the profile with accounts. Raises the errors of `Simulation`
        if the scenario cannot work.
        """
        self.forks = forks
        self._node = LocalNode(Simulation(scenario, accounts=accounts, forks=forks, rules=rules))

    def local(self) -> LocalNode:
        """Return the node."""
        return self._node

    def ask(self, method: str, *params: object, chain: str = RELAY) -> object:
        """Return the answer of a method.

        A `PubsubError` that made the method fail is raised instead of the RPC error.
        """
        try:
            return self._node.call(method, params, _chain(chain))
        except RpcError as error:
            if isinstance(error.__cause__, PubsubError):
                raise error.__cause__ from None
            raise NodeRefused(method, error.code, error.message, error.data) from error

    def state(self, chain: str, block: bytes) -> State:
        """Return the state after a block.

        Raises `CommandError` if the node does not keep the block.
        """
        moment = self._node.timeline.block(_chain(chain), block)
        if moment is None:
            raise CommandError(f"block 0x{block.hex()} of {chain} is not kept")
        return moment.state


def _chain(name: str) -> Chain:
    return None if name == RELAY else ParaId(int(name))
