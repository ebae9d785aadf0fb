"""The world of a story: a distributor over one store, its networks and its subscribers.

It runs in virtual time, and everything in it is derived from its seed.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain as chained
from typing import Final

from interchain_events.database.errors import StoreError
from interchain_events.distributor.core import messages, rows
from interchain_events.distributor.core.continuity import AnotherStore, Seat, Taken, take
from interchain_events.distributor.core.rows import LogState
from interchain_events.distributor.core.states import Whereabouts, status_of, whereabouts
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once import MemoryStore, Transaction
from interchain_events.distributor.once.transaction import MEMBER, ROW, StoredRow
from interchain_events.distributor.simulation.effects import EffectRunner
from interchain_events.distributor.simulation.network import SimulatedSubscriber
from interchain_events.distributor.simulation.scenery import Faults, Process, Scenery

ANSWER_WITHIN: Final = 30_000
"""The greatest time in ms after which a client gets an answer."""
MOST_STEPS: Final = 200_000
"""The number of steps after which a story counts as endless."""
MAY_REVOKE: Final = (messages.Probed, messages.Paged, messages.Due)
"""The inputs that may remove an id from a published set (invariant 7)."""


@dataclass
class SimulatedRequest:
    """A client's publication."""

    event_id: str
    process: Process
    """The process that received it."""
    run: int
    """The run of that process. A later run does not know the request."""
    since: int
    """The time of the request in ms."""
    new: bool = True
    """Whether a network lacked the event."""
    status: int | None = None
    """The status of the answer, `None` before it, and 0 if the process died."""


Copy = Mapping[tuple[str, str], Mapping[str, StoredRow]]
"""The rows of each table and the members of each set, as `MemoryStore.parts` has them."""


class CheckedStore(MemoryStore):
    """The store of a world, which checks invariants at every write.

    `acknowledged` returns how many times the endpoint of a subscription has acknowledged an id.
    `record` adds an occurrence to the digest.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        acknowledged: Callable[[str, str], int],
        record: Callable[..., None],
    ) -> None:
        super().__init__(clock)
        self._acknowledged = acknowledged
        self._record = record
        self.inputs: tuple[messages.Input, ...] = ()
        """The inputs of the current step."""
        self.history = False
        """Whether the current step reads the history of a log."""
        self.old: set[str] = set()
        """The ids that were first seen in the history of a log."""
        self.touched: set[str] = set()
        """The last part of each key that was written: ids, and names of networks whose state has
        changed."""
        self.surprises: list[str] = []
        """A sentence for each write that broke an invariant."""
        self.open_jobs = 0
        """The number of jobs and of accepted ids that are not in a log yet."""
        self.revoked: Counter[tuple[str, str]] = Counter()
        """The number of times that an id left the published set, by network and id."""
        self.buried: Counter[tuple[str, str]] = Counter()
        """The number of times that a dead letter was written, by table and key."""
        self.order: dict[tuple[str, str], list[str]] = defaultdict(list)
        """The ids in the order in which their jobs were stored, by target and entity."""

    def read_row(self, table: str, key: str) -> str:
        """Return the text of a row, `[]` if there is none."""
        return self.reader(ROW, table)(key) or "[]"

    def empty(self) -> None:
        """Lose all rows."""
        self.restore({})

    def copy(self) -> Copy:
        """Return a copy of all rows, like a backup."""
        return {place: dict(part) for place, part in self.parts.items() if part}

    def restore(self, copy: Copy) -> None:
        """Replace all rows by those of a copy."""
        self.parts.clear()
        self._lanes.clear()
        self.open_jobs = 0
        # Jobs may be stored again in another order than those that were lost.
        self.order.clear()
        for (kind, table), part in copy.items():
            self.parts[kind, table] = dict(part)
            for key, row in part.items():
                if row.due is not None:
                    self._lanes[row.lane].add((row.due, table, key))
            if kind == ROW and table in {rows.JOBS, rows.UNSEEN}:
                self.open_jobs += len(part)

    def _apply(self, kind: str, table: str, key: str, row: StoredRow | None) -> None:
        """Apply a write, count it, and check the invariants about it."""
        old = self.parts[kind, table].get(key)
        self.touched.add(key.rpartition("|")[2])
        if kind == MEMBER:
            self._member(
                table,
                key,
                added=row is not None and old is None,
                removed=row is None and old is not None,
            )
        elif table in {rows.JOBS, rows.UNSEEN}:
            if row is not None and old is None:
                self.open_jobs += 1
            elif row is None and old is not None:
                self.open_jobs -= 1
            if table == rows.JOBS and old is None and row is not None:
                target, _, event_id = key.partition("|")
                self.order[target, rows.Job(*json.loads(row.value)).entity].append(event_id)
        elif table == rows.DEAD and row is not None:
            self.buried[table, key] += 1
        elif table == rows.EVENTS and row is not None and not (old and _seen(old)) and _seen(row):
            if self.history:
                self.old.add(key)
            else:
                self.old.discard(key)
        super()._apply(kind, table, key, row)

    def _member(self, table: str, member: str, *, added: bool, removed: bool) -> None:
        """Check the invariants about a member that was added to a set or removed from it."""
        kind, _, name = table.partition(":")
        if kind == "publishedEvents" and removed:
            self.revoked[name, member] += 1
            if not all(isinstance(message, MAY_REVOKE) for message in self.inputs):
                self.surprises.append(
                    f"7: {member} left the published set of {name} by {self.inputs}"
                )
        if kind == "notifiedEvents" and added and not self._acknowledged(name, member):
            self.surprises.append(f"6: {member} is in the notified set of {name} without a 2xx")
        if (
            kind == "publishedEvents"
            and added
            and any(isinstance(message, messages.Answered) for message in self.inputs)
        ):
            self._record("published", name, member)


def _seen(row: StoredRow) -> int:
    """Return the time in ms at which the event of a row was first seen, 0 if it was not."""
    return rows.StoredEvent(*json.loads(row.value)).seen


class World(EffectRunner):
    """The networks, the subscribers and the processes of one distributor. Times are in ms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.watch = CheckedStore(lambda: self.now, self._acknowledged, self.record)
        """The store, with its checks and counters."""
        self.store: MemoryStore = self.watch
        """The same store, without the checks in its type."""
        self.requests: list[SimulatedRequest] = []
        """The requests that have not been answered."""
        self.notes: Counter[str] = Counter()
        """The number of notes by kind."""
        self.trace: list[tuple[int, messages.Input]] | None = None
        """The inputs with their times, if a test sets it to a list."""
        self.steps = 0
        """The number of transactions."""
        self.before_step: Callable[[int], None] | None = None
        """A function that a campaign may set. It is called with the number of each transaction,
        before the transaction."""
        self.losses = 0
        """The number of times that a process found that the store had lost rows."""
        self.lost = False
        """Whether the store has lost rows."""
        self.before_loss: set[tuple[str, str]] = set()
        """The network or subscription and the id of each job that was stored before a loss."""
        self._poll_at = 0
        """The time of the next scheduled poll."""
        for network in self.networks.values():
            network.strangers.append(self.strangers)

    def _acknowledged(self, subscription: str, event_id: str) -> int:
        """Return how many times the endpoint of a subscription has acknowledged an id."""
        return self.endpoints[self.subscriptions[subscription]].acknowledged(event_id)

    def lose(self, copy: Copy) -> None:
        """Make the store lose all rows except those of a copy."""
        self.lost = True
        for (target, _), ids in self.watch.order.items():
            _, _, name = target.partition(":")
            self.before_loss |= {(name, event_id) for event_id in ids}
        self.watch.restore(copy)

    # processes

    def start(self) -> None:
        """Start all processes that are not running."""
        for process in self.processes:
            if not process.alive:
                self.begin(process)

    def begin(self, process: Process) -> None:
        """Start a process that is not running."""
        if process.alive:
            return
        process.alive = True
        process.run += 1
        process.rules = replace(self.rules, owner=f"{process.name}.{process.run}")
        self.record("start", process.name)
        keys = {name: self._fresh() for name in self.networks}
        process.seat = Seat(keys)
        self.tell(process, messages.Start(keys))

    def kill(self, process: Process, *, back: bool = True) -> None:
        """Kill a process. Its effects that have not begun are lost.

        If `back` is true, it starts again after `down_for` ms.
        """
        self.record("kill", process.name)
        self.happened["processes killed"] += 1
        process.alive = False
        if back:
            self.later(self.down_for, lambda: self.begin(process))

    def _fresh(self) -> str:
        """Return a random text of 128 bits."""
        return f"{self.random.getrandbits(128):032x}"

    def any_process(self) -> Process | None:
        """Return a random running process, `None` if all are down."""
        alive = [process for process in self.processes if process.alive]
        return self.random.choice(alive) if alive else None

    def tell(
        self, process: Process | None, *inputs: messages.Input
    ) -> list[messages.Effects] | None:
        """Apply inputs in a process, in one transaction, and schedule their effects.

        Returns the effects, or `None` if the process or the store is down, or if the store is
        another one.
        """
        if process is None or not process.alive or not self.store_up:
            return None
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise StoreError("the story does not come to an end")
        if self.trace is not None:
            self.trace += [(self.now, message) for message in inputs]
        if self.before_step is not None:
            self.before_step(self.steps)
        self.watch.inputs = inputs
        self.watch.history = any(
            isinstance(message, messages.Paged) and self._has_history(message.network)
            for message in inputs
        )
        try:
            taken: Taken = self.store.transact(
                lambda tx: take(process.rules, process.seat, list(inputs), tx)
            )
        except AnotherStore:
            return None
        process.seat = taken.entered.seat
        if taken.entered.loss:
            self.losses += 1
        run = process.run
        for effect in chained(taken.entered.effects, *taken.effects):
            if isinstance(effect, messages.Note):
                self.notes[effect.kind] += 1
                self.record(effect)
            elif not isinstance(effect, messages.Reply):
                self.later(0, lambda effect=effect: self.perform(process, run, effect))  # type: ignore[misc]
        self._plan_poll()
        self._look_at_requests()
        return taken.effects

    def _has_history(self, name: str) -> bool:
        """Return whether new rows of a network's log count as its history."""
        state = rows.get_state(self.look(), name)
        return state is LogState.HISTORY or (name in self.rules.legacy and state is LogState.REREAD)

    def _plan_poll(self) -> None:
        """Schedule a poll at the time of the next due row, unless an earlier one is scheduled."""
        due = self.store.next_due()
        if due is not None and (due < self._poll_at or self._poll_at <= self.now):
            self._poll_at = max(due, self.now + 1)
            self.later(self._poll_at - self.now, self._poll)

    def _poll(self) -> None:
        """Apply due rows in a random process."""
        # This poll has been replaced by a later one.
        if self.now < self._poll_at:
            return
        process = self.any_process()
        if process is None or not self.store_up:
            self._poll_at = self.now + 500
            self.later(500, self._poll)
            return
        due = self.store.due(20)
        if due and self.tell(process, *due) is None:
            self._poll_at = self.now + 500
            self.later(500, self._poll)
            return
        self._plan_poll()

    # networks

    def publish_on(self, name: str, event: Event, *, by: Scenery | None = None) -> None:
        """Append an event to a network's log, and notify its subscriptions.

        `by` is the distributor that publishes, `None` for a stranger.
        """
        network = self.networks[name]
        notice = network.append(event, self.now)
        if notice is None:
            return
        for counts in network.strangers:
            is_own = by is not None and counts is by.strangers
            if not is_own:
                counts[name, notice.id or ""] += 1
        self.record("log", name, notice)
        for endpoint in sorted({*network.hooks.values(), *network.unlisted.values()}):
            self.notify(endpoint, notice)

    def notify(self, endpoint: str, notice: Notice) -> None:
        """Send a notification to this distributor. It may be lost or doubled.

        Notifications to other distributors are ignored.
        """
        if not endpoint.startswith(f"{self.rules.public_url}/"):
            return
        if self.chance(self.faults.lost):
            self.happened["notifications lost"] += 1
            return
        is_doubled = self.chance(self.faults.doubled)
        self.happened["notifications doubled"] += is_doubled
        for _ in range(2 if is_doubled else 1):
            self.later(self.latency(), lambda: self.deliver(endpoint, notice))

    def deliver(self, endpoint: str, notice: Notice) -> str | None:
        """Deliver a notification to a random process.

        Returns the code of the reply, `None` without an answer.
        """
        path = endpoint.removeprefix(f"{self.rules.public_url}/internal/")
        kind, network, *rest = path.split("/")
        subscription = rest[0] if kind == "desmosNotification" else None
        effects = self.tell(
            self.any_process(), messages.Noticed(network, rest[-1], notice, subscription)
        )
        return None if effects is None else messages.reply_of(effects[0]).code

    # clients

    def publish(self, event_id: str, event: Event) -> SimulatedRequest:
        """Publish an event as a client, through a random process."""
        process = self.any_process()
        if process is None or not self.store_up:
            return SimulatedRequest(
                event_id, process or self.processes[0], 0, since=self.now, status=503
            )
        request = SimulatedRequest(event_id, process, process.run, since=self.now)
        effects = self.tell(process, messages.Publish(event_id, event))
        if effects is None:
            request.status = 503
            return request
        reply = messages.reply_of(effects[0])
        request.new = reply.new
        if reply.code:
            request.status = 409
        else:
            self.requests.append(request)
            self.later(ANSWER_WITHIN, lambda: self._look_at_requests(late=True))
            self._look_at_requests(late=True)
        return request

    def _look_at_requests(self, *, late: bool = False) -> None:
        """Answer the requests that can be answered now.

        Only requests whose event or networks have been written are looked at. If `late` is true,
        all are, because the time of one may be over.
        """
        touched = self.watch.touched
        self.watch.touched = set()
        looks_at_all = late or bool(touched.intersection(self.networks))
        for request in self.requests:
            if not looks_at_all and request.event_id not in touched:
                continue
            if not request.process.alive or request.process.run != request.run:
                request.status = 0
                continue
            states = self.where(request.event_id)
            is_late = self.now - request.since >= ANSWER_WITHIN
            if is_late or not any(network.waiting for network in states.networks):
                request.status = status_of(states, new=request.new)
        if self.requests:
            self.requests = [request for request in self.requests if request.status is None]

    def where(self, event_id: str) -> Whereabouts:
        """Return the states of an id on all networks."""
        return whereabouts(self.rules, self.look(), event_id)

    def look(self) -> Transaction:
        """Return a transaction that reads the current state."""
        return Transaction(self.watch.reader, self.now)

    def subscribe(
        self, endpoint: str, types: tuple[str, ...] = ("*",), metadata: tuple[str, ...] = ()
    ) -> tuple[str, bool]:
        """Subscribe as a client. Returns the subscription's name and whether it is new.

        Raises `StoreError` if all processes or the store are down.
        """
        self.endpoints.setdefault(endpoint, SimulatedSubscriber())
        request = messages.Subscribe(
            types,
            metadata,
            endpoint,
            secret=None,
            fresh=self._fresh()[:12],
            key=self._fresh(),
        )
        effects = self.tell(self.any_process(), request)
        if effects is None:
            raise StoreError("nobody takes the subscription")
        reply = messages.reply_of(effects[0])
        self.subscriptions[reply.value] = endpoint
        return reply.value, reply.new

    def dead_letters(self) -> dict[str, rows.DeadLetter]:
        """Return the dead letters by name."""
        return {
            name: rows.DeadLetter(*json.loads(text)) for name, text in self.store.rows(rows.DEAD)
        }

    def redrive(self, letter: str) -> str:
        """Try a dead letter again. Returns the code of the reply, `down` if there is no reply."""
        effects = self.tell(self.any_process(), messages.Redrive(letter))
        return "down" if effects is None else messages.reply_of(effects[0]).code

    # the end

    def cut(self, name: str, length: int) -> None:
        """Rewind a network's log to its first `length` events."""
        self.record("cut", name, length)
        self.happened["logs taken back"] += 1
        removed = self.networks[name].log[length:]
        self.taken_back |= {(name, notice.id or "") for notice in removed}
        self.networks[name].cut(length)

    def heal(self) -> None:
        """End all faults, and start all processes."""
        self.faults = Faults()
        self.store_up = True
        for network in self.networks.values():
            network.up = True
            network.lies = False
            network.mute = False
            network.refuses = ""
            network.delay = 0
        for endpoint in self.endpoints.values():
            # A subscriber that has ended its subscription does not come back.
            if endpoint.status != 410:
                endpoint.status = 200
            endpoint.answers.clear()
        self.start()

    def quiet(self) -> bool:
        """Return whether only periodic work is left."""
        if self.watch.open_jobs > self._undecided():
            return False
        cursors = [
            (network, rows.get_cursor(self.look(), name)) for name, network in self.networks.items()
        ]
        return all(
            cursor.cut < 0 and (network.legacy or cursor.last == len(network.log))
            for network, cursor in cursors
        )

    def _undecided(self) -> int:
        """Return the number of acceptances that no probe can check before the next event.

        They name the last second of a legacy log. The adapter may not show all events of it yet.
        """
        undecided = 0
        for key, row in self.watch.parts[ROW, rows.UNSEEN].items():
            network = self.networks[key.partition("|")[0]]
            second = rows.read_unseen(row.value).time
            if network.legacy and network.log and network.log[-1].time == second:
                undecided += 1
        return undecided

    def settle(self, most: int = 6 * 3_600_000) -> bool:
        """Run until only periodic work is left, at most for `most` ms. Returns whether it is."""
        # Each log must be read and each adapter compared once before the world can be quiet.
        self.run(2 * self.rules.silence)
        return self.run_until(self.quiet, most)


def run_together(
    worlds: Sequence[World], duration: int, enough: Callable[[], bool] = lambda: False
) -> bool:
    """Run worlds that share networks. Their actions run in one common order of time.

    Runs until `enough()` is true, for at most `duration` ms. Returns whether it is true.
    """
    end = max(world.now for world in worlds) + duration
    while not enough():
        first = min(worlds, key=lambda world: end + 1 if world.next_at is None else world.next_at)
        if first.next_at is None or first.next_at > end:
            for world in worlds:
                world.now = end
            return enough()
        for world in worlds:
            world.now = max(world.now, first.next_at)
        first.next()
    return True
