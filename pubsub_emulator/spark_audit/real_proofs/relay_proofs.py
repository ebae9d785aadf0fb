"""Relay proofs from files: `parachainSystem.setValidationData` inherents (AU-9).

They are imported into the tables of a history, and their bytes are attributed. A file is a JSON
object, in which hex strings begin with `0x`:

    chain, block, relayParentNumber, relayParentStorageRoot, trieNodes        required
    relay, para_id, blockHash, parentHash, stateRoot, parentHead, maxPovSize, downwardMessages,
    horizontalMessages, source, reads_sp_trie                                 optional

`parentHead` must hash to `parentHash`. `reads_sp_trie` contains results of sp-trie, which must be
those of this program.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import check_name
from pubsub_emulator.spark_audit.history.row import Row, fields_of
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.real_proofs.attribution import Attribution, attribute
from pubsub_emulator.spark_audit.real_proofs.imported import (
    Present,
    RelayProof,
    in_units,
    write_segment,
)
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError, open_proof, path_nodes
from pubsub_emulator.spark_audit.real_proofs.values import Values
from pubsub_emulator.spark_audit.real_proofs.well_known import (
    NEEDED_KEYS,
    expected_keys,
    is_channel_of,
)

T = TypeVar("T")

_UNKNOWN_PARA: Final = 0
"""The ParaId if a file does not state one."""
_UNREADABLE_READ: Final = "IncompleteDatabase"
"""The error of sp-trie for a key that the proof does not cover."""


class ImportRefused(PubsubError):
    """Raised if a file is malformed or contradicts itself. Then no file is imported.

    The message names file and field.
    """


_VALUES: Final = Values(ImportRefused)
"""Reads JSON values. Raises `ImportRefused` for wrong ones."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    proofs: int
    """Inherents that were added."""
    already_there: int
    """Files whose inherents were in the history, or in an earlier file."""
    nodes: int
    """Proof nodes that were written."""
    networks: tuple[str, ...]
    """Networks to which something was added."""


def import_relay_proofs(files: Iterable[Path], address: Address | Store) -> Imported:
    """Add the inherents in files to the history at `address`, which is made if it does not exist.

    A directory stands for its files `*.json`. An inherent that is in the history already (same
    network, chain, number and relay root) is left out. All files are checked before the first one
    is imported. Raises `ImportRefused`, `CommitError`.
    """
    paths: list[Path] = []
    for path in files:
        if path.is_dir():
            paths += sorted(path.glob("*.json"))
        else:
            paths.append(path)
    if not paths:
        raise ImportRefused("there are no files to import")
    out = open_store(address)
    present = Present.of(out)
    present_places = present.places()
    new: dict[tuple[str, int, int, bytes], Path] = {}
    for path in paths:
        place = read_relay_proof(path).place
        if place not in present_places:
            new.setdefault(place, path)
    networks = tuple(dict.fromkeys(place[0] for place in sorted(new)))
    count = 0
    for network in networks:
        # Files are read a second time, so that their contents need not be in memory together.
        proofs = (read_relay_proof(new[place]) for place in sorted(new) if place[0] == network)
        count += sum(write_segment(out, present, group) for group in in_units(proofs))
    return Imported(len(new), len(paths) - len(new), count, networks=networks)


def read_relay_proof(path: Path) -> RelayProof:
    """Return the inherent in a file, after checking it.

    Raises `ImportRefused`, which names file and field.
    """
    data = read_json(path, error=ImportRefused)
    if not isinstance(data, dict):
        raise ImportRefused(f"{path}: not a JSON object")
    fields: dict[str, object] = data

    def read(kind: Callable[[str, object], T], field: str) -> T:
        return kind(f"{path}: {field}", fields.get(field))

    def read_if_there(kind: Callable[[str, object], T], field: str) -> T | None:
        return None if fields.get(field) is None else read(kind, field)

    chain_name = fields.get("chain")
    relay = fields.get("relay")
    if not isinstance(chain_name, str):
        raise ImportRefused(f"{path}: chain is {str(chain_name)[:40]!r}, not text")
    if isinstance(relay, str):
        network = relay
    else:
        network = "".join(letter if letter.isalnum() else "-" for letter in chain_name).strip("-")
    check_name(network)
    nodes = enumerate(read(_VALUES.list, "trieNodes"))
    proof = RelayProof(
        network=network,
        chain=ParaId(read_if_there(_VALUES.number, "para_id") or _UNKNOWN_PARA),
        number=read(_VALUES.number, "block"),
        block=read_if_there(_VALUES.hash, "blockHash"),
        parent=read_if_there(_VALUES.hash, "parentHash"),
        state_root=read_if_there(_VALUES.hash, "stateRoot"),
        relay_parent=RelayBlockNumber(read(_VALUES.number, "relayParentNumber")),
        relay_root=read(_VALUES.hash, "relayParentStorageRoot"),
        max_pov=read_if_there(_VALUES.number, "maxPovSize"),
        proof=tuple(_VALUES.hex(f"{path}: trieNodes[{index}]", node) for index, node in nodes),
        downward=read(_VALUES.downward, "downwardMessages"),
        horizontal=read(_VALUES.horizontal, "horizontalMessages"),
        source=json.dumps(fields.get("source", {}), sort_keys=True),
        chain_name=chain_name,
    )
    if "parentHead" in fields and proof.parent != blake2_256(read(_VALUES.hex, "parentHead")):
        raise ImportRefused(f"{path}: parentHead does not hash to parentHash")
    _compare_reads(path, proof, read_if_there(_VALUES.mapping, "reads_sp_trie") or {})
    return proof


def _compare_reads(path: Path, proof: RelayProof, reads: Mapping[str, object]) -> None:
    """Raise `ImportRefused` if a proof cannot be opened, or if `reads` differ from it.

    `reads` has the results of sp-trie by the names that the file gives them.
    """
    nodes = proof.nodes()
    try:
        entries = open_proof(proof.relay_root, nodes).entries
    except ProofError as error:
        raise ImportRefused(f"{path}: trieNodes {error}") from None
    for name, stated in sorted(reads.items()):
        place = f"{path}: reads_sp_trie.{name}"
        read = _VALUES.mapping(place, stated)
        key = _VALUES.hex(f"{place}.key", read.get("key"))
        _path, proven = path_nodes(proof.relay_root, nodes, key)
        if not _agrees(place, read, entries.get(key), proven=proven):
            raise ImportRefused(f"{place} differs from the proof")


def attribute_inherent(root: Hash, proof: Iterable[bytes], para: ParaId) -> Attribution:
    """Attribute the bytes of a relay proof, as far as possible without the parachain's state.

    Keys that collators commonly prove count as requested. It is not known which other keys the
    collator requested, or which nodes the chain has stored. So nodes that may be explained by
    these do not count as unread. Keys that every parachain reads have a part even if they are not
    proven. Raises `ProofError`.
    """
    return attribute(
        root,
        proof,
        expected_keys(para),
        is_usual=lambda key: is_channel_of(key, para),
        absences=True,
        cached=True,
        needed=NEEDED_KEYS,
    )


def proof_parts(attribution: Attribution) -> list[Row]:
    """Return the rows of `proof_parts`. Every node counts in exactly one of them."""
    same_columns = ("kind", "name", "key", "state", "nodes", "path_bytes")
    return [
        {
            **fields_of(part, same_columns),
            "bytes": part.weight,
            "value_bytes": None if part.value is None else len(part.value),
        }
        for part in attribution.parts
    ]


def _agrees(place: str, read: Mapping[str, object], value: bytes | None, *, proven: bool) -> bool:
    """Return whether sp-trie read the same for a key as this program.

    `read` is sp-trie's result, which is a value, an absence, or an error because the proof does not
    cover the key. `value` and `proven` are the results of this program.
    """
    if "error" in read:
        return not proven and read["error"] == _UNREADABLE_READ
    if read.get("value") is not None:
        return value == _VALUES.hex(f"{place}.value", read["value"])
    return proven and value is None
