"""Inputs that wait for the store, and clients that wait for the result of a publication."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from interchain_events.distributor.core.messages import Effects, Input, Noticed
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.core.step import step
from interchain_events.distributor.once import Transaction


@dataclass(slots=True)
class Waiting:
    """Work for the next transaction: an input, a function that only reads, or both."""

    message: Input | None
    look: Callable[[Transaction], object] | None = None
    """The function that reads. It is called after the step and sees the step's writes."""
    done: "asyncio.Future[tuple[Effects, object]] | None" = None
    """The future for the effects and the result of `look`. `None` if `message` is the result of an
    effect, for which no caller waits."""
    left: int = 0
    """How many more times this is tried if the store is down."""

    def take(self, rules: Rules, tx: Transaction) -> tuple[Effects, object]:
        """Run the step and then `look`, and return the effects and the result of `look`."""
        effects = [] if self.message is None else step(rules, tx, self.message)
        result = None if self.look is None else self.look(tx)
        return effects, result


def in_log_order(waiting: list[Waiting]) -> list[Waiting]:
    """Return a batch with its notifications sorted by their numbers, and the others unmoved.

    Otherwise a notice after a gap would be parked although the notices that fill the gap are in the
    same batch.
    """
    notifications = [entry for entry in waiting if isinstance(entry.message, Noticed)]
    in_order = iter(sorted(notifications, key=_sort_key))
    return [next(in_order) if isinstance(entry.message, Noticed) else entry for entry in waiting]


def _sort_key(waiting: Waiting) -> tuple[int, bool]:
    """Return the key by which notifications are sorted.

    Of those with the same number, the notification of everything comes first. It moves the cursor,
    and only then can notifications for clients' subscriptions be used.
    """
    message = waiting.message
    if not isinstance(message, Noticed):
        return 0, False
    return message.notice.number, message.subscription is not None


class Waiter:
    """The clients that wait until networks have reported on one event."""

    def __init__(self) -> None:
        self.users = 0
        """The number of clients. The engine counts them, and drops the waiter after the last."""
        self._reported: set[str] = set()
        """The networks that have reported since a client last waited for them."""
        self._waiting: list[tuple[set[str], asyncio.Future[None]]] = []
        """The networks for which each client waits, and the future that wakes the client."""

    def hear(self, network: str) -> None:
        """Note that a network has reported on the event."""
        self._reported.add(network)
        for networks, future in self._waiting:
            if networks <= self._reported:
                _end(future)

    async def wait(self, networks: set[str], seconds: float) -> None:
        """Wait until all of these networks have reported, at most for `seconds`."""
        if not networks <= self._reported:
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            entry = (networks, future)
            self._waiting.append(entry)
            timer = loop.call_later(seconds, _end, future)
            try:
                await future
            finally:
                timer.cancel()
                self._waiting.remove(entry)
        # The next call waits for further reports.
        self._reported -= networks


def _end(future: "asyncio.Future[None]") -> None:
    """Wake a client, unless it has been woken already."""
    if not future.done():
        future.set_result(None)
