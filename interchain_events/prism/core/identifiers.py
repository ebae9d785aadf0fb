"""Hashes, DIDs and credentials (PR-11, PR-13)."""

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from interchain_events.prism.core.errors import PrismError, Undecodable
from interchain_events.prism.core.messages import AtalaOperation, CreateDID, decode

METHOD: Final = "did:prism:"
"""The beginning of every DID of PRISM."""
HASH_BYTES: Final = 32
"""The size of a hash, in bytes."""
_HEX: Final = re.compile(r"[0-9a-f]{64}")


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 hash, which is the only hash of PRISM."""
    return hashlib.sha256(data).digest()


def is_hex_hash(text: str) -> bool:
    """Return whether a text is a hash as 64 hexadecimal digits in lower case.

    DID suffixes and batch ids have this form.
    """
    return _HEX.fullmatch(text) is not None


def long_form(operation: bytes) -> str:
    """Return the long-form DID of a CREATE_DID. `operation` is the bytes of its AtalaOperation."""
    return f"{METHOD}{sha256(operation).hex()}:{_base64url(operation)}"


def read_long_form(did: str) -> tuple[str, AtalaOperation]:
    """Return the suffix and the operation of a long-form DID.

    Raises `Undecodable` if the text is not a long-form DID. An operation has one spelling only:
    base64url without padding, whose unused bits are 0. With others, one DID would have many names.
    """
    suffix, _, state = did.removeprefix(METHOD).partition(":")
    try:
        raw = base64.b64decode(
            state.encode("ascii") + b"=" * (-len(state) % 4), altchars=b"-_", validate=True
        )
    except (UnicodeEncodeError, binascii.Error):
        raise Undecodable("the state of a long-form DID is not base64url") from None
    if _base64url(raw) != state:
        raise Undecodable("the state of a long-form DID is not base64url without padding")
    if not did.startswith(METHOD) or sha256(raw).hex() != suffix:
        raise Undecodable("the suffix of a long-form DID is not the hash of its state")
    found = decode(AtalaOperation, raw)
    if not isinstance(found.operation, CreateDID):
        raise Undecodable("the operation in a long-form DID does not create a DID")
    return suffix, found


def suffix_of(did: str) -> str:
    """Return the suffix of a DID, which may be the suffix itself, the short or the long form.

    Raises `Undecodable`.
    """
    named = did.removeprefix(METHOD)
    if is_hex_hash(named):
        return named
    if did.startswith(METHOD) and ":" in named:
        return read_long_form(did)[0]
    raise Undecodable(
        f"a DID, or its suffix of 64 hex digits in lower case, is needed, not {did[:80]!r}"
    )


def credential_hash(content: bytes, signature: bytes) -> bytes:
    """Return the hash of a credential, from its content and its issuer's signature over that."""
    return sha256(f"{_base64url(content)}.{_base64url(signature)}".encode())


class MerkleProof(NamedTuple):
    """The proof that a credential is in a batch."""

    hash: bytes
    """The credential's hash."""
    path: int
    """A bit for each sibling, the highest for the first one: 1 if that sibling is on the left."""
    siblings: tuple[bytes, ...]
    """The hashes of the siblings, from the leaf up."""


def merkle_tree(hashes: Sequence[bytes]) -> tuple[bytes, tuple[MerkleProof, ...]]:
    """Return the root of a batch, and a proof for each of its credential hashes.

    A node without a sibling moves up unchanged (PR-13). Raises `PrismError` for an empty batch.
    """
    if not hashes:
        raise PrismError("a batch has at least one credential")
    level = [sha256(b"\0" + each) for each in hashes]
    places = list(range(len(hashes)))
    siblings: list[list[bytes]] = [[] for _ in hashes]
    paths = [0] * len(hashes)
    while len(level) > 1:
        for at, place in enumerate(places):
            if place ^ 1 < len(level):
                siblings[at].append(level[place ^ 1])
                paths[at] = paths[at] << 1 | place & 1
            places[at] = place >> 1
        paired = [_node(*level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        level = [*paired, *level[len(paired) * 2 :]]
    proofs = (MerkleProof(each, paths[at], tuple(siblings[at])) for at, each in enumerate(hashes))
    return level[0], tuple(proofs)


def is_in_batch(root: bytes, proof: MerkleProof) -> bool:
    """Return whether a proof leads to the root of a batch."""
    height = len(proof.siblings)
    # Further bits would make several valid paths for one proof.
    if not 0 <= proof.path < 1 << height:
        return False
    found = sha256(b"\0" + proof.hash)
    for at, sibling in enumerate(proof.siblings):
        is_left = proof.path >> (height - 1 - at) & 1
        found = _node(sibling, found) if is_left else _node(found, sibling)
    return found == root


def _node(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node. The first byte tells inner nodes from leaves."""
    return sha256(b"\1" + left + right)


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
