"""The queries of the orchestrator (IC-35, I11, I15), and the list of replays (RP-12).

The queries for publishers, publications, subscribers, subscriptions and broadcasters are
projections of one relation. A row of it combines a publication, one of its publishers with one
entry, and one subscription that matches, with the subscriber's exit. Parts are empty if there are
no such. A query lists an item if a row that contains it satisfies all slices (conditions) of the
query.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain as chained
from typing import Final, NamedTuple, TypeVar, cast

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.config import SubscriptionConfig
from interchain_events.icrc72.facts import SubscriberFact, WantedSubscription
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.methods import GET_BROADCASTER_STATS
from interchain_events.icrc72.namespaces import has_wildcard, is_system, matches
from interchain_events.icrc72.orchestrator.state import (
    Broker,
    Publication,
    Registry,
    Replay,
    SubscriptionRecord,
)
from interchain_events.icrc72.role import Query, RoleCanister
from interchain_events.icrc72.services import type_codec
from interchain_events.icrc72.settings import Settings, fitting
from interchain_events.icrc72.values import Pairs, as_nat, nat

_ALL: Final = m.OrchestrationFilter(m.ALL, ())

E = TypeVar("E")
K = TypeVar("K", bytes, int)
P = TypeVar("P")
_Subside = tuple[SubscriptionRecord | None, Principal | None]
"""The part of a row about subscribers: a subscription and its exit."""


MOST_SLICES: Final = 32
"""How many different slices a query may have."""
MOST_STEPS: Final = 400_000
"""How often a query may compare a row with a slice."""


class Row(NamedTuple):
    """A row of the relation."""

    publication: Publication | None
    publisher: Principal | None
    entry: Principal | None
    subscription: SubscriptionRecord | None
    exit: Principal | None

    @property
    def met(self) -> tuple[SubscriptionRecord, ...]:
        """Return the subscription, if there is one, for projections."""
        return () if self.subscription is None else (self.subscription,)


@dataclass(slots=True)
class Queries:
    """The part that answers the queries, and collects the statistics that they show."""

    state: Registry
    settings: Settings

    def queries(self) -> Mapping[str, Query]:
        """Return the queries by name."""
        return {
            "icrc72_get_publishers": self._publishers,
            "icrc72_get_publications": self._publications,
            "icrc72_get_subscribers": self._subscribers,
            "icrc72_get_subscriptions": self._subscriptions,
            "icrc72_get_broadcasters": self._broadcasters,
            "icrc77_get_replays": self._replays,
        }

    def rows(self, slices: Iterable[m.Slice]) -> Iterator[Row]:
        """Yield the rows that satisfy all slices.

        Raises `Trap` if this would need more than `MOST_STEPS` comparisons. Slices by exact
        namespace and by subscriber limit which rows are made at all.
        """
        wanted = different(slices)
        left = MOST_STEPS // max(1, len(wanted))
        for publication in self._met(wanted):
            subside = self._subside(publication, wanted)
            for publisher, entry in self._pubside(publication):
                left -= len(subside)
                if left < 0:
                    raise Trap(
                        "the query would look at too many rows: name a namespace, publisher or"
                        " subscriber"
                    )
                for subscription, exit_ in subside:
                    row = Row(publication, publisher, entry, subscription, exit_)
                    if all(satisfies(row, each) for each in wanted):
                        yield row
        for subscription in self._unmatched(wanted):
            row = Row(None, None, None, subscription, self.state.exits.get(subscription.subscriber))
            if all(satisfies(row, each) for each in wanted):
                yield row

    def _met(self, slices: tuple[m.Slice, ...]) -> Iterable[Publication]:
        """Return the publications that may satisfy the slices: one if a slice names it exactly."""
        names = [
            each.value
            for each in slices
            if each.tag == "ByNamespace" and not has_wildcard(each.value)
        ]
        return self._might_match(names[0] if names else "**")

    @staticmethod
    def _pubside(publication: Publication) -> list[tuple[Principal | None, Principal | None]]:
        """Return the part of rows about publishers: each publisher with each of its entries."""
        found: list[tuple[Principal | None, Principal | None]] = []
        for publisher in publication.publishers:
            entries: Iterable[Principal | None] = dict.fromkeys(
                publication.entries.get(publisher, ())
            ) or (None,)
            found += [(publisher, entry) for entry in entries]
        return found or [(None, None)]

    def _subside(self, publication: Publication, slices: tuple[m.Slice, ...]) -> list[_Subside]:
        """Return the part of rows about subscribers, only of that subscriber whom a slice names."""
        whose = [each.value for each in slices if each.tag == "BySubscriber"]
        found: list[_Subside] = []
        for who in whose[:1] or publication.subscribers:
            numbers = publication.subscribers.get(who, ())
            found += [
                (self.state.subscriptions[each], self.state.exits.get(who)) for each in numbers
            ]
        return found or [(None, None)]

    def _unmatched(self, slices: tuple[m.Slice, ...]) -> Iterator[SubscriptionRecord]:
        """Yield the subscriptions that match no publication, which have rows of their own.

        Registrations for system namespaces are listed only if a slice names them exactly.
        """
        whose = [each.value for each in slices if each.tag == "BySubscriber"]
        candidates: Iterable[SubscriptionRecord] = self.state.subscriptions.values()
        if whose:
            mine = self.state.by_subscriber.get(whose[0], {})
            candidates = [self.state.subscriptions[number] for number in mine.values()]
        spelt = {each.value for each in slices if each.tag == "ByNamespace"}
        for each in candidates:
            met = (
                each.id in one.subscribers.get(each.subscriber, ())
                for one in self._might_match(each.pattern)
            )
            listed = each.pattern in spelt if is_system(each.pattern) else not any(met)
            if listed:
                yield each

    def _might_match(self, pattern: str) -> Iterable[Publication]:
        """Return all publications for a pattern with wildcards, otherwise only the one named."""
        if has_wildcard(pattern):
            return self.state.publications.values()
        number = self.state.by_namespace.get(pattern)
        return () if number is None else (self.state.publications[number],)

    def _open(self) -> Iterator[SubscriptionRecord]:
        return (each for each in self.state.subscriptions.values() if not is_system(each.pattern))

    def _fitting(self, infos: Iterable[E], name: str) -> tuple[E, ...]:
        """Return as many infos (of the Candid type `name`) as fit into an answer."""
        whole = replace(self.settings, batch_notifications=self.settings.page_most)
        return tuple(fitting(infos, type_codec("orchestrator", name).size, whole))

    def _found(
        self, page: m.Page[P], of_row: Callable[[Row], Iterable[E | None]], every: Iterable[E]
    ) -> tuple[set[E], m.OrchestrationFilter]:
        """Return the items of the rows that satisfy a page's slices, and the page's filter.

        Without slices these are the items of `every`, and no rows are made.
        """
        filter_ = page.filter or _ALL
        if not filter_.slice:
            return set(every), filter_
        found: set[E] = set()
        for row in self.rows(filter_.slice):
            found.update(each for each in of_row(row) if each is not None)
        return found, filter_

    def _publishers(
        self, _caller: Principal, _time: int, page: m.ByPrincipal
    ) -> tuple[m.PublisherInfo, ...]:
        """Answer `icrc72_get_publishers`."""
        every = chained.from_iterable(each.publishers for each in self.state.publications.values())
        found, filter_ = self._found(page, lambda row: (row.publisher,), every)
        listed = [(each, self._publisher_stats(each)) for each in self._page(found, page, bytes)]
        return tuple(
            m.PublisherInfo(each, self._stats(filter_, "icrc72:publisher", stats))
            for each, stats in listed
        )

    def _publications(
        self, _caller: Principal, _time: int, page: m.ByText
    ) -> tuple[m.PublicationInfo, ...]:
        """Answer `icrc72_get_publications`."""
        filter_ = page.filter or _ALL
        # Every publication has a row, so no rows need be made for conditions on its name alone.
        if all(each.tag == "ByNamespace" for each in filter_.slice):
            wanted = different(each.value for each in filter_.slice if each.tag == "ByNamespace")
            met = (each.namespace for each in self._met(filter_.slice))
            found = {name for name in met if all(matches(pattern, name) for pattern in wanted)}
        else:
            found = {
                row.publication.namespace
                for row in self.rows(filter_.slice)
                if row.publication is not None
            }
        names = self._page(found, page, str.encode)
        return self._fitting(
            (self._publication(name, filter_) for name in names), "PublicationInfo"
        )

    def _publication(self, name: str, filter_: m.OrchestrationFilter) -> m.PublicationInfo:
        each = self.state.publications[self.state.by_namespace[name]]
        stats = self._stats(filter_, "icrc72:publication", self._publication_stats(each))
        return m.PublicationInfo(name, each.id, each.config.pairs(), stats)

    def _subscribers(
        self, _caller: Principal, _time: int, page: m.ByPrincipal
    ) -> tuple[m.SubscriberInfo, ...]:
        """Answer `icrc72_get_subscribers`."""
        every = (each.subscriber for each in self._open())
        found, filter_ = self._found(page, lambda row: (each.subscriber for each in row.met), every)
        listed = [(each, self._subscriber_stats(each)) for each in self._page(found, page, bytes)]
        return tuple(
            m.SubscriberInfo(each, self._stats(filter_, "icrc72:subscriber", stats))
            for each, stats in listed
        )

    def _subscriptions(
        self, caller: Principal, _time: int, page: m.ByNat
    ) -> tuple[m.SubscriptionInfo, ...]:
        """Answer `icrc72_get_subscriptions`, in a special way if a broadcaster asks (`_shown`)."""
        broker = self.state.brokers.get(caller)
        shown = None if broker is None else self._shown(broker, page.filter or _ALL)
        if shown is not None:
            return shown
        every = (each.id for each in self._open())
        found, filter_ = self._found(page, lambda row: (each.id for each in row.met), every)
        numbers = self._page(found, page, lambda number: number)
        return self._fitting(
            (self._subscription(number, filter_) for number in numbers), "SubscriptionInfo"
        )

    def _subscription(self, number: int, filter_: m.OrchestrationFilter) -> m.SubscriptionInfo:
        each = self.state.subscriptions[number]
        stats = self._stats(filter_, "icrc72:subscription", self._subscription_stats(number))
        return m.SubscriptionInfo(number, each.pattern, each.config.pairs(), stats)

    def _shown(
        self, broker: Broker, filter_: m.OrchestrationFilter
    ) -> tuple[m.SubscriptionInfo, ...] | None:
        """Return what a broadcaster sees when it asks for a subscriber's subscriptions (IC-38c).

        These are the subscriptions in the system events that it was sent, and not the present ones:
        the broadcaster must not act on a change before its turn. Returns `None` if it asks for
        something else, which is answered like the query of any other caller.
        """
        whose = [each.value for each in filter_.slice if each.tag == "BySubscriber"]
        names = [each.value for each in filter_.slice if each.tag == "ByNamespace"]
        if len(whose) != 1 or len(names) != 1:
            return None
        fact = SubscriberFact(names[0], whose[0])
        value = broker.under_way().get(fact, broker.held.get(fact, ()))
        made = []
        for wanted in cast("tuple[WantedSubscription, ...]", value):
            pairs = SubscriptionConfig((whose[0],), wanted.skip, wanted.filter).pairs()
            known = self.state.subscriptions.get(wanted.id)
            pattern = names[0] if known is None else known.pattern
            made.append(m.SubscriptionInfo(wanted.id, pattern, pairs, ()))
        return tuple(made)

    def _broadcasters(
        self, _caller: Principal, _time: int, page: m.ByPrincipal
    ) -> tuple[m.BroadcasterInfo, ...]:
        """Answer `icrc72_get_broadcasters`."""
        every = (each.id for each in self.state.brokers.values() if each.registered)
        found, filter_ = self._found(page, lambda row: (row.entry, row.exit), every)
        prefix = "icrc72:broadcaster:stats:"
        made = []
        for each in self._page(found, page, bytes):
            stats = self.state.brokers[each].stats
            numbers = {name: stats.get(prefix + name, 0) for name in keys.STATISTICS[prefix]}
            made.append(
                m.BroadcasterInfo(each, self._stats(filter_, "icrc72:broadcaster", numbers))
            )
        return tuple(made)

    def _replays(self, _caller: Principal, _time: int, page: m.ByNat) -> tuple[m.ReplayStatus, ...]:
        """Answer `icrc77_get_replays` (RP-12). Replays are filtered by themselves, without rows."""
        filter_ = page.filter or _ALL
        slices = different(filter_.slice)
        prefix = "icrc77:replay:stats:"
        known = self.state.replays
        found = [
            number for number, each in known.items() if all(_concerns(each, one) for one in slices)
        ]
        made = []
        for each in (known[number] for number in self._page(found, page, lambda number: number)):
            numbers = {
                name: self._sum(f"icrc77:replay:{each.id}:{name}")
                for name in keys.STATISTICS[prefix]
            }
            numbers["published"] = each.accepted or numbers["published"]
            stats = self._stats(filter_, "icrc77:replay", numbers)
            state = m.state_of(each.state, each.count, each.text)
            made.append(
                m.ReplayStatus(
                    each.id, each.namespace, each.config, stats, (each.start, each.end), state
                )
            )
        return tuple(made)

    def _page(self, found: Iterable[E], page: m.Page[E], key: Callable[[E], K]) -> list[E]:
        """Return one page of items, in the order of their keys, after the one named by `prev`."""
        take = self.settings.page if page.take is None else min(page.take, self.settings.page_most)
        ordered = sorted(found, key=key)
        if page.prev is not None:
            ordered = [each for each in ordered if key(each) > key(page.prev)]
        return ordered[:take]

    @staticmethod
    def _stats(filter_: m.OrchestrationFilter, of: str, numbers: Mapping[str, int]) -> Pairs:
        """Return the statistics that the filter asks for, with the prefix of their kind."""
        pairs = [(f"{of}:stats:{name}", nat(number)) for name, number in numbers.items()]
        match filter_.statistics:
            case ("None", _):
                return ()
            case ("All", _):
                return tuple(pairs)
            case ("List", names):
                return tuple(each for each in pairs if each[0] in names)

    def _sum(self, name: str) -> int:
        """Return the sum of a statistic over all broadcasters."""
        return sum(each.stats.get(name, 0) for each in self.state.brokers.values())

    def _publication_stats(self, publication: Publication) -> dict[str, int]:
        start = f"icrc72:publication:{publication.id}:"
        names = ("events", "events:sent", "notifications", "confirmations")
        return {
            "publishers": len(publication.publishers),
            **{name: self._sum(start + name) for name in names},
        }

    def _publisher_stats(self, who: Principal) -> dict[str, int]:
        mine = [each for each in self.state.publications.values() if who in each.publishers]
        events = sum(self._sum(f"icrc72:publication:{each.id}:events") for each in mine)
        return {"publications": len(mine), "events": events}

    def _subscription_stats(self, number: int) -> dict[str, int]:
        start = f"icrc72:subscription:{number}:"
        return {name: self._sum(start + name) for name in ("notifications", "confirmations")}

    def _subscriber_stats(self, who: Principal) -> dict[str, int]:
        unconfirmed = self._sum(f"icrc72:subscriber:{who.text}:unconfirmed")
        mine = [
            number
            for name, number in self.state.by_subscriber.get(who, {}).items()
            if not is_system(name)
        ]
        sums = Counter({"notifications": 0, "confirmations": 0})
        for number in mine:
            sums.update(self._subscription_stats(number))
        return {"subscriptions": len(mine), **sums, "unconfirmed": unconfirmed}

    def refresh(self, ctx: Context, role: RoleCanister) -> None:
        """Ask broadcasters for their statistics, each every `stats_check` rounds (IC-35d)."""
        for broker in self.state.brokers.values():
            if (
                broker.registered
                and not broker.dead
                and ctx.now >= broker.asked_stats + self.settings.stats_check
            ):
                self.ask_stats(ctx, role, broker)

    def due(self) -> int | None:
        """Return the next round in which a broadcaster has to be asked."""
        alive = [each for each in self.state.brokers.values() if each.registered and not each.dead]
        return min((each.asked_stats + self.settings.stats_check for each in alive), default=None)

    def ask_stats(self, ctx: Context, role: RoleCanister, broker: Broker) -> None:
        """Ask one broadcaster for its statistics now."""
        at = broker.asked_stats = ctx.now

        def got(_ctx: Context, stats: Pairs | None) -> None:
            # Answers may arrive out of order: keep the one that was asked for last.
            if stats is not None and at >= broker.told_stats:
                broker.told_stats = at
                broker.stats = {name: as_nat(value) or 0 for name, value in stats}

        role.ask(ctx, broker.id, GET_BROADCASTER_STATS, None, got)


def different(slices: Iterable[E]) -> tuple[E, ...]:
    """Return the slices of a query, each once. Raises `Trap` if there are more than 32."""
    found = tuple(dict.fromkeys(slices))
    if len(found) > MOST_SLICES:
        raise Trap(f"a query has at most {MOST_SLICES} different slices, not {len(found)}")
    return found


def _concerns(replay: Replay, slice_: m.Slice) -> bool:
    """Return whether a replay satisfies a slice."""
    match slice_:
        case ("BySubscriber", who):
            return replay.subscriber == who
        case ("ByPublisher", who):
            return replay.publisher == who
        case ("ByBroadcaster", who):
            return replay.path is not None and who in replay.path
        case ("ByNamespace", name):
            return matches(name, replay.namespace)


def satisfies(row: Row, slice_: m.Slice) -> bool:
    """Return whether a row satisfies a slice.

    A subscription without a publication satisfies a slice by namespace that is its own pattern, or
    matches it.
    """
    match slice_:
        case ("BySubscriber", who):
            return row.subscription is not None and row.subscription.subscriber == who
        case ("ByPublisher", who):
            return row.publisher == who
        case ("ByBroadcaster", who):
            return who in {row.entry, row.exit}
        case ("ByNamespace", name):
            if row.publication is not None:
                return matches(name, row.publication.namespace)
            pattern = "" if row.subscription is None else row.subscription.pattern
            return name == pattern or matches(pattern, name)
