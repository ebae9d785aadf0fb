"""Errors of databases, for every room that keeps rows in one."""

from pubsub_emulator.primitives.errors import PubsubError


class StoreError(PubsubError):
    """A database refused or is not what was expected."""


class StoreUnavailable(StoreError):
    """A database does not answer now; what was committed is safe, and asking again may succeed."""

    is_infrastructure = True


class StoreConflict(StoreUnavailable):
    """A transaction met another one; none of it was done, and it may be run again at once."""
