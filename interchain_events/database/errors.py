"""The errors of databases, for all rooms that store rows."""

from pubsub_emulator.primitives.errors import PubsubError


class StoreError(PubsubError):
    """Raised if a database refuses an operation or is not what was expected."""


class StoreUnavailable(StoreError):
    """Raised if a database does not answer now.

    Committed data is safe, and the same call may succeed later.
    """

    is_infrastructure = True


class TablesMissing(StoreUnavailable):
    """Raised if tables that were there are gone, as in a database that was made anew."""


class StoreReplaced(StoreUnavailable):
    """Raised once if a database's file was removed or replaced by another one.

    Later calls use the file that is there then.
    """


class StoreConflict(StoreUnavailable):
    """Raised if a transaction conflicted with another one.

    It has changed nothing and may be run again at once.
    """
