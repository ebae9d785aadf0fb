"""The state of a subscriber: subscriptions, chains, gaps, and events that wait for its handler."""

from bisect import bisect_right
from dataclasses import dataclass, field

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.stable import record, stable
from pubsub_emulator.icrc72.messages import EventNotification
from pubsub_emulator.icrc72.namespaces import matches
from pubsub_emulator.icrc72.values import Pairs, Value, option

ChainKey = tuple[str, Principal, int]  # namespace, source and partition

stable(EventNotification)


@record
class Ranges:
    """Disjoint ranges of handled ids, ascending; of each, the former event of its first (IC-49c)."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    before: list[int | None] = field(default_factory=list)

    def __contains__(self, identifier: int) -> bool:
        """True when the event was handled."""
        at = bisect_right(self.first, identifier) - 1
        return at >= 0 and identifier <= self.last[at]

    def __bool__(self) -> bool:
        """True when anything was handled."""
        return bool(self.first)

    def add(self, identifier: int, prev: int | None, most: int) -> None:
        """Add a handled event; beyond `most` ranges the two lowest become one."""
        at = bisect_right(self.first, identifier)
        if prev is not None and at and self.last[at - 1] == prev:
            at -= 1
            self.last[at] = identifier
        else:
            self.first.insert(at, identifier)
            self.last.insert(at, identifier)
            self.before.insert(at, prev)
        if at + 1 < len(self.first) and self.before[at + 1] == identifier:
            self.last[at] = self.last[at + 1]
            self._drop(at + 1)
        if len(self.first) > most:
            self.last[0] = self.last[1]
            self._drop(1)

    def _drop(self, at: int) -> None:
        del self.first[at], self.last[at], self.before[at]

    def below(self, identifier: int) -> int | None:
        """The highest handled id below."""
        at = bisect_right(self.first, identifier - 1) - 1
        return min(self.last[at], identifier - 1) if at >= 0 else None

    def above(self, identifier: int) -> int | None:
        """The first event of the next range above."""
        at = bisect_right(self.first, identifier)
        return self.first[at] if at < len(self.first) else None

    def joins(self, low: int, high: int) -> bool:
        """True when prevEventIds join two handled events."""
        at = bisect_right(self.first, low) - 1
        return at >= 0 and low <= self.last[at] >= high

    def highest(self) -> int | None:
        """The highest handled id."""
        return self.last[-1] if self.last else None


@record
class Wanted:
    """A subscription as its subscriber knows it."""

    pattern: str
    config: Pairs
    id: int | None = None
    error: str = ""

    def plain(self) -> bool:
        """True without filter and skip."""
        return all(keys.canonical(key) not in {keys.FILTER, keys.SKIP} for key, _ in self.config)

    def replay_config(self) -> Pairs:
        """The configuration of a replay with the filter and skip of this subscription."""
        chosen: dict[str, Value] = {keys.FILTER: option(None), keys.SKIP: option(None)}
        chosen |= {name: value for key, value in self.config if (name := keys.canonical(key)) in chosen}
        return ((keys.REPLAY_FILTER, chosen[keys.FILTER]), (keys.REPLAY_SKIP, chosen[keys.SKIP]))


@record
class HeldBack:
    """An event that waits for those before it."""

    notification: EventNotification
    since: int


@record
class Followed:
    """A chain as its subscriber sees it."""

    handled: Ranges = field(default_factory=Ranges)
    held: dict[int, HeldBack] = field(default_factory=dict)
    moved: bool = False  # the exit has changed since the first event
    late: tuple[int, int] | None = None  # the newest event that came after later ones, and the round


@stable
@dataclass(slots=True)
class Gap:
    """Missing events: after `low` and below `high`; `None` is without end."""

    namespace: str
    source: Principal | None
    low: int | None
    high: int | None
    start: int  # the id from which on they are asked for
    tries: int = 0
    config: Pairs = ()  # filter and skip of the replay; without them those of the only subscription
    wide: bool = False  # it was refused as too large: a part of it after the other is asked for


@record
class GapReplay:
    """The replay by which a gap is to be closed."""

    gap: Gap
    start: int
    end: int | None
    top: int
    sign: int
    id: int | None = None
    over: bool = False
    asking: bool = False
    check: int = 0


@record
class SubscriberState:
    """The whole state of a subscriber."""

    wanted: dict[str, Wanted] = field(default_factory=dict)
    chains: dict[ChainKey, Followed] = field(default_factory=dict)
    exit: Principal | None = None
    met: Principal | None = None  # who notified before anybody was told to be the exit
    served: dict[tuple[int, Principal], None] = field(default_factory=dict)
    """Subscriptions by which events flow, each with its broadcaster."""
    moved: bool = False  # the exit has changed, or serves again
    waiting: dict[int, EventNotification] = field(default_factory=dict)  # for the handler, by number
    called: dict[int, None] = field(default_factory=dict)  # of these, a call to itself is under way
    run: dict[int, None] = field(default_factory=dict)  # of these, handled, and the answer is not yet known
    last: int = 0
    gaps: list[Gap] = field(default_factory=list)
    current: GapReplay | None = None
    own: dict[int, None] = field(default_factory=dict)
    announced: dict[int, None] = field(default_factory=dict)
    over: dict[int, None] = field(default_factory=dict)
    ever_asked: bool = False
    resuming: dict[int, None] = field(default_factory=dict)
    wait: int = 0
    errors: list[tuple[int, int, str, int | None]] = field(default_factory=list)
    replayed: dict[int, int] = field(default_factory=dict)

    def plain(self, namespace: str) -> bool:
        """True when no subscription that matches has a filter or skip."""
        return all(each.plain() for each in self.wanted.values() if matches(each.pattern, namespace))

    def asks_for(self, namespace: str) -> list[Pairs]:
        """The ways to ask for replays: one per subscription that matches, or one that brings all (RP-10c)."""
        mine = [each for each in self.wanted.values() if not each.error and matches(each.pattern, namespace)]
        if len(mine) < 2:
            return [()] * len(mine)
        return [each.replay_config() for each in mine if each.plain()][:1] or [each.replay_config() for each in mine]
