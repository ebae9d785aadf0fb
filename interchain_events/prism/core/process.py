"""From an anchored object to rows and state: the checks in their order (PR-20 to PR-23).

    operations = read_object(raw)                # None if the object is ignored
    for signed in operations or ():
        row = process(ledger, signed)            # None if its id was decided before

`process` consists of `examine`, which needs no ledger, and `judge`.
"""

from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from interchain_events.prism.core import messages as m
from interchain_events.prism.core import signatures
from interchain_events.prism.core.errors import Reason, Rejected, Undecodable
from interchain_events.prism.core.identifiers import HASH_BYTES, is_hex_hash, sha256
from interchain_events.prism.core.ledger import MemoryLedger
from interchain_events.prism.core.state import (
    USAGES,
    Batch,
    Did,
    DidKey,
    StorageEntry,
    created,
    deactivated,
    revoked,
    stored,
    updated,
)
from interchain_events.prism.core.well_formed import SECP256K1, check, key_point


class OperationType(IntEnum):
    """The kinds of operations. Numbers are those of `prism.proto`.

    UNKNOWN is an operation that failed check 1 or 2.
    """

    UNKNOWN = 0
    CREATE_DID = 1
    UPDATE_DID = 2
    ISSUE_CREDENTIAL_BATCH = 3
    REVOKE_CREDENTIALS = 4
    PROTOCOL_VERSION_UPDATE = 5
    DEACTIVATE_DID = 6
    CREATE_STORAGE_ENTRY = 7
    UPDATE_STORAGE_ENTRY = 8
    DEACTIVATE_STORAGE_ENTRY = 9


class Status(StrEnum):
    """The status of an operation in its row.

    Only operations that were scheduled at this node are RECEIVED or CANCELLED (PR-63).
    """

    RECEIVED = "RECEIVED"
    CANCELLED = "CANCELLED"
    APPLIED = "APPLIED"
    REJECTED = "REJECTED"


_UNKNOWN: Final = OperationType.UNKNOWN
_CREATE: Final = OperationType.CREATE_DID
_REVOKE: Final = OperationType.REVOKE_CREDENTIALS
"""Members in variables, because each use of an enumeration's member costs a lookup."""
_NO_USAGE: Final = m.Usage.VDR_KEY
"""The usage of a key whose number is not a usage. PR-24 refuses such a key later."""

_TYPES: Final[dict[type, OperationType]] = {
    m.CreateDID: OperationType.CREATE_DID,
    m.UpdateDID: OperationType.UPDATE_DID,
    m.IssueCredentialBatch: OperationType.ISSUE_CREDENTIAL_BATCH,
    m.RevokeCredentials: OperationType.REVOKE_CREDENTIALS,
    m.ProtocolVersionUpdate: OperationType.PROTOCOL_VERSION_UPDATE,
    m.DeactivateDID: OperationType.DEACTIVATE_DID,
    m.CreateStorageEntry: OperationType.CREATE_STORAGE_ENTRY,
    m.UpdateStorageEntry: OperationType.UPDATE_STORAGE_ENTRY,
    m.DeactivateStorageEntry: OperationType.DEACTIVATE_STORAGE_ENTRY,
}
"""The type of each message."""
_USAGES: Final = {
    OperationType.CREATE_DID: m.Usage.MASTER_KEY,
    OperationType.UPDATE_DID: m.Usage.MASTER_KEY,
    OperationType.DEACTIVATE_DID: m.Usage.MASTER_KEY,
    OperationType.ISSUE_CREDENTIAL_BATCH: m.Usage.ISSUING_KEY,
    OperationType.REVOKE_CREDENTIALS: m.Usage.REVOCATION_KEY,
    OperationType.PROTOCOL_VERSION_UPDATE: m.Usage.MASTER_KEY,
    OperationType.CREATE_STORAGE_ENTRY: m.Usage.VDR_KEY,
    OperationType.UPDATE_STORAGE_ENTRY: m.Usage.VDR_KEY,
    OperationType.DEACTIVATE_STORAGE_ENTRY: m.Usage.VDR_KEY,
}
"""The usage that the signing key of each type must have."""


class ExaminedOperation(NamedTuple):
    """An operation with everything that follows from its bytes alone."""

    signed: m.SignedAtalaOperation
    id: bytes
    """The hash of the SignedAtalaOperation."""
    hash: bytes | None
    """The hash of the AtalaOperation, `None` if there is none."""
    type: OperationType
    batch_id: str | None
    """The id of the batch that it issues or revokes."""


class DecidedOperation(NamedTuple):
    """The outcome of an operation: the columns of its row that do not depend on its place."""

    operation_id: bytes
    operation_hash: bytes | None
    type: OperationType
    reason: Reason | None
    """The reason of a rejection, `None` if the operation was applied."""
    did_suffix: str | None
    """The DID to which it is attributed (PR-22), `None` for a CREATE_DID or without one."""
    created_did_suffix: str | None
    credential_batch_id: str | None
    revoked_hashes: tuple[bytes, ...]
    content: bytes
    """The bytes of the SignedAtalaOperation."""
    storage_entry_id: str | None = None
    """The id of the storage entry that it creates, changes or ends."""

    @property
    def status(self) -> Status:
        """Return APPLIED or REJECTED."""
        return Status.APPLIED if self.reason is None else Status.REJECTED


def read_object(raw: bytes) -> tuple[m.SignedAtalaOperation, ...] | None:
    """Return the operations of an object.

    Returns `None` if the object is ignored, because it cannot be decoded or has no operations
    (PR-20).
    """
    try:
        block = m.decode(m.AtalaObject, raw).block_content
    except Undecodable:
        return None
    return None if block is None or not block.operations else block.operations


def examine(signed: m.SignedAtalaOperation) -> ExaminedOperation:
    """Return an operation with everything that follows from its bytes alone."""
    operation = signed.operation
    kind = _UNKNOWN
    batch_id = None
    if operation is not None and operation.operation is not None and m.is_canonical(signed):
        kind = _TYPES[type(operation.operation)]
        batch_id = _named_batch(operation.operation)
    return ExaminedOperation(
        signed,
        id=sha256(signed.raw),
        hash=None if operation is None else sha256(operation.raw),
        type=kind,
        batch_id=batch_id,
    )


def process(ledger: MemoryLedger, signed: m.SignedAtalaOperation) -> DecidedOperation | None:
    """Check an operation, apply it to the ledger, and return its outcome.

    Returns `None` if its id was decided before (PR-23).
    """
    return judge(ledger, examine(signed))


def judge(ledger: MemoryLedger, examined: ExaminedOperation) -> DecidedOperation | None:
    """Check an examined operation, apply it to the ledger, and return its outcome.

    Returns `None` if its id was decided before (PR-23). An operation that was applied is ignored.
    One that was rejected is tried again, and the result is `None` only if it is rejected again.
    """
    if examined.id in ledger.applied:
        return None
    judged = _Judged(examined)
    try:
        judged.apply(ledger)
    except Rejected as rejected:
        if ledger.is_rejected(examined.id):
            return None
        judged.reason = rejected.reason
    ledger.note(examined.id, examined.hash, applied=judged.reason is None)
    return judged.outcome()


def check_shape(examined: ExaminedOperation) -> m.Operation:
    """Do the checks 1 to 3, which do not need any state, and return the operation.

    Raises `Rejected`.
    """
    signed = examined.signed
    if examined.type is _UNKNOWN and not m.is_canonical(signed):
        raise Rejected(Reason.MALFORMED_OPERATION, "SignedAtalaOperation is not canonical")
    if signed.operation is None or signed.operation.operation is None:
        raise Rejected(Reason.UNSUPPORTED_OPERATION)
    if not _is_shaped(signed.operation.operation):
        raise Rejected(
            Reason.MALFORMED_OPERATION, "a DID suffix, a batch id or data is missing or malformed"
        )
    return signed.operation.operation


def _is_shaped(operation: m.Operation) -> bool:
    """Return whether an operation has its data, and a DID suffix or batch id of the right form."""
    match operation:
        case m.CreateDID(did_data):
            return did_data is not None
        case m.UpdateDID(_, suffix, _) | m.DeactivateDID(_, suffix):
            return is_hex_hash(suffix)
        case m.IssueCredentialBatch(data):
            return data is not None and is_hex_hash(data.issuer_did)
        case m.RevokeCredentials(_, batch_id, _):
            return is_hex_hash(batch_id)
        case m.ProtocolVersionUpdate(proposer, _):
            return is_hex_hash(proposer)
        case m.CreateStorageEntry(named, _, _) | m.UpdateStorageEntry(named, _):
            return len(named) == HASH_BYTES
        case m.DeactivateStorageEntry(named):
            return len(named) == HASH_BYTES


def _named_batch(operation: m.Operation) -> str | None:
    """Return the id of the batch that an operation issues or revokes, `None` if there is none."""
    match operation:
        case m.IssueCredentialBatch(data) if data is not None:
            return sha256(data.raw).hex()
        case m.RevokeCredentials(_, batch_id, _) if is_hex_hash(batch_id):
            return batch_id
        case _:
            return None


def effect(did: Did | None, operation: m.Operation, operation_hash: bytes) -> Did:
    """Return a DID after a CREATE_DID, UPDATE_DID or DEACTIVATE_DID.

    Raises `Rejected`.
    """
    if isinstance(operation, m.CreateDID):
        return created(operation, operation_hash)
    if did is not None and isinstance(operation, m.UpdateDID):
        return updated(did, operation, operation_hash)
    if did is not None and isinstance(operation, m.DeactivateDID):
        return deactivated(did, operation, operation_hash)
    raise Rejected(Reason.UNKNOWN_DID)


class _Subject(NamedTuple):
    """The state that an operation concerns."""

    owner: str = ""
    """The suffix of the DID whose key must have signed, empty for a CREATE_DID."""
    did: Did | None = None
    """The DID whose key must have signed, `None` for a CREATE_DID."""
    batch: Batch | None = None
    """The batch to revoke, `None` for other operations."""
    entry: StorageEntry | None = None
    """The storage entry to change, `None` for other operations."""


class _Judged:
    """An operation that passes through the checks."""

    def __init__(self, examined: ExaminedOperation) -> None:
        self._examined = examined
        self._attributed: str | None = None
        """The DID whose key has signed, once check 6 has passed."""
        self._entry_id: str | None = None
        """The id of the storage entry that the operation concerns, `None` if there is none."""
        if examined.type is OperationType.CREATE_STORAGE_ENTRY and examined.hash is not None:
            self._entry_id = examined.hash.hex()
        self.reason: Reason | None = None

    def outcome(self) -> DecidedOperation:
        """Return the outcome after the checks."""
        signed, operation_id, operation_hash, kind, batch_id = self._examined
        is_create = kind is _CREATE
        return DecidedOperation(
            operation_id,
            operation_hash,
            kind,
            reason=self.reason,
            did_suffix=None if is_create else self._attributed,
            created_did_suffix=self._attributed if is_create else None,
            credential_batch_id=batch_id,
            revoked_hashes=revoked_hashes(signed) if kind is _REVOKE else (),
            content=signed.raw,
            storage_entry_id=self._entry_id,
        )

    def apply(self, ledger: MemoryLedger) -> None:
        """Do all checks in order, then apply the operation to the ledger. Raises `Rejected`.

        The numbers in the comments are those of PR-21.
        """
        signed, _, operation_hash, kind, _ = self._examined
        operation = check_shape(self._examined)  # 1 to 3
        if signed.operation is None or operation_hash is None:
            raise Rejected(Reason.UNSUPPORTED_OPERATION)
        subject = self._subject(ledger, operation)  # 4
        key = self._key(operation, subject.did)  # 5
        if not signatures.verify(key.point, operation_hash, signed.signature):
            raise Rejected(Reason.INVALID_SIGNATURE)  # 6
        # The operation is attributed to a DID from here on, even if a later check fails (PR-22).
        if isinstance(operation, m.CreateDID):
            self._attributed = operation_hash.hex()
        else:
            self._attributed = subject.owner
        if operation_hash in ledger.applied_hashes:
            raise Rejected(Reason.DUPLICATE_OPERATION)  # 7
        check(operation)  # 8
        if key.usage != _USAGES[kind]:
            raise Rejected(Reason.WRONG_KEY_USAGE)  # 9
        if not key.active:
            raise Rejected(Reason.KEY_REVOKED)  # 10
        _check_previous(operation, subject)  # 11
        self._effect(ledger, operation, subject, operation_hash)  # 12

    def _subject(self, ledger: MemoryLedger, operation: m.Operation) -> _Subject:
        """Return the state that an operation concerns. Raises `Rejected` if it does not exist."""
        suffix = ""
        batch: Batch | None = None
        entry: StorageEntry | None = None
        match operation:
            case m.CreateDID():
                return _Subject()
            case m.UpdateDID(_, given, _) | m.DeactivateDID(_, given):
                suffix = given
            case m.ProtocolVersionUpdate(given, _):
                suffix = given
            case m.IssueCredentialBatch(data):
                suffix = "" if data is None else data.issuer_did
            case m.RevokeCredentials(_, batch_id, _):
                batch = ledger.batch(batch_id)
                if batch is None:
                    raise Rejected(Reason.UNKNOWN_BATCH)
                suffix = batch.issuer
            case m.CreateStorageEntry(did_hash, _, _):
                suffix = did_hash.hex()
            case m.UpdateStorageEntry(previous, _) | m.DeactivateStorageEntry(previous):
                self._entry_id = ledger.entry_id(previous)
                entry = None if self._entry_id is None else ledger.entry(self._entry_id)
                if entry is None:
                    raise Rejected(Reason.UNKNOWN_STORAGE_ENTRY)
                suffix = entry.owner
        did = ledger.did(suffix)
        if did is None:
            raise Rejected(Reason.UNKNOWN_DID)
        return _Subject(suffix, did, batch, entry)

    def _key(self, operation: m.Operation, did: Did | None) -> DidKey:
        """Return the key that is named as signer. Raises `Rejected` if it cannot have signed.

        A CREATE_DID is signed with one of the keys that it contains.
        """
        name = self._examined.signed.signed_with
        signer: DidKey | None = None
        if isinstance(operation, m.CreateDID):
            keys = () if operation.did_data is None else operation.did_data.public_keys
            named = next((key for key in keys if key.id == name), None)
            point = None if named is None else key_point(named)
            if named is not None and point is not None:
                signer = DidKey(USAGES.get(named.usage, _NO_USAGE), *point)
        elif did is not None:
            signer = did.keys.get(name)
        if signer is None or signer.curve != SECP256K1:
            raise Rejected(Reason.UNKNOWN_KEY)
        return signer

    def _effect(
        self,
        ledger: MemoryLedger,
        operation: m.Operation,
        subject: _Subject,
        operation_hash: bytes,
    ) -> None:
        """Change the ledger. Raises `Rejected` if the state does not allow the operation."""
        if isinstance(operation, m.ProtocolVersionUpdate):
            # The announcement has no effect, because this node knows only one protocol version.
            return
        if isinstance(
            operation, (m.CreateStorageEntry, m.UpdateStorageEntry, m.DeactivateStorageEntry)
        ):
            entry_id = self._entry_id or ""
            ledger.entries[entry_id] = stored(
                subject.entry, subject.owner, operation, operation_hash
            )
            ledger.entry_ids[operation_hash] = entry_id
        elif isinstance(operation, m.RevokeCredentials) and subject.batch is not None:
            ledger.batches[operation.credential_batch_id] = revoked(subject.batch, operation)
        elif (
            isinstance(operation, m.IssueCredentialBatch)
            and operation.credential_batch_data is not None
        ):
            data = operation.credential_batch_data
            batch_id = self._examined.batch_id or ""
            if ledger.batch(batch_id) is not None:
                raise Rejected(Reason.BATCH_EXISTS)
            ledger.batches[batch_id] = Batch(data.issuer_did, data.merkle_root, operation_hash)
        else:
            ledger.dids[self._attributed or ""] = effect(subject.did, operation, operation_hash)


def revoked_hashes(signed: m.SignedAtalaOperation) -> tuple[bytes, ...]:
    """Return the hashes in a REVOKE_CREDENTIALS without duplicates, sorted.

    Returns an empty tuple for other operations.
    """
    member = None if signed.operation is None else signed.operation.operation
    if not isinstance(member, m.RevokeCredentials):
        return ()
    return tuple(sorted({*member.credentials_to_revoke}))


def _check_previous(operation: m.Operation, subject: _Subject) -> None:
    """Check the hash of the previous operation that an operation names. Raises `Rejected`.

    For a revocation, the previous operation is the one that issued the batch. Otherwise it is the
    last one that was applied to the DID or to the storage entry.
    """
    match operation:
        case m.UpdateDID(previous) | m.DeactivateDID(previous):
            last = None if subject.did is None else subject.did.last_hash
        case m.RevokeCredentials(previous):
            last = None if subject.batch is None else subject.batch.issue_hash
        case m.UpdateStorageEntry(previous) | m.DeactivateStorageEntry(previous):
            last = None if subject.entry is None else subject.entry.last_hash
        case _:
            return
    if previous != last:
        raise Rejected(Reason.WRONG_PREVIOUS_HASH)
