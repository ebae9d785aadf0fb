"""What a round and a message cost: pacing, timers, and values that messages carry. IC-43c, IC-11b.

Also the memory that a subscriber takes.
"""

import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.icrc72.canister_apps import NAME, Lab, Sink, Source

from interchain_events.icrc72.ic.candid.carried import Message, plain
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.messaging import Recorder
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import decode, encode
from interchain_events.icrc72.memory import (
    Line,
    Shared,
    newest,
    nothing,
    put,
    put_all,
    put_shared,
    put_single,
    take_out,
)
from interchain_events.icrc72.messages import Event
from interchain_events.icrc72.methods import CONFIRM, HANDLE, PUBLISH
from interchain_events.icrc72.role import earliest
from interchain_events.icrc72.services import VALUE, Codec, codec, encoded, type_codec
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import Value, array, map_, nat, option, text


@pytest.mark.parametrize(
    ("batches", "copies"),
    [
        (4, False),
        (500, True),
    ],
)
def test_ic_43_new_batches_are_as_many_as_can_be_confirmed(batches: int, copies: bool) -> None:
    settings = replace(DEFAULTS, new_batches=batches)
    lab = Lab(subnets=1, broadcasters=(0,), settings=settings)
    source = lab.install(Source, 0, publications={NAME: {}})
    sinks = [lab.install(Sink, 0, subscriptions={NAME: {}}) for _ in range(60)]
    lab.step(80)
    lab.network.limits = replace(lab.network.limits, messages_a_round=8)
    recorder = Recorder()
    lab.network.observers.append(recorder)
    lab.emit(source, 1, then=150)
    assert all(lab.app(each).data == [1] for each in sinks)
    sent = [each for each in recorder.happenings if each.kind == "send"]
    notified = [each for each in sent if each.method == HANDLE.name and each.receiver in sinks]
    assert (len(notified) > len(sinks)) == copies
    in_rounds = Counter(each.round for each in notified)
    assert copies or max(in_rounds.values()) <= batches


def nested(depth: int) -> Value:
    """A number inside of so many options."""
    value: Value = nat(1)
    for _ in range(depth):
        value = option(value)
    return value


def reads(codec_: Codec, data: bytes) -> tuple[object, ...] | None:
    try:
        return codec_.values(data)
    except CandidError:
        return None


def test_ic_11_a_carried_value_is_never_deeper_than_one_that_is_read() -> None:
    args = codec(PUBLISH.name).args
    verdicts = set()
    for depth in range(80, 150):
        event = Event(
            1, None, 1, namespace=NAME, data=nested(depth), source=Principal(b"a"), headers=None
        )
        data = args.message((event,))
        verdict = reads(args, data)
        assert verdict == reads(args, plain(data))
        verdicts.add((verdict is None, isinstance(data, Message)))
    assert verdicts >= {(True, False), (False, False)}
    short = args.message(
        (Event(1, None, 1, namespace=NAME, data=nested(3), source=Principal(b"a"), headers=None),)
    )
    assert isinstance(short, Message)


def test_only_the_codec_that_made_a_message_takes_its_values() -> None:
    data = CONFIRM.argument((1, 2))
    assert isinstance(data, Message)
    assert CONFIRM.value(data) == (1, 2)
    assert CONFIRM.value(plain(data)) == (1, 2)
    with pytest.raises(CandidError):
        HANDLE.value(data)


def test_a_value_with_its_encoding_is_written_and_saved_like_one_without() -> None:
    value = map_({"a": array([nat(1), text("two")])})
    written = encoded(value)
    assert written == value
    assert encoded(written) is written
    assert len(written.encoding) == type_codec("broadcaster", VALUE).size(value)
    assert encode((written,)) == encode((value,))
    event = Event(1, None, 1, namespace=NAME, data=value, source=Principal(b"a"), headers=None)
    copied = event._replace(data=written)
    assert plain(PUBLISH.argument((copied,))) == plain(PUBLISH.argument((event,)))
    # Another type does not take the bytes, and a changed value has none.
    other = Encoder(parse_types("(variant { Other; Map : vec record { text; reserved } })"))
    assert other.encode(written) == other.encode(value)
    changed = written._replace(value=())
    assert type_codec("broadcaster", VALUE).encode(changed) == type_codec(
        "broadcaster", VALUE
    ).encode(map_({}))


def test_an_upgrade_and_observers_see_only_the_bytes() -> None:
    data = CONFIRM.argument((1, 2))
    assert encode({"message": data}) == encode({"message": plain(data)})
    lab = Lab(subnets=1, broadcasters=(0,))
    recorder = Recorder()
    lab.network.observers.append(recorder)
    lab.install(Sink, 0, subscriptions={NAME: {}})
    lab.step(30)
    assert {type(each.data) for each in recorder.happenings} == {bytes}


def test_values_are_carried_and_compared_in_this_room(carried: list[int]) -> None:
    lab = Lab()
    source, sink = lab.source_and_sink()
    lab.emit(source, 1, 2, then=40)
    assert lab.app(sink).data == [1, 2]
    assert carried[0] > 20


def test_a_carried_value_that_differs_from_its_bytes_is_noticed(carried: list[int]) -> None:
    data = CONFIRM.argument((1, 2))
    assert isinstance(data, Message)
    data.values = ([1, 2],)
    with pytest.raises(AssertionError, match="carried"):
        CONFIRM.value(data)
    assert carried[0] == 1


NOW = 100


@given(st.lists(st.none() | st.integers(NOW - 5, NOW + 5)))
def test_a_timer_is_set_to_the_first_round_that_is_due(dues: list[int | None]) -> None:
    asked: list[int | None] = []

    def each() -> Iterator[int | None]:
        for due in dues:
            asked.append(due)
            yield due

    known = [due for due in dues if due is not None]
    assert earliest(each(), NOW) == (max(min(known), NOW + 1) if known else None)
    soon = [at for at, due in enumerate(dues) if due is not None and due <= NOW + 1]
    assert len(asked) == (soon[0] + 1 if soon else len(dues))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("put", "put_shared", "put_single", "put_all", "take_out", "newest")),
        st.integers(0, 9),
        st.integers(),
    )
)


@given(STEPS)
def test_lazily_made_dicts_have_the_items_and_order_of_dicts(
    steps: list[tuple[str, int, int]],
) -> None:
    known: Mapping[int, int] = nothing()
    model: dict[int, int] = {}
    for step, key, value in steps:
        match step:
            case "put":
                known = put(known, key, value)
                model[key] = value
            case "put_shared":
                known = put_shared(known, key, value)
                model[key] = value
            case "put_single":
                known = put_single(known, key, value)
                model[key] = value
            case "put_all":
                known = put_all(known, {key: value} if value % 2 else {})
                model.update({key: value} if value % 2 else {})
            case "take_out":
                known = take_out(known, key)
                model.pop(key, None)
            case _:
                known = newest(known, key)
                for oldest in list(model)[: max(len(model) - key, 0)]:
                    del model[oldest]
        assert list(known.items()) == list(model.items())
        assert known == model
        assert [known[key] for key in model] == list(model.values())
        assert [known.get(key) for key in range(10)] == [model.get(key) for key in range(10)]
        assert known or known is nothing()
        assert encode(known) == encode(model)
    assert encode({"line": Line([1])}) == encode(decode(encode({"line": Line([1])})))


def test_equal_shared_dicts_are_one_that_nobody_changes() -> None:
    one: Mapping[str, int] = put_shared(nothing(), "a", 1)
    assert put_shared(nothing(), "a", 1) is one
    for change in (
        lambda known: known.update(b=1),
        lambda known: known.clear(),
        lambda known: known.setdefault("b", 1),
        lambda known: operator.setitem(known, "b", 1),
        lambda known: operator.delitem(known, "a"),
        lambda known: known.__ior__({"b": 1}),
    ):
        with pytest.raises(TypeError, match="shared"):
            change(one)
    assert (one, nothing()) == ({"a": 1}, {})
    assert deepcopy(one) == one
    assert type(deepcopy(one)) is Shared


def empty(record: object) -> dict[str, Mapping[object, object]]:
    """The empty dicts of a record, by field."""
    found = {each.name: getattr(record, each.name) for each in fields(record)}  # type: ignore[arg-type]  # a dataclass
    return {name: value for name, value in found.items() if isinstance(value, dict) and not value}


def test_what_a_subscriber_has_handled_takes_no_more_room(lab: Lab) -> None:
    source, sink = lab.source_and_sink()
    lab.emit(source, 1, 2, 3, then=60)
    app = lab.app(sink)
    assert app.data == [1, 2, 3]
    assert app.subscriber is not None
    (queue,) = [
        queues[sink]
        for each in lab.system.broadcasters
        if sink in (queues := lab.system.broadcaster(each).state.queues)
    ]
    left = empty(app.subscriber.state) | empty(queue.main)
    assert {"waiting", "called", "run", "out"} <= set(left)
    assert all(value is nothing() for value in left.values())
