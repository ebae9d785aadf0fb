"""Value types are compared, hashed and shown as dataclasses are."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pubsub_emulator.primitives.values import value_type


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
