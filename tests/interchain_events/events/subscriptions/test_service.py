"""The service without a front: where a catch-up ends, and who reads everything (EV-21, EV-25)."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from support.events.blocks import counted
from support.plumbing.told import alone

from interchain_events.events.errors import CursorAbandoned, LimitReached
from interchain_events.events.filters.algebra import ANY, Filter, Kind
from interchain_events.events.log.memory import MemoryStore
from interchain_events.events.log.store import Head
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.hub import Message
from interchain_events.events.subscriptions.registry import Subscription, SubscriptionRegistry
from interchain_events.events.subscriptions.service import START, EventService
from interchain_events.events.subscriptions.streams import Ended, Limits


class Unheard(MemoryStore):
    """A log of which the service hears nothing new until `released` is set."""

    def __init__(self) -> None:
        super().__init__("test")
        self.released = threading.Event()

    def wait(self, known: Head, timeout: float) -> bool:
        del known, timeout
        return self.released.wait(30)


class Given(SubscriptionRegistry[Filter]):
    """Subscriptions by token, as a test gives them."""

    def __init__(self, **filters: Filter) -> None:
        self._filters = filters

    def get(self, token: str) -> Subscription:
        where = self._filters[token]
        return Subscription(
            token, (where,), Cursor(0, 0), batches=False, reads_all=where == ANY, client="owner"
        )

    def cancel(self, token: str) -> str:
        return token


class Notes:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int, str]] = []

    def opened(self, subscription: Subscription, stream: str, after: Cursor) -> None:
        del stream
        self.lines.append(("opened", after.seq, subscription.name))

    def delivered(self, stream: str, message: Message) -> None:
        del stream
        self.lines.append(("delivered", message.cursor.seq, str(len(message.rows))))

    def ended(self, stream: str, cursor: Cursor, how: str) -> None:
        del stream
        self.lines.append(("ended", cursor.seq, how))


@asynccontextmanager
async def serving(
    log: Unheard, registry: Given, limits: Limits | None = None, notes: Notes | None = None
) -> AsyncIterator[EventService[Filter]]:
    async with EventService(log, registry, limits, notes) as service:
        try:
            yield service
        finally:
            log.released.set()


async def up_to_the_seam(service: EventService[Filter]) -> list[int]:
    """The rows of a stream from the start up to the message without rows that ends the catch-up."""
    found: list[int] = []
    async with service.stream("token", None, START, seam=True) as messages:
        async for message in messages:
            if message.live and not message.rows:
                break
            assert not message.live
            found += [row.seq for row in message.rows]
    return found


@alone
async def test_a_stream_catches_up_after_all_rows_that_existed_at_its_start() -> None:
    """A service that follows the log late must not call its own place the end: a client would act
    on old rows.
    """
    log = Unheard()
    log.append([counted(1, 2)])
    async with serving(log, Given(token=ANY)) as service:
        await asyncio.sleep(0.05)  # the service has read the head, and waits
        log.append([counted(2, 3)])
        reading = asyncio.create_task(up_to_the_seam(service))
        await asyncio.sleep(0.1)  # long enough to read what the service knows
        assert not reading.done()
        log.released.set()
        assert await reading == [1, 2, 3, 4, 5]


@alone
async def test_a_stream_without_a_seam_does_not_wait_for_the_service() -> None:
    log = Unheard()
    log.append([counted(1, 2)])
    async with serving(log, Given(token=ANY)) as service:
        await asyncio.sleep(0.05)
        log.append([counted(2, 3)])
        async with asyncio.timeout(10), service.stream("token", None, START) as messages:
            first = await anext(messages)
            assert (first.rows[0].seq, first.live) == (1, True)
            assert not log.released.is_set()


@alone
async def test_ev_25_a_stream_from_the_start_without_filter_reads_all_until_caught_up() -> None:
    log = Unheard()
    log.append([counted(number, 50) for number in range(1, 41)])
    limits = Limits(full_reads=1, bound=10)
    async with serving(log, Given(everything=ANY, some=Kind("Test.*")), limits) as service:
        begin = service.text(Cursor(0, 0))
        async with service.stream("everything", "slow", START) as messages:
            await anext(messages)
            for token, after in (("some", START), ("everything", begin)):
                async with service.stream(token, "other", after):
                    pass
            with pytest.raises(LimitReached, match="everything from the start"):
                async with service.stream("everything", "other", START):
                    pass
            async for message in messages:
                if message.rows[-1].seq == 2_000:
                    break
            async with service.stream("everything", "other", START):
                pass


@alone
async def test_ev_25_a_stream_counts_for_its_reader_or_else_for_its_subscriptions_owner() -> None:
    async with (
        serving(Unheard(), Given(token=ANY), Limits(streams_per_client=1)) as service,
        service.stream("token", "reader"),
        service.stream("token", None),
    ):
        for client in ("reader", "owner", None):
            with pytest.raises(LimitReached, match="may have at most 1 streams"):
                async with service.stream("token", client):
                    pass
        async with service.stream("token", "another"):
            pass


@alone
async def test_ev_25_a_message_nobody_takes_drops_its_stream_once_but_no_waiting_one() -> None:
    log = Unheard()
    log.append([counted(1, 20)])
    drops: list[str] = []
    limits = Limits(unread_seconds=60, bound=4)
    async with serving(log, Given(token=ANY), limits) as service:
        now = asyncio.get_running_loop().time
        slow = service.stream("token", "slow", START, dropped=lambda: drops.append("slow"))
        quick = service.stream("token", "quick", START, dropped=lambda: drops.append("quick"))
        async with slow as unread, quick as read:
            await anext(unread)
            for _ in range(20):
                await anext(read)
            waiting = asyncio.ensure_future(anext(read))
            await asyncio.sleep(0.05)
            assert service.waiting_rows == 3
            assert [each.client for each in service._held if each.reads_all] == ["slow"]
            service._drop_unread(now() + 59)
            assert drops == []
            for _ in range(2):
                service._drop_unread(now() + 61)
                assert drops == ["slow"]
            assert service.waiting_rows == 0
            assert len(service._hub._streams) == 1
            assert [each.client for each in service._held if each.reads_all] == []
            with pytest.raises(Ended, match="nothing was read for 60 seconds") as ended:
                await anext(unread)
            assert ended.value.resumable
            waiting.cancel()
            await asyncio.wait([waiting])


@alone
async def test_ev_40_what_was_handed_over_and_how_a_stream_ended_is_written_down() -> None:
    log = Unheard()
    log.append([counted(1, 2), counted(2, 1)])
    notes = Notes()
    limits = Limits(heartbeat_seconds=0.01)
    async with serving(log, Given(token=ANY), limits, notes) as service:
        async with service.stream("token", None, START) as messages:
            await anext(messages)
        assert notes.lines == [
            ("opened", 0, "token"),
            ("delivered", 1, "1"),
            ("ended", 1, "disconnected"),
        ]
        notes.lines.clear()
        async with service.stream("token", None, service.text(Cursor(0, 3))) as messages:
            assert (await anext(messages)).rows == ()
        assert notes.lines == [("opened", 3, "token"), ("ended", 3, "disconnected")]


@alone
async def test_ev_40_a_stream_that_ends_early_is_written_down_with_the_reason() -> None:
    log = Unheard()
    log.append([counted(1, 2), counted(2, 1)])
    notes = Notes()

    async def read(
        service: EventService[Filter], after: str, begun: Callable[[], Awaitable[None]]
    ) -> None:
        async with service.stream("token", None, after) as messages:
            await anext(messages)
            await begun()
            async for _ in messages:
                pass

    async def rewind() -> None:
        log.rewind(1)
        log.released.set()

    async with serving(log, Given(token=ANY), notes=notes) as service:
        with pytest.raises(Ended, match="cancelled"):
            await read(service, START, lambda: service.cancel("token"))
        assert notes.lines[-1] == ("ended", 1, "cancelled")
        with pytest.raises(CursorAbandoned):
            await read(service, service.text(Cursor(0, 2)), rewind)
        assert notes.lines[-1] == ("ended", 3, "abandoned")
        assert service.counts["streams_abandoned"] == 1
