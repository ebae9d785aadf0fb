"""Real relay proofs: `parachainSystem.setValidationData` inherents from files into the tables, and their audit (AU-9).

A file is a JSON object; hex strings carry `0x`.

    chain, block, relayParentNumber, relayParentStorageRoot, trieNodes        required
    relay, para_id, blockHash, parentHash, stateRoot, parentHead, maxPovSize, downwardMessages, horizontalMessages,
    source, reads_sp_trie                                                     optional

`parentHead` must hash to `parentHash`, and what `reads_sp_trie` says of a key must be what is read here.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.emulator.untrusted import read_json
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import U32_MAX, Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage, InboundHrmpMessage
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import check_name
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.real_proofs.attribution import Attribution, attribute
from pubsub_emulator.spark_audit.real_proofs.imported import Present, RelayProof, in_units, write_segment
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError, open_proof, path_nodes
from pubsub_emulator.spark_audit.real_proofs.well_known import expected_keys, is_channel_of

_UNKNOWN_PARA: Final = 0
_UNREADABLE_READ: Final = "IncompleteDatabase"


class ImportRefused(PubsubError):
    """A file that is not what it says; the message names file and field. Nothing was imported."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    proofs: int
    already_there: int
    nodes: int
    networks: tuple[str, ...]


def import_relay_proofs(files: Iterable[Path], address: Address | Store) -> Imported:
    """Add the proofs of `files` (directories mean their `*.json`) to the history at `address`, made if need be.

    A block that is there already, by network, chain, number and relay root, is left alone. All files are checked before
    anything is written, and are read again when they are: memory does not grow with their number. Raises
    `ImportRefused`, `CommitError`.
    """
    paths = _expand(files)
    if not paths:
        raise ImportRefused("there are no files to import")
    out = open_store(address)
    present = Present.of(out)
    known = present.places()
    fresh: dict[tuple[str, int, int, bytes], Path] = {}
    for path in paths:
        place = read_relay_proof(path).place
        if place not in known:
            fresh.setdefault(place, path)
    networks = tuple(dict.fromkeys(place[0] for place in sorted(fresh)))
    count = 0
    for network in networks:
        proofs = (read_relay_proof(fresh[place]) for place in sorted(fresh) if place[0] == network)
        count += sum(write_segment(out, present, group) for group in in_units(proofs))
    return Imported(len(fresh), len(paths) - len(fresh), count, networks)


def read_relay_proof(path: Path) -> RelayProof:
    """The inherent in a file, checked. Raises `ImportRefused` naming file and field."""
    data = read_json(path, error=ImportRefused)
    if not isinstance(data, dict):
        raise ImportRefused(f"{path}: not a JSON object")
    fields = _Fields(path, data)
    chain_name = fields.text("chain")
    relay = data.get("relay")
    network = relay if isinstance(relay, str) else "".join(c if c.isalnum() else "-" for c in chain_name).strip("-")
    check_name(network)
    proof = RelayProof(
        network=network,
        chain=ParaId(fields.number("para_id", default=_UNKNOWN_PARA)),
        number=fields.number("block"),
        block=fields.hash_or_none("blockHash"),
        parent=fields.hash_or_none("parentHash"),
        state_root=fields.hash_or_none("stateRoot"),
        relay_parent=RelayBlockNumber(fields.number("relayParentNumber")),
        relay_root=fields.hash("relayParentStorageRoot"),
        max_pov=fields.number("maxPovSize") if "maxPovSize" in data else None,
        proof=tuple(fields.hex(f"trieNodes[{at}]", node) for at, node in enumerate(fields.list("trieNodes"))),
        downward=fields.downward(),
        horizontal=fields.horizontal(),
        source=json.dumps(data.get("source", {}), sort_keys=True),
        chain_name=chain_name,
    )
    if "parentHead" in data and proof.parent != blake2_256(fields.hex("parentHead", data["parentHead"])):
        raise fields.refuse("parentHead", "does not hash to parentHash")
    nodes = proof.nodes()
    try:
        entries = open_proof(proof.relay_root, nodes).entries
    except ProofError as error:
        raise fields.refuse("trieNodes", str(error)) from None
    for name, read in sorted(fields.mapping("reads_sp_trie").items()):
        field = f"reads_sp_trie.{name}"
        if not isinstance(read, dict):
            raise fields.refuse(field, "is not an object")
        key = fields.hex(f"{field}.key", read.get("key"))
        _path, proven = path_nodes(proof.relay_root, nodes, key)
        if not _agrees(fields, field, read, entries.get(key), proven=proven):
            raise fields.refuse(field, "is not what the proof says")
    return proof


def attribute_inherent(root: Hash, proof: Iterable[bytes], para: ParaId) -> Attribution:
    """A relay proof's bytes by what they prove, as far as can be told without the parachain's state.

    What a parachain's collator commonly proves counts as asked. Which further keys it asked for, which of them are
    absent, and which nodes it has stored itself is not known: nodes that can be explained so are not unread. Raises
    `ProofError`.
    """
    usual = expected_keys(para)
    return attribute(root, proof, usual, lambda key: is_channel_of(key, para), absences=True, cached=True)


def proof_parts(found: Attribution) -> list[Row]:
    """The rows of `proof_parts`: every node counts once, see `attribution`."""
    return [
        {
            "kind": part.kind,
            "name": part.name,
            "key": part.key,
            "state": part.state,
            "value_bytes": None if part.value is None else len(part.value),
            "nodes": part.nodes,
            "bytes": part.weight,
            "path_bytes": part.path_bytes,
        }
        for part in found.parts
    ]


def _agrees(fields: "_Fields", field: str, read: dict[str, object], found: bytes | None, *, proven: bool) -> bool:
    """Whether sp-trie read the same of a key: a value, an absence, or nothing because the proof does not cover it."""
    if "error" in read:
        return not proven and read["error"] == _UNREADABLE_READ
    if read.get("value") is not None:
        return found == fields.hex(f"{field}.value", read["value"])
    return proven and found is None


def _expand(files: Iterable[Path]) -> list[Path]:
    out: list[Path] = []
    for path in files:
        out += sorted(path.glob("*.json")) if path.is_dir() else [path]
    return out


class _Fields:
    """Typed access to one file's fields; every failure names file and field."""

    def __init__(self, path: Path, data: dict[str, object]) -> None:
        self.path = path
        self.data = data

    def refuse(self, field: str, reason: str) -> ImportRefused:
        return ImportRefused(f"{self.path}: {field} {reason}")

    def text(self, field: str) -> str:
        value = self.data.get(field)
        if not isinstance(value, str):
            raise self.refuse(field, "is missing or not a string")
        return value

    def number(self, field: str, default: int | None = None, value: object = None) -> int:
        value = self.data.get(field) if value is None else value
        if value is None and default is not None:
            return default
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= U32_MAX:
            raise self.refuse(field, "is missing or not a u32")
        return value

    def hex(self, field: str, value: object) -> bytes:
        if not isinstance(value, str) or not value.startswith("0x"):
            raise self.refuse(field, "is missing or not a 0x string")
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            raise self.refuse(field, "is not hex") from None

    def hash(self, field: str) -> Hash:
        value = self.hex(field, self.data.get(field))
        if len(value) != 32:
            raise self.refuse(field, f"has {len(value)} bytes, not 32")
        return Hash(value)

    def hash_or_none(self, field: str) -> Hash | None:
        return None if self.data.get(field) is None else self.hash(field)

    def list(self, field: str, *, optional: bool = False) -> list[object]:
        value = self.data.get(field, [] if optional else None)
        if not isinstance(value, list):
            raise self.refuse(field, "is missing or not a list")
        return value

    def mapping(self, field: str) -> Row:
        value = self.data.get(field, {})
        if not isinstance(value, dict):
            raise self.refuse(field, "is not an object")
        return value

    def message(self, field: str, value: object, body: str) -> tuple[RelayBlockNumber, bytes]:
        if not isinstance(value, dict):
            raise self.refuse(field, "is not an object")
        at = self.number(f"{field}.sentAt", value=value.get("sentAt", ""))
        return RelayBlockNumber(at), self.hex(f"{field}.{body}", value.get(body))

    def downward(self) -> tuple[InboundDownwardMessage, ...]:
        name = "downwardMessages"
        messages = self.list(name, optional=True)
        return tuple(InboundDownwardMessage(*self.message(f"{name}[{i}]", m, "msg")) for i, m in enumerate(messages))

    def horizontal(self) -> tuple[tuple[ParaId, tuple[InboundHrmpMessage, ...]], ...]:
        name = "horizontalMessages"
        out: dict[int, tuple[InboundHrmpMessage, ...]] = {}
        for sender, messages in self.mapping(name).items():
            if not isinstance(messages, list):
                raise self.refuse(f"{name}.{sender}", "is not a list")
            para = self.number(f"{name}.{sender}", value=sender)
            out[para] = tuple(
                InboundHrmpMessage(*self.message(f"{name}.{sender}[{i}]", m, "data")) for i, m in enumerate(messages)
            )
        return tuple((ParaId(sender), out[sender]) for sender in sorted(out))
