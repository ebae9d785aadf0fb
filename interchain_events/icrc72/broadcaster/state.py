"""The state of a broadcaster: assignments, chains, events, and queues of subscribers and relays.

These records are saved in upgrades.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from interchain_events.icrc72.facts import Fact, FactValue, Width
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import record, stable
from interchain_events.icrc72.memory import Line, nothing, put
from interchain_events.icrc72.messages import Event
from interchain_events.icrc72.role import RoleCanister
from interchain_events.icrc72.settings import Settings
from interchain_events.icrc72.values import Property, Skip, Value

ChainKey = tuple[str, Principal, int]
"""Namespace, source and partition of a chain, a sequence of events in order."""

stable(Event)
stable(Property)


@stable
class ServedSubscription(NamedTuple):
    """A subscription of which this broadcaster notifies the subscriber."""

    id: int
    filter: str | None
    skip: Skip | None


Served = tuple[ServedSubscription, ...]
"""The subscriptions of a subscriber in a namespace."""


@record
class PublicationView:
    """The part of a publication's configuration that a broadcaster needs."""

    id: int
    mode: str
    """`fifo`, `priority` or `unordered`."""
    partitions: int
    priorities: dict[Principal, int]
    trusted: bool


@record
class EventSequence:
    """The accepted events of one chain from one caller, or of one replay."""

    last: int
    """The largest id."""
    seen: dict[int, bytes] = field(default_factory=dict)
    """The ids of the last events with the hashes of their data, to recognise repetitions."""


@record
class Stored:
    """An event in the store, until all its notifications and relays are done."""

    event: Event
    size: int
    """The bytes of the event in Candid."""
    own: bool
    """Whether its publisher brought it, and not a relay."""
    refs: int = 0
    """How many notifications and relays need it."""


@record
class Note:
    """A notification that is queued or under way."""

    id: int
    order: tuple[int, int, int]
    """Number of the event, negative priority and subscription: the order of sending."""
    namespace: str
    event_id: int
    made: int
    """The time (ns) at which it was made."""
    stored: int
    """The event's number in the store; 0 for a system event, which carries its own data."""
    size: int
    """The bytes of the event or data in Candid."""
    subscription: int = 0
    filter: str | None = None
    """The filter of the subscription."""
    prev: int | None = None
    """The id of the event of the chain that this subscriber got before."""
    place: tuple[int, int] = (1, 1)
    """Its position among the notifications of the event, from 1, and their number."""
    replay: int = 0
    """The id of the replay, or 0."""
    trusted: bool = False
    """Whether it is sent by a guaranteed call whose answer confirms it (IC-46)."""
    data: Value | None = None
    """The data of a system event."""
    source: Principal | None = None
    """The source of a system event; `None` for this broadcaster itself."""
    chain: ChainKey | None = None
    """The chain of a live event."""
    sent: int = 0
    """The time (ns) at which it was first sent."""


@record
class Window:
    """A queue of notifications, of which one batch at a time is under way."""

    queue: Line[Note] = field(default_factory=Line)
    """The notifications that wait."""
    out: Mapping[int, Note] = field(default_factory=nothing)
    """The notifications of the batch that are not confirmed."""
    message: bytes = b""
    """The encoded batch."""
    tries: int = 0
    """How many times the batch was sent."""
    next: int = 0
    """The round in which it is sent again."""
    trusted: bool = False
    """Whether the batch is sent by guaranteed calls."""
    came: bool = False
    """Whether a subscriber that never confirms has received the batch."""
    busy: bool = False
    """Whether a guaranteed call is under way."""
    waits: int = 0
    """The notification that must be confirmed before the first batch is sent, or 0."""


@record
class Queue:
    """The queued notifications of a subscriber."""

    main: Window = field(default_factory=Window)
    own: Mapping[int, Window] = field(default_factory=nothing)
    """The windows of isolated replays by id (RP-9)."""
    confirms: bool = False
    """Whether the subscriber has ever confirmed a notification."""
    once: Mapping[int, Note] = field(default_factory=nothing)
    """The last notifications that were received but not confirmed yet."""
    heard: int = 0
    """The round of the last confirmation, or in which the queue was last filled after being empty.
    """
    suspended: bool = False
    """Whether it gets no live events, because its queue was full or it was silent."""
    missed: Mapping[ChainKey, int] = field(default_factory=nothing)
    """For each chain, the first event that the suspended subscriber misses."""
    prev: Mapping[ChainKey, int] = field(default_factory=nothing)
    """For each chain, the last event for which it was notified."""
    live: int = 0
    """How many notifications of live events are queued or under way."""
    live_bytes: int = 0
    replayed: int = 0
    """How many notifications of replayed events are queued or under way."""
    replayed_bytes: int = 0
    system: int = 0
    """How many system events are queued or under way."""
    lost: Mapping[int, None] = field(default_factory=nothing)
    """Replays of which notifications were dropped, so that they must not be reported as ended."""

    def window(self, replay: int) -> Window:
        """Return the main window (0), or that of an isolated replay, made when first needed."""
        if not replay:
            return self.main
        window = self.own.get(replay)
        if window is None:
            window = Window()
            self.own = put(self.own, replay, window)
        return window


@record
class Forward:
    """An event that waits to be relayed."""

    stored: int
    """Its number in the store."""
    prev: int | None
    """The event of the chain that was relayed before it."""
    sent: int = 0
    """The time (ns) at which it was first sent."""
    late: tuple[Principal, ...] = ()
    """Subscribers for which the relay was widened while the event waited (see `facts.is_late`)."""


@record
class Lane:
    """The events of one chain, or one replay, that wait to be relayed."""

    queue: Line[Forward] = field(default_factory=Line)
    prev: int | None = None
    """The last event that was put into the lane."""
    busy: bool = False
    """Whether a call is under way."""
    tries: int = 0
    """How many times sending has failed since the last success."""
    next: int = 0
    """The round before which nothing is sent."""


@record
class Relay:
    """The relaying of one namespace to one broadcaster."""

    entries: dict[Principal, Width] = field(default_factory=dict)
    """Filter and skip for each subscriber, or for `facts.EVERYBODY`.

    An event is relayed if at least one of them lets it pass.
    """
    lanes: dict[ChainKey, Lane] = field(default_factory=dict)


@record
class Delivered:
    """A replay that this broadcaster delivers to its subscriber, as its exit."""

    namespace: str
    hands: Principal
    """The broadcaster that hands over the events: the entry, or this one if it is both."""
    subscriber: Principal
    filter: str | None
    skip: Skip | None
    publisher: Principal | None
    """The publisher that may send the events; `None` if the orchestrator has not named it."""
    isolated: bool = False
    """Whether it has a window of its own (RP-9)."""
    chain: EventSequence | None = None
    source: Principal | None = None
    """The broadcaster that was assigned to relay the replay."""


@record
class Forwarded:
    """A replay that this broadcaster relays to the exit, as its entry."""

    namespace: str
    target: Principal
    publisher: Principal
    filter: str | None
    skip: Skip | None
    chain: EventSequence | None = None
    lane: Lane = field(default_factory=Lane)
    removed: int | None = None
    """The round in which the orchestrator removed it. The lane is still emptied afterwards."""


@record
class BroadcasterState:
    """The whole state of a broadcaster."""

    registered: bool = False
    applied: int = 0
    """The id of the last system event that was applied."""
    facts: dict[Fact, FactValue] = field(default_factory=dict)
    """The facts that the orchestrator has assigned."""
    publications: dict[str, PublicationView] = field(default_factory=dict)
    """The publications by namespace."""
    publishers: dict[str, dict[Principal, None]] = field(default_factory=dict)
    """For each namespace, the publishers from which events are accepted."""
    subscribers: dict[str, Mapping[Principal, Served]] = field(default_factory=dict)
    """For each namespace, the subscribers that are notified."""
    served: dict[Principal, int] = field(default_factory=dict)
    """For each subscriber, the number of namespaces of which it is notified."""
    relayers: dict[tuple[str, Principal], None] = field(default_factory=dict)
    """The namespaces and broadcasters from which events are accepted."""
    relays: dict[tuple[str, Principal], Relay] = field(default_factory=dict)
    """The relaying to other broadcasters, by namespace and target."""
    chains: dict[tuple[ChainKey, Principal], EventSequence] = field(default_factory=dict)
    """The accepted events of each chain from each caller."""
    callers: dict[ChainKey, Principal] = field(default_factory=dict)
    """The last caller of each chain. The empty principal stands for a removed caller."""
    system: dict[str, int] = field(default_factory=dict)
    """The last event of each system namespace that is served here."""
    delivered: dict[int, Delivered] = field(default_factory=dict)
    forwarded: dict[int, Forwarded] = field(default_factory=dict)
    removed: dict[int, int] = field(default_factory=dict)
    """Replays that were removed, and the round of their removal."""
    events: dict[int, Stored] = field(default_factory=dict)
    """The store."""
    last_event: int = 0
    """The last number that was given to an event in the store or to a system event."""
    bytes_own: int = 0
    """The bytes of stored events that publishers brought."""
    bytes_relayed: int = 0
    """The bytes of stored events that relays brought."""
    bytes_by: dict[tuple[Principal, bool], int] = field(default_factory=dict)
    """The same bytes by source; the flag is true for events that the source brought itself."""
    undone: dict[Principal, int] = field(default_factory=dict)
    """For each publisher, the number of its own events in the store."""
    queues: dict[Principal, Queue] = field(default_factory=dict)
    pending: dict[int, Principal] = field(default_factory=dict)
    """For each notification that is not confirmed, its subscriber."""
    counts: dict[str, int] = field(default_factory=dict)
    """The counters of the broadcaster's statistics."""
    recent: dict[int, int] = field(default_factory=dict)
    """How many events were accepted in each of the last 100 rounds."""
    figures: dict[str, int] = field(default_factory=dict)
    """Statistics by publication, subscription and replay."""
    accepted: dict[int, int] = field(default_factory=dict)
    """For each replay, the number of events that publishers brought here."""
    drains: dict[Principal, int] = field(default_factory=dict)
    """Removed publishers, and the round until which their queued events are in the statistics."""


@dataclass
class Part:
    """A part of a broadcaster, with the state and services that all parts share."""

    state: BroadcasterState
    settings: Settings
    role: RoleCanister
