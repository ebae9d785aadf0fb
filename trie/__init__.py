"""Substrate state tries: roots, proofs and their readers, to the byte.

`Trie` holds a state, `state_root` hashes one, `read_proof` opens a proof, `encode_compact` and `decode_compact`
convert its compact form, and `walk.step` takes one step through one node for those who meter every step themselves.
"""

from trie.bulk import state_root
from trie.errors import (
    BadNode,
    DuplicateNodes,
    IncompleteProof,
    MissingNode,
    RootMismatch,
    TrieError,
    UnusedNodes,
)
from trie.mutable import Trie

__all__ = [
    "BadNode",
    "DuplicateNodes",
    "IncompleteProof",
    "MissingNode",
    "RootMismatch",
    "Trie",
    "TrieError",
    "UnusedNodes",
    "state_root",
]
