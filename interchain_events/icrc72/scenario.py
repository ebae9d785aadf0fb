"""Execution of scenarios, and their results: events published and handled, and findings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain as chained

from interchain_events.icrc72.audit.core import Audit
from interchain_events.icrc72.audit.record import Finding
from interchain_events.icrc72.client import App, Config
from interchain_events.icrc72.deployment import PubSub, deploy
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.facts import Width
from interchain_events.icrc72.filters import lets_pass
from interchain_events.icrc72.ic.canister import EMPTY, RUNNING, STOPPED, Canister, Context
from interchain_events.icrc72.ic.messaging import Happening, Observer, Schedule
from interchain_events.icrc72.ic.network import GENESIS, CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.keys import FILTER, REPLAY, SKIP
from interchain_events.icrc72.messages import Event
from interchain_events.icrc72.namespaces import matches
from interchain_events.icrc72.scenario_file import (
    FaultModel,
    ModuleModel,
    PublisherModel,
    ScenarioModel,
    SubscriberModel,
)
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.stories import Witness
from interchain_events.icrc72.values import Skip
from pubsub_emulator.primitives.hashing import blake2_256

Log = Mapping[tuple[str, int], Event]
"""The events of a publisher by namespace and id."""
Modules = Callable[[ModuleModel, Principal], Canister]
"""Makes the canister of a WebAssembly module, given the orchestrator. Raises `IcError`."""


class Teller(App):
    """A publisher that makes an event with a number at each call."""

    def start(self) -> object:
        """Return 0, the number of events so far."""
        return 0

    def on_call(self, ctx: Context, method: str, _arg: bytes) -> None:
        """Make the next event in the namespace `method`."""
        self.data += 1
        self.emit(ctx, method, {"n": self.data})
        ctx.reply(b"")


class Digest:
    """An observer that hashes the trace, so that two runs can be compared (I13)."""

    def __init__(self) -> None:
        self.value = bytes(32)
        self.count = 0

    def happened(self, happening: Happening) -> None:
        """Extend the hash by an entry of the trace."""
        self.count += 1
        self.value = blake2_256(self.value + repr(happening).encode())


@dataclass(slots=True)
class Outcome:
    """The result of a scenario."""

    rounds: int
    digest: str
    """The hash of the trace, as `0x…`."""
    happenings: int
    """The number of entries of the trace."""
    published: dict[str, int]
    """The number of events that each publisher made."""
    taken: dict[str, int]
    """The number of these that their entries accepted."""
    refused: dict[str, str]
    """For each publisher or subscriber, the first registration error."""
    away: dict[str, str]
    """The canisters that do not run at the end, with their status (empty if killed)."""
    handled: dict[str, tuple[int, int, bool]]
    """For each running subscriber: events handled, events due, and whether they came in order.

    Events that pass its filter and skip are due from the first one that it has handled. If it has
    handled none, all are due.
    """
    replays: dict[int, str]
    """The state of each replay."""
    findings: list[Finding]
    """The findings of the audit."""
    names: dict[Principal, str] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Return whether all events were accepted and handled, without errors and findings."""
        complete = self.taken == self.published and all(
            handled == due for handled, due, _ in self.handled.values()
        )
        return complete and not self.findings and not self.refused


class Run:
    """A running scenario. `who` has its canisters by name."""

    def __init__(
        self,
        model: ScenarioModel,
        observers: tuple[Observer, ...] = (),
        *,
        modules: Modules | None = None,
        genesis: int = GENESIS,
    ) -> None:
        """Set up the network and all canisters.

        `modules` makes canisters of WebAssembly modules. Raises `Icrc72Error` if the scenario has
        modules and `modules` is `None`, and `IcError` if a module cannot be used.
        """
        self.model = model
        seed = model.seed.encode()
        schedule = Schedule(seed, model.delay, model.refuse)
        self.network = CanisterNetwork(model.subnets, seed=seed, schedule=schedule, genesis=genesis)
        self._modules = modules
        self.digest = Digest()
        self.network.observers.extend((self.digest, *observers))
        self.settings = replace(DEFAULTS, queue_notifications=model.queue)
        self.system: PubSub = deploy(
            self.network, model.kind, broadcasters=model.broadcasters, settings=self.settings
        )
        self.audit = Audit(self.system.orchestrator, self.system.broadcasters)
        self.network.observers.append(self.audit)
        self.who: dict[str, Principal] = {"orchestrator": self.system.orchestrator}
        for index, broadcaster in enumerate(self.system.broadcasters):
            self.who[f"broadcaster {index}"] = broadcaster
        self._create_canisters()
        self._upgrading: list[str] = []
        """The canisters that are stopping in order to be upgraded."""

    def _create_canisters(self) -> None:
        """Create the publishers, the subscribers and the canisters of modules."""
        for publisher in self.model.publisher:
            self.who[publisher.name] = self.network.create(
                publisher.subnet, self._teller(publisher)
            )
        for subscriber in self.model.subscriber:
            self.who[subscriber.name] = self.network.create(
                subscriber.subnet, self._listener(subscriber)
            )
        for module in self.model.canister:
            controllers = [Principal.from_text(controller) for controller in module.controllers]
            self.who[module.name] = self.network.create(
                module.subnet, self._made_of(module), controllers=controllers
            )

    def _teller(self, model: PublisherModel) -> Teller:
        config: Config = {REPLAY: True} if model.replay else {}
        return Teller(
            self.system.orchestrator,
            self.settings,
            publications={model.namespace: config},
            subscriptions={},
        )

    def _listener(self, model: SubscriberModel) -> Witness:
        config: dict[str, object] = {}
        if model.filter is not None:
            config[FILTER] = model.filter
        if model.skip is not None:
            config[SKIP] = model.skip
        return Witness(
            self.system.orchestrator,
            self.settings,
            subscriptions={model.pattern: config},
            publications={},
        )

    def _made_of(self, model: ModuleModel) -> Canister:
        """Make the canister of a module. Raises `Icrc72Error` and `IcError`, see `__init__`."""
        if self._modules is None:
            raise Icrc72Error(
                f"{model.name} is a module, and nothing here makes canisters of modules"
            )
        return self._modules(model, self.system.orchestrator)

    def finish(self) -> Outcome:
        """Run all rounds, and then more until the network is at rest, and return the result.

        The added rounds have neither delays nor refusals. There are at most ten times as many as
        the scenario has, plus 3,000. The network is at rest when nothing was under way for 150
        rounds.
        """
        for _ in range(self.model.rounds):
            self.step()
        self.network.schedule = Schedule(self.model.seed.encode())
        quiet = 0
        for _ in range(self.model.rounds * 10 + 3000):
            self.step()
            quiet = quiet + 1 if not self._busy() else 0
            if quiet > 150:
                break
        return self.outcome()

    def step(self) -> None:
        """Run one round with its faults, upgrades and events."""
        now = self.network.round + 1
        for fault in self.model.fault:
            if fault.round == now:
                self._strike(fault)
        for name in list(self._upgrading):
            if self.network.status(self.who[name]) == STOPPED:
                self._upgrading.remove(name)
                self._upgrade(name)
        for publisher in self.model.publisher:
            due = (
                publisher.first <= now <= publisher.until
                and (now - publisher.first) % publisher.every == 0
            )
            if due and now <= self.model.rounds:
                self.network.submit(ANONYMOUS, self.who[publisher.name], publisher.namespace, b"")
        self.network.step()

    def _strike(self, fault: FaultModel) -> None:
        """Cause a fault. Raises `Icrc72Error` if this is impossible."""
        canister = self.who[fault.who]
        if fault.what == "kill":
            self.network.uninstall(canister)
        elif fault.what == "start":
            self.network.start(canister)
        elif fault.what == "retire":
            if not self.system.registry.retire(canister):
                raise Icrc72Error(
                    f"{fault.who} cannot be retired: no other broadcaster serves its subnet"
                )
        else:
            self.network.stop(canister)
            if fault.what == "upgrade":
                self._upgrading.append(fault.who)

    def _upgrade(self, name: str) -> None:
        """Upgrade a stopped canister to the same code. Raises `Icrc72Error` if that traps."""
        modules = {module.name: module for module in self.model.canister}
        if name in modules:
            code = self._made_of(modules[name])
        else:
            code = self.system.successor(self.who[name])
        if not self.network.upgrade(self.who[name], code):
            raise Icrc72Error(f"the upgrade of {name} trapped")
        self.network.start(self.who[name])

    def _busy(self) -> bool:
        """Return whether anything is under way."""
        subscribers = (self.who[subscriber.name] for subscriber in self.model.subscriber)
        return bool(self.system.unrest(subscribers))

    def outcome(self) -> Outcome:
        """Return the result so far."""
        logs = self.system.logs()
        statuses = {name: self.network.status(canister) for name, canister in self.who.items()}
        published: dict[str, int] = {}
        taken: dict[str, int] = {}
        for publisher in self.model.publisher:
            name = publisher.name
            if statuses[name] != EMPTY:
                published[name] = self._made(publisher)
                taken[name] = self.system.publisher(self.who[name]).published(publisher.namespace)
        handled = {
            subscriber.name: self._judge(subscriber, logs)
            for subscriber in self.model.subscriber
            if statuses[subscriber.name] == RUNNING
        }
        replays: dict[int, str] = {}
        if statuses["orchestrator"] != EMPTY:
            for number, replay in self.system.registry.state.replays.items():
                replays[number] = replay.state
        return Outcome(
            rounds=self.network.round,
            digest="0x" + self.digest.value.hex(),
            happenings=self.digest.count,
            published=published,
            taken=taken,
            refused=self._refused(),
            away={name: status for name, status in statuses.items() if status != RUNNING},
            handled=handled,
            replays=replays,
            findings=self.audit.finish(logs, self.network.running(), at_rest=not self._busy()),
            names={canister: name for name, canister in self.who.items()},
        )

    def _made(self, model: PublisherModel) -> int:
        """Return how many events a publisher has made, even if it is not registered yet."""
        state = self.system.publisher(self.who[model.name]).state
        return len(state.log) + len(state.mine[model.namespace].waiting)

    def _refused(self) -> dict[str, str]:
        """Return the first registration error of each app that has one."""
        first_errors: dict[str, str] = {}
        for model in (*self.model.publisher, *self.model.subscriber):
            if self.network.status(self.who[model.name]) == EMPTY:
                continue
            app = self.system.app(self.who[model.name])
            published = {} if app.publisher is None else app.publisher.state.mine
            followed = {} if app.subscriber is None else app.subscriber.state.wanted
            errors = [publication.error for publication in published.values() if publication.error]
            errors += [wanted.error for wanted in followed.values() if wanted.error]
            if errors:
                first_errors[model.name] = errors[0]
        return first_errors

    def _judge(
        self, model: SubscriberModel, logs: Mapping[Principal, Log]
    ) -> tuple[int, int, bool]:
        """Return how many events a subscriber has handled and should have, and whether in order."""
        data = self.system.app(self.who[model.name]).data
        skip = None if model.skip is None else Skip(*model.skip)
        due = 0
        in_order = True
        names = dict.fromkeys(name for name, _ in chained.from_iterable(logs.values()))
        for name in names:
            if not matches(model.pattern, name):
                continue
            handled = [number for namespace, number in data if namespace == name]
            in_order = in_order and handled == sorted(handled)
            first = min(handled, default=0)
            width = Width(model.filter, skip)
            for event in chained.from_iterable(log.values() for log in logs.values()):
                if event.namespace == name and event.eventId >= first and lets_pass(width, event):
                    due += 1
        return len(data), due, in_order
