"""The orchestrator's methods: registering, changing, deleting, confirming (IC-30 to IC-34)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.canister import Context
from pubsub_emulator.eventplane.ic.principal import Principal, subnet_of
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.errors import ConfigError, NamespaceError
from pubsub_emulator.eventplane.icrc72.messages import (
    GenericError,
    PublicationDelete,
    PublicationRegistration,
    PublicationUpdate,
    SubscriptionDelete,
    SubscriptionRegistration,
    SubscriptionUpdate,
)
from pubsub_emulator.eventplane.icrc72.namespaces import (
    check_namespace,
    check_pattern,
    has_wildcard,
    is_system,
    matches,
    system_owner,
)
from pubsub_emulator.eventplane.icrc72.orchestrator.access import Access, Question
from pubsub_emulator.eventplane.icrc72.orchestrator.config import (
    MEMO_BYTES,
    SubscriptionConfig,
    changed_publication,
    changed_subscription,
    check_memo,
    check_size,
    new_publication,
    new_subscription,
)
from pubsub_emulator.eventplane.icrc72.orchestrator.messenger import Messenger
from pubsub_emulator.eventplane.icrc72.orchestrator.moves import Moves
from pubsub_emulator.eventplane.icrc72.orchestrator.planner import Planner
from pubsub_emulator.eventplane.icrc72.orchestrator.queries import Queries
from pubsub_emulator.eventplane.icrc72.orchestrator.replays import Replays
from pubsub_emulator.eventplane.icrc72.orchestrator.state import Broker, Member, Publication, Registry, Subscription
from pubsub_emulator.eventplane.icrc72.role import Core, Handler, Query, RoleCanister, reply
from pubsub_emulator.eventplane.icrc72.settings import DEFAULTS, Settings

Result = Variant
Hook = Callable[[Principal, str], bool]
Judge = Callable[[Context, Any, set[Question]], Result]

_SYSTEM_REFUSED: Final = frozenset([keys.SKIP, keys.FILTER, keys.STOPPED])


def ok(value: Any) -> Result:
    """A result that is Ok."""
    return Variant("Ok", value)


def err(tag: str, value: Any = None) -> Result:
    """A result that is an error."""
    return Variant("Err", Variant(tag, value))


def generic(code: int, detail: str = "") -> Result:
    """A result with a code of `keys.md`."""
    return err("GenericError", GenericError(code, detail or keys.CODES[code]))


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

    def updates(self) -> Mapping[str, Handler]:
        """Methods by name."""
        return {
            "icrc72_register_publication": self._batch(
                "icrc72_register_publication", self._register_publication, self._ask_publication
            ),
            "icrc72_register_subscription": self._batch(
                "icrc72_register_subscription", self._register_subscription, self._ask_subscription
            ),
            "icrc72_update_publication": self._batch(
                "icrc72_update_publication", self._update_publication, self._ask_update
            ),
            "icrc72_update_subscription": self._batch("icrc72_update_subscription", self._update_subscription),
            "icrc72_delete_publication": self._batch("icrc72_delete_publication", self._delete_publication),
            "icrc72_delete_subscription": self._batch("icrc72_delete_subscription", self._delete_subscription),
            "icrc72_get_valid_broadcasters": self._valid("icrc72_get_valid_broadcasters"),
            "icrc72_get_valid_broadcaster": self._valid("icrc72_get_valid_broadcaster"),
            **self.replays.updates(),
        }

    def queries(self) -> Mapping[str, Query]:
        """Queries by name."""
        return {**self.asked.queries(), **self.replays.queries()}

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
        self.access.ask(ctx, stale, lambda _ctx, _silent: self._judge_listed())

    def _judge_listed(self) -> None:
        """Only what list canisters say changes without a call."""
        for publication in self.state.publications.values():
            if publication.config.canisters:
                self._judge(publication)

    # Batches

    def _batch(
        self, method: str, judge: Judge, ask: Callable[[Context, Any], list[Question]] | None = None
    ) -> Callable[[Context, tuple[Any, ...]], None]:
        """A method over items that are independent; what list canisters must say is asked first (IC-30)."""

        def run(ctx: Context, items: tuple[Any, ...]) -> None:
            caller = ctx.caller
            taken = items[: self.settings.batch_items]

            def judged(ctx: Context, silent: set[Question]) -> None:
                ctx.caller = caller
                results = [judge(ctx, item, silent) for item in taken]
                if len(items) > len(taken):
                    results.append(err("GenericBatchError", f"at most {self.settings.batch_items} items are answered"))
                reply(ctx, method, tuple(results))

            questions = [] if ask is None else [each for item in taken for each in ask(ctx, item)]
            self.access.ask(ctx, list(dict.fromkeys(questions)), judged)

        return run

    # Publications

    def _ask_publication(self, ctx: Context, item: PublicationRegistration) -> list[Question]:
        number = self.state.by_namespace.get(item.namespace)
        if number is None:
            return []
        return self.access.questions(self.state.publications[number], "publishers", ctx.caller)

    def _register_publication(self, ctx: Context, item: PublicationRegistration, silent: set[Question]) -> Result:
        who = ctx.caller
        if is_system(item.namespace) or not self._may_publish(who, item.namespace):
            return err("Unauthorized")
        try:
            check_namespace(item.namespace)
            check_memo(item.memo)
            check_size(item.config, self.settings)
            config = new_publication(who, item.config)
        except (ConfigError, NamespaceError) as error:
            return err("ImproperConfig", str(error))
        number = self.state.by_namespace.get(item.namespace)
        publication = None if number is None else self.state.publications[number]
        if publication is not None and who in publication.publishers:
            return ok(publication.id)
        if self.state.by_publisher.get(who, 0) >= self.settings.publications:
            return generic(keys.QUOTA)
        if publication is None:
            publication = self._create(item.namespace, config)
        elif any(each in silent for each in self.access.questions(publication, "publishers", who)):
            return generic(keys.LIST_SILENT)
        elif not self.access.may(publication, "publishers", who):
            return err("UnauthorizedPublisher", (item.namespace,))
        self.state.by_publisher[who] = self.state.by_publisher.get(who, 0) + 1
        publication.publishers[who] = True
        self.planner.assign_entries(publication, who)
        return ok(publication.id)

    def _create(self, namespace: str, config: Any) -> Publication:
        state = self.state
        state.last_publication += 1
        made = Publication(state.last_publication, namespace, config, {})
        state.publications[made.id] = made
        state.by_namespace[namespace] = made.id
        waiting = [*state.exact.get(namespace, ()), *state.patterns]
        for number in sorted(waiting):
            subscription = state.subscriptions[number]
            if matches(subscription.pattern, namespace):
                self._match(made, subscription)
        return made

    def _match(self, publication: Publication, subscription: Subscription) -> None:
        """A subscription meets a publication: it is authorised now (IC-32a)."""
        who = subscription.subscriber
        may = self.access.may(publication, "subscribers", who)
        publication.subscribers.setdefault(who, {})[subscription.id] = may
        if not may:
            self._refused(publication, "subscriber", who, subscription.id)
        self.planner.plan_pair(publication, who)

    def _refused(self, publication: Publication, role: str, who: Principal, number: int) -> None:
        """Tell somebody that it may not: code 6 where a list canister does not say so (IC-33b)."""
        code = keys.LIST_SILENT if self.access.is_unheard(publication, f"{role}s", who) else 0
        self._error(role, who, number, code, publication.namespace)

    def _error(self, role: str, who: Principal, number: int, code: int, namespace: str) -> None:
        member = self.state.members.get((role, who))
        if member is not None:
            member.errors[number, code, namespace] = None
            self.state.restless[role, who] = None

    def _find_publication(self, identifier: Variant) -> Publication | None:
        number = identifier.value
        if identifier.tag == "namespace":
            number = self.state.by_namespace.get(identifier.value, 0)
        return self.state.publications.get(number)

    def _ask_update(self, ctx: Context, item: PublicationUpdate) -> list[Question]:
        publication = self._find_publication(item.publication)
        if publication is None or ctx.caller not in publication.config.controllers:
            return []
        try:
            return self.access.questions_of_change(publication, changed_publication(publication.config, *item.config))
        except ConfigError:
            return []  # it is answered when the item is judged

    def _update_publication(self, ctx: Context, item: PublicationUpdate, _silent: set[Question]) -> Result:
        try:
            check_memo(item.memo)
        except ConfigError as error:
            return err("ImproperConfig", str(error))
        publication = self._find_publication(item.publication)
        if publication is None:
            return generic(keys.NOT_FOUND)
        if ctx.caller not in publication.config.controllers:
            return err("Unauthorized")
        try:
            config = changed_publication(publication.config, *item.config)
            check_size(config, self.settings)
        except ConfigError as error:
            return err("ImproperConfig", str(error))
        publication.config = config
        places = set(config.canisters.values())
        publication.verdicts = {said: verdict for said, verdict in publication.verdicts.items() if said[:2] in places}
        publication.heard = {said: at for said, at in publication.heard.items() if said[:2] in places}
        publication.version += 1
        self._judge(publication)
        if config.canisters:
            self.state.last_check = ctx.now - self.settings.list_retry
        for who in publication.publishers:
            self.planner.plan_publisher(publication, who)
        for number in {n for numbers in publication.subscribers.values() for n in numbers}:
            self.state.subscriptions[number].version += item.config[0] == keys.PRIORITIES
        self.planner.plan_all_pairs(publication)
        return ok(True)

    def _judge(self, publication: Publication) -> None:
        """Judge everybody of a publication again (IC-33c)."""
        for who, had in list(publication.publishers.items()):
            may = self.access.may(publication, "publishers", who)
            if may != had:
                publication.publishers[who] = may
                if not may:
                    publication.entries.pop(who, None)
                    self._refused(publication, "publisher", who, publication.id)
                    self.replays.publisher_forbidden(publication.id, who)
                self.planner.plan_publisher(publication, who)
                if may:
                    self.planner.assign_entries(publication, who)
                self.planner.plan_all_pairs(publication)
        for who, numbers in list(publication.subscribers.items()):
            may = self.access.may(publication, "subscribers", who)
            if any(had != may for had in numbers.values()):
                publication.subscribers[who] = dict.fromkeys(numbers, may)
                if not may:
                    for number in numbers:
                        self._refused(publication, "subscriber", who, number)
                    self.replays.forbidden(publication.id, who)
                self.planner.plan_pair(publication, who)

    def _delete_publication(self, ctx: Context, item: PublicationDelete, _silent: set[Question]) -> Result:
        if item.memo is not None and len(item.memo) > MEMO_BYTES:
            return generic(keys.TOO_LARGE)
        publication = self._find_publication(item.publication)
        if publication is None:
            return generic(keys.NOT_FOUND)
        if ctx.caller not in publication.config.controllers:
            return err("Unauthorized")
        self.replays.publication_deleted(publication.id)
        for who in publication.publishers:
            self.state.by_publisher[who] -= 1
            publication.publishers[who] = False
            self.planner.plan_publisher(publication, who)
        for who in list(publication.subscribers):
            self.planner.forget_pair(publication, who)
        del self.state.publications[publication.id]
        del self.state.by_namespace[publication.namespace]
        return ok(True)

    # Subscriptions

    def _ask_subscription(self, ctx: Context, item: SubscriptionRegistration) -> list[Question]:
        if is_system(item.namespace):
            return []
        if not has_wildcard(item.namespace):
            number = self.state.by_namespace.get(item.namespace)
            met = [] if number is None else [self.state.publications[number]]
        else:
            met = [each for each in self.state.publications.values() if matches(item.namespace, each.namespace)]
        return [each for one in met for each in self.access.questions(one, "subscribers", ctx.caller)]

    def _register_subscription(self, ctx: Context, item: SubscriptionRegistration, silent: set[Question]) -> Result:
        who, state = ctx.caller, self.state
        system = is_system(item.namespace)
        owner = system_owner(item.namespace)
        if system and (owner is None or owner[1] != who):
            return err("Unauthorized")
        if owner is not None and owner[0] == "broadcaster" and who not in state.brokers:
            return err("Unauthorized")
        try:
            if not system:
                check_pattern(item.namespace)
            check_memo(item.memo)
            check_size(item.config, self.settings)
            config = new_subscription(who, item.config)
            if system and any(keys.canonical(key).removesuffix(":remove") in _SYSTEM_REFUSED for key, _ in item.config):
                raise ConfigError("a system namespace takes no skip, filter or stopped")  # noqa: TRY301 — answered below like its siblings
        except (ConfigError, NamespaceError) as error:
            return err("ImproperConfig", str(error))
        mine = state.by_subscriber.setdefault(who, {})
        known = mine.get(item.namespace)
        if owner is not None:
            return ok(self._register_system(owner[0], who, item.namespace, known))
        if known is not None:
            return ok(known)
        exact = state.by_namespace.get(item.namespace)
        if exact is not None:
            publication = state.publications[exact]
            if any(each in silent for each in self.access.questions(publication, "subscribers", who)):
                return generic(keys.LIST_SILENT)
            if not self.access.may(publication, "subscribers", who):
                return err("UnauthorizedSubscriber", (item.namespace,))
        if sum(1 for pattern in mine if not is_system(pattern)) >= self.settings.subscriptions:
            return generic(keys.QUOTA)
        return ok(self._subscribe(who, item.namespace, config))

    def _subscribe(self, who: Principal, pattern: str, config: SubscriptionConfig) -> int:
        state = self.state
        state.last_subscription += 1
        made = Subscription(state.last_subscription, pattern, who, config)
        state.subscriptions[made.id] = made
        state.by_subscriber[who][pattern] = made.id
        self.planner.assign_exit(who)
        if has_wildcard(pattern):
            state.patterns[made.id] = None
            for publication in state.publications.values():
                if matches(pattern, publication.namespace):
                    self._match(publication, made)
        else:
            state.exact.setdefault(pattern, {})[made.id] = None
            number = state.by_namespace.get(pattern)
            if number is not None:
                self._match(state.publications[number], made)
        return made.id

    def _register_system(self, role: str, who: Principal, namespace: str, known: int | None) -> int:
        state = self.state
        if known is None:
            state.last_subscription += 1
            known = state.last_subscription
            state.subscriptions[known] = Subscription(known, namespace, who, SubscriptionConfig((who,)))
            state.by_subscriber[who][namespace] = known
            again = False
        else:
            again = True
        if role == "broadcaster":
            broker = state.brokers[who]
            broker.registered = True
            if again and (broker.held or broker.alert is not None):
                self._died(who)  # it has lost its state
            self.planner.move_all()
            return known
        if not again:
            member = state.members[role, who] = Member(role, who)
            self.planner.assign_exit(who)
            if state.exits.get(who) is None:
                member.errors[0, keys.NO_SUBNET, ""] = None
            state.restless[role, who] = None
            self.planner.plan_member_exit(who)
            self._plan_member(role, who)
        else:
            state.members[role, who].fresh = True
            state.restless[role, who] = None
        return known

    def _plan_member(self, role: str, who: Principal) -> None:
        """What was assigned before the member asked to be told of it."""
        for publication in self.state.publications.values():
            if role == "publisher" and who in publication.publishers:
                self.planner.assign_entries(publication, who)
                self.planner.plan_publisher(publication, who)
            if role == "subscriber" and who in publication.subscribers:
                self.planner.plan_pair(publication, who)

    def _find_subscription(self, ctx: Context, identifier: Variant, whose: Principal | None) -> Subscription | None:
        number = identifier.value
        if identifier.tag == "namespace":
            number = self.state.by_subscriber.get(whose or ctx.caller, {}).get(identifier.value, 0)
        found = self.state.subscriptions.get(number)
        return None if found is None or is_system(found.pattern) else found

    def _may_change(self, ctx: Context, subscription: Subscription) -> bool:
        return ctx.caller == subscription.subscriber or ctx.caller in subscription.config.controllers

    def _update_subscription(self, ctx: Context, item: SubscriptionUpdate, _silent: set[Question]) -> Result:
        try:
            check_memo(item.memo)
        except ConfigError as error:
            return err("ImproperConfig", str(error))
        subscription = self._find_subscription(ctx, item.subscription, item.subscriber)
        if subscription is None:
            return generic(keys.NOT_FOUND)
        if not self._may_change(ctx, subscription):
            return err("Unauthorized")
        try:
            config = changed_subscription(subscription.config, *item.config)
            check_size(config, self.settings)
        except ConfigError as error:
            return err("ImproperConfig", str(error))
        resumes = keys.canonical(item.config[0]) == keys.STOPPED and not config.stopped
        if config == subscription.config and not resumes:
            return ok(True)
        subscription.config = config
        subscription.version += 1
        for publication in self._matched(subscription):
            self.planner.plan_pair(publication, subscription.subscriber)
        return ok(True)

    def _matched(self, subscription: Subscription) -> list[Publication]:
        who = subscription.subscriber
        return [each for each in self.state.publications.values() if subscription.id in each.subscribers.get(who, ())]

    def _delete_subscription(self, ctx: Context, item: SubscriptionDelete, _silent: set[Question]) -> Result:
        if item.memo is not None and len(item.memo) > MEMO_BYTES:
            return generic(keys.TOO_LARGE)
        subscription = self._find_subscription(ctx, item.subscription, item.subscriber)
        if subscription is None:
            return generic(keys.NOT_FOUND)
        if not self._may_change(ctx, subscription):
            return err("Unauthorized")
        who, state = subscription.subscriber, self.state
        met = self._matched(subscription)
        del state.subscriptions[subscription.id]
        del state.by_subscriber[who][subscription.pattern]
        state.patterns.pop(subscription.id, None)
        exact = state.exact.get(subscription.pattern, {})
        exact.pop(subscription.id, None)
        if not exact:
            state.exact.pop(subscription.pattern, None)
        for publication in met:
            del publication.subscribers[who][subscription.id]
            if not publication.subscribers[who]:
                del publication.subscribers[who]
                self.replays.forbidden(publication.id, who)
            self.planner.plan_pair(publication, who)
        return ok(True)

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


__all__ = ["Orchestrator", "err", "generic", "ok"]
