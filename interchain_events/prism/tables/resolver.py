"""The resolution of DIDs from the tables (PR-70)."""

import threading
from collections import OrderedDict
from typing import Final

from interchain_events.database.database import Database, Session
from interchain_events.prism.core import messages as m
from interchain_events.prism.core.document import DidTimes, Resolution, failed, resolution
from interchain_events.prism.core.errors import Rejected, Undecodable
from interchain_events.prism.core.identifiers import METHOD, read_long_form, suffix_of
from interchain_events.prism.core.state import Did, created
from interchain_events.prism.core.well_formed import check
from interchain_events.prism.tables.ledger import load_did
from interchain_events.prism.tables.position import position

MOST_CACHED: Final = 2_000
"""The greatest number of cached DIDs."""


class Resolver:
    """The resolver of DIDs. Its method may be called from any thread.

    The state of a DID is derived from all operations on it. Recently resolved DIDs are cached until
    another operation on them is applied or rows are taken back.
    """

    def __init__(self, database: Database, most_cached: int = MOST_CACHED) -> None:
        self._database = database
        self._size = most_cached
        self._lock = threading.Lock()
        self._cache: OrderedDict[tuple[str, int, int], Did] = OrderedDict()
        """DIDs by suffix, epoch, and the number of the last operation."""

    def resolve(self, name: str) -> Resolution:
        """Return the result for a DID in its short or long form.

        If a long form is not on the chain, the result has the state that it contains. Raises
        `StoreError`.
        """
        if not name.startswith("did:") or name.count(":") < 2:
            return failed("INVALID_DID", "Invalid DID", f"this is not a DID: {name[:80]!r}")
        if not name.startswith(METHOD):
            return failed(
                "METHOD_NOT_SUPPORTED",
                "Method not supported",
                f"this node resolves {METHOD}…, not {name[:80]!r}",
            )
        try:
            suffix = suffix_of(name)
        except Undecodable as error:
            return failed("INVALID_DID", "Invalid DID", str(error))
        with self._database.transaction() as session:
            published = self._published(session, suffix)
        if published is not None:
            did, times = published
            return resolution(name, suffix, did, times)
        if name == METHOD + suffix:
            return failed("NOT_FOUND", "Not found", "no operation has created this DID")
        return _unpublished(name, suffix)

    def _published(self, session: Session, suffix: str) -> tuple[Did, DidTimes] | None:
        """Return the state and times of a DID, `None` if it is not on the chain."""
        epoch = position(session).epoch
        creation = session.run(
            "SELECT atala_operation_seq_no, block_time FROM atala_operations WHERE"
            " atala_operation_status = 'APPLIED' AND created_did_suffix = ?",
            (suffix,),
        )
        if not creation:
            return None
        changed = session.run(
            "SELECT atala_operation_seq_no, block_time FROM atala_operations WHERE"
            " atala_operation_status = 'APPLIED' AND atala_operation_did_suffix = ? AND"
            " atala_operation_type IN ('UPDATE_DID', 'DEACTIVATE_DID') ORDER BY"
            " atala_operation_seq_no DESC LIMIT 1",
            (suffix,),
        )
        created_no, created_at = creation[0]
        last, updated = changed[0] if changed else (created_no, created_at)
        key = (suffix, epoch, last)
        with self._lock:
            did = self._cache.get(key)
            if did is not None:
                self._cache.move_to_end(key)
        if did is None:
            did = load_did(session, suffix)
            if did is None:
                return None
            with self._lock:
                self._cache[key] = did
                while len(self._cache) > self._size:
                    self._cache.popitem(last=False)
        return did, DidTimes(created_at, updated)


def _unpublished(name: str, suffix: str) -> Resolution:
    """Return the result for a long form that is not on the chain."""
    _, operation = read_long_form(name)
    member = operation.operation
    if not isinstance(member, m.CreateDID):
        return failed("INVALID_DID", "Invalid DID", "the state creates no DID")
    try:
        check(member)
        did = created(member, bytes.fromhex(suffix))
    except Rejected as error:
        return failed("INVALID_DID", "Invalid DID", str(error))
    return resolution(name, suffix, did, times=None)
