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
    """Raised if tables have disappeared, for example because the database was created anew."""


class StoreReplaced(StoreUnavailable):
    """Raised once after a database's file was removed or replaced by another one.

    Later calls use the file that is then at the path.
    """


class StoreConflict(StoreUnavailable):
    """Raised if a transaction conflicts with another one.

    It has no effect and may be run again at once.
    """
