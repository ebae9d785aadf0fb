"""Errors of fetching. Each message is one line that names the source and the block."""

from pubsub_emulator.primitives.errors import PubsubError


class FetchError(PubsubError):
    """A source cannot be read or contradicts itself. Segments that were committed before remain."""


class SourceLost(FetchError):
    """No node answers any more. The same command continues once a node answers."""

    is_infrastructure = True


class WrongBlock(FetchError):
    """A block that does not match its hash, its header or its neighbours."""
