"""The seven filters: what matches, and their normal form (PR-40 to PR-42)."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from pubsub_emulator.prism.core.process import OperationType, Outcome, Status


class FilterType(IntEnum):
    """Kinds of filters; numbers as in `prism.proto`."""

    DID_OWNER_ANY_FILTER = 1
    UPDATE_DID_FILTER = 2
    CREDENTIALS_ISSUANCE_FILTER = 3
    CREDENTIALS_REVOCATION_FILTER = 4
    ANONYMOUS_ANY_FILTER = 5
    CREATE_DID_FILTER = 6
    REVOKE_CREDENTIAL_FILTER = 7


OWNERS: Final = frozenset(
    {
        FilterType.DID_OWNER_ANY_FILTER,
        FilterType.UPDATE_DID_FILTER,
        FilterType.CREDENTIALS_ISSUANCE_FILTER,
        FilterType.CREDENTIALS_REVOCATION_FILTER,
    }
)
"""Filters that name a DID."""

TYPES: Final = {
    FilterType.UPDATE_DID_FILTER: (OperationType.UPDATE_DID, OperationType.DEACTIVATE_DID),
    FilterType.CREDENTIALS_ISSUANCE_FILTER: (OperationType.ISSUE_CREDENTIAL_BATCH,),
    FilterType.CREDENTIALS_REVOCATION_FILTER: (OperationType.REVOKE_CREDENTIALS,),
    FilterType.CREATE_DID_FILTER: (OperationType.CREATE_DID,),
    FilterType.REVOKE_CREDENTIAL_FILTER: (OperationType.REVOKE_CREDENTIALS,),
}
"""The types of operations that a filter matches, where not all."""


class Filter(NamedTuple):
    """One filter; `status` is APPLIED, REJECTED, or `None` for both."""

    type: FilterType
    did_suffix: str | None = None
    credential_hash: bytes | None = None
    credential_batch_id: str | None = None
    status: Status | None = None


def matches(each: Filter, row: Outcome) -> bool:
    """Whether a processed row is for a filter."""
    if each.status is not None and row.status is not each.status:
        return False
    if each.type in TYPES and row.type not in TYPES[each.type]:
        return False
    if each.type in OWNERS:
        return each.did_suffix in {row.did_suffix, row.created_did_suffix}
    if each.type is FilterType.REVOKE_CREDENTIAL_FILTER:
        if each.credential_batch_id is not None and row.credential_batch_id != each.credential_batch_id:
            return False
        return not row.revoked_hashes or each.credential_hash in row.revoked_hashes
    return True


def normal_form(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """Equal filters joined, covered ones gone, in one order; the same rows match (PR-42)."""
    split = {
        each._replace(status=status)
        for each in filters
        for status in ((Status.APPLIED, Status.REJECTED) if each.status is None else (each.status,))
    }
    kept = {each for each in split if not any(_covers(other, each) for other in split if other != each)}
    joined: set[Filter] = set()
    for each in kept:
        both = {each._replace(status=status) for status in (Status.APPLIED, Status.REJECTED)}
        joined.add(each._replace(status=None) if both <= kept else each)
    return tuple(sorted(joined, key=_order))


def _covers(wide: Filter, narrow: Filter) -> bool:
    if wide.status is not narrow.status:
        return False
    if wide.type is FilterType.ANONYMOUS_ANY_FILTER:
        return True
    if wide.type is FilterType.DID_OWNER_ANY_FILTER:
        return narrow.type in OWNERS and narrow.did_suffix == wide.did_suffix
    return wide == narrow._replace(credential_batch_id=None) and wide.type is FilterType.REVOKE_CREDENTIAL_FILTER


def _order(each: Filter) -> tuple[int, str, bytes, str, str]:
    batch = each.credential_batch_id or ""
    return (each.type, each.did_suffix or "", each.credential_hash or b"", batch, each.status or "")
