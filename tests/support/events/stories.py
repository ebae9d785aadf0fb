"""Stories of a log, a hub and its clients: appends, rewinds, connects, disconnects, crashes, slow
reads, in any order.

A client keeps the rows that it has seen and the cursor of the last message, both or neither. At the
end of a story it has seen exactly the matching rows after its lower bound, in order, once (EV-21).
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from support.events.blocks import block_hash, make_block

from interchain_events.events import CursorAbandoned, MemoryStore
from interchain_events.events.filters.algebra import ANY, All, Chain, Field, Filter, Kind, Not
from interchain_events.events.filters.predicate import any_of
from interchain_events.events.log.store import Page, check_cursor
from interchain_events.events.rows import ChainBlock, Row
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.hub import Hub, LogRead

FILTERS: tuple[tuple[Filter, ...], ...] = (
    (ANY,),
    (Kind("A.*"),),
    (Kind("B.Two"), Chain(2000)),
    (Field("n", "=", 3),),
    (All(Not(Chain(None)), Field("n", "<", 2)),),
    (Kind("C.Never"),),
)


@dataclass
class Kept:
    """The state of a client that survives a crash."""

    cursor: Cursor
    lower: int
    seen: list[Row] = field(default_factory=list, kw_only=True)

    def keep(self, rows: Iterable[Row], cursor: Cursor) -> None:
        """Store rows and cursor in one write."""
        for each in rows:
            assert not self.seen or each.seq > self.seen[-1].seq, "out of order or twice"
            self.seen.append(each)
        self.cursor = cursor

    def drop(self, cut: CursorAbandoned) -> None:
        """Forget the rows after `cut`, which were taken back."""
        self.seen = [each for each in self.seen if each.seq <= cut.common]
        self.cursor = Cursor(cut.epoch, cut.common)
        self.lower = min(self.lower, cut.common)


@dataclass
class Client(Kept):
    """A client, and its connection if it has one."""

    filters: tuple[Filter, ...]
    batches: bool
    stream: int | None = None
    in_flight: list[tuple[LogRead, Page | None]] = field(default_factory=list)


class Story:
    """One story, decided by its seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.bound = self.draw.choice((1, 2, 5, 50))
        self.store = MemoryStore("story", bytes(16))
        self.branch = 0
        self.hashes = {0: block_hash(0)}
        self.number = 0
        self.hub = Hub(self.store.head(), bound=self.bound)
        self.clients: list[Client] = []

    def run(self, steps: int = 60) -> None:
        """Play the story, settle everything, and check the rows that each client has received."""
        acts = (
            self.append,
            self.append,
            self.pump,
            self.pump,
            self.connect,
            self.read,
            *[self.take] * 3,
        )
        rare = (self.rewind, self.crash_server, self.disconnect, self.subscribe)
        self.subscribe()
        for _ in range(steps):
            self.draw.choice(acts if self.draw.random() < 0.8 else rare)()
            assert all(
                self.hub.waiting(each.stream) <= self.bound
                for each in self.clients
                if each.stream is not None
            )
        self.settle()
        rows = self.store.read(0, 10**9).rows
        for client in self.clients:
            matches = any_of(client.filters)
            wanted = [row for row in rows if row.seq > client.lower and matches(row, row.fields)]
            assert client.seen == wanted, f"{len(client.seen)} rows seen, {len(wanted)} wanted"

    # What the log does

    def append(self) -> None:
        for _ in range(self.draw.randint(1, 3)):
            self.number += 1
            events = [
                (self.draw.choice(("A.One", "B.Two")), {"n": self.draw.randint(0, 4)})
                for _ in range(3)
            ]
            para = ChainBlock(2000, self.number, block_hash(self.number, -1), 0, events[2:])
            parent = self.hashes[self.number - 1]
            block = make_block(
                self.number,
                events[: self.draw.randint(0, 2)],
                [para],
                branch=self.branch,
                parent=parent,
            )
            self.hashes[self.number] = block.hash
            self.store.append([block])

    def rewind(self) -> None:
        head = self.store.head()
        if head.anchor is None or head.anchor < 2:
            return
        self.number = max(1, head.anchor - self.draw.randint(1, 4))
        self.branch += 1
        self.store.rewind(self.number)

    # What the server does

    def pump(self) -> None:
        page = self.store.read(self.hub.head.seq, self.draw.randint(1, 6))
        if page.head.epoch != self.hub.head.epoch:
            common = self.store.common(self.hub.head.epoch)
            assert common is not None
            self.hub.rewind(page.head.epoch, common)
        elif not self.hub.has_live and self.draw.random() < 0.5:
            self.hub.skip(page.head.seq)
        else:
            self.hub.extend(page.rows, page.through)

    def crash_server(self) -> None:
        self.hub = Hub(self.store.head(), bound=self.bound)
        for client in self.clients:
            client.stream = None

    # What clients do

    def subscribe(self) -> None:
        if len(self.clients) < 4:
            head = self.store.head()
            lower = Cursor(head.epoch, self.draw.choice((0, head.seq)))
            self.clients.append(
                Client(lower, lower.seq, self.draw.choice(FILTERS), self.draw.random() < 0.5)
            )

    def connect(self) -> None:
        client = self.draw.choice(self.clients)
        if client.stream is not None:
            return
        while self.hub.head.epoch != self.store.head().epoch:
            self.pump()
        try:
            common = self.store.common(client.cursor.epoch)
            assert check_cursor(self.store.head(), client.cursor.epoch, client.cursor.seq, common)
        except CursorAbandoned as error:
            client.drop(error)
        client.stream = self.hub.open(client.filters, client.cursor.seq, batches=client.batches)
        client.in_flight = []

    def disconnect(self) -> None:
        client = self.draw.choice(self.clients)
        if client.stream is not None:
            self.hub.close(client.stream)
            client.stream = None

    def read(self) -> None:
        client = self.draw.choice(self.clients)
        if client.stream is None:
            return
        if client.in_flight and self.draw.random() < 0.7:
            request, page = client.in_flight.pop(0)
            if page is None:  # read now, handed in later
                span = self.draw.randint(1, 20)
                page = self.store.read(request.after, request.limit, request.where, span)
                client.in_flight.insert(0, (request, page))
            else:
                self.hub.filled(client.stream, request, page)
            return
        request_now = self.hub.wants(client.stream)
        if request_now is not None:
            client.in_flight.append((request_now, None))

    def take(self) -> None:
        client = self.draw.choice(self.clients)
        if client.stream is None:
            return
        try:
            message = self.hub.take(client.stream) or self.hub.heartbeat(client.stream)
        except CursorAbandoned as error:
            self.hub.close(client.stream)
            client.stream = None
            client.drop(error)
            return
        if message is None:
            return
        if self.draw.random() < 0.1:  # the client dies before it has kept the message
            self.hub.close(client.stream)
            client.stream = None
        else:
            client.keep(message.rows, message.cursor)

    def settle(self) -> None:
        """Serve all clients, without new rows, until each has reached the end of the log."""
        for client in self.clients:
            for _ in range(10_000):
                if client.stream is None:
                    self.draw.choice((self.connect, self.pump))()
                    continue
                self.pump()
                request = self.hub.wants(client.stream)
                if request is not None:
                    page = self.store.read(request.after, request.limit, request.where)
                    self.hub.filled(client.stream, request, page)
                before = client.cursor
                self.take_of(client)
                if client.stream is not None and client.cursor == before == Cursor(*self._end()):
                    break
            else:
                raise AssertionError("a client never reached the end of the log")

    def take_of(self, client: Client) -> None:
        others, self.clients = self.clients, [client]
        self.take()
        self.clients = others

    def _end(self) -> tuple[int, int]:
        head = self.store.head()
        return head.epoch, head.seq
