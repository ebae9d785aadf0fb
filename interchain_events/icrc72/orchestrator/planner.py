"""The assignment of broadcasters, and the order in which it takes effect (IC-37 to IC-40).

A publisher gives its events to its entries, and a subscriber gets events from its exit. Both are
broadcasters, usually on the member's subnet. An entry that is not the exit relays events to it.

For each broadcaster there is a set of facts that it should have, each with one or more causes, and
a set of facts that it has confirmed. The planner keeps the first set. The messenger sends the
difference, but asks the planner whether a change is safe yet: a fact is added only when the facts
on which it depends are confirmed. The order is relayer, relay, subscriber, publisher and finally
the members themselves. Removals go the other way. In this way no event is accepted that cannot
reach its subscribers. A relay is never narrower than the subscriptions that its exit may still
serve.
"""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from itertools import chain as chained
from typing import cast

from interchain_events.icrc72 import facts as f
from interchain_events.icrc72 import keys
from interchain_events.icrc72.ic.principal import Principal, subnet_of
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.orchestrator.state import Broker, Member, Publication, Registry

_Fact = tuple[Principal, f.Fact, f.FactValue]
"""A broadcaster, a fact that it should have, and its value."""

_Told = tuple[tuple[str, Principal], f.MemberFact, f.MemberValue]
"""A member (role and id), a fact that it should know, and its value."""


def _loads(fact: f.Fact) -> int:
    """Return how much a fact adds to the load of its broadcaster."""
    return 1 if isinstance(fact, f.SubscriberFact | f.PublisherFact) else 0


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

        The load is the number of pairs of a namespace and a subscriber or publisher. Those in
        `avoid` are left out, and the result is `None` if no other is usable. If the whole subnet
        has no usable one, those of other subnets are taken where the settings say so.
        """
        avoided = set(avoid)
        usable = [
            each
            for each in self.state.brokers.values()
            if each.registered and not (each.dead or each.sick or each.retiring)
        ]
        near = [each for each in usable if self.everywhere or each.subnet == subnet]
        if not near and self.elsewhere:
            near = usable
        return min(
            ((each.load, each.id) for each in near if each.id not in avoided), default=(0, None)
        )[1]

    def assign_exit(self, who: Principal) -> None:
        """Give an exit to a principal that has none, or whose exit is dead or retires.

        The principal is then informed about everything again, in each of its roles. If its subnet
        has no broadcaster, it gets an error.
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
                if chosen is None:
                    member.errors[f.Trouble(0, keys.NO_SUBNET)] = None
                else:
                    member.errors.pop(f.Trouble(0, keys.NO_SUBNET), None)
        for publication in self._publications_of(who):
            self.plan_pair(publication, who)

    def assign_entries(self, publication: Publication, who: Principal) -> None:
        """Give entries to a publisher that has none, or some of whose entries are dead.

        There is one entry for each partition of the publication. Living entries stay at their
        positions, because a position decides which events go there. If there are fewer broadcasters
        than partitions, an entry takes several. A publisher that is being moved is left alone.
        """
        had = publication.entries.get(who, ())
        alive = [each for each in had if not self.state.brokers[each].dead]
        if who in publication.draining or (had and len(alive) == len(had)):
            return
        most = publication.config.partitions
        chosen = list(alive)
        while len(chosen) < most and (broker := self.choose(subnet_of(who), chosen)) is not None:
            chosen.append(broker)
        entries: tuple[Principal, ...] = ()
        if chosen:
            spare = [each for each in chosen if each not in had] or chosen
            old = had or (None,) * most
            entries = tuple(
                each if each in alive else spare[at % len(spare)] for at, each in enumerate(old)
            )
        if entries == had:
            return
        publication.entries[who] = entries
        if not entries:
            member = self.state.members.get(("publisher", who))
            if member is not None:
                member.errors[f.Trouble(publication.id, keys.NO_SUBNET)] = None
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
        facts: list[_Fact] = []
        if exit_ is not None:
            told = [f.SubscriberFact(system_namespace(role, who), who) for role in roles]
            facts = [(exit_, fact, ()) for fact in told]
        self._because(f.MemberCause(who), facts)

    def plan_publisher(self, publication: Publication, who: Principal) -> None:
        """Plan that the entries of a publisher accept its events, and that it is informed."""
        cause = f.PublisherCause(publication.id, who)
        serves = publication.publishers.get(who) and who not in publication.draining
        entries = publication.entries.get(who, ()) if serves else ()
        fact = f.PublisherFact(publication.namespace, who)
        self._because(cause, [(each, fact, publication.version) for each in dict.fromkeys(entries)])
        self._tell_because(
            cause,
            [(("publisher", who), f.EntriesFact(publication.id), entries)] if entries else [],
        )

    def plan_all_pairs(self, publication: Publication) -> None:
        """Plan every subscriber of a publication again."""
        for who in list(publication.subscribers):
            self.plan_pair(publication, who)

    def plan_pair(self, publication: Publication, who: Principal) -> None:
        """Plan how the events of a publication reach a subscriber.

        Its exit notifies it, and every other broadcaster that is an entry of the publication relays
        to this exit. A relay has the filter and skip of the subscriptions if they all have the
        same, and otherwise passes everything.
        """
        cause = f.PairCause(publication.id, who)
        publication.unserved[who] = None
        namespace = publication.namespace
        exit_ = self.state.exits.get(who)
        value = self._wanted(publication, who)
        facts: list[_Fact] = []
        alerts: list[_Told] = []
        entries = self.entries(publication)
        if exit_ is not None and value and entries:
            fact = f.SubscriberFact(namespace, who)
            facts.append((exit_, fact, value))
            alerts = [(("subscriber", who), f.ExitFact(each.id, exit_), True) for each in value]
            cover = {each.width for each in value}
            # While the exit may still serve former values of the subscriptions, the relay must let
            # their events through, too.
            for old in self._served_by(exit_, fact):
                cover |= {each.width for each in old}
            width = next(iter(cover)) if len(cover) == 1 else f.WIDE
            # Relays that pass everything are shared by all subscribers of the exit.
            key = f.EVERYBODY if cover == {f.WIDE} else who
            for entry in entries:
                if entry != exit_:
                    relayer = f.RelayerFact(namespace, entry)
                    facts.append((exit_, relayer, publication.version))
                    facts.append((entry, f.RelayFact(namespace, exit_, key), width))
        self._because(cause, facts)
        self._tell_because(cause, alerts)

    def forget_pair(self, publication: Publication, who: Principal) -> None:
        """Withdraw the plan for a subscriber of a publication."""
        self._because(f.PairCause(publication.id, who), [])
        self._tell_because(f.PairCause(publication.id, who), [])

    def entries(self, publication: Publication) -> tuple[Principal, ...]:
        """Return all entries of a publication, also those of publishers that are being moved."""
        every = (*publication.entries.values(), *publication.draining.values())
        return tuple(dict.fromkeys(chained.from_iterable(every)))

    def _wanted(self, publication: Publication, who: Principal) -> tuple[f.WantedSubscription, ...]:
        """Return the subscriptions of a subscriber that are authorised and not stopped."""
        numbers = [
            number for number, may in sorted(publication.subscribers.get(who, {}).items()) if may
        ]
        mine = [
            each
            for each in map(self.state.subscriptions.__getitem__, numbers)
            if not each.config.stopped
        ]
        return tuple(
            f.WantedSubscription(each.id, each.config.filter, each.config.skip, each.version)
            for each in mine
        )

    def _publications_of(self, who: Principal) -> list[Publication]:
        return [each for each in self.state.publications.values() if who in each.subscribers]

    def _because(self, cause: f.Cause, facts: list[_Fact]) -> None:
        """Replace the facts that a cause makes broadcasters want.

        Facts are counted, since several causes may want the same one. New facts are counted before
        former ones are released, so the count of a fact that stays is never 0 in between.
        """
        had = self.state.reasons.pop(cause, [])
        for broker_id, fact, value in facts:
            broker = self.state.brokers[broker_id]
            wanted = broker.want.get(fact)
            if wanted is None:
                broker.want[fact] = value, 1
                broker.load += _loads(fact)
                broker.dirty[fact] = None
                if isinstance(fact, f.RelayFact):
                    broker.wanted_relays.setdefault(fact.namespace, {})[fact] = None
            else:
                broker.want[fact] = value, wanted[1] + 1
                if wanted[0] != value:
                    broker.dirty[fact] = None
        for broker_id, fact in had:
            broker = self.state.brokers[broker_id]
            value, count = broker.want[fact]
            broker.want[fact] = value, count - 1
            if count == 1:
                del broker.want[fact]
                broker.load -= _loads(fact)
                broker.dirty[fact] = None
                if isinstance(fact, f.RelayFact):
                    del broker.wanted_relays[fact.namespace][fact]
        if facts:
            self.state.reasons[cause] = [(broker_id, fact) for broker_id, fact, _ in facts]

    def _tell_because(self, cause: f.Cause, facts: list[_Told]) -> None:
        """Replace the facts that a cause makes members want, counted like those of broadcasters."""
        had = self.state.member_reasons.pop(cause, [])
        kept: list[tuple[tuple[str, Principal], f.MemberFact]] = []
        for key, fact, value in facts:
            member = self.state.members.get(key)
            if member is not None:
                kept.append((key, fact))
                member.want[fact] = value, member.want.get(fact, (value, 0))[1] + 1
                self.state.restless[key] = None
        for key, fact in had:
            member = self.state.members.get(key)
            if member is not None:
                value, count = member.want[fact]
                member.want[fact] = value, count - 1
                self.state.restless[key] = None
                if count == 1:
                    del member.want[fact]
        if kept:
            self.state.member_reasons[cause] = kept

    def settled(self, fact: f.Fact) -> None:
        """Wake the members that may have waited for a broadcaster to get or drop a fact."""
        match fact:
            case f.SubscriberFact(_, who) | f.PublisherFact(_, who):
                keys_ = [("publisher", who), ("subscriber", who)]
            case f.ReplayFact(number) | f.ReplayRelayFact(number) if number in self.state.replays:
                keys_ = [("publisher", self.state.replays[number].publisher)]
            case _:
                return
        self.state.restless.update({key: None for key in keys_ if key in self.state.members})

    def maybe(self, broker_id: Principal, fact: f.Fact) -> bool:
        """Return whether a living broadcaster may act on a fact: it was sent, confirmed or not."""
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
        """Return the values of a fact on which an exit may act: confirmed, and under way."""
        broker = self.state.brokers[exit_]
        if broker.dead:
            return []
        known = (broker.held, broker.under_way())
        found = [facts[fact] for facts in known if fact in facts]
        return cast("list[tuple[f.WantedSubscription, ...]]", found)

    def ready(self, broker: Broker, fact: f.Fact, value: f.FactValue) -> bool:
        """Return whether the facts on which an addition depends are confirmed (IC-40a).

        A relay needs an exit that accepts from it. A subscriber needs relays from all entries that
        let its events through. A publisher needs the relays of its entry, and exits that serve all
        subscribers. The forwarding of a replay needs an exit that accepts and delivers it.
        """
        match fact:
            case f.RelayFact(namespace, target):
                return self.sure(target, f.RelayerFact(namespace, broker.id))
            case f.SubscriberFact(namespace, who):
                number = self.state.by_namespace.get(namespace)
                if number is None:
                    return True
                others = [
                    each
                    for each in self.entries(self.state.publications[number])
                    if each != broker.id
                ]
                wanted = cast("tuple[f.WantedSubscription, ...]", value)
                return all(self._covers(each, namespace, broker.id, who, wanted) for each in others)
            case f.PublisherFact(namespace):
                publication = self.state.publications[self.state.by_namespace[namespace]]
                relays = broker.wanted_relays.get(namespace, ())
                return all(self.sure(broker.id, each) for each in relays) and self._all_served(
                    publication
                )
            case f.ReplayRelayFact(number):
                exit_ = cast("f.Forwarding", value).target
                return self.sure(exit_, f.ReplayFact(number)) and self.sure(
                    exit_, f.ReplayRelayerFact(number)
                )
            case _:
                return True

    def _all_served(self, publication: Publication) -> bool:
        """Return whether the exits of all subscribers serve them.

        Subscribers that were found served leave `unserved`, so they are not checked again before
        their plan changes.
        """
        # A list: the first key of a dict is found by passing all that were deleted before it.
        for who in list(publication.unserved):
            if who in publication.subscribers and not self._served(publication, who):
                return False
            del publication.unserved[who]
        return True

    def _served(self, publication: Publication, who: Principal) -> bool:
        facts = self.state.reasons.get(f.PairCause(publication.id, who), [])
        return all(self.sure(at, fact) for at, fact in facts if isinstance(fact, f.SubscriberFact))

    def _covers(
        self,
        entry: Principal,
        namespace: str,
        exit_: Principal,
        who: Principal,
        value: tuple[f.WantedSubscription, ...],
    ) -> bool:
        """Return whether an entry surely relays all events of a subscriber's subscriptions.

        Nobody need wait for a dead entry: it relays no events at all.
        """
        broker = self.state.brokers[entry]
        if broker.dead:
            return True
        widths = [
            self._settled(broker, f.RelayFact(namespace, exit_, each))
            for each in (f.EVERYBODY, who)
        ]
        return f.WIDE in widths or all(each.width in widths for each in value)

    def removable(self, broker: Broker, fact: f.Fact) -> bool:
        """Return whether no other fact depends on a fact any more, so that it may go (IC-40a).

        A subscriber of a retiring broadcaster stays until the queues are empty. An exit accepts
        from an entry as long as that may relay to it. An entry accepts from a publisher until the
        publisher was informed of other entries. A sick broadcaster drops everything at once,
        because its state is lost anyway.
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
        """Return whether a relay may go.

        It is needed while its exit may serve a subscriber whose events no other relay of this entry
        lets through. The other relay is that for everybody, or if this is the one for everybody,
        the subscriber's own.
        """
        exit_ = self.state.brokers.get(target)
        if exit_ is None or exit_.dead:
            return True
        # Without publishers, no events of the namespace enter here.
        if not broker.publishers(namespace):
            return True
        # Other exits serve the subscribers of a retiring one, since `leaves` is set.
        if exit_.retiring and exit_.leaves is not None:
            return self.state.last_wake >= exit_.leaves
        served = [who] if who != f.EVERYBODY else exit_.subscribers(namespace)
        for each in served:
            for value in self._served_by(target, f.SubscriberFact(namespace, each)):
                other = each if who == f.EVERYBODY else f.EVERYBODY
                width = self._settled(broker, f.RelayFact(namespace, target, other))
                if width != f.WIDE and not all(part.width == width for part in value):
                    return False
        return True

    def _replay_over(
        self, broker: Broker, fact: f.ReplayFact | f.ReplayRelayFact | f.ReplayRelayerFact
    ) -> bool:
        """Return whether a fact of a replay may go.

        The publisher must first be informed that the replay has ended, then the entry stops to
        forward it, and the exit goes last.
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
                return all(self.sure(each, accepted) for each in entries)
            case f.ExitFact(number):
                facts: list[tuple[Principal, f.Fact]] = []
                for publication in self._publications_of(member.id):
                    if number in publication.subscribers[member.id]:
                        facts += self.state.reasons.get(f.PairCause(publication.id, member.id), [])
                known = number in self.state.subscriptions
                return known and all(
                    self.sure(at, found)
                    for at, found in facts
                    if isinstance(found, f.SubscriberFact)
                )
            case f.DueFact(number):
                path = self.state.replays[number].path
                if path is None:
                    return False
                entry, exit_ = path
                return (
                    self.sure(exit_, f.ReplayFact(number))
                    if entry == exit_
                    else self.sure(entry, f.ReplayRelayFact(number))
                )
            case f.BegunFact():
                # The exit of a replay informs the subscriber.
                return False

    def plan_replay(self, number: int) -> None:
        """Plan the facts of a replay for its entry, exit and publisher (RP-6).

        After the end of a replay, the exit keeps its facts while `exit_kept` is set, because events
        may still be queued at the entry.
        """
        cause = f.ReplayCause(number)
        replay = self.state.replays.get(number)
        facts: list[_Fact] = []
        alerts: list[_Told] = []
        if replay is not None and replay.path is not None:
            entry, exit_ = replay.path
            live = replay.ended is None
            if live or replay.exit_kept:
                # If the entry is also the exit, this names the exit itself.
                hands = entry
                delivering = f.Delivering(
                    replay.namespace,
                    hands,
                    replay.subscriber,
                    filter=replay.filter,
                    skip=replay.skip,
                    publisher=replay.publisher,
                )
                facts.append((exit_, f.ReplayFact(number), delivering))
                if entry != exit_:
                    handing = f.Handing(replay.namespace, entry)
                    facts.append((exit_, f.ReplayRelayerFact(number), handing))
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
        self._because(cause, facts)
        self._tell_because(cause, alerts)
