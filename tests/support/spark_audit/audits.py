"""Small histories for the audit's tests.

The network is honest. An observer puts cheats into the records.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pubsub_emulator.collator.author import seal
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.records import (
    AuthorityRecord,
    BlockRecord,
    CheckpointRecord,
    RelayRecord,
    SubscriptionRecord,
)
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, extrinsics_root
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block
from pubsub_emulator.spark_audit.audit.run import AuditResult
from pubsub_emulator.spark_audit.history.canonical import digest_rows, encode_row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES

KEYS = [key_from_data(b"key %d" % at) for at in range(12)]
SUBSCRIBER = 2000
Cheat = Callable[["Scene"], list[BlockRecord]]


@dataclass(frozen=True)
class Scene:
    """One honest record, and the context in which its candidate was judged."""

    record: BlockRecord
    parent: Header
    state: State
    seed: bytes

    def judged(self, candidate: Candidate) -> BlockRecord:
        """Return the record with another candidate, judged as by the network."""
        relay = RelayContext(
            candidate.inherent.relay_parent_number,
            self.record.relay_storage_root,
            self.record.slot_now,
        )
        outcome, refusal = judge_block(ChainHead(self.parent, self.state), candidate, relay)
        return replace(self.record, candidate=candidate, outcome=outcome, refusal=refusal)

    def with_inherent(self, **changes: Any) -> Candidate:
        """Return the honest candidate with another inherent, sealed again by its author."""
        honest = self.record.candidate
        inherent = replace(honest.inherent, **changes)
        header = replace(honest.header, extrinsics_root=extrinsics_root(inherent))
        return Candidate(seal(header, self.seed), inherent)

    def with_state_root(self, root: bytes) -> Candidate:
        """Return the honest candidate with another claimed post-state."""
        honest = self.record.candidate
        return Candidate(seal(replace(honest.header, state_root=root), self.seed), honest.inherent)


@dataclass
class Slip:
    """An observer before the writer: records given by number of the subscriber's block are replaced
    by others.
    """

    writer: HistoryWriter
    network: Network
    cheats: dict[int, Cheat] = field(default_factory=dict)
    checkpoints: Callable[[CheckpointRecord], CheckpointRecord] = lambda record: record
    heads: dict[int, tuple[Header, State]] = field(default_factory=dict)

    def relay_block(self, record: RelayRecord) -> None:
        self.writer.relay_block(record)

    def authorities(self, record: AuthorityRecord) -> None:
        self.writer.authorities(record)

    def subscriptions(self, record: SubscriptionRecord) -> None:
        self.writer.subscriptions(record)

    def checkpoint(self, record: CheckpointRecord) -> None:
        self.heads[record.chain] = (record.header, record.state)
        self.writer.checkpoint(self.checkpoints(record))

    def candidate(self, record: BlockRecord) -> None:
        parent, state = self.heads[record.chain]
        number = record.candidate.header.number
        cheat = self.cheats.get(number) if record.chain == SUBSCRIBER else None
        records = [record]
        if cheat is not None:
            slot = record.candidate.header.aura_slot() or 0
            collator = self.network.parachain(record.chain).author_of(slot)
            records = cheat(Scene(record, parent, state, collator.seed))
        for each in records:
            self.writer.candidate(each)
        if record.outcome is not None:
            self.heads[record.chain] = (record.candidate.header, record.outcome.state)


def small_network(subscribers: int = 1, segment_length: int = 4, skew: int = 1) -> Network:
    """Return a network of two publishers, one of them a system chain, and subscribers to both.

    The first publisher builds `skew` blocks a turn.
    """
    wanted = {SUBSCRIBER + at: {1000: KEYS, 2100: KEYS[:4]} for at in range(subscribers)}
    config = Network.of(publishers=[1000, 2100], subscribers=wanted).config
    chains = tuple(
        (
            replace(each, pace=replace(each.pace, blocks=skew))
            if each.spec.para_id == SUBSCRIBER
            else each
        )
        for each in config.parachains
    )
    return Network(replace(config, segment_length=segment_length, parachains=chains))


def write_history(
    path: Path,
    blocks: int = 10,
    *,
    subscribers: int = 1,
    segment_length: int = 4,
    cheats: dict[int, Cheat] | None = None,
    checkpoints: Callable[[CheckpointRecord], CheckpointRecord] = lambda record: record,
    name: str = "dev",
    skew: int = 1,
) -> Path:
    """Write a history of `blocks` relay blocks, in each of which something is published."""
    network = small_network(subscribers, segment_length, skew)
    with HistoryWriter(path, name) as writer:
        network.observe(Slip(writer, network, cheats or {}, checkpoints))
        for at in range(blocks):
            network.publish(
                1000, KEYS[at % len(KEYS)], b"%d " % at * (1 + at % 40), ttl=(0, 30)[at % 2]
            )
            if at % 3 == 0:
                network.publish(2100, KEYS[at % 4], b"value %d" % at)
            network.step()
        network.finish()
    return path


def growing(
    path: Path,
    blocks: int,
    *,
    segment_length: int = 2,
    cheats: dict[int, Cheat] | None = None,
    name: str = "dev",
) -> Iterator[int]:
    """Write a history block by block, and end it: the number of each block that is there."""
    network = small_network(segment_length=segment_length)
    with HistoryWriter(path, name) as writer:
        network.observe(Slip(writer, network, cheats or {}))
        for at in range(blocks):
            network.publish(1000, KEYS[at % len(KEYS)], b"%d" % at)
            network.step()
            yield at
        network.finish()


def all_rows(result: AuditResult) -> dict[str, list[bytes]]:
    """Return all rows of all tables, in one order."""
    return {
        name: sorted(encode_row(table, row) for row in result.results.rows(table))
        for name, table in RESULT_TABLES.items()
    }


def digest_of_table(result: AuditResult, table: Table) -> str:
    """The digest of a table of an audit, which has rows."""
    rows = list(result.results.rows(table))
    assert rows
    return digest_rows(table, rows).hex()


def digest_of_parquet(folder: Path, table: Table) -> str:
    """The digest of the rows of a table that Spark wrote into folders below one."""
    # Importing Arrow's data sets takes longer than the tests that do not need it.
    import pyarrow.parquet as pq  # noqa: PLC0415  # as above

    rows = [
        row
        for file in sorted(folder.glob("*/*.parquet"))
        for row in pq.read_table(file, partitioning=None).cast(table.wider.schema).to_pylist()
    ]
    return digest_rows(table, rows).hex()


def flip(path: Path, at: int) -> None:
    """Flip a bit of a byte in a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def drop_a_node(scene: Scene) -> list[BlockRecord]:
    """Let the author omit the last node first, and be honest once that is refused."""
    return [
        scene.judged(scene.with_inherent(proof=scene.record.candidate.inherent.proof[:-1])),
        scene.record,
    ]


def add_junk(scene: Scene) -> list[BlockRecord]:
    """Let the author add a node that is not needed."""
    junk = tuple(sorted((*scene.record.candidate.inherent.proof, b"\xffjunk")))
    return [scene.judged(scene.with_inherent(proof=junk)), scene.record]


def include_invalid(scene: Scene) -> list[BlockRecord]:
    """Let the chain accept a block that claims a wrong post-state."""
    wrong = scene.with_state_root(bytes(32))
    return [replace(scene.judged(wrong), outcome=scene.record.outcome, refusal=None)]


def refuse_valid(scene: Scene) -> list[BlockRecord]:
    """Let the chain first refuse a valid block, with the verdict on another one."""
    refusal = scene.judged(scene.with_inherent(proof=())).refusal
    return [replace(scene.record, outcome=None, refusal=refusal), scene.record]


def refuse_for_another_reason(scene: Scene) -> list[BlockRecord]:
    """Let the chain refuse an invalid block with the wrong verdict."""
    junk = add_junk(scene)[0]
    return [
        replace(junk, refusal=scene.judged(scene.with_inherent(proof=())).refusal),
        scene.record,
    ]
