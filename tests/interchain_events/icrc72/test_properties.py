"""Codecs, hashes, patterns, ranges, queries against slow twins; limits, refusals: I10, I11, I15,
IC-11b, IC-26.
"""

import re
import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plumbing.examples import scaled

from interchain_events.icrc72 import filters
from interchain_events.icrc72.config import PublicationConfig, SubscriptionConfig
from interchain_events.icrc72.errors import FilterError
from interchain_events.icrc72.ic.candid.decode import Decoder
from interchain_events.icrc72.ic.candid.did import parse, parse_types
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.errors import CandidError, DidError, PrincipalError
from interchain_events.icrc72.ic.principal import Principal, canister_id
from interchain_events.icrc72.messages import ByPrincipal, OrchestrationFilter
from interchain_events.icrc72.namespaces import from_text, matches, to_text
from interchain_events.icrc72.orchestrator.queries import Queries, Row, satisfies
from interchain_events.icrc72.orchestrator.state import Publication, Registry, SubscriptionRecord
from interchain_events.icrc72.services import interface, type_codec
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.subscriber.state import Ranges
from interchain_events.icrc72.values import (
    Property,
    array,
    from_icrc3,
    icrc3_value,
    map_,
    nat,
    text,
    value_hash,
)

PRINCIPALS = st.binary(max_size=29).map(Principal)
FLOATS = st.floats(allow_nan=False).map(lambda number: struct.pack("<d", number))


def _sized(kind: str, bits: int) -> st.SearchStrategy[Variant]:
    low, high = (0, (1 << bits) - 1) if kind == "Nat" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return st.integers(low, high).map(lambda number: Variant(f"{kind}{bits}", number))


LEAVES = st.one_of(
    st.integers(0, 1 << 80).map(lambda n: Variant("Nat", n)),
    st.integers(-(1 << 80), 1 << 80).map(lambda n: Variant("Int", n)),
    st.text(max_size=8).map(lambda t: Variant("Text", t)),
    st.binary(max_size=8).map(lambda b: Variant("Blob", b)),
    st.binary(max_size=8).map(lambda b: Variant("Bytes", b)),
    st.booleans().map(lambda b: Variant("Bool", b)),
    PRINCIPALS.map(lambda p: Variant("Principal", p)),
    FLOATS.map(lambda f: Variant("Float", f)),
    st.lists(FLOATS, max_size=3).map(lambda f: Variant("Floats", tuple(f))),
    st.lists(st.integers(0, 1 << 70), max_size=3).map(lambda n: Variant("Nats", tuple(n))),
    *(_sized(kind, bits) for kind in ("Nat", "Int") for bits in (8, 16, 32, 64)),
)


def _nested(inner: st.SearchStrategy[Variant]) -> st.SearchStrategy[Variant]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        several.map(lambda v: Variant("Array", v)),
        several.map(lambda v: Variant("Set", v)),
        st.one_of(st.none(), inner).map(lambda v: Variant("Option", v)),
        st.lists(st.tuples(st.text(max_size=4), inner), max_size=3).map(
            lambda v: Variant("Map", tuple(v))
        ),
        st.lists(st.tuples(inner, inner), max_size=2).map(lambda v: Variant("ValueMap", tuple(v))),
        st.lists(st.builds(Property, st.text(max_size=4), inner, st.booleans()), max_size=2).map(
            lambda v: Variant("Class", tuple(v))
        ),
    )


VALUES = st.recursive(LEAVES, _nested, max_leaves=8)


@given(VALUES)
def test_i10_candid_round_trips(value: Variant) -> None:
    codec = type_codec("broadcaster", "ICRC16")
    assert codec.decode(codec.encode(value)) == (value,)


@given(VALUES, st.integers(0, 400), st.integers(0, 255))
def test_ic_11_damaged_messages_raise_candid_errors_and_nothing_else(
    value: Variant, at: int, byte: int
) -> None:
    data = bytearray(type_codec("broadcaster", "ICRC16").encode(value))
    data[at % len(data)] = byte
    for raw in (bytes(data), bytes(data[: at % len(data)])):
        try:
            Decoder((interface("broadcaster").types["ICRC16"],)).decode(raw)
        except CandidError:
            continue


def _shuffled(value: Any, order: int) -> Any:
    tag, inside = value
    if tag in {"Array", "Set", "Map", "ValueMap", "Class"}:
        parts = [
            (
                tuple(_shuffled(p, order) if isinstance(p, Variant) else p for p in each)
                if not isinstance(each, Variant)
                else _shuffled(each, order)
            )
            for each in inside
        ]
        if tag == "Class":
            parts = [Property(*each) for each in parts]
        if tag != "Array":
            parts = parts[order % (len(parts) + 1) :] + parts[: order % (len(parts) + 1)]
        return Variant(tag, tuple(parts))
    return value


@given(VALUES)
def test_ic_21_an_icrc_3_form_is_read_back(value: Variant) -> None:
    form = icrc3_value(value)
    back = from_icrc3(form)
    assert value_hash(back) == value_hash(value)
    assert icrc3_value(back) == form


@given(VALUES, st.integers(0, 5))
def test_i10_the_hash_does_not_depend_on_the_order_of_what_has_none(
    value: Variant, order: int
) -> None:
    assert value_hash(_shuffled(value, order)) == value_hash(value)


@given(PRINCIPALS)
def test_ic_2_principals_round_trip_in_any_case(principal: Principal) -> None:
    assert Principal.from_text(principal.text.upper()) == principal
    damaged = principal.text[:-1] + ("a" if principal.text[-1] != "a" else "b")
    with suppress(PrincipalError):
        assert Principal.from_text(damaged) != principal


@given(st.integers(0, 1 << 300))
def test_ic_25_identifiers_round_trip(number: int) -> None:
    assert from_text(to_text(number)) == from_text(to_text(number).lower()) == number


SEGMENTS = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=6).map(".".join)
NAMES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6).map(".".join)


@given(SEGMENTS, NAMES)
def test_i11_patterns_equal_a_regular_expression(pattern: str, name: str) -> None:
    parts = [
        r"(?:[^.]+\.)*" if each == "**" else r"[^.]+\." if each == "*" else each + r"\."
        for each in pattern.split(".")
    ]
    assert matches(pattern, name) == (re.fullmatch("".join(parts), name + ".") is not None)


@given(st.text(alphabet='ab.[]()*@$?:,=<>!~&| \\"01-', max_size=24), VALUES)
def test_ic_26_any_text_is_a_filter_or_refused_and_a_filter_always_answers(
    text: str, value: Variant
) -> None:
    try:
        parsed = filters.parse(text)
    except FilterError:
        return
    assert filters.evaluate(parsed, value) in {True, False}


@given(st.lists(st.integers(1, 40), unique=True, min_size=1), st.randoms(use_true_random=False))
def test_ic_49_ranges_know_what_was_handled_and_grow_along_former_events(
    ids: list[int], random: Any
) -> None:
    chain = sorted(ids)
    former: dict[int, int | None] = dict(zip(chain, [None, *chain[:-1]], strict=True))
    order = list(ids)
    random.shuffle(order)
    ranges = Ranges()
    for done, number in enumerate(order, 1):
        ranges.add(number, former[number], 1000)
        assert all(each in ranges for each in order[:done])
        handled = set(order[:done])
        assert not any(each in ranges for each in chain if each not in handled)
    assert len(ranges.first) == 1
    assert ranges.joins(chain[0], chain[-1])


@st.composite
def registries(draw: Any) -> Registry:
    state = Registry()
    who = [canister_id(0, at) for at in range(4)]
    for number in range(1, draw(st.integers(1, 3)) + 1):
        made = Publication(number, f"n.p{number}", PublicationConfig(who[0], (who[0],)), {})
        for publisher in draw(st.sets(st.sampled_from(who), max_size=2)):
            made.publishers[publisher] = True
            if draw(st.booleans()):
                made.entries[publisher] = (draw(st.sampled_from(who)),)
        state.publications[number] = made
        state.by_namespace[made.namespace] = number
    for number in range(1, draw(st.integers(0, 4)) + 1):
        subscriber = draw(st.sampled_from(who))
        pattern = draw(st.sampled_from(["n.*", "n.p1", "n.p2", "x.y", "**"]))
        if pattern in state.by_subscriber.get(subscriber, {}):
            continue
        state.subscriptions[number] = SubscriptionRecord(
            number, pattern, subscriber, SubscriptionConfig((subscriber,))
        )
        state.by_subscriber.setdefault(subscriber, {})[pattern] = number
        state.exits[subscriber] = draw(st.sampled_from([None, *who]))
        for publication in state.publications.values():
            if matches(pattern, publication.namespace):
                matching = publication.subscribers.get(subscriber, {})
                publication.subscribers[subscriber] = {**matching, number: True}
    return state


def _all_rows(state: Registry) -> list[Row]:
    """The relation, spelt out."""
    rows = []
    for publication in state.publications.values():
        left: list[Any] = [
            (publisher, entry)
            for publisher in publication.publishers
            for entry in publication.entries.get(publisher) or (None,)
        ] or [(None, None)]
        right: list[Any] = [
            (state.subscriptions[number], state.exits.get(who))
            for who, numbers in publication.subscribers.items()
            for number in numbers
        ] or [(None, None)]
        rows += [Row(publication, *one, *two) for one in left for two in right]
    matched = {
        n
        for p in state.publications.values()
        for numbers in p.subscribers.values()
        for n in numbers
    }
    for number, each in state.subscriptions.items():
        if number not in matched:
            rows.append(Row(None, None, None, each, state.exits.get(each.subscriber)))
    return rows


SLICES = st.lists(
    st.one_of(
        st.builds(
            Variant,
            st.sampled_from(["BySubscriber", "ByPublisher", "ByBroadcaster"]),
            st.integers(0, 3).map(lambda at: canister_id(0, at)),
        ),
        st.builds(
            Variant, st.just("ByNamespace"), st.sampled_from(["n.p1", "n.*", "**", "x.y", "q"])
        ),
    ),
    max_size=3,
)


@settings(max_examples=scaled(100))
@given(registries(), SLICES)
def test_i11_i15_queries_equal_their_slow_twin_and_pages_joined_are_the_whole(
    state: Registry, slices: list[Variant]
) -> None:
    queries = Queries(state, DEFAULTS)
    rows = [row for row in _all_rows(state) if all(satisfies(row, each) for each in slices)]
    expected = sorted({row.subscription.subscriber for row in rows if row.subscription is not None})
    filter_ = OrchestrationFilter(Variant("None"), tuple(slices))
    ask = queries.queries()["icrc72_get_subscribers"]
    whole = [each.subscriber for each in ask(Principal(), 0, ByPrincipal(None, None, filter_))]
    assert whole == expected
    joined: list[Principal] = []
    while page := ask(Principal(), 0, ByPrincipal(joined[-1] if joined else None, 1, filter_)):
        joined += [each.subscriber for each in page]
    assert joined == whole
    ask = queries.queries()["icrc72_get_publishers"]
    publishers = [each.publisher for each in ask(Principal(), 0, ByPrincipal(None, None, filter_))]
    assert publishers == sorted({row.publisher for row in rows if row.publisher is not None})


def test_ic_26_an_evaluation_of_too_many_steps_does_not_match() -> None:
    wide = array(array(nat(at) for at in range(100)) for _ in range(100))
    assert filters.matches("*.* == 99", wide)
    data = array([array([nat(0)]), wide])
    with pytest.raises(filters.Overrun):
        filters.evaluate(filters.parse("*.* > $.*.*.* | $"), data)
    assert not filters.matches("*.* > $.*.*.* | $", data)


def test_ic_26_the_longest_and_deepest_filters_are_limited() -> None:
    deepest = "(" * 15 + "a" + ")" * 15
    assert filters.matches(deepest, map_({"a": text("x")}))
    with pytest.raises(FilterError):
        filters.parse("(" + deepest + ")")
    with pytest.raises(FilterError):
        filters.parse("a" * 1025)
    assert filters.parse("a" * 1024)


_HUGE = b"\xff" * 3_000 + b"\x01"


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ("(text)", b"DIDL\x00\x01\x71" + _HUGE),
        ("(variant { a })", b"DIDL\x01\x6b\x01\x61\x7f\x01\x00" + _HUGE),
        ("(text)", b"DIDL" + _HUGE),
        ("(text)", b"DIDL\x00" + _HUGE),
        ("(text)", b"DIDL\x01\x6c" + _HUGE),
        ("(blob)", b"DIDL\x01\x6d\x7b\x01\x00" + _HUGE),
        ("(principal)", b"DIDL\x00\x01\x68\x01" + _HUGE),
    ],
)
def test_a_number_too_long_to_be_printed_is_refused_like_any_other(
    types: str, message: bytes
) -> None:
    with pytest.raises(CandidError, match=r"^byte \d+: .*a number of 21,001 bits"):
        Decoder(parse_types(types)).decode(message)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("type a = nat;\nservice : {\n  x (nat) -> ();\n}", "line 3: ':' was expected, not '('"),
        ("type a = nat;\n%", "line 2: '%' cannot be in an interface description"),
        ("type a =", "the text ends where a name was expected"),
    ],
)
def test_a_bad_interface_description_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(DidError, match=re.escape(said)):
        parse(text)
