"""The surroundings of a distributor in a story: virtual time, networks, faults and counters."""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Annotated, Final

from pydantic import Field

from interchain_events.distributor.core.continuity import Seat
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.simulation.network import SimulatedNetwork, SimulatedSubscriber
from pubsub_emulator.files.settings import StrictModel
from pubsub_emulator.primitives.hashing import new_blake2_256

BEGIN: Final = 1_700_000_000_000
"""The time at which every story begins, in ms since 1970."""
Thousandths = Annotated[int, Field(ge=0, le=1000)]
"""A rate in thousandths."""


class Faults(StrictModel):
    """The rates of faults, in thousandths of the occasions."""

    lost: Thousandths = 0
    """A notification from an adapter is lost."""
    doubled: Thousandths = 0
    """A notification from an adapter arrives twice."""
    late: Thousandths = 0
    """A notification, a call or an answer takes up to a minute."""
    call_fails: Thousandths = 0
    """A call does not reach the adapter."""
    answer_lost: Thousandths = 0
    """The call takes effect, but its answer is lost."""
    lie: Thousandths = 0
    """An adapter accepts an event and does not publish it."""
    read_fails: Thousandths = 0
    """A read of a log fails."""
    post_fails: Thousandths = 0
    """A notification does not reach the subscriber."""
    killed: Thousandths = 0
    """A process dies before an effect."""


@dataclass
class Process:
    """A process of the distributor."""

    name: str
    run: int = 0
    """The number of times that it was started. Each run claims under its own name."""
    alive: bool = False
    rules: Rules = field(default_factory=lambda: Rules((), ""))
    seat: Seat = field(default_factory=lambda: Seat({}))
    """The run's knowledge of the store."""


@dataclass(eq=False)
class Scenery:
    """Networks, subscribers, faults, and counters of occurrences. Times are in ms.

    Actions run in the order of their times. Those of the same time run in the order in which they
    were scheduled. All random numbers come from one generator, and all occurrences go into one
    digest.
    """

    seed: int = 0
    networks: dict[str, SimulatedNetwork] = field(default_factory=dict)
    replicas: int = 1
    faults: Faults = field(default_factory=Faults)
    rules: Rules = field(default_factory=lambda: Rules(("a", "b"), ""))
    name: str = "ied"
    down_for: int = 3_000
    """How long a killed process is away."""
    kill_at: int = -1
    """The number of the effect, counted from 0, before which a process is killed, -1 for none."""

    def __post_init__(self) -> None:
        if not self.networks:
            self.networks = {name: SimulatedNetwork(name) for name in ("a", "b")}
        self.rules = replace(
            self.rules,
            networks=tuple(self.networks),
            public_url=f"http://{self.name}.example",
            legacy=frozenset(name for name, network in self.networks.items() if network.legacy),
        )
        self.random = Random(self.seed)  # noqa: S311  # a story is a function of its seed
        """The only generator of random numbers."""
        self.now = BEGIN
        """The virtual time in ms since 1970."""
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        """A heap of scheduled actions: time, sequence number and function."""
        self._sequence = 0
        """The number of actions scheduled so far. It orders actions of the same time."""
        self._hash = new_blake2_256()
        """The hash over all occurrences so far."""
        self.processes = [Process(f"p{number}") for number in range(self.replicas)]
        self.store_up = True
        """Whether the store answers."""
        self.endpoints: dict[str, SimulatedSubscriber] = {}
        """The emulated subscribers by URL."""
        self.subscriptions: dict[str, str] = {}
        """The endpoint of each subscription, by its name."""
        self.happened: Counter[str] = Counter()
        """The number of faults by kind."""
        self.calls: Counter[tuple[str, str]] = Counter()
        """The number of publications that processes have begun, by network and id."""
        self.timely: Counter[tuple[str, str]] = Counter()
        """The number of calls whose caller has applied a clear answer, by network and id."""
        self.strangers: Counter[tuple[str, str]] = Counter()
        """The number of publications by others, by network and id."""
        self.taken_back: set[tuple[str, str]] = set()
        """The network and id of each event that a rewind removed from a log."""
        self.lied: set[tuple[str, str]] = set()
        """The network and id of each event that was accepted but not published."""
        self.lie_seconds: dict[tuple[str, str], int] = {}
        """The second named in the last untrue acceptance, by network and id."""
        self.refused: set[tuple[str, str]] = set()
        """The network and id of each event that was refused."""
        self.posts: Counter[tuple[str, str]] = Counter()
        """The number of notifications that processes have begun, by subscription and id."""
        self.answered_posts: Counter[tuple[str, str]] = Counter()
        """The number of notifications whose status the process has applied, by subscription and
        id."""
        self.performed = 0
        """The number of effects that have begun."""

    def latency(self) -> int:
        """Return a random latency in ms."""
        if self.chance(self.faults.late):
            return self.random.randrange(5_000, 60_000)
        return self.random.randrange(1, 50)

    def later(self, delay: int, action: Callable[[], object]) -> None:
        """Schedule an action after `delay` ms."""
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay, self._sequence, action))

    def run(self, duration: int) -> None:
        """Run the actions of the next `duration` ms."""
        self.run_until(lambda: False, duration)

    def run_until(self, enough: Callable[[], bool], most: int) -> bool:
        """Run until `enough()` is true, for at most `most` ms. Returns whether it is true."""
        end = self.now + most
        while not enough():
            if not self._events or self._events[0][0] > end:
                self.now = end
                return enough()
            self.next()
        return True

    def next(self) -> None:
        """Advance the time to the next action and run it."""
        self.now, _, action = heapq.heappop(self._events)
        action()

    @property
    def next_at(self) -> int | None:
        """Return the time of the next action, `None` if there is none."""
        return self._events[0][0] if self._events else None

    def chance(self, thousandths: int) -> bool:
        """Decide by chance whether something happens, at a rate in thousandths."""
        # If the rate is 0, no number is drawn, so that the rest of a story is the same as before.
        return bool(thousandths) and self.random.randrange(1000) < thousandths

    def record(self, *words: object) -> None:
        """Add an occurrence to the digest."""
        self._hash.update(f"{self.now} {words!r}\n".encode())

    def digest(self) -> str:
        """Return a hash over all occurrences. Equal stories have equal digests."""
        return "0x" + self._hash.hexdigest()
