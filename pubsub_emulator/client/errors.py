"""The errors of the client."""

from pubsub_emulator.primitives.errors import PubsubError


class ClientError(PubsubError):
    """Root of the client's failures."""


class NodeUnavailable(ClientError):
    """No answer: the node cannot be reached, is too busy, or the connection was lost. Another try may succeed.

    `after` is how many seconds to wait before that, where the node said so.
    """

    is_infrastructure = True

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class NodeRefused(ClientError):
    """The node answered with a JSON-RPC error."""

    def __init__(self, method: str, code: int, message: str, data: object = None) -> None:
        more = f": {data}" if isinstance(data, str) else ""
        super().__init__(f"{method}: {message} ({code}){more}")
        self.code = code
        self.message = message
        self.data = data


class BadAnswer(ClientError):
    """The node's answer violates the contract of the method."""

    is_infrastructure = True


class UnknownBlock(ClientError):
    """The node does not have a block, or not yet."""
