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
"""The prefix of every DID of PRISM."""
HASH_BYTES: Final = 32
"""The size of a hash, in bytes."""
_HEX: Final = re.compile(r"[0-9a-f]{64}")


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 hash. PRISM does not use other hash functions."""
    return hashlib.sha256(data).digest()


def is_hex_hash(text: str) -> bool:
    """Return whether a text has 64 hexadecimal digits in lower case.

    DID suffixes and batch ids have this form.
    """
    return _HEX.fullmatch(text) is not None


def long_form(operation: bytes) -> str:
    """Return the long-form DID of a CREATE_DID. `operation` is the bytes of its AtalaOperation."""
    return f"{METHOD}{sha256(operation).hex()}:{_base64url(operation)}"


def read_long_form(did: str) -> tuple[str, AtalaOperation]:
    """Return the suffix and the operation of a long-form DID.

    Raises `Undecodable` if the text is not a long-form DID. The operation must be base64url without
    padding, with unused bits of 0. If other spellings were accepted, one DID would have many names.
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
    operation = decode(AtalaOperation, raw)
    if not isinstance(operation.operation, CreateDID):
        raise Undecodable("the operation in a long-form DID does not create a DID")
    return suffix, operation


def suffix_of(did: str) -> str:
    """Return the suffix of a DID, given by its suffix alone, its short form or its long form.

    Raises `Undecodable`.
    """
    name = did.removeprefix(METHOD)
    if is_hex_hash(name):
        return name
    if did.startswith(METHOD) and ":" in name:
        suffix, _ = read_long_form(did)
        return suffix
    raise Undecodable(
        f"a DID, or its suffix of 64 hex digits in lower case, is needed, not {did[:80]!r}"
    )


def credential_hash(content: bytes, signature: bytes) -> bytes:
    """Return the hash of a credential, from its content and its issuer's signature of it."""
    return sha256(f"{_base64url(content)}.{_base64url(signature)}".encode())


class MerkleProof(NamedTuple):
    """The proof that a credential is in a batch."""

    hash: bytes
    """The credential's hash."""
    path: int
    """A bit for each sibling, 1 if it is on the left. The highest bit is for the first sibling."""
    siblings: tuple[bytes, ...]
    """The hashes of the siblings, from the leaf up."""


def merkle_tree(hashes: Sequence[bytes]) -> tuple[bytes, tuple[MerkleProof, ...]]:
    """Return the root of a batch, and a proof for each of its credential hashes.

    A node without a sibling moves up unchanged (PR-13). Raises `PrismError` for an empty batch.
    """
    if not hashes:
        raise PrismError("a batch has at least one credential")
    level = [sha256(b"\0" + credential) for credential in hashes]
    places = list(range(len(hashes)))
    siblings: list[list[bytes]] = [[] for _ in hashes]
    paths = [0] * len(hashes)
    while len(level) > 1:
        for leaf, place in enumerate(places):
            # The sibling of a node differs from it in the last bit of its place.
            if place ^ 1 < len(level):
                siblings[leaf].append(level[place ^ 1])
                paths[leaf] = paths[leaf] << 1 | place & 1
            places[leaf] = place >> 1
        paired = [_node(*level[place : place + 2]) for place in range(0, len(level) - 1, 2)]
        level = [*paired, *level[len(paired) * 2 :]]
    proofs = (
        MerkleProof(credential, paths[leaf], tuple(siblings[leaf]))
        for leaf, credential in enumerate(hashes)
    )
    return level[0], tuple(proofs)


def is_in_batch(root: bytes, proof: MerkleProof) -> bool:
    """Return whether a proof leads to the root of a batch."""
    height = len(proof.siblings)
    # If further bits were accepted, one proof would have several valid paths.
    if not 0 <= proof.path < 1 << height:
        return False
    node = sha256(b"\0" + proof.hash)
    for level, sibling in enumerate(proof.siblings):
        is_left = proof.path >> (height - 1 - level) & 1
        node = _node(sibling, node) if is_left else _node(node, sibling)
    return node == root


def _node(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node. Its first byte distinguishes it from a leaf."""
    return sha256(b"\1" + left + right)


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
