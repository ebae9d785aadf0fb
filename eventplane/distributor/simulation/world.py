"""The world of a story: virtual time, processes of one distributor on one store, networks and subscribers.

Everything happens in order of time; where times are equal, in the order in which it was asked for. Every draw is from
one generator, so a story is a function of its seed.
"""

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from pubsub_emulator.eventplane.distributor.core import rows
from pubsub_emulator.eventplane.distributor.core.messages import (
    Answer,
    Answered,
    Call,
    DropHook,
    Due,
    Effect,
    Effects,
    Hook,
    Hooked,
    Input,
    List,
    Listed,
    MakeHook,
    MakeInterest,
    No,
    Note,
    Noticed,
    Paged,
    Post,
    Posted,
    Probe,
    Probed,
    Publish,
    Read,
    Redrive,
    Reply,
    Start,
    Subscribe,
    Unknown,
    Unsubscribe,
    Yes,
)
from pubsub_emulator.eventplane.distributor.core.rules import Rules
from pubsub_emulator.eventplane.distributor.core.states import Whereabouts, status_of, whereabouts
from pubsub_emulator.eventplane.distributor.core.step import steps
from pubsub_emulator.eventplane.distributor.event import Event, Notice
from pubsub_emulator.eventplane.distributor.simulation.network import Network, Subscriber
from pubsub_emulator.eventplane.distributor.simulation.watch import Watch
from pubsub_emulator.eventplane.once import MemoryStore, StoreError, Transaction

BEGIN: Final = 1_700_000_000_000
ANSWER_WITHIN: Final = 30_000
PUBLIC: Final = "http://{}.example"
"""What webhooks of a distributor of that name begin with."""
MOST_STEPS: Final = 200_000


@dataclass(frozen=True)
class Faults:
    """What goes wrong how often, in thousandths of the occasions."""

    lost: int = 0
    """A notification is lost."""
    doubled: int = 0
    late: int = 0
    """A notification, a call or an answer takes up to a minute."""
    call_fails: int = 0
    answer_lost: int = 0
    """The deed is done, its answer lost."""
    lie: int = 0
    read_fails: int = 0
    post_fails: int = 0
    killed: int = 0
    """A process dies before an effect."""


@dataclass
class Process:
    """One process of the distributor; each run of it is an owner of its own."""

    name: str
    run: int = 0
    alive: bool = False


@dataclass
class Request:
    """A client's call; `status` is `None` until it is answered, 0 where it never will be."""

    event_id: str
    process: Process
    run: int
    since: int
    new: bool = True
    status: int | None = None


@dataclass
class World:
    """Networks, subscribers and the processes of one distributor. Times are ms."""

    seed: int = 0
    networks: dict[str, Network] = field(default_factory=dict)
    replicas: int = 1
    faults: Faults = field(default_factory=Faults)
    rules: Rules = field(default_factory=lambda: Rules(("a", "b"), ""))
    name: str = "ied"
    down_for: int = 3_000
    """How long a killed process is away."""
    kill_at: int = -1
    """Before which effect, counted from 0, a process is killed; negative for none."""

    def __post_init__(self) -> None:
        if not self.networks:
            self.networks = {name: Network(name) for name in ("a", "b")}
        self.rules = replace(
            self.rules,
            networks=tuple(self.networks),
            public_url=PUBLIC.format(self.name),
            legacy=frozenset(name for name, network in self.networks.items() if network.legacy),
        )
        self.random = Random(self.seed)  # noqa: S311  # a story is a function of its seed
        self.now = BEGIN
        self.watch = Watch(self)
        self.store: MemoryStore = self.watch
        self.store_up = True
        self.endpoints: dict[str, Subscriber] = {}
        self.subscriptions: dict[str, str] = {}
        self.requests: list[Request] = []
        self.notes: Counter[str] = Counter()
        self.happened: Counter[str] = Counter()
        """Faults by kind."""
        self.calls: Counter[tuple[str, str]] = Counter()
        self.timely: Counter[tuple[str, str]] = Counter()
        """Calls that ended with a yes or no taken in by who made them."""
        self.strangers: Counter[tuple[str, str]] = Counter()
        """Publications by others."""
        self.taken_back: set[tuple[str, str]] = set()
        """What was in a log when it was taken back."""
        self.lied: set[tuple[str, str]] = set()
        """Calls that were answered with a yes without a deed."""
        self.posts: Counter[tuple[str, str]] = Counter()
        self.answered_posts: Counter[tuple[str, str]] = Counter()
        self.trace: list[tuple[int, Input]] | None = None
        self.steps = 0
        self.performed = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._poll_at = 0
        self._owners: dict[str, Rules] = {}
        self._hash = hashlib.blake2b(digest_size=32)
        self.processes = [Process(f"p{number}") for number in range(self.replicas)]
        for network in self.networks.values():
            network.distributors.append(self)

    # time

    def later(self, delay: int, what: Callable[[], None]) -> None:
        """Have something happen after `delay`."""
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay, self._sequence, what))

    def run(self, duration: int) -> None:
        """Let time pass."""
        self.run_until(lambda: False, duration)

    def run_until(self, enough: Callable[[], bool], most: int) -> bool:
        """Let time pass until `enough`, at most `most`; returns whether it came to that."""
        end = self.now + most
        while not enough():
            if not self._events or self._events[0][0] > end:
                self.now = end
                return enough()
            self.next()
        return True

    def next(self) -> None:
        """Let the next thing happen."""
        self.now, _, what = heapq.heappop(self._events)
        what()

    @property
    def next_at(self) -> int | None:
        """When the next thing happens, `None` if nothing will."""
        return self._events[0][0] if self._events else None

    def chance(self, thousandths: int) -> bool:
        """Whether something happens that happens so often."""
        return bool(thousandths) and self.random.randrange(1000) < thousandths

    def _latency(self) -> int:
        return self.random.randrange(5_000, 60_000) if self.chance(self.faults.late) else self.random.randrange(1, 50)

    def record(self, *words: object) -> None:
        """Something that happened, for the digest."""
        self._hash.update(f"{self.now} {words!r}\n".encode())

    def digest(self) -> str:
        """One hash over all that happened; equal stories have equal digests."""
        return "0x" + self._hash.hexdigest()

    # processes

    def start(self) -> None:
        """Start every process."""
        for process in self.processes:
            if not process.alive:
                self.begin(process)

    def begin(self, process: Process) -> None:
        """Start a process, if it is not running."""
        if process.alive:
            return
        process.alive, process.run = True, process.run + 1
        self.record("start", process.name)
        self.tell(process, Start({name: self._fresh() for name in self.networks}))

    def kill(self, process: Process, *, back: bool = True) -> None:
        """End a process at once; what it was about to do does not happen."""
        self.record("kill", process.name)
        self.happened["processes killed"] += 1
        process.alive = False
        if back:
            self.later(self.down_for, lambda: self.begin(process))

    def _fresh(self) -> str:
        return f"{self.random.getrandbits(128):032x}"

    def any_process(self) -> Process | None:
        """A running process, drawn where there are several."""
        alive = [process for process in self.processes if process.alive]
        return self.random.choice(alive) if alive else None

    def tell(self, process: Process | None, *told: Input) -> list[Effects] | None:
        """Have a process take inputs in, as one transaction; `None` where it or the store is down."""
        if process is None or not process.alive or not self.store_up:
            return None
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise StoreError("the story does not come to an end")
        if self.trace is not None:
            self.trace += [(self.now, each) for each in told]
        rules = self._rules_of(process)
        self.watch.inputs = told
        found = self.store.transact(lambda tx: steps(rules, list(told), tx))
        run = process.run
        for effect in (each for effects in found for each in effects):
            if isinstance(effect, Note):
                self.notes[effect.kind] += 1
                self.record(effect)
            elif not isinstance(effect, Reply):
                self.later(0, lambda effect=effect: self._perform(process, run, effect))  # type: ignore[misc]
        self._plan_poll()
        self._look_at_requests()
        return found

    def _rules_of(self, process: Process) -> Rules:
        """The rules as this run of a process has them."""
        owner = f"{process.name}.{process.run}"
        if owner not in self._owners:
            self._owners[owner] = replace(self.rules, owner=owner)
        return self._owners[owner]

    def _plan_poll(self) -> None:
        due = self.store.next_due()
        if due is not None and (due < self._poll_at or self._poll_at <= self.now):
            self._poll_at = max(due, self.now + 1)
            self.later(self._poll_at - self.now, self._poll)

    def _poll(self) -> None:
        if self.now < self._poll_at:
            return
        process = self.any_process()
        if process is None or not self.store_up:
            self._poll_at = self.now + 500
            self.later(500, self._poll)
            return
        found = self.store.due(20)
        if found:
            self.tell(process, *(Due(row.table, row.key) for row in found))
        self._plan_poll()

    # effects

    def _perform(self, process: Process, run: int, effect: Effect) -> None:
        if not process.alive or process.run != run:
            return
        self.performed += 1
        if self.performed - 1 == self.kill_at or self.chance(self.faults.killed):
            self.kill(process)
            return
        match effect:
            case Call():
                self._call(process, run, effect)
            case Probe():
                self._ask(process, run, effect)
            case Post():
                self._post(process, run, effect)
            case Read():
                self._read(process, run, effect)
            case List():
                self._list(process, run, effect)
            case MakeHook() | MakeInterest():
                self._hook(process, run, effect)
            case DropHook():
                network = self.networks[effect.network]
                if network.up:
                    network.hooks.pop(effect.subscription, None)

    def _answer(self, process: Process, run: int, told: Input, delay: int | None = None) -> None:
        """An answer reaches the process that asked, if it still runs."""

        def arrive() -> None:
            if process.run == run and self.tell(process, told) is not None:
                self._count(told, process)

        self.later(self._latency() if delay is None else delay, arrive)

    def _count(self, told: Input, process: Process) -> None:
        if isinstance(told, Answered) and not isinstance(told.answer, Unknown):
            self.timely[told.network, told.id] += 1
        if isinstance(told, Posted) and told.status is not None and process.alive:
            self.answered_posts[told.subscription, told.id] += 1

    def _call(self, process: Process, run: int, effect: Call) -> None:
        def answer(what: Answer, delay: int) -> None:
            if delay > self.rules.call_timeout:
                what, delay = Unknown("timeout"), self.rules.call_timeout
            self._answer(process, run, Answered(effect.network, effect.id, what), delay)

        network = self.networks[effect.network]
        if self.now > effect.before:
            answer(Unknown("not begun"), 0)
            return
        self.calls[effect.network, effect.id] += 1
        self.record("call", effect.network, effect.id)
        if not network.up or self.chance(self.faults.call_fails):
            self.happened["calls that reached nobody"] += 1
            answer(Unknown("unreachable"), 5)
            return
        if network.refuses:
            answer(No(network.refuses), 5)
            return
        delay = network.delay + self._latency()
        if network.lies or self.chance(self.faults.lie):
            self.lied.add((effect.network, effect.id))
            self.happened["yes without a deed"] += 1
            self.record("lie", effect.network, effect.id)
            answer(Yes(self.now // 1000), delay)
            return
        self.later(delay, lambda: self.deed(effect.network, effect.event))
        silent = network.mute or self.chance(self.faults.answer_lost)
        self.happened["deeds without an answer"] += silent
        answer(Yes((self.now + delay) // 1000), self.rules.call_timeout + 1 if silent else delay + self._latency())

    def publish_on(self, name: str, event: Event) -> None:
        """A stranger publishes."""
        notice = self.networks[name].append(event, self.now)
        if notice is not None:
            for each in self.networks[name].distributors:
                each.strangers[name, notice.id or ""] += 1
            self._tell_of(name, notice)

    def deed(self, name: str, event: Event) -> None:
        """An event enters a network's log because this distributor called."""
        notice = self.networks[name].append(event, self.now)
        if notice is not None:
            for other in self.networks[name].distributors:
                other.strangers[name, notice.id or ""] += other is not self
            self._tell_of(name, notice)

    def _tell_of(self, name: str, notice: Notice) -> None:
        network = self.networks[name]
        self.record("log", name, notice)
        for endpoint in sorted({*network.hooks.values(), *network.unlisted.values()}):
            self.notify(endpoint, notice)

    def notify(self, endpoint: str, notice: Notice) -> None:
        """Send a notification to this distributor, as well as it goes; what is addressed to others is theirs."""
        if not endpoint.startswith(f"{self.rules.public_url}/"):
            return
        if self.chance(self.faults.lost):
            self.happened["notifications lost"] += 1
            return
        doubled = self.chance(self.faults.doubled)
        self.happened["notifications doubled"] += doubled
        for _ in range(1 + doubled):
            self.later(self._latency(), lambda: self._delivered(endpoint, notice))

    def _delivered(self, endpoint: str, notice: Notice) -> None:
        self.deliver(endpoint, notice)

    def deliver(self, endpoint: str, notice: Notice) -> str | None:
        """A notification arrives at any process; returns the code of its answer, `None` where nobody answers."""
        kind, network, *rest = endpoint.removeprefix(f"{self.rules.public_url}/internal/").split("/")
        subscription = rest[0] if kind == "desmosNotification" else None
        found = self.tell(self.any_process(), Noticed(network, rest[-1], notice, subscription))
        if found is None:
            return None
        return next(effect.code for effect in found[0] if isinstance(effect, Reply))

    def _ask(self, process: Process, run: int, effect: Probe) -> None:
        network = self.networks[effect.network]
        self.record("probe", effect.network, effect.id)
        there, hidden = None, False
        if network.up and not self.chance(self.faults.read_fails):
            shown = network.page(0, 0, effect.since)[0] if network.legacy else network.log
            there = any(notice.id == effect.id for notice in shown)
            hidden = network.legacy and not there and any(each.event.order == effect.entity for each in shown)
        self._answer(process, run, Probed(effect.network, effect.id, there, effect.asked, hidden))

    def _read(self, process: Process, run: int, effect: Read) -> None:
        network = self.networks[effect.network]
        if not network.up or self.chance(self.faults.read_fails):
            self._answer(process, run, Paged(effect.network, effect.after, None))
            return
        notices, complete = network.page(effect.after, effect.limit, effect.since)
        self._answer(process, run, Paged(effect.network, effect.after, notices, complete))

    def _list(self, process: Process, run: int, effect: List) -> None:
        network = self.networks[effect.network]
        hooks = None
        if network.up and not self.chance(self.faults.read_fails):
            hooks = tuple(Hook(name, endpoint) for name, endpoint in network.hooks.items())
        self._answer(process, run, Listed(effect.network, hooks))

    def _hook(self, process: Process, run: int, effect: MakeHook | MakeInterest) -> None:
        network = self.networks[effect.network]
        if isinstance(effect, MakeHook):
            form, url = effect.form, self.rules.hook_url(effect.network, effect.key)
        else:
            form = f"interest:{effect.subscription}"
            url = self.rules.interest_url(effect.network, effect.subscription, effect.key)
        accepted = None
        if network.up and not self.chance(self.faults.call_fails):
            accepted = network.hook(url, form)
            if self.chance(self.faults.answer_lost):
                accepted = None
        self._answer(process, run, Hooked(effect.network, form, accepted))

    def _post(self, process: Process, run: int, effect: Post) -> None:
        told = Posted(effect.subscription, effect.id, None)
        if self.now > effect.before:
            self._answer(process, run, told, 0)
            return
        self.posts[effect.subscription, effect.id] += 1
        if self.chance(self.faults.post_fails):
            self.happened["notifications of subscribers failed"] += 1
            self._answer(process, run, told, 5)
            return
        status = self.endpoints[effect.endpoint].post(effect.webhook, effect.id)
        self.record("post", effect.webhook, effect.id, status)
        lost = status is None or self.chance(self.faults.answer_lost)
        delay = self.rules.post_timeout if lost else self._latency()
        if delay > self.rules.post_timeout:
            lost, delay = True, self.rules.post_timeout
        self._answer(process, run, told if lost else replace(told, status=status), delay)

    # clients

    def publish(self, event_id: str, event: Event) -> Request:
        """A client publishes through any process."""
        process = self.any_process()
        if process is None or not self.store_up:
            return Request(event_id, process or self.processes[0], 0, self.now, status=503)
        request = Request(event_id, process, process.run, self.now)
        found = self.tell(process, Publish(event_id, event)) or [[]]
        reply = next(effect for effect in found[0] if isinstance(effect, Reply))
        request.new = reply.new
        if reply.code:
            request.status = 409
        else:
            self.requests.append(request)
            self.later(ANSWER_WITHIN, lambda: self._look_at_requests(late=True))
            self._look_at_requests(late=True)
        return request

    def _look_at_requests(self, *, late: bool = False) -> None:
        """Answer requests about which something was written, or whose time is over."""
        touched, self.watch.touched = self.watch.touched, set()
        everything = late or bool(touched.intersection(self.networks))
        for request in self.requests:
            if not everything and request.event_id not in touched:
                continue
            if not request.process.alive or request.process.run != request.run:
                request.status = 0
                continue
            found = self.where(request.event_id)
            if self.now - request.since >= ANSWER_WITHIN or not any(each.waiting for each in found.networks):
                request.status = status_of(found, new=request.new)
        if self.requests:
            self.requests = [request for request in self.requests if request.status is None]

    def where(self, event_id: str) -> Whereabouts:
        """Where an event is."""

        def look(tx: Transaction) -> Whereabouts:
            return whereabouts(self.rules, tx, event_id)

        return look(Transaction(self.watch.read, self.now))

    def subscribe(
        self, endpoint: str, types: tuple[str, ...] = ("*",), metadata: tuple[str, ...] = ()
    ) -> tuple[str, bool]:
        """A client subscribes; its name, and whether it is new."""
        self.endpoints.setdefault(endpoint, Subscriber())
        asked = Subscribe(types, metadata, endpoint, None, self._fresh()[:12], self._fresh())
        found = self.tell(self.any_process(), asked)
        if found is None:
            raise StoreError("nobody takes the subscription")
        reply = next(effect for effect in found[0] if isinstance(effect, Reply))
        self.subscriptions[reply.value] = endpoint
        return reply.value, reply.new

    def unsubscribe(self, subscription: str) -> None:
        """A client ends its subscription."""
        self.subscriptions.pop(subscription, None)
        self.tell(self.any_process(), Unsubscribe(subscription))

    def dead_letters(self) -> dict[str, rows.Dead]:
        """Dead letters by name."""
        return {name: rows.Dead(*json.loads(text)) for name, text in self.store.rows(rows.DEAD)}

    def redrive(self, letter: str) -> str:
        """An operator has a dead letter tried again; the code of the answer."""
        found = self.tell(self.any_process(), Redrive(letter)) or [[]]
        return next(effect.code for effect in found[0] if isinstance(effect, Reply))

    # the end

    def cut(self, name: str, to: int) -> None:
        """A network's log is taken back."""
        self.record("cut", name, to)
        self.happened["logs taken back"] += 1
        self.taken_back |= {(name, notice.id or "") for notice in self.networks[name].log[to:]}
        self.networks[name].cut(to)

    def heal(self) -> None:
        """Faults end: everything works from now on."""
        self.faults, self.store_up = Faults(), True
        for network in self.networks.values():
            network.up, network.lies, network.mute, network.refuses, network.delay = True, False, False, "", 0
        for endpoint in self.endpoints.values():
            endpoint.status = 200 if endpoint.status != 410 else 410
            endpoint.answers.clear()
        self.start()

    def quiet(self) -> bool:
        """Whether nothing is left to do but to look again from time to time."""
        return self.watch.open_jobs == 0 and all(self._caught_up(name) for name in self.networks)

    def _caught_up(self, name: str) -> bool:
        cursor = rows.Cursor(*json.loads(self.watch.read_row(rows.CURSORS, name)))
        behind = not self.networks[name].legacy and cursor.last != len(self.networks[name].log)
        return cursor.cut < 0 and not behind

    def settle(self, most: int = 6 * 3_600_000) -> bool:
        """Let time pass until nothing is left to do; returns whether it came to that."""
        self.run(2 * self.rules.silence)
        return self.run_until(self.quiet, most)


def run_together(worlds: Sequence[World], duration: int, enough: Callable[[], bool] = lambda: False) -> bool:
    """Let time pass in worlds that share networks, in one order of time; returns whether `enough` came to hold."""
    end = max(world.now for world in worlds) + duration
    while not enough():
        ahead = min(worlds, key=lambda world: end + 1 if world.next_at is None else world.next_at)
        if ahead.next_at is None or ahead.next_at > end:
            for world in worlds:
                world.now = end
            return enough()
        for world in worlds:
            world.now = max(world.now, ahead.next_at)
        ahead.next()
    return True
