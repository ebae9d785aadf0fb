"""Why an operation is rejected, and errors of PRISM's own."""

from enum import IntEnum

from pubsub_emulator.events.errors import EventsError


class Reason(IntEnum):
    """Why an operation is rejected (PR-21, PR-25); numbers as in `prism.proto`."""

    UNSUPPORTED_OPERATION = 1
    MALFORMED_OPERATION = 2
    UNKNOWN_DID = 3
    UNKNOWN_BATCH = 4
    UNKNOWN_KEY = 5
    INVALID_SIGNATURE = 6
    DUPLICATE_OPERATION = 7
    WRONG_KEY_USAGE = 8
    KEY_REVOKED = 9
    WRONG_PREVIOUS_HASH = 10
    KEY_EXISTS = 11
    KEY_NOT_ACTIVE = 12
    SERVICE_EXISTS = 13
    SERVICE_NOT_ACTIVE = 14
    CONTEXT_EMPTY = 15
    LAST_MASTER_KEY = 16
    TOO_MANY_KEYS = 17
    TOO_MANY_SERVICES = 18
    BATCH_EXISTS = 19
    BATCH_ALREADY_REVOKED = 20


class PrismError(EventsError):
    """Root of what PRISM refuses."""


class Undecodable(PrismError):
    """Bytes that are not the message they should be (PR-20)."""


class Rejected(PrismError):
    """A check that failed; the operation changes nothing."""

    def __init__(self, reason: Reason, words: str = "") -> None:
        super().__init__(f"{reason.name}: {words}" if words else reason.name)
        self.reason = reason


class BadRequest(PrismError):
    """A request that is not one; the message names the field."""


class NothingAnchors(PrismError):
    """A node whose chain it only reads was asked to anchor operations."""


class UnknownOperation(PrismError):
    """No operation of this id is known here."""


class AlreadyThere(PrismError):
    """An operation that was scheduled here, or applied, before."""


class NotCancellable(PrismError):
    """An operation that cannot be cancelled, or not with this token."""
