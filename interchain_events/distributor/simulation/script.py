"""The player of scenario files: steps and expectations in virtual time, and then all invariants."""

from typing import Final

from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.simulation import file as files
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.scenery import BEGIN
from interchain_events.distributor.simulation.stage import ScenarioStage
from interchain_events.distributor.simulation.stories import event_of

ENDPOINT: Final = "https://{}.example/dlt"
"""The endpoint of a subscription, by its name."""
ANSWERED: Final = 31_000
"""Milliseconds after which every publication has been answered."""


def play_file(scenario: files.ScenarioFile, seed: int = 0) -> ScenarioStage:
    """Play a scenario to its end, and return its stage, which has the failures."""
    stage = ScenarioStage(seed)
    _Play(scenario, stage).run()
    stage.end()
    return stage


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


class _Play:
    """A scenario that is played on a stage."""

    def __init__(self, scenario: files.ScenarioFile, stage: ScenarioStage) -> None:
        self._scenario = scenario
        self._stage = stage
        self._until = 0
        """The time in ms up to which the scenario must run for all answers to be checked."""
        networks = [
            SimulatedNetwork(name, **table.model_dump())
            for name, table in scenario.networks.items()
        ]
        rules = Rules((), "", replication_delay=_ms(scenario.replication_delay))
        self._world = stage.set(*networks, replicas=scenario.replicas, start=False, rules=rules)

    def run(self) -> None:
        """Start the world, and take each step at its time."""
        world = self._world
        world.start()
        for name, table in self._scenario.subscriptions.items():
            world.subscribe(ENDPOINT.format(name), tuple(table.types), tuple(table.metadata))
        world.faults = self._scenario.faults
        for number, step in enumerate(self._scenario.steps, start=1):
            world.run(max(BEGIN + _ms(step.at) - world.now, 0))
            self._take(step, number)
        world.run(max(self._until - world.now, 0))

    def _take(self, step: files.Step, number: int) -> None:
        """Carry out one step. `number` names it in failures."""
        world = self._world
        match step:
            case files.PublishStep():
                self._publish(step, number)
            case files.StrangerStep():
                _, event = self._stage.event(
                    step.event, step.entity, environment=step.environment, kind=step.type
                )
                if step.notified:
                    world.publish_on(step.network, event)
                else:
                    world.networks[step.network].append(event, world.now)
            case files.NetworkStep():
                _change(world.networks[step.network], step.do)
            case files.SlowStep():
                world.networks[step.network].delay = _ms(step.seconds)
            case files.CutStep():
                log = world.networks[step.network].log
                world.cut(step.network, max(0, len(log) - step.events))
            case files.KillStep():
                process = world.processes[step.replica]
                if process.alive:
                    world.kill(process, back=False)
                    world.later(_ms(step.away), lambda: world.begin(process))
            case files.StoreStep():
                world.store_up = step.do == "store-up"
            case files.SubscriberStep():
                world.endpoints[ENDPOINT.format(step.subscription)].status = step.status or None
            case files.FaultsStep():
                world.faults = step.faults
            case files.RedriveStep():
                for letter in world.dead_letters():
                    code = world.redrive(letter)
                    self._stage.check(not code, f"steps.{number}: dead letter {letter}: {code}")
            case files.ExpectStep():
                self._expect(step, number)

    def _publish(self, step: files.PublishStep, number: int) -> None:
        """Publish an event, and schedule the check of its answer."""
        request = self._stage.publish(
            step.event, step.entity, environment=step.environment, kind=step.type
        )

        def check() -> None:
            answer = request.status or "an answer"
            self._stage.check(
                request.status == step.status, f"steps.{number}: status {step.status}, not {answer}"
            )

        if step.status is not None:
            self._world.later(ANSWERED, check)
            self._until = self._world.now + ANSWERED

    def _expect(self, step: files.ExpectStep, number: int) -> None:
        """Compare the counts that a step expects with those of the world."""
        world = self._world

        def check(name: str, expected: int, actual: int) -> None:
            self._stage.check(
                expected == actual,
                f"steps.{number}, after {step.at:g} s: {name}: {expected}, not {actual}",
            )

        if step.event is not None:
            event_id, _ = event_of(step.event)
            for name, count in step.on.items():
                actual = world.networks[name].count(event_id)
                check(f"event {step.event} on {name}", count, actual)
            for name, count in step.acknowledged.items():
                actual = world.endpoints[ENDPOINT.format(name)].acknowledged(event_id)
                check(f"event {step.event} acknowledged by {name}", count, actual)
        if step.calls is not None:
            check("calls", step.calls, sum(world.calls.values()))
        if step.dead_letters is not None:
            check("dead letters", step.dead_letters, len(world.dead_letters()))


def _change(network: SimulatedNetwork, action: str) -> None:
    """Change the behaviour of a network's adapter. `action` is that of a `NetworkStep`."""
    match action:
        case "down" | "up":
            network.up = action == "up"
        case "refuse" | "accept":
            network.refuses = "refused" if action == "refuse" else ""
        case _:
            network.lies = action == "lie"
            network.mute = action == "mute"
