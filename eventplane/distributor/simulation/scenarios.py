"""The scenarios of the distributor's rules (`ied.md`, section 8), each run in virtual time and checked."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pubsub_emulator.eventplane.distributor.core import rows
from pubsub_emulator.eventplane.distributor.core.rules import Rules
from pubsub_emulator.eventplane.distributor.event import Event, legacy_notice, parse_notification, parse_publication
from pubsub_emulator.eventplane.distributor.simulation.invariants import surprises
from pubsub_emulator.eventplane.distributor.simulation.network import PUBLISHER, SIGNER, Network
from pubsub_emulator.eventplane.distributor.simulation.stories import event_of
from pubsub_emulator.eventplane.distributor.simulation.world import Request, World, run_together
from pubsub_emulator.runtime.pallet_dome_events.global_id import NoGlobalIdError

DESMOS: Final = "https://desmos.example/dlt"


@dataclass
class Stage:
    """What a scenario plays on: a world, its events, and what was found not to hold."""

    seed: int
    failures: list[str] = field(default_factory=list)
    originals: dict[str, list[Event]] = field(default_factory=dict)
    world: World = field(default_factory=World)

    def set(self, *networks: Network, replicas: int = 1, start: bool = True, **rules: Any) -> World:
        """Make the world: A and B, both up, unless said otherwise."""
        named = {network.name: network for network in networks or (Network("a"), Network("b"))}
        self.world = World(self.seed, named, replicas, rules=replace(Rules((), ""), **rules))
        if start:
            self.world.start()
            self.world.run(500)
        return self.world

    def event(self, number: int, entity: int = 0, **how: str) -> tuple[str, Event]:
        """An event, noted as published by somebody."""
        name, event = event_of(number, entity, **how)
        self.originals.setdefault(name, []).append(event)
        return name, event

    def publish(self, number: int = 1, entity: int = 0, **how: str) -> Request:
        """Publish an event through the distributor."""
        return self.world.publish(*self.event(number, entity, **how))

    def stranger(self, network: str, number: int = 1, entity: int = 0, **how: str) -> str:
        """Have a stranger publish on one network; returns the id."""
        name, event = self.event(number, entity, **how)
        self.world.publish_on(network, event)
        return name

    def that(self, holds: bool, sentence: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.failures.append(sentence)

    def status(self, request: Request, wanted: int, within: int = 31_000) -> None:
        """The request is answered with that status in time."""
        self.world.run_until(lambda: request.status is not None, within)
        self.that(request.status == wanted, f"status {wanted}, not {request.status}")

    def counts(self, number: int = 1, **wanted: int) -> None:
        """How often an event is on each network."""
        found = {name: self.world.networks[name].count(event_of(number)[0]) for name in wanted}
        self.that(found == wanted, f"event {number}: {wanted}, not {found}")

    def calls(self, wanted: int) -> None:
        """How many publications were made in all."""
        found = sum(self.world.calls.values())
        self.that(found == wanted, f"{wanted} calls, not {found}")

    def acknowledged(self, number: int, wanted: int, endpoint: str = DESMOS) -> None:
        """How many POSTs of an event an endpoint acknowledged."""
        found = self.world.endpoints[endpoint].acknowledged(event_of(number)[0])
        self.that(found == wanted, f"event {number}: {wanted} acknowledged POSTs, not {found}")

    def end(self) -> None:
        """Faults end; everything settles, and every invariant holds."""
        self.world.heal()
        self.that(self.world.settle(), "it does not settle")
        self.failures += surprises(self.world, self.originals)


Play = Callable[[Stage], None]
SCENARIOS: Final[dict[int, tuple[str, str, Play]]] = {}
"""Title, rules and play of each scenario, by its number in the rules."""


def scenario(number: int, title: str, rules: str) -> Callable[[Play], Play]:
    """Register a play."""

    def register(play: Play) -> Play:
        SCENARIOS[number] = (title, rules, play)
        return play

    return register


def play(number: int, seed: int = 0) -> Stage:
    """Play a scenario to its end; its failures are in the stage."""
    stage = Stage(seed)
    SCENARIOS[number][2](stage)
    stage.end()
    return stage


@scenario(1, "an event is published", "30")
def _published(stage: Stage) -> None:
    stage.set()
    stage.status(stage.publish(), 201)
    stage.counts(a=1, b=1)


@scenario(2, "an adapter is down and comes up", "30")
def _one_down(stage: Stage) -> None:
    world = stage.set()
    world.networks["a"].up = False
    stage.status(stage.publish(), 201)
    world.run(600_000)
    stage.counts(a=0, b=1)
    world.networks["a"].up = True
    world.run(120_000)
    stage.counts(a=1, b=1)


@scenario(3, "both adapters are down and come up", "30")
def _both_down(stage: Stage) -> None:
    world = stage.set()
    for network in world.networks.values():
        network.up = False
    stage.status(stage.publish(), 202)
    world.run(600_000)
    for network in world.networks.values():
        network.up = True
    world.run(120_000)
    stage.counts(a=1, b=1)


@scenario(4, "one adapter refuses, then both", "30")
def _refused(stage: Stage) -> None:
    world = stage.set()
    world.networks["a"].refuses = "400 bad event"
    stage.status(stage.publish(), 201)
    letters = world.dead_letters()
    stage.that([(each.target, each.reason) for each in letters.values()] == [("n:a", "400 bad event")], f"{letters}")
    world.networks["b"].refuses = "400 bad event"
    stage.status(stage.publish(2), 422)
    second = event_of(2)[0]
    marked = [name for name in world.networks if second in world.store.members(rows.published(name))]
    stage.that(not marked, f"refused, but in the published sets of {marked}")


@scenario(5, "a known event is published again", "30")
def _known(stage: Stage) -> None:
    stage.set()
    stage.status(stage.publish(), 201)
    stage.world.run(5_000)
    stage.status(stage.publish(), 200)
    stage.calls(2)


@scenario(6, "a known id with another entity", "22")
def _conflict(stage: Stage) -> None:
    stage.set()
    stage.status(stage.publish(), 201)
    event_id, event = event_of(1)
    stage.status(stage.world.publish(event_id, event._replace(entity=f"0x{9:064x}")), 409)
    stage.calls(2)


@scenario(7, "a publication without an id, and a log entry without one", "21, 22")
def _without_id(stage: Stage) -> None:
    world = stage.set()
    _, event = event_of(1)
    nameless = event._replace(data_location="https://node.example/e")
    try:
        parse_publication(nameless.body())
        stage.that(False, "accepted")
    except NoGlobalIdError as error:
        stage.that(str(error) == "hl-missing", f"{error}")
    world.publish_on("a", nameless)
    stage.stranger("a", 2)
    world.run(5_000)
    stage.that(len(world.store.rows(rows.QUARANTINE)) == 1, "not quarantined")
    stage.counts(2, a=1, b=1)


@scenario(8, "the same event twenty times at once", "30")
def _twenty(stage: Stage) -> None:
    world = stage.set(replicas=3)
    requests = [stage.publish() for _ in range(20)]
    world.run(40_000)
    stage.that({request.status for request in requests} == {201}, f"{[each.status for each in requests]}")
    stage.calls(2)


@scenario(9, "one adapter is slow", "30")
def _slow(stage: Stage) -> None:
    world = stage.set()
    world.networks["a"].delay = 2_000
    requests = [stage.publish(number, number) for number in (1, 2, 3)]
    world.run(200)
    for number in (1, 2, 3):
        stage.counts(number, a=0, b=1)
    for request in requests:
        stage.status(request, 201)


@scenario(10, "one adapter is slow, then fails", "30")
def _slow_then_down(stage: Stage) -> None:
    world = stage.set()
    world.networks["a"].up = False
    stage.status(stage.publish(), 201)
    stage.counts(a=0, b=1)
    world.networks["a"].up = True
    world.run(120_000)
    stage.counts(a=1, b=1)


@scenario(11, "a stranger's event is notified", "31")
def _replicated(stage: Stage) -> None:
    stage.set()
    stage.stranger("a")
    stage.world.run(3_000)
    stage.counts(a=1, b=1)
    stage.calls(1)


@scenario(12, "own events are notified by both networks", "31")
def _no_echo(stage: Stage) -> None:
    stage.set()
    stage.status(stage.publish(), 201)
    stage.world.run(120_000)
    stage.calls(2)


@scenario(13, "three replicas, one notification five times", "31")
def _replicas(stage: Stage) -> None:
    world = stage.set(replicas=3)
    stage.stranger("a")
    endpoint = next(iter(world.networks["a"].hooks.values()))
    for _ in range(4):
        world.notify(endpoint, world.networks["a"].log[0])
    world.run(3_000)
    stage.counts(a=1, b=1)
    stage.calls(1)


@scenario(14, "events of both networks cross", "31")
def _crossing(stage: Stage) -> None:
    stage.set()
    stage.stranger("a", 1, 1)
    stage.stranger("b", 2, 2)
    stage.world.run(3_000)
    stage.counts(1, a=1, b=1)
    stage.counts(2, a=1, b=1)
    stage.calls(2)


def _without_notifying(stage: Stage, network: str, number: int, entity: int = 0) -> None:
    """A stranger publishes, and the notification is lost."""
    stage.world.networks[network].append(stage.event(number, entity)[1], stage.world.now)


@scenario(15, "a notification is lost, the next one comes", "33")
def _lost(stage: Stage) -> None:
    stage.set()
    _without_notifying(stage, "a", 1)
    stage.stranger("a", 2)
    stage.world.run(3_000)
    stage.counts(1, a=1, b=1)
    stage.counts(2, a=1, b=1)


@scenario(16, "two events of one entity are notified in the wrong order", "33, 37")
def _swapped(stage: Stage) -> None:
    world = stage.set()
    _without_notifying(stage, "a", 1)
    _without_notifying(stage, "a", 2)
    endpoint = next(iter(world.networks["a"].hooks.values()))
    for notice in reversed(world.networks["a"].log):
        world.deliver(endpoint, notice)
    world.run(3_000)
    found = [notice.id for notice in world.networks["b"].log]
    stage.that(found == [event_of(1)[0], event_of(2)[0]], f"order on b: {found}")


@scenario(17, "processes are killed at every effect in turn", "30, 31")
def _killed(stage: Stage) -> None:
    for effect in range(12):
        world = stage.set(start=False)
        world.kill_at = effect
        world.start()
        world.run(500)
        stage.stranger("a", 1, 1)
        stage.publish(2, 2)
        world.heal()
        stage.that(world.settle(), f"killed at effect {effect}: it does not settle")
        stage.failures += [f"killed at effect {effect}: {each}" for each in surprises(world, stage.originals)]
        stage.counts(1, a=1, b=1)


@scenario(18, "the deed is done, the answer is lost", "30")
def _answer_lost(stage: Stage) -> None:
    world = stage.set(Network("a", unique=False, offers=()), Network("b", unique=False))  # no notification tells of it
    world.networks["a"].mute = True
    stage.status(stage.publish(), 201)
    world.run(120_000)
    stage.counts(a=1, b=1)
    stage.calls(2)


@scenario(19, "a yes is a lie", "34")
def _lie(stage: Stage) -> None:
    world = stage.set()
    world.networks["a"].lies = True
    stage.status(stage.publish(), 201)
    world.networks["a"].lies = False
    world.run(50_000)
    stage.counts(a=0, b=1)
    world.run(20_000)
    stage.counts(a=1, b=1)


@scenario(20, "one of three networks lacks the event", "31")
def _third(stage: Stage) -> None:
    stage.set(Network("a"), Network("b"), Network("c"), start=False)
    stage.stranger("a")
    stage.stranger("b")
    stage.world.start()
    stage.world.run(10_000)
    stage.counts(a=1, b=1, c=1)
    calls = {name for name, _ in stage.world.calls}
    stage.that(calls == {"c"}, f"called {calls}")


@scenario(21, "no adapter is up at the start", "32, 33")
def _late_adapters(stage: Stage) -> None:
    world = stage.set(Network("a", up=False), Network("b", up=False))
    world.run(100_000)
    _without_notifying(stage, "a", 1)
    for network in world.networks.values():
        network.up = True
    world.run(60_000)
    stage.counts(1, a=1, b=1)
    stage.stranger("b", 2)
    world.run(1_000)
    stage.counts(2, a=1, b=1)


@scenario(22, "a restart leaves one right subscription on each adapter", "32")
def _one_hook(stage: Stage) -> None:
    offers = (Network("a"), Network("b", lists_all=False), Network("c", offers=("types",)))
    world = stage.set(*offers)
    world.run(100_000)
    for _ in range(3):
        world.kill(world.processes[0])
        world.run(100_000)
    for name, network in world.networks.items():
        stage.that(len(network.hooks) == 1, f"{name} lists {network.hooks}")
        stage.that(len(network.unlisted) <= 1, f"{name} has {network.unlisted}")


@scenario(23, "a network joins", "36")
def _joins(stage: Stage) -> None:
    world = stage.set(Network("a"), Network("b"), Network("c", up=False), page=3)
    for number in range(1, 11):
        stage.publish(number, number % 2)
        world.run(100)
    world.networks["c"].append(stage.event(4, 0)[1], world.now)
    world.networks["c"].up = True
    world.run(120_000)
    for number in range(1, 11):
        stage.counts(number, a=1, b=1, c=1)
    for entity in (0, 1):
        found = [
            int(notice.id or "0", 16)
            for notice in world.networks["c"].log[1:]
            if int(notice.event.entity, 16) == entity
        ]
        stage.that(found == sorted(found), f"order on c: {found}")


@scenario(24, "a notification comes before the yes", "31")
def _early(stage: Stage) -> None:
    world = stage.set()
    world.networks["b"].delay = 1_500
    stage.status(stage.publish(), 201)
    world.run(60_000)
    stage.counts(a=1, b=1)
    stage.calls(2)


@scenario(25, "events are delayed, each by its own time", "35")
def _delayed(stage: Stage) -> None:
    world = stage.set(replication_delay=15_000)
    stage.stranger("a", 1, 1)
    world.run(5_000)
    stage.stranger("a", 2, 2)
    stage.stranger("b", 2, 2)
    world.run(9_000)
    stage.counts(1, b=0)
    world.run(2_000)
    stage.counts(1, b=1)
    world.run(20_000)
    stage.counts(2, a=1, b=1)
    stage.calls(1)


@scenario(26, "both networks notify, the subscriber gets one POST", "41")
def _one_post(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    stage.status(stage.publish(), 201)
    world.run(60_000)
    stage.that(len(world.endpoints[DESMOS].got) == 1, f"{len(world.endpoints[DESMOS].got)} POSTs")


@scenario(27, "two subscriptions match", "41")
def _two(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    world.subscribe("https://other.example/t")
    stage.stranger("a")
    world.run(3_000)
    stage.acknowledged(1, 1)
    stage.acknowledged(1, 1, "https://other.example/t")


@scenario(28, "a subscriber answers 500, then 200", "41")
def _second_time(stage: Stage) -> None:
    world = stage.set()
    subscription, _ = world.subscribe(DESMOS)
    world.endpoints[DESMOS].answers = [500]
    event_id = stage.stranger("a")
    world.run(1_000)
    stage.that(event_id not in world.store.members(rows.notified(subscription)), "marked after a 500")
    world.run(5_000)
    stage.that(event_id in world.store.members(rows.notified(subscription)), "not marked after a 200")
    stage.acknowledged(1, 1)


@scenario(29, "a dead subscriber, a dead letter, a redrive", "41")
def _dead_letter(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    world.endpoints[DESMOS].status = None
    stage.stranger("a")
    world.run(5 * 3_600_000)
    got = world.endpoints[DESMOS].got
    stage.that(len(got) == 12, f"{len(got)} POSTs")
    letters = world.dead_letters()
    stage.that(len(letters) == 1, f"{len(letters)} dead letters")
    world.endpoints[DESMOS].status = 200
    for letter in letters:
        stage.that(not world.redrive(letter), "not taken")
    world.run(1_000)
    stage.acknowledged(1, 1)


@scenario(30, "killed after the POST", "41")
def _killed_after_post(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    stage.stranger("a")
    world.run_until(lambda: bool(world.endpoints[DESMOS].got), 5_000)
    world.kill(world.processes[0])
    world.run(60_000)
    got = world.endpoints[DESMOS].got
    stage.that(len(got) == 2, f"{len(got)} POSTs")
    stage.that(len({webhook for webhook, _, _ in got}) == 1, "several webhook ids")


@scenario(31, "a restart keeps subscriptions and sets", "3")
def _restart(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    stage.status(stage.publish(), 201)
    world.run(3_000)
    sets = [world.store.members(rows.published(name)) for name in world.networks]
    world.kill(world.processes[0])
    world.run(10_000)
    stage.that(sets == [world.store.members(rows.published(name)) for name in world.networks], "the sets changed")
    stage.calls(2)
    stage.stranger("a", 2)
    world.run(3_000)
    stage.acknowledged(1, 1)
    stage.acknowledged(2, 1)


@scenario(32, "a subscription to every type of one environment", "40")
def _environment(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS, ("*",), ("prd",))
    for number, environment in enumerate(("sbx", "dev", "prd", "lcl"), 1):
        stage.stranger("a", number, number, environment=environment)
    world.run(5_000)
    for number in (1, 2, 3, 4):
        stage.acknowledged(number, int(number == 3))


@scenario(33, "an equal subscription is made again", "10")
def _equal(stage: Stage) -> None:
    world = stage.set()
    first, fresh = world.subscribe(DESMOS, ("x", "y"), ("prd",))
    second, again = world.subscribe(DESMOS, ("y", "x"), ("prd",))
    stage.that((first, fresh, again) == (second, True, False), "two subscriptions")
    stage.that(len(world.store.rows(rows.SUBSCRIPTIONS)) == 1, "two rows")


@scenario(35, "a notification without the key", "13")
def _forged(stage: Stage) -> None:
    world = stage.set()
    world.networks["a"].append(stage.event(1)[1], world.now)
    code = world.deliver(
        f"{world.rules.public_url}/internal/eventNotification/a/{'0' * 32}", world.networks["a"].log[0]
    )
    stage.that(code == "unauthorized", f"answered {code!r}")
    stage.calls(0)


@scenario(36, "the store is down", "12")
def _store_down(stage: Stage) -> None:
    world = stage.set()
    world.store_up = False
    stage.status(stage.publish(), 503)
    stage.calls(0)


@scenario(37, "the store was emptied", "36")
def _emptied(stage: Stage) -> None:
    world = stage.set()
    stage.status(stage.publish(), 201)
    stage.stranger("a", 2)
    world.run(70_000)
    before = sum(world.calls.values())
    world.kill(world.processes[0], back=False)
    world.watch.empty()
    world.start()
    world.run(120_000)
    stage.calls(before)
    for name, network in world.networks.items():
        stage.that(len(network.hooks) == 1, f"{name} lists {network.hooks}")


@scenario(38, "two distributors share one network", "3")
def _strangers(stage: Stage) -> None:
    shared, far = Network("b"), Network("c")
    world = stage.set(Network("a"), shared)
    other = World(stage.seed + 1, {"b": shared, "c": far}, name="other")
    other.now = world.now
    other.start()
    run_together((world, other), 500)
    stage.stranger("a", 1)
    run_together((world, other), 100_000)
    counts = [network.count(event_of(1)[0]) for network in (world.networks["a"], shared, far)]
    stage.that(counts == [1, 1, 1], f"on a, b, c: {counts}")
    stage.failures += surprises(other, stage.originals)


@scenario(39, "what a public adapter sends is replicated as it is", "31, 1")
def _legacy(stage: Stage) -> None:
    world = stage.set()
    event_id, event = stage.event(1)
    sent = {
        "id": 0,
        "timestamp": world.now // 1000,
        "eventType": event.event_type,
        "dataLocation": event.data_location,
        "relevantMetadata": [*event.metadata, "2020"],
        "entityIDHash": event.entity,
        "previousEntityHash": event.previous,
        "publisherAddress": PUBLISHER,
        "ethereumAddress": SIGNER,
        "network": "a",
    }
    network, notice = parse_notification(sent)
    notice = legacy_notice(notice, "2020")
    stage.that((network, notice.event.metadata) == ("a", event.metadata), "the chain id is in the metadata")
    world.networks["a"].log.append(notice)
    stage.originals[event_id].append(notice.event)
    world.notify(next(iter(world.networks["a"].hooks.values())), notice)
    world.run(3_000)
    copies = [each.event for each in world.networks["b"].log]
    stage.that(copies == [notice.event], f"{copies}")
    stage.that(bool(copies) and copies[0].iss == PUBLISHER, "the publisher is lost")
