"""The ring, in storage, of the queues that have messages.

`ServiceHead` is the next queue to serve.
"""

from dataclasses import replace

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.relay.message_queue import types
from pubsub_emulator.runtime.relay.message_queue.types import (
    BOOKS,
    SERVICE_HEAD,
    BookState,
    Neighbours,
)


def _neighbours(storage: Storage, para: ParaId) -> Neighbours:
    neighbours = BOOKS.get(storage, para).ready_neighbours
    if neighbours is None:
        raise DefensiveFailure(f"the queue of {para} is not in the ring")
    return neighbours


def _link(
    storage: Storage, para: ParaId, *, prev: ParaId | None = None, next_: ParaId | None = None
) -> None:
    book = BOOKS.get(storage, para)
    neighbours = book.ready_neighbours or Neighbours(para, para)
    linked = Neighbours(
        neighbours.prev if prev is None else prev, neighbours.next if next_ is None else next_
    )
    BOOKS.insert(storage, para, replace(book, ready_neighbours=linked))


def knit(storage: Storage, para: ParaId) -> None:
    """Add a queue to the ring as the last to be served."""
    head = SERVICE_HEAD.get(storage)
    if head is None:
        SERVICE_HEAD.put(storage, para)
        _link(storage, para, prev=para, next_=para)
        return
    tail = _neighbours(storage, head).prev
    _link(storage, head, prev=para)
    _link(storage, tail, next_=para)
    _link(storage, para, prev=tail, next_=head)


def unknit(storage: Storage, para: ParaId) -> None:
    """Remove a queue from the ring.

    If it was the next to serve, the one after it becomes the next.
    """
    neighbours = _neighbours(storage, para)
    BOOKS.insert(storage, para, replace(BOOKS.get(storage, para), ready_neighbours=None))
    if neighbours.next == para:
        SERVICE_HEAD.kill(storage)
        return
    _link(storage, neighbours.next, prev=neighbours.prev)
    _link(storage, neighbours.prev, next_=neighbours.next)
    if SERVICE_HEAD.get(storage) == para:
        SERVICE_HEAD.put(storage, neighbours.next)


def books(storage: Storage) -> dict[ParaId, BookState]:
    """Return the books of the ring, from the next to serve on.

    Raises `DefensiveFailure` for a broken ring.
    """
    head = SERVICE_HEAD.get(storage)
    ring: dict[ParaId, BookState] = {}
    following = head
    while following is not None:
        if following in ring:
            raise DefensiveFailure(f"the ring does not close: {following} stands in it twice")
        raw = storage.get(types.rows_of(following).book)
        if raw is None:
            raise DefensiveFailure(f"the queue of {following} has no book")
        book = ring[following] = types.book_state.decode(raw)
        if book.ready_neighbours is None:
            raise DefensiveFailure(f"the queue of {following} is not in the ring")
        following = book.ready_neighbours.next
        if following == head:
            break
    return ring


def close(storage: Storage, ring: dict[ParaId, BookState], head: ParaId | None) -> None:
    """Make a ring of these stored books, in order, with `head` next to serve.

    Without books, the ring is removed.
    """
    if head is None:
        SERVICE_HEAD.kill(storage)
        return
    paras = list(ring)
    for index, (para, book) in enumerate(ring.items()):
        neighbours = Neighbours(paras[index - 1], paras[index + 1 - len(paras)])
        if book.ready_neighbours != neighbours:
            BOOKS.insert(storage, para, replace(book, ready_neighbours=neighbours))
    SERVICE_HEAD.put(storage, head)


def members(storage: Storage) -> list[ParaId]:
    """Return all queues in the ring, from the next to serve on.

    Raises `DefensiveFailure` if the ring is broken.
    """
    return list(books(storage))
