"""Stories: randomized tests of a whole system under trouble.

Four broadcasters on two subnets, two publishers and several subscribers first run in a storm:
messages are late or refused, and canisters crash, pause, are upgraded or change their
subscriptions. Then they run in calm until nothing is under way. `check` compares the handled events
with the logs (I1, I2, R2, R7), and memory is checked against its bounds throughout (I9). All
choices are drawn from a seed.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.client import App, Config, EventNotification
from interchain_events.icrc72.deployment import PubSub, deploy
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import GUARANTEED, RUNNING, STOPPED, Context
from interchain_events.icrc72.ic.messaging import Observer, Schedule
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal, subnet_of
from interchain_events.icrc72.keys import FILTER, REPLAY, SKIP, SUSPENDED
from interchain_events.icrc72.keys import STOPPED as STOPPED_KEY
from interchain_events.icrc72.messages import SubscriptionUpdate
from interchain_events.icrc72.methods import UPDATE_SUBSCRIPTION
from interchain_events.icrc72.settings import DEFAULTS, Settings
from interchain_events.icrc72.subscriber.core import Subscriber
from interchain_events.icrc72.values import of
from pubsub_emulator.primitives.draws import Draws

NAMESPACES: Final = ("story.p", "story.q")
"""The namespaces of the two publishers."""

_LOOKS: Final = 20
"""The rounds between two checks of the bounds."""

SMALL: Final = replace(
    DEFAULTS,
    queue_notifications=80,
    store_bytes=40_000,
    silence=400,
    held=60,
    max_range=60,
    publisher_wait=16,
    repeat_most=64,
)
"""Small limits, so that stories reach them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a story."""

    seed: bytes
    rounds: int = 100
    """The rounds of the storm."""
    delay: int = 2
    """By how many rounds a message may be late."""
    refuse: int = 10
    """The percentage of requests that are refused."""
    load: int = 25
    """The percentage of rounds in which a publisher makes an event."""
    deaths: int = 0
    """How many broadcasters are removed."""
    pauses: int = 0
    """Whether broadcasters and the orchestrator are stopped for a while."""
    downs: int = 0
    """Whether subscribers are stopped for a while."""
    upgrades: int = 0
    """Whether canisters are upgraded."""
    churn: bool = False
    """Whether some subscribers change their subscriptions."""
    retires: int = 0
    """How many broadcasters are retired."""
    settings: Settings = SMALL

    @property
    def calm(self) -> bool:
        """Return whether order must hold, too, because no canister is away for long or dies."""
        return not (self.deaths or self.pauses or self.downs or self.retires)


# `drawn` chooses one of these by its position.
_TROUBLES: Final = (
    Plan(b""),
    Plan(b"", churn=True),
    Plan(b"", pauses=1),
    Plan(b"", downs=1),
    Plan(b"", deaths=1),
    Plan(b"", upgrades=2),
    Plan(b"", churn=True, upgrades=2),
    Plan(b"", deaths=1, pauses=1, downs=1, upgrades=1, churn=True),
)


def drawn(seed: bytes) -> Plan:
    """Return the plan for a seed: no trouble, one kind of it, or several together."""
    draws = Draws(seed, "plan")
    kind = draws.below(8)
    refuse = (0, 10, 30)[draws.below(3)]
    delay = draws.below(4)
    load = (5, 20, 50)[draws.below(3)]
    return replace(_TROUBLES[kind], seed=seed, delay=delay, refuse=refuse, load=load)


def _hash(number: int) -> int:
    """Return a number below 5 that a filter can test, and that is not in the order of ids."""
    return number * 7919 % 5


class Maker(App):
    """A publisher that makes an event at each call."""

    def on_call(self, ctx: Context, method: str, _arg: bytes) -> None:
        """Make an event in the namespace `method` that contains its own id."""
        if self.publisher is not None:
            publication = self.publisher.state.mine[method]
            number = publication.last + len(publication.waiting) + 1
            self.emit(ctx, method, {"n": number, "hash": _hash(number)})
        ctx.reply(b"")


class Witness(App):
    """A subscriber that remembers the namespaces and ids of the events that it has handled."""

    def keep_data(self) -> int:
        """Return the length of the list. It only grows, so no copy is needed to undo a trap."""
        return len(self.data)

    def undo_data(self, before: int) -> None:
        """Cut the list to its former length."""
        del self.data[before:]

    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        """Remember the event."""
        self.data.append((event.namespace, event.eventId))

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        """Change the subscription to the pattern `method`.

        The argument is `stop`, `start` or a filter. An empty argument removes the filter.
        """
        if self.subscriber is not None:
            wanted = self.subscriber.state.wanted[method]
            if wanted.id is not None:
                if arg in {b"stop", b"start"}:
                    change = (STOPPED_KEY, of(arg == b"stop"))
                else:
                    change = (FILTER, of(arg.decode() or None))
                subscription: Variant[Literal["id"], int] = Variant("id", wanted.id)
                update = SubscriptionUpdate(subscription, change)
                self.ask(
                    ctx,
                    self.subscriber.orchestrator,
                    UPDATE_SUBSCRIPTION,
                    (update,),
                    kind=GUARANTEED,
                )
        ctx.reply(b"")


Passes = Callable[[int], bool]
"""Returns whether the event with an id passes a subscriber's filter and skip."""


@dataclass(slots=True)
class CanisterStory:
    """A running story."""

    plan: Plan
    system: PubSub
    publishers: dict[str, Principal]
    """The publishers by namespace."""
    steady: dict[Principal, tuple[str, tuple[str, ...], Passes]]
    """Subscribers that do not change: their kind, patterns, and the events that pass."""
    guests: list[Principal]
    """Subscribers that may change their subscriptions. Their events are not checked."""
    paused: dict[Principal, int] = field(default_factory=dict)
    """Stopped canisters, and the rounds in which they are started again."""
    dead: dict[Principal, None] = field(default_factory=dict)
    """Broadcasters that were removed."""
    retired: dict[Principal, None] = field(default_factory=dict)
    """Broadcasters that the orchestrator retires."""
    upgrading: dict[Principal, None] = field(default_factory=dict)
    """Canisters that are stopping in order to be upgraded."""
    silent: bool = False
    """Whether a broadcaster has ever counted as dead."""

    @property
    def network(self) -> CanisterNetwork:
        """Return the network of the story."""
        return self.system.network


class Surprise(Exception):
    """An expectation is violated.

    For example, an event is lost, doubled or late, or a bound is exceeded.
    """


def _emulated(network: CanisterNetwork, settings: Settings) -> PubSub:
    return deploy(network, broadcasters=(0, 0, 1, 1), settings=settings)


def begin(
    plan: Plan,
    observers: tuple[Observer, ...] = (),
    deployed: Callable[[CanisterNetwork, Settings], PubSub] = _emulated,
) -> CanisterStory:
    """Set a story up: create the network and install all canisters.

    `deployed` installs the orchestrator and the broadcasters, which may be foreign implementations.
    """
    network = CanisterNetwork(
        2, seed=plan.seed, schedule=Schedule(plan.seed, plan.delay, plan.refuse)
    )
    network.observers.extend(observers)
    system = deployed(network, plan.settings)
    publishers: dict[str, Principal] = {}
    publication: Config = {REPLAY: True, "icrc77:max_range": plan.settings.max_range}
    for subnet, name in enumerate(NAMESPACES):
        app = Maker(
            system.orchestrator, plan.settings, publications={name: publication}, subscriptions={}
        )
        publishers[name] = network.create(subnet, app)
    steady: dict[Principal, tuple[str, tuple[str, ...], Passes]] = {}

    def follow(
        subnet: int, kind: str, names: tuple[str, ...], config: Config, passes: Passes
    ) -> None:
        """Install a subscriber, and note which events it must handle."""
        app = Witness(
            system.orchestrator,
            plan.settings,
            subscriptions=dict.fromkeys(names, config),
            publications={},
        )
        steady[network.create(subnet, app)] = (kind, names, passes)

    follow(1, "all", NAMESPACES, {}, lambda _number: True)
    follow(1, "three", NAMESPACES, {SKIP: [3, 0]}, lambda number: number % 3 == 0)
    follow(0, "all", ("story.*",), {}, lambda _number: True)
    follow(0, "hash", NAMESPACES[1:], {FILTER: "hash < 2"}, lambda number: _hash(number) < 2)
    guests: list[Principal] = []
    for subnet in (1, 0):
        guest = Witness(
            system.orchestrator, plan.settings, subscriptions={"story.**": {}}, publications={}
        )
        guests.append(network.create(subnet, guest))
    return CanisterStory(plan, system, publishers, steady, guests)


def finish(story: CanisterStory, each_round: Callable[[], None] = lambda: None) -> None:
    """Run the storm and the calm of a story, and check it.

    `each_round` is called in each round of the storm. Raises `Surprise` if an expectation is
    violated.
    """
    draws = Draws(story.plan.seed, "story")
    for _ in range(story.plan.rounds):
        _trouble(story, draws)
        for name, publisher in story.publishers.items():
            if draws.below(100) < story.plan.load:
                make(story, name, publisher)
        each_round()
        step(story)
    calm(story)
    check(story)


def step(story: CanisterStory) -> None:
    """Run one round, in which pauses end, upgrades go on, and bounds are checked now and then."""
    network = story.network
    for canister, until in list(story.paused.items()):
        if network.round >= until:
            del story.paused[canister]
            network.start(canister)
    for canister in list(story.upgrading):
        if network.status(canister) == STOPPED:
            del story.upgrading[canister]
            if not network.upgrade(canister, story.system.successor(canister)):
                raise Surprise(f"the upgrade of {canister.text} trapped")
            network.start(canister)
    network.step()
    if any(broker.dead for broker in story.system.brokers.values()):
        story.silent = True
    if not network.round % _LOOKS:
        _check_all_bounds(story)


def _trouble(story: CanisterStory, draws: Draws) -> None:
    """Draw and cause the trouble of a round. Each kind has its own probability."""
    plan = story.plan
    network = story.network
    brokers = story.system.broadcasters
    settled = network.round > plan.rounds // 4
    # The draws must stay in this order: another one would give other stories for the same seeds.
    if plan.pauses and draws.one_in(120):
        server = draws.choice([*brokers, story.system.orchestrator])
        _pause(story, server, draws.choice([30, 80, 150]))
    if plan.downs and draws.one_in(60):
        subscriber = draws.choice(list(story.steady))
        _pause(story, subscriber, draws.choice([40, 120, 300, 700]))
    if plan.deaths > len(story.dead) and settled and draws.one_in(40):
        _kill(story, draws.choice(brokers))
    if plan.retires > len(story.retired) and settled and draws.one_in(20):
        retiring = draws.choice(brokers)
        alone = any(subnet_of(dead) == subnet_of(retiring) for dead in story.dead)
        running = network.status(story.system.orchestrator) == RUNNING
        if running and not alone and story.system.registry.retire(retiring):
            story.retired[retiring] = None
    if plan.upgrades and draws.one_in(40):
        canister = draws.choice([*brokers, *story.steady, *story.publishers.values()])
        if network.status(canister) == RUNNING and canister not in story.paused:
            network.stop(canister)
            story.upgrading[canister] = None
    if plan.churn and draws.one_in(12):
        order = draws.choice([b"stop", b"start", b"", b"hash < 2", b"n > 10"])
        network.submit(ANONYMOUS, draws.choice(story.guests), "story.**", order)


def _kill(story: CanisterStory, broadcaster: Principal) -> None:
    """Remove a broadcaster, unless its subnet would then have no other one."""
    if any(subnet_of(retired) == subnet_of(broadcaster) for retired in story.retired):
        return
    story.dead[broadcaster] = None
    story.paused.pop(broadcaster, None)
    story.upgrading.pop(broadcaster, None)
    story.network.uninstall(broadcaster)


def _pause(story: CanisterStory, canister: Principal, rounds: int) -> None:
    """Stop a canister for some rounds, unless it is already stopped or being upgraded."""
    running = story.network.status(canister) == RUNNING
    if running and canister not in story.paused and canister not in story.upgrading:
        story.network.stop(canister)
        story.paused[canister] = story.network.round + rounds


def make(story: CanisterStory, name: str, publisher: Principal) -> None:
    """Let a publisher make its next event."""
    if story.network.status(publisher) == RUNNING:
        story.network.submit(ANONYMOUS, publisher, name, b"")


def calm(story: CanisterStory, most: int = 12_000) -> None:
    """Run without trouble until nothing is under way.

    A few more events are made, because subscribers notice missing events only by later ones. Raises
    `Surprise` if the network is not at rest after `most` rounds.
    """
    network = story.network
    for _ in range(100 if story.plan.calm else 400):
        step(story)
    network.schedule = Schedule(story.plan.seed)
    # Wait until all assignments are confirmed. Otherwise the last events could enter at a
    # broadcaster that does not yet serve the subscribers, and no later event would show that they
    # are missing.
    for _ in range(most):
        if not any(broker.dirty and not broker.dead for broker in story.system.brokers.values()):
            break
        step(story)
    for _ in range(10):
        for name, publisher in story.publishers.items():
            make(story, name, publisher)
        step(story)
    quiet_checks = 0
    for number in range(most):
        step(story)
        if number % 25 == 0:
            quiet_checks = 0 if restless(story) else quiet_checks + 1
            if quiet_checks >= 4:
                return
    raise Surprise(f"not at rest after {most} rounds of calm: {'; '.join(restless(story))[:600]}")


def restless(story: CanisterStory) -> list[str]:
    """Return a phrase for each reason why the network is not at rest."""
    reasons = [f"{canister.text[:5]} is away" for canister in (*story.paused, *story.upgrading)]
    for name, canister in story.publishers.items():
        publisher = story.system.publisher(canister)
        published = publisher.published(name)
        if published < len(publisher.state.log):
            reasons.append(f"{name}: {published} of {len(publisher.state.log)} published")
    return reasons + story.system.unrest(story.steady)


def check(story: CanisterStory) -> None:
    """Compare the events that subscribers have handled with the logs. Raises `Surprise`."""
    logs: dict[str, list[int]] = {}
    for name, publisher in story.publishers.items():
        log = story.system.publisher(publisher).state.log
        logs[name] = [row.event.eventId for row in log]
    for subscriber, (kind, names, passes) in story.steady.items():
        app = story.system.app(subscriber)
        followed = NAMESPACES if names == ("story.*",) else names
        for name in followed:
            place = f"{subscriber.text[:5]} ({kind}) of {name}"
            handled = [number for namespace, number in app.data if namespace == name]
            passing = [number for number in logs[name] if passes(number)]
            _check_one(story, place, handled, passing, app=app)
    _check_all_bounds(story)


def _check_all_bounds(story: CanisterStory) -> None:
    """Check the memory of all running broadcasters and steady subscribers. Raises `Surprise`."""
    for identity in story.system.broadcasters:
        if story.network.status(identity) == RUNNING:
            _check_bounds(story, story.system.broadcaster(identity))
    for canister in story.steady:
        if story.network.status(canister) == RUNNING:
            subscriber = story.system.app(canister).subscriber
            if subscriber is not None:
                _check_subscriber(story, subscriber)


def _check_one(
    story: CanisterStory, place: str, handled: list[int], passing: list[int], *, app: App
) -> None:
    """Compare the ids that a subscriber has handled with those that pass its filter and skip.

    All events from the first one handled on must be there, once. Order is only required if no event
    had to be replayed. `place` begins the text of a `Surprise`.
    """
    twice = [number for number, count in Counter(handled).items() if count > 1]
    if twice:
        raise Surprise(f"{place}: handled twice: {sorted(twice)[:8]}")
    strange = set(handled) - set(passing)
    if strange:
        raise Surprise(f"{place}: handled what does not pass: {sorted(strange)[:8]}")
    if not handled:
        # A subscriber that was away or moved may have registered after the last event.
        if passing and story.plan.calm and not story.silent:
            raise Surprise(f"{place}: handled nothing of {len(passing)}")
        return
    first = min(handled)
    seen = set(handled)
    missing = [number for number in passing if number >= first and number not in seen]
    if missing:
        raise Surprise(
            f"{place}: {len(missing)} missing from {missing[:8]}, first {first},"
            f" last {max(handled)}"
        )
    if not story.plan.calm or story.silent:
        return
    if any(broker.sick for broker in story.system.brokers.values()):
        return
    if app.subscriber is not None:
        state = app.subscriber.state
        if state.moved or any(error.code == SUSPENDED for error in state.errors):
            return
    if handled != sorted(handled):
        raise Surprise(f"{place}: out of order: {handled[:20]}")


def _check_bounds(story: CanisterStory, broadcaster: Broadcaster) -> None:
    """Check the memory of a broadcaster, and that its store counts references correctly (I9)."""
    state = broadcaster.state
    settings = story.plan.settings
    if state.bytes_own > settings.store_bytes or state.bytes_relayed > settings.store_bytes:
        raise Surprise(
            f"the store of a broadcaster holds {state.bytes_own} and {state.bytes_relayed} bytes"
        )
    for subscriber, queue in state.queues.items():
        if (
            queue.live > settings.queue_notifications
            or queue.replayed > settings.queue_notifications // 2
        ):
            raise Surprise(
                f"the queue of {subscriber.text} holds {queue.live} live, {queue.replayed} replayed"
                " notifications"
            )
        if queue.system > settings.system_queue + settings.gaps:
            raise Surprise(f"{queue.system} system events are queued for {subscriber.text}")
    if any(len(chain.seen) > settings.repeated for chain in state.chains.values()):
        raise Surprise(f"a chain remembers more than {settings.repeated} ids")
    refs = sum(stored.refs for stored in state.events.values())
    queued = sum(queue.live + queue.replayed for queue in state.queues.values())
    for relay in state.relays.values():
        queued += sum(len(lane.queue) for lane in relay.lanes.values())
    queued += sum(len(forwarded.lane.queue) for forwarded in state.forwarded.values())
    if refs != queued or any(stored.refs <= 0 for stored in state.events.values()):
        raise Surprise(
            f"a broadcaster's store counts {refs} uses of events, its queues have {queued}"
        )


def _check_subscriber(story: CanisterStory, subscriber: Subscriber) -> None:
    """Check the memory of a subscriber (I9)."""
    state = subscriber.state
    settings = story.plan.settings
    held_back = sum(len(chain.held) for chain in state.chains.values())
    if held_back > settings.held or len(state.gaps) > settings.gaps:
        raise Surprise(f"a subscriber holds {held_back} events and {len(state.gaps)} gaps")
    if any(len(chain.handled.first) > settings.ranges for chain in state.chains.values()):
        raise Surprise(f"a chain has more than {settings.ranges} ranges")
