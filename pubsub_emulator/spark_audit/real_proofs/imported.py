"""Segments of a history with imported inherents, and the inherents that the history has already."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import (
    InboundDownwardMessage,
    InboundHrmpMessage,
    InboundMessages,
)
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.manifest import COMMITS, Commit, CommitError
from pubsub_emulator.spark_audit.history.names import write_names
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.history.row import Row, fields_of
from pubsub_emulator.spark_audit.history.rows import NodeTable, empty_row, message_columns
from pubsub_emulator.spark_audit.history.storage import Store

UNIT_BLOCKS: Final = 1000
"""The number of imported blocks in a segment, and so in a task of an audit."""
_SAME: Final = (
    "network",
    "chain",
    "number",
    "block",
    "relay_parent",
    "header",
    "parent",
    "state_root",
    "max_pov",
    "source",
)
"""Columns of `blocks` that have the same name in `RelayProof`."""


@dataclass(frozen=True, slots=True)
class RelayHeader:
    """A header of the relay chain."""

    hash: Hash
    """The header's hash, computed from its bytes."""
    storage_root: Hash
    """The storage root that the header commits to."""


@dataclass(frozen=True, slots=True)
class RelayProof:
    """The inherent of a block, with those fields of the block that its source has."""

    network: str
    """The network's name in the history."""
    chain: ParaId
    number: int
    block: Hash | None
    parent: Hash | None
    state_root: Hash | None
    relay_parent: RelayBlockNumber
    relay_root: Hash
    """The relay storage root that the inherent states."""
    max_pov: int | None
    proof: tuple[bytes, ...]
    """The nodes in their order."""
    downward: tuple[InboundDownwardMessage, ...]
    horizontal: tuple[tuple[ParaId, tuple[InboundHrmpMessage, ...]], ...]
    source: str
    """Where the inherent is from, as JSON."""
    header: bytes | None = None
    """SCALE of the header, with its seal."""
    block_time: datetime | None = None
    """The time that the block states."""
    runtime: str | None = None
    """Name and version of the runtime by whose metadata it was decoded."""
    descendants: tuple[bytes, ...] = ()
    """SCALE of the headers in `relay_parent_descendants`."""
    collator_peer_id: bytes | None = None
    messages_used: int | None = None
    """Bytes of all messages in the inherent. It is `None` if `downward` and `horizontal` have all
    messages. Some inherents only have the hashes of some messages."""
    relay_header: RelayHeader | None = None
    """The relay parent's header, from the relay chain itself."""
    chain_name: str | None = None
    """The chain's name in the source."""

    @property
    def place(self) -> tuple[str, int, int, bytes]:
        """The identity of the inherent. Two with the same identity are equal."""
        return self.network, int(self.chain), self.number, bytes(self.relay_root)

    def nodes(self) -> dict[Hash, bytes]:
        """Return the nodes of the proof by hash."""
        return {blake2_256(node): node for node in self.proof}


@dataclass(slots=True)
class Present:
    """The state of a history during an import, which adds segments to it."""

    history: History | None
    """The history as it was, `None` if there was none."""
    newest: dict[str, Commit] = field(default_factory=dict)
    """The last commit of each network."""
    positions: dict[tuple[str, int], int] = field(default_factory=dict)
    """The next position by network and chain."""

    @staticmethod
    def of(out: Store) -> "Present":
        """Read the manifests of a history.

        Raises `CommitError` if they are damaged or do not follow one another, because a damaged
        history must not be extended.
        """
        if not out.exists(COMMITS):
            return Present(None)
        history = History.open(out)
        if history.faults:
            raise CommitError(f"{out}: {history.faults[0].path}: {history.faults[0].error}")
        present = Present(history)
        for commit in history.commits:
            present.newest[commit.network] = commit
            for chain, position in commit.next_positions.items():
                place = (commit.network, chain)
                present.positions[place] = max(present.positions.get(place, 0), position)
        return present

    def places(self) -> set[tuple[Any, ...]]:
        """Return the identities of all imported blocks. Blocks that cannot be read are left out."""
        wanted = ["network", "chain", "number", "relay_parent_root"]
        return {tuple(row[name] for name in wanted) for row in self.imported(wanted)}

    def imported(
        self, columns: list[str], network: str | None = None, chain: int | None = None
    ) -> Iterator[Row]:
        """Yield the rows of all imported blocks, with these columns and `status`.

        Row groups that cannot be read are left out. Only one row group at a time is in memory, so
        that a history of any length can be read.
        """
        if self.history is None:
            return
        for entry in self.history.files(schema.BLOCKS, network, chain):
            for group in self.history.read(entry):
                if isinstance(group, Fault):
                    continue
                rows = group.select([*columns, "status"]).to_pylist()
                yield from (row for row in rows if row["status"] == "imported")


def write_segment(out: Store, present: Present, proofs: list[RelayProof]) -> int:
    """Commit inherents of one network as its next segment.

    Returns the number of distinct nodes in their proofs. Raises `CommitError`.
    """
    network = proofs[0].network
    previous = present.newest.get(network)
    segment = 0 if previous is None else previous.segment + 1
    nodes = NodeTable()
    headers: dict[tuple[int, bytes], Row] = {}
    blocks: dict[int, list[Row]] = {}
    for proof in proofs:
        row = _relay_row(proof)
        headers.setdefault((row["number"], row["storage_root"]), row)
        place = (network, int(proof.chain))
        position = present.positions.get(place, 0)
        present.positions[place] = position + 1
        blocks.setdefault(proof.chain, []).append(_block_row(proof, segment, position, nodes=nodes))
    name = f"{segment:08d}"
    parts = [HistoryPart(schema.RELAY_HEADERS, list(headers.values()), name)]
    parts += [
        HistoryPart(schema.BLOCKS, rows, name, chain=chain)
        for chain, rows in sorted(blocks.items())
    ]
    parts.append(HistoryPart(schema.NODES, nodes.rows(network, segment), name))
    names: dict[int, str] = {}
    for proof in proofs:
        if proof.chain_name:
            # If a chain has several names, the first one is used.
            names.setdefault(int(proof.chain), proof.chain_name)
    write_names(out, network, names)
    next_positions = {
        chain: position
        for (owner, chain), position in present.positions.items()
        if owner == network
    }
    present.newest[network] = write_commit(
        out, network, segment, parts=parts, next_positions=next_positions, after=previous
    )
    return len(nodes)


def in_units(proofs: Iterable[RelayProof], size: int = UNIT_BLOCKS) -> Iterator[list[RelayProof]]:
    """Yield groups of inherents of one network, of `size` at most."""
    remaining = iter(proofs)
    while group := list(islice(remaining, size)):
        yield group


def _relay_row(proof: RelayProof) -> Row:
    """Return the row of the relay parent.

    If its own header is not known, the row has the root that the inherent states, and no hash.
    """
    header = proof.relay_header
    return {
        "network": proof.network,
        "number": proof.relay_parent,
        "hash": None if header is None else header.hash,
        "storage_root": proof.relay_root if header is None else header.storage_root,
        "slot": None,
    }


def _block_row(proof: RelayProof, segment: int, position: int, nodes: NodeTable) -> Row:
    """Return the row of the block, with columns of later versions only if one has a value."""
    used = proof.messages_used
    messages = InboundMessages(proof.downward, proof.horizontal)
    later = fields_of(proof, ("block_time", "runtime", "collator_peer_id"))
    later["descendants"] = list(proof.descendants)
    if not any(later.values()):
        later = {}
    return {
        **empty_row(schema.BLOCKS),
        **fields_of(proof, _SAME),
        "segment": segment,
        "position": position,
        "status": "imported",
        "relay_parent_root": proof.relay_root,
        "relay_root": _relay_row(proof)["storage_root"],
        **message_columns(messages),
        "messages_used": messages.weight if used is None else used,
        "proof": [nodes.number(node) for node in proof.proof],
        **later,
    }
