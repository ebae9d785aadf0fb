"""The core of the orchestrator: its methods, batches and the list of broadcasters (IC-30, IC-34).

`Orchestrator` puts together the parts that do the work and share one `Registry`: publications,
subscriptions, access by lists, the planner of assignments, the messenger that sends system events,
moves of publishers, replays and queries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from interchain_events.icrc72 import methods
from interchain_events.icrc72.errors import ConfigError, NamespaceError
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import Principal, subnet_of
from interchain_events.icrc72.messages import Result, Results, Valid
from interchain_events.icrc72.methods import refused, too_many
from interchain_events.icrc72.orchestrator.access import Access, Question
from interchain_events.icrc72.orchestrator.messenger import Messenger
from interchain_events.icrc72.orchestrator.moves import Moves
from interchain_events.icrc72.orchestrator.planner import Planner
from interchain_events.icrc72.orchestrator.publications import Hook, Publications
from interchain_events.icrc72.orchestrator.queries import Queries
from interchain_events.icrc72.orchestrator.replays import Replays
from interchain_events.icrc72.orchestrator.state import Broker, Registry
from interchain_events.icrc72.orchestrator.subscriptions import Subscriptions
from interchain_events.icrc72.role import (
    Confirmed,
    Core,
    Handler,
    Query,
    RoleCanister,
    earliest,
    restored,
)
from interchain_events.icrc72.settings import DEFAULTS, Settings

I = TypeVar("I")  # noqa: E741 — an item of a batch
T = TypeVar("T")
Judge = Callable[[Context, I, set[Question]], Result[T]]
"""Judges and executes one item of a batch; the set has the questions without an answer."""
Ask = Callable[[Context, I], list[Question]]
"""Returns the questions to list canisters without whose answers an item cannot be judged."""


class Orchestrator(Core):
    """The role of the orchestrator.

    `broadcasters` are the canisters that may register as broadcasters. `may_publish` is an
    additional check of publishers. With `everywhere`, any broadcaster may serve a member, even if
    the member's subnet has its own. `valid` is a list canister and the name of its list: clients
    that ask for the broadcasters are then referred to that list.
    """

    name = "orchestrator"
    state: Registry

    def __init__(
        self,
        broadcasters: Sequence[Principal] = (),
        settings: Settings = DEFAULTS,
        *,
        may_publish: Hook | None = None,
        everywhere: bool = False,
        valid: tuple[Principal, str] | None = None,
    ) -> None:
        self.state = Registry()
        self.settings = settings
        self._listed = tuple(broadcasters)
        self._valid_list = valid
        self._everywhere = everywhere
        self._may_publish = may_publish or (lambda _caller, _namespace: True)

    def attach(self, role: RoleCanister) -> None:
        """Join a canister, and register for confirmations of system events."""
        super().attach(role)
        role.confirmer(self._confirmed, self.settings.batch_items)
        self._wire()

    def _wire(self) -> None:
        """Make the parts for the current state. They are made again when `resume` replaces it."""
        shared = self.state, self.settings, self.role
        self.lookups = Queries(self.state, self.settings)
        self.planner = Planner(
            self.state, everywhere=self._everywhere, elsewhere=self.settings.other_subnets
        )
        self.access = Access(*shared)
        self.messenger = Messenger(*shared, self.planner)
        self.moves = Moves(*shared, self.planner, self.lookups)
        self.move_publisher = self.moves.move_publisher
        self.retire = self.moves.retire
        with_access = (*shared, self.planner, self.access)
        self.replays = Replays(*with_access)
        self.publications = Publications(
            *with_access, replays=self.replays, may_publish=self._may_publish
        )
        self.subscriptions = Subscriptions(
            *with_access, replays=self.replays, met=self.publications.match, died=self._died
        )
        self._methods = self._update_methods()

    def updates(self) -> Mapping[str, Handler]:
        """Return the update methods by name."""
        return self._methods

    def _update_methods(self) -> Mapping[str, Handler]:
        """Make the update methods, which work on the current parts."""
        publications = self.publications
        subscriptions = self.subscriptions
        return {
            **self._batch(methods.REGISTER_PUBLICATION, publications.register, publications.ask),
            **self._batch(methods.REGISTER_SUBSCRIPTION, subscriptions.register, subscriptions.ask),
            **self._batch(methods.UPDATE_PUBLICATION, publications.update, publications.ask_update),
            **self._batch(methods.UPDATE_SUBSCRIPTION, subscriptions.update),
            **self._batch(methods.DELETE_PUBLICATION, publications.delete),
            **self._batch(methods.DELETE_SUBSCRIPTION, subscriptions.delete),
            methods.GET_VALID.name: self._valid(methods.GET_VALID),
            methods.GET_VALID_ONE.name: self._valid(methods.GET_VALID_ONE),
            methods.REGISTER_REPLAY.name: self.replays.register,
            **self._batch(methods.CANCEL_REPLAY, self.replays.cancel),
            **self._batch(methods.REPLAY_STATUS, self.replays.report),
        }

    def queries(self) -> Mapping[str, Query]:
        """Return the queries by name."""
        return self.lookups.queries()

    def begin(self, ctx: Context) -> None:
        """List the broadcasters with which the role was made."""
        self.state.last_wake = ctx.now
        for broadcaster in self._listed:
            self.add_broadcaster(broadcaster)

    def resume(self, state: object) -> None:
        """Continue with a saved state.

        A canister is upgraded only when its calls have ended, so no call with an alert or a payment
        is under way.
        """
        self.state = restored(state, Registry)
        for member in self.state.members.values():
            if member.alert is not None:
                member.alert.busy = False
        for replay in self.state.replays.values():
            replay.paying = False
        self._wire()

    def add_broadcaster(self, broadcaster: Principal) -> None:
        """Add a broadcaster to the list of those that may register."""
        self.state.brokers.setdefault(broadcaster, Broker(broadcaster, subnet_of(broadcaster) or 0))

    def wake(self, ctx: Context) -> None:
        """Send due system events, and let every part do its due work.

        If the messenger finds dead broadcasters, they are replaced at once, and the messenger runs
        again: the members that they served must be informed about other broadcasters.
        """
        # Alerts age only while the orchestrator runs. Otherwise, after it was stopped itself, all
        # broadcasters would seem dead.
        elapsed = max(1, min(ctx.now - self.state.last_wake, self.settings.system_repeat))
        self.state.last_wake = ctx.now
        dead = self.messenger.wake(ctx, elapsed)
        for broadcaster in dead:
            self._died(broadcaster)
        if dead:
            self.messenger.wake(ctx, 0)
        self._check_lists(ctx)
        self.moves.wake(ctx)
        self.lookups.refresh(ctx, self.role)
        self.replays.wake(ctx)

    def due(self, now: int) -> int | None:
        """Return the next round in which a part has work to do."""
        return earliest(self._dues(now), now)

    def _dues(self, now: int) -> Iterator[int | None]:
        """Yield the next round in which each part has work to do."""
        yield self.messenger.due(now)
        yield self.replays.due(now)
        yield self.lookups.due()
        yield self.moves.due(now)
        if any(publication.config.canisters for publication in self.state.publications.values()):
            yield self.state.last_check + self.settings.list_retry

    def _died(self, broadcaster: Principal) -> None:
        """Mark a broadcaster as dead, and give its members to other broadcasters (IC-47c)."""
        self.state.brokers[broadcaster].dead = True
        self.replays.broadcaster_died(broadcaster)
        self.moves.broadcaster_died(broadcaster)
        self.planner.move_all()

    def _check_lists(self, ctx: Context) -> None:
        """Ask list canisters again if their answers are old, and then decide on access again."""
        if ctx.now < self.state.last_check + self.settings.list_retry:
            return
        self.state.last_check = ctx.now
        stale = self.access.stale(ctx.now)
        self.access.ask(ctx, stale, lambda _ctx, _silent: self.publications.judge_listed())

    def _batch(
        self,
        method: methods.Method[tuple[I, ...], Results[T]],
        judge: Judge[I, T],
        ask: Ask[I] | None = None,
    ) -> Mapping[str, Handler]:
        """Return a method that judges the items of a batch independently (IC-30).

        First, list canisters are asked the questions of all items, each question once. An item
        whose configuration or namespace is malformed is answered with ImproperConfig. Items beyond
        the limit are not judged and get one error together, at the end of the results.
        """

        def run(ctx: Context, items: tuple[I, ...]) -> None:
            caller = ctx.caller
            taken = items[: self.settings.batch_items]

            def judged(ctx: Context, silent: set[Question]) -> None:
                # This may run in the execution of a list canister's answer, which has another
                # caller.
                ctx.caller = caller
                results: list[Result[T]] = []
                for item in taken:
                    try:
                        results.append(judge(ctx, item, silent))
                    except (ConfigError, NamespaceError) as error:
                        results.append(refused("ImproperConfig", str(error)))
                if len(items) > len(taken):
                    results.append(too_many(self.settings.batch_items))
                method.reply(ctx, tuple(results))

            questions: list[Question] = []
            if ask is not None:
                for item in taken:
                    questions += ask(ctx, item)
            self.access.ask(ctx, list(dict.fromkeys(questions)), judged)

        return {method.name: run}

    def _valid(self, method: methods.Method[None, Valid]) -> Callable[[Context], None]:
        """Return a method that names the broadcasters of the caller's subnet (IC-35)."""

        def run(ctx: Context) -> None:
            if self._valid_list is not None:
                elsewhere: Variant[Literal["icrc75"], tuple[Principal, str]] = Variant(
                    "icrc75", self._valid_list
                )
                method.reply(ctx, elsewhere)
                return
            subnet = subnet_of(ctx.caller)
            alive = [
                broker
                for broker in self.state.brokers.values()
                if broker.registered and not broker.dead
            ]
            # With one of these settings, any broadcaster may serve the caller, even if the caller's
            # subnet has its own.
            anywhere = self._everywhere or self.settings.other_subnets
            ids = tuple(
                sorted(broker.id for broker in alive if anywhere or broker.subnet == subnet)
            )
            valid: Variant[Literal["list"], tuple[Principal, ...]] = Variant("list", ids)
            method.reply(ctx, valid)

        return run

    def _confirmed(self, ctx: Context, number: int) -> Confirmed:
        """Take the confirmation of a system event by a broadcaster or a member."""
        broker = self.state.brokers.get(ctx.caller)
        if broker is not None and self.messenger.confirmed(broker, number):
            return "Ok"
        return self.messenger.direct_confirmed(ctx.caller, number)
