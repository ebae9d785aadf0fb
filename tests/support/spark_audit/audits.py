"""Small histories for the audit's tests: an honest network, and an observer that slips cheats into
what is recorded.
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
from pubsub_emulator.spark_audit.history.canonical import encode_row
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES

KEYS = [key_from_data(b"key %d" % at) for at in range(12)]
SUBSCRIBER = 2000
Cheat = Callable[["Scene"], list[BlockRecord]]


@dataclass(frozen=True)
class Scene:
    """One honest record, and what its candidate was judged on."""

    record: BlockRecord
    parent: Header
    state: State
    seed: bytes

    def judged(self, candidate: Candidate) -> BlockRecord:
        """Another candidate in the honest one's place, judged as the network would."""
        relay = RelayContext(
            candidate.inherent.relay_parent_number,
            self.record.relay_storage_root,
            self.record.slot_now,
        )
        outcome, refusal = judge_block(ChainHead(self.parent, self.state), candidate, relay)
        return replace(self.record, candidate=candidate, outcome=outcome, refusal=refusal)

    def with_inherent(self, **changes: Any) -> Candidate:
        """The honest candidate with another inherent, sealed anew by its author."""
        honest = self.record.candidate
        inherent = replace(honest.inherent, **changes)
        header = replace(honest.header, extrinsics_root=extrinsics_root(inherent))
        return Candidate(seal(header, self.seed), inherent)

    def with_state_root(self, root: bytes) -> Candidate:
        """The honest candidate claiming another post-state."""
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
    """Two publishers, one of them a system chain, and subscribers to both; the first builds `skew`
    blocks a turn.
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
    """A history of `blocks` relay blocks in which something is published in each."""
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
    """All rows of all tables, in one order."""
    return {
        name: sorted(encode_row(table, row) for row in result.results.rows(table))
        for name, table in RESULT_TABLES.items()
    }


def flip(path: Path, at: int) -> None:
    """Flip a bit of a file's byte."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def drop_a_node(scene: Scene) -> list[BlockRecord]:
    """The author leaves out the last node first, and is honest after that was refused."""
    return [
        scene.judged(scene.with_inherent(proof=scene.record.candidate.inherent.proof[:-1])),
        scene.record,
    ]


def add_junk(scene: Scene) -> list[BlockRecord]:
    """The author adds a node that nobody needs."""
    junk = tuple(sorted((*scene.record.candidate.inherent.proof, b"\xffjunk")))
    return [scene.judged(scene.with_inherent(proof=junk)), scene.record]


def include_invalid(scene: Scene) -> list[BlockRecord]:
    """The chain takes a block that claims a wrong post-state."""
    wrong = scene.with_state_root(bytes(32))
    return [replace(scene.judged(wrong), outcome=scene.record.outcome, refusal=None)]


def refuse_valid(scene: Scene) -> list[BlockRecord]:
    """The chain refuses a valid block first, with the verdict on another one."""
    refusal = scene.judged(scene.with_inherent(proof=())).refusal
    return [replace(scene.record, outcome=None, refusal=refusal), scene.record]


def refuse_for_another_reason(scene: Scene) -> list[BlockRecord]:
    """The chain refuses an invalid block with the wrong verdict."""
    junk = add_junk(scene)[0]
    return [
        replace(junk, refusal=scene.judged(scene.with_inherent(proof=())).refusal),
        scene.record,
    ]
