"""The reasons for which operations are rejected, and PRISM's own errors."""

from enum import IntEnum

from interchain_events.events.errors import EventsError


class Reason(IntEnum):
    """The reason for which an operation is rejected (PR-21, PR-25).

    Numbers are those of `prism.proto`.
    """

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
    UNKNOWN_STORAGE_ENTRY = 21
    STORAGE_ENTRY_NOT_ACTIVE = 22


class PrismError(EventsError):
    """The base of PRISM's own errors."""


class Undecodable(PrismError):
    """Raised if bytes are not the message that they should be (PR-20)."""


class Rejected(PrismError):
    """Raised if an operation fails a check. The operation then has no effect."""

    def __init__(self, reason: Reason, words: str = "") -> None:
        super().__init__(f"{reason.name}: {words}" if words else reason.name)
        self.reason = reason


class BadRequest(PrismError):
    """Raised if a request is not valid. The message names the field."""


class NothingAnchors(PrismError):
    """Raised if a node that only reads its chain is asked to anchor operations."""


class UnknownOperation(PrismError):
    """Raised if no operation with this id is known here."""


class AlreadyThere(PrismError):
    """Raised if an operation has already been scheduled here or applied."""


class NotCancellable(PrismError):
    """Raised if an operation cannot be cancelled any more, or not with this token."""
