"""The demonstration: three networks, two distributors with two networks each, and many faults."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from interchain_events.distributor.event import Event
from interchain_events.distributor.simulation.invariants import surprises
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.scenery import Faults
from interchain_events.distributor.simulation.stories import event_of
from interchain_events.distributor.simulation.world import World, run_together
from pubsub_emulator.primitives.hashing import blake2_256

FAULTS: Final = Faults(
    lost=200,
    doubled=150,
    late=60,
    call_fails=100,
    answer_lost=100,
    lie=40,
    read_fails=100,
    post_fails=150,
    killed=8,
)
"""The rates of the random faults."""
ROUNDS: Final = 600
"""The number of random occurrences."""
SETTLE: Final = 6 * 3_600_000
"""The longest time in ms until all work is done after the faults have ended."""
SUBSCRIBERS: Final = ("https://desmos.example/everything", "https://desmos.example/production")
"""The endpoints of the subscribers, one of each distributor."""


class Demonstration(NamedTuple):
    """The result of the demonstration."""

    events: int
    """The number of different events."""
    on_networks: dict[str, int]
    """The number of events in each network's log."""
    happened: dict[str, int]
    """The number of faults by kind."""
    acknowledged: dict[str, int]
    """The number of acknowledged notifications by endpoint."""
    settled: bool
    """Whether all work was done in time."""
    surprises: list[str]
    """The violated invariants."""
    digest: str


@dataclass
class _Play:
    """The demonstration while it runs: two distributors, and the events that were published."""

    seed: int
    originals: dict[str, list[Event]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311  # the demonstration is a function of its seed
        shared = SimulatedNetwork("hashnet")
        self.worlds = (
            World(
                self.seed,
                {"alastria": SimulatedNetwork("alastria"), "hashnet": shared},
                replicas=2,
                name="operator",
            ),
            World(
                self.seed + 1,
                {"hashnet": shared, "fabric": SimulatedNetwork("fabric")},
                replicas=1,
                name="access-node",
            ),
        )
        """The two distributors, which share the network `hashnet`."""

    def fresh(self) -> tuple[str, Event]:
        """Return a new event."""
        number = len(self.originals) + 1
        name, event = event_of(number, number % 7, environment=self.random.choice(("sbx", "prd")))
        self.originals[name] = [event]
        return name, event

    def round(self) -> None:
        """Publish, fail or recover at random in one world, and let some time pass."""
        world = self.random.choice(self.worlds)
        name = self.random.choice(sorted(world.networks))
        kind = self.random.randrange(12)
        if kind < 6:
            world.publish(*self.fresh())
        elif kind < 9:
            world.publish_on(name, self.fresh()[1])
        elif kind == 9:
            world.networks[name].up = not world.networks[name].up
        elif kind == 10:
            world.store_up = not world.store_up
        elif world.networks[name].log and self.random.randrange(4) == 0:
            world.cut(name, len(world.networks[name].log) - 1)
        run_together(self.worlds, self.random.choice((50, 500, 5_000, 20_000)))


def demonstrate(seed: int = 0) -> Demonstration:
    """Run the demonstration. Everything in it is derived from the seed."""
    play = _Play(seed)
    operator, access_node = play.worlds
    for world in play.worlds:
        world.start()
    run_together(play.worlds, 1_000)
    operator.subscribe(SUBSCRIBERS[0])
    access_node.subscribe(SUBSCRIBERS[1], ("*",), ("prd",))
    for world in play.worlds:
        world.faults = FAULTS
    for _ in range(ROUNDS):
        play.round()
    for world in play.worlds:
        world.heal()
    run_together(play.worlds, 120_000)
    settled = run_together(play.worlds, SETTLE, lambda: all(world.quiet() for world in play.worlds))
    happened: Counter[str] = Counter()
    for world in play.worlds:
        happened.update(world.happened)
    violations: list[str] = []
    for world in play.worlds:
        violations += [f"{world.name}: {text}" for text in surprises(world, play.originals)]
    networks = {**operator.networks, **access_node.networks}
    published: set[str] = set()
    for network in networks.values():
        published.update(notice.id or "" for notice in network.log)
    for event_id in sorted(published):
        violations += [
            f"1: {event_id} is not on {name}"
            for name, network in networks.items()
            if not network.has(event_id)
        ]
    digest = blake2_256("".join(world.digest() for world in play.worlds).encode())
    return Demonstration(
        events=len(play.originals),
        on_networks={name: len(network.log) for name, network in networks.items()},
        happened=dict(happened),
        acknowledged={
            url: sum(answer == 200 for _, _, answer in world.endpoints[url].got)
            for world, url in zip(play.worlds, SUBSCRIBERS, strict=True)
        },
        settled=settled,
        surprises=violations,
        digest="0x" + digest.hex(),
    )
