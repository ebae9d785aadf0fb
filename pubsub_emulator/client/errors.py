"""The errors of the client."""

from typing import Final

from pubsub_emulator.files.shown import safe
from pubsub_emulator.primitives.errors import PubsubError

METHOD_NOT_FOUND: Final = -32601
"""The code of JSON-RPC for a method that a node does not have."""
_MOST_SAID: Final = 400
"""The maximum length of a node's text in an error, in characters."""


class ClientError(PubsubError):
    """The base class of the client's errors."""


class NodeUnavailable(ClientError):
    """A node that cannot be reached, is too busy, or has lost the connection. A retry may succeed.

    `after` is the number of seconds to wait before a retry, if the node named one.
    """

    is_infrastructure = True

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class NodeRefused(ClientError):
    """A JSON-RPC error that the node answered with.

    The text of the error is one line of limited length, whatever the node says. `message` and
    `data` are as the node says them.
    """

    def __init__(self, method: str, code: int, message: str, data: object = None) -> None:
        more = f": {_said(data)}" if isinstance(data, str) else ""
        super().__init__(f"{method}: {_said(message)} ({code}){more}")
        self.code = code
        self.message = message
        self.data = data


def _said(text: str) -> str:
    """Return the beginning of a node's text in one line."""
    text = text.strip()
    return safe(text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}…")


class BadAnswer(ClientError):
    """An answer that violates the contract of the method.

    Like `NodeUnavailable`, it is a failure outside of the caller's request.
    """

    is_infrastructure = True


class UnknownBlock(ClientError):
    """A block that the node does not have, or not yet."""
