"""A connection as methods see it: its subscriptions, whose events wait until their id was sent, and where these go."""

from collections.abc import Coroutine
from enum import Enum
from json import JSONEncoder
from typing import ClassVar, Final, Protocol

import orjson

from pubsub_emulator.node.chain.block import Chain
from pubsub_emulator.node.chain.timeline import Advance, Timeline
from pubsub_emulator.node.rpc.errors import TOO_MANY_SUBSCRIPTIONS, RpcError

MOST_SUBSCRIPTIONS: Final = 1024
MOST_KEYS: Final = 65_536
"""Keys that the storage subscriptions of one connection may be told of."""


class Overflow(Enum):
    """The treatment of a subscription whose events pile up."""

    NEWEST = "newest"
    """Only the newest matters: events are left out, and `newest` is sent when there is room again."""
    STOP = "stop"
    """It ends with an event that says so."""
    CLOSE = "close"
    """The connection closes: nothing may be left out."""


_encode: Final = JSONEncoder(separators=(",", ":")).encode


def compact(value: object) -> str:
    """JSON without spaces."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return _encode(value)  # a number beyond 64 bits, or half of a surrogate pair


def _too_many(limit: str) -> RpcError:
    why = f"Exceeded max limit of {limit}"
    return RpcError(TOO_MANY_SUBSCRIPTIONS, "Too many subscriptions on the connection", why)


class Outlet(Protocol):
    """The destination of a session's messages; the server's."""

    def event(self, subscription: "RpcSubscription", text: str) -> None:
        """Queue an event."""

    def spawn(self, work: Coroutine[object, None, None]) -> None:
        """Run something beside the connection's requests; it ends with the connection at the latest."""

    async def room(self) -> None:
        """Wait until the client has taken enough of what was sent, and let others go on now and then."""


class RpcSubscription:
    """A stream of events to one client. Subclasses say what a step means to it."""

    method: str
    """The method of its events."""
    group: str
    """What unsubscribing names: `chain_newHead` and the like end by their own method only."""
    overflow: ClassVar[Overflow] = Overflow.CLOSE
    weight = 0
    """Storage keys that it is told of."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.id = ""
        self.session: Session | None = None
        self.held: list[str] = []
        self.holds = 0
        """Answers that must go out before the events in `held`."""
        self.sent_at = 0.0
        """When the server sent the last event, by a clock of its own."""

    def advanced(self, advance: Advance) -> None:
        """A step or a rewind happened."""

    def silent(self) -> None:
        """Nothing was sent for a while."""

    def closed(self) -> None:
        """Release what the subscription holds: it ended, on either side."""

    def newest(self, timeline: Timeline) -> None:
        """Send what matters now, after events were left out."""

    def notify(self, result: str) -> None:
        """Send an event whose result is JSON already."""
        session = self.session
        if session is None:
            return
        message = (
            f'{{"jsonrpc":"2.0","method":"{self.method}","params":{{"subscription":"{self.id}","result":{result}}}}}'
        )
        if self.holds:
            self.held.append(message)
        else:
            session.outlet.event(self, message)

    def stop(self) -> None:
        """End it with an event that says so."""
        self.end()

    async def room(self) -> None:
        """Wait, where many events are sent, until the client has taken enough of them."""
        if self.session is not None:
            await self.session.outlet.room()

    def end(self) -> None:
        """End it from this side; events that were sent before still go out."""
        if self.session is not None:
            self.session.remove(self.id, self.group)


class Session:
    """One connection."""

    def __init__(self, name: str, outlet: Outlet, most: int = MOST_SUBSCRIPTIONS) -> None:
        self.outlet = outlet
        self.subscriptions: dict[str, RpcSubscription] = {}
        self._name = name
        self._most = most
        self._count = 0

    def add(self, subscription: RpcSubscription) -> str:
        """Give a subscription its id. Raises `RpcError` when the connection has too many."""
        if len(self.subscriptions) >= self._most:
            raise _too_many(f"{self._most}")
        if sum(each.weight for each in self.subscriptions.values()) + subscription.weight > MOST_KEYS:
            raise _too_many(f"{MOST_KEYS} keys")
        self._count += 1
        subscription.id = f"{self._name}s{self._count}"
        subscription.session = self
        self.subscriptions[subscription.id] = subscription
        return subscription.id

    def find(self, name: str, group: str) -> RpcSubscription | None:
        """A live subscription of a group."""
        found = self.subscriptions.get(name)
        return found if found is not None and found.group == group else None

    def remove(self, name: str, group: str) -> bool:
        """End a subscription; whether there was one of that group."""
        found = self.find(name, group)
        if found is None:
            return False
        del self.subscriptions[name]
        found.session = None
        found.closed()
        return True

    def release(self, opened: list[RpcSubscription]) -> None:
        """The answer that these waited for was sent: let their events go."""
        for subscription in opened:
            subscription.holds -= 1
            if not subscription.holds:
                held, subscription.held = subscription.held, []
                for message in held:
                    self.outlet.event(subscription, message)

    def advanced(self, advance: Advance) -> None:
        """Tell every subscription of a step or a rewind."""
        for subscription in list(self.subscriptions.values()):
            if subscription.session is not None:
                subscription.advanced(advance)

    def close(self) -> None:
        """The connection is gone."""
        for subscription in list(self.subscriptions.values()):
            self.remove(subscription.id, subscription.group)
