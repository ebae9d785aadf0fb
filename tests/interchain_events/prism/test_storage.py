"""PR-21, PR-22, PR-25: storage entries and announcements of versions.

The stories are those of neoprism's tests (hyperledger-identus/neoprism,
lib/did-prism/tests/storage_operation.rs, commit d6ad1eca), with its keys, data and nonces. `stored`
has the data that its tests expect of the entries that are left.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from support.prism.wallet import Wallet, judged, new_key, reason

from interchain_events.prism import create_did, create_storage_entry, update_did
from interchain_events.prism.core import messages as m
from interchain_events.prism.core.errors import Reason
from interchain_events.prism.core.ledger import MemoryLedger
from interchain_events.prism.core.process import OperationType
from interchain_events.prism.core.state import is_deactivated
from interchain_events.prism.core.wire import bytes_field
from interchain_events.prism.make import (
    Secret,
    Signed,
    deactivate_did,
    deactivate_storage_entry,
    sign,
    sign_raw,
    update_storage_entry,
)

MASTER, VDR = Secret(b"\x01" * 32), Secret(b"\x02" * 32)
CREATED = create_did(
    {"master-0": (m.Usage.MASTER_KEY, MASTER), "vdr-0": (m.Usage.VDR_KEY, VDR)},
)
DID, HASH = CREATED.suffix, bytes(32)
WEBSITE = m.AddService(m.Service("service-0", "LinkedDomains", "https://example.com"))


def _created(data: bytes, nonce: int = 0, key: str = "vdr-0", secret: Secret = VDR) -> Signed:
    return create_storage_entry(DID, data, key, secret, nonce=bytes((nonce,)))


def _changed(previous: bytes, data: bytes, key: str = "vdr-0", secret: Secret = VDR) -> Signed:
    return update_storage_entry(previous, data, key, secret)


def _ended(previous: bytes) -> Signed:
    return deactivate_storage_entry(previous, "vdr-0", VDR)


def _updated(action: m.Action, previous: bytes = CREATED.hash) -> Signed:
    return update_did(DID, previous, [action], "master-0", MASTER)


def _deactivated(previous: bytes = CREATED.hash) -> Signed:
    return deactivate_did(DID, previous, "master-0", MASTER)


FIRST, SECOND = _created(b"\1\2\3"), _created(b"\4\5\6", 1)
CHANGED = _changed(FIRST.hash, b"\4\5\6")
AGAIN = _changed(CHANGED.hash, b"\7\x08\x09")
STALE = _changed(HASH, b"\4\5\6")
REVOKED_KEY = _updated(m.RemoveKey("vdr-0"))
SERVICE = _updated(WEBSITE)


@dataclass(frozen=True)
class Story:
    """Operations after the creation of the DID, and what is left of them."""

    name: str
    operations: list[Signed]
    reasons: list[Reason | None]
    stored: list[bytes] = field(default_factory=list)


STORIES = [
    Story("create_storage_entry", [FIRST], [None], [b"\1\2\3"]),
    Story(
        "create_multiple_storage_entries",
        [FIRST, SECOND],
        [None, None],
        [b"\1\2\3", b"\4\5\6"],
    ),
    Story("update_storage_entry", [FIRST, CHANGED], [None, None], [b"\4\5\6"]),
    Story("deactivate_storage_entry", [FIRST, _ended(FIRST.hash)], [None, None]),
    Story(
        "create_storage_entry_with_non_vdr_key",
        [_created(b"\1\2\3", key="master-0")],
        [Reason.INVALID_SIGNATURE],
    ),
    Story(
        "create_storage_entry_with_non_vdr_key, signed by it",
        [_created(b"\1\2\3", key="master-0", secret=MASTER)],
        [Reason.WRONG_KEY_USAGE],
    ),
    Story(
        "update_storage_entry_with_invalid_prev_event_hash",
        [FIRST, STALE, _changed(STALE.hash, b"\4\5\6")],
        [None, Reason.UNKNOWN_STORAGE_ENTRY, Reason.UNKNOWN_STORAGE_ENTRY],
        [b"\1\2\3"],
    ),
    Story(
        "update_storage_entry_with_non_vdr_key",
        [FIRST, _changed(FIRST.hash, b"\4\5\6", "master-0", MASTER)],
        [None, Reason.WRONG_KEY_USAGE],
        [b"\1\2\3"],
    ),
    Story(
        "update_storage_entry_with_revoked_key",
        [FIRST, REVOKED_KEY, CHANGED],
        [None, None, Reason.KEY_REVOKED],
        [b"\1\2\3"],
    ),
    Story(
        "create_storage_entry_with_revoked_key",
        [REVOKED_KEY, FIRST],
        [None, Reason.KEY_REVOKED],
    ),
    Story(
        "deactivate_storage_entry_with_invalid_prev_operation_hash",
        [FIRST, _ended(HASH)],
        [None, Reason.UNKNOWN_STORAGE_ENTRY],
        [b"\1\2\3"],
    ),
    Story("storage_revoked_after_deactivate_did", [FIRST, _deactivated()], [None, None]),
    Story(
        "storage_entry_hash_chain_after_sequential_updates",
        [FIRST, CHANGED, AGAIN],
        [None, None, None],
        [b"\7\x08\x09"],
    ),
    Story(
        "storage_entry_update_chain_with_deactivation",
        [FIRST, CHANGED, _ended(CHANGED.hash)],
        [None, None, None],
    ),
    Story(
        "multiple_storage_entries_independent_hash_chains",
        [FIRST, SECOND, CHANGED],
        [None, None, None],
        [b"\4\5\6", b"\4\5\6"],
    ),
    Story(
        "create_storage_entry_after_did_deactivation",
        [_deactivated(), FIRST],
        [None, Reason.KEY_REVOKED],
    ),
    Story(
        "update_storage_entry_after_did_deactivation",
        [FIRST, _deactivated(), CHANGED],
        [None, None, Reason.KEY_REVOKED],
    ),
    Story(
        "deactivate_storage_entry_after_did_deactivation",
        [FIRST, _deactivated(), _ended(FIRST.hash)],
        [None, None, Reason.KEY_REVOKED],
    ),
    Story(
        "deactivate_did_after_storage_op_references_ssi_chain",
        [FIRST, _deactivated()],
        [None, None],
    ),
    Story(
        "update_did_after_storage_op_references_ssi_chain",
        [FIRST, SERVICE],
        [None, None],
        [b"\1\2\3"],
    ),
    Story(
        "interleaved_ssi_and_storage_chains_are_independent",
        [FIRST, CHANGED, SERVICE, _deactivated(SERVICE.hash)],
        [None, None, None, None],
    ),
    Story(
        "an entry that has ended",
        [FIRST, _ended(FIRST.hash), CHANGED, _changed(_ended(FIRST.hash).hash, b"")],
        [None, None, Reason.WRONG_PREVIOUS_HASH, Reason.STORAGE_ENTRY_NOT_ACTIVE],
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=[each.name for each in STORIES])
def test_pr_21_and_pr_25_storage_entries_are_as_in_neoprism(story: Story) -> None:
    ledger = MemoryLedger()
    assert reason(ledger, CREATED) is None
    assert [reason(ledger, each) for each in story.operations] == story.reasons
    did = ledger.dids[DID]
    left = [
        entry.data for entry in ledger.entries.values() if entry.active and not is_deactivated(did)
    ]
    assert left == story.stored
    applied = [each.hash for each in story.operations if each.hash in ledger.applied_hashes]
    heads = {entry.last_hash for entry in ledger.entries.values()}
    assert heads <= {*applied}


def test_pr_22_an_operation_on_an_entry_is_attributed_to_its_did() -> None:
    owner, thief = Wallet("a", stores=True), Wallet("b", stores=True)
    ledger = MemoryLedger()
    entry = owner.store(b"x")
    for each in (owner.created, thief.created, entry):
        assert reason(ledger, each) is None
    stolen = judged(ledger, update_storage_entry(entry.hash, b"y", "vdr", thief.vdr))
    assert (stolen.reason, stolen.did_suffix) == (Reason.INVALID_SIGNATURE, None)
    assert stolen.storage_entry_id == entry.hash.hex()
    changed = owner.change(entry, "QmExample")
    found = judged(ledger, changed)
    assert (found.reason, found.did_suffix, found.storage_entry_id) == (
        None,
        owner.suffix,
        entry.hash.hex(),
    )
    late = judged(ledger, owner.end(entry))
    assert (late.reason, late.did_suffix, late.storage_entry_id) == (
        Reason.WRONG_PREVIOUS_HASH,
        owner.suffix,
        entry.hash.hex(),
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        "",
        "QmExample",
        m.StatusListEntry(2**64 - 1, "revocation", "d"),
    ],
)
def test_pr_24_any_data_is_stored_but_none_is_refused(data: m.StorageData) -> None:
    wallet = Wallet("a", stores=True)
    ledger = MemoryLedger()
    assert reason(ledger, wallet.created) is None
    entry = wallet.store(data)
    assert reason(ledger, entry) is None
    assert ledger.entries[entry.hash.hex()].data == data
    without = sign(m.CreateStorageEntry(bytes.fromhex(wallet.suffix), b"n"), "vdr", wallet.vdr)
    assert reason(ledger, without) is Reason.MALFORMED_OPERATION
    unchanged = sign(m.UpdateStorageEntry(entry.hash), "vdr", wallet.vdr)
    assert reason(ledger, unchanged) is Reason.MALFORMED_OPERATION


@pytest.mark.parametrize("size", [0, 31, 33])
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(
            lambda named: m.CreateStorageEntry(named, b"", b"x"),
            id="create without bytes",
        ),
        pytest.param(
            lambda named: m.UpdateStorageEntry(named, b"x"),
            id="update",
        ),
        pytest.param(
            m.DeactivateStorageEntry,
            id="deactivate",
        ),
    ],
)
def test_pr_21_check_3_hashes_of_storage_operations_have_32_bytes(
    size: int, made: Callable[[bytes], m.Operation]
) -> None:
    wallet = Wallet("a", stores=True)
    ledger = MemoryLedger()
    assert reason(ledger, wallet.created) is None
    found = judged(ledger, sign(made(bytes(size)), "vdr", wallet.vdr))
    assert (found.reason, found.did_suffix) == (Reason.MALFORMED_OPERATION, None)


def test_pr_21_the_same_entry_is_created_once() -> None:
    wallet = Wallet("a", stores=True)
    ledger = MemoryLedger()
    entry = wallet.store(b"x")
    assert [reason(ledger, each) for each in (wallet.created, entry)] == [None, None]
    other = Wallet("b", stores=True)
    assert reason(ledger, other.created) is None
    # The same bytes under another key id are another operation with the same hash.
    again = sign_raw(entry.operation, "vdr", wallet.vdr)
    padded = sign_raw(entry.operation + bytes_field(10, b""), "vdr", wallet.vdr)
    assert again.id == entry.id
    assert reason(ledger, padded) is None
    assert len(ledger.entries) == 2


def test_pr_10_and_pr_21_a_version_is_announced_by_a_master_key_and_changes_nothing() -> None:
    wallet = Wallet("a", stores=True)
    ledger = MemoryLedger()
    assert reason(ledger, wallet.created) is None
    before = ledger.dids[wallet.suffix]
    version = m.ProtocolVersionInfo("two", 100, m.ProtocolVersion(2, 0))
    announced = m.ProtocolVersionUpdate(wallet.suffix, version)
    found = judged(ledger, sign(announced, "master", wallet.master))
    assert (found.reason, found.type) == (None, OperationType.PROTOCOL_VERSION_UPDATE)
    assert found.did_suffix == wallet.suffix
    assert ledger.dids[wallet.suffix] is before
    assert reason(ledger, wallet.update(new_key("k"))) is None
    by_vdr = sign(announced._replace(version=None), "vdr", wallet.vdr)
    assert reason(ledger, by_vdr) is Reason.WRONG_KEY_USAGE
    unknown = sign(m.ProtocolVersionUpdate("0" * 64, version), "master", wallet.master)
    assert reason(ledger, unknown) is Reason.UNKNOWN_DID
    malformed = sign(m.ProtocolVersionUpdate("0" * 63, version), "master", wallet.master)
    assert reason(ledger, malformed) is Reason.MALFORMED_OPERATION
