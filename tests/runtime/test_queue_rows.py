"""Books and pages: the short way to read one that stands alone says what the reader of bytes says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primitives.errors import ScaleError
from primitives.scale import Reader
from primitives.types import ParaId
from runtime.message_queue.types import PAGES, BookState, Neighbours, Page, book_state

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
