"""`pubsub prove --verify`: a proof file is checked against a state root, offline."""

from pathlib import Path
from typing import Final

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.prove.names import fixed_names
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import say, table
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.shown import safe
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.relay_request import RelayProofRequest
from pubsub_emulator.runtime.framework.request_proof import open_request
from pubsub_emulator.runtime.framework.words import words
from pubsub_emulator.trie.errors import TrieError

FORMAT: Final = "pubsub-request-proof/1"
_PREVIEW: Final = 16


def verify_file(path: Path, root_text: str) -> Result:
    """Check that a file proves every key of its request under a root, and show the values.

    Raises `InputError` if it does not.
    """
    root = Hash(_hex("--root", root_text))
    if len(root) != 32:
        raise InputError(f"--root has {counted(len(root), 'byte')}, not 32")
    request, nodes = read_proof_file(path)
    try:
        proof = open_request(root, {blake2_256(node): node for node in nodes}, request)
    except TrieError as error:
        raise InputError(f"{path}: not every key is proven: {error}") from None
    if not proof.keys:
        raise InputError(f"{path}: request: it has no keys, so nothing is proven")
    names = fixed_names()
    values: dict[str, str | None] = {}
    rows: list[tuple[str, str]] = []
    for cost in proof.keys:
        name = names.name(cost.asked)
        values[name] = None if cost.value is None else hexed(cost.value)
        rows.append((name, "absent" if cost.value is None else words(cost.value, _PREVIEW)))
    hashes = map(blake2_256, dict.fromkeys(nodes))
    extra = [node_hash for node_hash in hashes if node_hash not in proof.nodes]
    repeated = len(nodes) - len(set(nodes))
    table("keys", ("key", "value"), rows)
    size = sum(map(len, nodes))
    say(
        f"{counted(len(proof.keys), 'key is', 'keys are')} proven under {hexed(root)} by"
        f" {counted(len(nodes), 'node')}, {counted(size, 'byte')} without their lengths"
    )
    for node_hash in extra:
        say(f"no key needs node {hexed(node_hash)}")
    if repeated:
        said = counted(repeated, "repetition")
        say(f"the file has {said} of nodes")
    document = {
        "root": hexed(root),
        "values": values,
        "nodes": len(nodes),
        "bytes": size,
        "unneeded": list(map(hexed, extra)),
        "repeated": repeated,
    }
    return Result(document, FINDINGS if extra or repeated else 0)


def read_proof_file(path: Path) -> tuple[RelayProofRequest, list[bytes]]:
    """Return the request and the nodes in a file that `pubsub prove --out` wrote.

    Raises `InputError` with the field.
    """
    document = read_json(path, error=InputError)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{path}: format: not {FORMAT!r}; `pubsub prove --out` writes such files")
    proof = document.get("proof")
    if not isinstance(proof, list):
        raise InputError(f"{path}: proof: not a list of nodes")
    nodes = [_hex(f"{path}: proof[{at}]", node) for at, node in enumerate(proof)]
    try:
        request = RelayProofRequest.decode(_hex(f"{path}: request", document.get("request")))
    except ScaleError as error:
        raise InputError(f"{path}: request: {error}") from None
    return request, nodes


def _hex(place: str, text: object) -> bytes:
    if not isinstance(text, str):
        raise InputError(f"{place}: not 0x…")
    try:
        return unhex(text)
    except ValueError:
        raise InputError(f"{place}: {safe(text[:80])}: not hexadecimal digits") from None
