"""The rows of the store: their tables, types and texts.

Each type is a NamedTuple, written as a JSON list. New fields are appended and have defaults, so
that rows of earlier versions can be read. Rows are immutable: to change one, `_replace` it and put
the result.
"""

import hashlib
import json
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

import orjson

from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once import Transaction

EVENTS: Final = "events"
"""A `StoredEvent` by event id."""
JOBS: Final = "jobs"
"""A `Job` by `target|event id`. Due when the job may be started, or when the lease of its claim
ends."""
QUEUES: Final = "queues"
"""The last event id of each queue, by `target|entity`."""
DEAD: Final = "dead"
"""A `DeadLetter` by `letter_of`."""
UNSEEN: Final = "unseen"
"""An `Unseen` by `network|event id`, for each id that an adapter accepted and that is not in the
network's log yet. Due when the network is to be probed."""
REVOCATIONS: Final = "revocations"
"""The number of acceptances that proved untrue, by `network|event id`."""
CURSORS: Final = "cursors"
"""A `LogCursor` by network. Due when the log is to be read."""
HELD: Final = "held"
"""The range of numbers in table `held(network)`, by network. Due while held jobs are being
started."""
CALLING: Final = "calling"
"""The event id with which a legacy network is being called, by network. Due when the lease of that
call ends."""
HOOKS: Final = "hooks"
"""A `Hooks` by network, due when the adapter's subscriptions are to be compared. Also "1" by
`network|subscription` for each client's subscription that the adapter has accepted."""
STATES: Final = "states"
"""A `LogState` by network."""
INTERESTS: Final = "interests"
"""The `Index` under the key `index`, and the name of each active subscription by `equal|` and the
digest of its content."""
SUBSCRIPTIONS: Final = "subscriptions"
"""An `Interest` by the subscription's name."""
QUARANTINE: Final = "quarantine"
"""The `notice_text` of each notice without a global id, by `network|number` with the number padded
to 20 digits."""
EXPIRY: Final = "expiry"
""""1" by event id, if `Rules.retain` is set. Due when the id is to be forgotten."""
CONTINUITY: Final = "continuity"
"""The epochs of the store, the seats of processes, the second in which the distributor began, and
the `NetworkLoss` of each network (see `continuity`)."""
_BEGIN: Final = "begin"
"""The key of the second in which the distributor began, in `CONTINUITY`."""
ALARMS: Final = "alarms"
"""A text for operators, by `network|kind of alarm`."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_GENERATION: Final = 4096
"""The number of decoded rows of each table that a process caches in one generation.

A step reads the same row several times, and most steps read rows that were written shortly before.
"""

T = TypeVar("T", bound=tuple[Any, ...])


class Rows(Generic[T]):
    """A table of rows of one type, with a cache of decoded rows.

    The cache is keyed by the rows' texts, so it never has to be invalidated. It has two
    generations. When the young one is full, it replaces the old one. This drops the rows that have
    not been used since the last replacement.
    """

    def __init__(self, table: str, kind: Callable[..., T]) -> None:
        self._table = table
        self._kind = kind
        self._young: dict[str, T] = {}
        """The rows that were read or written most recently, by their texts."""
        self._old: dict[str, T] = {}
        """The rows of the previous generation, by their texts."""

    def get(self, tx: Transaction, key: str) -> T | None:
        """Return the row of a key, `None` if there is none."""
        text = tx.get(self._table, key)
        if text is None:
            return None
        cached = self._young.get(text) or self._old.get(text)
        if cached is not None:
            return cached
        return self._cache(text, self._kind(*json.loads(text)))

    def put(self, tx: Transaction, key: str, row: T, due: int | None = None, lane: int = 0) -> None:
        """Write a row.

        The store lists the row as due from the time `due`, in ms, or never if it is `None`. Of the
        rows that are due, those of lower lanes are listed first.
        """
        text = encode(row)
        self._cache(text, row)
        tx.put(self._table, key, text, due, lane)

    def _cache(self, text: str, row: T) -> T:
        """Cache a row by its text and return it."""
        # Dropping a whole generation is much cheaper than maintaining an order of use.
        if len(self._young) >= _GENERATION:
            self._old = self._young
            self._young = {}
        self._young[text] = row
        return row


def published(network: str) -> str:
    """Return the name of the set of event ids that are on a network (ID-45)."""
    return f"publishedEvents:{network}"


def notified(subscription: str) -> str:
    """Return the name of the set of event ids that a subscriber has acknowledged (ID-45)."""
    return f"notifiedEvents:{subscription}"


def numbers(network: str) -> str:
    """Return the name of the table with the `entry` of each number of a network's log."""
    return f"numbers:{network}"


def entry(notice: Notice) -> str:
    """Return the text by which a notice is recognized when its number is read again.

    The text is `id|digest|block`. The id is empty if the event has none. The digest is the first
    16 hex digits of the content's digest. The block is the first 34 characters of the block's hash,
    empty if the adapter does not report it.
    """
    return f"{notice.id or ''}|{notice.event.digest()[:16]}|{notice.block[:34]}"


class _Entry(NamedTuple):
    """The parts of an `entry`."""

    id: str
    digest: str
    block: str = ""
    """The beginning of the block's hash. Entries of earlier versions lack this part."""


def tells_block(known: str) -> bool:
    """Return whether an `entry` has a block."""
    return _Entry(*known.split("|")).block != ""


def same_entry(known: str, notice: Notice) -> bool:
    """Return whether a notice is the one that the `entry` `known` describes.

    Blocks are compared only if both sides have one: a notification may lack the block that a read
    of the log reports.
    """
    old = _Entry(*known.split("|"))
    new = _Entry(*entry(notice).split("|"))
    same_block = old.block == new.block or not old.block or not new.block
    return old.id == new.id and old.digest == new.digest and same_block


def held(network: str) -> str:
    """Return the name of the table with the event ids of held jobs, by consecutive number.

    Jobs are held while the network must not be called.
    """
    return f"held:{network}"


def parked(network: str) -> str:
    """Return the name of the table with the notices beyond a gap, by number in the log."""
    return f"parked:{network}"


def on_network(network: str) -> str:
    """Return the target of a job that publishes on a network."""
    return f"n:{network}"


def to_subscription(subscription: str) -> str:
    """Return the target of a job that notifies a subscription."""
    return f"s:{subscription}"


@lru_cache(_GENERATION)
def letter_of(target: str, event_id: str) -> str:
    """Return the name of a dead letter: 16 bytes of a hash, in hexadecimal."""
    return hashlib.blake2b(f"{target}|{event_id}".encode(), digest_size=16).hexdigest()


def encode(row: tuple[object, ...]) -> str:
    """Return the JSON text of a row, a list of its fields."""
    try:
        # orjson writes tuples, but not their subclasses.
        return orjson.dumps(tuple(row)).decode()
    except TypeError:
        # orjson refuses integers of more than 64 bits.
        return _ENCODER.encode(row)


class StoredEvent(NamedTuple):
    """An event, the notice by which it was first seen, and its numbers in the logs."""

    event: list[Any]
    """The fields of the `Event` as a list."""
    digest: str
    """The event's `Event.digest()`, which fixes the content of the id (ID-22)."""
    time: int = 0
    """The block time, in seconds, from the first acceptance or notice that reported it, else 0."""
    seen: int = 0
    """The store's clock, in ms, at the first notice. 0 until the event is found in a log."""
    number: int = 0
    """The number in the log of the first notice."""
    signer: str = ""
    """The address that signed the event's transaction, from the first notice."""
    publisher: str | None = None
    """The `iss` of the first notice."""
    numbers: list[list[Any]] = []  # noqa: RUF012  # never changed in place
    """Pairs of a network and the event's number in its log. Usually only the first number of each
    network is stored. If `Rules.retain` is set, all are stored, because the rows of the numbers are
    deleted together with the event."""
    hearsay: int = 0
    """1 if only a notification for a client's subscription has reported the event. Such a report
    does not fix the content of the id."""

    def first(self, network: str) -> int:
        """Return the event's smallest number on a network, 0 if it has none there."""
        return min((number for name, number in self.numbers if name == network), default=0)

    def with_number(self, network: str, number: int, *, every: bool) -> "StoredEvent":
        """Return the row with the event's number on a network added.

        If `every` is false, only the first number of each network is added.
        """
        if not every and self.first(network):
            return self
        return self._replace(numbers=[*self.numbers, [network, number]])

    def fields(self) -> Event:
        """Return the event."""
        return _event(self.event)

    def notice(self, event_id: str) -> Notice:
        """Return the notice with which subscribers are notified."""
        event = self.fields()
        if self.publisher is not None:
            event = event._replace(iss=self.publisher)
        return Notice(self.number, self.time, event, event_id, self.signer)


class Job(NamedTuple):
    """A row of the outbox: publish an event on a network, or notify a subscription of it.

    The jobs of one target and entity form a queue, a doubly linked list. Only the first one has a
    due time, so that an entity's events are published in order (ID-37).
    """

    entity: str
    """The entity of the event (`Event.order`)."""
    since: int
    """The time in ms at which the job was stored."""
    due: int
    """The time in ms from which the job may be started."""
    lane: int = 0
    """Of the rows that are due, the store lists those of lower lanes first. Events of a network's
    history have lane 1, others 0."""
    doubt: int = 0
    """1 if a call may have been made already, so that the network must be probed before the next
    call."""
    tries: int = 0
    """The number of failed attempts."""
    until: int = 0
    """The time in ms at which the lease of the latest claim ends."""
    before: str = ""
    """The event id of the preceding job in the queue, empty if this is the first."""
    after: str = ""
    """The event id of the following job in the queue, empty if this is the last."""
    reason: str = ""
    """The reason of the last failure."""


class Unseen(NamedTuple):
    """The acceptance of an id that is not in the network's log yet."""

    committed: int
    """The time in ms at which the acceptance was stored."""
    since: int
    """The time in ms at which the job was stored. The event cannot have been published earlier."""
    time: int = 0
    """The second of the event's block according to the adapter, 0 if the adapter did not report
    it."""

    def text(self) -> str:
        """Return the row's text, which `read_unseen` reads."""
        return f"{self.committed} {self.since} {self.time}"


def read_unseen(text: str) -> Unseen:
    """Return the acceptance in a row of `UNSEEN`.

    Rows of earlier versions lack `time`, or both `since` and `time`. In the latter case,
    `committed` also stands for `since`.
    """
    numbers = [int(number) for number in text.split(" ")]
    if len(numbers) == 1:
        numbers *= 2
    return Unseen(*numbers)


class DeadLetter(NamedTuple):
    """A dead letter: a job that was given up."""

    target: str
    """The job's target, `on_network` or `to_subscription`."""
    id: str
    """The event's id."""
    reason: str
    time: int
    """The store's clock in ms when the job was given up."""
    tries: int
    """The number of failed attempts."""


class LogCursor(NamedTuple):
    """The position up to which a network's log has been read, and the state of reading it."""

    last: int = 0
    """The last number that is known. All lower numbers are known, too."""
    verified: int = 0
    """The last number that a read, and not only a notification, has confirmed."""
    reading: int = 0
    """The time in ms at which the read that is under way counts as lost, 0 if none is under way."""
    short: int = 0
    """The time in ms since which the log has been shorter than `last`. For a legacy network, the
    time since which its log has had a gap."""
    low: int = 0
    """The greatest number known to be the same as before, during the search after a rewind."""
    high: int = 0
    """The smallest number known to differ from before, during the search after a rewind, 0 without
    a search."""
    cut: int = -1
    """The last number that remains, while the numbers after it are being revoked, otherwise -1."""
    done: int = 0
    """The last number that has been revoked, while `cut` is not -1."""
    newest: int = 0
    """The second up to which a legacy log has been read."""
    parked: list[int] = []  # noqa: RUF012  # never changed in place
    """The numbers of the parked notices, which lie beyond a gap, ascending."""
    blocks: int = 0
    """1 if the row at `verified` had a block. A block's hash commits to all earlier blocks, so the
    same hash confirms all earlier rows."""


class LogState(StrEnum):
    """Whether a network may be published to (ID-36).

    It may be published to once its log has been read to the end. Before that, the distributor
    would publish events that are already in the log.
    """

    HISTORY = "history"
    """The log is being read for the first time."""
    READY = "ready"
    """The network may be published to."""
    REREAD = "reread"
    """The log was rewound and is being read again."""


class NetworkLoss(NamedTuple):
    """The consequences for a network of a loss of rows in the store (see `continuity`)."""

    until: int = 0
    """The time in ms until which the network is not published to, even if its log has been read."""
    doubted: int = 0
    """Jobs that were stored up to this time, in ms, are in doubt. 0 until the log has been read."""


class Hooks(NamedTuple):
    """The distributor's subscription to everything on an adapter (ID-32)."""

    key: str
    """The key in the webhook's URL."""
    form: int = 0
    """The index in `rules.FORMS` of the form that is being tried or works. The adapter does not
    offer the forms before it."""
    answer: int = 0
    """0 until the adapter accepts the form, then `hooks.ACCEPTED`, and `hooks.LISTED` once the
    adapter lists the subscription."""


class Interest(NamedTuple):
    """A client's subscription (ID-40)."""

    types: list[str]
    """Event types that match, `*` for all."""
    metadata: list[str]
    """A matching event has at least one of these values. An empty list matches every event."""
    endpoint: str
    """The URL that is notified."""
    secret: str | None
    """The secret with which notifications are signed, `None` to send them unsigned."""
    key: str
    """The key in the URLs at which adapters notify the distributor for this subscription."""
    created: int
    """The time in ms at which the client subscribed. Events from before it are not delivered."""
    active: int = 1
    """0 after the subscriber answered with status 410."""


_EVENTS: Final = Rows(EVENTS, StoredEvent)
_JOBS: Final = Rows(JOBS, Job)
_CURSORS: Final = Rows(CURSORS, LogCursor)
_HOOKS: Final = Rows(HOOKS, Hooks)
_INTERESTS: Final = Rows(SUBSCRIPTIONS, Interest)
_DEAD: Final = Rows(DEAD, DeadLetter)
_LOSSES: Final = Rows(CONTINUITY, NetworkLoss)

get_event, put_event = _EVENTS.get, _EVENTS.put
"""Read and write by the event's id."""
get_hooks, put_hooks = _HOOKS.get, _HOOKS.put
"""Read and write by network. A network has no row before the distributor's first start with it."""
get_interest, put_interest = _INTERESTS.get, _INTERESTS.put
"""Read and write by the subscription's name."""
get_dead, put_dead = _DEAD.get, _DEAD.put
"""Read and write by `letter_of`."""
put_cursor = _CURSORS.put
"""Write by network. The log is read when the row is due."""


def get_job(tx: Transaction, target: str, event_id: str) -> Job | None:
    """Return the job that an event has for a target, `None` if there is none."""
    return _JOBS.get(tx, f"{target}|{event_id}")


def put_job(tx: Transaction, target: str, event_id: str, job: Job, *, due: bool = True) -> None:
    """Write a job.

    The row is due at `job.due` only if the job is the first of its queue and `due` is true.
    """
    row_due = job.due if due and not job.before else None
    _JOBS.put(tx, f"{target}|{event_id}", job, due=row_due, lane=job.lane)


def get_cursor(tx: Transaction, network: str) -> LogCursor:
    """Return a network's cursor, at the beginning of the log if the network is new."""
    return _CURSORS.get(tx, network) or LogCursor()


def get_state(tx: Transaction, network: str) -> LogState:
    """Return whether a network may be published to."""
    return LogState(tx.get(STATES, network) or LogState.HISTORY)


def get_begin(tx: Transaction) -> int | None:
    """Return the second in which the distributor began, `None` if it is not stored."""
    text = tx.get(CONTINUITY, _BEGIN)
    return None if text is None else int(text)


def put_begin(tx: Transaction, begin: int) -> None:
    """Store the second in which the distributor began."""
    tx.put(CONTINUITY, _BEGIN, str(begin))


def get_loss(tx: Transaction, network: str) -> NetworkLoss | None:
    """Return the consequences of a loss for a network, `None` if the store has not lost rows."""
    return _LOSSES.get(tx, f"loss|{network}")


def put_loss(tx: Transaction, network: str, loss: NetworkLoss) -> None:
    """Write the consequences of a loss for a network."""
    _LOSSES.put(tx, f"loss|{network}", loss)


Index = list[tuple[str, list[str], list[str], int]]
"""The active subscriptions, each as its name, types, metadata and time of creation in ms."""
_index: Final[Callable[[str], Index]] = lru_cache(4)(json.loads)
"""The decoder of indexes. It caches by text, because every event reads the index and it rarely
changes."""


def get_index(tx: Transaction) -> Index:
    """Return the index of active subscriptions, against which events are matched."""
    return _index(tx.get(INTERESTS, "index") or "[]")


def index_size(index: Index) -> int:
    """Return the size of an index in the store, in bytes."""
    return len(_ENCODER.encode(index).encode())


def put_index(tx: Transaction, index: Index) -> None:
    """Write the index of active subscriptions."""
    tx.put(INTERESTS, "index", _ENCODER.encode(index))


def notice_text(notice: Notice) -> str:
    """Return a notice as JSON text, a list of its fields."""
    return encode((notice.number, notice.time, list(notice.event), *notice[3:]))


def notice_of(text: str) -> Notice:
    """Return the notice written by `notice_text`."""
    number, time, event, *rest = json.loads(text)
    return Notice(number, time, _event(event), *rest)


def _event(fields: list[Any]) -> Event:
    """Return the event whose fields are in a list that was read from JSON."""
    kind, location, metadata, *rest = fields
    return Event(kind, location, tuple(metadata), *rest)
