"""The context of a call: the node, the chain of the path, the connection."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar

from pubsub_emulator.node.chain.block import Block, Chain
from pubsub_emulator.node.chain.timeline import Advance, ChainView
from pubsub_emulator.node.rpc.errors import CLIENT, RpcError, method_not_found, refused
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.node import Node
from pubsub_emulator.node.rpc.params import Param, text
from pubsub_emulator.node.rpc.session import RpcSubscription, Session
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed

T = TypeVar("T")
Tells = TypeVar("Tells", bound=Callable[..., Iterable[str]])


@dataclass(slots=True, eq=False)
class Call:
    """The context of a call: the node, the chain of the path, and the connection, `None` for a POST."""

    node: Node
    chain: Chain
    session: Session | None
    opened: list[RpcSubscription] | None = None
    """Subscriptions whose first events wait for the answer."""

    @property
    def view(self) -> ChainView:
        """The chain as it is now."""
        return self.node.timeline.views[self.chain]

    def find(self, name: bytes | None) -> Block | None:
        """A kept block; the best one without a name, `None` when it is not kept."""
        return self.view.best if name is None else self.node.timeline.block(self.chain, name)

    def block(self, name: bytes | None) -> Block:
        """A kept block; the best one without a name. Raises `RpcError` 4003 if it is not kept."""
        if name is None:
            return self.view.best
        found = self.find(name)
        if found is None:
            gone = self.node.timeline.was_discarded(name)
            why = "State already discarded for" if gone else "Header was not found in the database:"
            raise RpcError(CLIENT, f"Client error: UnknownBlock: {why} {hexed(name)}")
        return found

    def open(self, subscription: RpcSubscription) -> str:
        """Add a subscription to the connection; its events wait until its id was sent. Raises `RpcError`."""
        if self.session is None:
            raise method_not_found()
        name = self.session.add(subscription)
        self.hold(subscription)
        return name

    def begin(self, subscription: RpcSubscription) -> str:
        """As `open`, and send what matters now."""
        opened = self.open(subscription)
        subscription.newest(self.node.timeline)
        return opened

    def hold(self, subscription: RpcSubscription) -> None:
        """Let a subscription's events wait for the answer to this call."""
        if self.opened is None:
            self.opened = []
        self.opened.append(subscription)
        subscription.holds += 1


class Stream(RpcSubscription):
    """Events, also those that a function tells of each step and rewind."""

    def __init__(self, chain: Chain, event: str, tell: Callable[[Advance], Iterable[str]] = lambda _: ()) -> None:
        super().__init__(chain)
        self.method = self.group = event
        self._tell = tell

    def advanced(self, advance: Advance) -> None:
        """What is told of it."""
        for event in self._tell(advance):
            self.notify(event)


def streams(name: str, event: str, *params: Param) -> Callable[[Tells], Tells]:
    """Declare a `Stream` and its end: the function is given the call, the advance and the parameters."""

    def declare(tell: Tells) -> Tells:
        @method(name, *params, live=True)
        @wraps(tell)
        def subscribe(call: Call, *wanted: object) -> Json:
            return call.open(Stream(call.chain, event, lambda advance: tell(call, advance, *wanted)))

        unsubscribes(name.replace("subscribe", "unsubscribe"), event)
        return tell

    return declare


def unsubscribes(name: str, group: str, *aliases: str) -> None:
    """Declare the method that ends subscriptions of a group."""

    @method(name, Param("subscription", text), aliases=aliases, live=True)
    def unsubscribe(call: Call, subscription: str) -> Json:
        return call.session is not None and call.session.remove(subscription, group)


async def attempt(work: Awaitable[T]) -> T:
    """Run `work` and return its result. Raises `RpcError` with code 1 where it fails."""
    try:
        return await work
    except RpcError:
        raise
    except PubsubError as error:
        raise refused(error) from error
