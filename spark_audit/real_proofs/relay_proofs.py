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
from typing import Any, Final

from pubsub_emulator.emulator.untrusted import read_json
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import U32_MAX, Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage, InboundHrmpMessage
from pubsub_emulator.runtime.parachain.block import encode_messages
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.commit import Part, write_commit
from pubsub_emulator.spark_audit.history.manifest import COMMITS, Commit, CommitError, check_name
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.history.rows import NodeTable
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.real_proofs.attribution import attribute
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError, open_proof, path_nodes
from pubsub_emulator.spark_audit.real_proofs.well_known import expected_keys, is_channel_of

_UNKNOWN_PARA: Final = 0
_UNREADABLE_READ: Final = "IncompleteDatabase"


class ImportRefused(PubsubError):
    """A file that is not what it says; the message names file and field. Nothing was imported."""


@dataclass(frozen=True, slots=True)
class RelayProof:
    """One inherent as its file states it."""

    network: str
    chain: ParaId
    number: int
    block: Hash | None
    parent: Hash | None
    state_root: Hash | None
    relay_parent: RelayBlockNumber
    relay_root: Hash
    max_pov: int | None
    proof: tuple[bytes, ...]
    downward: tuple[InboundDownwardMessage, ...]
    horizontal: tuple[tuple[ParaId, tuple[InboundHrmpMessage, ...]], ...]
    source: str

    def nodes(self) -> dict[Hash, bytes]:
        """The proof's nodes by hash."""
        return {blake2_256(node): node for node in self.proof}


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did."""

    proofs: int
    already_there: int
    nodes: int
    networks: tuple[str, ...]


def import_relay_proofs(files: Iterable[Path], address: Address | Store) -> Imported:
    """Add the proofs of `files` (directories mean their `*.json`) to the history at `address`, made if need be.

    A block that is there already, by network, chain, number and relay root, is left alone. All files are checked before
    anything is written. Raises `ImportRefused`, `CommitError`.
    """
    proofs = [read_relay_proof(path) for path in _expand(files)]
    if not proofs:
        raise ImportRefused("there are no files to import")
    out = open_store(address)
    known, newest, positions = _present(out)
    fresh: dict[tuple[str, int, int, bytes], RelayProof] = {}
    for proof in proofs:
        place = (proof.network, int(proof.chain), proof.number, bytes(proof.relay_root))
        if place not in known:
            fresh.setdefault(place, proof)
    by_network: dict[str, list[RelayProof]] = {}
    for place in sorted(fresh):
        by_network.setdefault(place[0], []).append(fresh[place])
    count = 0
    for network, group in by_network.items():
        count += _commit(out, newest.get(network), group, positions)
    return Imported(len(fresh), len(proofs) - len(fresh), count, tuple(by_network))


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


def proof_parts(root: Hash, proof: Iterable[bytes], para: ParaId) -> list[dict[str, Any]]:
    """A proof's bytes by what they prove, as rows of `proof_parts`: every node counts once, see `attribution`.

    What a parachain's collator commonly proves counts as asked. Raises `ProofError`.
    """
    found = attribute(root, proof, expected_keys(para), lambda key: is_channel_of(key, para))
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


def _agrees(fields: "_Fields", field: str, read: dict[str, Any], found: bytes | None, *, proven: bool) -> bool:
    """Whether what sp-trie read of a key is what is read here: a value, an absence, or that the proof is silent."""
    if "error" in read:
        return not proven and read["error"] == _UNREADABLE_READ
    if read.get("value") is not None:
        return found == fields.hex(f"{field}.value", read["value"])
    return proven and found is None


def _commit(
    out: Store,
    before: Commit | None,
    group: list[RelayProof],
    positions: dict[tuple[str, int], int],
) -> int:
    """Write the proofs of one network and say how many nodes they have."""
    network = group[0].network
    segment = 0 if before is None else before.segment + 1
    nodes = NodeTable()
    headers: dict[tuple[int, bytes], dict[str, Any]] = {}
    blocks: dict[int, list[dict[str, Any]]] = {}
    for proof in group:
        headers[proof.relay_parent, proof.relay_root] = {
            "network": network,
            "number": proof.relay_parent,
            "hash": None,
            "storage_root": proof.relay_root,
            "slot": None,
        }
        position = positions.get((network, proof.chain), 0)
        positions[network, proof.chain] = position + 1
        blocks.setdefault(proof.chain, []).append(_block_row(proof, segment, position, nodes))
    name = f"{segment:08d}"
    parts = [Part(schema.RELAY_HEADERS, list(headers.values()), name)]
    parts += [Part(schema.BLOCKS, rows, name, chain) for chain, rows in sorted(blocks.items())]
    parts.append(Part(schema.NODES, nodes.rows(network, segment), name, rows_per_group=4096))
    after = {chain: at for (where, chain), at in positions.items() if where == network}
    write_commit(out, network, segment, parts, after, before)
    return len(nodes)


def _block_row(proof: RelayProof, segment: int, position: int, nodes: NodeTable) -> dict[str, Any]:
    row: dict[str, Any] = {column.name: None for column in schema.BLOCKS.columns}
    row.update(
        network=proof.network,
        chain=proof.chain,
        segment=segment,
        position=position,
        number=proof.number,
        block=proof.block,
        status="imported",
        relay_parent=proof.relay_parent,
        relay_parent_root=proof.relay_root,
        relay_root=proof.relay_root,
        parent=proof.parent,
        state_root=proof.state_root,
        max_pov=proof.max_pov,
        downward=[{"sent_at": m.sent_at, "data": m.msg} for m in proof.downward],
        horizontal=[
            {"sender": sender, "messages": [{"sent_at": m.sent_at, "data": m.data} for m in messages]}
            for sender, messages in proof.horizontal
        ],
        messages_used=len(encode_messages(proof.downward, proof.horizontal)),
        proof=[nodes.number(node) for node in proof.proof],
        source=proof.source,
    )
    return row


def _present(
    out: Store,
) -> tuple[set[tuple[str, int, int, bytes]], dict[str, Commit], dict[tuple[str, int], int]]:
    """The imported blocks of a history, its last commit by network, its next position by network and chain.

    Raises `CommitError` when its manifests do not follow each other: nothing is added to what is damaged.
    """
    if not out.exists(COMMITS):
        return set(), {}, {}
    history = History.open(out)
    faults: list[Fault] = []
    known = {
        (row["network"], row["chain"], row["number"], row["relay_parent_root"])
        for row in history.rows(history.files(schema.BLOCKS), faults)
        if row["status"] == "imported"
    }
    if history.faults:
        raise CommitError(f"{out}: {history.faults[0].path}: {history.faults[0].error}")
    newest: dict[str, Commit] = {}
    positions: dict[tuple[str, int], int] = {}
    for commit in history.commits:
        newest[commit.network] = commit
        for chain, at in commit.next_positions.items():
            positions[commit.network, chain] = max(positions.get((commit.network, chain), 0), at)
    return known, newest, positions


def _expand(files: Iterable[Path]) -> list[Path]:
    out: list[Path] = []
    for path in files:
        out += sorted(path.glob("*.json")) if path.is_dir() else [path]
    return out


class _Fields:
    """Typed access to one file's fields; every failure names file and field."""

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
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

    def list(self, field: str, *, optional: bool = False) -> list[Any]:
        value = self.data.get(field, [] if optional else None)
        if not isinstance(value, list):
            raise self.refuse(field, "is missing or not a list")
        return value

    def mapping(self, field: str) -> dict[str, Any]:
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
