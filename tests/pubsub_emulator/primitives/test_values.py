"""Value types are compared, hashed and shown as dataclasses are; weights are reckoned in both
dimensions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.types import U64_MAX
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import WEIGHT_MAX, WEIGHT_ZERO, Weight


def made(decorator: Callable[[Any], Any]) -> Any:
    class Pair:
        first: int
        second: str = field(default="", compare=False)

    return decorator(Pair)


OURS, THEIRS = made(value_type), made(dataclass(slots=True, unsafe_hash=True))


def test_values_are_equal_where_their_compared_fields_are() -> None:
    for kind in (OURS, THEIRS):
        assert kind(1, "a") == kind(1, "b")
        assert kind(1, "a") != kind(2, "a")
        assert kind(1) != (1, "")
        assert len({kind(1, "a"), kind(1, "b"), kind(2, "a")}) == 2
    assert OURS(1) != THEIRS(1)


def test_a_value_is_shown_with_all_its_fields() -> None:
    assert repr(OURS(1, "a")) == repr(THEIRS(1, "a"))


def test_values_without_fields_are_equal() -> None:
    empty: Any = value_type(type("Empty", (), {}))
    assert empty() == empty()
    assert hash(empty()) == hash(empty())


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
