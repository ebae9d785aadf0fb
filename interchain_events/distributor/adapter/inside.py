"""An adapter in the distributor's own process: a desk and a ledger, without HTTP (ID-50)."""

from interchain_events.database.errors import StoreError
from interchain_events.distributor.adapter.desk import Desk, Post
from interchain_events.distributor.adapter.ledger import Ledger, selected
from interchain_events.distributor.core.messages import (
    Answer,
    Hook,
    LogPage,
    No,
    Noticed,
    Unknown,
    Yes,
    reply_of,
)
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once import Store
from interchain_events.distributor.service.adapters import ProbeAnswer, Query
from interchain_events.distributor.service.engine import Engine
from interchain_events.distributor.service.requests import SubscriptionRequest


class InsideAdapter:
    """An adapter over a ledger. `post` notifies the endpoints of its subscriptions."""

    def __init__(self, ledger: Ledger, store: Store, post: Post) -> None:
        self._ledger = ledger
        self.fault = ""
        """Empty: there are no requests that could fail."""
        self.desk = Desk(ledger, store, post)

    async def publish(self, event: Event) -> Answer:
        """Publish an event on the ledger."""
        answer = await self._ledger.publish(event)
        if isinstance(answer, No | Unknown):
            return answer
        return Yes(answer.time)

    async def misfit(self) -> str:
        """Return an empty string: this adapter always has the right interface."""
        return ""

    async def probe(self, event_id: str, since: int, entity: str, second: int = 0) -> ProbeAnswer:  # noqa: ARG002  # ids are looked up
        """Return whether the log has the id."""
        return ProbeAnswer(await self._ledger.has(event_id))

    async def read(self, after: int, limit: int, since: int) -> LogPage | None:  # noqa: ARG002  # read by number
        """Return at most `limit` notices of the log after a number."""
        return await self._ledger.read(after, limit)

    async def query(self, query: Query) -> list[Notice] | None:
        """Return the notices that a client's query asks for."""
        return await selected(self._ledger, query)

    async def hooks(self) -> tuple[Hook, ...] | None:
        """Return the desk's subscriptions, `None` if the store is down."""
        try:
            return tuple(Hook(name, row.endpoint) for name, row in self.desk.subscriptions())
        except StoreError:
            return None

    async def hook(
        self, endpoint: str, types: tuple[str, ...] | None, metadata: tuple[str, ...]
    ) -> bool | None:
        """Subscribe at the desk. Returns true, or `None` if the store is down."""
        try:
            await self.desk.subscribe(
                SubscriptionRequest(types or ("*",), metadata, endpoint, secret=None)
            )
        except StoreError:
            return None
        return True

    async def drop(self, subscription: str) -> None:
        """Unsubscribe at the desk."""
        self.desk.unsubscribe(subscription)

    async def close(self) -> None:
        """End the deliveries."""
        await self.desk.stop()
        await self._ledger.close()


async def deliver(engine: Engine, endpoint: str, notices: list[Notice]) -> list[bool]:
    """Pass notifications to the engine without HTTP. `endpoint` is one of its own webhooks.

    Returns for each notification whether it was stored.
    """
    path = endpoint.removeprefix(f"{engine.rules.public_url}/internal/")
    # The forms of the path are those of `Rules.hook_url` and `Rules.interest_url`.
    kind, network, *rest = path.split("/")
    subscription = rest[0] if kind == "desmosNotification" else None
    results = await engine.tell_all(
        [Noticed(network, rest[-1], notice, subscription) for notice in notices]
    )
    return [not isinstance(result, StoreError) and not reply_of(result).code for result in results]
