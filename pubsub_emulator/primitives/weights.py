"""FRAME's two-dimensional weight."""

from typing import Final

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.scale import Codec, Reader, compact_of
from pubsub_emulator.primitives.types import U64_MAX
from pubsub_emulator.primitives.values import value_type


@value_type
class Weight:
    """Work of a call: `ref_time` in picoseconds, `proof_size` in bytes.

    Both saturate at u64.
    """

    ref_time: int = 0
    proof_size: int = 0

    def __add__(self, other: "Weight") -> "Weight":
        ref_time = self.ref_time + other.ref_time
        proof_size = self.proof_size + other.proof_size
        if ref_time > U64_MAX or proof_size > U64_MAX:
            return Weight(min(ref_time, U64_MAX), min(proof_size, U64_MAX))
        return Weight(ref_time, proof_size)

    def __sub__(self, other: "Weight") -> "Weight":
        ref_time = self.ref_time - other.ref_time
        proof_size = self.proof_size - other.proof_size
        if ref_time < 0 or proof_size < 0:
            return Weight(max(ref_time, 0), max(proof_size, 0))
        return Weight(ref_time, proof_size)

    def __mul__(self, factor: int) -> "Weight":
        return Weight(min(self.ref_time * factor, U64_MAX), min(self.proof_size * factor, U64_MAX))

    def all_lte(self, other: "Weight") -> bool:
        """Return whether this weight is at most `other` in both dimensions."""
        return self.ref_time <= other.ref_time and self.proof_size <= other.proof_size

    def any_gt(self, other: "Weight") -> bool:
        """Return whether this weight exceeds `other` in at least one dimension."""
        return self.ref_time > other.ref_time or self.proof_size > other.proof_size


WEIGHT_ZERO: Final = Weight(0, 0)
WEIGHT_MAX: Final = Weight(U64_MAX, U64_MAX)


_part: Final = compact_of(64)


def encode_weight(weight: Weight) -> bytes:
    """Return the SCALE bytes of `Weight { Compact<u64> ref_time, Compact<u64> proof_size }`."""
    return _part.encode(weight.ref_time) + _part.encode(weight.proof_size)


def read_weight(reader: Reader) -> Weight:
    """Read a weight that `encode_weight` wrote."""
    return Weight(reader.compact(64), reader.compact(64))


weight_info: Final = type_info.struct(
    "sp_weights::weight_v2::Weight",
    ref_time=type_info.CompactOf(type_info.U64),
    proof_size=type_info.CompactOf(type_info.U64),
)
weight_codec: Codec[Weight] = Codec("Weight", encode_weight, read_weight, weight_info)
