"""The subscriptions of an adapter, and the delivery of the log's events to each of them.

The events of one entity are delivered in order. Up to `AT_ONCE` events of different entities are
delivered at once. Each subscription and its position in the log are rows of a store, so deliveries
continue after a restart.

A notification is repeated until it is acknowledged, but tried at most `MOST_TRIES` times. After
that the subscriber has to read the event from the log.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, NamedTuple

from interchain_events.database.errors import StoreError
from interchain_events.distributor.adapter.ledger import Ledger
from interchain_events.distributor.core.arrivals import matches
from interchain_events.distributor.event import Notice
from interchain_events.distributor.once import Store, Transaction
from interchain_events.distributor.service.requests import SubscriptionRequest

log = logging.getLogger("pubsub.adapter")

TABLE: Final = "adapter-subscriptions"
"""The table of `AdapterSubscription` by name."""
CURSORS: Final = "adapter-cursors"
"""The table of the last delivered number by the subscription's name."""
MOST_TRIES: Final = 3
"""The greatest number of times that a notification is tried."""
RETRY_SECONDS: Final = 0.5
"""The wait before the first repetition. Each further wait is twice as long."""
WAIT_SECONDS: Final = 2.0
"""The longest wait until the log is read again."""
PAGE: Final = 100
"""The number of notices in one read of the log."""
AT_ONCE: Final = 32
"""The greatest number of notifications of one subscription that are under way at once."""

Post = Callable[[str, list[Notice]], Awaitable[list[bool]]]
"""A function that notifies an endpoint of several events. It returns for each whether the endpoint
acknowledged it."""


class AdapterSubscription(NamedTuple):
    """A subscription as it is stored."""

    types: list[str]
    metadata: list[str]
    endpoint: str


class Desk:
    """The subscriptions of one adapter and their deliveries."""

    def __init__(self, ledger: Ledger, store: Store, post: Post) -> None:
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

    async def subscribe(self, wanted: SubscriptionRequest) -> tuple[str, bool]:
        """Store a subscription to later events, unless an equal one exists.

        Returns the subscription's name and whether it is new. Raises `StoreError`.
        """
        row = AdapterSubscription(sorted(wanted.types), sorted(wanted.metadata), wanted.endpoint)
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
        """Return the number of the last notice in the log, after which a new subscription begins.

        Raises `StoreError` if the network cannot be reached.
        """
        after = 0
        while True:
            page = await self._ledger.read(after, 1000)
            if page is None:
                raise StoreError("the network cannot be reached")
            after = page.notices[-1].number if page.notices else after
            if page.complete:
                return after

    def subscriptions(self) -> list[tuple[str, AdapterSubscription]]:
        """Return the name and content of every subscription. Raises `StoreError`."""
        return [
            (name, AdapterSubscription(*json.loads(text))) for name, text in self._store.rows(TABLE)
        ]

    def unsubscribe(self, name: str) -> bool:
        """Remove a subscription. Returns whether there was one. Raises `StoreError`."""

        def remove(tx: Transaction) -> bool:
            is_stored = tx.get(TABLE, name) is not None
            tx.delete(TABLE, name)
            tx.delete(CURSORS, name)
            return is_stored

        task = self._deliveries.pop(name, None)
        if task is not None:
            task.cancel()
        return self._store.transact(remove)

    def _deliver(self, name: str) -> None:
        """Start the task that delivers events to a subscription."""
        self._deliveries[name] = asyncio.create_task(self._delivery(name))

    async def _delivery(self, name: str) -> None:
        """Deliver the events after a subscription's position, until the subscription is removed.

        The position is stored after each group, so a restart repeats at most one group.
        """
        while True:
            try:
                text, position = self._store.transact(
                    lambda tx: (tx.get(TABLE, name), tx.get(CURSORS, name))
                )
                if text is None:
                    return
                after = int(position or 0)
                page = await self._ledger.read(after, PAGE)
                subscription = AdapterSubscription(*json.loads(text))
                for group in in_order(() if page is None else page.notices):
                    await self._notify(subscription, group)
                    after = group[-1].number
                    self._store.transact(
                        lambda tx, number=after: tx.put(CURSORS, name, str(number))  # type: ignore[misc]
                    )
                if page is None:
                    await asyncio.sleep(WAIT_SECONDS)
                else:
                    await self._ledger.wait(after, WAIT_SECONDS)
            except StoreError as error:
                log.warning("the store is down", extra={"fields": {"error": str(error)}})
                await asyncio.sleep(WAIT_SECONDS)

    async def _notify(self, subscription: AdapterSubscription, notices: list[Notice]) -> None:
        """Notify a subscription of those of a group that match, and repeat unacknowledged ones."""
        left = [
            notice
            for notice in notices
            if matches(subscription.types, subscription.metadata, notice.event)
        ]
        for attempt in range(MOST_TRIES):
            if not left:
                return
            answers = await self._post(subscription.endpoint, left)
            left = [
                notice
                for notice, is_acknowledged in zip(left, answers, strict=True)
                if not is_acknowledged
            ]
            if left:
                await asyncio.sleep(RETRY_SECONDS * 2**attempt)
        self.lost += len(left)
        for notice in left:
            log.warning("a notification was given up", extra={"fields": {"number": notice.number}})


def in_order(notices: Iterable[Notice]) -> Iterator[list[Notice]]:
    """Yield groups of consecutive notices. The notices of a group may be delivered at once.

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
