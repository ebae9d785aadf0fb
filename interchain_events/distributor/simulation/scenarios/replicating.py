"""Scenarios of networks' logs: replication, gaps, new and emptied parties, other distributors."""

from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.event import Notice, legacy_notice, parse_notification
from interchain_events.distributor.simulation.invariants import surprises
from interchain_events.distributor.simulation.network import PUBLISHER, SIGNER, SimulatedNetwork
from interchain_events.distributor.simulation.stage import ScenarioStage, scenario
from interchain_events.distributor.simulation.stories import event_of
from interchain_events.distributor.simulation.world import World, run_together


@scenario(11, "a stranger's event is notified", "31")
def _replicated(stage: ScenarioStage) -> None:
    stage.stranger("a")
    stage.counts(after=3_000, a=1, b=1)
    stage.calls(1)


@scenario(12, "own events are notified by both networks", "31")
def _no_echo(stage: ScenarioStage) -> None:
    stage.status(stage.publish(), 201)
    stage.calls(2, after=120_000)


@scenario(13, "three replicas, one notification five times", "31")
def _replicas(stage: ScenarioStage) -> None:
    world = stage.set(replicas=3)
    stage.stranger("a")
    endpoint = next(iter(world.networks["a"].hooks.values()))
    for _ in range(4):
        world.notify(endpoint, world.networks["a"].log[0])
    stage.counts(after=3_000, a=1, b=1)
    stage.calls(1)


@scenario(14, "events of both networks cross", "31")
def _crossing(stage: ScenarioStage) -> None:
    stage.stranger("a", 1, 1)
    stage.stranger("b", 2, 2)
    stage.counts(1, after=3_000, a=1, b=1)
    stage.counts(2, a=1, b=1)
    stage.calls(2)


def _without_notifying(stage: ScenarioStage, network: str, number: int) -> None:
    """Append an event to a network's log whose notification is lost."""
    stage.world.networks[network].append(stage.event(number, 0)[1], stage.world.now)


@scenario(15, "a notification is lost, the next one comes", "33")
def _lost(stage: ScenarioStage) -> None:
    _without_notifying(stage, "a", 1)
    stage.stranger("a", 2)
    stage.counts(1, after=3_000, a=1, b=1)
    stage.counts(2, a=1, b=1)


@scenario(16, "two events of one entity are notified in the wrong order", "33, 37")
def _swapped(stage: ScenarioStage) -> None:
    _without_notifying(stage, "a", 1)
    _without_notifying(stage, "a", 2)
    endpoint = next(iter(stage.world.networks["a"].hooks.values()))
    for notice in reversed(stage.world.networks["a"].log):
        stage.world.deliver(endpoint, notice)
    stage.world.run(3_000)
    order = [notice.id for notice in stage.world.networks["b"].log]
    stage.check(order == [event_of(1)[0], event_of(2)[0]], f"order on b: {order}")


@scenario(20, "one of three networks lacks the event", "31")
def _third(stage: ScenarioStage) -> None:
    stage.set(SimulatedNetwork("a"), SimulatedNetwork("b"), SimulatedNetwork("c"), start=False)
    stage.stranger("a")
    stage.stranger("b")
    stage.world.start()
    stage.counts(after=10_000, a=1, b=1, c=1)
    calls = {name for name, _ in stage.world.calls}
    stage.check(calls == {"c"}, f"called {calls}")


@scenario(21, "no adapter is up at the start", "32, 33")
def _late_adapters(stage: ScenarioStage) -> None:
    world = stage.set(SimulatedNetwork("a", up=False), SimulatedNetwork("b", up=False))
    world.run(100_000)
    _without_notifying(stage, "a", 1)
    for network in world.networks.values():
        network.up = True
    stage.counts(1, after=60_000, a=1, b=1)
    stage.stranger("b", 2)
    stage.counts(2, after=1_000, a=1, b=1)


@scenario(22, "a restart leaves one right subscription on each adapter", "32")
def _one_hook(stage: ScenarioStage) -> None:
    offers = (
        SimulatedNetwork("a"),
        SimulatedNetwork("b", lists_all=False),
        SimulatedNetwork("c", offers=("types",)),
    )
    world = stage.set(*offers)
    world.run(100_000)
    for _ in range(3):
        world.kill(world.processes[0])
        world.run(100_000)
    for name, network in world.networks.items():
        stage.check(len(network.hooks) == 1, f"{name} lists {network.hooks}")
        stage.check(len(network.unlisted) <= 1, f"{name} has {network.unlisted}")


@scenario(23, "a network joins", "36")
def _joins(stage: ScenarioStage) -> None:
    third = SimulatedNetwork("c", up=False)
    world = stage.set(
        SimulatedNetwork("a"), SimulatedNetwork("b"), third, rules=Rules((), "", page=3)
    )
    for number in range(1, 11):
        stage.publish(number, number % 2)
        world.run(100)
    world.networks["c"].append(stage.event(4, 0)[1], world.now)
    world.networks["c"].up = True
    world.run(120_000)
    for number in range(1, 11):
        stage.counts(number, a=1, b=1, c=1)
    for entity in (0, 1):
        order = [
            int(notice.id or "0", 16)
            for notice in world.networks["c"].log[1:]
            if int(notice.event.entity, 16) == entity
        ]
        stage.check(order == sorted(order), f"order on c: {order}")


@scenario(24, "a notification comes before the yes", "31")
def _early(stage: ScenarioStage) -> None:
    stage.world.networks["b"].delay = 1_500
    stage.status(stage.publish(), 201)
    stage.counts(after=60_000, a=1, b=1)
    stage.calls(2)


@scenario(25, "events are delayed, each by its own time", "35")
def _delayed(stage: ScenarioStage) -> None:
    world = stage.set(rules=Rules((), "", replication_delay=15_000))
    stage.stranger("a", 1, 1)
    world.run(5_000)
    stage.stranger("a", 2, 2)
    stage.stranger("b", 2, 2)
    stage.counts(1, after=9_000, b=0)
    stage.counts(1, after=2_000, b=1)
    stage.counts(2, after=20_000, a=1, b=1)
    stage.calls(1)


@scenario(37, "the store was emptied", "36")
def _emptied(stage: ScenarioStage) -> None:
    stage.status(stage.publish(), 201)
    stage.stranger("a", 2)
    stage.world.run(70_000)
    before = sum(stage.world.calls.values())
    stage.world.kill(stage.world.processes[0], back=False)
    stage.world.watch.empty()
    stage.world.start()
    stage.calls(before, after=120_000)
    for name, network in stage.world.networks.items():
        stage.check(len(network.hooks) == 1, f"{name} lists {network.hooks}")


@scenario(38, "two distributors share one network", "3")
def _strangers(stage: ScenarioStage) -> None:
    shared = SimulatedNetwork("b")
    far = SimulatedNetwork("c")
    world = stage.set(SimulatedNetwork("a"), shared)
    other = World(stage.seed + 1, {"b": shared, "c": far}, name="other")
    other.now = world.now
    other.start()
    run_together((world, other), 500)
    stage.stranger("a", 1)
    run_together((world, other), 100_000)
    counts = [network.count(event_of(1)[0]) for network in (world.networks["a"], shared, far)]
    stage.check(counts == [1, 1, 1], f"on a, b, c: {counts}")
    stage.failures += surprises(other, stage.originals)


@scenario(39, "what a public adapter sends is replicated as it is", "31, 1")
def _legacy(stage: ScenarioStage) -> None:
    event_id, event = stage.event(1)
    # The adapter has appended its chain id to the metadata.
    reported = event._replace(metadata=(*event.metadata, "2020"), iss=PUBLISHER)
    body = Notice(1, stage.world.now // 1000, reported, id=event_id, signer=SIGNER).body()
    network, notice = parse_notification({**body, "network": "a"})
    notice = legacy_notice(notice, "2020")
    stage.check(
        (network, notice.event.metadata) == ("a", event.metadata), "the chain id is in the metadata"
    )
    stage.world.networks["a"].log.append(notice)
    stage.originals[event_id].append(notice.event)
    stage.world.notify(next(iter(stage.world.networks["a"].hooks.values())), notice)
    stage.world.run(3_000)
    copies = [notice.event for notice in stage.world.networks["b"].log]
    stage.check(copies == [notice.event], f"{copies}")
    stage.check(bool(copies) and copies[0].iss == PUBLISHER, "the publisher is lost")
