"""PR-21 to PR-25: every check with every reason, in order, and what operations do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from coincurve import PublicKey as PointOf
from hypothesis import given
from hypothesis import strategies as st
from support.prism import Wallet, judge, reason, secret

from pubsub_emulator.prism.core import signatures
from pubsub_emulator.prism.core.errors import Reason, Rejected
from pubsub_emulator.prism.core.messages import (
    Action,
    AddKey,
    AddService,
    CompressedECKeyData,
    CreateDID,
    CredentialBatchData,
    DeactivateDID,
    DIDCreationData,
    ECKeyData,
    IssueCredentialBatch,
    PatchContext,
    PublicKey,
    RemoveKey,
    RemoveService,
    RevokeCredentials,
    Service,
    UpdateDID,
    UpdateDIDAction,
    UpdateService,
    Usage,
)
from pubsub_emulator.prism.core.process import OperationType, Status
from pubsub_emulator.prism.core.state import MemoryLedger
from pubsub_emulator.prism.core.well_formed import check
from pubsub_emulator.prism.core.wire import bytes_field
from pubsub_emulator.prism.make import (
    Signed,
    create_did,
    deactivate_did,
    issue_batch,
    public_key,
    revoke,
    sign,
    sign_raw,
    update_did,
)

A, B = "a" * 64, "b" * 64
HASH = b"\x07" * 32
SERVICE = Service("s", "LinkedDomains", "https://example.com/")


def start() -> tuple[Wallet, MemoryLedger]:
    wallet, ledger = Wallet("a"), MemoryLedger()
    assert reason(ledger, wallet.created) is None
    return wallet, ledger


def new_key(name: str, usage: Usage = Usage.AUTHENTICATION_KEY) -> AddKey:
    return AddKey(public_key(name, usage, secret(name)))


# PR-21, check by check


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"", Reason.UNSUPPORTED_OPERATION),
        (bytes_field(3, b""), Reason.UNSUPPORTED_OPERATION),
        (bytes_field(3, bytes_field(5, b"")), Reason.UNSUPPORTED_OPERATION),
        (bytes_field(3, bytes_field(7, b"")), Reason.UNSUPPORTED_OPERATION),
        (Wallet("a").created.raw + bytes_field(9, b""), Reason.MALFORMED_OPERATION),
        (sign(CreateDID(), "m", secret("m")).raw, Reason.MALFORMED_OPERATION),
        (sign(IssueCredentialBatch(), "m", secret("m")).raw, Reason.MALFORMED_OPERATION),
        (update_did(A.upper(), HASH, (), "m", secret("m")).raw, Reason.MALFORMED_OPERATION),
        (deactivate_did(A[1:], HASH, "m", secret("m")).raw, Reason.MALFORMED_OPERATION),
        (issue_batch("", HASH, "m", secret("m")).signed.raw, Reason.MALFORMED_OPERATION),
        (revoke(A[:-1] + "g", HASH, (), "m", secret("m")).raw, Reason.MALFORMED_OPERATION),
        (update_did(A, HASH, (), "m", secret("m")).raw, Reason.UNKNOWN_DID),
        (deactivate_did(A, HASH, "m", secret("m")).raw, Reason.UNKNOWN_DID),
        (issue_batch(A, HASH, "m", secret("m")).signed.raw, Reason.UNKNOWN_DID),
        (revoke(A, HASH, (), "m", secret("m")).raw, Reason.UNKNOWN_BATCH),
    ],
)
def test_pr_21_checks_1_to_4_and_nobody_is_accused(raw: bytes, wanted: Reason) -> None:
    """Members 5 and 7 are not processed, either (PR-10)."""
    found = judge(MemoryLedger(), raw)
    assert found is not None
    assert (found.reason, found.did_suffix, found.created_did_suffix) == (wanted, None, None)
    assert (found.type is OperationType.UNKNOWN) == (wanted is Reason.UNSUPPORTED_OPERATION or b"\x4a\x00" in raw[-2:])


def test_pr_21_check_5_the_key_is_one_of_the_dids_own_on_secp256k1() -> None:
    wallet, ledger = start()
    assert reason(ledger, update_did(wallet.suffix, wallet.last, (), "no", wallet.master)) is Reason.UNKNOWN_KEY
    ed = AddKey(PublicKey("ed", Usage.AUTHENTICATION_KEY, CompressedECKeyData("Ed25519", HASH)))
    assert reason(ledger, wallet.update(ed)) is None
    assert reason(ledger, update_did(wallet.suffix, wallet.last, (), "ed", wallet.master)) is Reason.UNKNOWN_KEY
    assert reason(ledger, sign(CreateDID(DIDCreationData()), "m", secret("m"))) is Reason.UNKNOWN_KEY
    off_curve = PublicKey("m", Usage.MASTER_KEY, CompressedECKeyData("secp256k1", b"\x02" + b"\xff" * 32))
    assert reason(ledger, sign(CreateDID(DIDCreationData((off_curve,))), "m", secret("m"))) is Reason.UNKNOWN_KEY


def test_pr_21_check_5_of_two_keys_with_one_id_the_first_signs() -> None:
    first, second = (public_key("m", Usage.MASTER_KEY, secret(name)) for name in "xy")
    twice = CreateDID(DIDCreationData((first, second)))
    assert reason(MemoryLedger(), sign(twice, "m", secret("y"))) is Reason.INVALID_SIGNATURE
    assert reason(MemoryLedger(), sign(twice, "m", secret("x"))) is Reason.MALFORMED_OPERATION


def test_pr_21_check_6_a_foreign_signature_attributes_nothing() -> None:
    wallet, ledger = start()
    found = judge(ledger, update_did(wallet.suffix, wallet.last, (new_key("k"),), "master", secret("thief")))
    assert found is not None
    assert (found.reason, found.did_suffix) == (Reason.INVALID_SIGNATURE, None)


def test_pr_21_check_7_the_same_operation_under_another_id_is_a_duplicate() -> None:
    wallet, ledger = start()
    parts = signatures.read_der(signatures.sign(wallet.master.raw, wallet.created.operation))
    assert parts is not None
    high = signatures.write_der(parts[0], signatures.ORDER - parts[1])
    raw = bytes_field(1, b"master") + bytes_field(2, high) + bytes_field(3, wallet.created.operation)
    found = judge(ledger, raw)
    assert found is not None
    assert (found.reason, found.created_did_suffix) == (Reason.DUPLICATE_OPERATION, wallet.suffix)


def test_pr_21_check_8_comes_after_the_signature_and_before_the_usage() -> None:
    wallet, ledger = start()
    made = update_did(wallet.suffix, wallet.last, (), "issuing", wallet.issuing)
    found = judge(ledger, made)
    assert found is not None
    assert (found.reason, found.did_suffix) == (Reason.MALFORMED_OPERATION, wallet.suffix)


def test_pr_21_check_9_each_operation_needs_its_usage() -> None:
    wallet, ledger = start()
    keys = {"master": wallet.master, "issuing": wallet.issuing, "revocation": wallet.revocation}
    batch = wallet.issue(HASH)
    for wrong in ("issuing", "revocation"):
        update = update_did(wallet.suffix, wallet.last, (new_key("k"),), wrong, keys[wrong])
        assert reason(ledger, update) is Reason.WRONG_KEY_USAGE
        assert reason(ledger, deactivate_did(wallet.suffix, wallet.last, wrong, keys[wrong])) is Reason.WRONG_KEY_USAGE
    for wrong in ("master", "revocation"):
        assert reason(ledger, issue_batch(wallet.suffix, HASH, wrong, keys[wrong]).signed) is Reason.WRONG_KEY_USAGE
    assert reason(ledger, batch.signed) is None
    for wrong in ("master", "issuing"):
        made = revoke(batch.batch_id, batch.signed.hash, (), wrong, keys[wrong])
        assert reason(ledger, made) is Reason.WRONG_KEY_USAGE
    keys_of = {"m": (Usage.MASTER_KEY, secret("m")), "i": (Usage.ISSUING_KEY, secret("i"))}
    assert reason(ledger, create_did(keys_of, signed_with="i")) is Reason.WRONG_KEY_USAGE


def test_pr_21_check_10_a_revoked_key_signs_nothing_more() -> None:
    wallet, ledger = start()
    assert reason(ledger, wallet.update(new_key("m2", Usage.MASTER_KEY), RemoveKey("master"))) is None
    assert reason(ledger, wallet.update(new_key("k"))) is Reason.KEY_REVOKED


@pytest.mark.parametrize("previous", [HASH, b"", HASH[1:]])
def test_pr_21_check_11_a_stale_hash(previous: bytes) -> None:
    wallet, ledger = start()
    wanted = Reason.WRONG_PREVIOUS_HASH if len(previous) == 32 else Reason.MALFORMED_OPERATION
    assert reason(ledger, wallet.update(new_key("k"), previous=previous)) is wanted
    batch = wallet.issue(HASH)
    assert reason(ledger, batch.signed) is None
    made = revoke(batch.batch_id, previous, (), "revocation", wallet.revocation)
    assert reason(ledger, made) is wanted


def test_pr_21_check_11_batches_do_not_move_a_dids_hash_nor_revocations_a_batchs() -> None:
    wallet, ledger = start()
    batch = wallet.issue(HASH)
    steps = [batch.signed, wallet.update(new_key("k")), wallet.revoke(batch, HASH), wallet.revoke(batch)]
    assert [reason(ledger, each) for each in steps] == [None] * 4


# PR-23


def test_pr_23_an_applied_id_is_ignored_and_a_rejected_one_tried_again() -> None:
    wallet, ledger = start()
    assert judge(ledger, wallet.created) is None
    first = wallet.update(new_key("k"))
    second = wallet.update(new_key("l"))
    assert reason(ledger, second) is Reason.WRONG_PREVIOUS_HASH
    assert judge(ledger, second) is None
    assert reason(ledger, first) is None
    assert reason(ledger, second) is None
    assert judge(ledger, second) is None
    assert {*ledger.dids[wallet.suffix].keys} == {"master", "issuing", "revocation", "k", "l"}


# PR-25


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [
        ((new_key("master"),), Reason.KEY_EXISTS),
        ((RemoveKey("issuing"), new_key("issuing")), Reason.KEY_EXISTS),
        ((RemoveKey("nobody"),), Reason.KEY_NOT_ACTIVE),
        ((RemoveKey("issuing"), RemoveKey("issuing")), Reason.KEY_NOT_ACTIVE),
        ((AddService(SERVICE), AddService(SERVICE)), Reason.SERVICE_EXISTS),
        ((AddService(SERVICE), RemoveService("s"), AddService(SERVICE)), Reason.SERVICE_EXISTS),
        ((RemoveService("s"),), Reason.SERVICE_NOT_ACTIVE),
        ((UpdateService("s", "T"),), Reason.SERVICE_NOT_ACTIVE),
        ((AddService(SERVICE), RemoveService("s"), UpdateService("s", "T")), Reason.SERVICE_NOT_ACTIVE),
        ((PatchContext(()),), Reason.CONTEXT_EMPTY),
        ((RemoveKey("master"),), Reason.LAST_MASTER_KEY),
        (tuple(new_key(f"k{at}") for at in range(48)), Reason.TOO_MANY_KEYS),
        (tuple(AddService(SERVICE._replace(id=f"s{at}")) for at in range(51)), Reason.TOO_MANY_SERVICES),
        ((RemoveKey("nobody"), RemoveKey("master")), Reason.KEY_NOT_ACTIVE),
    ],
)
def test_pr_25_an_update_is_all_or_nothing(actions: tuple[Action, ...], wanted: Reason) -> None:
    wallet, ledger = start()
    before = ledger.dids[wallet.suffix]
    assert reason(ledger, wallet.update(*actions)) is wanted
    assert ledger.dids[wallet.suffix] is before


def test_pr_25_what_actions_do() -> None:
    wallet, ledger = start()
    other = Service("t", "A", "b:c")
    steps = (AddService(SERVICE), AddService(other), UpdateService("s", "T"), UpdateService("t", "", "d:e"))
    assert reason(ledger, wallet.update(*steps, PatchContext(("x", "y")), new_key("m2", Usage.MASTER_KEY))) is None
    assert reason(ledger, wallet.update(RemoveService("t"), RemoveKey("master"), PatchContext(("z",)))) is None
    did = ledger.dids[wallet.suffix]
    assert did.context == ("z",)
    assert {name: tuple(each) for name, each in did.services.items()} == {
        "s": ("T", SERVICE.service_endpoint, True),
        "t": ("A", "d:e", False),
    }
    assert [name for name, each in did.keys.items() if not each.active] == ["master"]
    assert did.last_hash == wallet.last


def test_pr_25_removed_keys_make_room_for_others() -> None:
    wallet, ledger = start()
    assert reason(ledger, wallet.update(*(new_key(f"k{at}") for at in range(47)))) is None
    assert reason(ledger, wallet.update(new_key("k47"), RemoveKey("k0"))) is None


def test_pr_25_a_deactivated_did_keeps_its_batches_and_signs_nothing() -> None:
    wallet, ledger = start()
    batch = wallet.issue(HASH)
    assert reason(ledger, batch.signed) is None
    assert reason(ledger, wallet.deactivate()) is None
    did = ledger.dids[wallet.suffix]
    assert not any(each.active for each in did.keys.values())
    assert did.context == ()
    assert reason(ledger, wallet.update(new_key("k"))) is Reason.KEY_REVOKED
    assert reason(ledger, wallet.revoke(batch)) is Reason.KEY_REVOKED
    assert not ledger.batches[batch.batch_id].revoked


def test_pr_25_revocations() -> None:
    wallet, ledger = start()
    batch = wallet.issue(HASH, B.encode()[:32])
    assert reason(ledger, batch.signed) is None
    assert [reason(ledger, wallet.revoke(batch, *hashes)) for hashes in ((HASH,), (HASH, HASH), ())] == [None] * 3
    assert reason(ledger, wallet.revoke(batch, B.encode()[:32])) is Reason.BATCH_ALREADY_REVOKED
    assert ledger.batches[batch.batch_id].revoked_hashes == {HASH}


def test_pr_25_the_same_batch_is_issued_once() -> None:
    wallet, ledger = start()
    batch = wallet.issue(HASH)
    assert reason(ledger, batch.signed) is None
    again = sign_raw(batch.signed.operation + bytes_field(9, b""), "issuing", wallet.issuing)
    assert reason(ledger, again) is Reason.BATCH_EXISTS


def test_pr_22_a_thief_issues_nothing_in_anothers_name() -> None:
    wallet, ledger = start()
    thief = Wallet("thief")
    assert reason(ledger, thief.created) is None
    stolen = issue_batch(wallet.suffix, HASH, "issuing", thief.issuing).signed
    assert reason(ledger, stolen) is Reason.INVALID_SIGNATURE
    batch = wallet.issue(HASH)
    assert reason(ledger, batch.signed) is None
    theirs = revoke(batch.batch_id, batch.signed.hash, (), "revocation", thief.revocation)
    assert reason(ledger, theirs) is Reason.INVALID_SIGNATURE


# PR-24

GOOD = public_key("m", Usage.MASTER_KEY, secret("m"))


def key_of(**changes: Any) -> CreateDID:
    return CreateDID(DIDCreationData((GOOD, GOOD._replace(id="k")._replace(**changes))))


def service_of(**changes: Any) -> CreateDID:
    return CreateDID(DIDCreationData((GOOD,), (SERVICE._replace(**changes),)))


def is_well_formed(operation: Any) -> bool:
    try:
        check(operation)
    except Rejected as rejected:
        return rejected.reason is not Reason.MALFORMED_OPERATION
    return True


X, Y = (int.to_bytes(each, 32, "big") for each in PointOf(secret("m").point).point())


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        (key_of(), True),
        (key_of(id="a" * 50), True),
        (key_of(id="a" * 51), False),
        (key_of(id=""), False),
        (key_of(id="m"), False),
        (key_of(id="a%2Fb/?:@"), True),
        (key_of(id="a%2"), False),
        (key_of(id="a b"), False),
        (key_of(id="a#"), False),
        (key_of(id="é"), False),
        (key_of(id="a\n"), False),
        (key_of(usage=0), False),
        (key_of(usage=8), True),
        (key_of(usage=9), False),
        (key_of(usage=2**32 + 1), False),
        (key_of(data=None), False),
        (key_of(usage=4, data=CompressedECKeyData("Ed25519", HASH)), True),
        (key_of(usage=4, data=CompressedECKeyData("ed25519", HASH)), False),
        (key_of(usage=4, data=ECKeyData("X25519", HASH)), True),
        (key_of(usage=4, data=CompressedECKeyData("X25519", HASH[1:])), False),
        (key_of(usage=1, data=CompressedECKeyData("Ed25519", HASH)), False),
        (key_of(data=ECKeyData("secp256k1", X, Y)), True),
        (key_of(data=ECKeyData("secp256k1", b"\0\0" + X, b"\0" + Y)), True),
        (key_of(data=ECKeyData("secp256k1", X, X)), False),
        (key_of(data=ECKeyData("secp256k1", X)), False),
        (key_of(data=CompressedECKeyData("secp256k1", b"\4" + X + Y)), False),
        (key_of(data=CompressedECKeyData("secp256k1", X)), False),
        (CreateDID(), False),
        (CreateDID(DIDCreationData()), False),
        (CreateDID(DIDCreationData((GOOD._replace(usage=2),))), False),
        (CreateDID(DIDCreationData(tuple(GOOD._replace(id=f"{at}") for at in range(50)))), True),
        (CreateDID(DIDCreationData(tuple(GOOD._replace(id=f"{at}") for at in range(51)))), False),
        (CreateDID(DIDCreationData((GOOD,), tuple(SERVICE._replace(id=f"{at}") for at in range(50)))), True),
        (CreateDID(DIDCreationData((GOOD,), tuple(SERVICE._replace(id=f"{at}") for at in range(51)))), False),
        (CreateDID(DIDCreationData((GOOD,), (SERVICE, SERVICE))), False),
        (CreateDID(DIDCreationData((GOOD,), (), ("a", "b", ""))), True),
        (CreateDID(DIDCreationData((GOOD,), (), ("a", "a"))), False),
        (service_of(type=""), False),
        (service_of(type="a  b"), True),
        (service_of(type=" a"), False),
        (service_of(type="a" * 100), True),
        (service_of(type="a" * 101), False),
        (service_of(type='["a", "b c"]'), True),
        (service_of(type="[]"), False),
        (service_of(type='["a", 1]'), False),
        (service_of(type='{"a": 1}'), False),
        (service_of(service_endpoint=""), False),
        (service_of(service_endpoint="a:"), False),
        (service_of(service_endpoint="did:prism:x#y"), True),
        (service_of(service_endpoint="1a:b"), False),
        (service_of(service_endpoint="a:%zz"), False),
        (service_of(service_endpoint="a:é"), False),
        (service_of(service_endpoint="a:" + "b" * 298), True),
        (service_of(service_endpoint="a:" + "b" * 299), False),
        (service_of(service_endpoint="{}"), True),
        (service_of(service_endpoint='{"é": "é"}'), True),
        (service_of(service_endpoint='["a:b", {"c": 1}]'), True),
        (service_of(service_endpoint='["a b"]'), False),
        (service_of(service_endpoint="[]"), False),
        (service_of(service_endpoint='{"a": NaN}'), False),
        (service_of(service_endpoint='{"a": -Infinity}'), False),
        (service_of(service_endpoint="[" * 300), False),
        (service_of(service_endpoint='"a:b"'), False),
        (UpdateDID(HASH, A), False),
        (RevokeCredentials(HASH, A, (HASH,)), True),
        (RevokeCredentials(HASH, A, (HASH, b"")), False),
        (RevokeCredentials(b"", A), False),
        (DeactivateDID(HASH, A), True),
        (DeactivateDID(b"", A), False),
        (IssueCredentialBatch(CredentialBatchData(b"", A, HASH)), True),
        (IssueCredentialBatch(CredentialBatchData(b"", A, HASH + b"\0")), False),
        (IssueCredentialBatch(), False),
    ],
    ids=repr,
)
def test_pr_24_what_is_well_formed(operation: Any, wanted: bool) -> None:
    assert is_well_formed(operation) is wanted


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        (None, False),
        (AddKey(), False),
        (AddKey(GOOD._replace(usage=0)), False),
        (AddKey(GOOD), True),
        (RemoveKey(""), False),
        (RemoveKey("k"), True),
        (AddService(), False),
        (AddService(SERVICE), True),
        (AddService(SERVICE._replace(type="")), False),
        (RemoveService(""), False),
        (RemoveService("s"), True),
        (UpdateService("s"), False),
        (UpdateService("", "T"), False),
        (UpdateService("s", "T"), True),
        (UpdateService("s", "", "a:b"), True),
        (UpdateService("s", "T", "no uri"), False),
        (PatchContext(("a", "a")), False),
        (PatchContext(("a",)), True),
        (PatchContext(), True),
    ],
    ids=repr,
)
def test_pr_24_every_action_is_complete(action: Action | None, wanted: bool) -> None:
    assert is_well_formed(UpdateDID(HASH, A, (UpdateDIDAction(action),))) is wanted


# Properties

STEPS: list[Callable[[Wallet], Signed]] = [
    lambda wallet: wallet.created,
    lambda wallet: wallet.update(new_key(f"k{wallet.last[0]}")),
    lambda wallet: wallet.update(RemoveKey("issuing")),
    lambda wallet: wallet.update(new_key("x"), previous=HASH),
    lambda wallet: wallet.issue(wallet.last).signed,
    lambda wallet: wallet.revoke(wallet.issue(wallet.created.hash)),
    lambda wallet: wallet.deactivate(),
]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, len(STEPS) - 1)), max_size=14))
def test_pr_23_what_was_applied_is_applied_once_whatever_returns(steps: list[tuple[int, int]]) -> None:
    wallets, ledger, applied = [Wallet("a"), Wallet("b")], MemoryLedger(), []
    for who, what in steps:
        for raw in (STEPS[what](wallets[who]),) * 2:
            before = replace(ledger, dids={**ledger.dids}, batches={**ledger.batches})
            found = judge(ledger, raw)
            if found is not None and found.status is Status.APPLIED:
                applied.append(found.operation_hash)
            else:
                assert (ledger.dids, ledger.batches) == (before.dids, before.batches)
    assert len({*applied}) == len(applied)
    for did in ledger.dids.values():
        assert did.last_hash in ledger.applied_hashes
