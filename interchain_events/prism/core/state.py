"""DIDs and credential batches, and the effects of operations on them (PR-25).

Values are immutable. Each effect returns a new one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from interchain_events.prism.core import messages as m
from interchain_events.prism.core.errors import Reason, Rejected
from interchain_events.prism.core.well_formed import MOST_ACTIVE, key_point

USAGES: Final = {int(usage): usage for usage in m.Usage}
"""The usages by their numbers."""
_MASTER: Final = m.Usage.MASTER_KEY
"""The member in a variable, because each use of an enumeration's member costs a lookup."""


class DidKey(NamedTuple):
    """A key of a DID."""

    usage: m.Usage
    curve: str
    point: bytes
    """A compressed point of secp256k1, or 32 bytes for other curves."""
    active: bool = True


class DidService(NamedTuple):
    """A service of a DID."""

    type: str
    endpoint: str
    active: bool = True


class Did(NamedTuple):
    """The state of a DID."""

    last_hash: bytes
    """The hash of the last operation that was applied to the DID."""
    keys: Mapping[str, DidKey]
    services: Mapping[str, DidService]
    context: tuple[str, ...] = ()


class Batch(NamedTuple):
    """The state of a credential batch."""

    issuer: str
    """The suffix of the issuer's DID."""
    merkle_root: bytes
    issue_hash: bytes
    revoked: bool = False
    """Whether the whole batch was revoked."""
    revoked_hashes: frozenset[bytes] = frozenset()
    """The hashes of the credentials that were revoked one by one."""


class StorageEntry(NamedTuple):
    """The state of a storage entry."""

    owner: str
    """The suffix of the DID that owns the entry."""
    last_hash: bytes
    """The hash of the last operation that was applied to the entry."""
    data: m.StorageData
    """The last data, also if the entry has ended."""
    active: bool = True
    """False if an operation has ended the entry. If its DID has ended, the entry has ended, too."""


def is_deactivated(did: Did) -> bool:
    """Return whether a DID has ended: it has no active keys. An update always leaves one."""
    return not any(key.active for key in did.keys.values())


# Effects of well-formed operations


def created(operation: m.CreateDID, operation_hash: bytes) -> Did:
    """Return the DID that a CREATE_DID creates. Raises `Rejected`."""
    data = operation.did_data
    if data is None:
        raise Rejected(Reason.MALFORMED_OPERATION)
    keys = {key.id: _key(key) for key in data.public_keys}
    services = {
        service.id: DidService(service.type, service.service_endpoint) for service in data.services
    }
    return Did(operation_hash, keys, services, data.context)


def updated(did: Did, operation: m.UpdateDID, operation_hash: bytes) -> Did:
    """Return a DID after an UPDATE_DID.

    Raises `Rejected` if any action fails.
    """
    draft = _Draft(dict(did.keys), dict(did.services), did.context)
    for message in operation.actions:
        if message.action is not None:
            _act(draft, message.action)
    active_keys = [key for key in draft.keys.values() if key.active]
    if _MASTER not in [key.usage for key in active_keys]:
        raise Rejected(Reason.LAST_MASTER_KEY)
    if len(active_keys) > MOST_ACTIVE:
        raise Rejected(Reason.TOO_MANY_KEYS)
    # Active services are counted only if there can be too many.
    if len(draft.services) > MOST_ACTIVE:
        active_services = sum(service.active for service in draft.services.values())
        if active_services > MOST_ACTIVE:
            raise Rejected(Reason.TOO_MANY_SERVICES)
    return Did(operation_hash, draft.keys, draft.services, draft.context)


def deactivated(did: Did, _operation: m.DeactivateDID, operation_hash: bytes) -> Did:
    """Return a DID after a DEACTIVATE_DID. Its keys and services end, but its batches remain."""
    keys = {name: key._replace(active=False) for name, key in did.keys.items()}
    services = {name: service._replace(active=False) for name, service in did.services.items()}
    return Did(operation_hash, keys, services, context=())


def revoked(batch: Batch, operation: m.RevokeCredentials) -> Batch:
    """Return a batch after a REVOKE_CREDENTIALS. Raises `Rejected`."""
    if batch.revoked:
        raise Rejected(Reason.BATCH_ALREADY_REVOKED)
    if not operation.credentials_to_revoke:
        return batch._replace(revoked=True)
    return batch._replace(revoked_hashes=batch.revoked_hashes | {*operation.credentials_to_revoke})


def stored(
    entry: StorageEntry | None, owner: str, operation: m.StorageOperation, operation_hash: bytes
) -> StorageEntry:
    """Return a storage entry after an operation on it. `owner` is the suffix of the DID.

    Raises `Rejected`.
    """
    if isinstance(operation, m.CreateStorageEntry):
        return StorageEntry(owner, operation_hash, _data(operation))
    if entry is None:
        raise Rejected(Reason.UNKNOWN_STORAGE_ENTRY)
    if not entry.active:
        raise Rejected(Reason.STORAGE_ENTRY_NOT_ACTIVE)
    if isinstance(operation, m.UpdateStorageEntry):
        return entry._replace(last_hash=operation_hash, data=_data(operation))
    return entry._replace(last_hash=operation_hash, active=False)


def _data(operation: m.CreateStorageEntry | m.UpdateStorageEntry) -> m.StorageData:
    """Return the data of an operation. Raises `Rejected` if it has none."""
    if operation.data is None:
        raise Rejected(Reason.MALFORMED_OPERATION)
    return operation.data


@dataclass(slots=True)
class _Draft:
    """A DID while the actions of an update are applied to it."""

    keys: dict[str, DidKey]
    services: dict[str, DidService]
    context: tuple[str, ...]


def _act(did: _Draft, action: m.Action) -> None:
    """Apply one action to a draft. Raises `Rejected`."""
    match action:
        case m.AddKey(key):
            if key is None or key.id in did.keys:
                raise Rejected(Reason.KEY_EXISTS)
            did.keys[key.id] = _key(key)
        case m.RemoveKey(key_id):
            removed = did.keys.get(key_id)
            if removed is None or not removed.active:
                raise Rejected(Reason.KEY_NOT_ACTIVE)
            did.keys[key_id] = removed._replace(active=False)
        case m.AddService(service):
            if service is None or service.id in did.services:
                raise Rejected(Reason.SERVICE_EXISTS)
            did.services[service.id] = DidService(service.type, service.service_endpoint)
        case m.RemoveService(service_id):
            did.services[service_id] = _active_service(did, service_id)._replace(active=False)
        case m.UpdateService(service_id, kind, endpoints):
            old = _active_service(did, service_id)
            did.services[service_id] = DidService(kind or old.type, endpoints or old.endpoint)
        case m.PatchContext(context):
            if not context and not did.context:
                raise Rejected(Reason.CONTEXT_EMPTY)
            did.context = context


def _active_service(did: _Draft, service_id: str) -> DidService:
    """Return an active service. Raises `Rejected` if there is none with this id."""
    service = did.services.get(service_id)
    if service is None or not service.active:
        raise Rejected(Reason.SERVICE_NOT_ACTIVE)
    return service


def _key(key: m.PublicKey) -> DidKey:
    """Return the state of a new key. Raises `Rejected` if its data cannot be used."""
    curve_and_point = key_point(key)
    if curve_and_point is None:
        raise Rejected(Reason.MALFORMED_OPERATION)
    return DidKey(USAGES[key.usage], *curve_and_point)
