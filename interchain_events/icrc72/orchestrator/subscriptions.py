"""Subscriptions, and the registration of members for their system events (IC-32)."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final

from interchain_events.icrc72 import config as c
from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.facts import Trouble
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.methods import err, forbidden, generic, ok
from interchain_events.icrc72.namespaces import (
    check_pattern,
    has_wildcard,
    is_system,
    matches,
    system_namespace,
    system_role,
)
from interchain_events.icrc72.orchestrator.access import Access, Question
from interchain_events.icrc72.orchestrator.planner import Planner
from interchain_events.icrc72.orchestrator.replays import Replays
from interchain_events.icrc72.orchestrator.state import (
    Member,
    Part,
    Publication,
    SubscriptionRecord,
)

_SYSTEM_REFUSED: Final = frozenset([keys.SKIP, keys.FILTER, keys.STOPPED])
"""Keys that a subscription to a system namespace may not have: no system event may be missed."""


@dataclass
class Subscriptions(Part):
    """The part that manages subscriptions."""

    planner: Planner
    access: Access
    _: KW_ONLY
    replays: Replays
    met: Callable[[Publication, SubscriptionRecord], None]
    """Called for each publication that a new subscription matches."""
    died: Callable[[Principal], None]
    """Called with a broadcaster that registers again, because it has lost its state."""

    def ask(self, ctx: Context, item: m.SubscriptionRegistration) -> list[Question]:
        """Return the questions to list canisters without which a registration cannot be judged."""
        if is_system(item.namespace):
            return []
        if not has_wildcard(item.namespace):
            number = self.state.by_namespace.get(item.namespace)
            met = [] if number is None else [self.state.publications[number]]
        else:
            met = [
                each
                for each in self.state.publications.values()
                if matches(item.namespace, each.namespace)
            ]
        questions: list[Question] = []
        for publication in met:
            questions += self.access.questions(publication, "subscribers", ctx.caller)
        return questions

    def register(
        self, ctx: Context, item: m.SubscriptionRegistration, silent: set[Question]
    ) -> m.Result[int]:
        """Register a subscription of the caller, or the caller for its system events (IC-32).

        Registering a pattern again returns the same id, if the configuration is the same or empty.
        Access is decided now only for an exact namespace; a pattern may also match publications
        that the subscriber cannot read. Raises `ConfigError` or `NamespaceError` if the item is
        malformed.
        """
        who, state = ctx.caller, self.state
        system = is_system(item.namespace)
        role = system_role(item.namespace)
        stranger = role == "broadcaster" and who not in state.brokers
        mine_alone = role is not None and item.namespace == system_namespace(role, who)
        if stranger or (system and not mine_alone):
            return err("Unauthorized")
        if not system:
            check_pattern(item.namespace, narrow=self.settings.narrow_namespaces)
        c.check_memo(item.memo)
        c.check_size(item.config, self.settings)
        config = c.new_subscription(who, item.config, item.memo)
        if system and any(
            keys.canonical(key).removesuffix(":remove") in _SYSTEM_REFUSED for key, _ in item.config
        ):
            raise ConfigError("a system namespace takes no skip, filter or stopped")
        mine = state.by_subscriber.setdefault(who, {})
        known = mine.get(item.namespace)
        if role is not None:
            return ok(self._register_system(role, who, item.namespace, known))
        if known is not None:
            c.check_same(
                item.config, config, state.subscriptions[known].config, f"subscription {known}"
            )
            return ok(known)
        exact = state.by_namespace.get(item.namespace)
        if exact is not None:
            publication = state.publications[exact]
            if any(
                each in silent for each in self.access.questions(publication, "subscribers", who)
            ):
                return generic(keys.LIST_SILENT)
            if not self.access.may(publication, "subscribers", who):
                return forbidden("UnauthorizedSubscriber", item.namespace)
        if sum(1 for pattern in mine if not is_system(pattern)) >= self.settings.subscriptions:
            return generic(keys.QUOTA)
        return ok(self._subscribe(who, item.namespace, config))

    def _subscribe(self, who: Principal, pattern: str, config: c.SubscriptionConfig) -> int:
        """Create a subscription, match it to the publications, and return its id."""
        state = self.state
        state.last_subscription += 1
        made = SubscriptionRecord(state.last_subscription, pattern, who, config)
        state.subscriptions[made.id] = made
        state.by_subscriber[who][pattern] = made.id
        self.planner.assign_exit(who)
        if has_wildcard(pattern):
            state.patterns[made.id] = None
            for publication in state.publications.values():
                if matches(pattern, publication.namespace):
                    self.met(publication, made)
        else:
            state.exact.setdefault(pattern, {})[made.id] = None
            number = state.by_namespace.get(pattern)
            if number is not None:
                self.met(state.publications[number], made)
        return made.id

    def _register_system(self, role: str, who: Principal, namespace: str, known: int | None) -> int:
        """Register a canister in a role, for its system events, and return the subscription's id.

        `known` is the id if it is registered already. A canister that registers again has lost its
        state: a broadcaster is treated like a dead one that comes back, and a member is informed
        about everything again.
        """
        state, again = self.state, known is not None
        if known is None:
            state.last_subscription += 1
            known = state.by_subscriber[who][namespace] = state.last_subscription
            state.subscriptions[known] = SubscriptionRecord(
                known, namespace, who, c.SubscriptionConfig((who,))
            )
        if role == "broadcaster":
            broker = state.brokers[who]
            broker.registered = True
            if again and (broker.held or broker.alert is not None):
                self.died(who)
            self.planner.move_all()
            return known
        if again:
            state.members[role, who].fresh = True
            state.restless[role, who] = None
            return known
        member = state.members[role, who] = Member(role, who)
        self.planner.assign_exit(who)
        if state.exits.get(who) is None:
            member.errors[Trouble(0, keys.NO_SUBNET)] = None
        state.restless[role, who] = None
        self.planner.plan_member_exit(who)
        self._plan_member(role, who)
        return known

    def _plan_member(self, role: str, who: Principal) -> None:
        """Plan the publications in which a new member already takes part."""
        for publication in self.state.publications.values():
            if role == "publisher" and who in publication.publishers:
                self.planner.assign_entries(publication, who)
                self.planner.plan_publisher(publication, who)
            if role == "subscriber" and who in publication.subscribers:
                self.planner.plan_pair(publication, who)

    def _find(
        self, ctx: Context, identifier: m.Identifier, whose: Principal | None
    ) -> SubscriptionRecord | None:
        """Return a subscription by its id, or by its pattern and the subscriber (or the caller)."""
        name = m.named(identifier)
        mine = self.state.by_subscriber.get(whose or ctx.caller, {})
        number = mine.get(name, 0) if isinstance(name, str) else name
        found = self.state.subscriptions.get(number)
        return None if found is None or is_system(found.pattern) else found

    def _may_change(self, ctx: Context, subscription: SubscriptionRecord) -> bool:
        return (
            ctx.caller == subscription.subscriber or ctx.caller in subscription.config.controllers
        )

    def update(
        self, ctx: Context, item: m.SubscriptionUpdate, _silent: set[Question]
    ) -> m.Result[bool]:
        """Change the configuration of a subscription.

        Setting `stopped` to false has an effect even if it was not set: the new version of the
        subscription ends a suspension at the exit.
        """
        c.check_memo(item.memo)
        subscription = self._find(ctx, item.subscription, item.subscriber)
        if subscription is None:
            return generic(keys.NOT_FOUND)
        if not self._may_change(ctx, subscription):
            return err("Unauthorized")
        config = subscription.config
        for key, value in m.changes(item.config):
            config = c.changed_subscription(config, key, value)
        config = replace(config, memo=config.memo if item.memo is None else item.memo)
        c.check_size(config, self.settings)
        resumes = (
            any(keys.canonical(key) == keys.STOPPED for key, _ in m.changes(item.config))
            and not config.stopped
        )
        if config == subscription.config and not resumes:
            return ok(True)
        subscription.config = config
        subscription.version += 1
        for publication in self._matched(subscription):
            self.planner.plan_pair(publication, subscription.subscriber)
        return ok(True)

    def _matched(self, subscription: SubscriptionRecord) -> list[Publication]:
        who = subscription.subscriber
        return [
            each
            for each in self.state.publications.values()
            if subscription.id in each.subscribers.get(who, ())
        ]

    def delete(
        self, ctx: Context, item: m.SubscriptionDelete, _silent: set[Question]
    ) -> m.Result[bool]:
        """Delete a subscription.

        Replays of publications to which the subscriber has no other subscription are canceled.
        """
        if item.memo is not None and len(item.memo) > c.MEMO_BYTES:
            return generic(keys.TOO_LARGE)
        subscription = self._find(ctx, item.subscription, item.subscriber)
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
                self.replays.cancel_of(publication.id, subscriber=who)
            self.planner.plan_pair(publication, who)
        return ok(True)
