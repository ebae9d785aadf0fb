"""The position of the tables in the log, and the removal of rows that the log took back (PR-5)."""

from typing import NamedTuple

from interchain_events.database.database import Dialect, Session


class Position(NamedTuple):
    """The position of the tables."""

    epoch: int
    """The epoch of the tables."""
    seq_no: int
    """The number of the last row."""
    log_epoch: int
    """The epoch of the log in which `log_seq` is meant."""
    log_seq: int
    """The last `seq` of the log that was processed."""
    block_number: int | None
    """The last block with objects that was processed."""


def position(session: Session, lock: Dialect | None = None) -> Position:
    """Return the position of the tables. With a dialect, lock it until the transaction ends."""
    locking = " FOR UPDATE" if lock is Dialect.POSTGRESQL else ""
    found = session.run(
        f"SELECT epoch, seq_no, log_epoch, log_seq, block_number FROM prism_meta{locking}"
    )
    return Position(*found[0])


def rewind(session: Session, at: Position, log_epoch: int, common: int) -> int:
    """Remove the rows that came from the log after `common`, and raise the epoch (PR-5).

    Returns the last remaining block with objects, -1 if none remains.
    """
    last_kept = "processed_blocks WHERE log_seq <= ? ORDER BY log_seq DESC LIMIT 1"
    kept = session.run(f"SELECT block_number, log_seq FROM {last_kept}", (common,))
    number, log_seq = kept[0] if kept else (None, 0)
    beyond = (-1 if number is None else number,)
    session.run("DELETE FROM atala_operations WHERE block_number > ?", beyond)
    last = session.run("SELECT max(atala_operation_seq_no) FROM atala_operations")[0][0] or 0
    session.run("DELETE FROM revoked_credentials WHERE seq_no > ?", (last,))
    session.run("DELETE FROM processed_blocks WHERE block_number > ?", beyond)
    names_it = (
        "EXISTS (SELECT 1 FROM atala_operations AS o WHERE o.atala_object_id ="
        " atala_objects.atala_object_id)"
    )
    session.run(f"DELETE FROM atala_objects WHERE block_number > ? AND NOT {names_it}", beyond)
    pending = "atala_object_status = 'PENDING', block_number = NULL"
    session.run(f"UPDATE atala_objects SET {pending} WHERE block_number > ?", beyond)
    session.run("INSERT INTO epochs VALUES (?, ?)", (at.epoch + 1, last))
    session.run(
        "UPDATE prism_meta SET epoch = ?, seq_no = ?, log_epoch = ?, log_seq = ?, block_number = ?",
        (at.epoch + 1, last, log_epoch, log_seq, number),
    )
    return int(beyond[0])
