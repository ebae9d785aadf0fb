"""A scenario's network behind the methods of a node, without a server: in one thread, and whoever calls waits."""

from collections.abc import Callable, Coroutine, Iterable
from types import CoroutineType
from typing import Final, TypeVar

import orjson

from pubsub_emulator.emulator.network.actions import Action
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.block import Chain, Moment
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.chain.timeline import Timeline
from pubsub_emulator.node.rpc.call import Call
from pubsub_emulator.node.rpc.encode import Written
from pubsub_emulator.node.rpc.errors import DEVELOPMENT, RpcError, method_not_found
from pubsub_emulator.node.rpc.method import Json
from pubsub_emulator.node.rpc.methods import all_methods
from pubsub_emulator.node.rpc.node import Node
from pubsub_emulator.node.rpc.params import bind
from pubsub_emulator.node.rpc.transactions import Watches
from pubsub_emulator.primitives.errors import DefensiveFailure

T = TypeVar("T")

HISTORY: Final = 256
"""Relay blocks that are kept."""
_POOLED: Final = ("author_", "transaction")  # methods that need a pool of extrinsics, which this node does not have


class LocalNode:
    """Every method of a node that needs neither a connection nor a pool, those of `--dev` included."""

    def __init__(self, simulation: Simulation, history: int = HISTORY) -> None:
        """`history` is how many relay blocks are kept."""
        self.live = LiveNetwork(simulation)
        self.timeline = Timeline(self.live.genesis, history)
        methods = {name: method for name, method in all_methods(unsafe=True).items() if not name.startswith(_POOLED)}
        self._node = Node(
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
        """The answer of a method, as JSON. Raises `RpcError`, and what a handler raises."""
        method = self._node.methods.get(name)
        if method is None or method.live or chain not in self.timeline.views:
            raise method_not_found()
        found = method.run(Call(self._node, chain, None), *bind(method.params, list(params)))
        answer = _finished(found) if isinstance(found, CoroutineType) else found
        return orjson.loads(str(answer)) if isinstance(answer, Written) else answer

    async def act(self, todo: Iterable[Action]) -> list[int | None]:
        """Do all of it before the next step, or nothing. Raises `PubsubError`."""
        return self.live.apply_all(todo)

    async def build(self, todo: Iterable[Action] = ()) -> Moment:
        """Do all of it and build one relay block. Raises `PubsubError` and leaves what was to be done as it was."""
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
        """Nothing: blocks are built when `dev_newBlock` says so."""

    async def rewind(self, moment: Moment, todo: Iterable[Action] = ()) -> None:
        """Go back to a kept moment, and do all of it then. Raises `PubsubError`."""
        advance = self.timeline.rewind(moment)
        self.live.rewind(moment)
        self._node.announce(advance)
        self.live.apply_all(todo)

    async def aside(self, work: Callable[[LiveNetwork], T]) -> T:
        """Run `work` and return its result."""
        return work(self.live)

    async def beside(self, work: Callable[[], T], *, executing: bool = False) -> T:  # noqa: ARG002  # nothing else runs
        """Run `work` and return its result."""
        return work()

    def set_mode(self, mode: str) -> None:
        """Raises `RpcError`: there is one mode."""
        raise RpcError(DEVELOPMENT, f"blocks are built when dev_newBlock says so, never {mode}")

    async def breathe(self) -> None:
        """Nothing: nobody else waits."""


def _finished(work: Coroutine[object, None, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise DefensiveFailure("a method of a local node waited")
