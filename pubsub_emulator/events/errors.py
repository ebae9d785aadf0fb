"""What the event plane refuses: each error is one line that names the place, and changes nothing."""

from pubsub_emulator.primitives.errors import PubsubError


class EventPlaneError(PubsubError):
    """Root of the event plane's expected failures."""


class NotTheNextBlock(EventPlaneError):
    """A leading block that does not follow the last one of the log (EV-2)."""


class AnotherChain(EventPlaneError):
    """A source or a place that belongs to another network than the log."""


class CursorAbandoned(EventPlaneError):
    """A cursor points into a branch that was taken back (EV-3). `common` is the last `seq` that both branches have."""

    def __init__(self, common: int, epoch: int) -> None:
        super().__init__(f"events after seq {common} were taken back; go on from there (epoch {epoch})")
        self.common = common
        self.epoch = epoch


class BadCursor(EventPlaneError):
    """A cursor that is damaged, or of another log."""


class BadFilter(EventPlaneError):
    """A filter that cannot be evaluated, or is over a limit; the message names the limit."""


class UnknownToken(EventPlaneError):
    """No subscription has this token, or it was cancelled."""


class LimitReached(EventPlaneError):
    """One more stream or subscription would exceed a limit; the message names it."""


class StoreError(EventPlaneError):
    """A database refused or is not what was expected."""


class StoreUnavailable(StoreError):
    """A database does not answer now; what was committed is safe, and asking again may succeed."""

    is_infrastructure = True


class SourceError(EventPlaneError):
    """A source gave something that is no chain's answer."""
