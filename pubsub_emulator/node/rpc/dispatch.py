"""Turns the text of a JSON-RPC 2.0 request into the text of its answer."""

import json
import logging
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction
from itertools import chain as chained
from types import CoroutineType
from typing import Final, NamedTuple, NoReturn, Protocol

import orjson

from pubsub_emulator.node.chain.block import Chain
from pubsub_emulator.node.rpc import errors
from pubsub_emulator.node.rpc.call import RpcCall
from pubsub_emulator.node.rpc.encode import MOST_ANSWER, JsonText, too_big
from pubsub_emulator.node.rpc.errors import RpcError, method_not_found
from pubsub_emulator.node.rpc.method import Method
from pubsub_emulator.node.rpc.node import RpcNode
from pubsub_emulator.node.rpc.params import bind
from pubsub_emulator.node.rpc.session import RpcSession, RpcSubscription, compact
from pubsub_emulator.primitives.errors import PubsubError

MEBIBYTE: Final = 1_048_576
log: Final = logging.getLogger("pubsub.node")


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of one request."""

    bytes: int = MOST_ANSWER
    """The maximum size of a request, and of its answer."""
    batch: int = 1000
    """The maximum number of calls in a batch."""
    depth: int = 64
    """The maximum nesting of lists and objects."""
    values: int = 131_072
    """The maximum number of values, counted as commas and opening brackets before parsing."""


REQUEST: Final = RequestLimits()
"""The default limits."""


class RpcAnswer(NamedTuple):
    """The text of an answer, and the subscriptions that were opened by the call."""

    text: str | None
    """The text, or `None` if there is no answer (a notification)."""
    opened: list[RpcSubscription] | None = None
    """Subscriptions whose events may be sent once the answer has been sent."""


NOTHING: Final = RpcAnswer(None)
_INVALID: Final = RpcError(errors.INVALID_REQUEST, "Invalid request")


class Later(NamedTuple):
    """An answer that has to be awaited."""

    work: Coroutine[object, None, RpcAnswer]
    heavy: bool
    """Whether it takes long. A connection works on one heavy answer at a time."""


class Observed(Protocol):
    """An observer that measures calls."""

    def began(self) -> float:
        """Return the time at which a call begins, in seconds."""

    def ended(self, method: str, began: float, *, failed: bool) -> None:
        """Record the end of a call. `began` is the result of the method of that name."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode: Final = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _decoded(text: str) -> object:
    """Parse JSON with integers of any size.

    This is slower than orjson, which turns integers beyond 64 bits into floats. Raises `RpcError`.
    """
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        raise RpcError(errors.PARSE_ERROR, "Parse error") from None


def _is_shallow(value: object, most: int) -> bool:
    """Return whether lists and objects are nested at most `most` deep.

    The check goes level by level, so that deep input cannot exceed Python's recursion limit.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        contents = (
            container.values() if isinstance(container, dict) else container for container in level
        )
        items = chained.from_iterable(contents)
        level = [item for item in items if isinstance(item, dict | list)]
    return not level


def _name(request: dict[str, object]) -> str:
    name = request.get("method")
    return name if isinstance(name, str) else ""


class Dispatcher:
    """Calls the methods that requests name.

    An unexpected exception in a method is logged, and the client receives the error -32603 (ND-31).
    """

    def __init__(
        self, node: RpcNode, limits: RequestLimits | None = None, observed: Observed | None = None
    ) -> None:
        self._node = node
        self._limits = limits or REQUEST
        self._observed = observed
        self._exact = frozenset(name for name, method in node.methods.items() if method.unsafe)
        """The methods whose parameters may contain integers beyond 64 bits."""

    def handle(
        self, message: str | bytes, chain: Chain, session: RpcSession | None
    ) -> RpcAnswer | Later:
        """Answer one message: a single request or a batch.

        Returns an `RpcAnswer`, or a `Later` that the caller has to await.
        """
        try:
            request = self._parse(message)
        except RpcError as error:
            return RpcAnswer(_failure("null", error))
        if not isinstance(request, list):
            return self._single(request, chain, session)
        return Later(self._batch(request, chain, session), heavy=True)

    def _parse(self, message: str | bytes) -> object:
        """Check the limits of a message and parse it. Raises `RpcError`.

        Sizes are checked on the text first, because parsed values take many times its memory.
        """
        if len(message) > self._limits.bytes:
            raise errors.request_too_big(self._limits.bytes)
        try:
            text = message if isinstance(message, str) else message.decode()
        except ValueError:
            raise RpcError(errors.PARSE_ERROR, "Parse error") from None
        brackets = text.count("[") + text.count("{")
        if len(text) > self._limits.values and brackets + text.count(",") > self._limits.values:
            raise errors.request_too_big(f"{self._limits.values} values")
        message_value = self._read(text)
        if brackets > self._limits.depth and not _is_shallow(message_value, self._limits.depth):
            raise RpcError(
                errors.PARSE_ERROR, "Parse error", f"nested deeper than {self._limits.depth}"
            )
        return message_value

    def _read(self, text: str) -> object:
        """Parse JSON with orjson, or with Python's slower parser where orjson would be wrong."""
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            # Unlike orjson, Python's parser accepts unpaired surrogates, which are valid JSON.
            return _decoded(text)
        return _decoded(text) if self._needs_exact_integers(value) else value

    def _needs_exact_integers(self, message: object) -> bool:
        """Return whether integers beyond 64 bits in a message must be read exactly.

        orjson reads them as floats. This matters for a request's id, which the answer repeats, and
        for the methods of `--dev`, whose actions may contain such numbers. All other methods refuse
        floats as well as integers beyond 64 bits.
        """
        listed = message if isinstance(message, list) else (message,)
        requests = [request for request in listed if isinstance(request, dict)]
        return any(
            type(request.get("id")) is float or _name(request) in self._exact
            for request in requests
        )

    def _single(
        self, request: object, chain: Chain, session: RpcSession | None
    ) -> RpcAnswer | Later:
        """Answer one request. A notification has no answer."""
        if not isinstance(request, dict):
            return RpcAnswer(_failure("null", _INVALID))
        name = request.get("method")
        request_id = request.get("id")
        if "id" not in request and isinstance(name, str):
            # A notification has no effect here, since nobody would receive a result or an error.
            return NOTHING
        if (
            "id" not in request
            or not isinstance(request_id, str | int | None)
            or isinstance(request_id, bool)
        ):
            return RpcAnswer(_failure("null", _INVALID))
        id_text = str(request_id) if type(request_id) is int else compact(request_id)
        if not isinstance(name, str) or request.get("jsonrpc") != "2.0":
            return RpcAnswer(_failure(id_text, _INVALID))
        return self._call(name, request.get("params"), id_text, RpcCall(self._node, chain, session))

    def _call(self, name: str, params: object, id_text: str, call: RpcCall) -> RpcAnswer | Later:
        """Call a method by its name and return the answer, at once or as a `Later`.

        `id_text` is the JSON text of the request's id.
        """
        method = self._node.methods.get(name)
        if method is None:
            # Metrics count all unknown names as one. Otherwise a client could create any number of
            # metrics.
            name = "unknown"
        began = 0.0 if self._observed is None else self._observed.began()
        try:
            result = self._run(method, params, call)
        except Exception as error:  # noqa: BLE001  # a handler's defect ends nothing but its call (ND-31)
            return self._failed(name, id_text, error, call=call, began=began)
        if type(result) is CoroutineType:
            return Later(
                self._later(result, name, id_text, call=call, began=began),
                heavy=method is not None and method.heavy,
            )
        if self._observed is not None:
            self._observed.ended(name, began, failed=False)
        return self._answer(id_text, result, call)

    @staticmethod
    def _run(method: Method | None, params: object, call: RpcCall) -> object:
        """Call a method and return its result or an awaitable.

        Raises `RpcError` if the method is not available or the parameters are invalid.
        """
        if method is None or (method.live and call.session is None):
            raise method_not_found()
        arguments = bind(method.params, params) if method.params or params else ()
        if method.is_long(arguments) and not iscoroutinefunction(method.run):
            return call.node.control.beside(
                partial(method.run, call, *arguments), executing=method.executing
            )
        return method.run(call, *arguments)

    async def _later(
        self, work: Awaitable[object], name: str, id_text: str, call: RpcCall, began: float
    ) -> RpcAnswer:
        """Await the result of a method and return the answer."""
        try:
            result = await work
        except Exception as error:  # noqa: BLE001  # as in `_call`
            return self._failed(name, id_text, error, call, began)
        if self._observed is not None:
            self._observed.ended(name, began, failed=False)
        return self._answer(id_text, result, call)

    def _answer(self, id_text: str, result: object, call: RpcCall) -> RpcAnswer:
        """Return the answer with a result, or with an error if it is too long."""
        written = result if type(result) is JsonText else compact(result)
        text = f'{{"jsonrpc":"2.0","id":{id_text},"result":{written}}}'
        if len(text) > self._limits.bytes:
            return RpcAnswer(_failure(id_text, too_big(self._limits.bytes)), call.opened)
        return RpcAnswer(text, call.opened)

    def _failed(
        self, name: str, id_text: str, error: Exception, call: RpcCall, began: float
    ) -> RpcAnswer:
        """Return the answer for an exception. Only a defect of the method is logged."""
        if self._observed is not None:
            self._observed.ended(name, began, failed=True)
        if isinstance(error, RpcError):
            return RpcAnswer(_failure(id_text, error), call.opened)
        # The state of a forked chain is read over the network, which can fail at any time.
        if isinstance(error, PubsubError) and error.is_infrastructure:
            return RpcAnswer(
                _failure(id_text, RpcError(errors.CLIENT, f"Client error: {error}")), call.opened
            )
        log.error("%s failed", name, exc_info=error)
        why = str(error) if isinstance(error, PubsubError) else type(error).__name__
        return RpcAnswer(
            _failure(id_text, RpcError(errors.INTERNAL_ERROR, "Internal error", why)), call.opened
        )

    async def _batch(
        self, requests: list[object], chain: Chain, session: RpcSession | None
    ) -> RpcAnswer:
        """Answer the requests of a batch one after another.

        The batch is aborted as soon as the answers exceed the size limit.
        """
        if not requests:
            return RpcAnswer(_failure("null", _INVALID))
        if len(requests) > self._limits.batch:
            why = f"Exceeded max limit of {self._limits.batch}"
            return RpcAnswer(
                _failure(
                    "null", RpcError(errors.BATCH_TOO_LONG, "The batch request was too large", why)
                )
            )
        texts: list[str] = []
        opened: list[RpcSubscription] = []
        size = 2
        for request in requests:
            result = self._single(request, chain, session)
            answer = result if isinstance(result, RpcAnswer) else await result.work
            opened += answer.opened or ()
            if answer.text is not None:
                texts.append(answer.text)
                size += len(answer.text) + 1
            if size > self._limits.bytes:
                why = f"Exceeded max limit of {self._limits.bytes}"
                error = RpcError(
                    errors.BATCH_ANSWER_TOO_BIG, "The batch response was too large", why
                )
                return RpcAnswer(_failure("null", error), opened)
            await self._node.control.breathe()
        return RpcAnswer(f"[{','.join(texts)}]" if texts else None, opened)


def _failure(id_text: str, error: RpcError) -> str:
    return f'{{"jsonrpc":"2.0","id":{id_text},"error":{compact(error.document())}}}'
