"""Substrate state tries: roots, proofs and their readers, byte for byte as in sp-trie.

`Trie` holds a state, `state_root` computes the root of one, `read_proof` reads a proof, `encode_compact` and
`decode_compact` convert it to and from its compact form. Readers that meter what they read use `descent.Descent`.
"""

from pubsub_emulator.trie.bulk import ordered_root, state_root
from pubsub_emulator.trie.compact import decode_compact, encode_compact
from pubsub_emulator.trie.errors import (
    BadNode,
    DuplicateNodes,
    IncompleteProof,
    MissingNode,
    ProofTooLarge,
    RootMismatch,
    TrieError,
    UnusedNodes,
)
from pubsub_emulator.trie.mutable import Trie
from pubsub_emulator.trie.proof import read_child_proof, read_proof
from pubsub_emulator.trie.state_trie import StateTrie

__all__ = [
    "BadNode",
    "DuplicateNodes",
    "IncompleteProof",
    "MissingNode",
    "ProofTooLarge",
    "RootMismatch",
    "StateTrie",
    "Trie",
    "TrieError",
    "UnusedNodes",
    "decode_compact",
    "encode_compact",
    "ordered_root",
    "read_child_proof",
    "read_proof",
    "state_root",
]
