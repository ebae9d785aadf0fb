"""Signatures (PR-12): strict DER, either S, and nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.prism.core.identifiers import sha256
from pubsub_emulator.prism.core.signatures import ORDER, public_point, read_der, sign, verify, write_der

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
    for r, s in ((0, S), (R, 0), (R + ORDER, S), (R, S + ORDER), (R, ORDER), (ORDER, S)):
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
        b"\x30" + bytes((len(body) - 1,)) + body[: r_end + 1] + bytes((s_length - 1,)) + body[r_end + 2 : -1],
        b"\x31" + SIGNATURE[1:],
        b"",
    ):
        assert not holds(signature), signature.hex()


@given(st.sampled_from((SIGNATURE, HIGH)), st.integers(0, 71), st.binary(max_size=3), st.integers(0, 3))
def test_pr_12_no_other_bytes_are_that_signature(whole: bytes, at: int, put: bytes, gone: int) -> None:
    changed = whole[:at] + put + whole[at + gone :]
    assert holds(changed) == (changed in {SIGNATURE, HIGH})


@given(st.integers(0, 2**264), st.integers(0, 2**264))
def test_pr_12_what_holds_is_strict_der_of_numbers_in_range(r: int, s: int) -> None:
    made = write_der(r, s)
    assert not holds(made) or read_der(made) in {(R, S), (R, ORDER - S)}
