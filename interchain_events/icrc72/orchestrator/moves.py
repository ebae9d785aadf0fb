"""Moving publishers and retiring broadcasters without losing queued events (IC-47b).

To move a publisher, the orchestrator has its entries stop accepting its events, waits until they
have delivered the queued ones, and then gives it new entries.

To retire a broadcaster, the orchestrator gives it no new members, moves its publishers, and gives
its subscribers other exits. When these exits serve the subscribers, the relays to the broadcaster
are removed. When its queues are empty, its subscribers are removed, too. A subscriber that has
missed events asks for a replay.
"""

from dataclasses import dataclass

from interchain_events.icrc72.facts import Fact, PublisherFact, RelayFact, SubscriberFact
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import Principal, subnet_of
from interchain_events.icrc72.orchestrator.planner import Planner
from interchain_events.icrc72.orchestrator.queries import Queries
from interchain_events.icrc72.orchestrator.state import Broker, Part, Publication

_QUEUED = "icrc72:broadcaster:stats:queued"
"""The statistic of how many notifications a broadcaster has in its queues."""


@dataclass
class Moves(Part):
    """The part that moves publishers and retires broadcasters."""

    planner: Planner
    lookups: Queries

    def move_publisher(self, namespace: str, publisher: Principal) -> bool:
        """Begin to move a publisher to other broadcasters.

        Returns false if the publisher has no entries or is already being moved.
        """
        publication = self.state.publications.get(self.state.by_namespace.get(namespace, 0))
        if (
            publication is None
            or not publication.entries.get(publisher)
            or publisher in publication.draining
        ):
            return False
        publication.draining[publisher] = publication.entries.pop(publisher)
        self.planner.plan_publisher(publication, publisher)
        return True

    def retire(self, broadcaster: Principal) -> bool:
        """Begin to retire a broadcaster.

        Returns false if the broadcaster is unknown or dead, or if no other one serves its subnet.
        """
        broker = self.state.brokers.get(broadcaster)
        if (
            broker is None
            or broker.dead
            or self.planner.choose(broker.subnet, [broadcaster]) is None
        ):
            return False
        broker.retiring = True
        return True

    def due(self, now: int) -> int | None:
        """Return the next round in which a move may go on."""
        moving = any(publication.draining for publication in self.state.publications.values())
        return now + self.settings.drain_check if moving or self._retiring() else None

    def wake(self, ctx: Context) -> None:
        """Continue each move of a publisher and each retirement of a broadcaster, if possible."""
        for publication in self.state.publications.values():
            for publisher in list(publication.draining):
                self._check_drain(ctx, publication, publisher)
        for broker in self._retiring():
            self._check_retiring(ctx, broker)

    def broadcaster_died(self, broadcaster: Principal) -> None:
        """Finish the moves that waited until the queues of a broadcaster, now dead, are empty."""
        for publication in self.state.publications.values():
            for publisher, entries in list(publication.draining.items()):
                if broadcaster in entries:
                    self._drained(publication, publisher)
        for broker in self._retiring():
            # A broadcaster that is now the last one of its subnet has to stay.
            if self.planner.choose(broker.subnet, [broker.id]) is None:
                broker.retiring = False
                broker.emptied = False
                broker.leaves = None
                broker.closed = None

    def _check_drain(self, ctx: Context, publication: Publication, publisher: Principal) -> None:
        """Give a publisher new entries when its old ones have delivered all of its events."""
        entries = publication.draining[publisher]
        fact = PublisherFact(publication.namespace, publisher)
        if any(self.planner.maybe(entry, fact) for entry in entries):
            return
        name = f"icrc72:drain:{publisher.text}:queued"
        since = publication.emptying.setdefault(publisher, ctx.now)
        brokers = [self.state.brokers[entry] for entry in dict.fromkeys(entries)]
        # A list and not a generator, because every broadcaster must be asked, even if one before it
        # still has events.
        empty = [self._is_zero(ctx, broker, name, since) for broker in brokers]
        if all(empty):
            self._drained(publication, publisher)

    def _is_zero(self, ctx: Context, broker: Broker, name: str, since: int) -> bool:
        """Return whether a broadcaster's statistic is 0, in an answer to a request after `since`.

        Otherwise the broadcaster is asked again, every `drain_check` rounds.
        """
        if broker.told_stats >= since and not broker.stats.get(name, 0):
            return True
        if broker.asked_stats < since or ctx.now >= broker.asked_stats + self.settings.drain_check:
            self.lookups.ask_stats(ctx, self.role, broker)
        return False

    def _drained(self, publication: Publication, publisher: Principal) -> None:
        """Give a publisher a new entry, or its old ones if there is no other broadcaster."""
        old = publication.draining.pop(publisher)
        publication.emptying.pop(publisher, None)
        if not publication.publishers.get(publisher):
            return
        chosen = self.planner.choose(subnet_of(publisher), old)
        publication.entries[publisher] = (
            old if chosen is None else (chosen,) * publication.config.partitions
        )
        self.planner.plan_publisher(publication, publisher)
        self.planner.plan_all_pairs(publication)

    def _retiring(self) -> list[Broker]:
        return [
            broker
            for broker in self.state.brokers.values()
            if broker.retiring and broker.registered and not broker.dead
        ]

    def _check_retiring(self, ctx: Context, broker: Broker) -> None:
        """Take the next step of retiring a broadcaster.

        The relays to it may be removed only some rounds after other exits have begun to serve its
        subscribers (`leaves`), because events may still be on their way to it.
        """
        if self._move_publishers(broker) or self._move_exits(broker):
            return
        if broker.leaves is None:
            if all(
                self._served_elsewhere(fact.subscriber, fact)
                for fact in broker.held
                if isinstance(fact, SubscriberFact)
            ):
                broker.leaves = ctx.now + self.settings.drain_check
        elif ctx.now >= broker.leaves and not self._relayed_to(broker):
            self._empty(ctx, broker, broker.leaves)

    def _move_publishers(self, broker: Broker) -> bool:
        """Begin to move the broadcaster's publishers. Return whether it had or still has any."""
        has_publishers = False
        for publication in self.state.publications.values():
            for publisher, entries in list(publication.entries.items()):
                if broker.id in entries:
                    has_publishers = True
                    self.move_publisher(publication.namespace, publisher)
            if any(broker.id in entries for entries in publication.draining.values()):
                has_publishers = True
        return has_publishers

    def _move_exits(self, broker: Broker) -> bool:
        """Give other exits to the broadcaster's members. Return whether it was the exit of any."""
        members = [member for member, exit_ in self.state.exits.items() if exit_ == broker.id]
        for member in members:
            self.planner.assign_exit(member)
        return bool(members)

    def _served_elsewhere(self, member: Principal, fact: Fact) -> bool:
        """Return whether the member's exit has confirmed a fact, or need not have it."""
        exit_ = self.state.exits.get(member)
        if exit_ is None or fact not in self.state.brokers[exit_].want:
            return True
        return self.planner.sure(exit_, fact)

    def _relayed_to(self, broker: Broker) -> bool:
        """Return whether a living broadcaster may still relay events to this one."""
        for source in self.state.brokers.values():
            facts = [*source.held, *source.under_way()]
            if not source.dead and any(
                isinstance(fact, RelayFact) and fact.target == broker.id for fact in facts
            ):
                return True
        return False

    def _empty(self, ctx: Context, broker: Broker, since: int) -> None:
        """Finish the retirement of a broadcaster that no longer gets events.

        When its queues are empty, or `silence` rounds after `since`, its subscribers may be removed
        (see `Planner.removable`). When it then holds no facts, it is no longer registered.
        """
        if not broker.emptied:
            too_late = ctx.now > since + self.settings.silence
            if broker.closed is None:
                broker.closed = ctx.now
            # Asked even if it is too late, like in every other round.
            broker.emptied = self._is_zero(ctx, broker, _QUEUED, broker.closed) or too_late
        elif not broker.held and broker.alert is None:
            broker.registered = False
            broker.retiring = False
