"""The queries of the orchestrator (IC-35, I11, I15), and the list of replays (RP-12).

The queries for publishers, publications, subscribers, subscriptions and broadcasters are
projections of one relation. A row of it combines a publication, one of its publishers with one
entry, and one subscription that matches, with the subscriber's exit. A part that does not exist is
`None`. A query lists an item if it is in a row that satisfies all slices (conditions) of the query.
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
_SubscriberPart = tuple[SubscriptionRecord | None, Principal | None]
"""The part of a row about subscribers: a subscription and its exit."""


MOST_SLICES: Final = 32
"""How many different slices a query may have."""
MOST_STEPS: Final = 400_000
"""How many comparisons of a row with a slice a query may make."""


class Row(NamedTuple):
    """A row of the relation."""

    publication: Publication | None
    publisher: Principal | None
    entry: Principal | None
    subscription: SubscriptionRecord | None
    exit: Principal | None

    @property
    def subscriber(self) -> Principal | None:
        """Return the subscriber, or `None` if the row has no subscription."""
        return None if self.subscription is None else self.subscription.subscriber

    @property
    def subscription_id(self) -> int | None:
        """Return the id of the subscription, or `None` if the row has none."""
        return None if self.subscription is None else self.subscription.id


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

        Raises `Trap` if this would need more than `MOST_STEPS` comparisons. With slices by exact
        namespace or by subscriber, only the rows that may satisfy these are made.
        """
        wanted = different(slices)
        left = MOST_STEPS // max(1, len(wanted))
        for publication in self._candidates(wanted):
            subscriber_parts = self._subscriber_parts(publication, wanted)
            for publisher, entry in self._publisher_parts(publication):
                left -= len(subscriber_parts)
                if left < 0:
                    raise Trap(
                        "the query would look at too many rows: name a namespace, publisher or"
                        " subscriber"
                    )
                for subscription, exit_ in subscriber_parts:
                    row = Row(publication, publisher, entry, subscription, exit_)
                    if all(satisfies(row, slice_) for slice_ in wanted):
                        yield row
        for subscription in self._unmatched(wanted):
            row = Row(None, None, None, subscription, self.state.exits.get(subscription.subscriber))
            if all(satisfies(row, slice_) for slice_ in wanted):
                yield row

    def _candidates(self, slices: tuple[m.Slice, ...]) -> Iterable[Publication]:
        """Return the publications that may satisfy the slices: one if a slice names it exactly."""
        for slice_ in slices:
            if slice_.tag == "ByNamespace" and not has_wildcard(slice_.value):
                return self._might_match(slice_.value)
        return self._might_match("**")

    @staticmethod
    def _publisher_parts(
        publication: Publication,
    ) -> list[tuple[Principal | None, Principal | None]]:
        """Return the part of rows about publishers: each publisher with each of its entries."""
        parts: list[tuple[Principal | None, Principal | None]] = []
        for publisher in publication.publishers:
            entries = dict.fromkeys(publication.entries.get(publisher, ()))
            if entries:
                parts += [(publisher, entry) for entry in entries]
            else:
                parts.append((publisher, None))
        return parts or [(None, None)]

    def _subscriber_parts(
        self, publication: Publication, slices: tuple[m.Slice, ...]
    ) -> list[_SubscriberPart]:
        """Return the part of rows about subscribers: each subscription with its exit.

        If a slice names a subscriber, only its subscriptions are returned.
        """
        named = [slice_.value for slice_ in slices if slice_.tag == "BySubscriber"]
        parts: list[_SubscriberPart] = []
        for subscriber in named[:1] or publication.subscribers:
            exit_ = self.state.exits.get(subscriber)
            numbers = publication.subscribers.get(subscriber, ())
            parts += [(self.state.subscriptions[number], exit_) for number in numbers]
        return parts or [(None, None)]

    def _unmatched(self, slices: tuple[m.Slice, ...]) -> Iterator[SubscriptionRecord]:
        """Yield the subscriptions that match no publication, which have rows of their own.

        Registrations for system namespaces are listed only if a slice names them exactly.
        """
        named = [slice_.value for slice_ in slices if slice_.tag == "BySubscriber"]
        candidates: Iterable[SubscriptionRecord] = self.state.subscriptions.values()
        if named:
            numbers = self.state.by_subscriber.get(named[0], {}).values()
            candidates = [self.state.subscriptions[number] for number in numbers]
        patterns = {slice_.value for slice_ in slices if slice_.tag == "ByNamespace"}
        for subscription in candidates:
            if is_system(subscription.pattern):
                listed = subscription.pattern in patterns
            else:
                listed = not self._is_matched(subscription)
            if listed:
                yield subscription

    def _is_matched(self, subscription: SubscriptionRecord) -> bool:
        """Return whether a subscription matches a publication."""
        return any(
            subscription.id in publication.subscribers.get(subscription.subscriber, ())
            for publication in self._might_match(subscription.pattern)
        )

    def _might_match(self, pattern: str) -> Iterable[Publication]:
        """Return all publications for a pattern with wildcards, otherwise only the one named."""
        if has_wildcard(pattern):
            return self.state.publications.values()
        number = self.state.by_namespace.get(pattern)
        return () if number is None else (self.state.publications[number],)

    def _not_system(self) -> Iterator[SubscriptionRecord]:
        """Return the subscriptions except the registrations for system namespaces."""
        return (
            subscription
            for subscription in self.state.subscriptions.values()
            if not is_system(subscription.pattern)
        )

    def _fitting(self, infos: Iterable[E], name: str) -> tuple[E, ...]:
        """Return as many infos (of the Candid type `name`) as fit into an answer."""
        # `fitting` also limits the number of items, which for an answer is that of a page.
        limits = replace(self.settings, batch_notifications=self.settings.page_most)
        return tuple(fitting(infos, type_codec("orchestrator", name).size, limits))

    def _items(
        self, page: m.Page[P], of_row: Callable[[Row], Iterable[E | None]], every: Iterable[E]
    ) -> tuple[set[E], m.OrchestrationFilter]:
        """Return the items of the rows that satisfy a page's slices, and the page's filter.

        Without slices these are the items of `every`, and no rows are made.
        """
        filter_ = page.filter or _ALL
        if not filter_.slice:
            return set(every), filter_
        items: set[E] = set()
        for row in self.rows(filter_.slice):
            items.update(item for item in of_row(row) if item is not None)
        return items, filter_

    def _publishers(
        self, _caller: Principal, _time: int, page: m.ByPrincipal
    ) -> tuple[m.PublisherInfo, ...]:
        """Answer `icrc72_get_publishers`."""
        publishers = chained.from_iterable(
            publication.publishers for publication in self.state.publications.values()
        )
        items, filter_ = self._items(page, lambda row: (row.publisher,), every=publishers)
        infos: list[m.PublisherInfo] = []
        for publisher in self._page(items, page, bytes):
            numbers = self._publisher_stats(publisher)
            stats = self._stats(filter_, "icrc72:publisher", numbers)
            infos.append(m.PublisherInfo(publisher, stats))
        return tuple(infos)

    def _publications(
        self, _caller: Principal, _time: int, page: m.ByText
    ) -> tuple[m.PublicationInfo, ...]:
        """Answer `icrc72_get_publications`."""
        filter_ = page.filter or _ALL
        # Every publication has a row, so no rows need be made for conditions on its name alone.
        if all(slice_.tag == "ByNamespace" for slice_ in filter_.slice):
            patterns = different(
                slice_.value for slice_ in filter_.slice if slice_.tag == "ByNamespace"
            )
            candidates = (publication.namespace for publication in self._candidates(filter_.slice))
            namespaces = {
                name for name in candidates if all(matches(pattern, name) for pattern in patterns)
            }
        else:
            namespaces = {
                row.publication.namespace
                for row in self.rows(filter_.slice)
                if row.publication is not None
            }
        listed = self._page(namespaces, page, str.encode)
        return self._fitting(
            (self._publication(name, filter_) for name in listed), "PublicationInfo"
        )

    def _publication(self, name: str, filter_: m.OrchestrationFilter) -> m.PublicationInfo:
        """Return the item of an answer about the publication of a namespace."""
        publication = self.state.publications[self.state.by_namespace[name]]
        stats = self._stats(filter_, "icrc72:publication", self._publication_stats(publication))
        return m.PublicationInfo(name, publication.id, publication.config.pairs(), stats)

    def _subscribers(
        self, _caller: Principal, _time: int, page: m.ByPrincipal
    ) -> tuple[m.SubscriberInfo, ...]:
        """Answer `icrc72_get_subscribers`."""
        subscribers = (subscription.subscriber for subscription in self._not_system())
        items, filter_ = self._items(page, lambda row: (row.subscriber,), every=subscribers)
        infos: list[m.SubscriberInfo] = []
        for subscriber in self._page(items, page, bytes):
            numbers = self._subscriber_stats(subscriber)
            stats = self._stats(filter_, "icrc72:subscriber", numbers)
            infos.append(m.SubscriberInfo(subscriber, stats))
        return tuple(infos)

    def _subscriptions(
        self, caller: Principal, _time: int, page: m.ByNat
    ) -> tuple[m.SubscriptionInfo, ...]:
        """Answer `icrc72_get_subscriptions`; broadcasters may get another answer (`_assigned`)."""
        broker = self.state.brokers.get(caller)
        if broker is not None:
            assigned = self._assigned(broker, page.filter or _ALL)
            if assigned is not None:
                return assigned
        ids = (subscription.id for subscription in self._not_system())
        items, filter_ = self._items(page, lambda row: (row.subscription_id,), every=ids)
        numbers = self._page(items, page, lambda number: number)
        return self._fitting(
            (self._subscription(number, filter_) for number in numbers), "SubscriptionInfo"
        )

    def _subscription(self, number: int, filter_: m.OrchestrationFilter) -> m.SubscriptionInfo:
        """Return the item of an answer about the subscription with an id."""
        subscription = self.state.subscriptions[number]
        stats = self._stats(filter_, "icrc72:subscription", self._subscription_stats(number))
        return m.SubscriptionInfo(number, subscription.pattern, subscription.config.pairs(), stats)

    def _assigned(
        self, broker: Broker, filter_: m.OrchestrationFilter
    ) -> tuple[m.SubscriptionInfo, ...] | None:
        """Return a subscriber's subscriptions as they were assigned to a broadcaster (IC-38c).

        These are the subscriptions in the system events that the broadcaster was sent, and not the
        present ones: it must not act on a change before its turn. Only a query with exactly one
        subscriber and one namespace is answered in this way. Returns `None` for any other, which is
        answered as for any other caller.
        """
        subscribers = [slice_.value for slice_ in filter_.slice if slice_.tag == "BySubscriber"]
        namespaces = [slice_.value for slice_ in filter_.slice if slice_.tag == "ByNamespace"]
        if len(subscribers) != 1 or len(namespaces) != 1:
            return None
        fact = SubscriberFact(namespaces[0], subscribers[0])
        value = broker.under_way().get(fact, broker.held.get(fact, ()))
        infos: list[m.SubscriptionInfo] = []
        for wanted in cast("tuple[WantedSubscription, ...]", value):
            pairs = SubscriptionConfig((subscribers[0],), wanted.skip, wanted.filter).pairs()
            subscription = self.state.subscriptions.get(wanted.id)
            pattern = namespaces[0] if subscription is None else subscription.pattern
            infos.append(m.SubscriptionInfo(wanted.id, pattern, pairs, ()))
        return tuple(infos)

    def _broadcasters(
        self, _caller: Principal, _time: int, page: m.ByPrincipal
    ) -> tuple[m.BroadcasterInfo, ...]:
        """Answer `icrc72_get_broadcasters`."""
        brokers = (broker.id for broker in self.state.brokers.values() if broker.registered)
        items, filter_ = self._items(page, lambda row: (row.entry, row.exit), every=brokers)
        prefix = "icrc72:broadcaster:stats:"
        infos: list[m.BroadcasterInfo] = []
        for broadcaster in self._page(items, page, bytes):
            known = self.state.brokers[broadcaster].stats
            numbers = {name: known.get(prefix + name, 0) for name in keys.STATISTICS[prefix]}
            stats = self._stats(filter_, "icrc72:broadcaster", numbers)
            infos.append(m.BroadcasterInfo(broadcaster, stats))
        return tuple(infos)

    def _replays(self, _caller: Principal, _time: int, page: m.ByNat) -> tuple[m.ReplayStatus, ...]:
        """Answer `icrc77_get_replays` (RP-12). The slices are compared with replays, not rows."""
        filter_ = page.filter or _ALL
        slices = different(filter_.slice)
        replays = self.state.replays
        numbers = [
            number
            for number, replay in replays.items()
            if all(_concerns(replay, slice_) for slice_ in slices)
        ]
        statuses: list[m.ReplayStatus] = []
        for number in self._page(numbers, page, lambda number: number):
            replay = replays[number]
            stats = self._stats(filter_, "icrc77:replay", self._replay_stats(replay))
            state = m.state_of(replay.state, replay.count, replay.text)
            range_ = (replay.start, replay.end)
            statuses.append(
                m.ReplayStatus(number, replay.namespace, replay.config, stats, range_, state)
            )
        return tuple(statuses)

    def _page(self, items: Iterable[E], page: m.Page[E], key: Callable[[E], K]) -> list[E]:
        """Return one page of items, in the order of their keys, after the one named by `prev`."""
        take = self.settings.page if page.take is None else min(page.take, self.settings.page_most)
        ordered = sorted(items, key=key)
        if page.prev is not None:
            ordered = [item for item in ordered if key(item) > key(page.prev)]
        return ordered[:take]

    @staticmethod
    def _stats(filter_: m.OrchestrationFilter, kind: str, numbers: Mapping[str, int]) -> Pairs:
        """Return the statistics that the filter asks for.

        `kind` is the beginning of their names, such as `icrc72:publisher`.
        """
        pairs = [(f"{kind}:stats:{name}", nat(number)) for name, number in numbers.items()]
        match filter_.statistics:
            case ("None", _):
                return ()
            case ("All", _):
                return tuple(pairs)
            case ("List", names):
                return tuple((name, value) for name, value in pairs if name in names)

    def _sum(self, name: str) -> int:
        """Return the sum of a statistic over all broadcasters."""
        return sum(broker.stats.get(name, 0) for broker in self.state.brokers.values())

    def _replay_stats(self, replay: Replay) -> dict[str, int]:
        names = keys.STATISTICS["icrc77:replay:stats:"]
        numbers = {name: self._sum(f"icrc77:replay:{replay.id}:{name}") for name in names}
        if replay.accepted:
            # The entry's answer is newer than its statistics.
            numbers["published"] = replay.accepted
        return numbers

    def _publication_stats(self, publication: Publication) -> dict[str, int]:
        start = f"icrc72:publication:{publication.id}:"
        names = ("events", "events:sent", "notifications", "confirmations")
        return {
            "publishers": len(publication.publishers),
            **{name: self._sum(start + name) for name in names},
        }

    def _publisher_stats(self, who: Principal) -> dict[str, int]:
        publications = [
            publication.id
            for publication in self.state.publications.values()
            if who in publication.publishers
        ]
        events = sum(self._sum(f"icrc72:publication:{number}:events") for number in publications)
        return {"publications": len(publications), "events": events}

    def _subscription_stats(self, number: int) -> dict[str, int]:
        start = f"icrc72:subscription:{number}:"
        return {name: self._sum(start + name) for name in ("notifications", "confirmations")}

    def _subscriber_stats(self, who: Principal) -> dict[str, int]:
        unconfirmed = self._sum(f"icrc72:subscriber:{who.text}:unconfirmed")
        subscriptions = [
            number
            for pattern, number in self.state.by_subscriber.get(who, {}).items()
            if not is_system(pattern)
        ]
        sums = Counter({"notifications": 0, "confirmations": 0})
        for number in subscriptions:
            sums.update(self._subscription_stats(number))
        return {"subscriptions": len(subscriptions), **sums, "unconfirmed": unconfirmed}

    def refresh(self, ctx: Context, role: RoleCanister) -> None:
        """Ask each broadcaster for its statistics every `stats_check` rounds (IC-35d)."""
        for broker in self.state.brokers.values():
            if (
                broker.registered
                and not broker.dead
                and ctx.now >= broker.asked_stats + self.settings.stats_check
            ):
                self.ask_stats(ctx, role, broker)

    def due(self) -> int | None:
        """Return the next round in which a broadcaster has to be asked."""
        alive = [
            broker
            for broker in self.state.brokers.values()
            if broker.registered and not broker.dead
        ]
        return min(
            (broker.asked_stats + self.settings.stats_check for broker in alive), default=None
        )

    def ask_stats(self, ctx: Context, role: RoleCanister, broker: Broker) -> None:
        """Ask one broadcaster for its statistics now."""
        asked = ctx.now
        broker.asked_stats = asked

        def answered(_ctx: Context, stats: Pairs | None) -> None:
            # Answers may arrive out of order. Keep the answer to the latest request.
            if stats is not None and asked >= broker.told_stats:
                broker.told_stats = asked
                broker.stats = {name: as_nat(value) or 0 for name, value in stats}

        role.ask(ctx, broker.id, GET_BROADCASTER_STATS, None, answered)


def different(slices: Iterable[E]) -> tuple[E, ...]:
    """Return the slices of a query without repetitions.

    Raises `Trap` if there are more than `MOST_SLICES`.
    """
    unique = tuple(dict.fromkeys(slices))
    if len(unique) > MOST_SLICES:
        raise Trap(f"a query has at most {MOST_SLICES} different slices, not {len(unique)}")
    return unique


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

    Without a publication, a slice by namespace is compared with the subscription's pattern: it must
    be equal, or be a namespace that the pattern matches.
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
