"""Registration, change and deletion of publications, and access to them (IC-31, IC-33)."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain as chained

from interchain_events.icrc72 import config as c
from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.facts import Trouble
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.memory import nothing, put, put_single
from interchain_events.icrc72.methods import err, forbidden, generic, ok
from interchain_events.icrc72.namespaces import check_namespace, is_system, matches
from interchain_events.icrc72.orchestrator.access import Access, Question
from interchain_events.icrc72.orchestrator.planner import Planner
from interchain_events.icrc72.orchestrator.replays import Replays
from interchain_events.icrc72.orchestrator.state import Part, Publication, SubscriptionRecord

Hook = Callable[[Principal, str], bool]
"""Returns whether a caller may publish in a namespace."""


@dataclass
class Publications(Part):
    """The part that manages publications.

    The methods that execute an item of a batch return its result, and raise `ConfigError` or
    `NamespaceError` if it is malformed. They are called when list canisters have answered the
    questions that `ask` or `ask_update` returned; `silent` are those without an answer.
    """

    planner: Planner
    access: Access
    _: KW_ONLY
    replays: Replays
    may_publish: Hook

    def ask(self, ctx: Context, item: m.PublicationRegistration) -> list[Question]:
        """Return the questions to list canisters without which a registration cannot be judged."""
        number = self.state.by_namespace.get(item.namespace)
        if number is None:
            return []
        return self.access.questions(self.state.publications[number], "publishers", ctx.caller)

    def register(
        self, ctx: Context, item: m.PublicationRegistration, silent: set[Question]
    ) -> m.Result[int]:
        """Register the caller as a publisher of a namespace (IC-31).

        The first publisher creates the publication, with its configuration. Others join if the
        lists permit; their configuration only says how they replay, and does not change the
        publication. Registering again returns the same id. The creator must then give the same
        configuration or none. Another publisher changes its own configuration in this way, because
        there is no update for it.
        """
        who = ctx.caller
        if is_system(item.namespace) or not self.may_publish(who, item.namespace):
            return err("Unauthorized")
        check_namespace(item.namespace, narrow=self.settings.narrow_namespaces)
        c.check_memo(item.memo, self.settings.config_bytes)
        c.check_size(item.config, self.settings)
        config = c.new_publication(who, item.config, item.memo)
        # Malformed keys were refused by `new_publication`. Below, only keys are refused that would
        # change an existing publication.
        number = self.state.by_namespace.get(item.namespace)
        publication = None if number is None else self.state.publications[number]
        if publication is not None and who in publication.publishers:
            if who == publication.config.creator:
                kind = f"publication {publication.id}"
                c.check_same(item.config, config, publication.config, kind)
            elif item.config:
                publication.joined[who] = c.joined_publisher(publication.config, item.config)
            return ok(publication.id)
        if self.state.by_publisher.get(who, 0) >= self.settings.publications:
            return generic(keys.QUOTA)
        if publication is None:
            publication = self._create(item.namespace, config)
        elif not silent.isdisjoint(self.access.questions(publication, "publishers", who)):
            return generic(keys.LIST_SILENT)
        elif not self.access.may(publication, "publishers", who):
            return forbidden("UnauthorizedPublisher", item.namespace)
        else:
            publication.joined[who] = c.joined_publisher(publication.config, item.config)
        self.state.by_publisher[who] = self.state.by_publisher.get(who, 0) + 1
        publication.publishers[who] = True
        self.planner.assign_entries(publication, who)
        return ok(publication.id)

    def _create(self, namespace: str, config: c.PublicationConfig) -> Publication:
        """Create a publication, and match the existing subscriptions to it."""
        state = self.state
        state.last_publication += 1
        publication = Publication(state.last_publication, namespace, config, {})
        state.publications[publication.id] = publication
        state.by_namespace[namespace] = publication.id
        for number in sorted((*state.exact.get(namespace, ()), *state.patterns)):
            subscription = state.subscriptions[number]
            if matches(subscription.pattern, namespace):
                self.match(publication, subscription)
        return publication

    def match(self, publication: Publication, subscription: SubscriptionRecord) -> None:
        """Attach a subscription to a publication that matches it, and decide on access (IC-32a)."""
        who = subscription.subscriber
        may = self.access.may(publication, "subscribers", who)
        matching = publication.subscribers.get(who, nothing())
        publication.subscribers[who] = put_single(matching, subscription.id, may)
        if not may:
            self._refused(publication, "subscriber", who, subscription.id)
        self.planner.plan_pair(publication, who)

    def _refused(self, publication: Publication, role: str, who: Principal, number: int) -> None:
        """Inform a member by its next system event that it has no access.

        `number` is the publication's or subscription's id. The error has the code `LIST_SILENT` if
        access is only denied because a list canister did not answer (IC-33b).
        """
        code = keys.LIST_SILENT if self.access.is_unheard(publication, f"{role}s", who) else 0
        member = self.state.members.get((role, who))
        if member is not None:
            error = Trouble(number, code, publication.namespace)
            member.errors = put(member.errors, error, None)
            self.state.restless[role, who] = None

    def _find(self, identifier: m.Identifier) -> Publication | None:
        """Return the publication with an id or a namespace, or `None`."""
        name = m.named(identifier)
        number = self.state.by_namespace.get(name, 0) if isinstance(name, str) else name
        return self.state.publications.get(number)

    def ask_update(self, ctx: Context, item: m.PublicationUpdate) -> list[Question]:
        """Return the questions that a change raises, if the caller may make it."""
        publication = self._find(item.publication)
        if publication is None or ctx.caller not in publication.config.controllers:
            return []
        try:
            return self.access.questions_of_change(publication, _changed(publication.config, item))
        except ConfigError:
            # The caller gets this error when the item is judged.
            return []

    def update(
        self, ctx: Context, item: m.PublicationUpdate, _silent: set[Question]
    ) -> m.Result[bool]:
        """Change the configuration of a publication, and decide again on its members' access."""
        c.check_memo(item.memo, self.settings.config_bytes)
        publication = self._find(item.publication)
        if publication is None:
            return generic(keys.NOT_FOUND)
        if ctx.caller not in publication.config.controllers:
            return err("Unauthorized")
        config = _changed(publication.config, item)
        config = replace(config, memo=config.memo if item.memo is None else item.memo)
        c.check_size(config, self.settings)
        former = publication.config
        publication.config = config
        # Forget the answers of lists that the new configuration does not name.
        lists = set(config.canisters.values())
        publication.verdicts = {
            (canister, name, who): verdict
            for (canister, name, who), verdict in publication.verdicts.items()
            if (canister, name) in lists
        }
        publication.heard = {
            (canister, name, who): round_
            for (canister, name, who), round_ in publication.heard.items()
            if (canister, name) in lists
        }
        publication.version += 1
        self.judge(publication)
        if config.canisters:
            # The next wake then asks unanswered questions again.
            self.state.last_check = ctx.now - self.settings.list_retry
        for who in publication.publishers:
            self.planner.plan_publisher(publication, who)
        if config.priorities != former.priorities:
            # The new versions are sent to the exits, which then ask for the priorities again.
            for number in set(chained.from_iterable(publication.subscribers.values())):
                self.state.subscriptions[number].version += 1
        self.planner.plan_all_pairs(publication)
        return ok(True)

    def judge(self, publication: Publication) -> None:
        """Decide again on access of all members of a publication (IC-33c).

        Members that lose access get an error, and their replays are canceled. They stay registered
        and may regain access.
        """
        for publisher, had_access in list(publication.publishers.items()):
            may = self.access.may(publication, "publishers", publisher)
            if may == had_access:
                continue
            publication.publishers[publisher] = may
            if not may:
                publication.entries.pop(publisher, None)
                self._refused(publication, "publisher", publisher, publication.id)
                self.replays.cancel_of(publication.id, publisher=publisher)
            self.planner.plan_publisher(publication, publisher)
            if may:
                self.planner.assign_entries(publication, publisher)
            self.planner.plan_all_pairs(publication)
        for subscriber, subscriptions in list(publication.subscribers.items()):
            may = self.access.may(publication, "subscribers", subscriber)
            if all(had_access == may for had_access in subscriptions.values()):
                continue
            publication.subscribers[subscriber] = dict.fromkeys(subscriptions, may)
            if not may:
                for number in subscriptions:
                    self._refused(publication, "subscriber", subscriber, number)
                self.replays.cancel_of(publication.id, subscriber=subscriber)
            self.planner.plan_pair(publication, subscriber)

    def delete(
        self, ctx: Context, item: m.PublicationDelete, _silent: set[Question]
    ) -> m.Result[bool]:
        """Delete a publication and cancel its replays."""
        if item.memo is not None and len(item.memo) > self.settings.config_bytes:
            return generic(keys.TOO_LARGE)
        publication = self._find(item.publication)
        if publication is None:
            return generic(keys.NOT_FOUND)
        if ctx.caller not in publication.config.controllers:
            return err("Unauthorized")
        self.replays.cancel_of(publication.id)
        for publisher in publication.publishers:
            self.state.by_publisher[publisher] -= 1
            publication.publishers[publisher] = False
            self.planner.plan_publisher(publication, publisher)
        for subscriber in list(publication.subscribers):
            self.planner.forget_pair(publication, subscriber)
        del self.state.publications[publication.id]
        del self.state.by_namespace[publication.namespace]
        return ok(True)

    def judge_listed(self) -> None:
        """Decide again on access to the publications that use list canisters.

        Access to other publications changes only by an update, which judges at once.
        """
        for publication in self.state.publications.values():
            if publication.config.canisters:
                self.judge(publication)


def _changed(config: c.PublicationConfig, item: m.PublicationUpdate) -> c.PublicationConfig:
    """Return the configuration after an update. Raises `ConfigError`."""
    for key, value in m.changes(item.config):
        config = c.changed_publication(config, key, value)
    return config
