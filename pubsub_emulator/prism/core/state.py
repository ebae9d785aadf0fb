"""DIDs and credential batches, and what operations do to them (PR-25). Values are never changed, only replaced."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pubsub_emulator.prism.core import messages as m
from pubsub_emulator.prism.core.errors import Reason, Rejected
from pubsub_emulator.prism.core.well_formed import MOST_ACTIVE, key_point

USAGES: Final = {int(each): each for each in m.Usage}  #: By their numbers
_MASTER: Final = m.Usage.MASTER_KEY  # named once: an enumeration looks its members up each time


class Key(NamedTuple):
    """A key of a DID; `point` is compressed on secp256k1, else 32 bytes."""

    usage: m.Usage
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


# Effects of well-formed operations


def created(operation: m.CreateDID, operation_hash: bytes) -> Did:
    """The DID that CREATE_DID makes."""
    data = operation.did_data
    if data is None:
        raise Rejected(Reason.MALFORMED_OPERATION)
    keys = {each.id: _key(each) for each in data.public_keys}
    services = {each.id: DidService(each.type, each.service_endpoint) for each in data.services}
    return Did(operation_hash, keys, services, data.context)


def updated(did: Did, operation: m.UpdateDID, operation_hash: bytes) -> Did:
    """The DID after UPDATE_DID, all of it or none. Raises `Rejected`."""
    draft = _Draft(dict(did.keys), dict(did.services), did.context)
    for each in operation.actions:
        if each.action is not None:
            _act(draft, each.action)
    active = [each for each in draft.keys.values() if each.active]
    if _MASTER not in [each.usage for each in active]:
        raise Rejected(Reason.LAST_MASTER_KEY)
    if len(active) > MOST_ACTIVE:
        raise Rejected(Reason.TOO_MANY_KEYS)
    if len(draft.services) > MOST_ACTIVE and sum(each.active for each in draft.services.values()) > MOST_ACTIVE:
        raise Rejected(Reason.TOO_MANY_SERVICES)
    return Did(operation_hash, draft.keys, draft.services, draft.context)


def deactivated(did: Did, _operation: m.DeactivateDID, operation_hash: bytes) -> Did:
    """The DID after DEACTIVATE_DID: nothing of it is active, and its batches stay."""
    keys = {name: each._replace(active=False) for name, each in did.keys.items()}
    services = {name: each._replace(active=False) for name, each in did.services.items()}
    return Did(operation_hash, keys, services, ())


def revoked(batch: Batch, operation: m.RevokeCredentials) -> Batch:
    """The batch after REVOKE_CREDENTIALS. Raises `Rejected`."""
    if batch.revoked:
        raise Rejected(Reason.BATCH_ALREADY_REVOKED)
    if not operation.credentials_to_revoke:
        return batch._replace(revoked=True)
    return batch._replace(revoked_hashes=batch.revoked_hashes | {*operation.credentials_to_revoke})


@dataclass(slots=True)
class _Draft:
    """A DID while an update is applied to it."""

    keys: dict[str, Key]
    services: dict[str, DidService]
    context: tuple[str, ...]


def _act(did: _Draft, action: m.Action) -> None:
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
    found = did.services.get(service_id)
    if found is None or not found.active:
        raise Rejected(Reason.SERVICE_NOT_ACTIVE)
    return found


def _key(key: m.PublicKey) -> Key:
    found = key_point(key)
    if found is None:
        raise Rejected(Reason.MALFORMED_OPERATION)
    return Key(USAGES[key.usage], *found)
