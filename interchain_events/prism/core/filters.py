"""The filters of subscriptions, with matching and normal form (PR-40 to PR-42)."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from interchain_events.prism.core.process import DecidedOperation, OperationType, Status


class FilterType(IntEnum):
    """The kinds of filters. Numbers are those of `prism.proto`."""

    DID_OWNER_ANY_FILTER = 1
    UPDATE_DID_FILTER = 2
    CREDENTIALS_ISSUANCE_FILTER = 3
    CREDENTIALS_REVOCATION_FILTER = 4
    ANONYMOUS_ANY_FILTER = 5
    CREATE_DID_FILTER = 6
    REVOKE_CREDENTIAL_FILTER = 7
    STORAGE_ENTRIES_FILTER = 8


OWNERS: Final = frozenset(
    {
        FilterType.DID_OWNER_ANY_FILTER,
        FilterType.UPDATE_DID_FILTER,
        FilterType.CREDENTIALS_ISSUANCE_FILTER,
        FilterType.CREDENTIALS_REVOCATION_FILTER,
        FilterType.STORAGE_ENTRIES_FILTER,
    }
)
"""The kinds of filters that name a DID."""

TYPES: Final = {
    FilterType.UPDATE_DID_FILTER: (OperationType.UPDATE_DID, OperationType.DEACTIVATE_DID),
    FilterType.CREDENTIALS_ISSUANCE_FILTER: (OperationType.ISSUE_CREDENTIAL_BATCH,),
    FilterType.CREDENTIALS_REVOCATION_FILTER: (OperationType.REVOKE_CREDENTIALS,),
    FilterType.CREATE_DID_FILTER: (OperationType.CREATE_DID,),
    FilterType.REVOKE_CREDENTIAL_FILTER: (OperationType.REVOKE_CREDENTIALS,),
    FilterType.STORAGE_ENTRIES_FILTER: (
        OperationType.CREATE_STORAGE_ENTRY,
        OperationType.UPDATE_STORAGE_ENTRY,
        OperationType.DEACTIVATE_STORAGE_ENTRY,
    ),
}
"""The types of operations that a kind of filter matches. Other kinds match all types."""


class Filter(NamedTuple):
    """A filter of operations."""

    type: FilterType
    did_suffix: str | None = None
    """The suffix of the DID that the filter names, for the kinds in `OWNERS`."""
    credential_hash: bytes | None = None
    """The hash of the credential that the filter names, for REVOKE_CREDENTIAL_FILTER."""
    credential_batch_id: str | None = None
    """The batch of that credential, `None` for any batch (PR-41)."""
    status: Status | None = None
    """APPLIED or REJECTED, `None` for both."""


def matches(part: Filter, row: DecidedOperation) -> bool:
    """Return whether a filter matches the row of a processed operation (PR-40, PR-41)."""
    if part.status is not None and row.status is not part.status:
        return False
    if part.type in TYPES and row.type not in TYPES[part.type]:
        return False
    if part.type in OWNERS:
        return part.did_suffix in {row.did_suffix, row.created_did_suffix}
    if part.type is FilterType.REVOKE_CREDENTIAL_FILTER:
        if (
            part.credential_batch_id is not None
            and row.credential_batch_id != part.credential_batch_id
        ):
            return False
        # A revocation without hashes concerns the whole batch.
        return not row.revoked_hashes or part.credential_hash in row.revoked_hashes
    return True


def normal_form(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """Return filters that match the same rows, in normal form (PR-42).

    Equal filters are joined, covered filters are left out, and the rest is in a fixed order.
    """
    # A filter for both statuses is split into one for each. If both are needed, they are joined
    # again at the end.
    split: set[Filter] = set()
    for part in filters:
        statuses = (Status.APPLIED, Status.REJECTED) if part.status is None else (part.status,)
        split.update(part._replace(status=status) for status in statuses)
    needed = {
        part for part in split if not any(_covers(other, part) for other in split if other != part)
    }
    joined: set[Filter] = set()
    for part in needed:
        both = {part._replace(status=status) for status in (Status.APPLIED, Status.REJECTED)}
        joined.add(part._replace(status=None) if both <= needed else part)
    return tuple(sorted(joined, key=_sort_key))


def _covers(wide: Filter, narrow: Filter) -> bool:
    """Return whether `wide` matches every row that `narrow` matches."""
    if wide.status is not narrow.status:
        return False
    if wide.type is FilterType.ANONYMOUS_ANY_FILTER:
        return True
    if wide.type is FilterType.DID_OWNER_ANY_FILTER:
        return narrow.type in OWNERS and narrow.did_suffix == wide.did_suffix
    # A filter for a credential in any batch covers those for the same credential in one batch.
    return wide.type is FilterType.REVOKE_CREDENTIAL_FILTER and wide == narrow._replace(
        credential_batch_id=None
    )


def _sort_key(part: Filter) -> tuple[int, str, bytes, str, str]:
    """Return the key by which filters are sorted."""
    return (
        part.type,
        part.did_suffix or "",
        part.credential_hash or b"",
        part.credential_batch_id or "",
        part.status or "",
    )
