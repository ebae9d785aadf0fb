"""Whose turn it is: a ring, in storage, of the queues that have messages; `ServiceHead` points at the next to serve."""

from dataclasses import replace

from primitives.errors import DefensiveFailure
from primitives.types import ParaId
from runtime.message_queue.types import BOOKS, SERVICE_HEAD, Neighbours
from runtime.storage import Storage


def _neighbours(storage: Storage, para: ParaId) -> Neighbours:
    found = BOOKS.get(storage, para).ready_neighbours
    if found is None:
        raise DefensiveFailure(f"the queue of {para} is not in the ring")
    return found


def _link(storage: Storage, para: ParaId, *, prev: ParaId | None = None, next_: ParaId | None = None) -> None:
    book = BOOKS.get(storage, para)
    at = book.ready_neighbours or Neighbours(para, para)
    linked = Neighbours(at.prev if prev is None else prev, at.next if next_ is None else next_)
    BOOKS.insert(storage, para, replace(book, ready_neighbours=linked))


def knit(storage: Storage, para: ParaId) -> None:
    """Put a queue into the ring, as the last to be served from now."""
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
    """Take a queue out of the ring; if it was its turn, it is the next one's."""
    at = _neighbours(storage, para)
    BOOKS.insert(storage, para, replace(BOOKS.get(storage, para), ready_neighbours=None))
    close(storage, para, at)


def close(storage: Storage, para: ParaId, at: Neighbours) -> None:
    """Close the ring behind a queue that stood between `at` and whose book no longer says so; as `unknit`."""
    if at.next == para:
        SERVICE_HEAD.kill(storage)
        return
    _link(storage, at.next, prev=at.prev)
    _link(storage, at.prev, next_=at.next)
    if SERVICE_HEAD.get(storage) == para:
        SERVICE_HEAD.put(storage, at.next)


def advance(storage: Storage, para: ParaId) -> None:
    """It is the turn of the queue after this one."""
    SERVICE_HEAD.put(storage, _neighbours(storage, para).next)


def members(storage: Storage) -> list[ParaId]:
    """All queues in the ring, from the one whose turn it is. Raises `DefensiveFailure` when the ring is broken."""
    head = SERVICE_HEAD.get(storage)
    if head is None:
        return []
    ring = {head: None}
    last = head
    while (following := _neighbours(storage, last).next) != head:
        if following in ring:
            raise DefensiveFailure(f"the ring does not close: {following} stands in it twice")
        ring[following] = None
        last = following
    return list(ring)
