"""The errors of the client."""

from typing import Final

from pubsub_emulator.files.shown import safe
from pubsub_emulator.primitives.errors import PubsubError

METHOD_NOT_FOUND: Final = -32601
"""The code of JSON-RPC for a method that a node does not have."""
_LONGEST_TEXT: Final = 400
"""The maximum length of a node's text in an error, in characters."""


class ClientError(PubsubError):
    """The base class of the client's errors."""


class NodeUnavailable(ClientError):
    """A node that cannot be reached, is too busy, or has lost the connection. A retry may succeed.

    `after` is the number of seconds to wait before a retry, or `None` if the node did not say.
    """

    is_infrastructure = True

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class NodeRefused(ClientError):
    """A JSON-RPC error that a node returned.

    The text of the exception is one line of limited length. `message` and `data` are the node's
    own, unchanged.
    """

    def __init__(self, method: str, code: int, message: str, data: object = None) -> None:
        details = f": {_shortened(data)}" if isinstance(data, str) else ""
        super().__init__(f"{method}: {_shortened(message)} ({code}){details}")
        self.code = code
        self.message = message
        self.data = data


def _shortened(text: str) -> str:
    """Return the beginning of a node's text in one line."""
    text = text.strip()
    return safe(text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…")


class BadAnswer(ClientError):
    """An answer that violates the contract of the method.

    Like `NodeUnavailable`, it is the node's failure and not that of the caller's request.
    """

    is_infrastructure = True


class UnknownBlock(ClientError):
    """A block that the node does not have, or not yet."""
