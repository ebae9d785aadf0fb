"""A proof in a file, checked against a state root, offline."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.shown import safe
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.proving.names import fixed_names
from pubsub_emulator.runtime.framework.relay_request import RelayProofRequest
from pubsub_emulator.runtime.framework.request_proof import open_request
from pubsub_emulator.trie.errors import TrieError

FORMAT: Final = "pubsub-request-proof/1"


@dataclass(frozen=True, slots=True)
class VerifiedKey:
    """A key that is proven."""

    name: str
    value: bytes | None
    """`None` if the key is proven to be absent."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A proof that proves every key of its request."""

    root: Hash
    keys: tuple[VerifiedKey, ...]
    nodes: int
    """The number of nodes in the proof. A repeated node counts each time."""
    size: int
    """The bytes of all nodes, without their lengths."""
    unneeded: tuple[Hash, ...]
    """The nodes that no key needs."""
    repeated: int
    """The number of nodes that are equal to an earlier one."""

    @property
    def is_exact(self) -> bool:
        """Whether every node is needed and is there once."""
        return not self.unneeded and not self.repeated

    def document(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        values = {key.name: None if key.value is None else hexed(key.value) for key in self.keys}
        return {
            "root": hexed(self.root),
            "values": values,
            "nodes": self.nodes,
            "bytes": self.size,
            "unneeded": list(map(hexed, self.unneeded)),
            "repeated": self.repeated,
        }


def state_root(text: str) -> Hash:
    """Return the state root that a value of `--root` contains in hex. Raises `InputError`."""
    root = Hash(_hex("--root", text))
    if len(root) != 32:
        raise InputError(f"--root has {counted(len(root), 'byte')}, not 32")
    return root


def verify_file(path: Path, root: Hash) -> Verified:
    """Check that a file proves every key of its request under a root.

    Raises `InputError` if it does not.
    """
    request, nodes = read_proof_file(path)
    try:
        proof = open_request(root, {blake2_256(node): node for node in nodes}, request)
    except TrieError as error:
        raise InputError(f"{path}: not every key is proven: {error}") from None
    if not proof.keys:
        raise InputError(f"{path}: request: it has no keys, so nothing is proven")
    names = fixed_names()
    hashes = map(blake2_256, dict.fromkeys(nodes))
    return Verified(
        root,
        tuple(VerifiedKey(names.name(cost.asked), cost.value) for cost in proof.keys),
        nodes=len(nodes),
        size=sum(map(len, nodes)),
        unneeded=tuple(node_hash for node_hash in hashes if node_hash not in proof.nodes),
        repeated=len(nodes) - len(set(nodes)),
    )


def read_proof_file(path: Path) -> tuple[RelayProofRequest, list[bytes]]:
    """Return the request and the nodes in a file that `pubsub prove --out` wrote.

    Raises `InputError` that names the field.
    """
    document = read_json(path, error=InputError)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{path}: format: not {FORMAT!r}; `pubsub prove --out` writes such files")
    proof = document.get("proof")
    if not isinstance(proof, list):
        raise InputError(f"{path}: proof: not a list of nodes")
    nodes = [_hex(f"{path}: proof[{index}]", node) for index, node in enumerate(proof)]
    try:
        request = RelayProofRequest.decode(_hex(f"{path}: request", document.get("request")))
    except ScaleError as error:
        raise InputError(f"{path}: request: {error}") from None
    return request, nodes


def _hex(place: str, text: object) -> bytes:
    """Parse hexadecimal digits with 0x. `place` names them in the `InputError` for other values."""
    if not isinstance(text, str):
        raise InputError(f"{place}: not 0x…")
    try:
        return unhex(text)
    except ValueError:
        raise InputError(f"{place}: {safe(text[:80])}: not hexadecimal digits") from None
