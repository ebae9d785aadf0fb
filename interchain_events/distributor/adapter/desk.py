"""The subscriptions of an adapter, and the delivery of the log's events to each of them.

The events of one entity are delivered in order. Up to `AT_ONCE` events of different entities are
delivered at once. Each subscription and its position in the log are rows of a store, so deliveries
continue after a restart.

A notification is repeated until it is acknowledged or has been tried `MOST_TRIES` times. Then it is
lost, and the subscriber has to read the event from the log.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, NamedTuple

from interchain_events.database.errors import StoreError
from interchain_events.distributor.adapter.ledger import NetworkLog
from interchain_events.distributor.core.arrivals import matches
from interchain_events.distributor.event import Notice
from interchain_events.distributor.once import Store, Transaction
from interchain_events.distributor.service.requests import Wish

log = logging.getLogger("pubsub.adapter")

TABLE: Final = "adapter-subscriptions"
"""The table of subscriptions by name."""
CURSORS: Final = "adapter-cursors"
"""The table of the last delivered numbers by subscription."""
MOST_TRIES: Final = 3
"""How often a notification is tried."""
RETRY_SECONDS: Final = 0.5
"""The wait before the first repetition, which doubles with each."""
WAIT_SECONDS: Final = 2.0
"""The longest wait until the log is read again."""
PAGE: Final = 100
"""The number of notices that are read from the log at once."""
AT_ONCE: Final = 32
"""The greatest number of notifications of one subscription that are under way at once."""

Post = Callable[[str, list[Notice]], Awaitable[list[bool]]]
"""A function that notifies an endpoint of several events, and returns for each whether it was
acknowledged."""


class AdapterSubscription(NamedTuple):
    """A subscription as it is stored."""

    types: list[str]
    metadata: list[str]
    endpoint: str


class Desk:
    """The subscriptions of one adapter and their deliveries."""

    def __init__(self, ledger: NetworkLog, store: Store, post: Post) -> None:
        self._ledger = ledger
        self._store = store
        self._post = post
        self._deliveries: dict[str, asyncio.Task[None]] = {}
        """The task of each subscription, by the subscription's name."""
        self.lost = 0
        """The number of notifications that were given up."""

    async def start(self) -> None:
        """Resume the deliveries of all stored subscriptions."""
        for name, _ in self._store.rows(TABLE):
            self._deliver(name)

    async def stop(self) -> None:
        """End all deliveries."""
        for task in self._deliveries.values():
            task.cancel()
        await asyncio.gather(*self._deliveries.values(), return_exceptions=True)
        self._deliveries.clear()

    async def subscribe(self, wish: Wish) -> tuple[str, bool]:
        """Store a subscription to the events from now on, unless an equal one exists.

        Returns its name and whether it is new. Raises `StoreError`.
        """
        row = AdapterSubscription(sorted(wish.types), sorted(wish.metadata), wish.endpoint)
        text = json.dumps(row)
        for name, known in self._store.rows(TABLE):
            if known == text:
                return name, False
        end = await self._end()
        name = secrets.token_hex(16)

        def store(tx: Transaction) -> None:
            tx.put(TABLE, name, text)
            tx.put(CURSORS, name, str(end))

        self._store.transact(store)
        self._deliver(name)
        return name, True

    async def _end(self) -> int:
        """Return the number of the last notice in the log, at which a new subscription begins."""
        after = 0
        while True:
            page = await self._ledger.read(after, 1000)
            if page is None:
                raise StoreError("the network cannot be reached")
            after = page.notices[-1].number if page.notices else after
            if page.complete:
                return after

    def subscriptions(self) -> list[tuple[str, AdapterSubscription]]:
        """Every subscription. Raises `StoreError`."""
        return [
            (name, AdapterSubscription(*json.loads(text))) for name, text in self._store.rows(TABLE)
        ]

    def unsubscribe(self, name: str) -> bool:
        """Remove a subscription. Returns whether there was one. Raises `StoreError`."""

        def remove(tx: Transaction) -> bool:
            found = tx.get(TABLE, name) is not None
            tx.delete(TABLE, name)
            tx.delete(CURSORS, name)
            return found

        task = self._deliveries.pop(name, None)
        if task is not None:
            task.cancel()
        return self._store.transact(remove)

    def _deliver(self, name: str) -> None:
        """Start the task that delivers events to a subscription."""
        self._deliveries[name] = asyncio.create_task(self._delivery(name))

    async def _delivery(self, name: str) -> None:
        """Deliver the events after a subscription's position, until the subscription is removed.

        After each group the position is stored. So a restart repeats at most one group.
        """
        while True:
            try:
                cursor = self._store.transact(
                    lambda tx: (tx.get(TABLE, name), tx.get(CURSORS, name))
                )
                if cursor[0] is None:
                    return
                after = int(cursor[1] or 0)
                page = await self._ledger.read(after, PAGE)
                subscription = AdapterSubscription(*json.loads(cursor[0]))
                for together in in_order(() if page is None else page.notices):
                    await self._tell(subscription, together)
                    after = together[-1].number
                    self._store.transact(lambda tx, at=after: tx.put(CURSORS, name, str(at)))  # type: ignore[misc]
                await (
                    asyncio.sleep(WAIT_SECONDS)
                    if page is None
                    else self._ledger.wait(after, WAIT_SECONDS)
                )
            except StoreError as error:
                log.warning("the store is down", extra={"fields": {"error": str(error)}})
                await asyncio.sleep(WAIT_SECONDS)

    async def _tell(self, subscription: AdapterSubscription, notices: list[Notice]) -> None:
        """Notify a subscription of one group, and repeat unacknowledged notifications."""
        left = [
            each
            for each in notices
            if matches(subscription.types, subscription.metadata, each.event)
        ]
        for attempt in range(MOST_TRIES):
            if not left:
                return
            answer = await self._post(subscription.endpoint, left)
            left = [
                notice
                for notice, acknowledged in zip(left, answer, strict=True)
                if not acknowledged
            ]
            if left:
                await asyncio.sleep(RETRY_SECONDS * 2**attempt)
        self.lost += len(left)
        for notice in left:
            log.warning("a notification was given up", extra={"fields": {"number": notice.number}})


def in_order(notices: Iterable[Notice]) -> Iterator[list[Notice]]:
    """Yield groups of consecutive notices, which may be delivered at once.

    A group has at most `AT_ONCE` notices, and at most one of each entity.
    """
    group: list[Notice] = []
    entities: set[str] = set()
    for notice in notices:
        if len(group) == AT_ONCE or notice.event.order in entities:
            yield group
            group = []
            entities = set()
        group.append(notice)
        entities.add(notice.event.order)
    if group:
        yield group
