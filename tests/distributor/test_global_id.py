"""ID-20, ID-21: from `dataLocation` to a global id, or to the first reason why there is none."""

import json
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.runtime.pallet_dome_events.global_id import NoGlobalIdError, global_id

VECTORS = Path(__file__).parents[1] / "vectors" / "ied" / "global_ids.json"
CASES = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]
CODES = {
    "not-a-string", "too-long", "not-a-url", "hl-missing", "hl-repeated", "hl-empty", "hl-escape", "hl-characters",
    "hl-too-long",
}  # fmt: skip
URLS = st.text(alphabet="htps:/?#&=%hl0aA1.[]+ é\n", max_size=60).map("http://h/".__add__)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_id20_id21_extraction_is_as_the_vectors_say(case: dict[str, object]) -> None:
    try:
        found = {"id": global_id(case["data_location"])}
    except NoGlobalIdError as error:
        found = {"error": str(error)}
    assert found == {name: case[name] for name in ("id", "error") if name in case}


@given(location=st.one_of(URLS, st.text(max_size=40), st.none(), st.integers(), st.lists(st.text())))
def test_id_invariant_12_any_value_has_an_id_or_an_error(location: object) -> None:
    try:
        found = global_id(location)
    except NoGlobalIdError as error:
        code = str(error)
        found = "none"
    else:
        code = "hl-missing"
    assert code in CODES
    assert unquote(found) == found
    assert 1 <= len(found) <= 256


@given(name=st.text(alphabet="abcAB019._~:/+=,@-", min_size=1, max_size=256))
def test_id21_what_may_be_an_id_is_found_as_it_is(name: str) -> None:
    assert global_id(f"https://n.example/e?a=1&hl={name}&b=2#hl=other") == name
    assert global_id("https://n.example/e?%68l=" + "".join(f"%{ord(each):02x}" for each in name)) == name
