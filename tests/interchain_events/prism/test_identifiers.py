"""Long-form DIDs (PR-11)."""

import base64

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interchain_events.prism.core import messages as m
from interchain_events.prism.core.errors import Undecodable
from interchain_events.prism.core.identifiers import (
    METHOD,
    credential_hash,
    is_in_batch,
    long_form,
    merkle_tree,
    read_long_form,
    sha256,
    suffix_of,
)
from interchain_events.prism.core.messages import encode

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

OPERATIONS = st.builds(
    lambda name, context: encode(
        m.AtalaOperation(
            operation=m.CreateDID(
                m.DIDCreationData((m.PublicKey(name, m.Usage.MASTER_KEY, None),), (), (context,))
            )
        )
    ),
    st.text(max_size=12),
    st.text(max_size=12),
)


@given(OPERATIONS)
def test_a_long_form_did_comes_back(operation: bytes) -> None:
    suffix, found = read_long_form(long_form(operation))
    assert suffix == sha256(operation).hex()
    assert encode(found) == operation


@pytest.mark.parametrize("length", range(1, 4))
def test_only_padding_is_taken_from_the_end_of_a_state(length: int) -> None:
    """A state of whole groups of three bytes may end with any letter, here with an X."""
    context = "W" * length
    operation = encode(
        m.AtalaOperation(operation=m.CreateDID(m.DIDCreationData((), (), (context,))))
    )
    did = long_form(operation)
    assert did.endswith("X") is (len(operation) % 3 == 0)
    assert read_long_form(did)[0] == sha256(operation).hex()


@given(OPERATIONS)
def test_a_suffix_a_did_and_a_long_form_name_the_same(operation: bytes) -> None:
    suffix = sha256(operation).hex()
    for name in (suffix, METHOD + suffix, long_form(operation)):
        assert suffix_of(name) == suffix


@pytest.mark.parametrize(
    "name",
    [
        "",
        METHOD,
        "a" * 63,
        "A" * 64,
        METHOD + "a" * 65,
        METHOD + METHOD + "a" * 64,
        "did:example:" + "a" * 64,
        "a" * 64 + ":",
        METHOD + "a" * 64 + ":",
        METHOD + "a" * 64 + ":AAAA",
        " " + "a" * 64,
    ],
)
def test_nothing_else_names_a_did(name: str) -> None:
    with pytest.raises(Undecodable):
        suffix_of(name)


def test_pr_11_a_long_form_begins_with_method_and_hash() -> None:
    did = long_form(
        encode(m.AtalaOperation(operation=m.CreateDID(m.DIDCreationData((), (), ("c",)))))
    )
    suffix, _ = read_long_form(did)
    for wrong in (did.removeprefix(METHOD), did.replace(suffix, "a" * 64)):
        with pytest.raises(Undecodable, match="is not the hash of its state"):
            read_long_form(wrong)


def test_pr_13_a_credential_is_known_by_its_content_and_signature() -> None:
    assert credential_hash(b"a", b"\xff\xfe\xfd") == sha256(b"YQ.__79")
    assert credential_hash(b"", b"b") == sha256(b".Yg")


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_pr_13_a_proof_has_one_path_and_proves_its_credential_alone(count: int) -> None:
    root, proofs = merkle_tree([sha256(bytes((number,))) for number in range(count)])
    for proof in proofs:
        assert is_in_batch(root, proof)
        height = len(proof.siblings)
        for path in (*range(-2, 1 << height), (1 << height) + proof.path, 1 << height):
            assert is_in_batch(root, proof._replace(path=path)) is (path == proof.path)
        assert not is_in_batch(root, proof._replace(hash=sha256(b"other")))
        assert not is_in_batch(sha256(root), proof)


def spellings(operation: bytes) -> list[str]:
    """Other texts that base64 decoders read as the same bytes."""
    suffix = sha256(operation).hex()
    standard = base64.b64encode(operation).decode().rstrip("=")
    url = base64.urlsafe_b64encode(operation).decode()
    state = url.rstrip("=")
    found = [
        f"{METHOD}{suffix}:{standard}",
        f"{METHOD}{suffix}:{url}",
        f"{METHOD}{suffix}:{state}=",
        f"{METHOD}{suffix}:{state}====",
        f"{METHOD}{suffix}:{state}\n",
        f"{METHOD}{suffix.upper()}:{state}",
        f"{METHOD}{suffix}:{state}:",
        f"{suffix}:{state}",
    ]
    if len(operation) % 3:
        last = DIGITS.index(state[-1])
        found.append(f"{METHOD}{suffix}:{state[:-1]}{DIGITS[last | 1]}")
    return found


@given(OPERATIONS, st.integers(0, 8))
def test_a_long_form_did_has_one_spelling(operation: bytes, which: int) -> None:
    texts = [each for each in spellings(operation) if each != long_form(operation)]
    assume(which < len(texts))
    with pytest.raises(Undecodable):
        read_long_form(texts[which])
