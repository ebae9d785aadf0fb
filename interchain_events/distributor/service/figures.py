"""Figures for operators: waiting and given-up jobs of each network and subscriber."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from interchain_events.distributor.core import rows
from interchain_events.distributor.once import Store

MOST_ROWS: Final = 20_000
"""The greatest number of jobs, and of dead letters, that are counted."""


@dataclass
class Figures:
    """Waiting jobs and dead letters. Times are of the store's clock, in ms."""

    now: int = 0
    jobs: Counter[str] = field(default_factory=Counter)
    """The number of waiting jobs by target (see `rows.on_network` and `rows.to_subscription`)."""
    oldest: dict[str, int] = field(default_factory=dict)
    """The time at which the oldest waiting job of a target was stored, by target."""
    given_up: Counter[str] = field(default_factory=Counter)
    """The number of dead letters by target."""

    def waiting(self, network: str) -> int:
        """Return the number of events that wait for a network."""
        return self.jobs[rows.on_network(network)]

    def age(self, *targets: str) -> float:
        """Return the seconds for which the oldest job of the targets has waited, 0 without jobs."""
        times = [self.oldest[target] for target in targets if target in self.oldest]
        return max((self.now - min(times)) / 1000, 0.0) if times else 0.0

    def notified(self) -> list[str]:
        """Return the targets of waiting jobs that are subscriptions."""
        return [target for target in self.jobs if target.startswith("s:")]

    def refused(self, network: str) -> int:
        """Return the number of events that were given up on a network."""
        return self.given_up[rows.on_network(network)]

    def undelivered(self) -> int:
        """Return the number of notifications that were given up."""
        return sum(count for target, count in self.given_up.items() if target.startswith("s:"))


def read_figures(store: Store) -> Figures:
    """Count the jobs and the dead letters of a store, at most `MOST_ROWS` of each.

    Raises `StoreError`.
    """
    figures = Figures(store.now())
    for key, text in store.rows(rows.JOBS, limit=MOST_ROWS):
        target = key.partition("|")[0]
        since = rows.Job(*json.loads(text)).since
        figures.jobs[target] += 1
        figures.oldest[target] = min(since, figures.oldest.get(target, since))
    for _, text in store.rows(rows.DEAD, limit=MOST_ROWS):
        figures.given_up[rows.DeadLetter(*json.loads(text)).target] += 1
    return figures
