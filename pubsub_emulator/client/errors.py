"""The errors of the client."""

from pubsub_emulator.primitives.errors import PubsubError


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
    """A JSON-RPC error that the node answered with."""

    def __init__(self, method: str, code: int, message: str, data: object = None) -> None:
        more = f": {data}" if isinstance(data, str) else ""
        super().__init__(f"{method}: {message} ({code}){more}")
        self.code = code
        self.message = message
        self.data = data


class BadAnswer(ClientError):
    """An answer that violates the contract of the method.

    Like `NodeUnavailable`, it is a failure outside of the caller's request.
    """

    is_infrastructure = True


class UnknownBlock(ClientError):
    """A block that the node does not have, or not yet."""
