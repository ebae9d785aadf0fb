"""PR-21 to PR-25: every check with every reason, in order, and what operations do."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from coincurve import PublicKey as PointOf
from hypothesis import given
from hypothesis import strategies as st
from support.prism.wallet import Wallet, judge, judged, new_key, reason, secret

from interchain_events.prism import create_did, issue_batch, revoke, update_did
from interchain_events.prism.core import messages as m
from interchain_events.prism.core import signatures
from interchain_events.prism.core.errors import Reason, Rejected
from interchain_events.prism.core.ledger import MemoryLedger
from interchain_events.prism.core.process import OperationType, Status, effect, revoked_hashes
from interchain_events.prism.core.state import stored
from interchain_events.prism.core.well_formed import check
from interchain_events.prism.core.wire import bytes_field
from interchain_events.prism.make import Signed, deactivate_did, public_key, sign, sign_raw

A, B = "a" * 64, "b" * 64
HASH = b"\x07" * 32
SERVICE = m.Service("s", "LinkedDomains", "https://example.com/")


@pytest.fixture
def wallet() -> Wallet:
    return Wallet("a")


@pytest.fixture
def ledger(wallet: Wallet) -> MemoryLedger:
    """With the wallet's DID."""
    made = MemoryLedger()
    assert reason(made, wallet.created) is None
    return made


# PR-21, check by check


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"", Reason.UNSUPPORTED_OPERATION),
        (bytes_field(3, b""), Reason.UNSUPPORTED_OPERATION),
        (bytes_field(3, bytes_field(10, b"")), Reason.UNSUPPORTED_OPERATION),
        (bytes_field(3, bytes_field(5, b"")), Reason.MALFORMED_OPERATION),
        (bytes_field(3, bytes_field(7, b"")), Reason.MALFORMED_OPERATION),
        (bytes_field(3, bytes_field(8, b"")), Reason.MALFORMED_OPERATION),
        (bytes_field(3, bytes_field(9, b"")), Reason.MALFORMED_OPERATION),
        (Wallet("a").created.raw + bytes_field(12, b""), Reason.MALFORMED_OPERATION),
        (sign(m.CreateDID(), "m", secret("m")).raw, Reason.MALFORMED_OPERATION),
        (sign(m.IssueCredentialBatch(), "m", secret("m")).raw, Reason.MALFORMED_OPERATION),
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
    """Members after 9 are not processed, either (PR-10)."""
    found = judged(MemoryLedger(), raw)
    assert (found.reason, found.did_suffix, found.created_did_suffix) == (wanted, None, None)
    assert (found.type is OperationType.UNKNOWN) == (
        wanted is Reason.UNSUPPORTED_OPERATION or b"\x62\x00" in raw[-2:]
    )


def test_pr_21_check_5_the_key_is_one_of_the_dids_own_on_secp256k1(
    wallet: Wallet, ledger: MemoryLedger
) -> None:
    assert (
        reason(ledger, update_did(wallet.suffix, wallet.last, (), "no", wallet.master))
        is Reason.UNKNOWN_KEY
    )
    ed = m.AddKey(
        m.PublicKey("ed", m.Usage.AUTHENTICATION_KEY, m.CompressedECKeyData("Ed25519", HASH))
    )
    assert reason(ledger, wallet.update(ed)) is None
    assert (
        reason(ledger, update_did(wallet.suffix, wallet.last, (), "ed", wallet.master))
        is Reason.UNKNOWN_KEY
    )
    assert (
        reason(ledger, sign(m.CreateDID(m.DIDCreationData()), "m", secret("m")))
        is Reason.UNKNOWN_KEY
    )
    off_curve = m.PublicKey(
        "m", m.Usage.MASTER_KEY, m.CompressedECKeyData("secp256k1", b"\x02" + b"\xff" * 32)
    )
    assert (
        reason(ledger, sign(m.CreateDID(m.DIDCreationData((off_curve,))), "m", secret("m")))
        is Reason.UNKNOWN_KEY
    )


def test_pr_21_check_5_of_two_keys_with_one_id_the_first_signs() -> None:
    first, second = (public_key("m", m.Usage.MASTER_KEY, secret(name)) for name in "xy")
    twice = m.CreateDID(m.DIDCreationData((first, second)))
    assert reason(MemoryLedger(), sign(twice, "m", secret("y"))) is Reason.INVALID_SIGNATURE
    assert reason(MemoryLedger(), sign(twice, "m", secret("x"))) is Reason.MALFORMED_OPERATION


def test_pr_21_check_7_the_same_operation_under_another_id_is_a_duplicate(
    wallet: Wallet, ledger: MemoryLedger
) -> None:
    parts = signatures.read_der(signatures.sign(wallet.master.raw, wallet.created.operation))
    assert parts is not None
    high = signatures.write_der(parts[0], signatures.ORDER - parts[1])
    raw = (
        bytes_field(1, b"master") + bytes_field(2, high) + bytes_field(3, wallet.created.operation)
    )
    found = judged(ledger, raw)
    assert (found.reason, found.created_did_suffix) == (Reason.DUPLICATE_OPERATION, wallet.suffix)


def test_pr_21_check_8_comes_after_the_signature_and_before_the_usage(
    wallet: Wallet, ledger: MemoryLedger
) -> None:
    made = update_did(wallet.suffix, wallet.last, (), "issuing", wallet.issuing)
    found = judged(ledger, made)
    assert (found.reason, found.did_suffix) == (Reason.MALFORMED_OPERATION, wallet.suffix)


def test_pr_21_check_9_each_operation_needs_its_usage(wallet: Wallet, ledger: MemoryLedger) -> None:
    keys = {"master": wallet.master, "issuing": wallet.issuing, "revocation": wallet.revocation}
    batch = wallet.issue(HASH)
    for wrong in ("issuing", "revocation"):
        update = update_did(wallet.suffix, wallet.last, (new_key("k"),), wrong, keys[wrong])
        assert reason(ledger, update) is Reason.WRONG_KEY_USAGE
        assert (
            reason(ledger, deactivate_did(wallet.suffix, wallet.last, wrong, keys[wrong]))
            is Reason.WRONG_KEY_USAGE
        )
    for wrong in ("master", "revocation"):
        assert (
            reason(ledger, issue_batch(wallet.suffix, HASH, wrong, keys[wrong]).signed)
            is Reason.WRONG_KEY_USAGE
        )
    assert reason(ledger, batch.signed) is None
    for wrong in ("master", "issuing"):
        made = revoke(batch.batch_id, batch.signed.hash, (), wrong, keys[wrong])
        assert reason(ledger, made) is Reason.WRONG_KEY_USAGE
    keys_of = {"m": (m.Usage.MASTER_KEY, secret("m")), "i": (m.Usage.ISSUING_KEY, secret("i"))}
    assert reason(ledger, create_did(keys_of, signed_with="i")) is Reason.WRONG_KEY_USAGE


def test_pr_21_check_10_a_revoked_key_signs_nothing_more(
    wallet: Wallet, ledger: MemoryLedger
) -> None:
    assert (
        reason(ledger, wallet.update(new_key("m2", m.Usage.MASTER_KEY), m.RemoveKey("master")))
        is None
    )
    assert reason(ledger, wallet.update(new_key("k"))) is Reason.KEY_REVOKED


@pytest.mark.parametrize("previous", [HASH, b"", HASH[1:]])
def test_pr_21_check_11_a_stale_hash(previous: bytes, wallet: Wallet, ledger: MemoryLedger) -> None:
    wanted = Reason.WRONG_PREVIOUS_HASH if len(previous) == 32 else Reason.MALFORMED_OPERATION
    assert reason(ledger, wallet.update(new_key("k"), previous=previous)) is wanted
    batch = wallet.issue(HASH)
    assert reason(ledger, batch.signed) is None
    made = revoke(batch.batch_id, previous, (), "revocation", wallet.revocation)
    assert reason(ledger, made) is wanted


def test_pr_21_check_11_batches_do_not_move_a_dids_hash_nor_revocations_a_batchs(
    wallet: Wallet, ledger: MemoryLedger
) -> None:
    batch = wallet.issue(HASH)
    steps = [
        batch.signed,
        wallet.update(new_key("k")),
        wallet.revoke(batch, HASH),
        wallet.revoke(batch),
    ]
    assert [reason(ledger, each) for each in steps] == [None] * 4


# PR-23


def test_pr_23_an_applied_id_is_ignored_and_a_rejected_one_tried_again(
    wallet: Wallet, ledger: MemoryLedger
) -> None:
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
        ((m.RemoveKey("issuing"), new_key("issuing")), Reason.KEY_EXISTS),
        ((m.RemoveKey("nobody"),), Reason.KEY_NOT_ACTIVE),
        ((m.RemoveKey("issuing"), m.RemoveKey("issuing")), Reason.KEY_NOT_ACTIVE),
        ((m.AddService(SERVICE), m.AddService(SERVICE)), Reason.SERVICE_EXISTS),
        (
            (m.AddService(SERVICE), m.RemoveService("s"), m.AddService(SERVICE)),
            Reason.SERVICE_EXISTS,
        ),
        ((m.RemoveService("s"),), Reason.SERVICE_NOT_ACTIVE),
        ((m.UpdateService("s", "T"),), Reason.SERVICE_NOT_ACTIVE),
        (
            (m.AddService(SERVICE), m.RemoveService("s"), m.UpdateService("s", "T")),
            Reason.SERVICE_NOT_ACTIVE,
        ),
        ((m.PatchContext(()),), Reason.CONTEXT_EMPTY),
        ((m.RemoveKey("master"),), Reason.LAST_MASTER_KEY),
        (tuple(new_key(f"k{at}") for at in range(48)), Reason.TOO_MANY_KEYS),
        (
            tuple(m.AddService(SERVICE._replace(id=f"s{at}")) for at in range(51)),
            Reason.TOO_MANY_SERVICES,
        ),
        ((m.RemoveKey("nobody"), m.RemoveKey("master")), Reason.KEY_NOT_ACTIVE),
    ],
)
def test_pr_25_an_update_is_all_or_nothing(
    actions: tuple[m.Action, ...], wanted: Reason, wallet: Wallet, ledger: MemoryLedger
) -> None:
    before = ledger.dids[wallet.suffix]
    assert reason(ledger, wallet.update(*actions)) is wanted
    assert ledger.dids[wallet.suffix] is before


def test_pr_25_what_actions_do(wallet: Wallet, ledger: MemoryLedger) -> None:
    other = m.Service("t", "A", "b:c")
    steps = (
        m.AddService(SERVICE),
        m.AddService(other),
        m.UpdateService("s", "T"),
        m.UpdateService("t", "", "d:e"),
    )
    assert (
        reason(
            ledger,
            wallet.update(*steps, m.PatchContext(("x", "y")), new_key("m2", m.Usage.MASTER_KEY)),
        )
        is None
    )
    assert (
        reason(
            ledger,
            wallet.update(m.RemoveService("t"), m.RemoveKey("master"), m.PatchContext(("z",))),
        )
        is None
    )
    did = ledger.dids[wallet.suffix]
    assert did.context == ("z",)
    assert {name: tuple(each) for name, each in did.services.items()} == {
        "s": ("T", SERVICE.service_endpoint, True),
        "t": ("A", "d:e", False),
    }
    assert [name for name, each in did.keys.items() if not each.active] == ["master"]
    assert did.last_hash == wallet.last


def test_pr_25_removed_keys_make_room_for_others(wallet: Wallet, ledger: MemoryLedger) -> None:
    assert reason(ledger, wallet.update(*(new_key(f"k{at}") for at in range(47)))) is None
    assert reason(ledger, wallet.update(new_key("k47"), m.RemoveKey("k0"))) is None


def test_pr_25_removed_services_make_room_for_others(wallet: Wallet, ledger: MemoryLedger) -> None:
    services = [m.AddService(SERVICE._replace(id=f"s{number}")) for number in range(52)]
    assert reason(ledger, wallet.update(*services[:50])) is None
    assert reason(ledger, wallet.update(m.RemoveService("s0"), services[50])) is None
    last = wallet.last
    assert reason(ledger, wallet.update(services[51])) is Reason.TOO_MANY_SERVICES
    wallet.last = last
    assert reason(ledger, wallet.update(m.RemoveService("s1"), services[51])) is None


def test_pr_25_what_cannot_be_used_creates_nothing() -> None:
    """PR-24 refuses these before. The effects do not rely on it."""
    without = GOOD._replace(data=None)
    did = effect(None, m.CreateDID(m.DIDCreationData((GOOD,))), HASH)
    for before, operation in (
        (None, m.CreateDID()),
        (None, m.CreateDID(m.DIDCreationData((without,)))),
        (did, m.UpdateDID(HASH, A, (m.UpdateDIDAction(m.AddKey(without._replace(id="k"))),))),
    ):
        with pytest.raises(Rejected) as refused:
            effect(before, operation, HASH)
        assert refused.value.reason is Reason.MALFORMED_OPERATION
    with pytest.raises(Rejected) as refused:
        stored(None, A, m.CreateStorageEntry(HASH), HASH)
    assert refused.value.reason is Reason.MALFORMED_OPERATION
    for operation in (m.UpdateStorageEntry(HASH, b""), m.DeactivateStorageEntry(HASH)):
        with pytest.raises(Rejected) as refused:
            stored(None, A, operation, HASH)
        assert refused.value.reason is Reason.UNKNOWN_STORAGE_ENTRY


def test_pr_25_revocations(wallet: Wallet, ledger: MemoryLedger) -> None:
    batch = wallet.issue(HASH, B.encode()[:32])
    assert reason(ledger, batch.signed) is None
    assert [
        reason(ledger, wallet.revoke(batch, *hashes)) for hashes in ((HASH,), (HASH, HASH), ())
    ] == [None] * 3
    assert reason(ledger, wallet.revoke(batch, B.encode()[:32])) is Reason.BATCH_ALREADY_REVOKED
    assert ledger.batches[batch.batch_id].revoked_hashes == {HASH}


def test_pr_25_the_same_batch_is_issued_once(wallet: Wallet, ledger: MemoryLedger) -> None:
    batch = wallet.issue(HASH)
    assert reason(ledger, batch.signed) is None
    again = sign_raw(batch.signed.operation + bytes_field(10, b""), "issuing", wallet.issuing)
    assert reason(ledger, again) is Reason.BATCH_EXISTS


def test_pr_21_check_6_and_pr_22_a_thief_does_nothing_in_anothers_name(
    wallet: Wallet, ledger: MemoryLedger
) -> None:
    thief = Wallet("thief")
    batch = wallet.issue(HASH)
    assert [reason(ledger, each) for each in (thief.created, batch.signed)] == [None, None]
    for stolen in (
        update_did(wallet.suffix, wallet.last, (new_key("k"),), "master", thief.master),
        issue_batch(wallet.suffix, HASH, "issuing", thief.issuing).signed,
        revoke(batch.batch_id, batch.signed.hash, (), "revocation", thief.revocation),
    ):
        found = judged(ledger, stolen)
        assert (found.reason, found.did_suffix) == (Reason.INVALID_SIGNATURE, None)


def test_pr_25_only_operations_on_a_did_change_it() -> None:
    made = create_did({"m": (m.Usage.MASTER_KEY, secret("m"))})
    creation = m.decode(m.AtalaOperation, made.operation).operation
    assert creation is not None
    did = effect(None, creation, HASH)
    assert effect(did, m.DeactivateDID(HASH, A), A.encode()[:32]).context == ()
    others = (m.IssueCredentialBatch(), m.RevokeCredentials(), m.ProtocolVersionUpdate())
    for before, operation in (
        (None, m.UpdateDID(HASH, A)),
        (None, m.DeactivateDID(HASH, A)),
        *((did, other) for other in others),
    ):
        with pytest.raises(Rejected, match="UNKNOWN_DID"):
            effect(before, operation, HASH)


def test_pr_32_revoked_hashes_are_sorted_and_each_is_there_once(wallet: Wallet) -> None:
    assert revoked_hashes(m.SignedAtalaOperation()) == ()
    assert revoked_hashes(m.decode(m.SignedAtalaOperation, wallet.created.raw)) == ()
    revocation = wallet.revoke(wallet.issue(HASH), b"b", b"c", b"a", b"b")
    decoded = m.decode(m.SignedAtalaOperation, revocation.raw)
    assert revoked_hashes(decoded) == (b"a", b"b", b"c")


def test_pr_32_only_a_canonical_revocation_names_revoked_hashes(wallet: Wallet) -> None:
    revocation = wallet.revoke(wallet.issue(HASH), b"b", b"a")
    found = judged(MemoryLedger(), revocation)
    assert (found.reason, found.revoked_hashes) == (Reason.UNKNOWN_BATCH, (b"a", b"b"))
    other = judged(MemoryLedger(), revocation.raw + bytes_field(12, b""))
    assert (other.type, other.revoked_hashes) == (OperationType.UNKNOWN, ())
    assert other.credential_batch_id is None


# PR-24

GOOD = public_key("m", m.Usage.MASTER_KEY, secret("m"))


def key_of(**changes: Any) -> m.CreateDID:
    return m.CreateDID(m.DIDCreationData((GOOD, GOOD._replace(id="k")._replace(**changes))))


def service_of(**changes: Any) -> m.CreateDID:
    return m.CreateDID(m.DIDCreationData((GOOD,), (SERVICE._replace(**changes),)))


def is_well_formed(operation: Any) -> bool:
    try:
        check(operation)
    except Rejected as rejected:
        return rejected.reason is not Reason.MALFORMED_OPERATION
    return True


X, Y = (int.to_bytes(each, 32, "big") for each in PointOf(secret("m").point).point())


ED25519 = m.CompressedECKeyData("Ed25519", HASH)
FIELDS: list[tuple[Callable[..., m.CreateDID], str, list[Any], list[Any]]] = [
    (
        key_of,
        "id",
        ["k", "a" * 50, "a%2Fb/?:@"],
        ["a" * 51, "", "m", "a%2", "a b", "a#", "é", "a\n"],
    ),
    (key_of, "usage", [8], [0, 9, 2**32 + 1]),
    (
        key_of,
        "data",
        [m.ECKeyData("secp256k1", X, Y), m.ECKeyData("secp256k1", b"\0\0" + X, b"\0" + Y)],
        [
            *(None, ED25519, m.ECKeyData("secp256k1", X, X), m.ECKeyData("secp256k1", X)),
            *(m.CompressedECKeyData("secp256k1", each) for each in (b"\4" + X + Y, X)),
        ],
    ),
    (
        partial(key_of, usage=4),
        "data",
        [ED25519, m.ECKeyData("X25519", HASH)],
        [m.CompressedECKeyData("ed25519", HASH), m.CompressedECKeyData("X25519", HASH[1:])],
    ),
    (
        service_of,
        "type",
        ["a  b", "a" * 100, '["a", "b c"]'],
        ["", " a", "a" * 101, "[]", '["a", 1]', '{"a": 1}'],
    ),
    (
        service_of,
        "service_endpoint",
        ["did:prism:x#y", "a:" + "b" * 298, "{}", '{"é": "é"}', '["a:b", {"c": 1}]'],
        [
            *("", "a:", "1a:b", "a:%zz", "a:é", "a:" + "b" * 299, '["a b"]', "[]"),
            *('{"a": NaN}', '{"a": -Infinity}', "[" * 300, '"a:b"', "5", "true", "[[]]"),
        ],
    ),
]
"""What makes a creation, one of its fields, and what may and may not be in it."""


def created(keys: int, services: int = 0, context: tuple[str, ...] = ()) -> m.CreateDID:
    listed = tuple(SERVICE._replace(id=f"{at}") for at in range(services))
    return m.CreateDID(
        m.DIDCreationData(tuple(GOOD._replace(id=f"{at}") for at in range(keys)), listed, context)
    )


def updated(*actions: m.Action | None) -> m.UpdateDID:
    return m.UpdateDID(HASH, A, tuple(map(m.UpdateDIDAction, actions)))


WELL_FORMED = [
    *(make(**{name: value}) for make, name, values, _ in FIELDS for value in values),
    *(created(50), created(1, 50), created(1, context=("a", "b", ""))),
    *(m.RevokeCredentials(HASH, A, (HASH,)), m.DeactivateDID(HASH, A)),
    m.IssueCredentialBatch(m.CredentialBatchData(b"", A, HASH)),
    *(m.CreateStorageEntry(HASH, b"", b""), m.UpdateStorageEntry(HASH, "")),
    *(m.DeactivateStorageEntry(HASH), m.ProtocolVersionUpdate()),
    *map(
        updated,
        (
            m.AddKey(GOOD),
            m.RemoveKey("k"),
            m.AddService(SERVICE),
            m.RemoveService("s"),
            m.UpdateService("s", "T"),
        ),
    ),
    *map(updated, (m.UpdateService("s", "", "a:b"), m.PatchContext(("a",)), m.PatchContext())),
]
MALFORMED = [
    *(make(**{name: value}) for make, name, _, values in FIELDS for value in values),
    *(m.CreateDID(), created(0), created(51), created(1, 51), created(1, context=("a", "a"))),
    m.CreateDID(m.DIDCreationData((GOOD._replace(usage=2),))),
    m.CreateDID(m.DIDCreationData((GOOD,), (SERVICE, SERVICE))),
    *(
        updated(),
        m.RevokeCredentials(HASH, A, (HASH, b"")),
        m.RevokeCredentials(b"", A),
        m.DeactivateDID(b"", A),
    ),
    *(
        m.IssueCredentialBatch(),
        m.IssueCredentialBatch(m.CredentialBatchData(b"", A, HASH + b"\0")),
        m.CreateStorageEntry(HASH),
        m.UpdateStorageEntry(HASH),
    ),
    *map(
        updated,
        (
            None,
            m.AddKey(),
            m.AddKey(GOOD._replace(usage=0)),
            m.RemoveKey(""),
            m.AddService(),
            m.RemoveService(""),
        ),
    ),
    *map(
        updated,
        (m.AddService(SERVICE._replace(type="")), m.UpdateService("s"), m.UpdateService("", "T")),
    ),
    *map(updated, (m.UpdateService("s", "T", "no uri"), m.PatchContext(("a", "a")))),
]


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [(each, each in WELL_FORMED) for each in (*WELL_FORMED, *MALFORMED)],
    ids=repr,
)
def test_pr_24_what_is_well_formed(operation: Any, wanted: bool) -> None:
    assert is_well_formed(operation) is wanted


# Properties

STEPS: list[Callable[[Wallet], Signed]] = [
    lambda wallet: wallet.created,
    lambda wallet: wallet.update(new_key(f"k{wallet.last[0]}")),
    lambda wallet: wallet.update(m.RemoveKey("issuing")),
    lambda wallet: wallet.update(new_key("x"), previous=HASH),
    lambda wallet: wallet.issue(wallet.last).signed,
    lambda wallet: wallet.revoke(wallet.issue(wallet.created.hash)),
    lambda wallet: wallet.deactivate(),
]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, len(STEPS) - 1)), max_size=14))
def test_pr_23_what_was_applied_is_applied_once_whatever_returns(
    steps: list[tuple[int, int]],
) -> None:
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
