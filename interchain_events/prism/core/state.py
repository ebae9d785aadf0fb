"""DIDs and credential batches, and the effects of operations on them (PR-25).

Values are never changed in place. Each effect returns a new one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from interchain_events.prism.core import messages as m
from interchain_events.prism.core.errors import Reason, Rejected
from interchain_events.prism.core.well_formed import MOST_ACTIVE, key_point

USAGES: Final = {int(each): each for each in m.Usage}
"""The usages by their numbers."""
_MASTER: Final = m.Usage.MASTER_KEY
"""Under a name of its own, because an enumeration looks its members up at each use."""


class Key(NamedTuple):
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
    """The hash of the last operation that was applied to it."""
    keys: Mapping[str, Key]
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
    """The credentials that were revoked by their hashes."""


class StorageEntry(NamedTuple):
    """The state of a storage entry."""

    owner: str
    """The suffix of the DID in whose name it is."""
    last_hash: bytes
    """The hash of the last operation that was applied to it."""
    data: m.StorageData
    """The last data, also of an entry that has ended."""
    active: bool = True
    """Whether no operation on the entry has ended it. The end of its DID ends it, too."""


def is_deactivated(did: Did) -> bool:
    """Return whether a DID has ended. An update always leaves an active master key."""
    return not any(each.active for each in did.keys.values())


# Effects of well-formed operations


def created(operation: m.CreateDID, operation_hash: bytes) -> Did:
    """Return the DID that a CREATE_DID creates."""
    data = operation.did_data
    if data is None:
        raise Rejected(Reason.MALFORMED_OPERATION)
    keys = {each.id: _key(each) for each in data.public_keys}
    services = {each.id: DidService(each.type, each.service_endpoint) for each in data.services}
    return Did(operation_hash, keys, services, data.context)


def updated(did: Did, operation: m.UpdateDID, operation_hash: bytes) -> Did:
    """Return a DID after an UPDATE_DID.

    Raises `Rejected` if an action fails. Then no action has an effect.
    """
    draft = _Draft(dict(did.keys), dict(did.services), did.context)
    for each in operation.actions:
        if each.action is not None:
            _act(draft, each.action)
    active = [each for each in draft.keys.values() if each.active]
    if _MASTER not in [each.usage for each in active]:
        raise Rejected(Reason.LAST_MASTER_KEY)
    if len(active) > MOST_ACTIVE:
        raise Rejected(Reason.TOO_MANY_KEYS)
    # Active services are counted only if there can be too many.
    if (
        len(draft.services) > MOST_ACTIVE
        and sum(each.active for each in draft.services.values()) > MOST_ACTIVE
    ):
        raise Rejected(Reason.TOO_MANY_SERVICES)
    return Did(operation_hash, draft.keys, draft.services, draft.context)


def deactivated(did: Did, _operation: m.DeactivateDID, operation_hash: bytes) -> Did:
    """Return a DID after a DEACTIVATE_DID: nothing in it is active, but its batches remain."""
    keys = {name: each._replace(active=False) for name, each in did.keys.items()}
    services = {name: each._replace(active=False) for name, each in did.services.items()}
    return Did(operation_hash, keys, services, ())


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

    keys: dict[str, Key]
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
            found = did.keys.get(key_id)
            if found is None or not found.active:
                raise Rejected(Reason.KEY_NOT_ACTIVE)
            did.keys[key_id] = found._replace(active=False)
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
    found = did.services.get(service_id)
    if found is None or not found.active:
        raise Rejected(Reason.SERVICE_NOT_ACTIVE)
    return found


def _key(key: m.PublicKey) -> Key:
    """Return the state of a new key."""
    found = key_point(key)
    if found is None:
        raise Rejected(Reason.MALFORMED_OPERATION)
    return Key(USAGES[key.usage], *found)
