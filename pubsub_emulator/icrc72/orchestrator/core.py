"""The orchestrator: its methods by name, batches, waking and the list of broadcasters (IC-30, IC-34)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.canister import Context
from pubsub_emulator.eventplane.ic.principal import Principal, subnet_of
from pubsub_emulator.eventplane.icrc72.errors import ConfigError, NamespaceError
from pubsub_emulator.eventplane.icrc72.orchestrator.access import Access, Question
from pubsub_emulator.eventplane.icrc72.orchestrator.messenger import Messenger
from pubsub_emulator.eventplane.icrc72.orchestrator.moves import Moves
from pubsub_emulator.eventplane.icrc72.orchestrator.planner import Planner
from pubsub_emulator.eventplane.icrc72.orchestrator.publications import Hook, Publications
from pubsub_emulator.eventplane.icrc72.orchestrator.queries import Queries
from pubsub_emulator.eventplane.icrc72.orchestrator.replay_queries import ReplayQueries
from pubsub_emulator.eventplane.icrc72.orchestrator.replays import Replays
from pubsub_emulator.eventplane.icrc72.orchestrator.results import err, too_many
from pubsub_emulator.eventplane.icrc72.orchestrator.state import Broker, Registry
from pubsub_emulator.eventplane.icrc72.orchestrator.subscriptions import Subscriptions
from pubsub_emulator.eventplane.icrc72.role import Core, Handler, Query, RoleCanister, reply
from pubsub_emulator.eventplane.icrc72.settings import DEFAULTS, Settings

Judge = Callable[[Context, Any, set[Question]], Variant]
Ask = Callable[[Context, Any], list[Question]]


class Orchestrator(Core):
    """The role of the orchestrator."""

    name = "orchestrator"

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
        self._valid_list = valid
        self.settings = settings
        self._listed = tuple(broadcasters)
        self._may_publish = may_publish or (lambda _caller, _namespace: True)
        self._everywhere = everywhere

    def attach(self, role: RoleCanister) -> None:
        """Confirm the canister's notifications, too."""
        super().attach(role)
        role.confirmer(self._confirmed, self.settings.batch_items)
        self._wire()

    def _wire(self) -> None:
        self.planner = Planner(self.state, self.settings, everywhere=self._everywhere)
        self.access = Access(self.state, self.settings, self.role)
        self.messenger = Messenger(self.state, self.planner, self.settings, self.role)
        self.asked = Queries(self.state, self.settings)
        self.moves = Moves(self.state, self.planner, self.asked, self.settings, self.role)
        self.replays = Replays(self.state, self.planner, self.access, self.settings, self.role)
        parts = self.state, self.settings, self.planner, self.access
        self.publications = Publications(*parts, replays=self.replays, may_publish=self._may_publish)
        self.subscriptions = Subscriptions(
            *parts, replays=self.replays, publications=self.publications, died=self._died
        )

    def updates(self) -> Mapping[str, Handler]:
        """Methods by name."""
        publications, subscriptions = self.publications, self.subscriptions
        judged: dict[str, tuple[Judge, Ask | None]] = {
            "icrc72_register_publication": (publications.register, publications.ask),
            "icrc72_register_subscription": (subscriptions.register, subscriptions.ask),
            "icrc72_update_publication": (publications.update, publications.ask_update),
            "icrc72_update_subscription": (subscriptions.update, None),
            "icrc72_delete_publication": (publications.delete, None),
            "icrc72_delete_subscription": (subscriptions.delete, None),
        }
        return {
            **{method: self._batch(method, judge, ask) for method, (judge, ask) in judged.items()},
            "icrc72_get_valid_broadcasters": self._valid("icrc72_get_valid_broadcasters"),
            "icrc72_get_valid_broadcaster": self._valid("icrc72_get_valid_broadcaster"),
            **self.replays.updates(),
        }

    def queries(self) -> Mapping[str, Query]:
        """Queries by name."""
        return {**self.asked.queries(), **ReplayQueries(self.state, self.settings).queries()}

    def begin(self, ctx: Context) -> None:
        """Know the broadcasters of the list."""
        self.state.last_wake = ctx.now
        for each in self._listed:
            self.state.brokers[each] = Broker(each, subnet_of(each) or 0)

    def saved(self) -> Any:
        """Everything remembered."""
        return self.state

    def resume(self, state: Any) -> None:
        """Go on with what was remembered; calls under way have ended before the upgrade."""
        self.state = state
        for member in self.state.members.values():
            if member.alert is not None:
                member.alert.busy = False
        for replay in self.state.replays.values():
            replay.paying = False
        self._wire()

    def add_broadcaster(self, broadcaster: Principal) -> None:
        """Put a broadcaster on the list; it may register from now on."""
        if broadcaster not in self.state.brokers:
            self.state.brokers[broadcaster] = Broker(broadcaster, subnet_of(broadcaster) or 0)

    # Waking

    def wake(self, ctx: Context) -> None:
        """Send what is due, ask what must be asked again."""
        elapsed = max(1, min(ctx.now - self.state.last_wake, self.settings.system_repeat))
        self.state.last_wake = ctx.now
        dead = self.messenger.wake(ctx, elapsed)
        for each in dead:
            self._died(each)
        if dead:
            self.messenger.wake(ctx, 0)
        self._check_lists(ctx)
        self.moves.wake(ctx)
        self.asked.refresh(ctx, self.role)
        self.replays.wake(ctx)

    def due(self, now: int) -> int | None:
        """The next round in which there is something to do."""
        found = [
            each
            for each in (self.messenger.due(now), self.replays.due(now), self.asked.due(), self.moves.due(now))
            if each is not None
        ]
        if any(each.config.canisters for each in self.state.publications.values()):
            found.append(self.state.last_check + self.settings.list_retry)
        return min(found, default=None)

    def _died(self, broadcaster: Principal) -> None:
        self.state.brokers[broadcaster].dead = True
        self.replays.broadcaster_died(broadcaster)
        self.moves.broadcaster_died(broadcaster)
        self.planner.move_all()

    def _check_lists(self, ctx: Context) -> None:
        if ctx.now < self.state.last_check + self.settings.list_retry:
            return
        self.state.last_check = ctx.now
        stale = self.access.stale(ctx.now)
        self.access.ask(ctx, stale, lambda _ctx, _silent: self.publications.judge_listed())

    # Batches

    def _batch(self, method: str, judge: Judge, ask: Ask | None) -> Callable[[Context, tuple[Any, ...]], None]:
        """A method over items that are independent; what list canisters must say is asked first (IC-30)."""

        def run(ctx: Context, items: tuple[Any, ...]) -> None:
            caller = ctx.caller
            taken = items[: self.settings.batch_items]

            def judged(ctx: Context, silent: set[Question]) -> None:
                ctx.caller = caller
                results = [_judged(judge, ctx, item, silent) for item in taken]
                if len(items) > len(taken):
                    results.append(too_many(self.settings.batch_items))
                reply(ctx, method, tuple(results))

            questions = [] if ask is None else [each for item in taken for each in ask(ctx, item)]
            self.access.ask(ctx, list(dict.fromkeys(questions)), judged)

        return run

    # Broadcasters

    def _valid(self, method: str) -> Callable[[Context], None]:
        def run(ctx: Context) -> None:
            if self._valid_list is not None:
                reply(ctx, method, Variant("icrc75", self._valid_list))
                return
            subnet = subnet_of(ctx.caller)
            valid = tuple(
                each.id
                for each in sorted(self.state.brokers.values(), key=lambda broker: broker.id)
                if each.registered and not each.dead and (self._everywhere or each.subnet == subnet)
            )
            reply(ctx, method, Variant("list", valid))

        return run

    def _confirmed(self, ctx: Context, number: int) -> str:
        broker = self.state.brokers.get(ctx.caller)
        if broker is not None and self.messenger.confirmed(broker, number):
            return "Ok"
        return self.messenger.direct_confirmed(ctx.caller, number)

    def move_publisher(self, namespace: str, publisher: Principal) -> bool:
        """Move a publisher to other broadcasters: its entries are emptied first. False when it has none."""
        return self.moves.move_publisher(namespace, publisher)

    def retire(self, broadcaster: Principal) -> bool:
        """Move everybody off a broadcaster and take it off the list. False when nobody else serves its subnet."""
        return self.moves.retire(broadcaster)


def _judged(judge: Judge, ctx: Context, item: Any, silent: set[Question]) -> Variant:
    try:
        return judge(ctx, item, silent)
    except (ConfigError, NamespaceError) as error:
        return err("ImproperConfig", str(error))


__all__ = ["Hook", "Orchestrator"]
