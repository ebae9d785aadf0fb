"""The position of the tables in the log, and the removal of rows after a rewind (PR-5)."""

from typing import NamedTuple

from interchain_events.database.database import Dialect, Session


class Position(NamedTuple):
    """The position of the tables."""

    epoch: int
    """The epoch of the tables."""
    seq_no: int
    """The number of the last row."""
    log_epoch: int
    """The epoch of the log to which `log_seq` belongs."""
    log_seq: int
    """The last processed `seq` of the log."""
    block_number: int | None
    """The last processed block with objects, `None` before the first."""


def position(session: Session, lock: Dialect | None = None) -> Position:
    """Return the position of the tables.

    If `lock` is the database's dialect, the position is locked until the transaction ends. SQLite
    needs no lock of its own, because it has only one write transaction at a time.
    """
    locking = " FOR UPDATE" if lock is Dialect.POSTGRESQL else ""
    rows = session.run(
        f"SELECT epoch, seq_no, log_epoch, log_seq, block_number FROM prism_meta{locking}"
    )
    return Position(*rows[0])


def rewind(session: Session, current: Position, log_epoch: int, common: int) -> int:
    """Remove the rows that came from the log after `common`, and begin a new epoch (PR-5).

    `current` is the position of the tables, `log_epoch` the new epoch of the log. Scheduled
    operations of removed blocks are to be anchored again. Returns the number of the last remaining
    block with objects, -1 if no such block remains.
    """
    last_remaining = "processed_blocks WHERE log_seq <= ? ORDER BY log_seq DESC LIMIT 1"
    remaining = session.run(f"SELECT block_number, log_seq FROM {last_remaining}", (common,))
    number, log_seq = remaining[0] if remaining else (None, 0)
    last_block = -1 if number is None else int(number)
    session.run("DELETE FROM atala_operations WHERE block_number > ?", (last_block,))
    last = session.run("SELECT max(atala_operation_seq_no) FROM atala_operations")[0][0] or 0
    session.run("DELETE FROM revoked_credentials WHERE seq_no > ?", (last,))
    session.run("DELETE FROM processed_blocks WHERE block_number > ?", (last_block,))
    # Objects with operations that were scheduled here remain, so that they can be anchored again.
    has_operation = (
        "EXISTS (SELECT 1 FROM atala_operations AS o WHERE o.atala_object_id ="
        " atala_objects.atala_object_id)"
    )
    session.run(
        f"DELETE FROM atala_objects WHERE block_number > ? AND NOT {has_operation}", (last_block,)
    )
    pending = "atala_object_status = 'PENDING', block_number = NULL"
    session.run(f"UPDATE atala_objects SET {pending} WHERE block_number > ?", (last_block,))
    session.run("INSERT INTO epochs VALUES (?, ?)", (current.epoch + 1, last))
    session.run(
        "UPDATE prism_meta SET epoch = ?, seq_no = ?, log_epoch = ?, log_seq = ?, block_number = ?",
        (current.epoch + 1, last, log_epoch, log_seq, number),
    )
    return last_block
