"""The tables and their migrations (PR-30 to PR-35).

`prism_meta` has one row: the log and the events from which the tables are made, the last processed
block, and the position in the log.
"""

from collections.abc import Callable
from typing import Final

from interchain_events.database.database import Database, Dialect, Session, migrate
from interchain_events.database.errors import StoreError
from interchain_events.prism.core.errors import Undecodable
from interchain_events.prism.core.filters import FilterType
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.messages import SignedAtalaOperation, decode
from interchain_events.prism.core.process import OperationType, Status, examine, read_object
from interchain_events.prism.tables.position import position, rewind

_PAGE: Final = 500
"""The number of rows that a migration reads at once."""
COMPONENT: Final = "prism"
"""The name of the tables in `migrations`."""


def _is_one_of(column: str, *names: str) -> str:
    """Return the condition that a column has one of the values.

    It does not use `IN`, because SQLite would build a table of the list for each checked row.
    """
    tests = (f"{column} = '{name}'" for name in names)
    return f"({' OR '.join(tests)})"


def _statements(text: str) -> tuple[str, ...]:
    """Return the statements of a text, each on one line."""
    return tuple(" ".join(statement.split()) for statement in text.split(";"))


BLOB, BOOL, INT, TEXT = "{BLOB}", "{BOOL}", "{INT}", "{TEXT}"
_IS_STATUS: Final = _is_one_of("atala_operation_status", *Status)
_IS_PROCESSED: Final = _is_one_of("atala_operation_status", Status.APPLIED, Status.REJECTED)
_IS_SCHEDULED: Final = _is_one_of("o.atala_operation_status", Status.RECEIVED, Status.CANCELLED)
_FIRST_TYPES: Final = (
    "UNKNOWN",
    "CREATE_DID",
    "UPDATE_DID",
    "ISSUE_CREDENTIAL_BATCH",
    "REVOKE_CREDENTIALS",
    "DEACTIVATE_DID",
)
"""The types of operations before migration 5."""
_FIRST_FILTERS: Final = tuple(kind.name for kind in FilterType if kind <= 7)
"""The types of filters before migration 5."""
_IS_FIRST_TYPE: Final = _is_one_of("atala_operation_type", *_FIRST_TYPES)
_IS_FIRST_FILTER: Final = _is_one_of("filter_type", *_FIRST_FILTERS)
_IS_TYPE: Final = _is_one_of("atala_operation_type", *OperationType.__members__)
_IS_FILTER: Final = _is_one_of("filter_type", *FilterType.__members__)
_IS_OUTCOME: Final = _is_one_of("statuses", Status.APPLIED, Status.REJECTED)

FIRST: Final = _statements(f"""
    CREATE TABLE atala_objects
        (atala_object_id {BLOB} PRIMARY KEY CHECK (length(atala_object_id) = 32),
        object_content {BLOB} NOT NULL,
        atala_object_status {TEXT} NOT NULL
            CHECK (atala_object_status IN ('PENDING', 'PROCESSED')));
    CREATE TABLE atala_operations
        (signed_atala_operation_id {BLOB} NOT NULL CHECK (length(signed_atala_operation_id) = 32),
        atala_operation_status {TEXT} NOT NULL CHECK {_IS_STATUS},
        atala_object_id {BLOB} NOT NULL CHECK (length(atala_object_id) = 32), status_details {TEXT},
        PRIMARY KEY (signed_atala_operation_id, atala_operation_status))
""")
"""The statements of migration 1."""

SECOND: Final = _statements(f"""
    ALTER TABLE atala_operations RENAME TO old_operations;
    ALTER TABLE atala_objects ADD COLUMN block_number {INT};
    CREATE TABLE atala_operations
        (signed_atala_operation_id {BLOB} NOT NULL CHECK (length(signed_atala_operation_id) = 32),
        atala_operation_status {TEXT} NOT NULL CHECK {_IS_STATUS},
        atala_object_id {BLOB} NOT NULL CHECK (length(atala_object_id) = 32),
        status_details {TEXT},
        atala_operation_did_suffix {TEXT},
        atala_operation_type {TEXT} NOT NULL CHECK {_IS_FIRST_TYPE},
        atala_operation_content {BLOB} NOT NULL,
        atala_operation_seq_no {INT} UNIQUE,
        created_did_suffix {TEXT},
        operation_hash {BLOB} CHECK (length(operation_hash) = 32),
        credential_batch_id {TEXT},
        block_number {INT}, block_hash {BLOB}, block_time {INT},
        object_index {INT}, operation_index {INT},
        cancel_token {BLOB}, pending_since {INT},
        PRIMARY KEY (signed_atala_operation_id, atala_operation_status),
        CHECK ({_IS_PROCESSED} = (atala_operation_seq_no IS NOT NULL)),
        CHECK ((atala_operation_status = 'REJECTED') = (status_details IS NOT NULL)));
    CREATE INDEX operations_object ON atala_operations (atala_object_id);
    CREATE INDEX operations_did
        ON atala_operations (atala_operation_did_suffix, atala_operation_seq_no)
        WHERE atala_operation_did_suffix IS NOT NULL;
    CREATE INDEX operations_type ON atala_operations (atala_operation_type, atala_operation_seq_no);
    CREATE INDEX operations_created ON atala_operations (created_did_suffix, atala_operation_seq_no)
        WHERE created_did_suffix IS NOT NULL;
    CREATE INDEX operations_batch ON atala_operations (credential_batch_id, atala_operation_seq_no)
        WHERE credential_batch_id IS NOT NULL;
    CREATE INDEX operations_hash ON atala_operations (operation_hash);
    CREATE UNIQUE INDEX operations_effect ON atala_operations (operation_hash)
        WHERE atala_operation_status = 'APPLIED';
    CREATE TABLE revoked_credentials (credential_hash {BLOB} NOT NULL, seq_no {INT} NOT NULL,
        PRIMARY KEY (credential_hash, seq_no));
    CREATE INDEX revoked_seq_no ON revoked_credentials (seq_no);
    CREATE TABLE epochs (epoch {INT} PRIMARY KEY, last_seq_no {INT} NOT NULL);
    CREATE TABLE subscriptions
        (subscription_token {BLOB} PRIMARY KEY CHECK (length(subscription_token) = 32),
        after_operation {BLOB} CHECK (length(after_operation) = 32),
        operations_batching_allowed {BOOL} NOT NULL,
        after_seq_no {INT} NOT NULL, epoch {INT} NOT NULL);
    CREATE TABLE subscription_filters
        (subscription_token {BLOB} NOT NULL REFERENCES subscriptions ON DELETE CASCADE,
        filter_no {INT} NOT NULL,
        filter_type {TEXT} NOT NULL CHECK {_IS_FIRST_FILTER},
        did_suffix {TEXT}, statuses {TEXT} CHECK {_IS_OUTCOME},
        revoked_credential_hash {BLOB} CHECK (length(revoked_credential_hash) = 32),
        credential_batch_id {TEXT},
        PRIMARY KEY (subscription_token, filter_no));
    CREATE INDEX filters_did ON subscription_filters (filter_type, did_suffix);
    CREATE INDEX filters_credential ON subscription_filters (revoked_credential_hash);
    CREATE TABLE prism_meta
        (one INTEGER PRIMARY KEY CHECK (one = 1), id {BLOB} NOT NULL, source {TEXT} NOT NULL,
        log_id {BLOB} NOT NULL, epoch {INT} NOT NULL, seq_no {INT} NOT NULL,
        log_epoch {INT} NOT NULL,
        log_seq {INT} NOT NULL, block_number {INT});
    CREATE TABLE processed_blocks (block_number {INT} PRIMARY KEY, log_seq {INT} NOT NULL);
    CREATE INDEX blocks_log_seq ON processed_blocks (log_seq)
""")
"""The statements of migration 2, before scheduled operations are carried over. Processed ones are
processed again from the log."""

THIRD: Final = _statements("""
    DROP INDEX operations_hash;
    CREATE INDEX operations_hash ON atala_operations (operation_hash)
        WHERE atala_operation_status <> 'APPLIED'
""")
"""The statements of migration 3. The hash of an applied operation is then in one index instead of
two."""

FOURTH: Final = (
    (
        "CREATE INDEX operations_received ON atala_operations (atala_object_id) WHERE"
        " atala_operation_status = 'RECEIVED'"
    ),
)
"""The statement of migration 4. The index finds the operations that wait to be anchored, which is
necessary at each block."""

FIFTH: Final = _statements(f"""
    ALTER TABLE atala_operations RENAME TO old_operations;
    CREATE TABLE atala_operations
        (signed_atala_operation_id {BLOB} NOT NULL CHECK (length(signed_atala_operation_id) = 32),
        atala_operation_status {TEXT} NOT NULL CHECK {_IS_STATUS},
        atala_object_id {BLOB} NOT NULL CHECK (length(atala_object_id) = 32),
        status_details {TEXT},
        atala_operation_did_suffix {TEXT},
        atala_operation_type {TEXT} NOT NULL CHECK {_IS_TYPE},
        atala_operation_content {BLOB} NOT NULL,
        atala_operation_seq_no {INT} UNIQUE,
        created_did_suffix {TEXT},
        operation_hash {BLOB} CHECK (length(operation_hash) = 32),
        credential_batch_id {TEXT},
        block_number {INT}, block_hash {BLOB}, block_time {INT},
        object_index {INT}, operation_index {INT},
        cancel_token {BLOB}, pending_since {INT},
        storage_entry_id {TEXT},
        PRIMARY KEY (signed_atala_operation_id, atala_operation_status),
        CHECK ({_IS_PROCESSED} = (atala_operation_seq_no IS NOT NULL)),
        CHECK ((atala_operation_status = 'REJECTED') = (status_details IS NOT NULL)));
    INSERT INTO atala_operations SELECT o.*, NULL FROM old_operations AS o;
    DROP TABLE old_operations;
    CREATE INDEX operations_object ON atala_operations (atala_object_id);
    CREATE INDEX operations_did
        ON atala_operations (atala_operation_did_suffix, atala_operation_seq_no)
        WHERE atala_operation_did_suffix IS NOT NULL;
    CREATE INDEX operations_type ON atala_operations (atala_operation_type, atala_operation_seq_no);
    CREATE INDEX operations_created ON atala_operations (created_did_suffix, atala_operation_seq_no)
        WHERE created_did_suffix IS NOT NULL;
    CREATE INDEX operations_batch ON atala_operations (credential_batch_id, atala_operation_seq_no)
        WHERE credential_batch_id IS NOT NULL;
    CREATE INDEX operations_hash ON atala_operations (operation_hash)
        WHERE atala_operation_status <> 'APPLIED';
    CREATE UNIQUE INDEX operations_effect ON atala_operations (operation_hash)
        WHERE atala_operation_status = 'APPLIED';
    CREATE INDEX operations_received ON atala_operations (atala_object_id)
        WHERE atala_operation_status = 'RECEIVED';
    CREATE INDEX operations_entry ON atala_operations (storage_entry_id, atala_operation_seq_no)
        WHERE storage_entry_id IS NOT NULL;
    ALTER TABLE subscription_filters RENAME TO old_filters;
    CREATE TABLE subscription_filters
        (subscription_token {BLOB} NOT NULL REFERENCES subscriptions ON DELETE CASCADE,
        filter_no {INT} NOT NULL,
        filter_type {TEXT} NOT NULL CHECK {_IS_FILTER},
        did_suffix {TEXT}, statuses {TEXT} CHECK {_IS_OUTCOME},
        revoked_credential_hash {BLOB} CHECK (length(revoked_credential_hash) = 32),
        credential_batch_id {TEXT},
        PRIMARY KEY (subscription_token, filter_no));
    INSERT INTO subscription_filters SELECT * FROM old_filters;
    DROP TABLE old_filters;
    CREATE INDEX filters_did ON subscription_filters (filter_type, did_suffix);
    CREATE INDEX filters_credential ON subscription_filters (revoked_credential_hash)
""")
"""The statements of migration 5, which adds storage entries and their types of operations and
filters. To change the check of a column, a new table is needed."""

_CARRIED: Final = _statements(f"""
    DELETE FROM atala_objects WHERE NOT EXISTS
        (SELECT 1 FROM old_operations AS o WHERE o.atala_object_id = atala_objects.atala_object_id
        AND {_IS_SCHEDULED});
    UPDATE atala_objects SET atala_object_status = 'PENDING';
    DROP TABLE old_operations
""")
"""The statements of migration 2 after scheduled operations have been carried over."""


def prepare(database: Database) -> None:
    """Create the tables, or update them to the newest version.

    Raises `StoreError` if tables of another program have the same names.
    """
    if _has_foreign_tables(database):
        raise StoreError(
            f"{database.place}: another program made its table `subscriptions`; give this node a"
            " database of its own"
        )
    second: list[str | Callable[[Session], None]] = [*SECOND, _carry_over, *_CARRIED]
    migrate(database, COMPONENT, [FIRST, second, THIRD, FOURTH, [*FIFTH, _process_again]])


def _process_again(session: Session) -> None:
    """Take back the rows from the first operation that older code has read differently.

    Older code skipped the types 5, 7, 8 and 9. The rows are then made from the log again. The new
    epoch tells clients which of their rows are still valid.
    """
    after = 0
    while True:
        rows = session.run(
            "SELECT atala_operation_seq_no, block_number, atala_operation_type,"
            " atala_operation_content FROM atala_operations WHERE atala_operation_seq_no > ? ORDER"
            " BY atala_operation_seq_no LIMIT ?",
            (after, _PAGE),
        )
        for seq_no, block, kind, content in rows:
            after = seq_no
            if _kind_of(bytes(content)) != kind:
                first = session.run(
                    "SELECT log_seq FROM processed_blocks WHERE block_number = ?", (block,)
                )
                current = position(session)
                rewind(session, current, current.log_epoch, first[0][0] - 1)
                return
        if len(rows) < _PAGE:
            return


def _kind_of(content: bytes) -> str | None:
    """Return the type of an operation, `None` if its object would now be ignored."""
    try:
        return examine(decode(SignedAtalaOperation, content)).type.name
    except Undecodable:
        return None


def _has_foreign_tables(database: Database) -> bool:
    """Return whether the database has a table `subscriptions` that is not PRISM's."""
    if database.dialect is Dialect.SQLITE:
        listed = "SELECT name FROM sqlite_master WHERE type = 'table'"
    else:
        listed = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()"
    with database.transaction() as session:
        names = {name for (name,) in session.run(listed)}
        if "subscriptions" not in names:
            return False
        if "migrations" not in names:
            return True
        versions = session.run("SELECT version FROM migrations WHERE component = ?", (COMPONENT,))
    return not versions or versions[0][0] < 2


def _carry_over(session: Session) -> None:
    """Store the scheduled operations of the old table in the new one.

    The old table does not have their content, which is in their objects.
    """
    rows = session.run(
        "SELECT o.signed_atala_operation_id, o.atala_operation_status, o.atala_object_id,"
        " b.object_content FROM old_operations AS o JOIN atala_objects AS b ON b.atala_object_id ="
        f" o.atala_object_id WHERE {_IS_SCHEDULED}"
    )
    for operation_id, status, object_id, content in rows:
        for signed in read_object(bytes(content)) or ():
            if sha256(signed.raw) == bytes(operation_id):
                insert_scheduled(
                    session,
                    bytes(object_id),
                    signed.raw,
                    status=Status(status),
                    cancel_token=None,
                    pending_since=None,
                )
                break


def insert_scheduled(  # noqa: PLR0917  # the columns of one row
    session: Session,
    object_id: bytes,
    content: bytes,
    status: Status,
    cancel_token: bytes | None,
    pending_since: int | None,
) -> None:
    """Store an operation that this node was asked to anchor.

    `cancel_token` is the hash of the token that is needed to cancel it, and `pending_since` the
    number of the best block from which its time is counted.
    """
    examined = examine(decode(SignedAtalaOperation, content))
    session.run(
        "INSERT INTO atala_operations (signed_atala_operation_id, atala_operation_status,"
        " atala_object_id, atala_operation_type, atala_operation_content, operation_hash,"
        " credential_batch_id, cancel_token, pending_since) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            examined.id,
            status.value,
            object_id,
            examined.type.name,
            content,
            examined.hash,
            examined.batch_id,
            cancel_token,
            pending_since,
        ),
    )
