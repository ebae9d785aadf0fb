"""ID-20, ID-21: from `dataLocation` to a global id, or to the first reason why there is none."""

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from interchain_events.pallets.dome_events.global_id import NoGlobalIdError, global_id

CODES = {
    "not-a-string", "too-long", "not-a-url", "hl-missing", "hl-repeated", "hl-empty", "hl-escape",
    "hl-characters", "hl-too-long",
}  # fmt: skip
URLS = st.text(alphabet="htps:/?#&=%hl0aA1.[]+ é\n", max_size=60).map("http://h/".__add__)


@given(
    location=st.one_of(URLS, st.text(max_size=40), st.none(), st.integers(), st.lists(st.text()))
)
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
    assert (
        global_id("https://n.example/e?%68l=" + "".join(f"%{ord(each):02x}" for each in name))
        == name
    )
