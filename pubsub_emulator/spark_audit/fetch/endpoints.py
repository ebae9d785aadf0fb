"""Several nodes of one chain: which is asked, how often, and what happens when one fails.

A request goes to the node with the least to do. One that does not answer or is asked too often rests, each time twice
as long, or as it says. One that refuses or tells a wrong block is asked a few times more: it may be many nodes.
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
"""A node is asked a question so often while it answers, but wrongly or with a refusal."""
LOSSES: Final = 8
"""A question is asked so often while no node answers."""
_MOST_REST: Final = 60.0
_LONG_REST: Final = 2.0  # seconds from which a rest of all nodes is told
_BUSY: Final = frozenset({-32005, -32029, 429})
_BUSY_WORDS: Final = ("rate limit", "too many", "limit exceeded", "slow down")


@dataclass(frozen=True, slots=True)
class RequestRate:
    """Limits of requests to nodes: `rate` in requests per second of each node, `None` for as many as it answers."""

    connections: int = 8
    """Requests that are under way at each node at once."""
    rate: float | None = None
    timeout: float = 60.0
    rest: float = 0.5
    """Seconds of a node's first rest."""


@dataclass(slots=True)
class _Endpoint:
    """One node."""

    rpc: Rpc
    limits: RequestRate
    room: asyncio.Semaphore
    busy: int = 0
    until: float = 0.0
    rests: int = 0
    said: str = ""  # why it rests
    next_at: float = 0.0

    async def call(self, method: str, params: Sequence[object]) -> object:
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
        if self.limits.rate is None:
            return
        now = asyncio.get_running_loop().time()
        start = max(self.next_at, now)
        self.next_at = start + 1 / self.limits.rate
        await asyncio.sleep(start - now)

    def give_rest(self, seconds: float | None) -> None:
        wait = self.limits.rest * 2**self.rests if seconds is None else seconds
        self.rests = min(self.rests + 1, 8)
        self.until = max(self.until, asyncio.get_running_loop().time() + min(wait, _MOST_REST))


@dataclass(slots=True)
class _Question:
    """The state of one request."""

    refusals: dict[str, int] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    losses: int = 0


class Endpoints:
    """Nodes of a chain, an asynchronous context manager; `resting` hears why all rest. Raises `ClientError`."""

    def __init__(
        self, urls: Sequence[str], limits: RequestRate, resting: Callable[[str], None] = lambda _said: None
    ) -> None:
        if not urls:
            raise FetchError("no node is given")
        self.limits = limits
        self._stack = contextlib.AsyncExitStack()
        nodes = [connect(url, answer_seconds=limits.timeout) for url in dict.fromkeys(urls)]
        self._nodes = [_Endpoint(node, limits, asyncio.Semaphore(limits.connections)) for node in nodes]
        self.requests = 0
        self._resting = resting

    async def __aenter__(self) -> Self:
        for node in self._nodes:
            await self._stack.enter_async_context(node.rpc)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def urls(self) -> list[str]:
        """The nodes."""
        return [node.rpc.url for node in self._nodes]

    @property
    def width(self) -> int:
        """Requests that can be under way at once."""
        return self.limits.connections * len(self._nodes)

    async def ask(self, check: Callable[[str, object], T], method: str, *params: object, only: str | None = None) -> T:
        """The answer of a node as `check` returns it, given the node's URL; raises `WrongBlock` for an impossible one.

        With `only` no other node is asked. Raises `SourceLost` when none answers, `WrongBlock` when those that do
        refuse or tell what cannot be, with what each of them said last.
        """
        question = _Question()
        while True:
            node = await self._choose(question, only, method)
            url = node.rpc.url
            try:
                self.requests += 1
                return check(url, await node.call(method, params))
            except NodeUnavailable as error:
                self._lost(question, node, str(error), error.after)
            except NodeRefused as error:
                if error.code in _BUSY or any(word in str(error).lower() for word in _BUSY_WORDS):
                    self._lost(question, node, f"{url}: {error}", None)
                else:
                    self._refused(question, url, f"{url}: {error}")
            except (BadAnswer, WrongBlock) as error:
                self._refused(question, url, str(error))

    def _lost(self, question: _Question, node: _Endpoint, said: str, after: float | None) -> None:
        node.give_rest(after)
        node.said = said
        question.losses += 1
        question.said[node.rpc.url] = said
        if question.losses >= LOSSES * len(self._nodes):
            raise SourceLost(f"{'; '.join(question.said.values())}; the same command goes on when a node answers")

    def _refused(self, question: _Question, url: str, said: str) -> None:
        question.refusals[url] = question.refusals.get(url, 0) + 1
        question.said[url] = said

    async def _choose(self, question: _Question, only: str | None, method: str) -> _Endpoint:
        """The node to ask now; waits while all rest."""
        asked = (node for node in self._nodes if only in {None, node.rpc.url})
        fit = [node for node in asked if question.refusals.get(node.rpc.url, 0) < REFUSALS]
        if not fit:
            raise WrongBlock("; ".join(question.said.values()) or f"no node answers {method}")
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            awake = [node for node in fit if node.until <= now]
            if awake:
                # Another node first, where this one has refused the question already.
                return min(awake, key=lambda node: (question.refusals.get(node.rpc.url, 0), node.busy))
            wait = min(node.until for node in fit) - now
            if wait >= _LONG_REST:
                self._resting("; ".join(node.said for node in fit))
            await asyncio.sleep(max(wait, 0.001))
