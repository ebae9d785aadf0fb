"""An adapter in the distributor's own process: a desk and a ledger without HTTP between (ID-50)."""

from interchain_events.database.errors import StoreError
from interchain_events.distributor.adapter.desk import Desk, Post
from interchain_events.distributor.adapter.ledger import NetworkLog, read_log, selected
from interchain_events.distributor.core.messages import (
    Answer,
    Hook,
    No,
    Noticed,
    Page,
    Unknown,
    Yes,
    reply_of,
)
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once import Store
from interchain_events.distributor.service.adapters import Place, Query
from interchain_events.distributor.service.engine import Engine
from interchain_events.distributor.service.requests import Wish


class InsideAdapter:
    """An adapter over a ledger. `post` notifies the endpoints of its subscriptions."""

    def __init__(self, ledger: NetworkLog, store: Store, post: Post) -> None:
        self._ledger = ledger
        self.desk = Desk(ledger, store, post)

    async def publish(self, event: Event) -> Answer:
        """Publish an event on the ledger."""
        answer = await self._ledger.publish(event)
        return answer if isinstance(answer, No | Unknown) else Yes(answer.time)

    async def misfit(self) -> str:
        """Return an empty string, because this adapter has the right interface."""
        return ""

    async def probe(self, event_id: str, since: int, entity: str, second: int = 0) -> Place:  # noqa: ARG002  # the whole log is at hand
        """Return whether the log has the id."""
        found = await read_log(self._ledger)
        return Place(None if found is None else any(notice.id == event_id for notice in found))

    async def read(self, after: int, limit: int, since: int) -> Page | None:  # noqa: ARG002  # read by number
        """Return the log after a number."""
        return await self._ledger.read(after, limit)

    async def query(self, query: Query) -> list[Notice] | None:
        """Return events for a client."""
        return await selected(self._ledger, query)

    async def hooks(self) -> tuple[Hook, ...] | None:
        """Return the desk's subscriptions, `None` if the store is down."""
        try:
            return tuple(Hook(name, each.endpoint) for name, each in self.desk.subscriptions())
        except StoreError:
            return None

    async def hook(
        self, endpoint: str, types: tuple[str, ...] | None, metadata: tuple[str, ...]
    ) -> bool | None:
        """Subscribe at the desk. Returns `None` if the store is down."""
        try:
            await self.desk.subscribe(Wish(types or ("*",), metadata, endpoint, None))
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
    """Pass notifications to the engine to whose webhook an endpoint leads.

    Returns for each whether it was stored.
    """
    kind, network, *rest = endpoint.removeprefix(f"{engine.rules.public_url}/internal/").split("/")
    subscription = rest[0] if kind == "desmosNotification" else None
    found = await engine.tell_all(
        [Noticed(network, rest[-1], notice, subscription) for notice in notices]
    )
    return [not isinstance(effects, StoreError) and not reply_of(effects).code for effects in found]
