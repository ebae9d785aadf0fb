"""Errors of JSON-RPC calls, with the codes, messages and data of a Substrate node."""

from typing import Final

from pubsub_emulator.primitives.errors import PubsubError

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
TOO_MANY_SUBSCRIPTIONS: Final = -32006
REQUEST_TOO_BIG: Final = -32007
ANSWER_TOO_BIG: Final = -32008
BATCH_TOO_LONG: Final = -32010
BATCH_ANSWER_TOO_BIG: Final = -32011
DEVELOPMENT: Final = 1
"""The code of a refused request to one of this project's own methods."""
CLIENT: Final = 4003
"""The code of an unknown block, a failed runtime call, and other errors of the node's client."""


class RpcError(PubsubError):
    """A failed call. Code, message and data are sent to the client."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def document(self) -> dict[str, object]:
        """Return the `error` member of the answer."""
        document: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            document["data"] = self.data
        return document


def invalid_params(why: str) -> RpcError:
    """Return the error for parameters of the wrong type or number."""
    return RpcError(INVALID_PARAMS, "Invalid params", why)


def request_too_big(limit: object) -> RpcError:
    """Return the error for a request that exceeds a limit."""
    return RpcError(REQUEST_TOO_BIG, "Request is too big", f"Exceeded max limit of {limit}")


def method_not_found() -> RpcError:
    """Return the error for a method that is unknown or cannot be called here."""
    return RpcError(METHOD_NOT_FOUND, "Method not found")


def execution_failed(why: str) -> RpcError:
    """Return the error for a runtime call that failed."""
    return RpcError(CLIENT, f"Client error: Execution failed: {why}")


def refused(why: object) -> RpcError:
    """Return the error of a `dev_*` or `pubsub_*` method that could not do what was requested."""
    return RpcError(DEVELOPMENT, str(why))
