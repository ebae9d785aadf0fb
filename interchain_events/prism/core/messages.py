"""The messages of an AtalaObject: `decode(AtalaObject, raw)` and `encode(message)` (PR-10, PR-20).

The members of a oneof share one attribute, which has the last member that was set. Messages that
are hashed have an attribute `raw` with the bytes as they were received. In a message that was
created here and not decoded, it is empty.
"""

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from interchain_events.prism.core.errors import Undecodable
from interchain_events.prism.core.wire import (
    BYTES,
    VARINT,
    Step,
    bytes_field,
    reader,
    varint,
    varint_field,
)

M = TypeVar("M")


class Usage(IntEnum):
    """The usages of a key."""

    MASTER_KEY = 1
    ISSUING_KEY = 2
    KEY_AGREEMENT_KEY = 3
    AUTHENTICATION_KEY = 4
    REVOCATION_KEY = 5
    CAPABILITY_INVOCATION_KEY = 6
    CAPABILITY_DELEGATION_KEY = 7
    VDR_KEY = 8


class ECKeyData(NamedTuple):
    """A point of a curve by its coordinates, in big endian."""

    curve: str = ""
    x: bytes = b""
    y: bytes = b""


class CompressedECKeyData(NamedTuple):
    """A point of a curve in compressed form."""

    curve: str = ""
    data: bytes = b""


class PublicKey(NamedTuple):
    """A key as operations carry it."""

    id: str = ""
    usage: int = 0
    """The received number, which need not be one of `Usage`."""
    data: ECKeyData | CompressedECKeyData | None = None


class Service(NamedTuple):
    """A service as operations carry it."""

    id: str = ""
    type: str = ""
    service_endpoint: str = ""


class DIDCreationData(NamedTuple):
    """The content of a new DID."""

    public_keys: tuple[PublicKey, ...] = ()
    services: tuple[Service, ...] = ()
    context: tuple[str, ...] = ()


class CreateDID(NamedTuple):
    """The operation CREATE_DID, which creates a DID."""

    did_data: DIDCreationData | None = None


class AddKey(NamedTuple):
    """An action that adds a key."""

    key: PublicKey | None = None


class RemoveKey(NamedTuple):
    """An action that revokes a key."""

    key_id: str = ""


class AddService(NamedTuple):
    """An action that adds a service."""

    service: Service | None = None


class RemoveService(NamedTuple):
    """An action that removes a service."""

    service_id: str = ""


class UpdateService(NamedTuple):
    """An action that changes a service. Values of empty fields remain as they were."""

    service_id: str = ""
    type: str = ""
    service_endpoints: str = ""


class PatchContext(NamedTuple):
    """An action that replaces the context."""

    context: tuple[str, ...] = ()


Action: TypeAlias = AddKey | RemoveKey | AddService | RemoveService | UpdateService | PatchContext
"""An action of an update."""


class UpdateDIDAction(NamedTuple):
    """The message around an action."""

    action: Action | None = None


class UpdateDID(NamedTuple):
    """The operation UPDATE_DID, which changes a DID."""

    previous_operation_hash: bytes = b""
    """The hash of the last operation that was applied to the DID."""
    id: str = ""
    """The DID's suffix."""
    actions: tuple[UpdateDIDAction, ...] = ()


class CredentialBatchData(NamedTuple):
    """A credential batch and its issuer. The batch's id is the hash of `raw`."""

    raw: bytes = b""
    issuer_did: str = ""
    """The suffix of the issuer's DID."""
    merkle_root: bytes = b""


class IssueCredentialBatch(NamedTuple):
    """The operation ISSUE_CREDENTIAL_BATCH, which issues a batch."""

    credential_batch_data: CredentialBatchData | None = None


class RevokeCredentials(NamedTuple):
    """The operation REVOKE_CREDENTIALS, which revokes credentials of a batch."""

    previous_operation_hash: bytes = b""
    credential_batch_id: str = ""
    credentials_to_revoke: tuple[bytes, ...] = ()
    """The hashes of credentials. If it is empty, the whole batch is revoked."""


class DeactivateDID(NamedTuple):
    """The operation DEACTIVATE_DID, which ends a DID."""

    previous_operation_hash: bytes = b""
    id: str = ""
    """The DID's suffix."""


class ProtocolVersion(NamedTuple):
    """A version of the protocol. Numbers are whole varints, as they were received."""

    major_version: int = 0
    minor_version: int = 0


class ProtocolVersionInfo(NamedTuple):
    """A version of the protocol and the block from which it is in force."""

    version_name: str = ""
    effective_since: int = 0
    """The number of a block, as a whole varint."""
    protocol_version: ProtocolVersion | None = None


class ProtocolVersionUpdate(NamedTuple):
    """The operation PROTOCOL_VERSION_UPDATE, which announces a version of the protocol."""

    proposer_did: str = ""
    """The suffix of the DID that announces it."""
    version: ProtocolVersionInfo | None = None


class StatusListEntry(NamedTuple):
    """Data of a storage entry: a status with a name and details."""

    state: int = 0
    """An int64, as the whole varint that was received."""
    name: str = ""
    details: str = ""


StorageData: TypeAlias = bytes | str | StatusListEntry
"""The data of a storage entry: bytes, the content identifier of a file in IPFS, or a status."""


class CreateStorageEntry(NamedTuple):
    """The operation CREATE_STORAGE_ENTRY, which stores data that a DID owns.

    The entry's id is the operation's hash.
    """

    did_prism_hash: bytes = b""
    """The 32 bytes of the DID's suffix."""
    nonce: bytes = b""
    """Any bytes. They give entries with the same data different ids."""
    data: StorageData | None = None


class UpdateStorageEntry(NamedTuple):
    """The operation UPDATE_STORAGE_ENTRY, which replaces the data of an entry."""

    previous_event_hash: bytes = b""
    """The hash of the last operation that was applied to the entry."""
    data: StorageData | None = None


class DeactivateStorageEntry(NamedTuple):
    """The operation DEACTIVATE_STORAGE_ENTRY, which ends an entry."""

    previous_event_hash: bytes = b""
    """The hash of the last operation that was applied to the entry."""


StorageOperation: TypeAlias = CreateStorageEntry | UpdateStorageEntry | DeactivateStorageEntry
"""An operation on a storage entry."""
Operation: TypeAlias = (
    CreateDID
    | UpdateDID
    | IssueCredentialBatch
    | RevokeCredentials
    | ProtocolVersionUpdate
    | DeactivateDID
    | StorageOperation
)
"""An operation of a kind that is processed."""


class AtalaOperation(NamedTuple):
    """The message that is signed."""

    raw: bytes = b""
    operation: Operation | None = None
    """The operation, `None` if its kind is not processed."""


class SignedAtalaOperation(NamedTuple):
    """A signed operation."""

    raw: bytes = b""
    signed_with: str = ""
    """The id of the key that signed it."""
    signature: bytes = b""
    operation: AtalaOperation | None = None


class AtalaBlock(NamedTuple):
    """The operations of an object."""

    operations: tuple[SignedAtalaOperation, ...] = ()


class AtalaObject(NamedTuple):
    """The object that is anchored on a chain."""

    raw: bytes = b""
    block_content: AtalaBlock | None = None


class _Field(NamedTuple):
    """A field of a message."""

    name: str
    kind: type[tuple[object, ...]] | str
    """The class of a message, or `text`, `bytes` or `number`."""
    repeated: bool = False
    is_member: bool = False
    """Whether it is text or bytes in a oneof. An empty value is then encoded, too."""


_STORAGE_DATA: Final = {
    100: _Field("data", "bytes", is_member=True),
    101: _Field("data", "text", is_member=True),
    102: _Field("data", StatusListEntry),
}
"""The members of the oneof `data` of a storage entry."""
_SCHEMA: Final[dict[type, dict[int, _Field]]] = {
    AtalaObject: {4: _Field("block_content", AtalaBlock)},
    AtalaBlock: {2: _Field("operations", SignedAtalaOperation, repeated=True)},
    SignedAtalaOperation: {
        1: _Field("signed_with", "text"),
        2: _Field("signature", "bytes"),
        3: _Field("operation", AtalaOperation),
    },
    AtalaOperation: {
        1: _Field("operation", CreateDID),
        2: _Field("operation", UpdateDID),
        3: _Field("operation", IssueCredentialBatch),
        4: _Field("operation", RevokeCredentials),
        5: _Field("operation", ProtocolVersionUpdate),
        6: _Field("operation", DeactivateDID),
        7: _Field("operation", CreateStorageEntry),
        8: _Field("operation", UpdateStorageEntry),
        9: _Field("operation", DeactivateStorageEntry),
    },
    CreateDID: {1: _Field("did_data", DIDCreationData)},
    DIDCreationData: {
        2: _Field("public_keys", PublicKey, repeated=True),
        3: _Field("services", Service, repeated=True),
        4: _Field("context", "text", repeated=True),
    },
    UpdateDID: {
        1: _Field("previous_operation_hash", "bytes"),
        2: _Field("id", "text"),
        3: _Field("actions", UpdateDIDAction, repeated=True),
    },
    UpdateDIDAction: {
        1: _Field("action", AddKey),
        2: _Field("action", RemoveKey),
        3: _Field("action", AddService),
        4: _Field("action", RemoveService),
        5: _Field("action", UpdateService),
        6: _Field("action", PatchContext),
    },
    AddKey: {1: _Field("key", PublicKey)},
    RemoveKey: {1: _Field("key_id", "text")},
    AddService: {1: _Field("service", Service)},
    RemoveService: {1: _Field("service_id", "text")},
    UpdateService: {
        1: _Field("service_id", "text"),
        2: _Field("type", "text"),
        3: _Field("service_endpoints", "text"),
    },
    PatchContext: {1: _Field("context", "text", repeated=True)},
    IssueCredentialBatch: {1: _Field("credential_batch_data", CredentialBatchData)},
    CredentialBatchData: {1: _Field("issuer_did", "text"), 2: _Field("merkle_root", "bytes")},
    RevokeCredentials: {
        1: _Field("previous_operation_hash", "bytes"),
        2: _Field("credential_batch_id", "text"),
        3: _Field("credentials_to_revoke", "bytes", repeated=True),
    },
    DeactivateDID: {1: _Field("previous_operation_hash", "bytes"), 2: _Field("id", "text")},
    ProtocolVersionUpdate: {
        1: _Field("proposer_did", "text"),
        2: _Field("version", ProtocolVersionInfo),
    },
    ProtocolVersionInfo: {
        1: _Field("version_name", "text"),
        4: _Field("effective_since", "number"),
        5: _Field("protocol_version", ProtocolVersion),
    },
    ProtocolVersion: {
        1: _Field("major_version", "number"),
        2: _Field("minor_version", "number"),
    },
    CreateStorageEntry: {
        1: _Field("did_prism_hash", "bytes"),
        50: _Field("nonce", "bytes"),
        **_STORAGE_DATA,
    },
    UpdateStorageEntry: {2: _Field("previous_event_hash", "bytes"), **_STORAGE_DATA},
    DeactivateStorageEntry: {2: _Field("previous_event_hash", "bytes")},
    StatusListEntry: {
        1: _Field("state", "number"),
        2: _Field("name", "text"),
        3: _Field("details", "text"),
    },
    PublicKey: {
        1: _Field("id", "text"),
        2: _Field("usage", "number"),
        8: _Field("data", ECKeyData),
        9: _Field("data", CompressedECKeyData),
    },
    ECKeyData: {1: _Field("curve", "text"), 2: _Field("x", "bytes"), 3: _Field("y", "bytes")},
    CompressedECKeyData: {1: _Field("curve", "text"), 2: _Field("data", "bytes")},
    Service: {
        1: _Field("id", "text"),
        2: _Field("type", "text"),
        3: _Field("service_endpoint", "text"),
    },
}
"""The fields of each message by their numbers. Other fields are skipped."""


def decode(message: type[M], raw: bytes) -> M:
    """Return the message of a class in `raw`. Raises `Undecodable`."""
    try:
        decoded: M = _READERS[message](raw)
    except UnicodeDecodeError:
        raise Undecodable("text that is not UTF-8") from None
    return decoded


def encode(message: tuple[object, ...]) -> bytes:
    """Return the canonical bytes of a message: its fields in order, without empty ones.

    The attribute `raw` is ignored.
    """
    return b"".join(
        _encoded_field(number, field, getattr(message, field.name))
        for number, field in _SCHEMA[type(message)].items()
    )


def is_canonical(signed: SignedAtalaOperation) -> bool:
    """Return whether a SignedAtalaOperation was encoded canonically (PR-21, check 1).

    It must have the fields 1, 2 and 3 in order, minimally encoded, and no others.
    """
    raw, name, signature, operation = signed
    # 0x0a, 0x12 and 0x1a are the tags of fields 1, 2 and 3 with bytes. The message is encoded from
    # its end, and then compared.
    canonical = b"" if operation is None else b"\x1a" + varint(len(operation.raw)) + operation.raw
    if signature:
        canonical = b"\x12" + varint(len(signature)) + signature + canonical
    if name:
        encoded = name.encode()
        canonical = b"\x0a" + varint(len(encoded)) + encoded + canonical
    return canonical == raw


def _encoded_field(number: int, field: _Field, value: Any) -> bytes:
    """Return the bytes of a field, empty for an empty value."""
    if field.repeated:
        return b"".join(bytes_field(number, _encoded(item)) for item in value)
    if field.kind == "number":
        return varint_field(number, value) if value else b""
    if field.is_member:
        is_set = isinstance(value, str if field.kind == "text" else bytes)
        return bytes_field(number, _encoded(value)) if is_set else b""
    if not isinstance(field.kind, str):
        return bytes_field(number, encode(value)) if type(value) is field.kind else b""
    return bytes_field(number, _encoded(value)) if value else b""


def _encoded(value: Any) -> bytes:
    """Return the bytes of a value."""
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else encode(value)


_CONVERTERS: Final[dict[str, Callable[[bytes], Any] | None]] = {
    "text": bytes.decode,
    "bytes": None,
    "number": None,
}
"""The function that makes a value from bytes, for fields that are not messages."""
_READERS: Final[dict[Any, Callable[[bytes], Any]]] = {}
"""The reader of each message."""


def _reader(message: Any) -> Callable[[bytes], Any]:
    """Return the reader of a message. It is created once, after those of the messages inside it."""
    if message not in _READERS:
        steps: dict[int, Step] = {}
        for number, field in _SCHEMA[message].items():
            tag = number << 3 | (VARINT if field.kind == "number" else BYTES)
            if isinstance(field.kind, str):
                convert = _CONVERTERS[field.kind]
            else:
                convert = _reader(field.kind)
            steps[tag] = (message._fields.index(field.name), field.repeated, convert)
        make = partial(tuple.__new__, message)
        _READERS[message] = reader(steps, message(), make, is_hashed="raw" in message._fields)
    return _READERS[message]


for _message in _SCHEMA:
    _reader(_message)
