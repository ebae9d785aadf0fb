"""Stories of a whole PRISM node and its clients in one process.

Blocks are built, reorganised and lost, the node and clients are killed, and some clients read
slowly. The node, its streams and its statuses are the real ones, under a clock that jumps. A client
stores the events that it has received and the cursor of the last message, both or neither. At the
end of a story, the tables are those of a fresh run over the log, each client has exactly the rows
that match, in order and once, and each status follows from chain and tables.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cache, lru_cache

from support.database.mortal import Crash, Mortal
from support.events.stories import Kept
from support.plumbing.virtual_time import run
from support.prism.prism_chain import Branches
from support.prism.wallet import ANY, Wallet, add

from interchain_events.database.database import Database
from interchain_events.events.errors import CursorAbandoned, UnknownToken
from interchain_events.events.log.memory import MemoryStore
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.streams import Ended
from interchain_events.prism.core.errors import (
    AlreadyThere,
    BadRequest,
    NotCancellable,
    UnknownOperation,
)
from interchain_events.prism.core.filters import OWNERS, Filter, FilterType, matches
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.ledger import MemoryLedger
from interchain_events.prism.core.messages import SignedAtalaOperation
from interchain_events.prism.core.process import DecidedOperation, process, read_object
from interchain_events.prism.core.status import FINAL, OperationPlace, OperationStatus, StatusUpdate
from interchain_events.prism.make import atala_object
from interchain_events.prism.service.node import PrismNode
from interchain_events.prism.service.service import PrismLimits, PrismService
from interchain_events.prism.status_deliveries import StatusDeliveries
from interchain_events.prism.tables.processor import Processor, Source

PENDING_BLOCKS = 6
PATIENCE = 10_000.0
"""Seconds of the story's clock."""
_HASH = bytes(32)


@dataclass
class Client(Kept):
    """A client, and the task that reads."""

    filters: tuple[Filter, ...]
    token: str
    task: asyncio.Task[None] | None = None


@dataclass
class Watch:
    """Who wants to know the status of one operation."""

    operation_id: bytes
    last: StatusUpdate | None = None
    task: asyncio.Task[None] | None = None


@cache
def _pool() -> list[bytes]:
    """Return the operations of all stories: valid, stale and malformed ones."""
    found: list[bytes] = []
    for wallet in map(Wallet, "abc"):
        batch = wallet.issue(_HASH)
        steps = [wallet.update(add(name)) for name in "xy"]
        steps += [wallet.update(add("z"), previous=_HASH), batch.signed]
        steps += [wallet.revoke(batch, _HASH), wallet.revoke(batch), wallet.deactivate()]
        found += [
            wallet.created.raw,
            wallet.created.raw,
            *(each.raw for each in steps),
            steps[0].raw + b"\x58\0",
        ]
    return found


@lru_cache(maxsize=1 << 12)
def _operations(raw: bytes) -> tuple[tuple[bytes, SignedAtalaOperation], ...]:
    """Return the operations of an object with their ids.

    They are cached, because stories anchor the same few objects again and again.
    """
    return tuple((sha256(each.raw), each) for each in read_object(raw) or ())


@cache
def _filters() -> list[tuple[Filter, ...]]:
    a, b = Wallet("a"), Wallet("b")
    listed = [
        (Filter(kind, a.suffix if kind in OWNERS else None),) for kind in list(FilterType)[:6]
    ]
    credential = FilterType.REVOKE_CREDENTIAL_FILTER
    return [
        *listed,
        *[(ANY,)] * 2,
        (Filter(FilterType.DID_OWNER_ANY_FILTER, b.suffix), Filter(FilterType.CREATE_DID_FILTER)),
        (Filter(credential, None, _HASH), Filter(FilterType.UPDATE_DID_FILTER, a.suffix)),
        (Filter(credential, None, _HASH, a.issue(_HASH).batch_id),),
    ]


class PrismStory:
    """One story, decided by its seed, on an empty database."""

    source = Source()

    def __init__(
        self, seed: int, database: Database, recorder: Callable[[], StatusDeliveries] | None = None
    ) -> None:
        self.recorder: Callable[[], StatusDeliveries | None] = recorder or (lambda: None)
        """Makes one for each run of the node."""
        self.recording: StatusDeliveries | None = None
        self.draw = random.Random(seed)
        self.depth = self.draw.randrange(3)
        self.chain = Branches(lag=self.draw.choice((0, 0, 1, 3)))
        self.log = MemoryStore("story", bytes(16))
        self.database = database
        self.mortality = self.draw.choice((0.0, 0.002, 0.01))
        self.mortal = Mortal(database, lambda: self.draw.random() < self.mortality)
        self.clients: list[Client] = []
        self.watches: list[Watch] = []
        self.tokens: list[tuple[bytes, str]] = []
        self.left: set[bytes] = set()
        """Operations whose last block left the best branch."""
        self.is_settling = False

    def play(self) -> None:
        """Play the story from the first block to the last comparison."""
        run(self._play(), self._delay)

    def _delay(self) -> float:
        return 0.0 if self.draw.random() < 0.6 else self.draw.uniform(0, 2)

    async def _play(self) -> None:
        self._start()
        await self._node.__aenter__()
        common = (
            self.build,
            self.build,
            self.build_pool,
            self.pause,
            self.subscribe,
            self.watch,
            self.schedule,
        )
        rare = (
            self.reorganise,
            self.reorganise,
            self.kill_node,
            self.kill_client,
            self.cancel,
            self.cancel_operation,
        )
        for _ in range(self.draw.randrange(10, 45)):
            act = self.draw.choice(common if self.draw.random() < 0.75 else rare)
            try:
                await act()
            except Crash:
                await self.kill_node()
            await asyncio.sleep(self.draw.choice((0, 0.3, 1, 20)))
            if self._is_dead():
                await self.kill_node()
        await self._settle()
        self._compare()
        await self._stop()

    # The node

    def _start(self) -> None:
        self.recording = self.recorder()
        while True:
            try:
                processor = Processor(self.mortal, self.log, self.source, self.depth)
                limits = PrismLimits(
                    bound=self.draw.choice((1, 3, 500)), pending_blocks=PENDING_BLOCKS
                )
                self._service = PrismService(processor, limits, status_recorder=self.recording)
                break
            except Crash:
                continue
        self._node = PrismNode(self._service, self.log, self.chain)
        for each in self.clients:
            each.task = asyncio.create_task(self._read(each))
        for watch in self.watches:
            watch.task = asyncio.create_task(self._watch(watch))

    def _is_dead(self) -> bool:
        return self._node._task is None or self._node._task.done()

    async def _stop(self) -> None:
        for each in (*self.clients, *self.watches):
            if each.task is not None:
                each.task.cancel()
                with suppress(asyncio.CancelledError):
                    await each.task
        with suppress(Crash):
            await self._node.__aexit__(None, None, None)
        if self.recording is not None:
            self.recording.flush()

    async def kill_node(self) -> None:
        """Kill the node. All state that is only in memory is lost."""
        await self._stop()
        self._start()
        await self._node.__aenter__()

    # The chain

    async def build(self) -> None:
        """Append a block with random objects."""
        drawn = (
            self.draw.choices(_pool(), k=self.draw.randrange(1, 4))
            for _ in range(self.draw.randrange(3))
        )
        self._built(
            self.chain.build(
                *map(atala_object, drawn), *([b"\xff"] if self.draw.random() < 0.1 else [])
            )
        )

    async def build_pool(self) -> None:
        """Append a block with the objects that the node has submitted."""
        self._built(self.chain.build_pool())

    async def reorganise(self) -> None:
        """Remove the last blocks from the best branch, and perhaps from the log."""
        number = len(self.chain.blocks)
        if number > 1:
            kept = max(1, number - self.draw.randrange(1, 5))
            self.left |= {
                name for each in range(kept + 1, number + 1) for name in self._in_block(each)
            }
            self.chain.drop_to(kept)
            for _ in range(self.draw.randrange(1, 4)):
                await self.draw.choice((self.build, self.build_pool))()

    def _built(self, number: int) -> None:
        self.left -= {*self._in_block(number)}

    def _in_block(self, number: int) -> list[bytes]:
        _, objects = self.chain.blocks[number - 1]
        return [name for raw in objects for name, _ in _operations(raw)]

    async def pause(self) -> None:
        """Wait for longer than a heartbeat."""
        await asyncio.sleep(self.draw.uniform(0, 40))

    # Clients

    async def subscribe(self) -> None:
        """Add a client, which reads from now on or from the start."""
        if len(self.clients) >= 4:
            return
        filters = self.draw.choice(_filters())
        events = self._service.events
        token, text = await events.subscribe(filters, "c", batches=self.draw.random() < 0.5)
        bound = events.cursor(text)
        cursor = bound if self.draw.random() < 0.5 else Cursor(bound.epoch, 0)
        client = Client(cursor, cursor.seq, filters, token)
        self.clients.append(client)
        client.task = asyncio.create_task(self._read(client))

    async def kill_client(self) -> None:
        """Kill a client and start it again."""
        if self.clients:
            client = self.draw.choice(self.clients)
            if client.task is not None:
                client.task.cancel()
            client.task = asyncio.create_task(self._read(client))

    async def cancel(self) -> None:
        """Cancel a client's subscription, sometimes."""
        if self.clients and self.draw.random() < 0.3:
            client = self.draw.choice(self.clients)
            await self._service.events.cancel(client.token)
            self.clients.remove(client)

    async def _read(self, client: Client) -> None:
        while True:
            try:
                events = self._service.events
                start = events.text(client.cursor)
                async with events.stream(client.token, "c", start, seam=True) as messages:
                    async for message in messages:
                        if not self.is_settling and self.draw.random() < 0.05:
                            break  # it dies before it has kept the message
                        client.keep(message.rows, message.cursor)
                        if not self.is_settling:
                            await asyncio.sleep(self.draw.choice((0, 0, 0.5, 5)))
            except CursorAbandoned as cut:
                client.drop(cut)
            except (Ended, UnknownToken):
                if client not in self.clients:
                    return
            await asyncio.sleep(0.1)

    # Channel 7

    async def watch(self) -> None:
        """Watch the status of an operation, mostly of one that is scheduled or in a late block."""
        if len(self.watches) < 4:
            number = len(self.chain.blocks)
            late = [
                name
                for each in range(max(1, number - 2), number + 1)
                for name in self._in_block(each)
            ]
            known = [name for name, _ in self.tokens[-4:]] + late
            is_known = known and self.draw.random() < 0.8
            watch = Watch(
                self.draw.choice(known) if is_known else sha256(self.draw.choice(_pool()))
            )
            self.watches.append(watch)
            watch.task = asyncio.create_task(self._watch(watch))

    async def _watch(self, watch: Watch) -> None:
        said: list[StatusUpdate] = []
        with suppress(UnknownOperation):
            async with aclosing(self._service.statuses(watch.operation_id, "w")) as updates:
                async for update in updates:
                    assert said[-1:] != [update], "a change that is none"
                    said.append(update)
                    watch.last = update
            assert said[-1].status in FINAL, f"it ended after {said[-1]}"
        self.watches.remove(watch)

    async def schedule(self) -> None:
        """Schedule operations at the node."""
        chosen = [*{*self.draw.choices(_pool(), k=self.draw.randrange(1, 3))}]
        with suppress(AlreadyThere, BadRequest):
            ids, token = await self._service.schedule(sorted(chosen), "c")
            self.tokens += [(each, token) for each in ids]

    async def cancel_operation(self) -> None:
        """Cancel a scheduled operation."""
        if self.tokens:
            with suppress(NotCancellable, UnknownOperation):
                await self._service.cancel_operation(*self.draw.choice(self.tokens))

    # The end

    async def _settle(self) -> None:
        """Stop killing, and let everything be processed.

        First the chain remains as it is. Then it grows until everything is processed.
        """
        self.mortality, self.is_settling = 0.0, True
        await asyncio.sleep(10)  # whoever was to die is dead
        if self._is_dead():
            await self.kill_node()
        await self._quiet()
        for watch in self.watches:
            assert watch.last in self._statuses(watch.operation_id), (
                f"{watch.last} of {watch.operation_id.hex()}"
            )
        for _ in range(self.chain.lag + self.depth + 1):
            self.chain.build()
        await self._quiet()

    async def _quiet(self) -> None:
        """Wait until every client has reached the end of the tables."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        await asyncio.sleep(100)
        while True:
            at = self._service.processor.position()
            if all(each.cursor.seq == at.seq_no for each in self.clients):
                return
            assert asyncio.get_running_loop().time() < deadline, "a client never reached the end"
            await asyncio.sleep(20)

    def _statuses(self, operation_id: bytes) -> list[StatusUpdate]:
        """Return the statuses that an operation may have by PR-60's table.

        If a block left the best branch, the story does not know whether the node saw it before. If
        the node did, the operation is PENDING.
        """
        known = self._service.scheduled.known(operation_id)
        place = self._unprocessed(operation_id)
        if known.applied is not None:
            return [StatusUpdate(OperationStatus.APPROVED, place=known.applied)]
        if place is not None:
            level = len(self.chain.blocks) - place.number
            status = OperationStatus.CONFIRMATION_LEVEL if level else OperationStatus.IN_BLOCK
            return [StatusUpdate(status, level, place=place)]
        pending = [StatusUpdate(OperationStatus.PENDING)]
        if known.is_received:
            return pending
        if known.rejected is not None:
            where, reason = known.rejected
            found = StatusUpdate(OperationStatus.REJECTED, reason=reason, place=where)
        else:
            found = StatusUpdate(OperationStatus.CANCELLED)
        return [found, *pending] if operation_id in self.left else [found]

    def _unprocessed(self, operation_id: bytes) -> OperationPlace | None:
        for number in range(
            max(self._service.processor.processed, 0) + 1, len(self.chain.blocks) + 1
        ):
            block, objects = self.chain.blocks[number - 1]
            for index, raw in enumerate(objects):
                for place, (name, _) in enumerate(_operations(raw)):
                    if name == operation_id:
                        return OperationPlace(number, block.hash, index, place, number * 6_000)
        return None

    def _compare(self) -> None:
        final = len(self.chain.blocks) - self.chain.lag - self.depth
        ledger, due = MemoryLedger(), list[tuple[int, DecidedOperation]]()
        for block, objects in self.chain.blocks[:final]:
            for signed in (each for raw in objects for _, each in _operations(raw)):
                outcome = process(ledger, signed)
                if outcome is not None:
                    due.append((block.number, outcome))
        with self.database.transaction() as session:
            rows = session.run(
                "SELECT atala_operation_seq_no, block_number, signed_atala_operation_id,"
                " operation_hash, atala_operation_type, status_details, atala_operation_did_suffix,"
                " created_did_suffix, credential_batch_id, atala_operation_content FROM"
                " atala_operations WHERE atala_operation_seq_no IS NOT NULL ORDER BY"
                " atala_operation_seq_no"
            )
            revoked = session.run(
                "SELECT seq_no, credential_hash FROM revoked_credentials ORDER BY seq_no,"
                " credential_hash"
            )
        wanted_rows = [
            (
                at,
                number,
                *each[:2],
                each.type.name,
                each.reason and each.reason.name,
                *each[4:7],
                each.content,
            )
            for at, (number, each) in enumerate(due, 1)
        ]
        assert rows == wanted_rows, f"{len(rows)} rows, not {len(wanted_rows)}, or others"
        assert revoked == [
            (at, name) for at, (_, each) in enumerate(due, 1) for name in each.revoked_hashes
        ]
        for client in self.clients:
            wanted = [
                (at, each.operation_id)
                for at, (_, each) in enumerate(due, 1)
                if at > client.lower and any(matches(one, each) for one in client.filters)
            ]
            seen = [(each.seq, each.id) for each in client.seen]
            assert seen == wanted, f"{len(seen)} events, not {len(wanted)}"
