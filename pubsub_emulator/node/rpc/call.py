"""The context of a call, and helpers for subscriptions and errors that methods share."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar

from pubsub_emulator.node.chain.block import Chain, StoredBlock
from pubsub_emulator.node.chain.timeline import Advance, ChainView
from pubsub_emulator.node.rpc.errors import CLIENT, RpcError, method_not_found, refused
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.node import RpcNode
from pubsub_emulator.node.rpc.params import Param, text
from pubsub_emulator.node.rpc.session import RpcSession, RpcSubscription
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed

T = TypeVar("T")
Tells = TypeVar("Tells", bound=Callable[..., Iterable[str]])


@dataclass(slots=True, eq=False)
class RpcCall:
    """The context of one call."""

    node: RpcNode
    chain: Chain
    """The chain whose path the request was sent to."""
    session: RpcSession | None
    """The connection, or `None` for a request over HTTP POST."""
    opened: list[RpcSubscription] | None = None
    """Subscriptions whose events must wait for the answer, because it contains their ids."""

    @property
    def view(self) -> ChainView:
        """Return the present view of the chain."""
        return self.node.timeline.views[self.chain]

    def find(self, name: bytes | None) -> StoredBlock | None:
        """Return a block by its hash, or the best block if `name` is `None`.

        Returns `None` if the block is not stored.
        """
        return self.view.best if name is None else self.node.timeline.block(self.chain, name)

    def block(self, name: bytes | None) -> StoredBlock:
        """Return a block as `find` does. Raises `RpcError` 4003 if it is not stored."""
        if name is None:
            return self.view.best
        block = self.find(name)
        if block is None:
            discarded = self.node.timeline.was_discarded(name)
            reason = (
                "State already discarded for"
                if discarded
                else "Header was not found in the database:"
            )
            raise RpcError(CLIENT, f"Client error: UnknownBlock: {reason} {hexed(name)}")
        return block

    def open(self, subscription: RpcSubscription) -> str:
        """Add a subscription to the connection and return its id.

        Its events wait until the answer with the id has been sent. Raises `RpcError` if the
        connection has too many subscriptions, and for a POST, which cannot receive events.
        """
        if self.session is None:
            raise method_not_found()
        name = self.session.add(subscription)
        self.hold(subscription)
        return name

    def begin(self, subscription: RpcSubscription) -> str:
        """Open a subscription and send its present value as the first event."""
        opened = self.open(subscription)
        subscription.newest(self.node.timeline)
        return opened

    def hold(self, subscription: RpcSubscription) -> None:
        """Delay a subscription's events until the answer to this call has been sent."""
        if self.opened is None:
            self.opened = []
        self.opened.append(subscription)
        subscription.holds += 1


class Stream(RpcSubscription):
    """A subscription whose events are computed from each step and rewind."""

    def __init__(
        self, chain: Chain, event: str, tell: Callable[[Advance], Iterable[str]] = lambda _: ()
    ) -> None:
        super().__init__(chain)
        self.method = self.group = event
        self._tell = tell

    def advanced(self, advance: Advance) -> None:
        """Send the events of a step or rewind."""
        for event in self._tell(advance):
            self.notify(event)


def streams(name: str, event: str, *params: Param) -> Callable[[Tells], Tells]:
    """Declare a method that subscribes to a stream of events, and one that unsubscribes.

    The decorated function returns the events of each step or rewind as JSON texts. Its arguments
    are the call, the `Advance` and the parameters of the subscription.
    """

    def declare(tell: Tells) -> Tells:
        @method(name, *params, live=True)
        @wraps(tell)
        def subscribe(call: RpcCall, *wanted: object) -> Json:
            return call.open(
                Stream(call.chain, event, lambda advance: tell(call, advance, *wanted))
            )

        unsubscribes(name.replace("subscribe", "unsubscribe"), event)
        return tell

    return declare


def unsubscribes(name: str, group: str, *aliases: str) -> None:
    """Declare a method that ends a subscription of a group and returns whether there was one."""

    @method(name, Param("subscription", text), aliases=aliases, live=True)
    def unsubscribe(call: RpcCall, subscription: str) -> Json:
        return call.session is not None and call.session.remove(subscription, group)


async def attempt(work: Awaitable[T]) -> T:
    """Await `work` and return its result.

    Raises `RpcError` with code 1 in place of a `PubsubError`.
    """
    try:
        return await work
    except RpcError:
        raise
    except PubsubError as error:
        raise refused(error) from error
