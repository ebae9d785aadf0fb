"""The assignment of broadcasters, and the order in which it takes effect (IC-37 to IC-40).

A publisher gives its events to its entries, and a subscriber gets events from its exit. Both are
broadcasters, usually on the member's subnet. An entry that is not the exit relays events to it.

For each broadcaster there is a set of facts that it should have, each with one or more causes, and
a set of facts that it has confirmed. The planner keeps the first set. The messenger sends the
difference, but asks the planner whether a change is already safe: a fact is added only when the
facts on which it depends are confirmed. The order is relayer, relay, subscriber, publisher, and
finally the members are informed. Facts are removed in the opposite order. So an event is accepted
only if it can reach its subscribers. A relay always lets through at least the events of the
subscriptions that its exit may still serve.
"""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from itertools import chain as chained
from typing import Final, cast

from interchain_events.icrc72 import facts as f
from interchain_events.icrc72 import keys
from interchain_events.icrc72.ic.principal import Principal, subnet_of
from interchain_events.icrc72.memory import put, put_single, take_out
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.orchestrator.state import (
    Broker,
    Member,
    Publication,
    Registry,
    Replay,
)

_BrokerFact = tuple[Principal, f.Fact, f.FactValue]
"""A broadcaster, a fact that it should have, and its value."""

_KnownFact = tuple[tuple[str, Principal], f.MemberFact, f.MemberValue]
"""A member (role and id), a fact that it should know, and its value."""


_OF_MEMBERS: Final = (f.SubscriberFact, f.PublisherFact)
"""The facts that make up the load of a broadcaster."""


def _load_of(fact: f.Fact) -> int:
    """Return what a fact adds to its broadcaster's load: 1 if it is about a member, else 0."""
    return 1 if isinstance(fact, _OF_MEMBERS) else 0


# The plans of all subscribers that share a relay contain these two facts.


@lru_cache(maxsize=1 << 10)
def _relayer(namespace: str, entry: Principal) -> f.RelayerFact:
    return f.RelayerFact(namespace, entry)


@lru_cache(maxsize=1 << 10)
def _relay(namespace: str, exit_: Principal, subscriber: Principal) -> f.RelayFact:
    return f.RelayFact(namespace, exit_, subscriber)


@dataclass(slots=True)
class Planner:
    """The part that assigns broadcasters and keeps the facts that each canister should have."""

    state: Registry
    _: KW_ONLY
    everywhere: bool
    """Whether broadcasters serve members of all subnets."""
    elsewhere: bool
    """Whether they serve members of other subnets that have no usable broadcaster."""

    def choose(self, subnet: int | None, avoid: Iterable[Principal] = ()) -> Principal | None:
        """Return the broadcaster of a subnet with the least load, then the smallest id (IC-37).

        The load is the number of pairs of a namespace and a subscriber or publisher. Returns `None`
        if the subnet has no usable broadcaster outside of `avoid`. With the setting `elsewhere`, a
        subnet without any usable broadcaster is served by those of other subnets.
        """
        avoided = set(avoid)
        usable = [
            broker
            for broker in self.state.brokers.values()
            if broker.registered and not (broker.dead or broker.sick or broker.retiring)
        ]
        near = [broker for broker in usable if self.everywhere or broker.subnet == subnet]
        if not near and self.elsewhere:
            near = usable
        allowed = [broker for broker in near if broker.id not in avoided]
        if not allowed:
            return None
        return min(allowed, key=lambda broker: (broker.load, broker.id)).id

    def assign_exit(self, who: Principal) -> None:
        """Give an exit to a principal that has none, or whose exit is dead or retiring.

        If the exit changes, the principal is informed about all its facts again, in each of its
        roles. If its subnet has no broadcaster, it gets an error.
        """
        current = self.state.exits.get(who)
        if current is not None and not (
            self.state.brokers[current].dead or self.state.brokers[current].retiring
        ):
            return
        chosen = self.choose(subnet_of(who))
        if who in self.state.exits and chosen == current:
            return
        self.state.exits[who] = chosen
        self.plan_member_exit(who)
        for role in ("publisher", "subscriber"):
            member = self.state.members.get((role, who))
            if member is not None:
                member.fresh = True
                self.state.restless[role, who] = None
                error = f.Trouble(0, keys.NO_SUBNET)
                if chosen is None:
                    member.errors = put(member.errors, error, None)
                else:
                    member.errors = take_out(member.errors, error)
        for publication in self._publications_of(who):
            self.plan_pair(publication, who)

    def assign_entries(self, publication: Publication, who: Principal) -> None:
        """Give entries to a publisher that has none, or some of whose entries are dead.

        There is one entry for each partition of the publication. Living entries stay at their
        positions, because a position decides which events go there. If there are fewer broadcasters
        than partitions, an entry takes several. A publisher that is being moved is not changed.
        """
        former = publication.entries.get(who, ())
        alive = [entry for entry in former if not self.state.brokers[entry].dead]
        if who in publication.draining or (former and len(alive) == len(former)):
            return
        chosen = list(alive)
        while len(chosen) < publication.config.partitions:
            broker = self.choose(subnet_of(who), chosen)
            if broker is None:
                break
            chosen.append(broker)
        entries: tuple[Principal, ...] = ()
        if chosen:
            # The new broadcasters take the free partitions in turn. If there are none, the living
            # entries take them.
            spare = [broker for broker in chosen if broker not in former] or chosen
            places = former or (None,) * publication.config.partitions
            entries = tuple(
                entry if entry in alive else spare[partition % len(spare)]
                for partition, entry in enumerate(places)
            )
        if entries == former:
            return
        publication.entries[who] = entries
        if not entries:
            member = self.state.members.get(("publisher", who))
            if member is not None:
                error = f.Trouble(publication.id, keys.NO_SUBNET)
                member.errors = put(member.errors, error, None)
                self.state.restless["publisher", who] = None
        self.plan_publisher(publication, who)
        self.plan_all_pairs(publication)

    def move_all(self) -> None:
        """Give other broadcasters to all members whose broadcaster is dead or missing."""
        for who in list(self.state.exits):
            self.assign_exit(who)
        for publication in list(self.state.publications.values()):
            for who, may in list(publication.publishers.items()):
                if may:
                    self.assign_entries(publication, who)

    def plan_member_exit(self, who: Principal) -> None:
        """Plan that the exit of a principal delivers its system events."""
        exit_ = self.state.exits.get(who)
        roles = [role for role in ("publisher", "subscriber") if (role, who) in self.state.members]
        facts: list[_BrokerFact] = []
        if exit_ is not None:
            namespaces = [system_namespace(role, who) for role in roles]
            facts = [(exit_, f.SubscriberFact(name, who), ()) for name in namespaces]
        self._replace_facts(f.MemberCause(who), facts)

    def plan_publisher(self, publication: Publication, who: Principal) -> None:
        """Plan that a publisher's entries accept its events, and that it is informed about them."""
        cause = f.PublisherCause(publication.id, who)
        may_publish = publication.publishers.get(who) and who not in publication.draining
        entries = publication.entries.get(who, ()) if may_publish else ()
        fact = f.PublisherFact(publication.namespace, who)
        # One broadcaster may be the entry for several partitions.
        brokers = dict.fromkeys(entries)
        self._replace_facts(cause, [(broker, fact, publication.version) for broker in brokers])
        informed: list[_KnownFact] = []
        if entries:
            informed.append((("publisher", who), f.EntriesFact(publication.id), entries))
        self._replace_member_facts(cause, informed)

    def plan_all_pairs(self, publication: Publication) -> None:
        """Plan every subscriber of a publication again."""
        for who in list(publication.subscribers):
            self.plan_pair(publication, who)

    def plan_pair(self, publication: Publication, who: Principal) -> None:
        """Plan how the events of a publication reach a subscriber.

        The subscriber's exit notifies it, and every other broadcaster that is an entry of the
        publication relays to this exit. If all of the subscriber's subscriptions have the same
        filter and skip, the relay has them, too. Otherwise the relay lets all events through.
        """
        cause = f.PairCause(publication.id, who)
        publication.unserved[who] = None
        namespace = publication.namespace
        exit_ = self.state.exits.get(who)
        subscriptions = self._wanted(publication, who)
        facts: list[_BrokerFact] = []
        alerts: list[_KnownFact] = []
        entries = self.entries(publication)
        if exit_ is not None and subscriptions and entries:
            fact = f.SubscriberFact(namespace, who)
            facts.append((exit_, fact, subscriptions))
            alerts = [
                (("subscriber", who), f.ExitFact(wanted.id, exit_), True)
                for wanted in subscriptions
            ]
            widths = {wanted.width for wanted in subscriptions}
            # While the exit may still serve former values of the subscriptions, the relay must let
            # their events through, too.
            for served in self._served_by(exit_, fact):
                widths |= {wanted.width for wanted in served}
            width = next(iter(widths)) if len(widths) == 1 else f.WIDE
            # All subscribers of the exit that get all events share one relay.
            key = f.EVERYBODY if widths == {f.WIDE} else who
            for entry in entries:
                if entry != exit_:
                    facts.append((exit_, _relayer(namespace, entry), publication.version))
                    facts.append((entry, _relay(namespace, exit_, key), width))
        self._replace_facts(cause, facts)
        self._replace_member_facts(cause, alerts)

    def forget_pair(self, publication: Publication, who: Principal) -> None:
        """Withdraw the plan for a subscriber of a publication."""
        self._replace_facts(f.PairCause(publication.id, who), [])
        self._replace_member_facts(f.PairCause(publication.id, who), [])

    def entries(self, publication: Publication) -> tuple[Principal, ...]:
        """Return all entries of a publication, also those of publishers that are being moved."""
        entries = (*publication.entries.values(), *publication.draining.values())
        return tuple(dict.fromkeys(chained.from_iterable(entries)))

    def _wanted(self, publication: Publication, who: Principal) -> tuple[f.WantedSubscription, ...]:
        """Return the subscriptions of a subscriber that are authorised and not stopped."""
        wanted: list[f.WantedSubscription] = []
        for number, may in sorted(publication.subscribers.get(who, {}).items()):
            if not may:
                continue
            subscription = self.state.subscriptions[number]
            config = subscription.config
            if not config.stopped:
                wanted.append(
                    f.WantedSubscription(number, config.filter, config.skip, subscription.version)
                )
        return tuple(wanted)

    def _publications_of(self, who: Principal) -> list[Publication]:
        """Return the publications to which a principal subscribes."""
        return [
            publication
            for publication in self.state.publications.values()
            if who in publication.subscribers
        ]

    def _replace_facts(self, cause: f.Cause, facts: list[_BrokerFact]) -> None:
        """Replace the facts that broadcasters should have because of a cause.

        Several causes may need the same fact, so each fact has a count of its causes. New facts are
        counted before former ones are released. Otherwise the count of a fact that stays would be 0
        for a moment, and the fact would be removed.
        """
        former = self.state.reasons.pop(cause, [])
        needed = [(broker_id, fact) for broker_id, fact, _ in facts]
        if needed == former:
            if former:
                self._replace_values(facts)
                # The former list shares its facts with `want`, which saves memory.
                self.state.reasons[cause] = former
            return
        for broker_id, fact, value in facts:
            broker = self.state.brokers[broker_id]
            wanted = broker.want.get(fact)
            if wanted is None:
                broker.want[fact] = value, 1
                broker.load += _load_of(fact)
                broker.dirty[fact] = None
                if isinstance(fact, f.RelayFact):
                    broker.wanted_relays.setdefault(fact.namespace, {})[fact] = None
            else:
                broker.want[fact] = value, wanted[1] + 1
                if wanted[0] != value:
                    broker.dirty[fact] = None
        for broker_id, fact in former:
            broker = self.state.brokers[broker_id]
            value, count = broker.want[fact]
            broker.want[fact] = value, count - 1
            if count == 1:
                del broker.want[fact]
                broker.load -= _load_of(fact)
                broker.dirty[fact] = None
                if isinstance(fact, f.RelayFact):
                    del broker.wanted_relays[fact.namespace][fact]
        if needed:
            self.state.reasons[cause] = needed

    def _replace_values(self, facts: list[_BrokerFact]) -> None:
        """Change the values of facts that broadcasters should have as before."""
        for broker_id, fact, value in facts:
            broker = self.state.brokers[broker_id]
            former, count = broker.want[fact]
            if value != former:
                broker.want[fact] = value, count
                broker.dirty[fact] = None

    def _replace_member_facts(self, cause: f.Cause, facts: list[_KnownFact]) -> None:
        """Replace the facts that members should know because of a cause.

        Each fact has a count of its causes, as in `_replace_facts`.
        """
        former = self.state.member_reasons.pop(cause, [])
        counted: list[tuple[tuple[str, Principal], f.MemberFact]] = []
        for key, fact, value in facts:
            member = self.state.members.get(key)
            if member is not None:
                counted.append((key, fact))
                _, count = member.want.get(fact, (value, 0))
                member.want = put_single(member.want, fact, (value, count + 1))
                self.state.restless[key] = None
        for key, fact in former:
            member = self.state.members.get(key)
            if member is not None:
                value, count = member.want[fact]
                self.state.restless[key] = None
                if count == 1:
                    member.want = take_out(member.want, fact)
                else:
                    member.want = put_single(member.want, fact, (value, count - 1))
        if counted:
            self.state.member_reasons[cause] = counted

    def settled(self, fact: f.Fact) -> None:
        """Mark members as restless if they may have waited for a broadcaster to change a fact."""
        match fact:
            case f.SubscriberFact(_, who) | f.PublisherFact(_, who):
                keys_ = [("publisher", who), ("subscriber", who)]
            case f.ReplayFact(number) | f.ReplayRelayFact(number) if number in self.state.replays:
                keys_ = [("publisher", self.state.replays[number].publisher)]
            case _:
                return
        self.state.restless.update({key: None for key in keys_ if key in self.state.members})

    def maybe(self, broker_id: Principal, fact: f.Fact) -> bool:
        """Return whether a living broadcaster may act on a fact, because the fact was sent to it.

        It may or may not have confirmed the fact.
        """
        broker = self.state.brokers.get(broker_id)
        if broker is None or broker.dead:
            return False
        return fact in broker.held or fact in broker.under_way()

    def sure(self, broker_id: Principal, fact: f.Fact) -> bool:
        """Return whether a living broadcaster has confirmed a fact with its present value."""
        broker = self.state.brokers.get(broker_id)
        if broker is None or broker.dead or fact not in broker.want:
            return False
        return self._settled(broker, fact) == broker.want[fact][0]

    @staticmethod
    def _settled(broker: Broker, fact: f.Fact) -> f.FactValue | None:
        """Return the confirmed value of a fact, or `None` while a change of it is under way."""
        alert = broker.alert
        if alert is not None and (fact in alert.content.adds or fact in alert.content.removes):
            return None
        return broker.held.get(fact)

    def _served_by(
        self, exit_: Principal, fact: f.SubscriberFact
    ) -> list[tuple[f.WantedSubscription, ...]]:
        """Return the confirmed value of a fact and the one under way. An exit may act on either."""
        broker = self.state.brokers[exit_]
        if broker.dead:
            return []
        values = [facts[fact] for facts in (broker.held, broker.under_way()) if fact in facts]
        return cast("list[tuple[f.WantedSubscription, ...]]", values)

    def ready(self, broker: Broker, fact: f.Fact, value: f.FactValue) -> bool:
        """Return whether the facts on which an addition depends are confirmed (IC-40a).

        A relay depends on an exit that accepts events from it. A subscriber depends on relays from
        all entries that let its events through. A publisher depends on the relays of its entry, and
        on exits that serve all subscribers. Forwarding a replay depends on an exit that accepts and
        delivers it.
        """
        match fact:
            case f.RelayFact(namespace, target):
                return self.sure(target, f.RelayerFact(namespace, broker.id))
            case f.SubscriberFact(namespace, who):
                number = self.state.by_namespace.get(namespace)
                if number is None:
                    return True
                wanted = cast("tuple[f.WantedSubscription, ...]", value)
                return all(
                    self._covers(entry, namespace, exit_=broker.id, who=who, wanted=wanted)
                    for entry in self.entries(self.state.publications[number])
                    if entry != broker.id
                )
            case f.PublisherFact(namespace):
                publication = self.state.publications[self.state.by_namespace[namespace]]
                relays = broker.wanted_relays.get(namespace, ())
                relays_confirmed = all(self.sure(broker.id, relay) for relay in relays)
                return relays_confirmed and self._all_served(publication)
            case f.ReplayRelayFact(number):
                exit_ = cast("f.Forwarding", value).target
                return self.sure(exit_, f.ReplayFact(number)) and self.sure(
                    exit_, f.ReplayRelayerFact(number)
                )
            case _:
                return True

    def _all_served(self, publication: Publication) -> bool:
        """Return whether the exits of all subscribers serve them.

        A subscriber that is served is taken out of `unserved`, so it is not checked again before
        its plan changes.
        """
        # A copy, because entries are deleted in the loop. Taking the first key again and again
        # instead would be slow: Python searches it behind all keys that were deleted before.
        for who in list(publication.unserved):
            if who in publication.subscribers and not self._served(publication, who):
                return False
            del publication.unserved[who]
        return True

    def _served(self, publication: Publication, who: Principal) -> bool:
        """Return whether the exit of a subscriber has confirmed that it serves the subscriber."""
        facts = self.state.reasons.get(f.PairCause(publication.id, who), [])
        return all(
            self.sure(broker_id, fact)
            for broker_id, fact in facts
            if isinstance(fact, f.SubscriberFact)
        )

    def _covers(
        self,
        entry: Principal,
        namespace: str,
        *,
        exit_: Principal,
        who: Principal,
        wanted: tuple[f.WantedSubscription, ...],
    ) -> bool:
        """Return whether an entry surely relays all events of a subscriber's subscriptions.

        A dead entry counts as one that does, because it accepts no events that could be missed.
        """
        broker = self.state.brokers[entry]
        if broker.dead:
            return True
        for_all = self._settled(broker, f.RelayFact(namespace, exit_, f.EVERYBODY))
        if for_all == f.WIDE:
            return True
        own = self._settled(broker, f.RelayFact(namespace, exit_, who))
        if own == f.WIDE:
            return True
        return all(subscription.width in {for_all, own} for subscription in wanted)

    def removable(self, broker: Broker, fact: f.Fact) -> bool:
        """Return whether a fact may be removed, because no other fact depends on it (IC-40a).

        A subscriber of a retiring broadcaster stays until the queues are empty. An exit accepts
        events from an entry as long as the entry may relay to it. An entry accepts events from a
        publisher until the publisher was informed about other entries. A sick broadcaster drops all
        facts at once, because its state is lost anyway.
        """
        if broker.sick:
            return True
        match fact:
            case f.SubscriberFact():
                return not broker.retiring or broker.emptied
            case f.RelayerFact(namespace, entry):
                source = self.state.brokers.get(entry)
                return (
                    source is None
                    or source.dead
                    or broker.id not in source.relay_targets(namespace)
                )
            case f.RelayFact(namespace, target, who):
                return self._unneeded(broker, namespace, target, who)
            case f.PublisherFact(namespace, who):
                number = self.state.by_namespace.get(namespace)
                member = self.state.members.get(("publisher", who))
                if number is None or member is None:
                    return True
                return broker.id not in cast(
                    "tuple[Principal, ...]", member.holds.get(f.EntriesFact(number), ())
                )
            case f.ReplayFact() | f.ReplayRelayFact() | f.ReplayRelayerFact():
                return self._replay_over(broker, fact)

    def _unneeded(self, broker: Broker, namespace: str, target: Principal, who: Principal) -> bool:
        """Return whether a relay may be removed.

        It must stay while its exit may serve a subscriber whose events this entry's other relay
        does not let through. The other relay is that for everybody if `who` is a subscriber, and
        the subscriber's own relay if `who` is `EVERYBODY`.
        """
        exit_ = self.state.brokers.get(target)
        if exit_ is None or exit_.dead:
            return True
        # Without publishers, no events of the namespace arrive here.
        if not broker.publishers(namespace):
            return True
        # Other exits serve the subscribers of a retiring one, since `leaves` is set.
        if exit_.retiring and exit_.leaves is not None:
            return self.state.last_wake >= exit_.leaves
        subscribers = exit_.subscribers(namespace) if who == f.EVERYBODY else [who]
        for subscriber in subscribers:
            other = subscriber if who == f.EVERYBODY else f.EVERYBODY
            width = self._settled(broker, f.RelayFact(namespace, target, other))
            for served in self._served_by(target, f.SubscriberFact(namespace, subscriber)):
                if width != f.WIDE and not all(wanted.width == width for wanted in served):
                    return False
        return True

    def _replay_over(
        self, broker: Broker, fact: f.ReplayFact | f.ReplayRelayFact | f.ReplayRelayerFact
    ) -> bool:
        """Return whether a fact of a replay may be removed.

        First the publisher must be informed that the replay has ended. Then the entry's fact may
        go, and last the exit's.
        """
        number = fact.replay
        replay = self.state.replays.get(number)
        if replay is None or replay.path is None:
            return True
        member = self.state.members.get(("publisher", replay.publisher))
        due = f.DueFact(number)
        if member is not None and (due in member.holds or due in member.may):
            return False
        if isinstance(fact, f.ReplayRelayFact):
            return True
        entry = replay.path[0]
        return entry == broker.id or not self.maybe(entry, f.ReplayRelayFact(number))

    def member_ready(self, member: Member, fact: f.MemberFact, value: f.MemberValue) -> bool:
        """Return whether the broadcasters' facts on which a member's fact depends are confirmed."""
        match fact:
            case f.EntriesFact(number):
                accepted = f.PublisherFact(self.state.publications[number].namespace, member.id)
                entries = cast("tuple[Principal, ...]", value)
                return all(self.sure(entry, accepted) for entry in entries)
            case f.ExitFact(number):
                return number in self.state.subscriptions and all(
                    self._served(publication, member.id)
                    for publication in self._publications_of(member.id)
                    if number in publication.subscribers[member.id]
                )
            case f.DueFact(number):
                path = self.state.replays[number].path
                if path is None:
                    return False
                entry, exit_ = path
                if entry == exit_:
                    return self.sure(exit_, f.ReplayFact(number))
                return self.sure(entry, f.ReplayRelayFact(number))
            case f.BegunFact():
                # The exit of a replay, and not the orchestrator, informs the subscriber.
                return False

    def plan_replay(self, number: int) -> None:
        """Plan the facts of a replay for its entry, exit and publisher (RP-6).

        After the end of a replay, the exit keeps its facts while `exit_kept` is set, because events
        may still be queued at the entry.
        """
        cause = f.ReplayCause(number)
        replay = self.state.replays.get(number)
        facts: list[_BrokerFact] = []
        alerts: list[_KnownFact] = []
        if replay is not None and replay.path is not None:
            entry, exit_ = replay.path
            live = replay.ended is None
            if live or replay.exit_kept:
                facts += _exit_facts(replay, entry, exit_)
            if live and entry != exit_:
                forwarding = f.Forwarding(
                    replay.namespace,
                    exit_,
                    replay.publisher,
                    filter=replay.filter,
                    skip=replay.skip,
                )
                facts.append((entry, f.ReplayRelayFact(number), forwarding))
            if live:
                due = f.Due(replay.namespace, replay.start, replay.end, entry)
                alerts.append((("publisher", replay.publisher), f.DueFact(number), due))
        self._replace_facts(cause, facts)
        self._replace_member_facts(cause, alerts)


def _exit_facts(replay: Replay, entry: Principal, exit_: Principal) -> list[_BrokerFact]:
    """Return the facts that the exit of a replay should have.

    The exit delivers the events that the entry hands over. If one broadcaster is both, it expects
    them from itself.
    """
    delivering = f.Delivering(
        replay.namespace,
        entry,
        replay.subscriber,
        filter=replay.filter,
        skip=replay.skip,
        publisher=replay.publisher,
    )
    facts: list[_BrokerFact] = [(exit_, f.ReplayFact(replay.id), delivering)]
    if entry != exit_:
        handing = f.Handing(replay.namespace, entry)
        facts.append((exit_, f.ReplayRelayerFact(replay.id), handing))
    return facts
