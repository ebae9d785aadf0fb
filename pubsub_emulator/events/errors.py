"""Errors of logs, filters and subscriptions: each is one line that names the place, and changes nothing."""

from pubsub_emulator.primitives.errors import PubsubError


class EventsError(PubsubError):
    """Root of the expected failures of logs, filters and subscriptions."""


class NotTheNextBlock(EventsError):
    """A leading block that does not follow the last one of the log (EV-2)."""


class AnotherChain(EventsError):
    """A source or a place that belongs to another network than the log."""


class CursorAbandoned(EventsError):
    """A cursor points into a branch that was taken back (EV-3). `common` is the last `seq` that both branches have."""

    def __init__(self, common: int, epoch: int) -> None:
        super().__init__(f"events after seq {common} were taken back; go on from there (epoch {epoch})")
        self.common = common
        self.epoch = epoch


class BadCursor(EventsError):
    """A cursor that is damaged, or of another log."""


class BadFilter(EventsError):
    """A filter that cannot be evaluated, or is over a limit; the message names the limit."""


class UnknownToken(EventsError):
    """No subscription has this token, or it was cancelled."""


class LimitReached(EventsError):
    """One more stream or subscription would exceed a limit; the message names it."""


class SourceError(EventsError):
    """A source gave something that is no chain's answer."""
