"""CandyPath: IC-26."""

import pytest

from pubsub_emulator.icrc72.errors import FilterError
from pubsub_emulator.icrc72.filters import Overrun, evaluate, matches, parse
from pubsub_emulator.icrc72.values import array, map_, nat, text


def test_ic_26_an_evaluation_of_too_many_steps_does_not_match() -> None:
    wide = array(array(nat(at) for at in range(100)) for _ in range(100))
    assert matches("*.* == 99", wide)
    data = array([array([nat(0)]), wide])
    with pytest.raises(Overrun):
        evaluate(parse("*.* > $.*.*.* | $"), data)
    assert not matches("*.* > $.*.*.* | $", data)


def test_ic_26_the_longest_and_deepest_filters_are_limited() -> None:
    deepest = "(" * 15 + "a" + ")" * 15
    assert matches(deepest, map_({"a": text("x")}))
    with pytest.raises(FilterError):
        parse("(" + deepest + ")")
    with pytest.raises(FilterError):
        parse("a" * 1025)
    assert parse("a" * 1024)
