"""The state of a broadcaster: assignments, chains, events, and a queue per subscriber and per relay."""

from collections import deque
from dataclasses import dataclass, field

from pubsub_emulator.icrc72.facts import Fact, FactValue
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.stable import record, stable
from pubsub_emulator.icrc72.messages import Event
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.settings import Settings
from pubsub_emulator.icrc72.values import Property, Skip, Value

ChainKey = tuple[str, Principal, int]  # namespace, source and partition

Served = tuple[tuple[int, str | None, Skip | None], ...]  # subscriptions: id, filter and skip

stable(Event)
stable(Property)


@record
class PublicationView:
    """The configuration of a publication, as far as a broadcaster needs it."""

    id: int
    mode: str
    partitions: int
    priorities: dict[Principal, int]
    trusted: bool


@record
class EventSequence:
    """The events that one caller brought for one namespace, source and partition."""

    last: int
    seen: dict[int, bytes] = field(default_factory=dict)  # ids and hashes of the last that were accepted


@record
class Stored:
    """An event that is kept until all its notifications and relays are done."""

    event: Event
    size: int
    own: bool
    refs: int = 0


@record
class Note:
    """A notification that is queued or under way."""

    id: int
    order: tuple[int, int, int]  # event, priority (negative), subscription: the order of sending
    namespace: str
    event_id: int
    made: int
    stored: int  # the event's number in the store; 0 for a notification that the broadcaster makes itself
    size: int
    subscription: int = 0
    filter: str | None = None
    prev: int | None = None
    place: tuple[int, int] = (1, 1)
    replay: int = 0
    trusted: bool = False
    data: Value | None = None
    source: Principal | None = None
    chain: ChainKey | None = None
    sent: int = 0


@record
class Window:
    """A queue of notifications, of which one batch is under way."""

    queue: deque[Note] = field(default_factory=deque)
    out: dict[int, Note] = field(default_factory=dict)
    message: bytes = b""
    tries: int = 0
    next: int = 0
    trusted: bool = False
    came: bool = False  # the subscriber has answered the batch under way, and confirmed nothing so far
    busy: bool = False  # a guaranteed call of the trusted method is under way
    waits: int = 0  # the notification that must be confirmed before the first batch goes


@record
class Queue:
    """The queued notifications of a subscriber."""

    main: Window = field(default_factory=Window)
    own: dict[int, Window] = field(default_factory=dict)  # windows of isolated replays
    confirms: bool = False  # it has confirmed something
    once: dict[int, Note] = field(default_factory=dict)
    """The last notifications that came and were not confirmed; they may be, later."""
    heard: int = 0  # the round of its last confirmation, or since when something is queued
    suspended: bool = False
    missed: dict[ChainKey, int] = field(default_factory=dict)
    prev: dict[ChainKey, int] = field(default_factory=dict)
    live: int = 0
    live_bytes: int = 0
    replayed: int = 0
    replayed_bytes: int = 0
    system: int = 0
    lost: dict[int, None] = field(default_factory=dict)  # replays of which something was dropped


@record
class Forward:
    """An event on its way to a relay."""

    stored: int
    prev: int | None
    sent: int = 0
    late: tuple[Principal, ...] = ()
    """Entries that the relay gained while the event waited: some before it may have been left out for them."""


@record
class Lane:
    """The events of one chain, or one replay, that wait to be relayed."""

    queue: deque[Forward] = field(default_factory=deque)
    prev: int | None = None
    busy: bool = False
    tries: int = 0
    next: int = 0


@record
class Relay:
    """The events that are relayed to one broadcaster for one namespace."""

    entries: dict[Principal, tuple[str | None, Skip | None]] = field(default_factory=dict)
    lanes: dict[ChainKey, Lane] = field(default_factory=dict)


@record
class Delivered:
    """A replay that is delivered from here to its subscriber."""

    namespace: str
    hands: Principal
    subscriber: Principal
    filter: str | None
    skip: Skip | None
    publisher: Principal | None
    isolated: bool = False
    chain: EventSequence | None = None
    source: Principal | None = None  # the broadcaster that relays it


@record
class Forwarded:
    """A replay that is relayed from here."""

    namespace: str
    target: Principal
    publisher: Principal
    filter: str | None
    skip: Skip | None
    chain: EventSequence | None = None
    lane: Lane = field(default_factory=Lane)
    removed: int | None = None


@record
class BroadcasterState:
    """The whole state of a broadcaster."""

    registered: bool = False
    applied: int = 0
    facts: dict[Fact, FactValue] = field(default_factory=dict)
    publications: dict[str, PublicationView] = field(default_factory=dict)
    publishers: dict[str, dict[Principal, None]] = field(default_factory=dict)
    subscribers: dict[str, dict[Principal, Served]] = field(default_factory=dict)
    served: dict[Principal, int] = field(default_factory=dict)  # of how many namespaces each is notified
    relayers: dict[tuple[str, Principal], None] = field(default_factory=dict)
    relays: dict[tuple[str, Principal], Relay] = field(default_factory=dict)
    chains: dict[tuple[ChainKey, Principal], EventSequence] = field(default_factory=dict)
    callers: dict[ChainKey, Principal] = field(default_factory=dict)
    system: dict[str, int] = field(default_factory=dict)  # the last event of each system namespace served here
    delivered: dict[int, Delivered] = field(default_factory=dict)
    forwarded: dict[int, Forwarded] = field(default_factory=dict)
    removed: dict[int, int] = field(default_factory=dict)  # replays that were removed, and when
    events: dict[int, Stored] = field(default_factory=dict)
    last_event: int = 0
    bytes_own: int = 0
    bytes_relayed: int = 0
    bytes_by: dict[tuple[Principal, bool], int] = field(default_factory=dict)
    """Of these, the bytes of each source; `True` for what it brought itself."""
    undone: dict[Principal, int] = field(default_factory=dict)  # events of each publisher that are not done
    queues: dict[Principal, Queue] = field(default_factory=dict)
    pending: dict[int, Principal] = field(default_factory=dict)  # whose each queued notification is
    counts: dict[str, int] = field(default_factory=dict)
    recent: dict[int, int] = field(default_factory=dict)  # events accepted, by round, of the last 100
    figures: dict[str, int] = field(default_factory=dict)  # statistics by publication, subscription and replay
    accepted: dict[int, int] = field(default_factory=dict)  # events of each replay that its publisher brought here
    drains: dict[Principal, int] = field(default_factory=dict)
    """Publishers that were removed, and until which round it is told what they have still queued."""


@dataclass
class Part:
    """A part of a broadcaster, and what all of them work with."""

    state: BroadcasterState
    settings: Settings
    role: RoleCanister
