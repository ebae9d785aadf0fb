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
from interchain_events.icrc72.memory import put, take_out
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
"""Keys that a subscription to a system namespace may not have, so that it gets all its events."""


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
    """Called with a broadcaster that registers again and so has lost its state."""

    def ask(self, ctx: Context, item: m.SubscriptionRegistration) -> list[Question]:
        """Return the questions that list canisters must answer before a registration is judged.

        There are none about a system namespace, to which only its own canister may subscribe.
        """
        if is_system(item.namespace):
            return []
        questions: list[Question] = []
        for publication in self._matching(item.namespace):
            questions += self.access.questions(publication, "subscribers", ctx.caller)
        return questions

    def _matching(self, pattern: str) -> list[Publication]:
        """Return the publications whose namespaces match a pattern."""
        state = self.state
        if has_wildcard(pattern):
            return [
                publication
                for publication in state.publications.values()
                if matches(pattern, publication.namespace)
            ]
        number = state.by_namespace.get(pattern)
        return [] if number is None else [state.publications[number]]

    def register(
        self, ctx: Context, item: m.SubscriptionRegistration, silent: set[Question]
    ) -> m.Result[int]:
        """Register a subscription of the caller, or the caller for its system events (IC-32).

        Registering a pattern again returns the same id, if the configuration is the same or empty.
        Missing access is an error only for an exact namespace. A pattern with wildcards may also
        match publications that the subscriber cannot read. Raises `ConfigError` or `NamespaceError`
        if the item is malformed.
        """
        who = ctx.caller
        state = self.state
        system = is_system(item.namespace)
        role = system_role(item.namespace)
        if system and not self._owns(who, role, item.namespace):
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
        registered = state.by_subscriber.setdefault(who, {})
        number = registered.get(item.namespace)
        if role is not None:
            return ok(self._register_system(role, who, item.namespace, number))
        if number is not None:
            former = state.subscriptions[number].config
            c.check_same(item.config, config, former, f"subscription {number}")
            return ok(number)
        refusal = self._refusal(who, item.namespace, silent)
        if refusal is not None:
            return refusal
        patterns = [pattern for pattern in registered if not is_system(pattern)]
        if len(patterns) >= self.settings.subscriptions:
            return generic(keys.QUOTA)
        return ok(self._subscribe(who, item.namespace, config))

    def _owns(self, who: Principal, role: str | None, namespace: str) -> bool:
        """Return whether a system namespace is that of `who`, and `who` may have its role."""
        if role is None or (role == "broadcaster" and who not in self.state.brokers):
            return False
        return namespace == system_namespace(role, who)

    def _refusal(self, who: Principal, namespace: str, silent: set[Question]) -> m.Err | None:
        """Return the error if a publication has exactly this namespace and `who` has no access."""
        number = self.state.by_namespace.get(namespace)
        if number is None:
            return None
        publication = self.state.publications[number]
        if not silent.isdisjoint(self.access.questions(publication, "subscribers", who)):
            return generic(keys.LIST_SILENT)
        if not self.access.may(publication, "subscribers", who):
            return forbidden("UnauthorizedSubscriber", namespace)
        return None

    def _subscribe(self, who: Principal, pattern: str, config: c.SubscriptionConfig) -> int:
        """Create a subscription, match it to the publications, and return its id."""
        state = self.state
        state.last_subscription += 1
        number = state.last_subscription
        subscription = SubscriptionRecord(number, pattern, who, config)
        state.subscriptions[number] = subscription
        state.by_subscriber[who][pattern] = number
        self.planner.assign_exit(who)
        if has_wildcard(pattern):
            state.patterns[number] = None
        else:
            state.exact.setdefault(pattern, {})[number] = None
        for publication in self._matching(pattern):
            self.met(publication, subscription)
        return number

    def _register_system(
        self, role: str, who: Principal, namespace: str, number: int | None
    ) -> int:
        """Register a canister in a role, for its system events, and return the subscription's id.

        `number` is this id if it is already registered. A canister that registers again has lost
        its state: a broadcaster is treated like a dead one that comes back, and a member is
        informed about all its facts again.
        """
        state = self.state
        again = number is not None
        if number is None:
            state.last_subscription += 1
            number = state.last_subscription
            state.by_subscriber[who][namespace] = number
            state.subscriptions[number] = SubscriptionRecord(
                number, namespace, who, c.new_subscription(who, ())
            )
        if role == "broadcaster":
            broker = state.brokers[who]
            broker.registered = True
            if again and (broker.held or broker.alert is not None):
                self.died(who)
            self.planner.move_all()
        elif again:
            state.members[role, who].fresh = True
            state.restless[role, who] = None
        else:
            self._add_member(role, who)
        return number

    def _add_member(self, role: str, who: Principal) -> None:
        """Add a canister in the role of publisher or subscriber, and plan all that concerns it."""
        member = Member(role, who)
        self.state.members[role, who] = member
        self.planner.assign_exit(who)
        if self.state.exits.get(who) is None:
            member.errors = put(member.errors, Trouble(0, keys.NO_SUBNET), None)
        self.state.restless[role, who] = None
        self.planner.plan_member_exit(who)
        self._plan_member(role, who)

    def _plan_member(self, role: str, who: Principal) -> None:
        """Plan the publications in which a new member already takes part."""
        for publication in self.state.publications.values():
            if role == "publisher" and who in publication.publishers:
                self.planner.assign_entries(publication, who)
                self.planner.plan_publisher(publication, who)
            if role == "subscriber" and who in publication.subscribers:
                self.planner.plan_pair(publication, who)

    def _find(
        self, ctx: Context, identifier: m.Identifier, subscriber: Principal | None
    ) -> SubscriptionRecord | None:
        """Return the subscription with an id, or with the pattern of a subscriber.

        The subscriber is the caller unless it is given. Returns `None` if there is no such
        subscription or its pattern is one of the system.
        """
        id_or_pattern = m.named(identifier)
        if isinstance(id_or_pattern, str):
            registered = self.state.by_subscriber.get(subscriber or ctx.caller, {})
            # No subscription has the id 0.
            number = registered.get(id_or_pattern, 0)
        else:
            number = id_or_pattern
        subscription = self.state.subscriptions.get(number)
        if subscription is None or is_system(subscription.pattern):
            return None
        return subscription

    def _may_change(self, ctx: Context, subscription: SubscriptionRecord) -> bool:
        return (
            ctx.caller == subscription.subscriber or ctx.caller in subscription.config.controllers
        )

    def update(
        self, ctx: Context, item: m.SubscriptionUpdate, _silent: set[Question]
    ) -> m.Result[bool]:
        """Change the configuration of a subscription.

        Setting `stopped` to false has an effect even if the subscription was not stopped: its new
        version ends a suspension at the exit.
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
        """Return the publications to which a subscription is attached."""
        subscriber = subscription.subscriber
        return [
            publication
            for publication in self.state.publications.values()
            if subscription.id in publication.subscribers.get(subscriber, ())
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
        who = subscription.subscriber
        state = self.state
        matched = self._matched(subscription)
        del state.subscriptions[subscription.id]
        del state.by_subscriber[who][subscription.pattern]
        state.patterns.pop(subscription.id, None)
        exact = state.exact.get(subscription.pattern, {})
        exact.pop(subscription.id, None)
        if not exact:
            state.exact.pop(subscription.pattern, None)
        for publication in matched:
            left = take_out(publication.subscribers[who], subscription.id)
            if left:
                publication.subscribers[who] = left
            else:
                del publication.subscribers[who]
                self.replays.cancel_of(publication.id, subscriber=who)
            self.planner.plan_pair(publication, who)
        return ok(True)
