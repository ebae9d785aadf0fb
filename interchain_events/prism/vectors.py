"""The checks of PRISM's test vectors, for `pubsub vectors check`.

Each check compares the results of this implementation with those stated in a vector.
"""

from collections.abc import Callable, Iterator
from typing import Final

from interchain_events.prism.core import messages as m
from interchain_events.prism.core import signatures, well_formed
from interchain_events.prism.core.errors import Rejected
from interchain_events.prism.core.filters import Filter, FilterType, matches, normal_form
from interchain_events.prism.core.identifiers import (
    METHOD,
    MerkleProof,
    is_in_batch,
    merkle_tree,
    read_long_form,
    sha256,
)
from interchain_events.prism.core.ledger import MemoryLedger
from interchain_events.prism.core.metadata import object_of
from interchain_events.prism.core.process import (
    DecidedOperation,
    Status,
    examine,
    process,
    read_object,
)
from interchain_events.prism.core.state import Batch, Did, StorageEntry, is_deactivated
from pubsub_emulator.primitives.vectors import Case, Document, Format, Mismatch, same


def _fits(document: Document) -> bool:
    """Return whether a document has PRISM's vectors."""
    match document:
        case {
            "histories": [{"blocks": _, "operations": _, "state": _, "matches": _}, *_],
            "long_form_dids": _,
        }:
            return True
    return False


def _did(case: Document) -> None:
    """Check a long-form DID."""
    suffix, message = read_long_form(f"{METHOD}{case['did_suffix']}:{case['encoded_state']}")
    same("the suffix", suffix, case["did_suffix"])
    same("the operation", message.raw.hex(), case["operation"])
    operation = message.operation
    if not isinstance(operation, m.CreateDID) or operation.did_data is None:
        raise Mismatch("there is no did_data")
    data = operation.did_data
    same("the keys", [_key(key) for key in data.public_keys], case["public_keys"])
    same("the services", [service._asdict() for service in data.services], case["services"])
    same("the context", list(data.context), case["context"])
    try:
        well_formed.check(operation)
        is_well_formed = True
    except Rejected:
        is_well_formed = False
    same("whether it is well-formed", is_well_formed, case["well_formed"])


def _key(key: m.PublicKey) -> dict[str, object]:
    """Return a key in the form of the vectors."""
    point = well_formed.key_point(key)
    return {
        "id": key.id,
        "usage": m.Usage(key.usage).name if key.usage in {*m.Usage} else key.usage,
        "curve": None if key.data is None else key.data.curve,
        "form": "coordinates" if isinstance(key.data, m.ECKeyData) else "compressed",
        "key": None if point is None else point[1].hex(),
    }


def _signature(case: Document) -> None:
    """Check a signature."""
    point = bytes.fromhex(case["public_key"])
    message = bytes.fromhex(case["message"])
    signature = bytes.fromhex(case["signature"])
    same("whether it is valid", signatures.verify(point, sha256(message), signature), case["valid"])
    parts = signatures.read_der(signature)
    if parts is not None and case["valid"]:
        same("whether S is high", parts[1] > signatures.ORDER // 2, case["high_s"])


def _object(case: Document) -> None:
    """Check an object, its operations, and the metadata that carries it."""
    raw = bytes.fromhex(case["object"])
    same("the object id", sha256(raw).hex(), case["atala_object_id"])
    # If there are no operations, the metadata need not have an object (PR-20).
    if case["metadata_cbor"] is not None and case["operations"] is not None:
        same(
            "the object in the metadata", object_of(None, bytes.fromhex(case["metadata_cbor"])), raw
        )
    operations = read_object(raw)
    listed = None if operations is None else [_operation(signed) for signed in operations]
    same("the operations", listed, case["operations"])


def _operation(signed: m.SignedAtalaOperation) -> dict[str, object]:
    """Return an operation in the form of the vectors."""
    examined = examine(signed)
    return {
        "signed_with": signed.signed_with,
        "operation_id": examined.id.hex(),
        "operation_hash": None if examined.hash is None else examined.hash.hex(),
        "type": examined.type.name,
    }


def _history(case: Document) -> None:
    """Process a history of blocks, and check rows, state and matching filters."""
    ledger = MemoryLedger()
    rows: list[DecidedOperation] = []
    listed: list[dict[str, object]] = []
    ignored = 0
    for block in case["blocks"]:
        for index, text in enumerate(block["objects"]):
            raw = bytes.fromhex(text)
            operations = read_object(raw)
            if operations is None:
                ignored += 1
                continue
            for place, signed in enumerate(operations):
                outcome = process(ledger, signed)
                if outcome is not None:
                    rows.append(outcome)
                    listed.append(
                        {
                            "seq_no": len(rows),
                            **_row(outcome, raw),
                            "block": block["number"],
                            "object_index": index,
                            "operation_index": place,
                        }
                    )
    same("the number of ignored objects", ignored, case["objects_ignored"])
    # The lengths are compared after the rows, because the first wrong row says more.
    for row, stated in zip(listed, case["operations"], strict=False):
        same(f"row {stated['seq_no']}", row, stated)
    same("the number of rows", len(listed), len(case["operations"]))
    same(
        "the DIDs",
        {name: _state_of(did) for name, did in ledger.dids.items()},
        case["state"]["dids"],
    )
    batches = {name: _batch_of(batch) for name, batch in ledger.batches.items()}
    same("the batches", batches, case["state"]["batches"])
    entries = {name: _entry_of(ledger, entry) for name, entry in ledger.entries.items()}
    same("the storage entries", entries, case["state"].get("storage_entries", {}))
    for stated in case["matches"]:
        part = _filter(stated["filter"])
        seq_nos = [number for number, outcome in enumerate(rows, 1) if matches(part, outcome)]
        same(f"what {stated['filter']} matches", seq_nos, stated["seq_nos"])


def _row(outcome: DecidedOperation, raw: bytes) -> dict[str, object]:
    """Return a row in the form of the vectors."""
    revoked: list[str] | None = None
    if outcome.type.name == "REVOKE_CREDENTIALS":
        revoked = [credential.hex() for credential in outcome.revoked_hashes]
    entry_id = outcome.storage_entry_id
    return {
        **({} if entry_id is None else {"storage_entry_id": entry_id}),
        "operation_id": outcome.operation_id.hex(),
        "operation_hash": None if outcome.operation_hash is None else outcome.operation_hash.hex(),
        "atala_object_id": sha256(raw).hex(),
        "type": outcome.type.name,
        "status": outcome.status.value,
        "reason": "NONE" if outcome.reason is None else outcome.reason.name,
        "did_suffix": outcome.did_suffix,
        "created_did_suffix": outcome.created_did_suffix,
        "credential_batch_id": outcome.credential_batch_id,
        "revoked_credential_hashes": revoked,
    }


def _state_of(did: Did) -> dict[str, object]:
    """Return the state of a DID in the form of the vectors."""
    return {
        "last_operation_hash": did.last_hash.hex(),
        "context": list(did.context),
        "keys": {
            name: {"usage": key.usage.name, "active": key.active} for name, key in did.keys.items()
        },
        "services": {name: service._asdict() for name, service in did.services.items()},
    }


def _entry_of(ledger: MemoryLedger, entry: StorageEntry) -> dict[str, object]:
    """Return the state of a storage entry in the form of the vectors."""
    data = entry.data
    if isinstance(data, bytes):
        shown: dict[str, object] = {"bytes": data.hex()}
    elif isinstance(data, str):
        shown = {"ipfs": data}
    else:
        shown = {"status_list_entry": data._asdict()}
    did = ledger.dids[entry.owner]
    return {
        "did_suffix": entry.owner,
        "last_operation_hash": entry.last_hash.hex(),
        "active": entry.active and not is_deactivated(did),
        **shown,
    }


def _batch_of(batch: Batch) -> dict[str, object]:
    """Return the state of a batch in the form of the vectors."""
    return {
        "issuer_did_suffix": batch.issuer,
        "merkle_root": batch.merkle_root.hex(),
        "issue_operation_hash": batch.issue_hash.hex(),
        "revoked": batch.revoked,
        "revoked_credential_hashes": sorted(
            credential.hex() for credential in batch.revoked_hashes
        ),
    }


def _batch(case: Document) -> None:
    """Check the data of a credential batch and the root of its credentials."""
    raw = bytes.fromhex(case["credential_batch_data"])
    data = m.decode(m.CredentialBatchData, raw)
    same("the issuer", data.issuer_did, case["issuer_did_suffix"])
    same("the root", data.merkle_root.hex(), case["merkle_root"])
    same("the batch id", sha256(raw).hex(), case["credential_batch_id"])
    root, _ = merkle_tree([bytes.fromhex(text) for text in case["credential_hashes"]])
    same("the root of the credentials", root.hex(), case["merkle_root"])


def _merkle(case: Document) -> None:
    """Check a Merkle tree and its proofs."""
    leaves = [bytes.fromhex(text) for text in case["leaves"]]
    root, proofs = merkle_tree(leaves)
    same("the root", root.hex(), case["root"])
    for stated in case["proofs"]:
        siblings = tuple(map(bytes.fromhex, stated["siblings"]))
        proof = MerkleProof(bytes.fromhex(stated["hash"]), stated["index"], siblings)
        same("the proof", proofs[leaves.index(proof.hash)], proof)
        same("whether the proof holds", is_in_batch(root, proof), stated=True)


def _normal_form(case: Document) -> None:
    """Check the normal form of filters."""
    given = map(_filter, case["filters"])
    stated = map(_filter, case["normal_form"])
    same("the normal form", {*normal_form(given)}, {*stated})


def _filter(document: Document) -> Filter:
    """Return a filter of the vectors, with a status if it names exactly one."""
    credential_hash = document.get("credential_hash")
    statuses = {*document["statuses"]}
    return Filter(
        FilterType[document["type"]],
        document.get("did_suffix"),
        credential_hash=None if credential_hash is None else bytes.fromhex(credential_hash),
        credential_batch_id=document.get("credential_batch_id"),
        status=Status(statuses.pop()) if len(statuses) == 1 else None,
    )


_CHECKS: Final[dict[str, Callable[[Document], None]]] = {
    "long_form_dids": _did,
    "signatures": _signature,
    "objects": _object,
    "histories": _history,
    "batches": _batch,
    "merkle": _merkle,
    "normal_forms": _normal_form,
}
"""The check of each part of the document."""


def _cases(document: Document) -> Iterator[Case]:
    """Yield the name and the check of each vector."""
    for name, check in _CHECKS.items():
        for index, case in enumerate(document.get(name, ())):
            label = case.get("name", index) if isinstance(case, dict) else index
            yield f"{name} {label}", lambda check=check, case=case: check(case)  # type: ignore[misc]  # bound here


FORMATS: Final = (Format("PRISM operations", _fits, _cases),)
"""The formats of vectors that this module checks."""
