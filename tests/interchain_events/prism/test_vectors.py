"""PR-10 to PR-13, PR-20 to PR-25, PR-40 to PR-42: golden vectors with DIDs of mainnet; filters and
signatures.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.prism.wallet import DOCUMENT

from interchain_events.prism.core.errors import Reason
from interchain_events.prism.core.filters import OWNERS, Filter, FilterType, matches, normal_form
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.process import DecidedOperation, OperationType, Status
from interchain_events.prism.core.signatures import (
    ORDER,
    compressed,
    coordinates,
    public_point,
    read_der,
    sign,
    verify,
    write_der,
)
from interchain_events.prism.vectors import FORMATS
from pubsub_emulator.primitives.errors import PubsubError

CASES = list(FORMATS[0].cases(DOCUMENT))


@pytest.mark.parametrize("check", [check for _, check in CASES], ids=[name for name, _ in CASES])
def test_pr_11_to_pr_42_hold_on_a_vector(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(
            "long_form_dids",
            lambda case: case.update(well_formed=not case["well_formed"]),
            id="a long-form DID",
        ),
        pytest.param(
            "signatures",
            lambda case: case.update(message=case["message"] + "00"),
            id="a signed message",
        ),
        pytest.param(
            "objects", lambda case: case.update(atala_object_id="00" * 32), id="an object's id"
        ),
        pytest.param("histories", lambda case: case["operations"].pop(), id="an operation"),
        pytest.param(
            "histories", lambda case: case["state"]["dids"].popitem(), id="a DID of the state"
        ),
        pytest.param("histories", lambda case: case["matches"][0]["seq_nos"].pop(), id="a match"),
        pytest.param(
            "batches",
            lambda case: case.update(credential_hashes=["00" * 32]),
            id="a credential of a batch",
        ),
        pytest.param("merkle", lambda case: case.update(root="00" * 32), id="a Merkle root"),
        pytest.param("normal_forms", lambda case: case["normal_form"].pop(), id="a normal form"),
    ],
)
def test_a_vector_that_states_otherwise_fails(
    name: str, change: Callable[[dict[str, Any]], object]
) -> None:
    case = copy.deepcopy(DOCUMENT[name][0])
    change(case)
    ((_, check),) = FORMATS[0].cases({name: [case]})
    with pytest.raises(PubsubError):
        check()


SUFFIXES = st.sampled_from(["a" * 64, "b" * 64])
HASHES = st.sampled_from([b"\1" * 32, b"\2" * 32])
BATCHES = st.sampled_from(["c" * 64, "d" * 64])
STATUSES = st.sampled_from([None, Status.APPLIED, Status.REJECTED])


def _filter(kind: FilterType) -> st.SearchStrategy[Filter]:
    revokes = kind is FilterType.REVOKE_CREDENTIAL_FILTER
    return st.builds(
        Filter,
        st.just(kind),
        SUFFIXES if kind in OWNERS else st.none(),
        HASHES if revokes else st.none(),
        st.none() | BATCHES if revokes else st.none(),
        STATUSES,
    )


FILTERS = st.sampled_from(FilterType).flatmap(_filter)


@st.composite
def outcomes(draw: st.DrawFn) -> DecidedOperation:
    kind = draw(st.sampled_from(OperationType))
    owner = draw(st.none() | SUFFIXES)
    is_create = kind is OperationType.CREATE_DID
    about_batches = kind in {OperationType.ISSUE_CREDENTIAL_BATCH, OperationType.REVOKE_CREDENTIALS}
    listed = draw(st.sets(HASHES)) if kind is OperationType.REVOKE_CREDENTIALS else set()
    return DecidedOperation(
        b"",
        None,
        kind,
        reason=draw(st.none() | st.just(Reason.UNKNOWN_KEY)),
        did_suffix=None if is_create else owner,
        created_did_suffix=owner if is_create else None,
        credential_batch_id=draw(BATCHES) if about_batches else None,
        revoked_hashes=tuple(sorted(listed)),
        content=b"",
    )


@given(st.lists(FILTERS, min_size=1, max_size=8), st.lists(outcomes(), max_size=10))
def test_pr_42_the_normal_form_matches_the_same_rows(
    filters: list[Filter], rows: list[DecidedOperation]
) -> None:
    normal = normal_form(filters)
    for row in rows:
        assert any(matches(each, row) for each in filters) is any(
            matches(each, row) for each in normal
        )


def _row(kind: OperationType, **columns: Any) -> DecidedOperation:
    """An applied operation of the DID `a…`."""
    row = DecidedOperation(
        b"",
        None,
        kind,
        reason=None,
        did_suffix="a" * 64,
        created_did_suffix=None,
        credential_batch_id=None,
        revoked_hashes=(),
        content=b"",
    )
    return row._replace(**columns)


def test_pr_40_a_filter_matches_by_type_owner_and_status() -> None:
    update, create = _row(OperationType.UPDATE_DID), _row(OperationType.CREATE_DID)
    created = create._replace(did_suffix=None, created_did_suffix="a" * 64)
    mine = Filter(FilterType.UPDATE_DID_FILTER, "a" * 64)
    assert matches(mine, update)
    assert matches(mine, _row(OperationType.DEACTIVATE_DID))
    assert not matches(mine, create)
    assert not matches(mine._replace(did_suffix="b" * 64), update)
    for status, reason in ((Status.APPLIED, None), (Status.REJECTED, Reason.UNKNOWN_KEY)):
        wanted = mine._replace(status=status)
        assert matches(wanted, update._replace(reason=reason))
        assert not matches(wanted, update._replace(reason=None if reason else Reason.UNKNOWN_DID))
    owner = Filter(FilterType.DID_OWNER_ANY_FILTER, "a" * 64)
    assert matches(owner, created)
    assert not matches(owner, created._replace(created_did_suffix="b" * 64))
    assert matches(Filter(FilterType.CREATE_DID_FILTER), created)
    assert matches(Filter(FilterType.ANONYMOUS_ANY_FILTER), update)


def test_pr_41_a_revocation_concerns_its_batch_and_the_hashes_it_names() -> None:
    one, two = b"\1" * 32, b"\2" * 32
    row = _row(OperationType.REVOKE_CREDENTIALS, credential_batch_id="c" * 64)
    part = Filter(FilterType.REVOKE_CREDENTIAL_FILTER, None, one)
    inside, outside = (part._replace(credential_batch_id=batch * 64) for batch in "cd")
    for hashes, is_named in (((), True), ((one, two), True), ((two,), False)):
        found = row._replace(revoked_hashes=hashes)
        assert [matches(each, found) for each in (part, inside, outside)] == [
            is_named,
            is_named,
            False,
        ]
    assert not matches(part, row._replace(type=OperationType.ISSUE_CREDENTIAL_BATCH))


@given(st.lists(FILTERS, max_size=8), st.randoms(use_true_random=False))
def test_pr_42_order_and_repetition_mean_nothing(
    filters: list[Filter], draw: st.DataObject
) -> None:
    mixed = filters * 2
    draw.shuffle(mixed)  # type: ignore[attr-defined]  # a Random
    assert normal_form(mixed) == normal_form(filters)
    assert normal_form(normal_form(filters)) == normal_form(filters)
    assert len(normal_form(filters)) <= 2 * len(filters)


def test_pr_42_the_normal_form_is_in_the_order_of_its_fields() -> None:
    """An absent field comes before every value. Two nodes must have one form of a subscription."""
    a, b = "a" * 64, "b" * 64
    one, two = b"\1" * 32, b"\2" * 32
    revoke = FilterType.REVOKE_CREDENTIAL_FILTER
    ordered = (
        Filter(FilterType.DID_OWNER_ANY_FILTER, b),
        *(Filter(FilterType.UPDATE_DID_FILTER, digit * 64) for digit in "0123456789acdef"),
        Filter(FilterType.CREATE_DID_FILTER),
        Filter(revoke, None, one, None, Status.APPLIED),
        *(Filter(revoke, None, one, digit * 64, Status.REJECTED) for digit in "0123456789abcdef"),
        Filter(revoke, None, two, None, None),
        Filter(FilterType.STORAGE_ENTRIES_FILTER, a, status=Status.APPLIED),
    )
    assert normal_form(reversed(ordered)) == ordered


SECRET = sha256(b"secret")
POINT = public_point(SECRET)
MESSAGE = b"message"
SIGNATURE = sign(SECRET, MESSAGE)
R, S = read_der(SIGNATURE) or (0, 0)
HIGH = write_der(R, ORDER - S)


def holds(signature: bytes) -> bool:
    return verify(POINT, sha256(MESSAGE), signature)


def test_pr_12_either_s_is_valid() -> None:
    assert S < ORDER // 2
    assert holds(SIGNATURE)
    assert holds(HIGH)
    assert not verify(POINT, sha256(b"another"), HIGH)
    assert not verify(bytes(33), sha256(MESSAGE), SIGNATURE)


def test_pr_12_numbers_out_of_range_are_no_signature() -> None:
    large = 1 << 300
    for r, s in (
        *((0, S), (R, 0), (R + ORDER, S), (R, S + ORDER), (R, ORDER), (ORDER, S)),
        *((ORDER, ORDER - S), (R, large), (large, S), (large, large)),
    ):
        assert not holds(write_der(r, s)), (r, s)


def test_pr_12_der_is_strict() -> None:
    """Longer forms of length and number, bytes after the end, and negative numbers are refused."""
    body = SIGNATURE[2:]
    r_end = 2 + body[1]
    padded_r = b"\2" + bytes((body[1] + 1, 0)) + body[2:]
    s_length = body[r_end + 1]
    for signature in (
        b"\x30\x81" + bytes((len(body),)) + body,
        b"\x30" + bytes((len(body) + 1,)) + padded_r,
        b"\x30" + bytes((len(body) + 1,)) + body[:1] + b"\x81" + body[1:],
        b"\x30" + bytes((len(body) + 1,)) + body + b"\0",
        SIGNATURE + b"\0",
        SIGNATURE[:-1],
        b"\x30"
        + bytes((len(body) - 1,))
        + body[: r_end + 1]
        + bytes((s_length - 1,))
        + body[r_end + 2 : -1],
        b"\x31" + SIGNATURE[1:],
        b"",
    ):
        assert not holds(signature), signature.hex()


@pytest.mark.parametrize(
    "raw",
    [
        "3006020411223344",  # r fills everything
        "30060201010202ff",  # s is not positive
        "3006020100020100ff",
        "300702020001020101",  # a needless zero before r
        "300702020000020101",
        "300702010102020001",  # and before s
        "3006020201010301",
        "3006020002020101",  # r has no bytes
        "3006020180020101",  # r is not positive
    ],
)
def test_pr_12_der_without_two_whole_integers_has_no_numbers(raw: str) -> None:
    assert read_der(bytes.fromhex(raw)) is None


def test_pr_12_der_is_one_short_sequence() -> None:
    assert read_der(SIGNATURE) == (R, S)
    assert read_der(write_der(1, 0x80)) == (1, 0x80)
    assert read_der(write_der(1, 1)) == (1, 1)
    assert read_der(b"\x31" + SIGNATURE[1:]) is None
    assert read_der(SIGNATURE[:1] + bytes((SIGNATURE[1] + 1,)) + SIGNATURE[2:]) is None
    assert read_der(write_der(1 << 300, 1)) == (1 << 300, 1)
    # 72 and 73 bytes.
    assert read_der(write_der(1 << 255, 1 << 255)) == (1 << 255, 1 << 255)
    assert read_der(write_der(1 << 264, 1 << 255)) is None
    assert read_der(write_der(1 << 300, 1 << 300)) is None
    for size in range(8):
        assert read_der(SIGNATURE[:size]) is None


@pytest.mark.parametrize("number", [15, 122, 153, 356])
def test_pr_12_only_zeros_before_a_coordinate_may_be_more_or_fewer(number: int) -> None:
    """x or y of these points begins with a zero, or with the letter X."""
    point = public_point(number.to_bytes(32, "big"))
    x, y = coordinates(point)
    assert {x[0], y[0]} & {0, 0x58}
    for zeros in (b"", b"\0", bytes(9)):
        assert compressed(zeros + x.lstrip(b"\0"), zeros + y.lstrip(b"\0")) == point
    for wrong in (b"", b"\0", b"\1" + x, x[1:], x[:-1]):
        if wrong.lstrip(b"\0") != x.lstrip(b"\0"):
            assert compressed(wrong, y) is None
    for wrong in (b"", b"\0", b"\1" + y, x):
        assert compressed(x, wrong) is None


@given(
    st.sampled_from((SIGNATURE, HIGH)), st.integers(0, 71), st.binary(max_size=3), st.integers(0, 3)
)
def test_pr_12_no_other_bytes_are_that_signature(
    whole: bytes, at: int, put: bytes, gone: int
) -> None:
    changed = whole[:at] + put + whole[at + gone :]
    assert holds(changed) == (changed in {SIGNATURE, HIGH})


@given(st.integers(0, 2**264), st.integers(0, 2**264))
def test_pr_12_what_holds_is_strict_der_of_numbers_in_range(r: int, s: int) -> None:
    made = write_der(r, s)
    assert not holds(made) or read_der(made) in {(R, S), (R, ORDER - S)}
