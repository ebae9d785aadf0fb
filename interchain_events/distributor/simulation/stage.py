"""The stage on which scenarios are played, and the table of the rules' scenarios."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.event import Event
from interchain_events.distributor.simulation.invariants import surprises
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of
from interchain_events.distributor.simulation.world import SimulatedRequest, World

DESMOS: Final = "https://desmos.example/dlt"
"""The endpoint of the subscriber in most scenarios."""
_RULES: Final = Rules((), "")


@dataclass
class ScenarioStage:
    """A world, its events, and the failures found so far.

    Scenarios use its methods to act and to check. A check that fails adds a failure and does not
    end the scenario.
    """

    seed: int
    failures: list[str] = field(default_factory=list)
    """A sentence for each failure."""
    originals: dict[str, list[Event]] = field(default_factory=dict)
    """All contents that were published, by id."""
    world: World = field(default_factory=World)

    def set(
        self,
        *networks: SimulatedNetwork,
        replicas: int = 1,
        start: bool = True,
        rules: Rules = _RULES,
    ) -> World:
        """Create and return the world, with the networks `a` and `b` unless others are given."""
        named = {
            network.name: network
            for network in networks or (SimulatedNetwork("a"), SimulatedNetwork("b"))
        }
        self.world = World(self.seed, named, replicas, rules=rules)
        if start:
            self.world.start()
            self.world.run(500)
        return self.world

    def event(self, number: int, entity: int = 0, **how: str) -> tuple[str, Event]:
        """Create an event that will be published. Returns its id and the event."""
        name, event = event_of(number, entity, **how)
        self.originals.setdefault(name, []).append(event)
        return name, event

    def publish(self, number: int = 1, entity: int = 0, **how: str) -> SimulatedRequest:
        """Publish an event through the distributor."""
        return self.world.publish(*self.event(number, entity, **how))

    def stranger(self, network: str, number: int = 1, entity: int = 0, **how: str) -> str:
        """Publish an event on one network as a stranger. Returns its id."""
        name, event = self.event(number, entity, **how)
        self.world.publish_on(network, event)
        return name

    def check(self, holds: bool, sentence: str) -> None:
        """Add a sentence to the failures unless `holds` is true."""
        if not holds:
            self.failures.append(sentence)

    def status(self, request: SimulatedRequest, wanted: int) -> None:
        """Check that a request is answered with a status within 31 seconds."""
        self.world.run_until(lambda: request.status is not None, 31_000)
        self.check(request.status == wanted, f"status {wanted}, not {request.status}")

    def counts(self, number: int = 1, *, after: int = 0, **wanted: int) -> None:
        """Check how many times an event is on each network, `after` ms from now."""
        self.world.run(after)
        event_id, _ = event_of(number)
        counts = {name: self.world.networks[name].count(event_id) for name in wanted}
        self.check(counts == wanted, f"event {number}: {wanted}, not {counts}")

    def calls(self, wanted: int, *, after: int = 0) -> None:
        """Check the number of all publications on networks, `after` ms from now."""
        self.world.run(after)
        count = sum(self.world.calls.values())
        self.check(count == wanted, f"{wanted} calls, not {count}")

    def acknowledged(
        self, number: int, wanted: int, endpoint: str = DESMOS, *, after: int = 0
    ) -> None:
        """Check how many POSTs of an event an endpoint has acknowledged, `after` ms from now."""
        self.world.run(after)
        count = self.world.endpoints[endpoint].acknowledged(event_of(number)[0])
        self.check(count == wanted, f"event {number}: {wanted} acknowledged POSTs, not {count}")

    def end(self) -> None:
        """End all faults, let everything settle, and check every invariant."""
        self.world.heal()
        self.check(self.world.settle(), "it does not settle")
        self.failures += surprises(self.world, self.originals)


Play = Callable[[ScenarioStage], None]
"""A function that plays a scenario on a stage."""
SCENARIOS: Final[dict[int, tuple[str, str, Play]]] = {}
"""The title, the rules and the function of each scenario, by its number in the rules."""


def scenario(number: int, title: str, rules: str) -> Callable[[Play], Play]:
    """Return a decorator that registers a function as the scenario with a number."""

    def register(play: Play) -> Play:
        SCENARIOS[number] = (title, rules, play)
        return play

    return register


def play(number: int, seed: int = 0) -> ScenarioStage:
    """Play a scenario to its end, and return its stage, which has the failures."""
    stage = ScenarioStage(seed)
    stage.set()
    SCENARIOS[number][2](stage)
    stage.end()
    return stage
