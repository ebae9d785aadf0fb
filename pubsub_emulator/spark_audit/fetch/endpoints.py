"""The nodes of one chain: the choice of the node to ask, its load, and the handling of failures.

A request goes to the node with the fewest pending requests. If a node does not answer or complains
about too many requests, it gets a rest. The first rest is short and each further failure doubles
it, unless the node itself states how long to wait. A node that refuses a request or gives a wrong
block is asked again a few times, because there may be several machines behind one address.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self, TypeVar

from pubsub_emulator.client.errors import BadAnswer, NodeRefused, NodeUnavailable
from pubsub_emulator.client.rpc import Rpc, connect
from pubsub_emulator.spark_audit.fetch.errors import FetchError, SourceLost, WrongBlock

T = TypeVar("T")

REFUSALS: Final = 3
"""How often a node is asked the same question if it refuses or answers wrongly."""
LOSSES: Final = 8
"""How many unanswered requests there may be for a question, for each node, before the nodes count
as lost."""
_MOST_REST: Final = 60.0
"""The longest rest of a node, in seconds."""
_LONG_REST: Final = 2.0
"""A rest of all nodes is reported to the user if it is at least this long, in seconds."""
_BUSY: Final = frozenset({-32005, -32029, 429})
"""Error codes that mean too many requests."""
_BUSY_WORDS: Final = ("rate limit", "too many", "limit exceeded", "slow down")
"""Words of error messages that mean the same."""


@dataclass(frozen=True, slots=True)
class RequestRate:
    """Limits of the requests to nodes."""

    connections: int = 8
    """The maximum number of simultaneous requests to each node."""
    rate: float | None = None
    """Requests per second to each node, `None` for no limit."""
    timeout: float = 60.0
    """Seconds to wait for an answer."""
    rest: float = 0.5
    """Seconds of a node's first rest."""


@dataclass(slots=True)
class _Endpoint:
    """A node, with its load."""

    rpc: Rpc
    limits: RequestRate
    room: asyncio.Semaphore
    """Limits the simultaneous requests."""
    busy: int = 0
    """Requests that are running or waiting for `room`."""
    until: float = 0.0
    """The time of the event loop at which its rest ends."""
    rests: int = 0
    """The number of rests since its last answer. Each one doubles the next rest."""
    last_error: str = ""
    """The error because of which it rests."""
    next_at: float = 0.0
    """The earliest time of the event loop for the next request, if there is a rate."""

    async def call(self, method: str, params: Sequence[object]) -> object:
        """Send a request as soon as the limits allow it, and return the answer.

        An answer resets the length of the next rest.
        """
        async with self.room:
            self.busy += 1
            try:
                await self._pace()
                answer = await self.rpc.call(method, *params)
            finally:
                self.busy -= 1
        self.rests = 0
        return answer

    async def _pace(self) -> None:
        """Wait until the rate allows the next request."""
        if self.limits.rate is None:
            return
        now = asyncio.get_running_loop().time()
        start = max(self.next_at, now)
        # The time is reserved before waiting, so that waiting requests get different times.
        self.next_at = start + 1 / self.limits.rate
        await asyncio.sleep(start - now)

    def give_rest(self, seconds: float | None) -> None:
        """Let the node rest for some seconds, `None` for twice as long as before."""
        wait = self.limits.rest * 2**self.rests if seconds is None else seconds
        self.rests = min(self.rests + 1, 8)
        self.until = max(self.until, asyncio.get_running_loop().time() + min(wait, _MOST_REST))


@dataclass(slots=True)
class _Question:
    """The state of one question, for which several requests may be necessary."""

    refusals: dict[str, int] = field(default_factory=dict)
    """By URL, how often a node refused or answered wrongly."""
    errors: dict[str, str] = field(default_factory=dict)
    """By URL, the last error."""
    losses: int = 0
    """How often the question got no answer."""


class Endpoints:
    """The nodes of a chain. Use it as an asynchronous context manager.

    `resting` is called with the reason if all nodes rest for a while. Raises `FetchError` if there
    is no URL, and `ClientError` if one is wrong.
    """

    def __init__(
        self,
        urls: Sequence[str],
        limits: RequestRate,
        resting: Callable[[str], None] = lambda _reason: None,
    ) -> None:
        if not urls:
            raise FetchError("no node is given")
        self.limits = limits
        self._stack = contextlib.AsyncExitStack()
        nodes = [connect(url, answer_seconds=limits.timeout) for url in dict.fromkeys(urls)]
        self._nodes = [
            _Endpoint(node, limits, asyncio.Semaphore(limits.connections)) for node in nodes
        ]
        self.requests = 0
        self._resting = resting

    async def __aenter__(self) -> Self:
        for node in self._nodes:
            await self._stack.enter_async_context(node.rpc)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @property
    def urls(self) -> list[str]:
        """URLs of the nodes."""
        return [node.rpc.url for node in self._nodes]

    @property
    def width(self) -> int:
        """The maximum number of simultaneous requests to all nodes together."""
        return self.limits.connections * len(self._nodes)

    async def ask(
        self,
        check: Callable[[str, object], T],
        method: str,
        *params: object,
        only: str | None = None,
    ) -> T:
        """Ask the nodes a question, and return the answer as `check` returns it.

        `check` is called with the node's URL and the answer, and raises `WrongBlock` if the answer
        cannot be right. With `only`, no other node is asked. Raises `SourceLost` if no node
        answers, and `WrongBlock` if those that answer refuse or answer wrongly.
        """
        question = _Question()
        while True:
            node = await self._choose(question, only, method)
            url = node.rpc.url
            try:
                self.requests += 1
                return check(url, await node.call(method, params))
            except NodeUnavailable as error:
                self._lost(question, node, str(error), after=error.after)
            except NodeRefused as error:
                if error.code in _BUSY or any(word in str(error).lower() for word in _BUSY_WORDS):
                    self._lost(question, node, f"{url}: {error}", after=None)
                else:
                    self._refused(question, url, f"{url}: {error}")
            except (BadAnswer, WrongBlock) as error:
                self._refused(question, url, str(error))

    def _lost(
        self, question: _Question, node: _Endpoint, problem: str, after: float | None
    ) -> None:
        """Let a node rest that did not answer. Raises `SourceLost` after too many losses."""
        node.give_rest(after)
        node.last_error = problem
        question.losses += 1
        question.errors[node.rpc.url] = problem
        if question.losses >= LOSSES * len(self._nodes):
            raise SourceLost(
                f"{'; '.join(question.errors.values())}; the same command continues when a node"
                " answers"
            )

    def _refused(self, question: _Question, url: str, problem: str) -> None:
        """Record that a node refused a question or answered it wrongly."""
        question.refusals[url] = question.refusals.get(url, 0) + 1
        question.errors[url] = problem

    async def _choose(self, question: _Question, only: str | None, method: str) -> _Endpoint:
        """Return the node to ask next, after waiting if all nodes rest.

        Raises `WrongBlock` if every node has refused the question too often.
        """
        allowed = (node for node in self._nodes if only in {None, node.rpc.url})
        candidates = [node for node in allowed if question.refusals.get(node.rpc.url, 0) < REFUSALS]
        if not candidates:
            raise WrongBlock("; ".join(question.errors.values()) or f"no node answers {method}")
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            awake = [node for node in candidates if node.until <= now]
            if awake:
                # A node that has refused this question comes after those that have not.
                return min(
                    awake, key=lambda node: (question.refusals.get(node.rpc.url, 0), node.busy)
                )
            wait = min(node.until for node in candidates) - now
            if wait >= _LONG_REST:
                self._resting("; ".join(node.last_error for node in candidates))
            await asyncio.sleep(max(wait, 0.001))
