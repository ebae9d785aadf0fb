"""Rows of the drafts, read as widely as they are written."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.icrc72.canister_apps import NAME, Lab, Sink, Source, err

from interchain_events.icrc72 import filters, keys
from interchain_events.icrc72.alerts import MemberAlert
from interchain_events.icrc72.client import FILTER
from interchain_events.icrc72.errors import FilterError, NamespaceError
from interchain_events.icrc72.facts import BegunFact
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import Event, EventNotification
from interchain_events.icrc72.namespaces import (
    check_namespace,
    check_pattern,
    matches,
    system_namespace,
)
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import Skip, array, map_, nat, skip_of, text

WIDE = ("com.foo:bar", "com/foo/bar", "café.events", "a" * 256, "日本.出来事", "x@y=z")


LONG = ("a" * 257, "a." * 16 + "a")


@pytest.mark.parametrize("name", WIDE)
def test_s000_009_a_namespace_has_any_printable_characters(name: str) -> None:
    lab = Lab(subnets=1, broadcasters=(0,))
    assert lab.publish(lab.probe(), name=name).tag == "Ok"
    narrow = Lab(subnets=1, broadcasters=(0,), settings=replace(DEFAULTS, narrow_namespaces=True))
    assert err(narrow.publish(narrow.probe(), name=name)) == "ImproperConfig"
    assert err(narrow.subscribe(narrow.probe(), name=name)) == "ImproperConfig"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "a..b",
        "a b",
        "a\u00a0b",
        "a\nb",
        "a\u200bb",
        "a*",
        "cafe\u0301",
        "a" * 257,
        "a." * 16,
    ],
)
def test_a_namespace_has_no_blanks_wildcards_or_decomposed_characters(name: str) -> None:
    with pytest.raises(NamespaceError):
        check_namespace(name)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("com.foo*", ["com.foo", "com.foobar"], ["com.fo", "com.foo.bar"]),
        ("*.icrc1.transfer", ["x.icrc1.transfer"], ["icrc1.transfer", "a.b.icrc1.transfer"]),
        ("a*b*a", ["aba", "axbxa", "abba"], ["ab", "aa", "abab"]),
        ("**.x*", ["x", "a.b.xy"], ["a.y"]),
        ("*é", ["é", "caffé"], ["e"]),
    ],
)
def test_s000_080_a_wildcard_stands_for_characters_within_a_segment(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    check_pattern(pattern)
    assert [name for name in (*yes, *no) if matches(pattern, name)] == yes


@pytest.mark.parametrize("pattern", ["***", "a**", "**a", "a.*b c"])
def test_a_pattern_has_two_stars_only_as_a_whole_segment(pattern: str) -> None:
    with pytest.raises(NamespaceError):
        check_pattern(pattern)


def slowly(pattern: str, segment: str) -> bool:
    """Whether a segment matches, by trying everything."""
    if not pattern:
        return not segment
    if pattern[0] == "*":
        return any(slowly(pattern[1:], segment[at:]) for at in range(len(segment) + 1))
    return segment[:1] == pattern[0] and slowly(pattern[1:], segment[1:])


@given(
    st.text("ab*", min_size=1, max_size=8).filter(lambda each: "**" not in each),
    st.text("ab", min_size=1, max_size=10),
)
def test_i11_wildcards_within_a_segment_equal_a_slow_twin(pattern: str, segment: str) -> None:
    assert matches(pattern, segment) == slowly(pattern, segment)


def test_a_subscription_by_such_a_pattern_gets_its_events(lab: Lab) -> None:
    source = lab.install(Source, 0, publications={"café.a:b": {}, "café.c": {}})
    sink = lab.install(Sink, 1, subscriptions={"caf*.a*": {}})
    lab.step(60)
    lab.emit(source, 1, name="café.a:b")
    lab.emit(source, 2, name="café.c", then=40)
    assert lab.app(sink).data == [1]


@pytest.mark.parametrize("key", ["icrc75:x", "icrc83:y", "ICRC92:stats", "mine"])
def test_s000_061_keys_of_other_extensions_are_kept_and_returned(key: str, lab: Lab) -> None:
    probe = lab.probe()
    assert lab.publish(probe, (key, 1)).tag == "Ok"
    assert lab.subscribe(probe, (key, 1)).tag == "Ok"
    assert dict(lab.system.registry.state.publications[1].config.others) == {key: nat(1)}
    assert lab.subscribe(lab.probe(), ("icrc72:mine", 1)).value.tag == "ImproperConfig"
    assert lab.publish(lab.probe(), ("ICRC77:mine", 1), name="other").value.tag == "ImproperConfig"


def test_s000_062_the_mode_is_read_in_any_case(lab: Lab) -> None:
    assert lab.publish(lab.probe(), (keys.MODE, "Priority")).tag == "Ok"
    assert lab.system.registry.state.publications[1].config.mode == "priority"


@pytest.mark.parametrize("open_", [False, True])
def test_ic_33_who_may_publish_without_a_list_is_a_setting(open_: bool) -> None:
    lab = Lab(subnets=1, broadcasters=(0,), settings=replace(DEFAULTS, open_publications=open_))
    lab.publish(lab.probe())
    assert lab.publish(lab.probe()).tag == ("Ok" if open_ else "Err")
    closed = (keys.list_key("publishers:allowed"), [b"\1"])
    lab.publish(lab.probe(), closed, name="closed")
    assert err(lab.publish(lab.probe(), name="closed")) == "UnauthorizedPublisher"


@given(st.integers(1, 50), st.integers(0, 200), st.integers(0, 500))
def test_s000_083_an_offset_above_the_modulus_stands_for_its_remainder(
    mod: int, offset: int, number: int
) -> None:
    skip = skip_of(array([nat(mod), nat(offset)]))
    assert skip == Skip(mod, offset % mod)
    assert skip.passes(number) == ((number - offset) % mod == 0)


def test_s001_021_payment_hints_are_kept(lab: Lab) -> None:
    lab.published(3)
    probe = lab.follower()
    assert lab.replay(probe, 1, 3, ("icrc77:payment", 5), ("icrc77:payment:memo", 5)).tag == "Ok"
    assert err(lab.replay(probe, 1, 3, ("icrc77:paid", 5))) == "ImproperConfig"


# Filters


EVENT = Event(
    7,
    6,
    5,
    namespace=NAME,
    data=map_({"com.example.host": text("John Smith"), "a b": nat(1), "host": map_({"n": nat(2)})}),
    source=Principal(b"me"),
    headers=(("content-type", text("ICRC16")), ("icrc72:broadcaster:received", nat(9))),
)


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        ('"com.example.host" ~= John', True),
        (r"com\.example\.host ~= John", True),
        ("com.example.host ~= John", False),
        ('$."com.example.host" ~= John', True),
        ('"a b" == 1', True),
        ("$event.headers.content-type == ICRC16", True),
        ('$event.headers."icrc72:broadcaster:received"', False),
        (f"$event.source == {EVENT.source.text}", True),
        ("$event.eventId == 7 & $event.prevEventId == 6 & $event.timestamp == 5", True),
        (f"$event.namespace == {NAME}", True),
        ("$event.data.host.n == 2", True),
        ("$event.data.host.n == $.host.n", True),
        ("host[n == 2]", True),
        ("host[$event.eventId == 7]", True),
    ],
)
def test_s000_081_filters_over_the_whole_event_and_over_keys_with_dots(
    words: str, holds: bool
) -> None:
    assert filters.lets_pass((words, None), EVENT) == holds


def test_a_notification_is_filtered_as_its_event_was() -> None:
    appended = (*(EVENT.headers or ()), (keys.EVENT_TIMESTAMP, nat(5)), (keys.REPLAY_ID, nat(1)))
    later = EVENT._replace(timestamp=99, headers=appended)
    assert filters.whole(later) == filters.whole(EVENT)


@pytest.mark.parametrize("words", ['"" == a', '"a == b', "$events.a", "$event a", "$event.id == 1"])
def test_such_a_filter_is_refused(words: str) -> None:
    with pytest.raises(FilterError):
        filters.parse(words)


def test_the_fields_of_an_event_are_those_to_which_filters_lead() -> None:
    value = filters.whole(EVENT)
    assert value.tag == "Map"
    for name, _ in value.value:
        filters.parse(f"$event.{name}")
        filters.parse(f'$event."{name}"')


def test_a_subscriber_on_another_subnet_gets_what_its_filter_lets_pass(lab: Lab) -> None:
    source, sink = lab.source_and_sink(**{FILTER: "$event.eventId > 2 & $event.data.n > 1"})
    lab.emit(source, *range(1, 6), then=60)
    assert lab.app(sink).data == [3, 4, 5]


# Places


def test_ic_37_who_serves_a_subnet_without_broadcasters_is_a_setting() -> None:
    for elsewhere in (False, True):
        settings = replace(DEFAULTS, other_subnets=elsewhere)
        lab = Lab(subnets=3, broadcasters=(0, 1), settings=settings)
        source = lab.install(Source, 2, publications={NAME: {}})
        sink = lab.install(Sink, 2, subscriptions={NAME: {}})
        lab.step(80)
        lab.emit(source, 1, 2, then=60)
        assert lab.app(sink).data == ([1, 2] if elsewhere else [])
        assert bool(lab.app(source).publisher.state.errors) != elsewhere
        nobody = Lab(subnets=1, broadcasters=(), settings=settings)
        assert nobody.system.registry.planner.choose(0) is None


def test_ic_37_partitions_stay_on_a_subnet_that_has_a_broadcaster() -> None:
    settings = replace(DEFAULTS, other_subnets=True)
    lab = Lab(subnets=2, broadcasters=(0, 1), settings=settings)
    source = lab.install(Source, 0, publications={NAME: {keys.PARTITIONS: 2}})
    lab.step(80)
    near = lab.broadcasters[0]
    assert lab.app(source).publisher.state.mine[NAME].entries == (near, near)


@pytest.mark.parametrize("role", ["publisher", "subscriber"])
def test_s001_050_a_subscriber_reads_of_its_replays_in_either_namespace(role: str) -> None:
    """ICRC-77 names the publishers' namespace, ICRC-72 that of subscribers."""
    lab = Lab(subnets=1, broadcasters=(0,))
    sink = lab.install(Sink, 0, subscriptions={NAME: {}})
    lab.step(60)
    app, broadcaster = lab.app(sink), lab.probe()
    app.inbox.state.valid = {broadcaster: None}
    data = MemberAlert({BegunFact(7): broadcaster}, ()).data("subscriber")
    namespace = system_namespace(role, sink)
    note = EventNotification(
        1,
        99,
        None,
        timestamp=1,
        namespace=namespace,
        data=data,
        headers=None,
        source=lab.orchestrator,
        filter=None,
    )
    lab.answer(broadcaster, sink, "icrc72_handle_notification", (note,))
    assert list(app.subscriber.state.announced) == [7]
