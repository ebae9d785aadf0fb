"""One hash of everything that happens in a run. It is equal for equal runs on any machine (PS-90).

digest' = blake2_256( [u8; 32] digest ++ u8 kind ++ content )      the first digest is 32 zero bytes

0 relay block   hash ++ storage root
1 candidate     u32 chain ++ block hash ++ Vec<Vec<u8>> proof ++ Option<post-state root>
                ++ Vec<u8> verdict
2 delivery      u32 publisher ++ key ++ entry hash ++ bool removed
3 checkpoint    u32 chain ++ u32 segment ++ state root
"""

from pubsub_emulator.emulator.network.records import (
    BlockRecord,
    CheckpointRecord,
    Observer,
    RelayRecord,
)
from pubsub_emulator.primitives.byte_lists import encode_bytes_list
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.types import Hash


class RunDigest(Observer):
    """An observer that hashes all records."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = Hash(bytes(32))

    def _add(self, kind: int, *content: bytes) -> None:
        self.value = blake2_256(b"".join((self.value, bytes((kind,)), *content)))

    def relay_block(self, record: RelayRecord) -> None:
        """Add a relay block. Genesis is included."""
        self._add(0, record.hash, record.storage_root)

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Add the state of a chain at the start of a segment."""
        place = record.chain.to_bytes(4, "little") + record.segment.to_bytes(4, "little")
        self._add(3, place, record.header.state_root)

    def candidate(self, record: BlockRecord) -> None:
        """Add a candidate with its proof and its verdict or post-state, and its deliveries."""
        outcome = record.outcome
        refusal = record.refusal
        proof = encode_bytes_list(record.candidate.inherent.proof)
        root = b"\x00" if outcome is None else b"\x01" + outcome.state_root
        verdict = encode_bytes(b"" if refusal is None else refusal.verdict.value.encode())
        self._add(
            1, record.chain.to_bytes(4, "little"), record.candidate.hash(), proof, root, verdict
        )
        for delivery in () if outcome is None else outcome.deliveries:
            self._add(
                2,
                delivery.publisher.to_bytes(4, "little"),
                delivery.key,
                delivery.entry_hash,
                bytes((delivery.value is None,)),
            )


def combine(*digests: bytes) -> Hash:
    """Return one digest of several digests, in order."""
    return blake2_256(b"".join(digests))
