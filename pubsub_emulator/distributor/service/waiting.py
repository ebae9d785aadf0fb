"""Inputs that wait for the store, and clients that wait for the result of an event."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from pubsub_emulator.distributor.core.messages import Effects, Input, Noticed
from pubsub_emulator.distributor.core.rules import Rules
from pubsub_emulator.distributor.core.step import step
from pubsub_emulator.distributor.once import Transaction


@dataclass(slots=True)
class Waiting:
    """Work that waits for the store: an input, or a function of the transaction that only reads, or both."""

    message: Input | None
    look: Callable[[Transaction], object] | None = None
    """What is read in the same transaction after the step."""
    done: "asyncio.Future[tuple[Effects, object]] | None" = None
    """Who waits for the effects and what was read; nobody where this is the end of an effect."""
    left: int = 0
    """How often it is told again where the store is down."""

    def take(self, rules: Rules, tx: Transaction) -> tuple[Effects, object]:
        """The effects of the step, and what was read."""
        effects = [] if self.message is None else step(rules, tx, self.message)
        return effects, None if self.look is None else self.look(tx)


def in_log_order(waiting: list[Waiting]) -> list[Waiting]:
    """The same with its notices by number: one after a gap would be kept aside, though what fills it is here, too."""
    noticed = iter(sorted((each for each in waiting if isinstance(each.message, Noticed)), key=_number))
    return [next(noticed) if isinstance(each.message, Noticed) else each for each in waiting]


def _number(waiting: Waiting) -> tuple[int, bool]:
    """The number, and of those with one number the notice of everything first, which moves the cursor."""
    message = waiting.message
    return (message.notice.number, message.subscription is not None) if isinstance(message, Noticed) else (0, False)


class Waiter:
    """Clients that wait until something was told of an event by each of some networks."""

    def __init__(self) -> None:
        self.users = 0
        self._told: set[str] = set()
        self._waiting: list[tuple[set[str], asyncio.Future[None]]] = []

    def hear(self, network: str) -> None:
        """Note that a network reported on the event."""
        self._told.add(network)
        for networks, future in self._waiting:
            if networks <= self._told:
                _end(future)

    async def wait(self, networks: set[str], seconds: float) -> None:
        """Return once all of them told something, or after so many seconds."""
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
        self._told -= networks


def _end(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
