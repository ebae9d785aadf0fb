"""The state of a subscriber: subscriptions, chains, gaps, and events that wait for the handler.

It is saved in upgrades.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from interchain_events.icrc72 import keys
from interchain_events.icrc72.facts import ExitFact, Trouble
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import record, stable
from interchain_events.icrc72.memory import nothing
from interchain_events.icrc72.messages import EventNotification
from interchain_events.icrc72.namespaces import matches
from interchain_events.icrc72.values import Pairs, Value, option

ChainKey = tuple[str, Principal, int]
"""Namespace, source and partition of a chain, a sequence of events in order."""

stable(EventNotification)


@record
class Ranges:
    """The handled ids of a chain as disjoint, ascending ranges (IC-49c).

    Ids need not be consecutive. In a range, each event names the one before it as its predecessor,
    so no event between the ends of the range is missing. A range may contain ids of events that do
    not exist.
    """

    first: list[int] = field(default_factory=list)
    """The first id of each range."""
    last: list[int] = field(default_factory=list)
    """The last id of each range."""
    before: list[int | None] = field(default_factory=list)
    """The predecessor of the first event of each range."""

    def __contains__(self, identifier: int) -> bool:
        """Return whether the event was handled."""
        index = bisect_right(self.first, identifier) - 1
        return index >= 0 and identifier <= self.last[index]

    def __bool__(self) -> bool:
        """Return whether any event was handled."""
        return bool(self.first)

    def add(self, identifier: int, prev: int | None, most: int) -> None:
        """Add a handled event and its predecessor.

        If there are then more than `most` ranges, the two lowest are joined. Missing events between
        them are forgotten, which bounds the memory.
        """
        if not self.first:
            # Lists that are made with one item have no spare room, and most chains stay at one.
            self.first = [identifier]
            self.last = [identifier]
            self.before = [prev]
            return
        index = bisect_right(self.first, identifier)
        if prev is not None and index and self.last[index - 1] == prev:
            index -= 1
            self.last[index] = identifier
        else:
            self.first.insert(index, identifier)
            self.last.insert(index, identifier)
            self.before.insert(index, prev)
        # The event may be the missing one before the next range.
        if index + 1 < len(self.first) and self.before[index + 1] == identifier:
            self.last[index] = self.last[index + 1]
            self._drop(index + 1)
        if len(self.first) > most:
            self.last[0] = self.last[1]
            self._drop(1)

    def _drop(self, index: int) -> None:
        del self.first[index], self.last[index], self.before[index]

    def below(self, identifier: int) -> int | None:
        """Return the highest handled id below this one, or `None`."""
        index = bisect_right(self.first, identifier - 1) - 1
        return min(self.last[index], identifier - 1) if index >= 0 else None

    def above(self, identifier: int) -> int | None:
        """Return the first id of the next range above this id, or `None`."""
        index = bisect_right(self.first, identifier)
        return self.first[index] if index < len(self.first) else None

    def joins(self, low: int, high: int) -> bool:
        """Return whether two ids are in one range, so that no event between them is missing."""
        index = bisect_right(self.first, low) - 1
        return index >= 0 and low <= self.last[index] >= high

    def highest(self) -> int | None:
        """Return the highest handled id, or `None`."""
        return self.last[-1] if self.last else None


@record
class Wanted:
    """A subscription, from its subscriber's point of view."""

    pattern: str
    config: Pairs
    id: int | None = None
    """The id that the orchestrator gave; `None` until it is registered."""
    error: str = ""
    """The error with which the registration was refused."""

    def plain(self) -> bool:
        """Return whether the subscription has neither filter nor skip."""
        return all(keys.canonical(key) not in {keys.FILTER, keys.SKIP} for key, _ in self.config)

    def replay_config(self) -> Pairs:
        """Return the configuration of a replay with the filter and skip of this subscription."""
        values: dict[str, Value] = {keys.FILTER: option(None), keys.SKIP: option(None)}
        for key, value in self.config:
            name = keys.canonical(key)
            if name in values:
                values[name] = value
        return ((keys.REPLAY_FILTER, values[keys.FILTER]), (keys.REPLAY_SKIP, values[keys.SKIP]))


@record
class HeldBack:
    """An event that waits for events before it."""

    notification: EventNotification
    since: int
    """The round in which it was received."""


@record
class Followed:
    """A chain, from its subscriber's point of view."""

    handled: Ranges = field(default_factory=Ranges)
    held: Mapping[int, HeldBack] = field(default_factory=nothing)
    """Events that wait for events before them, by id."""
    moved: bool = False
    """Whether the exit has changed, so that its first event may not be the first of the chain."""
    late: tuple[int, int] | None = None
    """The last event that was handled after later ones: its id, and the round of its arrival."""


@stable
@dataclass(slots=True)
class Gap:
    """Events that may be missing: those with ids between `low` and `high`."""

    namespace: str
    source: Principal | None
    """The source of the events; `None` if it is unknown."""
    low: int | None
    """The last handled event before the gap; `None` if there is none."""
    high: int | None
    """The first handled event after the gap; `None` if it is open."""
    start: int
    """The first id that is asked for."""
    tries: int = 0
    """How many replays have been asked for that have not closed it."""
    config: Pairs = ()
    """Filter and skip of the replay; if empty, those of the only subscription apply."""
    wide: bool = False
    """Whether its range was refused as too large, so that it is asked for in parts."""


@record
class GapReplay:
    """The replay with which a gap is being closed."""

    gap: Gap
    start: int
    end: int | None
    """The id after the last one; `None` if the range is open."""
    top: int
    """The highest id that it has delivered, or the one before `start`."""
    sign: int
    """The round in which it last showed that it goes on: by an event, or an answer."""
    id: int | None = None
    """Its id; `None` until the orchestrator has answered."""
    over: bool = False
    """Whether a system event has reported its end."""
    asking: bool = False
    """Whether a query for its state is under way."""
    check: int = 0
    """The round before which its state is not asked for again."""


@record
class SubscriberState:
    """The whole state of a subscriber."""

    wanted: dict[str, Wanted] = field(default_factory=dict)
    """Its subscriptions by pattern."""
    chains: dict[ChainKey, Followed] = field(default_factory=dict)
    exit: Principal | None = None
    """Its exit, as the orchestrator has named it."""
    met: Principal | None = None
    """The broadcaster that sent notifications before the orchestrator had named an exit."""
    served: Mapping[ExitFact, None] = field(default_factory=nothing)
    """The subscriptions that are served, each with its exit."""
    moved: bool = False
    """Whether the exit has ever changed or restarted."""
    waiting: Mapping[int, EventNotification] = field(default_factory=nothing)
    """Events that wait for the handler, by a number that counts up."""
    called: Mapping[int, None] = field(default_factory=nothing)
    """The numbers in `waiting` for which a call of the canister to itself is under way."""
    run: Mapping[int, None] = field(default_factory=nothing)
    """The numbers in `waiting` whose events were handled, but whose calls are not yet answered."""
    last: int = 0
    """The last number in `waiting`."""
    gaps: list[Gap] = field(default_factory=list)
    """Gaps that have to be closed."""
    current: GapReplay | None = None
    """The replay that is under way."""
    own: Mapping[int, None] = field(default_factory=nothing)
    """The last replays that it asked for."""
    announced: Mapping[int, None] = field(default_factory=nothing)
    """The last replays whose beginning was announced by system events."""
    over: Mapping[int, None] = field(default_factory=nothing)
    """The last replays whose end was reported by system events."""
    ever_asked: bool = False
    """Whether it has ever asked for a replay."""
    resuming: Mapping[int, None] = field(default_factory=nothing)
    """Suspended subscriptions that have to be resumed."""
    wait: int = 0
    """The round before which it neither resumes nor asks for a replay."""
    errors: list[Trouble] = field(default_factory=list)
    """The last errors from system events."""
    replayed: Mapping[int, int] = field(default_factory=nothing)
    """How many events each replay has delivered."""

    def plain(self, namespace: str) -> bool:
        """Return whether no subscription that matches the namespace has a filter or skip."""
        return all(
            wanted.plain() for wanted in self.wanted.values() if matches(wanted.pattern, namespace)
        )

    def asks_for(self, namespace: str) -> list[Pairs]:
        """Return the configurations with which to ask for a namespace's missing events (RP-10c).

        A replay has one filter and skip. So one is asked for each subscription that matches, or
        only a single one if a subscription has neither filter nor skip and so gets all events. For
        a single subscription, the configuration is empty: its filter and skip apply by default.
        """
        matching = [
            wanted
            for wanted in self.wanted.values()
            if not wanted.error and matches(wanted.pattern, namespace)
        ]
        if len(matching) < 2:
            return [() for _ in matching]
        for wanted in matching:
            if wanted.plain():
                return [wanted.replay_config()]
        return [wanted.replay_config() for wanted in matching]
