"""A wallet with fixed keys, and shortcuts to judge operations."""

import json
from pathlib import Path
from typing import Any

from interchain_events.prism import create_did, issue_batch, revoke, update_did
from interchain_events.prism.core.errors import Reason
from interchain_events.prism.core.filters import Filter, FilterType
from interchain_events.prism.core.identifiers import merkle_tree, sha256
from interchain_events.prism.core.ledger import MemoryLedger
from interchain_events.prism.core.messages import (
    Action,
    AddKey,
    AddService,
    Service,
    SignedAtalaOperation,
    StorageData,
    Usage,
    decode,
)
from interchain_events.prism.core.process import DecidedOperation, process
from interchain_events.prism.make import (
    IssuedBatch,
    Secret,
    Signed,
    create_storage_entry,
    deactivate_did,
    deactivate_storage_entry,
    public_key,
    update_storage_entry,
)

DOCUMENT: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[2] / "vectors" / "prism" / "vectors.json").read_text(
        encoding="utf-8"
    )
)
"""The golden vectors."""
ANY = Filter(FilterType.ANONYMOUS_ANY_FILTER)


def secret(name: str) -> Secret:
    """Return the secret of a name, which is always the same."""
    return Secret(sha256(name.encode()))


def add(name: str) -> AddService:
    """Return the action that adds a service with this name."""
    return AddService(Service(name, "T", "a:b"))


def new_key(name: str, usage: Usage = Usage.AUTHENTICATION_KEY) -> AddKey:
    """Return the action that adds a key with this name."""
    return AddKey(public_key(name, usage, secret(name)))


class Wallet:
    """One DID with keys `master`, `issuing`, `revocation` and, if asked for, `vdr`, and the
    operations that follow one another.
    """

    def __init__(self, name: str, *, stores: bool = False) -> None:
        self.name = name
        self.vdr = secret(f"{name} v")
        keys_of_storage = {"vdr": (Usage.VDR_KEY, self.vdr)} if stores else {}
        self.master, self.issuing, self.revocation = (
            secret(f"{name} {each}") for each in ("m", "i", "r")
        )
        self.created = create_did(
            {
                "master": (Usage.MASTER_KEY, self.master),
                "issuing": (Usage.ISSUING_KEY, self.issuing),
                "revocation": (Usage.REVOCATION_KEY, self.revocation),
                **keys_of_storage,
            }
        )
        self.suffix = self.created.suffix
        self.last = self.created.hash

    def update(self, *actions: Action, previous: bytes | None = None) -> Signed:
        """Return the next update.

        If `previous` is given, the update names that operation and is not remembered as the last
        one.
        """
        made = update_did(
            self.suffix, self.last if previous is None else previous, actions, "master", self.master
        )
        if previous is None:
            self.last = made.hash
        return made

    def deactivate(self) -> Signed:
        """Return the operation that ends the DID."""
        made = deactivate_did(self.suffix, self.last, "master", self.master)
        self.last = made.hash
        return made

    def issue(self, *hashes: bytes) -> IssuedBatch:
        """Return the operation that issues a batch of credentials."""
        return issue_batch(self.suffix, merkle_tree(hashes)[0], "issuing", self.issuing)

    def store(self, data: StorageData, nonce: bytes = b"") -> Signed:
        """Return the operation that creates a storage entry."""
        return create_storage_entry(self.suffix, data, "vdr", self.vdr, nonce=nonce)

    def change(self, previous: Signed, data: StorageData) -> Signed:
        """Return the operation that changes the storage entry that `previous` made or changed."""
        return update_storage_entry(previous.hash, data, "vdr", self.vdr)

    def end(self, previous: Signed) -> Signed:
        """Return the operation that ends the storage entry that `previous` made or changed."""
        return deactivate_storage_entry(previous.hash, "vdr", self.vdr)

    def revoke(self, batch: IssuedBatch, *hashes: bytes) -> Signed:
        """Return the operation that revokes all or some credentials of a batch."""
        return revoke(batch.batch_id, batch.signed.hash, hashes, "revocation", self.revocation)


def judge(ledger: MemoryLedger, raw: bytes | Signed) -> DecidedOperation | None:
    """Process the bytes of one SignedAtalaOperation."""
    return process(
        ledger, decode(SignedAtalaOperation, raw.raw if isinstance(raw, Signed) else raw)
    )


def judged(ledger: MemoryLedger, raw: bytes | Signed) -> DecidedOperation:
    """Return the outcome of an operation that is not ignored."""
    found = judge(ledger, raw)
    assert found is not None  # a test's own
    return found


def reason(ledger: MemoryLedger, raw: bytes | Signed) -> Reason | None:
    """Return why an operation is rejected, `None` if it is applied."""
    return judged(ledger, raw).reason
