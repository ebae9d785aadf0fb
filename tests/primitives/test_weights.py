"""Weights add, subtract and compare in both dimensions, and saturate."""

from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.types import U64_MAX
from pubsub_emulator.primitives.weights import WEIGHT_MAX, WEIGHT_ZERO, Weight

weights = st.builds(Weight, st.integers(0, U64_MAX), st.integers(0, U64_MAX))


@given(weights, weights)
def test_a_weight_fits_only_if_both_dimensions_do(one: Weight, other: Weight) -> None:
    fits = one.ref_time <= other.ref_time and one.proof_size <= other.proof_size
    assert one.all_lte(other) == fits
    assert one.any_gt(other) != fits


@given(weights, weights, st.integers(0, 1000))
def test_arithmetic_saturates_at_zero_and_u64(one: Weight, other: Weight, factor: int) -> None:
    assert (one + other).ref_time == min(one.ref_time + other.ref_time, U64_MAX)
    assert (one - other).proof_size == max(one.proof_size - other.proof_size, 0)
    assert (one * factor).proof_size == min(one.proof_size * factor, U64_MAX)
    assert one + WEIGHT_MAX == WEIGHT_MAX
    assert one - WEIGHT_MAX == WEIGHT_ZERO
    assert one * 0 == WEIGHT_ZERO
