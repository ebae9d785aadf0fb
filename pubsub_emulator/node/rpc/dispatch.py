"""From the text of a request to the text of its answer (JSON-RPC 2.0, single and batch)."""

import json
import logging
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction
from types import CoroutineType
from typing import Final, NamedTuple, NoReturn, Protocol

import orjson

from pubsub_emulator.node.chain.block import Chain
from pubsub_emulator.node.rpc import errors
from pubsub_emulator.node.rpc.call import Call
from pubsub_emulator.node.rpc.encode import MOST_ANSWER, Written, too_big
from pubsub_emulator.node.rpc.errors import RpcError, method_not_found
from pubsub_emulator.node.rpc.method import Method
from pubsub_emulator.node.rpc.node import Node
from pubsub_emulator.node.rpc.params import bind
from pubsub_emulator.node.rpc.session import RpcSubscription, Session, compact
from pubsub_emulator.primitives.errors import PubsubError

MEBIBYTE: Final = 1_048_576

log: Final = logging.getLogger("pubsub.node")


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of a request: bytes, calls in a batch, nesting, and values, counted as commas and opening brackets."""

    bytes: int = MOST_ANSWER
    batch: int = 1000
    depth: int = 64
    values: int = 131_072


REQUEST: Final = RequestLimits()
"""The limits of a node that was given none."""


class Answer(NamedTuple):
    """An answer, and the subscriptions whose events may follow it."""

    text: str | None
    opened: list[RpcSubscription] | None = None


NOTHING: Final = Answer(None)
_INVALID: Final = RpcError(errors.INVALID_REQUEST, "Invalid request")


class Later(NamedTuple):
    """An answer that takes its time; `heavy` ones of a connection are worked on one after another."""

    work: Coroutine[object, None, Answer]
    heavy: bool


class Observed(Protocol):
    """An observer of calls."""

    def began(self) -> float:
        """A call begins: a time in seconds."""

    def ended(self, method: str, began: float, *, failed: bool) -> None:
        """The call ended."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode: Final = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _decoded(text: str) -> object:
    """Numbers of any size as they are. Raises `RpcError`."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        raise RpcError(errors.PARSE_ERROR, "Parse error") from None


def _is_shallow(value: object, most: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for values in inner for each in values if isinstance(each, dict | list)]
    return not level


def _name(request: dict[str, object]) -> str:
    name = request.get("method")
    return name if isinstance(name, str) else ""


class Dispatcher:
    """Finds methods and runs them. A defect in one is logged, and the caller gets -32603."""

    def __init__(self, node: Node, limits: RequestLimits | None = None, observed: Observed | None = None) -> None:
        self._node = node
        self._limits = limits or REQUEST
        self._observed = observed
        self._exact = frozenset(name for name, method in node.methods.items() if method.unsafe)

    def handle(self, message: str | bytes, chain: Chain, session: Session | None) -> Answer | Later:
        """Answer one message. What takes its time is awaited by the caller."""
        try:
            request = self._parse(message)
        except RpcError as error:
            return Answer(_failure("null", error))
        if not isinstance(request, list):
            return self._single(request, chain, session)
        return Later(self._batch(request, chain, session), heavy=True)

    def _parse(self, message: str | bytes) -> object:
        if len(message) > self._limits.bytes:
            raise errors.request_too_big(self._limits.bytes)
        try:
            text = message if isinstance(message, str) else message.decode()
        except ValueError:
            raise RpcError(errors.PARSE_ERROR, "Parse error") from None
        brackets = text.count("[") + text.count("{")
        if len(text) > self._limits.values and brackets + text.count(",") > self._limits.values:
            raise errors.request_too_big(f"{self._limits.values} values")
        found = self._read(text)
        if brackets > self._limits.depth and not _is_shallow(found, self._limits.depth):
            raise RpcError(errors.PARSE_ERROR, "Parse error", f"nested deeper than {self._limits.depth}")
        return found

    def _read(self, text: str) -> object:
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError:
            return _decoded(text)  # halves of surrogate pairs are JSON, too
        return _decoded(text) if self._is_exact(found) else found

    def _is_exact(self, found: object) -> bool:
        """Whether a number beyond 64 bits, which is read as a float, may matter: elsewhere both are refused alike."""
        listed = found if isinstance(found, list) else (found,)
        objects = (each for each in listed if isinstance(each, dict))
        return any(type(each.get("id")) is float or _name(each) in self._exact for each in objects)

    def _single(self, request: object, chain: Chain, session: Session | None) -> Answer | Later:
        if not isinstance(request, dict):
            return Answer(_failure("null", _INVALID))
        name, marker = request.get("method"), request.get("id")
        if "id" not in request and isinstance(name, str):
            return NOTHING  # a notification: nobody waits for an answer
        if "id" not in request or not isinstance(marker, str | int | None) or isinstance(marker, bool):
            return Answer(_failure("null", _INVALID))
        shown = str(marker) if type(marker) is int else compact(marker)
        if not isinstance(name, str) or request.get("jsonrpc") != "2.0":
            return Answer(_failure(shown, _INVALID))
        return self._call(name, request.get("params"), shown, Call(self._node, chain, session))

    def _call(self, name: str, params: object, shown: str, call: Call) -> Answer | Later:
        method = self._node.methods.get(name)
        if method is None:
            name = "unknown"
        began = 0.0 if self._observed is None else self._observed.began()
        try:
            found = self._run(method, params, call)
        except Exception as error:  # noqa: BLE001  # a handler's defect ends nothing but its call (ND-31)
            return self._failed(name, shown, error, call, began)
        if type(found) is CoroutineType:
            return Later(self._later(found, name, shown, call, began), method is not None and method.heavy)
        if self._observed is not None:
            self._observed.ended(name, began, failed=False)
        return self._answer(shown, found, call)

    @staticmethod
    def _run(method: Method | None, params: object, call: Call) -> object:
        if method is None or (method.live and call.session is None):
            raise method_not_found()
        arguments = bind(method.params, params) if method.params or params else ()
        if method.is_long(arguments) and not iscoroutinefunction(method.run):
            return call.node.control.beside(partial(method.run, call, *arguments), executing=method.executing)
        return method.run(call, *arguments)

    async def _later(self, found: Awaitable[object], name: str, shown: str, call: Call, began: float) -> Answer:
        try:
            result = await found
        except Exception as error:  # noqa: BLE001  # as in `_call`
            return self._failed(name, shown, error, call, began)
        if self._observed is not None:
            self._observed.ended(name, began, failed=False)
        return self._answer(shown, result, call)

    def _answer(self, shown: str, result: object, call: Call) -> Answer:
        written = result if type(result) is Written else compact(result)
        text = f'{{"jsonrpc":"2.0","id":{shown},"result":{written}}}'
        if len(text) > self._limits.bytes:
            return Answer(_failure(shown, too_big(self._limits.bytes)), call.opened)
        return Answer(text, call.opened)

    def _failed(self, name: str, shown: str, error: Exception, call: Call, began: float) -> Answer:
        if self._observed is not None:
            self._observed.ended(name, began, failed=True)
        if isinstance(error, RpcError):
            return Answer(_failure(shown, error), call.opened)
        if isinstance(error, PubsubError) and error.is_infrastructure:  # a forked state that cannot be read now
            return Answer(_failure(shown, RpcError(errors.CLIENT, f"Client error: {error}")), call.opened)
        log.error("%s failed", name, exc_info=error)
        why = str(error) if isinstance(error, PubsubError) else type(error).__name__
        return Answer(_failure(shown, RpcError(errors.INTERNAL_ERROR, "Internal error", why)), call.opened)

    async def _batch(self, requests: list[object], chain: Chain, session: Session | None) -> Answer:
        if not requests:
            return Answer(_failure("null", _INVALID))
        if len(requests) > self._limits.batch:
            why = f"Exceeded max limit of {self._limits.batch}"
            return Answer(_failure("null", RpcError(errors.BATCH_TOO_LONG, "The batch request was too large", why)))
        texts: list[str] = []
        opened: list[RpcSubscription] = []
        size = 2
        for request in requests:
            found = self._single(request, chain, session)
            answer = found if isinstance(found, Answer) else await found.work
            opened += answer.opened or ()
            if answer.text is not None:
                texts.append(answer.text)
                size += len(answer.text) + 1
            if size > self._limits.bytes:
                why = f"Exceeded max limit of {self._limits.bytes}"
                error = RpcError(errors.BATCH_ANSWER_TOO_BIG, "The batch response was too large", why)
                return Answer(_failure("null", error), opened)
            await self._node.control.breathe()
        return Answer(f"[{','.join(texts)}]" if texts else None, opened)


def _failure(shown: str, error: RpcError) -> str:
    return f'{{"jsonrpc":"2.0","id":{shown},"error":{compact(error.document())}}}'
