"""EV-1, EV-4: which parachain blocks a relay block included, as a real relay chain says it: `CandidateIncluded`."""

import asyncio
from typing import Any

import pytest

from pubsub_emulator.client.errors import UnknownBlock
from pubsub_emulator.client.node import BlockHeader, DecodedEvent
from pubsub_emulator.events.errors import SourceError
from pubsub_emulator.events.log.sources.rpc import RpcSource
from pubsub_emulator.events.rows import Block, event_id
from pubsub_emulator.primitives.hashing import blake2_256

HEADS = {name: f"head {name}".encode() for name in "abc"}
RELAY = b"\1" * 32


def hash_of(name: str) -> bytes:
    return bytes(blake2_256(HEADS[name]))


def included(para: int, head: bytes) -> DecodedEvent:
    """The event with its fields by place, as metadata without names has them."""
    receipt = {"descriptor": {"para_id": para, "relay_parent": "0x00"}, "commitments_hash": "0x00"}
    return DecodedEvent("ParaInclusion", "CandidateIncluded", {"0": receipt, "1": head, "2": 5, "3": 0})


class FakeNode:
    """One chain: headers and events by block hash."""

    def __init__(self, blocks: dict[bytes, tuple[int, list[DecodedEvent]]], time: int | None) -> None:
        self._blocks = blocks
        self._time = time

    async def block_hash(self, number: int) -> bytes | None:
        return next((found for found, (height, _) in self._blocks.items() if height == number), None)

    async def header(self, block: bytes) -> BlockHeader:
        if block not in self._blocks:
            raise UnknownBlock("no such block")
        return BlockHeader(block, self._blocks[block][0], bytes(32), ())

    async def events(self, block: bytes, _parent: bytes) -> list[DecodedEvent]:
        return self._blocks[block][1]

    async def timestamp(self, _block: bytes) -> int | None:
        return self._time


def read(events: list[DecodedEvent]) -> Block:
    source = RpcSource("ws://relay", {2000: "ws://one", 2001: "ws://two"})
    nodes: Any = source
    nodes._node = FakeNode({RELAY: (7, events)}, 42_000)
    first = {hash_of("a"): (70, [DecodedEvent("A", "One", {"n": 1})]), hash_of("b"): (71, [])}
    nodes._paras = {
        2000: FakeNode(first, None),
        2001: FakeNode({hash_of("c"): (90, [DecodedEvent("C", "Two", {}), DecodedEvent("C", "Three", {})])}, 41_000),
    }
    return asyncio.run(source.block(7))


def test_ev_1_blocks_come_in_the_order_of_inclusion() -> None:
    events = [
        included(2001, HEADS["c"]),
        included(1999, b"of a chain that nobody follows"),
        DecodedEvent("Paras", "NewHeadNoted", {"0": 2000}),  # says nothing where candidates are told
        included(2000, HEADS["a"]),
        included(2000, HEADS["b"]),
    ]
    block = read(events)
    found = [(entry.chain, entry.block, entry[3], entry.kind, entry.time) for entry in block.entries[len(events) :]]
    assert found == [
        (2001, 90, 0, "C.Two", 41_000),
        (2001, 90, 1, "C.Three", 41_000),
        (2000, 70, 0, "A.One", 42_000),  # without a clock of its own it has the anchor's time
    ]
    assert block.entries[len(events) + 2].id == event_id(hash_of("a"), 0)
    assert [entry.chain for entry in block.entries[: len(events)]] == [None] * len(events)


@pytest.mark.parametrize(
    "fields", [{"0": {}, "1": b""}, {"0": {"descriptor": {"para_id": "x"}}, "1": b""}, {"0": 1, "1": 2}]
)
def test_ev_4_a_candidate_that_says_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="without para id or head data"):
        read([DecodedEvent("ParaInclusion", "CandidateIncluded", fields)])


def test_ev_4_a_block_that_the_parachains_node_does_not_have_is_not_left_out() -> None:
    with pytest.raises(UnknownBlock):
        read([included(2000, b"unknown")])
