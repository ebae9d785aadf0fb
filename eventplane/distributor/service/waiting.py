"""Who waits in a process: inputs for the store, and clients for what becomes of an event."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pubsub_emulator.eventplane.distributor.core.messages import Input
from pubsub_emulator.eventplane.once import Transaction


@dataclass
class Waiting:
    """What waits for the store: an input, or a function of the transaction that only reads."""

    told: Input | None
    step: Callable[[Transaction], Any]
    look: Callable[[Transaction], Any] | None = None
    """What is read in the same transaction after the step; the result is then a pair."""
    done: "asyncio.Future[Any] | None" = None
    """Who waits for the result; nobody where this is the end of an effect, which is told again if the store is down."""
    left: int = 0
    """How often it is told again."""

    def take(self, tx: Transaction) -> tuple[Any, Any]:
        """The results of the step and of the look."""
        result = self.step(tx)
        return result, None if self.look is None else self.look(tx)


class Waiter:
    """Clients that wait until something was told of an event by each of some networks."""

    def __init__(self) -> None:
        self.users = 0
        self._told: set[str] = set()
        self._waiting: list[tuple[set[str], asyncio.Event]] = []

    def told(self, network: str) -> None:
        """Something was told."""
        self._told.add(network)
        for networks, event in self._waiting:
            if networks <= self._told:
                event.set()

    async def wait(self, networks: set[str], seconds: float) -> None:
        """Return once all of them told something, or after so many seconds."""
        if not networks <= self._told:
            entry = (networks, asyncio.Event())
            self._waiting.append(entry)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(entry[1].wait(), seconds)
            self._waiting.remove(entry)
        self._told -= networks
