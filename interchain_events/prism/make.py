"""The creation of keys, DIDs and signed operations.

    master = Secret.random()
    created = create_did({"master0": (Usage.MASTER_KEY, master)})
    added = [AddKey(public_key("issuing0", Usage.ISSUING_KEY, issuing))]
    updated = update_did(created.suffix, created.hash, added, "master0", master)
    created.did, [each.raw for each in (created, updated)]       # the bytes for ScheduleOperations

The functions do not check whether a node would apply the operations, because tests also need those
that it would reject.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from interchain_events.prism.core import messages as m
from interchain_events.prism.core import signatures
from interchain_events.prism.core.errors import PrismError
from interchain_events.prism.core.identifiers import METHOD, long_form, sha256
from interchain_events.prism.core.well_formed import SECP256K1
from interchain_events.prism.core.wire import bytes_field


class Secret(NamedTuple):
    """A secret key of secp256k1."""

    raw: bytes
    """32 bytes."""

    @classmethod
    def random(cls) -> Self:
        """Return a new secret key."""
        while True:
            raw = secrets.token_bytes(32)
            if 0 < int.from_bytes(raw, "big") < signatures.ORDER:
                return cls(raw)

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the secret key in 64 hexadecimal digits. Raises `PrismError`."""
        try:
            secret = cls(bytes.fromhex(text.removeprefix("0x")))
            # This raises if the number is not a secret key.
            _ = secret.point
        except ValueError:
            raise PrismError(
                "a secret key is 64 hex digits, not zero and less than the order of secp256k1"
            ) from None
        return secret

    @property
    def point(self) -> bytes:
        """Return the compressed public key."""
        return signatures.public_point(self.raw)


class Signed(NamedTuple):
    """A signed operation."""

    raw: bytes
    """The bytes of the SignedAtalaOperation."""
    operation: bytes
    """The bytes of the AtalaOperation."""

    @property
    def id(self) -> bytes:
        """Return the operation's id."""
        return sha256(self.raw)

    @property
    def hash(self) -> bytes:
        """Return the operation's hash, which the next operation on the DID must name."""
        return sha256(self.operation)

    @property
    def suffix(self) -> str:
        """Return the suffix of the DID that a CREATE_DID creates."""
        return self.hash.hex()

    @property
    def did(self) -> str:
        """Return the long-form DID that a CREATE_DID creates."""
        return long_form(self.operation)


class IssuedBatch(NamedTuple):
    """An operation that issues a credential batch, and the batch's id in hexadecimal."""

    signed: Signed
    batch_id: str


def public_key(name: str, usage: m.Usage, secret: Secret) -> m.PublicKey:
    """Return the public key of a secret key in the form in which operations carry it."""
    return m.PublicKey(name, usage, m.CompressedECKeyData(SECP256K1, secret.point))


def create_did(
    keys: Mapping[str, tuple[m.Usage, Secret]],
    services: Iterable[m.Service] = (),
    context: Iterable[str] = (),
    signed_with: str | None = None,
) -> Signed:
    """Return a CREATE_DID, signed with the named key or with the first master key.

    Raises `PrismError` if `keys` does not have that key.
    """
    signer = signed_with or next(
        (name for name, (usage, _) in keys.items() if usage is m.Usage.MASTER_KEY), ""
    )
    if signer not in keys:
        raise PrismError("CREATE_DID is signed with one of its own keys, a master key")
    public_keys = tuple(public_key(name, usage, secret) for name, (usage, secret) in keys.items())
    data = m.DIDCreationData(public_keys, tuple(services), tuple(context))
    _, secret = keys[signer]
    return sign(m.CreateDID(data), signer, secret)


def update_did(
    did: str, previous: bytes, actions: Sequence[m.Action], signed_with: str, secret: Secret
) -> Signed:
    """Return an UPDATE_DID. `did` is the DID or its suffix.

    `previous` is the hash of the last operation that was applied to the DID.
    """
    return sign(
        m.UpdateDID(previous, _suffix(did), tuple(map(m.UpdateDIDAction, actions))),
        signed_with,
        secret,
    )


def deactivate_did(did: str, previous: bytes, signed_with: str, secret: Secret) -> Signed:
    """Return a DEACTIVATE_DID. `did` and `previous` are as in `update_did`."""
    return sign(m.DeactivateDID(previous, _suffix(did)), signed_with, secret)


def issue_batch(did: str, merkle_root: bytes, signed_with: str, secret: Secret) -> IssuedBatch:
    """Return an ISSUE_CREDENTIAL_BATCH. `did` is the issuer's DID or its suffix.

    `merkle_root` is a result of `identifiers.merkle_tree`.
    """
    data = m.CredentialBatchData(issuer_did=_suffix(did), merkle_root=merkle_root)
    return IssuedBatch(
        sign(m.IssueCredentialBatch(data), signed_with, secret), sha256(m.encode(data)).hex()
    )


def revoke(
    batch_id: str, issued: bytes, hashes: Iterable[bytes], signed_with: str, secret: Secret
) -> Signed:
    """Return a REVOKE_CREDENTIALS of the credentials with these hashes, or of the whole batch.

    The whole batch is revoked if `hashes` is empty. `issued` is the hash of the operation that
    issued the batch.
    """
    return sign(m.RevokeCredentials(issued, batch_id, tuple(hashes)), signed_with, secret)


def create_storage_entry(
    did: str, data: m.StorageData, signed_with: str, secret: Secret, *, nonce: bytes | None = None
) -> Signed:
    """Return a CREATE_STORAGE_ENTRY. `did` is the owner's DID or its suffix.

    The id of the entry is the operation's hash in hexadecimal. `signed_with` names a key with usage
    VDR. The default of `nonce` is 16 random bytes.
    """
    if nonce is None:
        nonce = secrets.token_bytes(16)
    operation = m.CreateStorageEntry(bytes.fromhex(_suffix(did)), nonce, data)
    return sign(operation, signed_with, secret)


def update_storage_entry(
    previous: bytes, data: m.StorageData, signed_with: str, secret: Secret
) -> Signed:
    """Return an UPDATE_STORAGE_ENTRY.

    `previous` is the hash of the last operation that was applied to the entry.
    """
    return sign(m.UpdateStorageEntry(previous, data), signed_with, secret)


def deactivate_storage_entry(previous: bytes, signed_with: str, secret: Secret) -> Signed:
    """Return a DEACTIVATE_STORAGE_ENTRY. `previous` is as in `update_storage_entry`."""
    return sign(m.DeactivateStorageEntry(previous), signed_with, secret)


def _suffix(did: str) -> str:
    """Return the suffix of a DID, given in full or by its suffix. It is not checked."""
    return did.removeprefix(METHOD).partition(":")[0]


def sign(operation: m.Operation, signed_with: str, secret: Secret) -> Signed:
    """Sign an operation of any kind."""
    return sign_raw(m.encode(m.AtalaOperation(operation=operation)), signed_with, secret)


def sign_raw(operation: bytes, signed_with: str, secret: Secret) -> Signed:
    """Sign the bytes of an AtalaOperation."""
    signature = signatures.sign(secret.raw, operation)
    fields = (
        bytes_field(1, signed_with.encode()),
        bytes_field(2, signature),
        bytes_field(3, operation),
    )
    return Signed(b"".join(fields), operation)


def atala_object(signed: Iterable[bytes]) -> bytes:
    """Return the AtalaObject with these operations, given as SignedAtalaOperations."""
    block = b"".join(bytes_field(2, operation) for operation in signed)
    return bytes_field(4, block)
