"""One WebSocket connection.

    reader ──► Dispatcher ──► outbox ──► writer
    step   ──► RpcSession.advanced ──► outbox

Answers are sent in the order in which they are completed. The outbox is bounded. If a client does
not read, subscriptions to heads and storage drop all but the newest event, follows end with `stop`,
and an event of any other subscription closes the connection with code 1013 (ND-30). Other clients
are not affected.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from aiohttp import WSCloseCode, WSMsgType, web

from pubsub_emulator.node.chain.block import Chain
from pubsub_emulator.node.rpc.dispatch import Dispatcher, RpcAnswer
from pubsub_emulator.node.rpc.node import RpcNode
from pubsub_emulator.node.rpc.session import Overflow, RpcSession, RpcSubscription
from pubsub_emulator.node.server.options import Serving

_CLOSING: Final = 2.0
"""The time in seconds that a client has to answer the close frame."""
_TURN: Final = 0.002
"""The time in seconds for which a connection's requests are read before other tasks run."""

log: Final = logging.getLogger("pubsub.node")


@dataclass(eq=False)
class Connection:
    """A client on the path of one chain. It is the `Outlet` of its session."""

    name: str
    """A name that is unique in the node. The ids of subscriptions begin with it."""
    socket: web.WebSocketResponse
    request: web.Request
    """The HTTP request that opened the connection."""
    node: RpcNode
    chain: Chain
    """The chain of the path."""
    dispatcher: Dispatcher
    serving: Serving
    """The limits."""

    def __post_init__(self) -> None:
        self.session = RpcSession(self.name, self, self.serving.subscriptions)
        self._queue: deque[str] = deque()
        """The outbox."""
        self._bytes = 0
        """The size of the outbox in characters."""
        self._ready = asyncio.Event()
        """Set while the outbox has messages."""
        self._room = asyncio.Event()
        """Set while the outbox has room for more messages."""
        self._taken = asyncio.Event()
        """Set while all messages have been sent."""
        self._idle = asyncio.Event()
        """Set while fewer requests than the limit are being processed."""
        for event in (self._room, self._taken, self._idle):
            event.set()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._working = 0
        """The number of requests that are being processed in the background."""
        self._lagging: dict[RpcSubscription, None] = {}
        """Subscriptions with dropped events. The dictionary is an ordered set."""
        self._forced = False
        """Whether events are queued even if the outbox is full."""
        self._closing: int | None = None
        """The code with which the connection is being closed."""
        self._clock = asyncio.get_running_loop().time

    @property
    def waiting(self) -> int:
        """Return the number of messages in the outbox."""
        return len(self._queue)

    # Life

    async def run(self) -> None:
        """Serve the client until one side closes the connection."""
        self.node.sessions[self.session] = None
        writer = asyncio.create_task(self._write())
        try:
            await self._read()
        finally:
            self.node.sessions.pop(self.session, None)
            self.session.close()
            for task in list(self._tasks):
                task.cancel()
            writer.cancel()
            with suppress(asyncio.CancelledError):
                await writer
            await self._part()

    def close(self, code: int) -> None:
        """Close the connection with a code. Queued messages are discarded."""
        if self._closing is None:
            self._closing = code
            self._queue.clear()
            self._bytes = 0
            self.spawn(self._part())

    async def _part(self) -> None:
        """Send the close frame. A client that does not answer it is disconnected."""
        code = WSCloseCode.GOING_AWAY if self._closing is None else self._closing
        try:
            async with asyncio.timeout(_CLOSING):
                await self.socket.close(code=code)
        except (TimeoutError, OSError, RuntimeError):
            pass
        finally:
            transport = self.request.transport
            if transport is not None:
                transport.abort()

    # Reading

    async def _read(self) -> None:
        """Read requests and answer them.

        Reading pauses while the outbox is full, or while too many requests are being processed. TCP
        then slows the client down.
        """
        began = self._clock()
        async for message in self.socket:
            if message.type not in {WSMsgType.TEXT, WSMsgType.BINARY} or self._closing is not None:
                break
            if self.request.transport is None or self.request.transport.is_closing():
                # aiohttp still delivers queued requests although the client is gone.
                break
            result = self.dispatcher.handle(message.data, self.chain, self.session)
            if isinstance(result, RpcAnswer):
                self._reply(result)
            elif result.heavy:
                await self._alone(result.work)
            else:
                self._working += 1
                if self._working >= self.serving.requests:
                    self._idle.clear()
                self.spawn(self._later(result.work))
            if not self._room.is_set():
                await self._room.wait()
            if not self._idle.is_set():
                await self._idle.wait()
            if self._clock() - began > _TURN:
                await asyncio.sleep(0)
                began = self._clock()

    async def _alone(self, work: Coroutine[object, None, RpcAnswer]) -> None:
        """Answer a heavy call after the client has received all earlier answers.

        No other requests are read until then.
        """
        try:
            await self._taken.wait()
            self._reply(await work)
        finally:
            # If the connection ended first, the coroutine was never awaited. Python would warn of
            # that.
            work.close()

    async def _later(self, work: Coroutine[object, None, RpcAnswer]) -> None:
        """Answer a call in the background."""
        try:
            self._reply(await work)
        finally:
            self._working -= 1
            self._idle.set()

    def _reply(self, answer: RpcAnswer) -> None:
        """Send an answer, then the events of the subscriptions that it opened."""
        if answer.text is not None:
            self._push(answer.text)
        if answer.opened:
            self.session.release(answer.opened)

    def spawn(self, work: Coroutine[object, None, None]) -> None:
        """Run a coroutine concurrently with the requests."""
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("a connection's work failed", exc_info=task.exception())

    # Sending

    def event(self, subscription: RpcSubscription, text: str) -> None:
        """Queue an event, or handle the overflow if the outbox is full.

        An event that is longer than the whole outbox closes the connection.
        """
        if self._closing is not None:
            return
        if len(text) > self.serving.queued_bytes:
            log.warning(
                "a subscription's event is too long for any queue: its connection is closed"
            )
            self.close(WSCloseCode.MESSAGE_TOO_BIG)
            return
        if self._is_full(len(text)) and not self._forced:
            self._overflow(subscription)
            return
        subscription.sent_at = self._clock()
        self._push(text)

    async def room(self) -> None:
        """Wait until the outbox is at most half full."""
        while self._closing is None and (
            2 * len(self._queue) > self.serving.queued
            or 2 * self._bytes > self.serving.queued_bytes
        ):
            self._room.clear()
            await self._room.wait()
        await self.node.control.breathe()

    def _is_full(self, more: int) -> bool:
        """Return whether the outbox has no room for a message of `more` characters."""
        return (
            len(self._queue) >= self.serving.queued
            or self._bytes + more > self.serving.queued_bytes
        )

    def _overflow(self, subscription: RpcSubscription) -> None:
        """Handle an event for which there is no room, as its subscription requires."""
        match subscription.overflow:
            case Overflow.NEWEST:
                self._lagging[subscription] = None
            case Overflow.STOP:
                # The event that announces the end must be sent although the outbox is full.
                self._forced = True
                try:
                    subscription.stop()
                finally:
                    self._forced = False
            case Overflow.CLOSE:
                log.warning("a client does not read: its connection is closed")
                self.close(WSCloseCode.TRY_AGAIN_LATER)

    def _push(self, text: str) -> None:
        """Add a message to the outbox, and pause reading if the outbox is full now."""
        self._queue.append(text)
        self._bytes += len(text)
        self._taken.clear()
        if self._is_full(0):
            # No more requests are read until the client has read.
            self._room.clear()
        self._ready.set()

    async def _write(self) -> None:
        """Send messages until the connection ends, then release the tasks that wait for it."""
        try:
            await self._write_all()
        finally:
            # Tasks that wait for the client must end, too.
            self._room.set()
            self._taken.set()

    async def _write_all(self) -> None:
        """Send the messages of the outbox until the connection ends.

        Each time that the outbox becomes half empty, reading resumes and subscriptions catch up.
        """
        socket, queue = self.socket, self._queue
        while True:
            await self._ready.wait()
            while queue:
                text = queue.popleft()
                self._bytes -= len(text)
                try:
                    await socket.send_str(text)
                except (ConnectionError, RuntimeError):
                    # The reader notices the closed connection as well and ends it.
                    return
                if (
                    2 * len(queue) <= self.serving.queued
                    and 2 * self._bytes <= self.serving.queued_bytes
                ):
                    self._room.set()
                    self._catch_up()
            # The last message can have megabytes, and would stay in memory until the next one.
            text = ""
            self._taken.set()
            self._ready.clear()

    def _catch_up(self) -> None:
        """Send the present values of subscriptions that have dropped events."""
        for subscription in list(self._lagging):
            if self._is_full(0):
                return
            # If there is no room for the event, `event` adds the subscription again.
            del self._lagging[subscription]
            if subscription.session is not None:
                subscription.newest(self.node.timeline)

    def speak(self) -> None:
        """Call `silent` of subscriptions that have sent nothing for the seconds of `silence`."""
        silent_since = self._clock() - self.serving.silence
        for subscription in list(self.session.subscriptions.values()):
            if subscription.sent_at and subscription.sent_at <= silent_since:
                subscription.silent()
