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
    """A function of the transaction, called after the step, so that it sees the step's writes."""
    done: "asyncio.Future[tuple[Effects, object]] | None" = None
    """The future of a caller that waits for the effects and for the result of `look`. `None` for
    the result of an effect, which has no caller."""
    left: int = 0
    """How often it is tried again if the store is down."""

    def take(self, rules: Rules, tx: Transaction) -> tuple[Effects, object]:
        """Run the step, then `look`, and return the effects and the value that was read."""
        effects = [] if self.message is None else step(rules, tx, self.message)
        return effects, None if self.look is None else self.look(tx)


def in_log_order(waiting: list[Waiting]) -> list[Waiting]:
    """Return the batch with its notifications in the order of their numbers.

    Otherwise a notice after a gap would be parked, although the notices that fill the gap are in
    the same batch. All other inputs remain at their places.
    """
    noticed = iter(
        sorted((each for each in waiting if isinstance(each.message, Noticed)), key=_number)
    )
    return [next(noticed) if isinstance(each.message, Noticed) else each for each in waiting]


def _number(waiting: Waiting) -> tuple[int, bool]:
    """Return the key by which notifications are sorted.

    For the same number, the notification of everything comes first, as it moves the cursor that a
    client's subscription needs.
    """
    message = waiting.message
    return (
        (message.notice.number, message.subscription is not None)
        if isinstance(message, Noticed)
        else (0, False)
    )


class Waiter:
    """The clients that wait until some networks have reported on an event."""

    def __init__(self) -> None:
        self.users = 0
        """The number of clients, counted by the engine, which drops the waiter after the last
        one."""
        self._told: set[str] = set()
        """The networks that have reported and that nobody has waited for since."""
        self._waiting: list[tuple[set[str], asyncio.Future[None]]] = []
        """For each waiting client, the networks that it waits for and the future that wakes it."""

    def hear(self, network: str) -> None:
        """Note that a network has reported on the event."""
        self._told.add(network)
        for networks, future in self._waiting:
            if networks <= self._told:
                _end(future)

    async def wait(self, networks: set[str], seconds: float) -> None:
        """Return when all of these networks have reported, or after so many seconds."""
        if not networks <= self._told:
            loop = asyncio.get_running_loop()
            entry = (networks, loop.create_future())
            self._waiting.append(entry)
            late = loop.call_later(seconds, _end, entry[1])
            try:
                await entry[1]
            finally:
                late.cancel()
                self._waiting.remove(entry)
        # The next call waits for further reports.
        self._told -= networks


def _end(future: "asyncio.Future[None]") -> None:
    """Wake a client, unless it has been woken."""
    if not future.done():
        future.set_result(None)
