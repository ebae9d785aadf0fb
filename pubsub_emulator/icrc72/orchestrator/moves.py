"""Moving publishers and retiring broadcasters: what is queued is delivered first (IC-47b).

A broadcaster that is to be retired gets nobody new. Its publishers are moved when their events are done; then its
subscribers get other exits, the relays to it go, and, when its queues are empty, its subscribers. Gaps are replayed.
"""

from dataclasses import dataclass

from pubsub_emulator.icrc72.facts import Fact
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import Principal, subnet_of
from pubsub_emulator.icrc72.orchestrator.planner import Planner
from pubsub_emulator.icrc72.orchestrator.queries import Queries
from pubsub_emulator.icrc72.orchestrator.state import Broker, Part, Publication

_QUEUED = "icrc72:broadcaster:stats:queued"


@dataclass
class Moves(Part):
    """Publishers that are being moved and broadcasters that are being retired."""

    planner: Planner
    lookups: Queries

    def move_publisher(self, namespace: str, publisher: Principal) -> bool:
        """Move a publisher to other broadcasters: its entries are emptied first. False when it has none."""
        publication = self.state.publications.get(self.state.by_namespace.get(namespace, 0))
        if publication is None or not publication.entries.get(publisher) or publisher in publication.draining:
            return False
        publication.draining[publisher] = publication.entries.pop(publisher)
        self.planner.plan_publisher(publication, publisher)
        return True

    def retire(self, broadcaster: Principal) -> bool:
        """Begin to move everybody off a broadcaster. False when nobody else serves its subnet."""
        broker = self.state.brokers.get(broadcaster)
        if broker is None or broker.dead or self.planner.choose(broker.subnet, [broadcaster]) is None:
            return False
        broker.retiring = True
        return True

    def due(self, now: int) -> int | None:
        """The next round in which there is something to look at."""
        moving = any(each.draining for each in self.state.publications.values())
        return now + self.settings.drain_check if moving or self._retiring() else None

    def wake(self, ctx: Context) -> None:
        """Take the next step of each move."""
        for publication in self.state.publications.values():
            for who in list(publication.draining):
                self._check_drain(ctx, publication, who)
        for broker in self._retiring():
            self._check_retiring(ctx, broker)

    def broadcaster_died(self, broadcaster: Principal) -> None:
        """Give up what it was to deliver; its publishers need not wait."""
        for publication in self.state.publications.values():
            for who in [w for w, entries in publication.draining.items() if broadcaster in entries]:
                self._drained(publication, who)
        for broker in self._retiring():
            if self.planner.choose(broker.subnet, [broker.id]) is None:  # it is the last of its subnet now
                broker.retiring = broker.emptied = False
                broker.leaves = broker.closed = None

    def _check_drain(self, ctx: Context, publication: Publication, who: Principal) -> None:
        entries = publication.draining[who]
        fact: Fact = ("pub", publication.namespace, who)
        if any(self.planner.maybe(each, fact) for each in entries):
            return
        name, since = f"icrc72:drain:{who.text}:queued", publication.emptying.setdefault(who, ctx.now)
        brokers = [self.state.brokers[each] for each in dict.fromkeys(entries)]
        waits = [each for each in brokers if not self._is_zero(ctx, each, name, since)]
        if not waits:
            self._drained(publication, who)

    def _is_zero(self, ctx: Context, broker: Broker, name: str, since: int) -> bool:
        """True when a broadcaster said so after `since`; otherwise it is asked, every 10 rounds."""
        if broker.told_stats >= since and not broker.stats.get(name, 0):
            return True
        if broker.asked_stats < since or ctx.now >= broker.asked_stats + self.settings.drain_check:
            self.lookups.ask_stats(ctx, self.role, broker)
        return False

    def _drained(self, publication: Publication, who: Principal) -> None:
        old = publication.draining.pop(who)
        publication.emptying.pop(who, None)
        if not publication.publishers.get(who):
            return
        chosen = self.planner.choose(subnet_of(who), old)
        publication.entries[who] = old if chosen is None else (chosen,) * publication.config.partitions
        self.planner.plan_publisher(publication, who)
        self.planner.plan_all_pairs(publication)

    def _retiring(self) -> list[Broker]:
        return [each for each in self.state.brokers.values() if each.retiring and each.registered and not each.dead]

    def _check_retiring(self, ctx: Context, broker: Broker) -> None:
        if self._serves_publishers(broker) or self._has_exits(broker):
            return
        if broker.leaves is None:
            if all(self._served_elsewhere(fact[2], fact) for fact in broker.held if fact[0] == "sub"):
                broker.leaves = ctx.now + self.settings.drain_check
        elif ctx.now >= broker.leaves and not self._relayed_to(broker):
            self._empty(ctx, broker, broker.leaves)

    def _serves_publishers(self, broker: Broker) -> bool:
        found = False
        for publication in self.state.publications.values():
            for who, entries in list(publication.entries.items()):
                if broker.id in entries:
                    found = True
                    self.move_publisher(publication.namespace, who)
            found = found or any(broker.id in entries for entries in publication.draining.values())
        return found

    def _has_exits(self, broker: Broker) -> bool:
        mine = [who for who, exit_ in self.state.exits.items() if exit_ == broker.id]
        for who in mine:
            self.planner.assign_exit(who)
        return bool(mine)

    def _served_elsewhere(self, who: Principal, fact: Fact) -> bool:
        exit_ = self.state.exits.get(who)
        wanted = exit_ is not None and fact in self.state.brokers[exit_].want
        return not wanted or (exit_ is not None and self.planner.sure(exit_, fact))

    def _relayed_to(self, broker: Broker) -> bool:
        for source in self.state.brokers.values():
            facts = [*source.held, *(source.alert.adds if source.alert is not None else ())]
            if not source.dead and any(fact[0] == "relay" and fact[2] == broker.id for fact in facts):
                return True
        return False

    def _empty(self, ctx: Context, broker: Broker, since: int) -> None:
        """Nothing comes in any more: when its queues are empty its subscribers go, then it is off the list."""
        if not broker.emptied:
            late = ctx.now > since + self.settings.silence
            if broker.closed is None:
                broker.closed = ctx.now
            broker.emptied = self._is_zero(ctx, broker, _QUEUED, broker.closed) or late
        elif not broker.held and broker.alert is None:
            broker.registered = broker.retiring = False
