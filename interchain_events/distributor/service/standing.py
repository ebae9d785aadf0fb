"""The adapters, the store and the subscribers that do not answer, and their causes.

A party is logged once with the cause when it goes down, and once when it is back. Failures in
between only change the cause. Further causes of the store are also logged, each once: a store that
was away may come back as one that must not be used.
"""

import logging
import time
from enum import StrEnum
from typing import Final, NamedTuple

log = logging.getLogger("pubsub.distributor")

MOST_DOWN: Final = 10_000
"""The greatest number of parties that are remembered. Clients decide how many subscribers there
are, so beyond this number the oldest one is forgotten."""
MOST_CAUSES: Final = 8
"""The greatest number of causes that are logged while a store is down."""


class Party(StrEnum):
    """A kind of party."""

    ADAPTER = "adapter"
    STORE = "store"
    SUBSCRIBER = "subscriber"


class Down(NamedTuple):
    """A party that does not answer."""

    cause: str
    since: float
    """The time of the monotonic clock, in seconds, since which it does not answer."""
    logged: frozenset[str]
    """The causes that have been logged."""


class Standing:
    """The parties that do not answer at the moment. Its methods run in the event loop."""

    def __init__(self) -> None:
        self._down: dict[tuple[Party, str], Down] = {}

    def failed(self, party: Party, name: str, cause: str) -> None:
        """Note that a party has not answered correctly."""
        known = self._down.get((party, name))
        if known is not None:
            logged = known.logged
            if party is Party.STORE and cause not in logged and len(logged) < MOST_CAUSES:
                logged |= {cause}
                fields = {party.value: name, "error": cause}
                log.warning("the store is still down", extra={"fields": fields})
            self._down[party, name] = known._replace(cause=cause, logged=logged)
            return
        if len(self._down) >= MOST_DOWN:
            del self._down[next(iter(self._down))]
        self._down[party, name] = Down(cause, time.monotonic(), frozenset({cause}))
        fields = {party.value: name, "error": cause}
        log.warning("%s is down", _article(party), extra={"fields": fields})

    def answered(self, party: Party, name: str) -> None:
        """Note that a party has answered."""
        known = self._down.pop((party, name), None)
        if known is not None:
            seconds = round(time.monotonic() - known.since, 1)
            fields = {party.value: name, "seconds": seconds}
            log.info("%s is back", _article(party), extra={"fields": fields})

    def forget(self, party: Party, name: str) -> None:
        """Forget a party that is no longer used."""
        self._down.pop((party, name), None)

    def cause(self, party: Party, name: str) -> str:
        """Return the reason why a party does not answer, empty if it answers."""
        known = self._down.get((party, name))
        return "" if known is None else known.cause

    def names(self, party: Party) -> list[str]:
        """Return the names of the parties of a kind that do not answer."""
        return [name for kind, name in self._down if kind is party]


def _article(party: Party) -> str:
    """Return the name of a kind of party with its article."""
    if party is Party.STORE:
        return "the store"
    return "an adapter" if party is Party.ADAPTER else "a subscriber"
