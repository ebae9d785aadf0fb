"""JSON-RPC 2.0 over WebSocket, or over HTTP without subscriptions.

    async with connect("ws://127.0.0.1:9944") as rpc:
        header = await rpc.call("chain_getHeader")
        async with rpc.subscribe(
            "chain_subscribeFinalizedHeads", "chain_unsubscribeFinalizedHeads"
        ) as heads:
            async for header in heads: …

If the connection is lost, pending calls and subscriptions fail with `NodeUnavailable`. The next
call connects again. A caller whose subscription failed must subscribe again, and ask for what it
missed in the meantime.
"""

import asyncio
import contextlib
import errno
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import aiohttp

from pubsub_emulator.client.errors import BadAnswer, ClientError, NodeRefused, NodeUnavailable
from pubsub_emulator.files.untrusted import parse_json

ANSWER_SECONDS: Final = 60.0
"""The default time that a node has to answer, in seconds."""
MAX_MESSAGE: Final = 256 * 1024 * 1024
"""The maximum size in bytes of one answer after decompression, and of all unread notifications of a
connection.
"""
MAX_WAITING: Final = 10_000
"""The maximum number of unread notifications of one subscription. Beyond it, the subscription ends.
"""
_TOO_MANY: Final = 429
"""The HTTP status of a node that receives too many requests."""
_SERVER_FAILED: Final = 500
"""The lowest HTTP status that means an error of the server."""
Queue = asyncio.Queue[tuple[object, int] | ClientError]
"""Notifications with their sizes in bytes, followed by the error that ended the subscription."""
_FAILURES: Final = (aiohttp.ClientError, OSError, TimeoutError)
"""The errors of connections, which `_request` turns into `NodeUnavailable`."""


class Rpc:
    """A connection to one URL. Use it as an asynchronous context manager."""

    def __init__(self, url: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        if not url.startswith(("ws://", "wss://", "http://", "https://")):
            raise ClientError(f"{url}: a node's URL starts with ws://, wss://, http:// or https://")
        self.url = url
        self._answer_seconds = answer_seconds
        self._numbers = itertools.count(1)
        self._session: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._reader: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._pending: dict[int, tuple[asyncio.Future[dict[str, object]], Queue | None]] = {}
        """The answers that calls wait for, by the ids of the calls. Subscribing calls have a queue
        for their notifications, too.
        """
        self._queues: dict[str, Queue] = {}
        """The queues of subscriptions by their ids."""
        self._early: dict[str, list[tuple[object, int]]] = {}
        """Notifications of subscriptions whose ids are not known yet."""
        self._unread = 0
        """The size of all unread notifications in bytes."""

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._answer_seconds)
        self._session = aiohttp.ClientSession(timeout=timeout)
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        if self._socket is not None:
            await self._socket.close()
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, *params: object) -> Any:
        """Return the result of a method. Raises `NodeRefused`, `NodeUnavailable` or `BadAnswer`."""
        return await self._request(method, params)

    async def _request(
        self, method: str, params: tuple[object, ...], queue: Queue | None = None
    ) -> Any:
        """Return the result of a method. Raises as `call` does.

        If the method is a subscription, `queue` receives its notifications.
        """
        body = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        try:
            async with asyncio.timeout(self._answer_seconds):
                answer = await (
                    self._post(body) if self.url.startswith("http") else self._send(body, queue)
                )
        except _FAILURES as error:
            if _refused(error):
                raise NodeUnavailable(f"nobody listens at {self.url}") from error
            if isinstance(error, TimeoutError):
                reason = "no answer in time"
            else:
                reason = str(error) or type(error).__name__
            raise NodeUnavailable(f"{self.url}: {method}: {reason}") from error
        if "error" in answer:
            problem = answer["error"]
            if not isinstance(problem, dict):
                raise BadAnswer(f"{self.url}: {method}: the error is not an object")
            code = problem.get("code")
            if not isinstance(code, int):
                code = 0
            raise NodeRefused(method, code, str(problem.get("message")), data=problem.get("data"))
        if "result" not in answer:
            raise BadAnswer(f"{self.url}: {method}: the answer has neither result nor error")
        return answer["result"]

    @asynccontextmanager
    async def subscribe(
        self, method: str, unsubscribe: str, *params: object
    ) -> AsyncIterator[AsyncIterator[Any]]:
        """Yield an iterator over the notifications of a subscription, in order.

        Raises as `call` does. The iterator raises `NodeUnavailable` if the subscription is lost.
        """
        if self.url.startswith("http"):
            raise ClientError(f"{self.url}: {method} needs a ws:// URL")
        queue: Queue = asyncio.Queue(MAX_WAITING)
        name = str(await self._request(method, params, queue))
        socket = self._socket
        try:
            yield self._notifications(queue, method)
        finally:
            # Notifications that nobody will read no longer count as unread.
            while not queue.empty():
                self._forget(queue.get_nowait())
            # On a later connection, the same id can belong to another subscription.
            if socket is not None and self._socket is socket and not socket.closed:
                self._queues.pop(name, None)
                with contextlib.suppress(ClientError):
                    await self.call(unsubscribe, name)
                # These notifications arrived before the node ended the subscription.
                for item in self._early.pop(name, ()):
                    self._forget(item)

    # HTTP

    async def _post(self, body: dict[str, object]) -> dict[str, object]:
        """Send a request over HTTP and return the answer.

        Raises `NodeUnavailable` if the node is too busy or its server fails.
        """
        async with self._open_session().post(self.url, json=body) as answer:
            if answer.status == _TOO_MANY or answer.status >= _SERVER_FAILED:
                wait = answer.headers.get("Retry-After", "")
                message = f"{self.url}: {body['method']}: HTTP status {answer.status}"
                raise NodeUnavailable(message, float(wait) if wait.isdecimal() else None)
            return self._parsed(await _whole(answer.content, self.url))

    # WebSocket

    async def _send(self, body: dict[str, Any], queue: Queue | None) -> dict[str, object]:
        """Send a request over the WebSocket and wait for the answer."""
        socket = await self._connected()
        future: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()
        self._pending[body["id"]] = (future, queue)
        try:
            await socket.send_str(json.dumps(body))
            return await future
        finally:
            self._pending.pop(body["id"], None)

    async def _connected(self) -> aiohttp.ClientWebSocketResponse:
        """Return the open WebSocket, connecting if there is none or it was lost."""
        async with self._connecting:
            if self._socket is None or self._socket.closed:
                self._early.clear()
                self._unread = 0
                self._socket = await self._open_session().ws_connect(
                    self.url, max_msg_size=MAX_MESSAGE
                )
                self._reader = asyncio.create_task(self._read(self._socket))
            return self._socket

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Read messages until the connection ends, then fail pending calls and subscriptions."""
        reason = f"{self.url}: the connection was closed"
        try:
            async for message in socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    data = message.data.encode()
                    self._take(self._parsed(data), len(data))
        except ClientError as error:
            # Errors about unreadable answers already name the node.
            reason = str(error) if self.url in str(error) else f"{self.url}: {error}"
        except _FAILURES as error:
            reason = f"{self.url}: {error}"
        finally:
            await socket.close()
            lost = NodeUnavailable(reason)
            for future, _ in self._pending.values():
                if not future.done():
                    future.set_exception(lost)
            for queue in self._queues.values():
                self._end(queue, lost)
            self._queues.clear()

    def _take(self, answer: dict[str, object], size: int) -> None:
        """Hand an answer to the caller that waits for it, or a notification to its subscription."""
        number = answer.get("id")
        params = answer.get("params")
        if isinstance(number, int):
            future, queue = self._pending.get(number, (None, None))
            # The queue is registered here, before the caller runs. If the connection ended in
            # between, nothing would end a queue that the caller registers later.
            if queue is not None and "result" in answer:
                name = str(answer["result"])
                for early in self._early.pop(name, ()):
                    queue.put_nowait(early)
                self._queues[name] = queue
            if future is not None and not future.done():
                future.set_result(answer)
        elif isinstance(params, dict) and "subscription" in params:
            name = str(params["subscription"])
            self._unread += size
            if self._unread > MAX_MESSAGE:
                raise BadAnswer(f"more than {MAX_MESSAGE:,} bytes of notifications wait")
            queue = self._queues.get(name)
            # A notification can overtake the answer with the id of its subscription.
            if queue is None:
                self._early.setdefault(name, []).append((params.get("result"), size))
                if sum(map(len, self._early.values())) > MAX_WAITING:
                    raise BadAnswer("notifications of unknown subscriptions")
            elif queue.full():
                self._unread -= size
                self._end(
                    queue,
                    NodeUnavailable(f"{self.url}: more than {MAX_WAITING} notifications wait"),
                )
                del self._queues[name]
            else:
                queue.put_nowait((params.get("result"), size))

    def _end(self, queue: Queue, error: ClientError) -> None:
        """Append an error to a queue, replacing the oldest item if the queue is full."""
        if queue.full():
            self._forget(queue.get_nowait())
        queue.put_nowait(error)

    def _forget(self, item: tuple[object, int] | ClientError) -> None:
        """Stop counting an item as unread. Errors are not counted."""
        if not isinstance(item, ClientError):
            _, size = item
            self._unread -= size

    async def _notifications(self, queue: Queue, method: str) -> AsyncIterator[object]:
        """Yield the notifications of a queue until an error ends them."""
        while True:
            item = await queue.get()
            if isinstance(item, ClientError):
                raise NodeUnavailable(f"{method}: {item}")
            self._forget(item)
            result, _ = item
            yield result

    def _parsed(self, data: bytes) -> dict[str, object]:
        """Parse an answer or a notification. Raises `BadAnswer`."""
        answer = parse_json(data, f"{self.url}: the answer", BadAnswer)
        if not isinstance(answer, dict):
            raise BadAnswer(f"{self.url}: the answer is not a JSON object")
        return answer

    def _open_session(self) -> aiohttp.ClientSession:
        """Return the HTTP session. Raises `ClientError` outside of the context."""
        if self._session is None:
            raise ClientError("use the client inside `async with`")
        return self._session


def connect(url: str, *, answer_seconds: float = ANSWER_SECONDS) -> Rpc:
    """Return a client of the node at a ws://, wss://, http:// or https:// URL.

    It connects when the first call is made. Raises `ClientError` if the URL has another scheme.
    """
    return Rpc(url, answer_seconds=answer_seconds)


async def _whole(content: aiohttp.StreamReader, url: str) -> bytes:
    """Return the decompressed body of an answer.

    Raises `BadAnswer` as soon as more than `MAX_MESSAGE` bytes were decompressed.
    """
    body = bytearray()
    async for part in content.iter_any():
        body += part
        if len(body) > MAX_MESSAGE:
            raise BadAnswer(f"{url}: an answer of more than {MAX_MESSAGE:,} bytes")
    return bytes(body)


def _refused(error: BaseException) -> bool:
    """Return whether every address of the host refused the connection.

    This means that no program listens there.
    """
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    return (
        isinstance(error, ConnectionRefusedError)
        or getattr(error, "errno", None) == errno.ECONNREFUSED
    )
