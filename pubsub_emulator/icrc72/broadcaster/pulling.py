"""System events: what an addition names is asked of the orchestrator before it is applied (IC-38c)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from pubsub_emulator.icrc72 import keys, methods
from pubsub_emulator.icrc72 import messages as m
from pubsub_emulator.icrc72.alerts import read_broker_alert
from pubsub_emulator.icrc72.broadcaster.assignments import Assignments, Pulled
from pubsub_emulator.icrc72.broadcaster.state import BroadcasterState, PublicationView
from pubsub_emulator.icrc72.config import read_publication, read_subscription
from pubsub_emulator.icrc72.errors import ConfigError
from pubsub_emulator.icrc72.ic.canister import ONE_WAY, Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.namespaces import is_system, system_namespace
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.values import first

A = TypeVar("A")
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class _Pulling:
    pulled: Pulled
    left: int = 0
    again: list[Callable[[Context], None]] = field(default_factory=list)


@dataclass(slots=True)
class Pulling:
    """The system event that is being looked up, if there is one."""

    state: BroadcasterState
    role: RoleCanister
    orchestrator: Principal
    assignments: Assignments
    _pulling: _Pulling | None = None

    def waits(self) -> bool:
        """Whether a question must be asked again."""
        return self._pulling is not None and bool(self._pulling.again)

    def wake(self, ctx: Context) -> None:
        """Ask again what was not answered."""
        if self._pulling is not None:
            again, self._pulling.again = self._pulling.again, []
            for ask in again:
                ask(ctx)

    def handle(self, ctx: Context, notifications: tuple[m.EventNotification, ...]) -> None:
        """Take what the orchestrator notifies; an event that was applied is confirmed again."""
        mine = system_namespace("broadcaster", ctx.me)
        taken = [each for each in notifications if each.namespace == mine and ctx.caller == self.orchestrator]
        for each in taken:
            if each.eventId <= self.state.applied:
                self._confirm(ctx, each.notificationId)
            elif self._pulling is None or self._pulling.pulled.id < each.eventId:
                self._pull(ctx, each)
        if taken:
            methods.HANDLE.reply(ctx, None)

    def _confirm(self, ctx: Context, notification: int) -> None:
        self.role.ask(ctx, self.orchestrator, methods.CONFIRM, (notification,), kind=ONE_WAY)

    def _pull(self, ctx: Context, event: m.EventNotification) -> None:
        try:
            adds, removes = read_broker_alert(event.data)
        except ConfigError:
            self.assignments.delivery.count("unreadable")
            return  # it is not confirmed
        pulling = self._pulling = _Pulling(Pulled(event.eventId, event.notificationId, adds, removes))
        names: dict[str, None] = {}
        for fact, _ in adds:
            if fact[0] in {"pub", "relayer"} or (fact[0] == "sub" and not is_system(fact[1])):
                names[fact[1]] = None
            if fact[0] == "sub" and not is_system(fact[1]):
                self._ask_subscriptions(ctx, pulling, fact[1], fact[2])
            elif fact[0] == "rp":
                self._ask_replay(ctx, pulling, fact[1])
        for name in names:
            self._ask_publication(ctx, pulling, name)
        self._ended(ctx, pulling)

    def _ask(
        self, ctx: Context, it: _Pulling, method: methods.Method[A, R], page: A, then: Callable[[R], None]
    ) -> None:
        """A bounded call that is repeated until answered; the method for replays may be absent."""
        it.left += 1

        def got(ctx: Context, found: R | None) -> None:
            if found is None:
                it.again.append(ask)
            elif self._pulling is it:
                then(found)
                answered(ctx)

        def answered(ctx: Context) -> None:
            if self._pulling is it:
                it.left -= 1
                self._ended(ctx, it)

        def ask(ctx: Context) -> None:
            absent = answered if method.name == methods.GET_REPLAYS.name else None
            self.role.ask(ctx, self.orchestrator, method, page, got, absent=absent)

        ask(ctx)

    def _ask_subscriptions(self, ctx: Context, pulling: _Pulling, namespace: str, who: Principal) -> None:
        slices = (m.by_subscriber(who), m.by_namespace(namespace))
        page = m.ByNat(None, 1000, m.OrchestrationFilter(m.NO_STATISTICS, slices))

        def got(infos: tuple[m.SubscriptionInfo, ...]) -> None:
            read = ((each.subscriptionId, read_subscription(each.config)) for each in infos)
            found = tuple((number, config.filter, config.skip) for number, config in read if not config.stopped)
            pulling.pulled.subscriptions[namespace, who] = found

        self._ask(ctx, pulling, methods.GET_SUBSCRIPTIONS, page, got)

    def _ask_publication(self, ctx: Context, pulling: _Pulling, namespace: str) -> None:
        page = m.ByText(None, 1, m.OrchestrationFilter(m.NO_STATISTICS, (m.by_namespace(namespace),)))

        def got(infos: tuple[m.PublicationInfo, ...]) -> None:
            for each in infos:
                if each.namespace == namespace:
                    config, number = read_publication(each.config), each.publicationId
                    view = PublicationView(number, config.mode, config.partitions, config.priorities, config.trusted)
                    pulling.pulled.publications[namespace] = view

        self._ask(ctx, pulling, methods.GET_PUBLICATIONS, page, got)

    def _ask_replay(self, ctx: Context, pulling: _Pulling, number: int) -> None:
        def got(infos: tuple[m.ReplayStatus | None, ...]) -> None:
            for each in infos:
                if each is not None and each.replayId == number:
                    value = first(each.config, keys.REPLAY_ISOLATED)
                    if value is not None and value.value is True:
                        pulling.pulled.isolated.add(number)

        page = m.ByNat(number - 1, 1, m.OrchestrationFilter(m.NO_STATISTICS, ()))
        self._ask(ctx, pulling, methods.GET_REPLAYS, page, got)

    def _ended(self, ctx: Context, pulling: _Pulling) -> None:
        if pulling.left or self._pulling is not pulling:
            return
        self._pulling = None
        self.assignments.apply(ctx, pulling.pulled)
        self.state.applied = pulling.pulled.id
        self._confirm(ctx, pulling.pulled.notification)
