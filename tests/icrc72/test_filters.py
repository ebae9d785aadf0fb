"""CandyPath: IC-26."""

from typing import Any

import pytest
from support.icrc_vectors import vectors

from pubsub_emulator.icrc72.errors import FilterError
from pubsub_emulator.icrc72.filters import Overrun, evaluate, matches, parse
from pubsub_emulator.icrc72.ic.candid.json_form import from_json
from pubsub_emulator.icrc72.services import interface
from pubsub_emulator.icrc72.values import array, map_, nat, text

ICRC16 = interface("broadcaster").types["ICRC16"]


@pytest.mark.parametrize("row", vectors("filters"), ids=lambda row: row["filter"])
def test_ic_26_a_filter_matches_what_the_language_says(row: dict[str, Any]) -> None:
    assert matches(row["filter"], from_json(ICRC16, row["data"])) == row["matches"]


@pytest.mark.parametrize("row", vectors("bad_filters"), ids=lambda row: row["filter"][:40])
def test_ic_26_bad_text_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(FilterError):
        parse(row["filter"])


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
