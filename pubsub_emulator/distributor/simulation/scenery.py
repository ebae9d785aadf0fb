"""The surroundings of a distributor in a story: virtual time, networks, faults, and counts of what happened."""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Annotated, Final

from pydantic import Field

from pubsub_emulator.distributor.core.rules import Rules
from pubsub_emulator.distributor.simulation.network import SimulatedNetwork, Subscriber
from pubsub_emulator.emulator.settings import StrictModel
from pubsub_emulator.primitives.hashing import new_blake2_256

BEGIN: Final = 1_700_000_000_000
"""When every story begins, ms since 1970."""
Thousandths = Annotated[int, Field(ge=0, le=1000)]


class Faults(StrictModel):
    """Rates of faults, in thousandths of the occasions."""

    lost: Thousandths = 0
    """A notification is lost."""
    doubled: Thousandths = 0
    late: Thousandths = 0
    """A notification, a call or an answer takes up to a minute."""
    call_fails: Thousandths = 0
    answer_lost: Thousandths = 0
    """The deed is done, its answer lost."""
    lie: Thousandths = 0
    read_fails: Thousandths = 0
    post_fails: Thousandths = 0
    killed: Thousandths = 0
    """A process dies before an effect."""


@dataclass
class Process:
    """One process of the distributor; each run of it is an owner of its own."""

    name: str
    run: int = 0
    alive: bool = False
    rules: Rules = field(default_factory=lambda: Rules((), ""))


@dataclass(eq=False)
class Scenery:
    """Networks, subscribers, faults, and counts of what happened. Times are ms.

    Actions happen in order of time, then of asking. Every draw is from one generator; what happened is in one digest.
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
    """Before which effect, counted from 0, a process is killed; negative for none."""

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
        self.now = BEGIN
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._sequence = 0
        self._hash = new_blake2_256()
        self.processes = [Process(f"p{number}") for number in range(self.replicas)]
        self.store_up = True
        self.endpoints: dict[str, Subscriber] = {}
        self.subscriptions: dict[str, str] = {}  # endpoints of subscriptions
        self.happened: Counter[str] = Counter()  # faults by kind
        self.calls: Counter[tuple[str, str]] = Counter()
        self.timely: Counter[tuple[str, str]] = Counter()  # calls that ended with a yes or no taken in by who made them
        self.strangers: Counter[tuple[str, str]] = Counter()  # publications by others
        self.taken_back: set[tuple[str, str]] = set()  # what was in a log when it was taken back
        self.lied: set[tuple[str, str]] = set()  # calls that were answered with a yes without a deed
        self.posts: Counter[tuple[str, str]] = Counter()
        self.answered_posts: Counter[tuple[str, str]] = Counter()
        self.performed = 0  # effects begun

    def latency(self) -> int:
        """A random latency in ms."""
        return self.random.randrange(5_000, 60_000) if self.chance(self.faults.late) else self.random.randrange(1, 50)

    def later(self, delay: int, what: Callable[[], object]) -> None:
        """Schedule an action after `delay` ms."""
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay, self._sequence, what))

    def run(self, duration: int) -> None:
        """Run for `duration` ms."""
        self.run_until(lambda: False, duration)

    def run_until(self, enough: Callable[[], bool], most: int) -> bool:
        """Run until `enough()` holds, for at most `most` ms. Returns whether it holds."""
        end = self.now + most
        while not enough():
            if not self._events or self._events[0][0] > end:
                self.now = end
                return enough()
            self.next()
        return True

    def next(self) -> None:
        """Run the next action."""
        self.now, _, what = heapq.heappop(self._events)
        what()

    @property
    def next_at(self) -> int | None:
        """The time of the next action, or `None` if there is none."""
        return self._events[0][0] if self._events else None

    def chance(self, thousandths: int) -> bool:
        """Draw whether something happens, at a rate in thousandths."""
        return bool(thousandths) and self.random.randrange(1000) < thousandths

    def record(self, *words: object) -> None:
        """Add what happened to the digest."""
        self._hash.update(f"{self.now} {words!r}\n".encode())

    def digest(self) -> str:
        """One hash over all that happened; equal stories have equal digests."""
        return "0x" + self._hash.hexdigest()
