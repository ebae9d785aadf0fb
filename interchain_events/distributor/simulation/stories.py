"""Stories: random networks, faults and traffic, all from a seed.

The invariants are checked at the end.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.event import Event
from interchain_events.distributor.simulation.invariants import surprises
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.scenery import Faults
from interchain_events.distributor.simulation.world import World

ENTITIES: Final = 3
"""The number of entities."""
MOST_FAULTS: Final = Faults(
    lost=400,
    doubled=300,
    late=200,
    call_fails=300,
    answer_lost=300,
    lie=200,
    read_fails=300,
    post_fails=300,
    killed=80,
)
"""The greatest rates of faults."""


def event_of(
    number: int, entity: int = 0, *, environment: str = "sbx", kind: str = "ProductOffering"
) -> tuple[str, Event]:
    """Return the id and the event with a number, for tests and stories."""
    name = f"0x{number:064x}"
    location = f"https://node.example/entities/urn:ngsi-ld:{kind.lower()}:{entity}?hl={name}"
    # One hash is in upper case, because hashes must be compared without regard to case.
    entity_hash = f"0x{entity:064x}"
    previous = f"0x{number:064X}".replace("X", "x")
    return name, Event(kind, location, (environment,), entity_hash, previous, "0x" + "5c" * 32)


class StoryOutcome(NamedTuple):
    """The result of a story."""

    seed: int
    surprises: list[str]
    """The violated invariants."""
    digest: str
    steps: int
    """The number of transactions."""
    events: int
    """The number of different events."""


@dataclass
class DistributorStory:
    """One story."""

    seed: int
    originals: dict[str, list[Event]] = field(default_factory=dict)
    """All contents that were published, by id."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311  # a story is a function of its seed
        self.calm = self.random.randrange(8) == 0
        """Whether all random rates of faults are 0."""
        self.world = self._world()
        self._number = 0
        """The number of the last new event."""

    def _rate(self, most: int) -> int:
        """Return a random rate of one fault. In every third case it is 0."""
        return 0 if self.calm or self.random.randrange(3) == 0 else self.random.randrange(most)

    def _faults(self) -> Faults:
        """Return random rates of all faults."""
        return Faults(**{name: self._rate(most) for name, most in MOST_FAULTS})

    def _world(self) -> World:
        """Return a world with random networks and settings."""
        names = "abc"[: self.random.choice((2, 2, 3))]
        offers = (("all", "star", "types"), ("star", "types"), ("types",), ())
        networks = {
            name: SimulatedNetwork(
                name,
                unique=self.random.randrange(3) > 0,
                offers=self.random.choice(offers),
                lists_all=self.random.randrange(3) > 0,
            )
            for name in names
        }
        # A generator of its own, so that these draws do not change the rest of the story.
        others = Random(f"{self.seed}/networks")  # noqa: S311  # a story is a function of its seed
        for network in networks.values():
            network.tells_blocks = others.randrange(3) > 0
        if others.randrange(4) == 0:
            public = networks[others.choice(names)]
            public.legacy = True
            public.unique = False
        delay = self.random.choice((0, 0, 0, 15_000))
        page = self.random.choice((2, 3, 200))
        rules = Rules((), "", replication_delay=delay, page=page)
        world = World(self.seed, networks, self.random.choice((1, 1, 2, 3)), rules=rules)
        world.down_for = self.random.choice((200, 3_000, 40_000))
        return world

    def _fresh(self) -> tuple[str, Event]:
        """Return a new event of a random entity."""
        self._number += 1
        chosen = self.random.randrange(ENTITIES)
        environment = self.random.choice(("sbx", "prd"))
        kind = self.random.choice(("ProductOffering", "Catalog"))
        name, event = event_of(self._number, chosen, environment=environment, kind=kind)
        self.originals.setdefault(name, []).append(event)
        return name, event

    def tell(self) -> StoryOutcome:
        """Run the story to its end and check the invariants."""
        world = self.world
        for name in world.networks:
            for _ in range(self.random.choice((0, 0, 0, 2, 5))):
                world.publish_on(name, self._fresh()[1])
        world.start()
        world.run(1_000)
        self._subscribe()
        world.faults = self._faults()
        for _ in range(self.random.randrange(2, 14)):
            self._act()
            world.run(self.random.choice((0, 1, 20, 300, 5_000, 30_000, 70_000)))
        world.heal()
        self._clear_dead_letters()
        world.settle()
        self._clear_dead_letters()
        world.settle()
        return StoryOutcome(
            self.seed, surprises(world, self.originals), world.digest(), world.steps, self._number
        )

    def _clear_dead_letters(self) -> None:
        """Try every dead letter again, in half of the cases."""
        if self.random.randrange(2):
            for letter in self.world.dead_letters():
                self.world.redrive(letter)

    def _subscribe(self) -> None:
        """Subscribe up to two clients with random filters."""
        choices: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
            (("*",), ()),
            (("*",), ("prd",)),
            (("Catalog",), ()),
            (("Catalog", "Other"), ("sbx", "dev")),
        ]
        for number in range(self.random.choice((0, 1, 1, 2))):
            types, metadata = self.random.choice(choices)
            self.world.subscribe(f"https://desmos.example/{number}", types, metadata)

    def _act(self) -> None:
        """Publish, or change a network, a process, the store or the subscribers, at random."""
        world = self.world
        name = self.random.choice(sorted(self.world.networks))
        network = world.networks[name]
        kind = self.random.randrange(20)
        if kind < 7:
            self._publish()
        elif kind < 11:
            world.publish_on(name, self._fresh()[1])
        elif kind == 11:
            network.up = not network.up
        elif kind == 12:
            world.store_up = not world.store_up
        elif kind == 13:
            if network.log and not network.legacy:
                world.cut(name, max(0, len(network.log) - self.random.choice((1, 1, 2, 3, 9))))
        elif kind == 14:
            process = self.random.choice(world.processes)
            if process.alive:
                world.kill(process)
        elif kind == 15:
            network.delay = self.random.choice((0, 2_000, 12_000, 50_000))
        elif kind == 16:
            network.refuses = "" if network.refuses else "400"
        elif kind == 17:
            network.lies, network.mute = self.random.choice(
                ((True, False), (False, True), (False, False))
            )
        elif kind == 18:
            for subscriber in world.endpoints.values():
                subscriber.status = self.random.choice((200, 500, None))
        else:
            self._quarantined_or_conflicting(name)

    def _publish(self) -> None:
        """Publish up to four new events, some of them twice."""
        for _ in range(self.random.choice((1, 1, 2, 4))):
            name, event = self._fresh()
            for _ in range(self.random.choice((1, 1, 2))):
                self.world.publish(name, event)

    def _quarantined_or_conflicting(self, name: str) -> None:
        """Publish an event without a global id, or another content of a known id."""
        _, event = self._fresh()
        if self.random.randrange(2):
            self.world.publish_on(
                name, event._replace(data_location="https://node.example/without-id")
            )
            return
        event_id = self.random.choice(sorted(self.originals))
        other = event._replace(data_location=event_of(int(event_id, 16))[1].data_location)
        self.originals[event_id].append(other)
        self.world.publish_on(name, other)


def tell(seed: int) -> StoryOutcome:
    """Run the story of a seed."""
    return DistributorStory(seed).tell()
