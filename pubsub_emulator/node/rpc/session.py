"""A connection as methods see it: its subscriptions, and the outlet for their events.

The events of a subscription are delayed until the answer with its id has been sent. Clients
otherwise receive events with an id that they do not know yet.
"""

from collections.abc import Coroutine
from enum import Enum
from json import JSONEncoder
from typing import ClassVar, Final, Protocol

import orjson

from pubsub_emulator.node.chain.block import Chain
from pubsub_emulator.node.chain.timeline import Advance, Timeline
from pubsub_emulator.node.rpc.errors import TOO_MANY_SUBSCRIPTIONS, RpcError

MOST_SUBSCRIPTIONS: Final = 1024
"""The maximum number of subscriptions of a connection."""
MOST_KEYS: Final = 65_536
"""The maximum number of keys that the storage subscriptions of one connection can watch in total.
"""


class Overflow(Enum):
    """The ways to treat a subscription whose client reads too slowly."""

    NEWEST = "newest"
    """Events are dropped. Once there is room again, `newest` sends the present value."""
    STOP = "stop"
    """The subscription ends with an event that says so."""
    CLOSE = "close"
    """The connection is closed, because every event is needed."""


_encode: Final = JSONEncoder(separators=(",", ":")).encode


def compact(value: object) -> str:
    """Return a value as JSON without spaces."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # orjson refuses integers beyond 64 bits and unpaired surrogates.
        return _encode(value)


def _too_many(limit: str) -> RpcError:
    details = f"Exceeded max limit of {limit}"
    return RpcError(TOO_MANY_SUBSCRIPTIONS, "Too many subscriptions on the connection", details)


class Outlet(Protocol):
    """The destination of a session's messages. The server implements it."""

    def event(self, subscription: "RpcSubscription", text: str) -> None:
        """Queue an event."""

    def spawn(self, work: Coroutine[object, None, None]) -> None:
        """Run a coroutine concurrently with the connection's requests.

        It is cancelled when the connection closes.
        """

    async def room(self) -> None:
        """Wait until the client has received most of what was sent.

        This also lets other tasks run from time to time.
        """


class RpcSubscription:
    """A stream of events to one client. Subclasses define the events of a step."""

    method: str
    """The method name in the events."""
    group: str
    """The subscriptions that one unsubscribe method can end. `chain_unsubscribeNewHeads`, for
    example, only ends those of `chain_subscribeNewHeads`.
    """
    overflow: ClassVar[Overflow] = Overflow.CLOSE
    """The treatment of the subscription if its client is too slow."""
    weight = 0
    """The number of storage keys that the subscription watches."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.id = ""
        self.session: RpcSession | None = None
        self.held: list[str] = []
        """Events that wait for an answer."""
        self.holds = 0
        """The number of answers that must be sent before the events in `held`."""
        self.sent_at = 0.0
        """The time of the last event, on the server's clock."""

    def advanced(self, advance: Advance) -> None:
        """Handle a step or a rewind."""

    def silent(self) -> None:
        """Handle a period without events."""

    def closed(self) -> None:
        """Release resources after the subscription has ended, on either side."""

    def newest(self, timeline: Timeline) -> None:
        """Send the present value, at the beginning or after events were dropped."""

    def notify(self, result: str) -> None:
        """Send an event. `result` is JSON text."""
        session = self.session
        if session is None:
            return
        params = f'{{"subscription":"{self.id}","result":{result}}}'
        message = f'{{"jsonrpc":"2.0","method":"{self.method}","params":{params}}}'
        if self.holds:
            self.held.append(message)
        else:
            session.outlet.event(self, message)

    def stop(self) -> None:
        """End the subscription with an event that says so. Subclasses add the event."""
        self.end()

    async def room(self) -> None:
        """Wait until the client has received most of the sent messages."""
        if self.session is not None:
            await self.session.outlet.room()

    def end(self) -> None:
        """End the subscription. Events that were queued before are still sent."""
        if self.session is not None:
            self.session.remove(self.id, self.group)


class RpcSession:
    """The subscriptions of one connection."""

    def __init__(self, name: str, outlet: Outlet, most: int = MOST_SUBSCRIPTIONS) -> None:
        self.outlet = outlet
        self.subscriptions: dict[str, RpcSubscription] = {}
        self._name = name
        self._most = most
        self._count = 0

    def add(self, subscription: RpcSubscription) -> str:
        """Register a subscription and return its new id.

        Raises `RpcError` if the connection has too many subscriptions or watched keys.
        """
        if len(self.subscriptions) >= self._most:
            raise _too_many(f"{self._most}")
        watched_keys = sum(existing.weight for existing in self.subscriptions.values())
        if watched_keys + subscription.weight > MOST_KEYS:
            raise _too_many(f"{MOST_KEYS} keys")
        self._count += 1
        subscription.id = f"{self._name}s{self._count}"
        subscription.session = self
        self.subscriptions[subscription.id] = subscription
        return subscription.id

    def find(self, name: str, group: str) -> RpcSubscription | None:
        """Return a subscription of a group by its id, or `None`."""
        subscription = self.subscriptions.get(name)
        return subscription if subscription is not None and subscription.group == group else None

    def remove(self, name: str, group: str) -> bool:
        """End a subscription and return whether there was one of that group."""
        subscription = self.find(name, group)
        if subscription is None:
            return False
        del self.subscriptions[name]
        subscription.session = None
        subscription.closed()
        return True

    def release(self, opened: list[RpcSubscription]) -> None:
        """Send the delayed events of subscriptions, because an answer before them has been sent."""
        for subscription in opened:
            subscription.holds -= 1
            if not subscription.holds:
                held = subscription.held
                subscription.held = []
                for message in held:
                    self.outlet.event(subscription, message)

    def advanced(self, advance: Advance) -> None:
        """Notify all subscriptions of a step or a rewind."""
        for subscription in list(self.subscriptions.values()):
            # Handling the step can end other subscriptions of the list.
            if subscription.session is not None:
                subscription.advanced(advance)

    def close(self) -> None:
        """End all subscriptions because the connection is closed."""
        for subscription in list(self.subscriptions.values()):
            self.remove(subscription.id, subscription.group)
