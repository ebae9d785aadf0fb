"""Makes keys, DIDs and signed operations.

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
            found = secrets.token_bytes(32)
            if 0 < int.from_bytes(found, "big") < signatures.ORDER:
                return cls(found)

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the secret key in 64 hexadecimal digits. Raises `PrismError`."""
        try:
            made = cls(bytes.fromhex(text.removeprefix("0x")))
            _ = made.point
        except ValueError:
            raise PrismError(
                "a secret key is 64 hex digits, not zero and less than the order of secp256k1"
            ) from None
        return made

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
    """Return a key as operations carry it."""
    return m.PublicKey(name, usage, m.CompressedECKeyData(SECP256K1, secret.point))


def create_did(
    keys: Mapping[str, tuple[m.Usage, Secret]],
    services: Iterable[m.Service] = (),
    context: Iterable[str] = (),
    signed_with: str | None = None,
) -> Signed:
    """Return a CREATE_DID, signed with the named key or with the first master key.

    Raises `PrismError` if there is no such key.
    """
    signer = signed_with or next(
        (name for name, (usage, _) in keys.items() if usage is m.Usage.MASTER_KEY), ""
    )
    if signer not in keys:
        raise PrismError("CREATE_DID is signed with one of its own keys, a master key")
    listed = tuple(public_key(name, usage, secret) for name, (usage, secret) in keys.items())
    data = m.DIDCreationData(listed, tuple(services), tuple(context))
    return sign(m.CreateDID(data), signer, keys[signer][1])


def update_did(
    did: str, previous: bytes, actions: Sequence[m.Action], signed_with: str, secret: Secret
) -> Signed:
    """Return an UPDATE_DID of the DID with a suffix.

    `previous` is the hash of the last operation that was applied to the DID.
    """
    return sign(
        m.UpdateDID(previous, _suffix(did), tuple(map(m.UpdateDIDAction, actions))),
        signed_with,
        secret,
    )


def deactivate_did(did: str, previous: bytes, signed_with: str, secret: Secret) -> Signed:
    """Return a DEACTIVATE_DID of the DID with a suffix. `previous` is as in `update_did`."""
    return sign(m.DeactivateDID(previous, _suffix(did)), signed_with, secret)


def issue_batch(did: str, merkle_root: bytes, signed_with: str, secret: Secret) -> IssuedBatch:
    """Return an ISSUE_CREDENTIAL_BATCH by the DID with a suffix.

    `identifiers.merkle_tree` makes the root.
    """
    data = m.CredentialBatchData(issuer_did=_suffix(did), merkle_root=merkle_root)
    return IssuedBatch(
        sign(m.IssueCredentialBatch(data), signed_with, secret), sha256(m.encode(data)).hex()
    )


def revoke(
    batch_id: str, issued: bytes, hashes: Iterable[bytes], signed_with: str, secret: Secret
) -> Signed:
    """Return a REVOKE_CREDENTIALS of these credentials, or of the whole batch without any.

    `issued` is the hash of the operation that issued the batch.
    """
    return sign(m.RevokeCredentials(issued, batch_id, tuple(hashes)), signed_with, secret)


def create_storage_entry(
    did: str, data: m.StorageData, signed_with: str, secret: Secret, *, nonce: bytes | None = None
) -> Signed:
    """Return a CREATE_STORAGE_ENTRY of the DID with a suffix. The entry's id is its hash in hex.

    `signed_with` names a key with usage VDR. Without a nonce, 16 random bytes are one.
    """
    made = m.CreateStorageEntry(
        bytes.fromhex(_suffix(did)), secrets.token_bytes(16) if nonce is None else nonce, data
    )
    return sign(made, signed_with, secret)


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
    """Return the suffix of a DID, which may be the suffix itself, without a check."""
    return did.removeprefix(METHOD).partition(":")[0]


def sign(operation: m.Operation, signed_with: str, secret: Secret) -> Signed:
    """Return any operation, signed."""
    return sign_raw(m.encode(m.AtalaOperation(operation=operation)), signed_with, secret)


def sign_raw(operation: bytes, signed_with: str, secret: Secret) -> Signed:
    """Return the bytes of an AtalaOperation, signed."""
    signature = signatures.sign(secret.raw, operation)
    fields = (
        bytes_field(1, signed_with.encode()),
        bytes_field(2, signature),
        bytes_field(3, operation),
    )
    return Signed(b"".join(fields), operation)


def atala_object(signed: Iterable[bytes]) -> bytes:
    """Return the AtalaObject that carries operations. `signed` has their SignedAtalaOperations."""
    block = b"".join(bytes_field(2, each) for each in signed)
    return bytes_field(4, block)
