"""What talking to a node may fail with; each is one line."""

from pubsub_emulator.primitives.errors import PubsubError


class ClientError(PubsubError):
    """Root of the client's failures."""


class NodeUnavailable(ClientError):
    """No answer: the node is not there, or the connection was lost. Asking again may succeed."""

    of_the_machine = True


class NodeRefused(ClientError):
    """The node answered with a JSON-RPC error."""

    def __init__(self, method: str, code: int, message: str, data: object = None) -> None:
        more = f": {data}" if isinstance(data, str) else ""
        super().__init__(f"{method}: {message} ({code}){more}")
        self.code = code
        self.data = data


class BadAnswer(ClientError):
    """The node's answer is not what the method promises."""


class UnknownBlock(ClientError):
    """The node does not have a block, or not yet."""
