"""Cursors and the hub: no gap, no double, bounded memory, whatever happens (EV-20 to EV-24)."""

import os
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.events.blocks import counted, make_block
from support.events.stories import Story

from interchain_events.events.errors import BadCursor, CursorAbandoned
from interchain_events.events.filters.algebra import ANY
from interchain_events.events.log.memory import MemoryStore
from interchain_events.events.log.store import Head, check_cursor
from interchain_events.events.subscriptions.cursor import (
    Cursor,
    decode_cursor,
    encode_cursor,
    log_tag,
)
from interchain_events.events.subscriptions.hub import BOUND_BYTES, Hub

STORIES: Final = int(os.environ.get("EVENT_STORIES", "800"))
"""More of them are the campaign of `support.plumbing.story_campaign`."""


def test_ev_21_clients_see_exactly_the_matching_rows_whatever_happens() -> None:
    for seed in range(STORIES):
        try:
            Story(seed).run()
        except Exception as error:
            raise AssertionError(f"story {seed}: {error!r}") from error


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary(min_size=16, max_size=16))
def test_ev_20_a_cursor_survives_its_text(epoch: int, seq: int, log_id: bytes) -> None:
    tag = log_tag("net", log_id)
    text = encode_cursor(Cursor(epoch, seq), tag)
    assert decode_cursor(text, tag) == Cursor(epoch, seq)
    assert len(text) < 40


@given(st.integers(0, 33), st.sampled_from("ABab01-_"))
def test_ev_20_a_damaged_cursor_is_refused(at: int, letter: str) -> None:
    tag = log_tag("net", bytes(16))
    text = encode_cursor(Cursor(3, 77), tag)
    damaged = text[:at] + letter + text[at + 1 :]
    if damaged != text:
        with pytest.raises(BadCursor):
            decode_cursor(damaged, tag)


def test_ev_20_a_cursor_has_one_text() -> None:
    """Base64 leaves four bits of 25 bytes that say nothing."""
    tag = log_tag("net", bytes(16))
    text = encode_cursor(Cursor(3, 77), tag)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [text[:-1] + letter for letter in letters if letter != text[-1]] + [
        text + "=",
        text + "==",
    ]
    for other in others:
        with pytest.raises(BadCursor):
            decode_cursor(other, tag)


@pytest.mark.parametrize("text", ["", "x", "é", "AAAA", "A" * 34, "A" * 100_000])
def test_ev_20_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(BadCursor, match="damaged"):
        decode_cursor(text, log_tag("net", bytes(16)))


def test_ev_20_a_foreign_cursor_is_refused() -> None:
    text = encode_cursor(Cursor(0, 5), log_tag("net", bytes(16)))
    for other in (log_tag("other", bytes(16)), log_tag("net", b"1" * 16)):
        with pytest.raises(BadCursor, match="another log"):
            decode_cursor(text, other)


def test_ev_3_a_cursor_of_an_older_epoch_is_valid_to_the_common_row() -> None:
    head = Head(epoch=2, seq=10, anchor=5, hash=bytes(32))
    assert check_cursor(head, 1, 7, common=7)
    assert check_cursor(head, 2, 10, common=None)
    assert not check_cursor(head, 3, 1, common=None)
    assert not check_cursor(head, 2, 11, common=None)
    with pytest.raises(CursorAbandoned) as caught:
        check_cursor(head, 1, 8, common=7)
    assert (caught.value.common, caught.value.epoch) == (7, 2)


def test_ev_3_of_several_rewinds_the_deepest_counts() -> None:
    store = MemoryStore("net")
    hub = Hub(store.head())
    stream = hub.open((ANY,), 0)
    store.append([counted(1, 9)])
    page = store.read(0, 100)
    hub.extend(page.rows, page.through)
    while hub.take(stream):
        pass
    hub.rewind(1, 4)
    hub.rewind(2, 6)
    with pytest.raises(CursorAbandoned) as caught:
        hub.take(stream)
    assert (caught.value.common, caught.value.epoch) == (4, 2)


@given(
    sizes=st.lists(st.sampled_from([1, 400, 3_000]), min_size=1, max_size=40),
    bound_bytes=st.sampled_from([1, 2_000, 6_000]),
    batches=st.booleans(),
    steps=st.lists(st.sampled_from(["append", "read", "take"]), max_size=60),
)
def test_ev_23_rows_waiting_for_a_stream_are_bounded_in_bytes_without_loss(
    sizes: list[int], bound_bytes: int, batches: bool, steps: list[str]
) -> None:
    store = MemoryStore("net")
    hub = Hub(store.head(), bound=1_000, bound_bytes=bound_bytes)
    stream = hub.open((ANY,), 0, batches=batches)
    left = list(enumerate(sizes, 1))
    got: list[int] = []

    def step(what: str) -> None:
        if what == "append" and left:
            number, size = left.pop(0)
            store.append([make_block(number, [("Test.Sized", {"n": "x" * size})])])
            page = store.read(hub.head.seq, 100)
            hub.extend(page.rows, page.through)
        elif what == "read":
            request = hub.wants(stream)
            if request is not None:
                hub.filled(stream, request, store.read(request.after, request.limit, request.where))
        elif what == "take":
            message = hub.take(stream)
            if message is not None:
                got.extend(row.seq for row in message.rows)
        weights = [row.weight for row in hub._streams[stream].queue]
        assert hub._streams[stream].weight == sum(weights)
        assert sum(weights[:-1]) < bound_bytes

    for what in [*steps, *["append"] * len(sizes), *["read", "take"] * 3 * len(sizes)]:
        step(what)
    assert got == list(range(1, len(sizes) + 1))


def test_ev_23_so_many_bytes_wait_for_a_stream_however_few_rows_they_are() -> None:
    store = MemoryStore("net")
    hub = Hub(store.head())
    stream = hub.open((ANY,), 0)
    size = BOUND_BYTES // 4
    for number in range(1, 9):
        store.append([make_block(number, [("Test.Sized", {"n": "x" * size})])])
        page = store.read(hub.head.seq, 100)
        hub.extend(page.rows, page.through)
    assert hub.waiting(stream) == 4
    assert not hub.is_live(stream)
