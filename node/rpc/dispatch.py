"""From the text of a request to the text of its answer (JSON-RPC 2.0, single and batch)."""

import json
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import CoroutineType
from typing import Any, Final, NamedTuple, NoReturn

from pubsub_emulator.node.chain.block import Chain
from pubsub_emulator.node.rpc.call import Call
from pubsub_emulator.node.rpc.encode import Written
from pubsub_emulator.node.rpc.errors import (
    ANSWER_TOO_BIG,
    BATCH_ANSWER_TOO_BIG,
    BATCH_TOO_LONG,
    CLIENT,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    REQUEST_TOO_BIG,
    RpcError,
    method_not_found,
)
from pubsub_emulator.node.rpc.method import Method
from pubsub_emulator.node.rpc.node import Node
from pubsub_emulator.node.rpc.params import bind
from pubsub_emulator.node.rpc.session import Session, Subscription, compact
from pubsub_emulator.primitives.errors import PubsubError

MEBIBYTE: Final = 1_048_576
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')

log: Final = logging.getLogger("pubsub.node")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may be: bytes, calls in a batch, nesting of its JSON."""

    bytes: int = 15 * MEBIBYTE
    batch: int = 1000
    depth: int = 64


class Answer(NamedTuple):
    """What goes back, and the subscriptions whose events may follow it."""

    text: str | None
    opened: list[Subscription] | None = None


NOTHING: Final = Answer(None)
Observed = Callable[[str], Callable[[bool], None]]
"""Told of a call's method; what it returns is told whether it failed."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode: Final = json.JSONDecoder(parse_constant=_refuse_constant).decode


class Dispatcher:
    """Finds methods and runs them. A defect in one is logged, and the caller gets -32603."""

    def __init__(self, node: Node, limits: Limits | None = None, observed: Observed | None = None) -> None:
        self._node = node
        self._limits = limits or Limits()
        self._observed = observed

    def handle(self, message: str | bytes, chain: Chain, session: Session | None) -> Answer | Awaitable[Answer]:
        """Answer one message. What takes its time is awaited by the caller."""
        try:
            request = self._parse(message)
        except RpcError as error:
            return Answer(_failure("null", error))
        if not isinstance(request, list):
            return self._single(request, chain, session)
        return self._batch(request, chain, session)

    def _parse(self, message: str | bytes) -> Any:
        if len(message) > self._limits.bytes:
            raise RpcError(REQUEST_TOO_BIG, "Request is too big", f"Exceeded max limit of {self._limits.bytes}")
        try:
            text = message if isinstance(message, str) else message.decode()
            if not self._is_shallow(text):
                raise RpcError(PARSE_ERROR, "Parse error", f"nested deeper than {self._limits.depth}")
            return _decode(text)
        except (ValueError, RecursionError):
            raise RpcError(PARSE_ERROR, "Parse error") from None

    def _is_shallow(self, text: str) -> bool:
        most = self._limits.depth
        if text.count("[") + text.count("{") <= most:
            return True
        depth = 0
        for found in _BRACKETS.finditer(text):
            mark = found.group()
            if mark in "[{":
                depth += 1
                if depth > most:
                    return False
            elif mark in "]}":
                depth -= 1
        return True

    def _single(self, request: Any, chain: Chain, session: Session | None) -> Answer | Awaitable[Answer]:
        if not isinstance(request, dict):
            return Answer(_failure("null", RpcError(INVALID_REQUEST, "Invalid request")))
        name = request.get("method")
        if "id" not in request:
            if isinstance(name, str):
                return NOTHING  # a notification: nobody waits for an answer
            return Answer(_failure("null", RpcError(INVALID_REQUEST, "Invalid request")))
        marker = request["id"]
        if not isinstance(marker, str | int | None) or isinstance(marker, bool):
            return Answer(_failure("null", RpcError(INVALID_REQUEST, "Invalid request")))
        shown = str(marker) if type(marker) is int else compact(marker)
        if not isinstance(name, str) or request.get("jsonrpc") != "2.0":
            return Answer(_failure(shown, RpcError(INVALID_REQUEST, "Invalid request")))
        return self._call(name, request.get("params"), shown, Call(self._node, chain, session))

    def _call(self, name: str, params: Any, shown: str, call: Call) -> Answer | Awaitable[Answer]:
        method = self._node.methods.get(name)
        finished = None if self._observed is None else self._observed(name if method is not None else "unknown")
        try:
            found = self._run(method, params, call)
        except Exception as error:  # noqa: BLE001  # a handler's defect ends nothing but its call (ND-31)
            return self._failed(name, shown, error, call, finished)
        if isinstance(found, CoroutineType):
            return self._later(found, name, shown, call, finished)
        if finished is not None:
            finished(False)
        return self._answer(shown, found, call)

    @staticmethod
    def _run(method: Method | None, params: Any, call: Call) -> Any:
        if method is None or (method.live and call.session is None):
            raise method_not_found()
        return method.run(call, *bind(method.params, params)) if method.params or params else method.run(call)

    async def _later(
        self, found: Awaitable[Any], name: str, shown: str, call: Call, finished: Callable[[bool], None] | None
    ) -> Answer:
        try:
            result = await found
        except Exception as error:  # noqa: BLE001  # as in `_call`
            return self._failed(name, shown, error, call, finished)
        if finished is not None:
            finished(False)
        return self._answer(shown, result, call)

    def _answer(self, shown: str, result: Any, call: Call) -> Answer:
        written = result if type(result) is Written else compact(result)
        text = f'{{"jsonrpc":"2.0","id":{shown},"result":{written}}}'
        if len(text) > self._limits.bytes:
            error = RpcError(ANSWER_TOO_BIG, "Response is too big", f"Exceeded max limit of {self._limits.bytes}")
            return Answer(_failure(shown, error), call.opened)
        return Answer(text, call.opened)

    @staticmethod
    def _failed(name: str, shown: str, error: Exception, call: Call, finished: Callable[[bool], None] | None) -> Answer:
        if finished is not None:
            finished(True)
        if isinstance(error, RpcError):
            return Answer(_failure(shown, error), call.opened)
        if isinstance(error, PubsubError) and error.of_the_machine:  # a forked state that cannot be read now
            return Answer(_failure(shown, RpcError(CLIENT, f"Client error: {error}")), call.opened)
        log.error("%s failed", name, exc_info=error)
        why = str(error) if isinstance(error, PubsubError) else type(error).__name__
        return Answer(_failure(shown, RpcError(INTERNAL_ERROR, "Internal error", why)), call.opened)

    async def _batch(self, requests: list[Any], chain: Chain, session: Session | None) -> Answer:
        if not requests:
            return Answer(_failure("null", RpcError(INVALID_REQUEST, "Invalid request")))
        if len(requests) > self._limits.batch:
            why = f"Exceeded max limit of {self._limits.batch}"
            return Answer(_failure("null", RpcError(BATCH_TOO_LONG, "The batch request was too large", why)))
        texts: list[str] = []
        opened: list[Subscription] = []
        size = 2
        for request in requests:
            found = self._single(request, chain, session)
            answer = found if isinstance(found, Answer) else await found
            opened += answer.opened or ()
            if answer.text is not None:
                texts.append(answer.text)
                size += len(answer.text) + 1
            if size > self._limits.bytes:
                why = f"Exceeded max limit of {self._limits.bytes}"
                error = RpcError(BATCH_ANSWER_TOO_BIG, "The batch response was too large", why)
                return Answer(_failure("null", error), opened)
            await self._node.control.breathe()
        return Answer(f"[{','.join(texts)}]" if texts else None, opened)


def _failure(shown: str, error: RpcError) -> str:
    return f'{{"jsonrpc":"2.0","id":{shown},"error":{compact(error.document())}}}'
