"""A scenario's network behind the methods of a node, without a server.

Everything runs in the caller's thread. The methods of the server are coroutines because they wait
for the producer of blocks. Here they complete without waiting, and `LocalNode.call` is synchronous.
"""

from collections.abc import Callable, Coroutine, Iterable
from types import CoroutineType
from typing import Final, TypeVar

import orjson

from pubsub_emulator.emulator.network.actions import Action
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.block import Chain, Moment
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.chain.timeline import Timeline
from pubsub_emulator.node.rpc.call import RpcCall
from pubsub_emulator.node.rpc.encode import JsonText
from pubsub_emulator.node.rpc.errors import DEVELOPMENT, RpcError, method_not_found
from pubsub_emulator.node.rpc.method import Json
from pubsub_emulator.node.rpc.methods import all_methods
from pubsub_emulator.node.rpc.node import RpcNode
from pubsub_emulator.node.rpc.params import bind
from pubsub_emulator.node.rpc.transactions import Watches
from pubsub_emulator.primitives.errors import DefensiveFailure

T = TypeVar("T")

HISTORY: Final = 256
"""The number of relay blocks that are available by default."""
_POOLED: Final = ("author_", "transaction")
"""Prefixes of the methods that need a pool of extrinsics, which this node does not have."""


class LocalNode:
    """A node without connections and pools, for use inside one process.

    All methods are available, including those of `--dev`, except subscriptions and methods that
    need a pool. The class is also the node's `Control`: methods that change the network call it
    directly.
    """

    def __init__(self, simulation: Simulation, history: int = HISTORY) -> None:
        """Serve a simulation from its present block.

        `history` is the number of relay blocks that methods can read.
        """
        self.live = LiveNetwork(simulation)
        self.timeline = Timeline(self.live.genesis, history)
        methods = {
            name: method
            for name, method in all_methods(unsafe=True).items()
            if not name.startswith(_POOLED)
        }
        self._node = RpcNode(
            simulation.scenario.name,
            self.timeline,
            self.live,
            self,
            {},
            Watches(self.live.genesis.heads),
            methods,
            dev=True,
            floor=self.live.genesis.number,
        )

    def call(self, name: str, params: Iterable[object] = (), chain: Chain = None) -> Json:
        """Call a method and return its result as JSON values.

        `chain` is the chain whose path the call would have; `None` is the relay chain. Raises
        `RpcError` if the method is unknown, needs a connection, or fails, and any other error that
        the method raises.
        """
        method = self._node.methods.get(name)
        if method is None or method.live or chain not in self.timeline.views:
            raise method_not_found()
        result = method.run(RpcCall(self._node, chain, None), *bind(method.params, list(params)))
        answer = _finished(result) if isinstance(result, CoroutineType) else result
        return orjson.loads(str(answer)) if isinstance(answer, JsonText) else answer

    async def act(self, todo: Iterable[Action]) -> list[int | None]:
        """Apply all actions before the next block, or leave the network unchanged.

        Raises `PubsubError` for the first action that is refused.
        """
        return self.live.apply_all(todo)

    async def build(self, todo: Iterable[Action] = ()) -> Moment:
        """Apply all actions and build one relay block.

        Raises `PubsubError` if an action or the block fails. The actions that waited before the
        call are then applied again, because undoing a failed step also undoes them.
        """
        waiting = list(self.live.pending)
        try:
            self.live.apply_all(todo)
            moment = self.live.step()
        except BaseException:
            self.live.undo()
            self.live.apply_all(waiting)
            raise
        self._node.announce(self.timeline.extend(moment))
        return moment

    def ask(self) -> None:
        """Do nothing: blocks are only built by `dev_newBlock`."""

    async def rewind(self, moment: Moment, todo: Iterable[Action] = ()) -> None:
        """Return the network to a stored moment and apply actions there.

        Raises `PubsubError` if that is not possible.
        """
        advance = self.timeline.rewind(moment)
        self.live.rewind(moment)
        self._node.announce(advance)
        self.live.apply_all(todo)

    async def aside(self, work: Callable[[LiveNetwork], T]) -> T:
        """Call `work` with the network and return its result."""
        return work(self.live)

    async def beside(self, work: Callable[[], T], *, executing: bool = False) -> T:  # noqa: ARG002  # nothing else runs
        """Call `work` and return its result. There is only one thread."""
        return work()

    def set_mode(self, mode: str) -> None:
        """Refuse every mode with `RpcError`: blocks are only built by `dev_newBlock`."""
        raise RpcError(DEVELOPMENT, f"blocks are built only by dev_newBlock, never {mode}")

    async def breathe(self) -> None:
        """Do nothing: there are no other tasks that could run."""


def _finished(work: Coroutine[object, None, T]) -> T:
    """Return the result of a coroutine that completes without waiting.

    Raises `DefensiveFailure` if it waits: there is no event loop that could resume it.
    """
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise DefensiveFailure("a method of a local node waited")
