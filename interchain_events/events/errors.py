"""The errors of logs, filters and subscriptions.

Each message is one line that names the place. An operation that raises an error has no effect.
"""

from pubsub_emulator.primitives.errors import PubsubError


class EventsError(PubsubError):
    """The base of the expected errors of logs, filters and subscriptions."""


class NotTheNextBlock(EventsError):
    """Raised if a leading block does not follow the last one of the log (EV-2)."""


class AnotherChain(EventsError):
    """Raised if a source or a database belongs to another network than the log."""


class CursorAbandoned(EventsError):
    """Raised if a cursor points into a branch that was taken back (EV-3).

    `common` is the last `seq` that both branches have. The client can resume after it.
    """

    def __init__(self, common: int, epoch: int) -> None:
        super().__init__(
            f"events after seq {common} were reverted; continue from there (epoch {epoch})"
        )
        self.common = common
        self.epoch = epoch


class BadCursor(EventsError):
    """Raised if a cursor is damaged or belongs to another log."""


class BadFilter(EventsError):
    """Raised if a filter cannot be evaluated or exceeds a limit. The message names the limit."""


class UnknownToken(EventsError):
    """Raised if a token has no subscription, or its subscription was cancelled."""


class LimitReached(EventsError):
    """Raised if one more stream or subscription would exceed a limit.

    The message names the limit.
    """


class SourceError(EventsError):
    """Raised if the answer of a source cannot come from a chain."""
