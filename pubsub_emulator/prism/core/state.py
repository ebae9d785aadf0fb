"""DIDs and credential batches, and what operations do to them (PR-25). Values are never changed, only replaced."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from pubsub_emulator.prism.core.errors import Reason, reject
from pubsub_emulator.prism.core.messages import (
    Action,
    AddKey,
    AddService,
    CreateDID,
    DeactivateDID,
    PatchContext,
    PublicKey,
    RemoveKey,
    RemoveService,
    RevokeCredentials,
    UpdateDID,
    UpdateService,
    Usage,
)
from pubsub_emulator.prism.core.well_formed import MOST_ACTIVE, key_point

USAGES: Final = {int(each): each for each in Usage}
"""By their numbers."""
_MASTER: Final = Usage.MASTER_KEY
"""Named once: an enumeration looks its members up each time."""


class Key(NamedTuple):
    """A key of a DID; `point` is compressed on secp256k1, else 32 bytes."""

    usage: Usage
    curve: str
    point: bytes
    active: bool = True


class DidService(NamedTuple):
    """A service of a DID."""

    type: str
    endpoint: str
    active: bool = True


class Did(NamedTuple):
    """A DID after its last applied operation, whose hash is `last_hash`."""

    last_hash: bytes
    keys: Mapping[str, Key]
    services: Mapping[str, DidService]
    context: tuple[str, ...] = ()


class Batch(NamedTuple):
    """A batch of credentials; `revoked` is the whole of it."""

    issuer: str
    merkle_root: bytes
    issue_hash: bytes
    revoked: bool = False
    revoked_hashes: frozenset[bytes] = frozenset()


class DidLedger(Protocol):
    """The state that processing reads and writes."""

    def did(self, suffix: str) -> Did | None:
        """A DID by its suffix."""

    def batch(self, batch_id: str) -> Batch | None:
        """A batch by its id."""

    def is_applied_hash(self, operation_hash: bytes) -> bool:
        """Whether an operation of this hash was applied."""

    def is_applied(self, operation_id: bytes) -> bool:
        """Whether this operation was applied."""

    def is_rejected(self, operation_id: bytes) -> bool:
        """Whether this operation was rejected."""

    def put_did(self, suffix: str, did: Did) -> None:
        """Set a DID."""

    def put_batch(self, batch_id: str, batch: Batch) -> None:
        """Set a batch."""

    def note(self, operation_id: bytes, operation_hash: bytes | None, *, applied: bool) -> None:
        """Remember that an operation was applied or rejected."""


@dataclass(slots=True)
class MemoryLedger:
    """A ledger without a database."""

    dids: dict[str, Did] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    applied_hashes: set[bytes] = field(default_factory=set)
    applied: set[bytes] = field(default_factory=set)
    rejected: set[bytes] = field(default_factory=set)

    def did(self, suffix: str) -> Did | None:
        """A DID by its suffix."""
        return self.dids.get(suffix)

    def batch(self, batch_id: str) -> Batch | None:
        """A batch by its id."""
        return self.batches.get(batch_id)

    def is_applied_hash(self, operation_hash: bytes) -> bool:
        """Whether an operation with this hash was applied."""
        return operation_hash in self.applied_hashes

    def is_applied(self, operation_id: bytes) -> bool:
        """Whether this operation was applied."""
        return operation_id in self.applied

    def is_rejected(self, operation_id: bytes) -> bool:
        """Whether this operation was rejected."""
        return operation_id in self.rejected

    def put_did(self, suffix: str, did: Did) -> None:
        """Set a DID."""
        self.dids[suffix] = did

    def put_batch(self, batch_id: str, batch: Batch) -> None:
        """Set a batch."""
        self.batches[batch_id] = batch

    def note(self, operation_id: bytes, operation_hash: bytes | None, *, applied: bool) -> None:
        """Record that an operation was applied or rejected."""
        (self.applied if applied else self.rejected).add(operation_id)
        if applied and operation_hash is not None:
            self.applied_hashes.add(operation_hash)


# Effects of well-formed operations


def created(operation: CreateDID, operation_hash: bytes) -> Did:
    """The DID that CREATE_DID makes."""
    data = operation.did_data
    if data is None:
        reject(Reason.MALFORMED_OPERATION)
    keys = {each.id: _key(each) for each in data.public_keys}
    services = {each.id: DidService(each.type, each.service_endpoint) for each in data.services}
    return Did(operation_hash, keys, services, data.context)


def updated(did: Did, operation: UpdateDID, operation_hash: bytes) -> Did:
    """The DID after UPDATE_DID, all of it or none. Raises `Rejected`."""
    draft = _Draft(dict(did.keys), dict(did.services), did.context)
    for each in operation.actions:
        if each.action is not None:
            _act(draft, each.action)
    active = [each for each in draft.keys.values() if each.active]
    if _MASTER not in [each.usage for each in active]:
        reject(Reason.LAST_MASTER_KEY)
    if len(active) > MOST_ACTIVE:
        reject(Reason.TOO_MANY_KEYS)
    if len(draft.services) > MOST_ACTIVE and sum(each.active for each in draft.services.values()) > MOST_ACTIVE:
        reject(Reason.TOO_MANY_SERVICES)
    return Did(operation_hash, draft.keys, draft.services, draft.context)


def deactivated(did: Did, _operation: DeactivateDID, operation_hash: bytes) -> Did:
    """The DID after DEACTIVATE_DID: nothing of it is active, and its batches stay."""
    keys = {name: each._replace(active=False) for name, each in did.keys.items()}
    services = {name: each._replace(active=False) for name, each in did.services.items()}
    return Did(operation_hash, keys, services, ())


def revoked(batch: Batch, operation: RevokeCredentials) -> Batch:
    """The batch after REVOKE_CREDENTIALS. Raises `Rejected`."""
    if batch.revoked:
        reject(Reason.BATCH_ALREADY_REVOKED)
    if not operation.credentials_to_revoke:
        return batch._replace(revoked=True)
    return batch._replace(revoked_hashes=batch.revoked_hashes | {*operation.credentials_to_revoke})


@dataclass(slots=True)
class _Draft:
    """A DID while an update is applied to it."""

    keys: dict[str, Key]
    services: dict[str, DidService]
    context: tuple[str, ...]


def _act(did: _Draft, action: Action) -> None:
    match action:
        case AddKey(key):
            if key is None or key.id in did.keys:
                reject(Reason.KEY_EXISTS)
            did.keys[key.id] = _key(key)
        case RemoveKey(key_id):
            found = did.keys.get(key_id)
            if found is None or not found.active:
                reject(Reason.KEY_NOT_ACTIVE)
            did.keys[key_id] = found._replace(active=False)
        case AddService(service):
            if service is None or service.id in did.services:
                reject(Reason.SERVICE_EXISTS)
            did.services[service.id] = DidService(service.type, service.service_endpoint)
        case RemoveService(service_id):
            did.services[service_id] = _active_service(did, service_id)._replace(active=False)
        case UpdateService(service_id, kind, endpoints):
            old = _active_service(did, service_id)
            did.services[service_id] = DidService(kind or old.type, endpoints or old.endpoint)
        case PatchContext(context):
            if not context and not did.context:
                reject(Reason.CONTEXT_EMPTY)
            did.context = context


def _active_service(did: _Draft, service_id: str) -> DidService:
    found = did.services.get(service_id)
    if found is None or not found.active:
        reject(Reason.SERVICE_NOT_ACTIVE)
    return found


def _key(key: PublicKey) -> Key:
    found = key_point(key)
    if found is None:
        reject(Reason.MALFORMED_OPERATION)
    return Key(USAGES[key.usage], *found)
