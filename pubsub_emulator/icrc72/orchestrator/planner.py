"""The assignment of broadcasters, and the order in which members are told of it (IC-37 to IC-40).

What a broadcaster should know is a set of facts, each with its causes; what it has confirmed is another. A fact is sent
when what it rests on is confirmed: relayer, relay, subscriber, publisher, then the members themselves; removals go the
other way. A relay is never narrower than what its exit may still serve.
"""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Final, cast

from pubsub_emulator.icrc72 import facts as f
from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.ic.principal import Principal, subnet_of
from pubsub_emulator.icrc72.namespaces import system_namespace
from pubsub_emulator.icrc72.orchestrator.state import Broker, Member, Publication, Registry

WIDE: Final[f.Width] = (None, None)  # filter and skip of a relay that passes everything


_Fact = tuple[Principal, f.Fact, f.FactValue]  # which broadcaster is to be told what

_Told = tuple[tuple[str, Principal], f.MemberFact, f.MemberValue]  # which member is to be told what


@dataclass(slots=True)
class Planner:
    """Decides on assignments, and keeps the facts that each member should know."""

    state: Registry
    _: KW_ONLY
    everywhere: bool

    def choose(self, subnet: int | None, avoid: Iterable[Principal] = ()) -> Principal | None:
        """The broadcaster of a subnet with the fewest assigned pairs, then the smallest (IC-37)."""
        avoided = set(avoid)
        near = [each for each in self.state.brokers.values() if self.everywhere or each.subnet == subnet]
        sound = [each for each in near if each.registered and not (each.dead or each.sick or each.retiring)]
        return min(((each.load, each.id) for each in sound if each.id not in avoided), default=(0, None))[1]

    def assign_exit(self, who: Principal) -> None:
        """Choose an exit for a principal that has none; members are told everything again."""
        current = self.state.exits.get(who)
        if current is not None and not (self.state.brokers[current].dead or self.state.brokers[current].retiring):
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
                    member.errors[0, keys.NO_SUBNET, ""] = None
                else:
                    member.errors.pop((0, keys.NO_SUBNET, ""), None)
        for publication in self._publications_of(who):
            self.plan_pair(publication, who)

    def assign_entries(self, publication: Publication, who: Principal) -> None:
        """Choose entries for a publisher that has none, or some that are dead."""
        had = publication.entries.get(who, ())
        alive = [each for each in had if not self.state.brokers[each].dead]
        if who in publication.draining or (had and len(alive) == len(had)):
            return
        most, chosen = publication.config.partitions, list(alive)
        while len(chosen) < most and (broker := self.choose(subnet_of(who), chosen)) is not None:
            chosen.append(broker)
        entries: tuple[Principal, ...] = ()
        if chosen:
            spare = [each for each in chosen if each not in had] or chosen
            old = had or (None,) * most
            entries = tuple(each if each in alive else spare[at % len(spare)] for at, each in enumerate(old))
        if entries == had:
            return
        publication.entries[who] = entries
        if not entries:
            member = self.state.members.get(("publisher", who))
            if member is not None:
                member.errors[publication.id, keys.NO_SUBNET, ""] = None
                self.state.restless["publisher", who] = None
        self.plan_publisher(publication, who)
        self.plan_all_pairs(publication)

    def move_all(self) -> None:
        """Give everybody who has no living broadcaster another one."""
        for who in list(self.state.exits):
            self.assign_exit(who)
        for publication in list(self.state.publications.values()):
            for who, may in list(publication.publishers.items()):
                if may:
                    self.assign_entries(publication, who)

    def plan_member_exit(self, who: Principal) -> None:
        """The exit serves the system namespaces of the principal."""
        exit_ = self.state.exits.get(who)
        roles = [role for role in ("publisher", "subscriber") if (role, who) in self.state.members]
        facts: list[_Fact] = []
        if exit_ is not None:
            facts = [(exit_, ("sub", system_namespace(role, who), who), ()) for role in roles]
        self._because(("member", who), facts)

    def plan_publisher(self, publication: Publication, who: Principal) -> None:
        """The entries of a publisher accept its events, and it is told of them."""
        cause: f.Cause = ("publisher", publication.id, who)
        serves = publication.publishers.get(who) and who not in publication.draining
        entries = publication.entries.get(who, ()) if serves else ()
        fact: f.Fact = ("pub", publication.namespace, who)
        self._because(cause, [(each, fact, publication.version) for each in dict.fromkeys(entries)])
        self._tell_because(cause, [(("publisher", who), ("bc", publication.id), entries)] if entries else [])

    def plan_all_pairs(self, publication: Publication) -> None:
        """Plan every subscriber of a publication again."""
        for who in list(publication.subscribers):
            self.plan_pair(publication, who)

    def plan_pair(self, publication: Publication, who: Principal) -> None:
        """A subscriber of a publication: its exit notifies it, every entry elsewhere relays to that exit."""
        cause: f.Cause = ("pair", publication.id, who)
        publication.unserved[who] = None
        namespace = publication.namespace
        exit_ = self.state.exits.get(who)
        value = self._wanted(publication, who)
        facts: list[_Fact] = []
        alerts: list[_Told] = []
        entries = self.entries(publication)
        if exit_ is not None and value and entries:
            fact: f.Fact = ("sub", namespace, who)
            facts.append((exit_, fact, value))
            alerts = [(("subscriber", who), ("sb", each[0], exit_), True) for each in value]
            cover = {(each[1], each[2]) for each in value}
            for old in self._served_by(exit_, fact):
                cover |= {(each[1], each[2]) for each in old}
            width = next(iter(cover)) if len(cover) == 1 else WIDE
            key = f.EVERYBODY if cover == {WIDE} else who
            for entry in entries:
                if entry != exit_:
                    facts.append((exit_, ("relayer", namespace, entry), publication.version))
                    facts.append((entry, ("relay", namespace, exit_, key), width))
        self._because(cause, facts)
        self._tell_because(cause, alerts)

    def forget_pair(self, publication: Publication, who: Principal) -> None:
        """Remove a subscriber that no longer has a subscription to the publication."""
        self._because(("pair", publication.id, who), [])
        self._tell_because(("pair", publication.id, who), [])

    def entries(self, publication: Publication) -> tuple[Principal, ...]:
        """Every broadcaster that serves a publisher of the publication, or still drains one that it served."""
        every = (*publication.entries.values(), *publication.draining.values())
        return tuple(dict.fromkeys(each for entries in every for each in entries))

    def _wanted(self, publication: Publication, who: Principal) -> tuple[f.Wanted, ...]:
        numbers = [number for number, may in sorted(publication.subscribers.get(who, {}).items()) if may]
        mine = [each for each in map(self.state.subscriptions.__getitem__, numbers) if not each.config.stopped]
        return tuple((each.id, each.config.filter, each.config.skip, each.version) for each in mine)

    def _publications_of(self, who: Principal) -> list[Publication]:
        return [each for each in self.state.publications.values() if who in each.subscribers]

    def _because(self, cause: f.Cause, facts: list[_Fact]) -> None:
        had = self.state.reasons.pop(cause, [])
        for broker_id, fact, value in facts:
            broker = self.state.brokers[broker_id]
            wanted = broker.want.get(fact)
            if wanted is None:
                broker.want[fact] = value, 1
                broker.load += fact[0] in {"sub", "pub"}
                broker.dirty[fact] = None
                if fact[0] == "relay":
                    broker.wanted_relays.setdefault(fact[1], {})[fact] = None
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
                broker.load -= fact[0] in {"sub", "pub"}
                broker.dirty[fact] = None
                if fact[0] == "relay":
                    del broker.wanted_relays[fact[1]][fact]
        if facts:
            self.state.reasons[cause] = [(broker_id, fact) for broker_id, fact, _ in facts]

    def _tell_because(self, cause: f.Cause, facts: list[_Told]) -> None:
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
        """A broadcaster holds a fact as it should be, or has dropped it: whoever waits for that is told."""
        match fact:
            case ("sub" | "pub", _, who):
                keys_ = [("publisher", who), ("subscriber", who)]
            case ("rp" | "rr", number) if number in self.state.replays:
                keys_ = [("publisher", self.state.replays[number].publisher)]
            case _:
                return
        self.state.restless.update({key: None for key in keys_ if key in self.state.members})

    def maybe(self, broker_id: Principal, fact: f.Fact) -> bool:
        """True when a living broadcaster may act on the fact."""
        broker = self.state.brokers.get(broker_id)
        if broker is None or broker.dead:
            return False
        return fact in broker.held or (broker.alert is not None and fact in broker.alert.adds)

    def sure(self, broker_id: Principal, fact: f.Fact) -> bool:
        """True when a living broadcaster has confirmed the fact as it should be now."""
        broker = self.state.brokers.get(broker_id)
        if broker is None or broker.dead or fact not in broker.want:
            return False
        return self._settled(broker, fact) == broker.want[fact][0]

    @staticmethod
    def _settled(broker: Broker, fact: f.Fact) -> f.FactValue | None:
        """The confirmed value of a fact about which nothing is under way."""
        alert = broker.alert
        if alert is not None and (fact in alert.adds or fact in alert.removes):
            return None
        return broker.held.get(fact)

    def _served_by(self, exit_: Principal, fact: f.Fact) -> list[tuple[f.Wanted, ...]]:
        """The subscriptions that an exit may serve, by each value of the fact that it may act on."""
        broker = self.state.brokers[exit_]
        known = (broker.held, {} if broker.alert is None else broker.alert.adds)
        return [] if broker.dead else [cast("tuple[f.Wanted, ...]", facts[fact]) for facts in known if fact in facts]

    def ready(self, broker: Broker, fact: f.Fact, value: f.FactValue) -> bool:
        """True when what an addition rests on is confirmed (IC-40a)."""
        match fact:
            case ("relay", namespace, target, _):
                return self.sure(target, ("relayer", namespace, broker.id))
            case ("sub", namespace, who):
                number = self.state.by_namespace.get(namespace)
                if number is None:
                    return True
                others = [each for each in self.entries(self.state.publications[number]) if each != broker.id]
                wanted = cast("tuple[f.Wanted, ...]", value)
                return all(self._covers(each, namespace, broker.id, who, wanted) for each in others)
            case ("pub", namespace, _):
                publication = self.state.publications[self.state.by_namespace[namespace]]
                relays = broker.wanted_relays.get(namespace, ())
                return all(self.sure(broker.id, each) for each in relays) and self._all_served(publication)
            case ("rr", number):
                exit_ = cast("f.Forwarding", value)[1]
                return self.sure(exit_, ("rp", number)) and self.sure(exit_, ("rf", number))
            case _:
                return True

    def _all_served(self, publication: Publication) -> bool:
        """True when every subscriber's exit serves it; who was found served is not looked at again."""
        while publication.unserved:
            who = next(iter(publication.unserved))
            if who in publication.subscribers and not self._served(publication, who):
                return False
            del publication.unserved[who]
        return True

    def _served(self, publication: Publication, who: Principal) -> bool:
        facts = self.state.reasons.get(("pair", publication.id, who), [])
        return all(self.sure(at, fact) for at, fact in facts if fact[0] == "sub")

    def _covers(
        self, entry: Principal, namespace: str, exit_: Principal, who: Principal, value: tuple[f.Wanted, ...]
    ) -> bool:
        """True when the entry surely relays to the exit all that the subscriptions let through."""
        broker = self.state.brokers[entry]
        if broker.dead:
            return True
        widths = [self._settled(broker, ("relay", namespace, exit_, each)) for each in (f.EVERYBODY, who)]
        return WIDE in widths or all((each[1], each[2]) in widths for each in value)

    def removable(self, broker: Broker, fact: f.Fact) -> bool:
        """True when nothing rests on a fact any more (IC-40a)."""
        if broker.sick:
            return True
        match fact:
            case ("sub", _, _):
                return not broker.retiring or broker.emptied
            case ("relayer", namespace, entry):
                source = self.state.brokers.get(entry)
                return source is None or source.dead or broker.id not in source.listed("relay", namespace)
            case ("relay", namespace, target, who):
                return self._unneeded(broker, namespace, target, who)
            case ("pub", namespace, who):
                number = self.state.by_namespace.get(namespace)
                member = self.state.members.get(("publisher", who))
                if number is None or member is None:
                    return True
                return broker.id not in cast("tuple[Principal, ...]", member.holds.get(("bc", number), ()))
            case ("rp" | "rr" | "rf" as kind, number):
                return self._replay_over(broker, kind, number)

    def _unneeded(self, broker: Broker, namespace: str, target: Principal, who: Principal) -> bool:
        """A relay is needed while its exit may serve somebody for whom nothing else is as wide."""
        exit_ = self.state.brokers.get(target)
        if exit_ is None or exit_.dead:
            return True
        if not broker.listed("pub", namespace):
            return True  # nothing enters here
        if exit_.retiring and exit_.leaves is not None:  # its subscribers are served elsewhere
            return self.state.last_wake >= exit_.leaves
        served = [who] if who != f.EVERYBODY else exit_.listed("sub", namespace)
        for each in served:
            for value in self._served_by(target, ("sub", namespace, each)):
                other = each if who == f.EVERYBODY else f.EVERYBODY
                width = self._settled(broker, ("relay", namespace, target, other))
                if width != WIDE and not all((part[1], part[2]) == width for part in value):
                    return False
        return True

    def _replay_over(self, broker: Broker, kind: str, number: int) -> bool:
        replay = self.state.replays.get(number)
        if replay is None or replay.path is None:
            return True
        member = self.state.members.get(("publisher", replay.publisher))
        if member is not None and (("rp", number) in member.holds or ("rp", number) in member.may):
            return False
        if kind == "rr":
            return True
        entry = replay.path[0]
        return entry == broker.id or not self.maybe(entry, ("rr", number))

    def member_ready(self, member: Member, fact: f.MemberFact, value: f.MemberValue) -> bool:
        """True when what a member is to be told rests on confirmed facts."""
        match fact:
            case ("bc", number):
                namespace = self.state.publications[number].namespace
                entries = cast("tuple[Principal, ...]", value)
                return all(self.sure(each, ("pub", namespace, member.id)) for each in entries)
            case ("sb", number, _):
                facts = [
                    (at, found)
                    for publication in self._publications_of(member.id)
                    if number in publication.subscribers[member.id]
                    for at, found in self.state.reasons.get(("pair", publication.id, member.id), [])
                ]
                known = number in self.state.subscriptions
                return known and all(self.sure(at, found) for at, found in facts if found[0] == "sub")
            case ("rp", number):
                path = self.state.replays[number].path
                if path is None:
                    return False
                entry, exit_ = path
                return self.sure(exit_, ("rp", number)) if entry == exit_ else self.sure(entry, ("rr", number))

    def plan_replay(self, number: int) -> None:
        """The facts of a replay for entry, exit and publisher (RP-6)."""
        cause: f.Cause = ("replay", number)
        replay = self.state.replays.get(number)
        facts: list[_Fact] = []
        alerts: list[_Told] = []
        if replay is not None and replay.path is not None:
            entry, exit_ = replay.path
            live = replay.ended is None
            if live or replay.exit_kept:
                hands = entry  # the exit itself where nobody relays
                what = (replay.namespace, hands, replay.subscriber, replay.filter, replay.skip, replay.publisher)
                facts.append((exit_, ("rp", number), what))
                if entry != exit_:
                    facts.append((exit_, ("rf", number), (replay.namespace, entry)))
            if live and entry != exit_:
                way = (replay.namespace, exit_, replay.publisher, replay.filter, replay.skip)
                facts.append((entry, ("rr", number), way))
            if live:
                what_is_due = (replay.namespace, replay.start, replay.end, entry)
                alerts.append((("publisher", replay.publisher), ("rp", number), what_is_due))
        self._because(cause, facts)
        self._tell_because(cause, alerts)
