"""The surroundings of a distributor in a story, and counts of what happened."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from pubsub_emulator.distributor.core.rules import Rules
from pubsub_emulator.distributor.simulation.network import SimulatedNetwork, Subscriber
from pubsub_emulator.distributor.simulation.timeline import Timeline

PUBLIC: Final = "http://{}.example"
"""What webhooks of a distributor of that name begin with."""


@dataclass(frozen=True)
class Faults:
    """Rates of faults, in thousandths."""

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


@dataclass(eq=False)
class Scenery(Timeline):
    """Networks, subscribers, faults, and counts of what happened. Times are ms."""

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
            public_url=PUBLIC.format(self.name),
            legacy=frozenset(name for name, network in self.networks.items() if network.legacy),
        )
        super().__init__(self.seed)
        self.processes = [Process(f"p{number}") for number in range(self.replicas)]
        self.store_up = True
        self.endpoints: dict[str, Subscriber] = {}
        self.subscriptions: dict[str, str] = {}
        """Endpoints of subscriptions."""
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
        self.performed = 0
        """Effects begun."""

    def latency(self) -> int:
        """A random latency in ms."""
        return self.random.randrange(5_000, 60_000) if self.chance(self.faults.late) else self.random.randrange(1, 50)
