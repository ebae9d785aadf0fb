"""The form that an operation must have (PR-24).

The functions raise `Rejected` with MALFORMED_OPERATION and an explanation.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from interchain_events.prism.core import messages as m
from interchain_events.prism.core import signatures
from interchain_events.prism.core.errors import Reason, Rejected

SECP256K1: Final = "secp256k1"
"""The name of the curve of keys that sign."""
RAW_CURVES: Final = ("Ed25519", "X25519")
"""The curves whose keys are 32 bytes."""
MOST_ACTIVE: Final = 50
"""The greatest number of a DID's active keys, and of its active services."""
_MOST_ID: Final = 50
"""The greatest length of the id of a key or service, in characters."""
_MOST_TYPE: Final = 100
"""The greatest length of a service's type, in characters."""
_MOST_ENDPOINT: Final = 300
"""The greatest length of a service's endpoint, in characters."""
_HASH_BYTES: Final = 32
"""The size of a hash, in bytes."""
_MASTER = int(m.Usage.MASTER_KEY)
_LAST = int(m.Usage.VDR_KEY)
"""Plain numbers, because each use of an enumeration's member costs a lookup."""

# The repetitions are possessive. The next character alone decides how a text continues, so
# backtracking would be useless.
_ID: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]++|%[0-9A-Fa-f]{2})++")
_TYPE: Final = re.compile(r"[A-Za-z0-9_-]+( +[A-Za-z0-9_-]+)*")
_URI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]++|%[0-9A-Fa-f]{2})++"
)


def check(operation: m.Operation) -> None:
    """Check everything that PR-24 requires of an operation.

    This and the other checks of this module raise `Rejected` with `MALFORMED_OPERATION`.
    """
    match operation:
        case m.CreateDID(did_data):
            if did_data is None:
                _malformed("did_data is missing")
            _keys(did_data.public_keys)
            _services(did_data.services)
            _unique(did_data.context, "context")
        case m.UpdateDID(previous, _, actions):
            _hash(previous, "previous_operation_hash")
            if not actions:
                _malformed("there are no actions")
            for action in actions:
                _action(action.action)
        case m.IssueCredentialBatch(data):
            _hash(b"" if data is None else data.merkle_root, "merkle_root")
        case m.RevokeCredentials(previous, _, hashes):
            _hash(previous, "previous_operation_hash")
            for credential_hash in hashes:
                _hash(credential_hash, "credentials_to_revoke")
        case m.DeactivateDID(previous, _):
            _hash(previous, "previous_operation_hash")
        case m.CreateStorageEntry(data=None) | m.UpdateStorageEntry(data=None):
            _malformed("data is missing")
        # The hashes in storage operations name the DID or the entry, so they have been checked
        # before, with the operation's shape. Announcements of a version may have any content.
        case m.CreateStorageEntry() | m.UpdateStorageEntry() | m.DeactivateStorageEntry():
            pass
        case m.ProtocolVersionUpdate():
            pass


def key_point(key: m.PublicKey) -> tuple[str, bytes] | None:
    """Return the curve and the public key of a key, `None` if its data cannot be used.

    The public key is a compressed point of secp256k1, or 32 bytes for other curves.
    """
    data = key.data
    if data is None:
        return None
    if data.curve == SECP256K1:
        if isinstance(data, m.ECKeyData):
            point = signatures.compressed(data.x, data.y)
        else:
            point = signatures.on_curve(data.data)
        return None if point is None else (SECP256K1, point)
    raw = data.data if isinstance(data, m.CompressedECKeyData) else data.x
    if data.curve not in RAW_CURVES or len(raw) != _HASH_BYTES:
        return None
    return data.curve, raw


def _keys(keys: Sequence[m.PublicKey]) -> None:
    """Check the keys of a new DID."""
    if not 1 <= len(keys) <= MOST_ACTIVE:
        _malformed(f"a DID must have 1 to {MOST_ACTIVE} keys, not {len(keys)}")
    for key in keys:
        _key(key)
    _unique([key.id for key in keys], "key id")
    if _MASTER not in [key.usage for key in keys]:
        _malformed("there is no master key")


def _key(key: m.PublicKey) -> None:
    """Check one key."""
    _id(key.id, "key id")
    if not _MASTER <= key.usage <= _LAST:
        _malformed(f"key {key.id}: there is no usage {key.usage}")
    point = key_point(key)
    if point is None or (key.usage == _MASTER and point[0] != SECP256K1):
        _malformed(f"key {key.id}: its data is not a key of a curve that its usage allows")


def _services(services: Sequence[m.Service]) -> None:
    """Check the services of a new DID."""
    if len(services) > MOST_ACTIVE:
        _malformed(f"a DID may have at most {MOST_ACTIVE} services, not {len(services)}")
    for service in services:
        _service(service)
    _unique([service.id for service in services], "service id")


def _service(service: m.Service) -> None:
    """Check one service."""
    _id(service.id, "service id")
    _service_type(service.type)
    _endpoint(service.service_endpoint)


def _action(action: m.Action | None) -> None:
    """Check one action of an update."""
    match action:
        case None:
            _malformed("an action is empty")
        case m.AddKey(key):
            if key is None:
                _malformed("add_key has no key")
            _key(key)
        case m.RemoveKey(key_id):
            _id(key_id, "key id")
        case m.AddService(service):
            if service is None:
                _malformed("add_service has no service")
            _service(service)
        case m.RemoveService(service_id):
            _id(service_id, "service id")
        case m.UpdateService(service_id, kind, endpoints):
            _id(service_id, "service id")
            if not kind and not endpoints:
                _malformed("update_service changes nothing")
            if kind:
                _service_type(kind)
            if endpoints:
                _endpoint(endpoints)
        case m.PatchContext(context):
            _unique(context, "context")


def _id(text: str, what: str) -> None:
    """Check the form of an id. `what` names it in the error."""
    if len(text) > _MOST_ID or not _ID.fullmatch(text):
        _malformed(f"{what} {text[:100]!r} is not valid")


def _service_type(text: str) -> None:
    """Check a service's type, which is one name or a JSON list of names."""
    if len(text) > _MOST_TYPE:
        _malformed("a service type has more than 100 characters")
    if not _TYPE.fullmatch(text):
        names = _json(text)
        if not isinstance(names, list) or not names or not all(_is(_TYPE, name) for name in names):
            _malformed(f"service type {text!r} is not valid")


def _endpoint(text: str) -> None:
    """Check a service's endpoint, which is a URI, a JSON object, or a JSON list of these."""
    if len(text) > _MOST_ENDPOINT:
        _malformed("an endpoint has more than 300 characters")
    if _URI.fullmatch(text):
        return
    value = _json(text)
    if isinstance(value, dict):
        value = [value]
    endpoints = value if isinstance(value, list) else []
    if not endpoints or not all(isinstance(item, dict) or _is(_URI, item) for item in endpoints):
        _malformed(f"endpoint {text!r} is not valid")


def _hash(value: bytes, what: str) -> None:
    """Check the length of a hash. `what` names it in the error."""
    if len(value) != _HASH_BYTES:
        _malformed(f"{what} has {len(value)} bytes, not {_HASH_BYTES}")


def _unique(values: Sequence[str], what: str) -> None:
    """Check that no value occurs twice. `what` names a value in the error."""
    if len({*values}) < len(values):
        _malformed(f"a {what} occurs twice")


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _json(text: str) -> Any:
    """Return the value of JSON, `None` if the text is not JSON."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(name)


def _malformed(words: str) -> NoReturn:
    raise Rejected(Reason.MALFORMED_OPERATION, words)
