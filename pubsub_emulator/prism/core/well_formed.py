"""Rules of well-formed operations (PR-24). Functions raise `Rejected` with MALFORMED_OPERATION and a reason."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from pubsub_emulator.prism.core import messages as m
from pubsub_emulator.prism.core import signatures
from pubsub_emulator.prism.core.errors import Reason, Rejected

SECP256K1: Final = "secp256k1"
RAW_CURVES: Final = ("Ed25519", "X25519")
MOST_ACTIVE: Final = 50  #: Keys, and services, that a DID may have at once
_MOST_ID: Final = 50
_MOST_TYPE: Final = 100
_MOST_ENDPOINT: Final = 300
_HASH: Final = 32
_MASTER, _LAST = int(m.Usage.MASTER_KEY), int(m.Usage.VDR_KEY)
"""Plain numbers: an enumeration looks its members up each time."""

# Runs are possessive: the next character alone says how a text goes on, so there is nothing to try again.
_ID: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]++|%[0-9A-Fa-f]{2})++")
_TYPE: Final = re.compile(r"[A-Za-z0-9_-]+( +[A-Za-z0-9_-]+)*")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]++|%[0-9A-Fa-f]{2})++")


def check(operation: m.Operation) -> None:
    """Everything that PR-24 asks of an operation."""
    match operation:
        case m.CreateDID(did_data):
            if did_data is None:
                _malformed("no did_data")
            _keys(did_data.public_keys)
            _services(did_data.services)
            _unique(did_data.context, "context")
        case m.UpdateDID(previous, _, actions):
            _hash(previous, "previous_operation_hash")
            if not actions:
                _malformed("no actions")
            for each in actions:
                _action(each.action)
        case m.IssueCredentialBatch(data):
            _hash(b"" if data is None else data.merkle_root, "merkle_root")
        case m.RevokeCredentials(previous, _, hashes):
            _hash(previous, "previous_operation_hash")
            for each_hash in hashes:
                _hash(each_hash, "credentials_to_revoke")
        case m.DeactivateDID(previous, _):
            _hash(previous, "previous_operation_hash")


def key_point(key: m.PublicKey) -> tuple[str, bytes] | None:
    """Curve and public key: a compressed point of secp256k1, or 32 bytes. `None` where the key data is not usable."""
    data = key.data
    if data is None:
        return None
    if data.curve == SECP256K1:
        found = (
            signatures.compressed(data.x, data.y) if isinstance(data, m.ECKeyData) else signatures.on_curve(data.data)
        )
        return None if found is None else (SECP256K1, found)
    raw = data.data if isinstance(data, m.CompressedECKeyData) else data.x
    return (data.curve, raw) if data.curve in RAW_CURVES and len(raw) == _HASH else None


def _keys(keys: Sequence[m.PublicKey]) -> None:
    if not 1 <= len(keys) <= MOST_ACTIVE:
        _malformed(f"{len(keys)} keys")
    for each in keys:
        _key(each)
    _unique([each.id for each in keys], "key id")
    if _MASTER not in [each.usage for each in keys]:
        _malformed("no master key")


def _key(key: m.PublicKey) -> None:
    _id(key.id, "key id")
    if not _MASTER <= key.usage <= _LAST:
        _malformed(f"key {key.id}: usage {key.usage}")
    point = key_point(key)
    if point is None or (key.usage == _MASTER and point[0] != SECP256K1):
        _malformed(f"key {key.id}: its data")


def _services(services: Sequence[m.Service]) -> None:
    if len(services) > MOST_ACTIVE:
        _malformed(f"{len(services)} services")
    for each in services:
        _service(each)
    _unique([each.id for each in services], "service id")


def _service(service: m.Service) -> None:
    _id(service.id, "service id")
    _service_type(service.type)
    _endpoint(service.service_endpoint)


def _action(action: m.Action | None) -> None:
    match action:
        case None:
            _malformed("an empty action")
        case m.AddKey(key):
            if key is None:
                _malformed("add_key without a key")
            _key(key)
        case m.RemoveKey(key_id):
            _id(key_id, "key id")
        case m.AddService(service):
            if service is None:
                _malformed("add_service without a service")
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
    if len(text) > _MOST_ID or not _ID.fullmatch(text):
        _malformed(f"{what} {text!r}")


def _service_type(text: str) -> None:
    if len(text) > _MOST_TYPE:
        _malformed("a service type of more than 100 characters")
    if not _TYPE.fullmatch(text):
        listed = _json(text)
        if not isinstance(listed, list) or not listed or not all(_is(_TYPE, each) for each in listed):
            _malformed(f"service type {text!r}")


def _endpoint(text: str) -> None:
    if len(text) > _MOST_ENDPOINT:
        _malformed("an endpoint of more than 300 characters")
    if _URI.fullmatch(text):
        return
    found = _json(text)
    listed = found if isinstance(found, list) else [found] if isinstance(found, dict) else []
    if not listed or not all(isinstance(each, dict) or _is(_URI, each) for each in listed):
        _malformed(f"endpoint {text!r}")


def _hash(value: bytes, what: str) -> None:
    if len(value) != _HASH:
        _malformed(f"{what} of {len(value)} bytes")


def _unique(values: Sequence[str], what: str) -> None:
    if len({*values}) < len(values):
        _malformed(f"a {what} twice")


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _malformed(words: str) -> NoReturn:
    raise Rejected(Reason.MALFORMED_OPERATION, words)
