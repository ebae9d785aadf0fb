"""Errors of fetching; each is one line that names source and block."""

from pubsub_emulator.primitives.errors import PubsubError


class FetchError(PubsubError):
    """A source that cannot be read, or says what cannot be. What was committed before stays."""


class SourceLost(FetchError):
    """No node answers any more: the same command goes on when one does."""

    is_infrastructure = True


class WrongBlock(FetchError):
    """A block that is not what its hash, its header or its neighbours say."""
