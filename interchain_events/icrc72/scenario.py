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
            had == due for had, due, _ in self.handled.values()
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
        for at, each in enumerate(self.system.broadcasters):
            self.who[f"broadcaster {at}"] = each
        for publisher in model.publisher:
            self.who[publisher.name] = self.network.create(
                publisher.subnet, self._teller(publisher)
            )
        for subscriber in model.subscriber:
            self.who[subscriber.name] = self.network.create(
                subscriber.subnet, self._listener(subscriber)
            )
        for module in model.canister:
            controllers = [Principal.from_text(each) for each in module.controllers]
            self.who[module.name] = self.network.create(
                module.subnet, self._made_of(module), controllers=controllers
            )
        self._upgrading: list[str] = []
        """The canisters that are stopping in order to be upgraded."""

    def _teller(self, model: PublisherModel) -> Teller:
        config: Config = {REPLAY: True} if model.replay else {}
        return Teller(
            self.system.orchestrator,
            self.settings,
            publications={model.namespace: config},
            subscriptions={},
        )

    def _listener(self, model: SubscriberModel) -> Witness:
        given = {FILTER: model.filter, SKIP: model.skip}
        chosen = {model.pattern: {key: value for key, value in given.items() if value is not None}}
        return Witness(
            self.system.orchestrator, self.settings, subscriptions=chosen, publications={}
        )

    def _made_of(self, model: ModuleModel) -> Canister:
        if self._modules is None:
            raise Icrc72Error(
                f"{model.name} is a module, and nothing here makes canisters of modules"
            )
        return self._modules(model, self.system.orchestrator)

    def finish(self) -> Outcome:
        """Run all rounds, and then more until the network is at rest, and return the result.

        Without delays and refusals, up to ten times as many rounds plus 3,000 are added. The
        network is at rest if nothing has been under way for 150 rounds.
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
        who = self.who[fault.who]
        if fault.what == "kill":
            self.network.uninstall(who)
        elif fault.what == "start":
            self.network.start(who)
        elif fault.what == "retire":
            if not self.system.registry.retire(who):
                raise Icrc72Error(
                    f"{fault.who} cannot be retired: no other broadcaster serves its subnet"
                )
        else:
            self.network.stop(who)
            if fault.what == "upgrade":
                self._upgrading.append(fault.who)

    def _upgrade(self, name: str) -> None:
        """Upgrade a stopped canister to the same code. Raises `Icrc72Error` if that traps."""
        module = next((each for each in self.model.canister if each.name == name), None)
        made = self.system.successor(self.who[name]) if module is None else self._made_of(module)
        if not self.network.upgrade(self.who[name], made):
            raise Icrc72Error(f"the upgrade of {name} trapped")
        self.network.start(self.who[name])

    def _busy(self) -> bool:
        return bool(self.system.unrest(self.who[each.name] for each in self.model.subscriber))

    def outcome(self) -> Outcome:
        """Return the result so far."""
        logs = self.system.logs()
        publishers = [
            each
            for each in self.model.publisher
            if self.network.status(self.who[each.name]) != EMPTY
        ]
        running = [
            each
            for each in self.model.subscriber
            if self.network.status(self.who[each.name]) == RUNNING
        ]
        handled = {each.name: self._judge(each, logs) for each in running}
        lost = self.network.status(self.system.orchestrator) == EMPTY
        findings = self.audit.finish(logs, self.network.running(), at_rest=not self._busy())
        return Outcome(
            self.network.round,
            "0x" + self.digest.value.hex(),
            self.digest.count,
            {each.name: self._made(each) for each in publishers},
            {
                each.name: self.system.publisher(self.who[each.name]).published(each.namespace)
                for each in publishers
            },
            self._refused(),
            {
                name: status
                for name, who in self.who.items()
                if (status := self.network.status(who)) != RUNNING
            },
            handled,
            {}
            if lost
            else {
                number: each.state for number, each in self.system.registry.state.replays.items()
            },
            findings,
            {who: name for name, who in self.who.items()},
        )

    def _made(self, model: PublisherModel) -> int:
        """Return how many events a publisher has made, even if it is not registered yet."""
        state = self.system.publisher(self.who[model.name]).state
        return len(state.log) + len(state.mine[model.namespace].waiting)

    def _refused(self) -> dict[str, str]:
        """Return the first registration error of each app that has one."""
        found: dict[str, str] = {}
        for each in (*self.model.publisher, *self.model.subscriber):
            if self.network.status(self.who[each.name]) == EMPTY:
                continue
            app = self.system.app(self.who[each.name])
            published = {} if app.publisher is None else app.publisher.state.mine
            followed = {} if app.subscriber is None else app.subscriber.state.wanted
            errors = [mine.error for mine in published.values() if mine.error]
            errors += [wanted.error for wanted in followed.values() if wanted.error]
            if errors:
                found[each.name] = errors[0]
        return found

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
            mine = [number for namespace, number in data if namespace == name]
            in_order = in_order and mine == sorted(mine)
            published = chained.from_iterable(log.values() for log in logs.values())
            events = [event for event in published if event.namespace == name]
            width = Width(model.filter, skip)
            passing = [each.eventId for each in events if lets_pass(width, each)]
            due += sum(number >= min(mine, default=0) for number in passing)
        return len(data), due, in_order
