"""Substrate state tries: roots, proofs and their readers, byte for byte as in sp-trie.

`Trie` holds a state, `state_root` computes the root of a state, `read_proof` reads a proof, and
`encode_compact` and `decode_compact` convert a proof to and from its compact form. Readers that
meter their reads use `descent.Descent`.
"""

from pubsub_emulator.trie.bulk import ordered_root as ordered_root
from pubsub_emulator.trie.bulk import state_root as state_root
from pubsub_emulator.trie.compact import decode_compact as decode_compact
from pubsub_emulator.trie.compact import encode_compact as encode_compact
from pubsub_emulator.trie.errors import BadNode as BadNode
from pubsub_emulator.trie.errors import DuplicateNodes as DuplicateNodes
from pubsub_emulator.trie.errors import ExtraneousValue as ExtraneousValue
from pubsub_emulator.trie.errors import IncompleteProof as IncompleteProof
from pubsub_emulator.trie.errors import MissingNode as MissingNode
from pubsub_emulator.trie.errors import ProofTooLarge as ProofTooLarge
from pubsub_emulator.trie.errors import RootMismatch as RootMismatch
from pubsub_emulator.trie.errors import TrieError as TrieError
from pubsub_emulator.trie.errors import UnusedNodes as UnusedNodes
from pubsub_emulator.trie.errors import ValueMismatch as ValueMismatch
from pubsub_emulator.trie.mutable import Trie as Trie
from pubsub_emulator.trie.proof import read_child_proof as read_child_proof
from pubsub_emulator.trie.proof import read_proof as read_proof
from pubsub_emulator.trie.state_trie import StateTrie as StateTrie
