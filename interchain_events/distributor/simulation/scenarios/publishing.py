"""Scenarios of publications: answers, adapters that fail, unclear calls, and killed processes."""

from interchain_events.distributor.core import rows
from interchain_events.distributor.event import parse_publication
from interchain_events.distributor.simulation.invariants import surprises
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stage import ScenarioStage, scenario
from interchain_events.distributor.simulation.stories import event_of
from interchain_events.pallets.dome_events.global_id import NoGlobalIdError


@scenario(1, "an event is published", "30")
def _published(stage: ScenarioStage) -> None:
    stage.status(stage.publish(), 201)
    stage.counts(a=1, b=1)


@scenario(2, "an adapter is down and comes up", "30")
def _one_down(stage: ScenarioStage) -> None:
    stage.world.networks["a"].up = False
    stage.status(stage.publish(), 201)
    stage.counts(after=600_000, a=0, b=1)
    stage.world.networks["a"].up = True
    stage.counts(after=120_000, a=1, b=1)


@scenario(3, "both adapters are down and come up", "30")
def _both_down(stage: ScenarioStage) -> None:
    for network in stage.world.networks.values():
        network.up = False
    stage.status(stage.publish(), 202)
    stage.world.run(600_000)
    for network in stage.world.networks.values():
        network.up = True
    stage.counts(after=120_000, a=1, b=1)


@scenario(4, "one adapter refuses, then both", "30")
def _refused(stage: ScenarioStage) -> None:
    stage.world.networks["a"].refuses = "400 bad event"
    stage.status(stage.publish(), 201)
    letters = stage.world.dead_letters()
    stage.check(
        [(letter.target, letter.reason) for letter in letters.values()]
        == [("n:a", "400 bad event")],
        f"{letters}",
    )
    stage.world.networks["b"].refuses = "400 bad event"
    stage.status(stage.publish(2), 422)
    second, _ = event_of(2)
    published = [
        name
        for name in stage.world.networks
        if second in stage.world.store.members(rows.published(name))
    ]
    stage.check(not published, f"refused, but in the published sets of {published}")


@scenario(5, "a known event is published again", "30")
def _known(stage: ScenarioStage) -> None:
    stage.status(stage.publish(), 201)
    stage.world.run(5_000)
    stage.status(stage.publish(), 200)
    stage.calls(2)


@scenario(6, "a known id with another entity", "22")
def _conflict(stage: ScenarioStage) -> None:
    stage.status(stage.publish(), 201)
    event_id, event = event_of(1)
    stage.status(stage.world.publish(event_id, event._replace(entity=f"0x{9:064x}")), 409)
    stage.calls(2)


@scenario(7, "a publication without an id, and a log entry without one", "21, 22")
def _without_id(stage: ScenarioStage) -> None:
    _, event = event_of(1)
    nameless = event._replace(data_location="https://node.example/e")
    try:
        parse_publication(nameless.body())
        stage.check(False, "accepted")
    except NoGlobalIdError as error:
        stage.check(str(error) == "hl-missing", f"{error}")
    stage.world.publish_on("a", nameless)
    stage.stranger("a", 2)
    stage.world.run(5_000)
    stage.check(len(stage.world.store.rows(rows.QUARANTINE)) == 1, "not quarantined")
    stage.counts(2, a=1, b=1)


@scenario(8, "the same event twenty times at once", "30")
def _twenty(stage: ScenarioStage) -> None:
    world = stage.set(replicas=3)
    requests = [stage.publish() for _ in range(20)]
    world.run(40_000)
    statuses = [request.status for request in requests]
    stage.check(set(statuses) == {201}, f"{statuses}")
    stage.calls(2)


@scenario(9, "one adapter is slow", "30")
def _slow(stage: ScenarioStage) -> None:
    stage.world.networks["a"].delay = 2_000
    requests = [stage.publish(number, number) for number in (1, 2, 3)]
    stage.world.run(200)
    for number in (1, 2, 3):
        stage.counts(number, a=0, b=1)
    for request in requests:
        stage.status(request, 201)


@scenario(10, "one adapter is slow, then fails", "30")
def _slow_then_down(stage: ScenarioStage) -> None:
    stage.world.networks["a"].up = False
    stage.status(stage.publish(), 201)
    stage.counts(a=0, b=1)
    stage.world.networks["a"].up = True
    stage.counts(after=120_000, a=1, b=1)


@scenario(17, "processes are killed at every effect in turn", "30, 31")
def _killed(stage: ScenarioStage) -> None:
    for effect in range(12):
        world = stage.set(start=False)
        world.kill_at = effect
        world.start()
        world.run(500)
        stage.stranger("a", 1, 1)
        stage.publish(2, 2)
        world.heal()
        stage.check(world.settle(), f"killed at effect {effect}: it does not settle")
        stage.failures += [
            f"killed at effect {effect}: {violation}"
            for violation in surprises(world, stage.originals)
        ]
        stage.counts(1, a=1, b=1)


@scenario(18, "an event is published, and the answer is lost", "30")
def _answer_lost(stage: ScenarioStage) -> None:
    # Without a subscription, no notification reports the event, so it must be probed.
    silent = SimulatedNetwork("a", unique=False, offers=())
    world = stage.set(silent, SimulatedNetwork("b", unique=False))
    world.networks["a"].mute = True
    stage.status(stage.publish(), 201)
    stage.counts(after=120_000, a=1, b=1)
    stage.calls(2)


@scenario(19, "an adapter accepts an event and does not publish it", "34")
def _lie(stage: ScenarioStage) -> None:
    stage.world.networks["a"].lies = True
    stage.status(stage.publish(), 201)
    stage.world.networks["a"].lies = False
    stage.counts(after=50_000, a=0, b=1)
    stage.counts(after=20_000, a=1, b=1)


@scenario(36, "the store is down", "12")
def _store_down(stage: ScenarioStage) -> None:
    stage.world.store_up = False
    stage.status(stage.publish(), 503)
    stage.calls(0)
