"""Books and pages: the short way to read one that stands alone says what the reader of bytes says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.relay.message_queue.types import PAGES, BookState, Neighbours, Page, book_state, waiting

U32 = st.integers(0, (1 << 32) - 1)
U64 = st.integers(0, (1 << 64) - 1)
NEIGHBOURS = st.none() | st.builds(Neighbours, U32.map(ParaId), U32.map(ParaId))


@given(st.builds(BookState, U32, U32, U32, NEIGHBOURS, U64, U64))
def test_a_book_reads_both_ways(book: BookState) -> None:
    data = book_state.encode(book)
    assert book_state.decode(data) == book_state.read(Reader(data)) == book


@pytest.mark.parametrize("heap", [0, 1, 63, 64, 65, 16_383, 16_384, 65_536])
def test_a_page_reads_both_ways(heap: int) -> None:
    page = Page(1, 2, 3, 4, 5, bytearray(at % 251 for at in range(heap)))
    data = PAGES.codec.encode(page)
    assert PAGES.codec.decode(data) == PAGES.codec.read(Reader(data)) == page


@pytest.mark.parametrize("at", [12, 13, 14, 19, 20])
def test_a_book_that_is_none_is_refused(at: int) -> None:
    """Whether it is in the ring, and the kinds of its neighbours' queues."""
    data = bytearray(book_state.encode(BookState(0, 1, 1, Neighbours(ParaId(1), ParaId(2)), 3, 4)))
    data[at] ^= 2
    with pytest.raises(ScaleError):
        book_state.decode(bytes(data))


@pytest.mark.parametrize("cut", [-1, 1])
@pytest.mark.parametrize("heap", [40, 100])
def test_a_page_of_another_length_than_it_says_is_refused(heap: int, cut: int) -> None:
    data = PAGES.codec.encode(Page(heap=bytearray(heap)))
    with pytest.raises(ScaleError):
        PAGES.codec.decode(data[:-1] if cut < 0 else data + b"\x00")


@given(st.lists(st.sampled_from([0, 1, 30, 59, 60, 200, 16_000]), max_size=6), st.integers(0, 6))
def test_what_waits_in_a_page_is_what_was_appended_and_not_yet_processed(lengths: list[int], served: int) -> None:
    """Heaps whose length takes one, two and four bytes."""
    messages = [bytes((at,)) * length for at, length in enumerate(lengths)]
    page = Page()
    assert all(page.append(message, 1 << 20) for message in messages)
    for message in messages[:served]:
        page.pop(len(message))
    assert waiting(PAGES.codec.encode(page)) == messages[served:]


@pytest.mark.parametrize("length", [40, 100, 20_000])
def test_a_page_that_says_more_than_it_holds_is_refused(length: int) -> None:
    page = Page()
    page.append(bytes(length), 1 << 20)
    page.remaining = 2
    with pytest.raises(DefensiveFailure, match="corrupt"):
        waiting(PAGES.codec.encode(page))
    page.remaining = 1
    data = PAGES.codec.encode(page)
    for wrong in (data[:-1], data + b"\x00", data[:19]):
        with pytest.raises(ScaleError):
            waiting(wrong)
