"""The rows of the store, each a NamedTuple written as a JSON list."""

import hashlib
import json
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

import orjson

from pubsub_emulator.distributor.event import Event, Notice
from pubsub_emulator.distributor.once import Transaction

EVENTS: Final = "events"
JOBS: Final = "jobs"
QUEUES: Final = "queues"
DEAD: Final = "dead"
UNSEEN: Final = "unseen"
REVOCATIONS: Final = "revocations"
CURSORS: Final = "cursors"
HELD: Final = "held"
CALLING: Final = "calling"
"""The id for which a legacy network is called now; it is due when the lease ends."""
HOOKS: Final = "hooks"
STATES: Final = "states"
INTERESTS: Final = "interests"
SUBSCRIPTIONS: Final = "subscriptions"
QUARANTINE: Final = "quarantine"
EXPIRY: Final = "expiry"
ALARMS: Final = "alarms"

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_KEPT: Final = 4096
"""Decoded texts of each kind that a process keeps, as a row is read several times before it changes."""

T = TypeVar("T", bound=tuple[Any, ...])


class Rows(Generic[T]):
    """A table of rows of one kind. Those read or written last are kept by their text; none is changed in place."""

    def __init__(self, table: str, kind: Callable[..., T]) -> None:
        self._table = table
        self._kind = kind
        self._young: dict[str, T] = {}
        self._old: dict[str, T] = {}

    def get(self, tx: Transaction, key: str) -> T | None:
        """The row of a key."""
        text = tx.get(self._table, key)
        if text is None:
            return None
        found = self._young.get(text) or self._old.get(text)
        return self._keep(text, self._kind(*json.loads(text))) if found is None else found

    def put(self, tx: Transaction, key: str, row: T, due: int | None = None, lane: int = 0) -> None:
        """Write a row."""
        text = encode(row)
        self._keep(text, row)
        tx.put(self._table, key, text, due, lane)

    def _keep(self, text: str, row: T) -> T:
        if len(self._young) >= _KEPT:
            self._old, self._young = self._young, {}
        self._young[text] = row
        return row


def published(network: str) -> str:
    """The name of a network's published set (ID-45)."""
    return f"publishedEvents:{network}"


def notified(subscription: str) -> str:
    """The name of a subscription's notified set (ID-45)."""
    return f"notifiedEvents:{subscription}"


def numbers(network: str) -> str:
    """The name of the table with the `entry` of each number of a network."""
    return f"numbers:{network}"


def entry(notice: Notice) -> str:
    """The text noted for a number of a log: id (empty if none), digest of the content, and block if it was told."""
    return f"{notice.id or ''}|{notice.event.digest()[:16]}|{notice.block[:34]}"


def tells_block(known: str) -> bool:
    """Whether `entry` noted a block."""
    return (*known.split("|"), "")[2] != ""


def same_entry(known: str, notice: Notice) -> bool:
    """Whether a notice is what `entry` noted. Blocks decide only where both are told."""
    name, digest, block = (*known.split("|"), "")[:3]
    found, content, issuer = entry(notice).split("|")
    return (name, digest) == (found, content) and (not block or not issuer or block == issuer)


def held(network: str) -> str:
    """The table of jobs that wait until the network may be published to, by number."""
    return f"held:{network}"


def parked(network: str) -> str:
    """The table of notices beyond a gap."""
    return f"parked:{network}"


def on_network(network: str) -> str:
    """A job's target: publish there."""
    return f"n:{network}"


def to_subscription(subscription: str) -> str:
    """A job's target: notify that subscription."""
    return f"s:{subscription}"


@lru_cache(_KEPT)
def letter_of(target: str, event_id: str) -> str:
    """The name of a dead letter."""
    return hashlib.blake2b(f"{target}|{event_id}".encode(), digest_size=16).hexdigest()


def encode(row: tuple[object, ...]) -> str:
    """The JSON text of a row."""
    try:
        return orjson.dumps(tuple(row)).decode()
    except TypeError:  # a number of more than 64 bits
        return _ENCODER.encode(row)


class Stored(NamedTuple):
    """An event: its fields, what it hashes to, and the notice by which it was seen first.

    `time` is the first yes's or notice's block time in seconds; `seen` the store's time of the first notice in ms, 0
    before. `numbers` is where it is on each network: the first number, and where ids are retained for a time every
    number. `hearsay` is 1 while only an interest told of it, which fixes no content.
    """

    event: list[Any]
    digest: str
    time: int = 0
    seen: int = 0
    number: int = 0
    signer: str = ""
    publisher: str | None = None
    numbers: list[list[Any]] = []  # noqa: RUF012  # never changed in place
    hearsay: int = 0

    def first(self, network: str) -> int:
        """The first number that it has on a network, 0 if none."""
        return min((number for name, number in self.numbers if name == network), default=0)

    def at(self, network: str, number: int, *, every: bool) -> "Stored":
        """With a number on a network; `every` keeps those after the first."""
        if not every and self.first(network):
            return self
        return self._replace(numbers=[*self.numbers, [network, number]])

    def fields(self) -> Event:
        """The event."""
        return _event(self.event)

    def notice(self, event_id: str) -> Notice:
        """The notification that subscribers get."""
        fields = self.fields()
        named = fields._replace(iss=self.publisher if self.publisher is not None else fields.iss)
        return Notice(self.number, self.time, named, event_id, self.signer)


class Job(NamedTuple):
    """An outbox row: publish an event on a network or notify a subscription.

    `doubt` is 1 once a call may have been made; `until` is when the lease of the claim ends. `before` and `after` are
    the neighbours in the entity's queue, empty where there is none; only the first of a queue has a time.
    """

    entity: str
    since: int
    due: int
    lane: int = 0
    doubt: int = 0
    tries: int = 0
    until: int = 0
    before: str = ""
    after: str = ""
    reason: str = ""


def unseen_text(committed: int, since: int) -> str:
    """The row of an id that was published and not seen: when that was heard, and from when on it may be in the log."""
    return f"{committed} {since}"


def read_unseen(text: str) -> tuple[int, int]:
    """The two numbers of a row that `unseen_text` wrote; rows of earlier versions have only the first."""
    committed, _, since = text.partition(" ")
    return int(committed), int(since or committed)


class Dead(NamedTuple):
    """A dead letter."""

    target: str
    id: str
    reason: str
    time: int
    tries: int


class Cursor(NamedTuple):
    """The position up to which a network's log was read.

    `last` is the last number without a gap before it, `verified` the last one that a read confirmed. `reading` is until
    when a read is under way. `short` is since when the log has been shorter than `last`, or has had a gap that a legacy
    adapter does not fill. `low` and `high` bound the search for the last common number; `high` is 0 where there is
    none. `cut` is the last number that stays while a log is taken back, else -1, and `done` how far that is. `newest`
    is up to which second a legacy log was read. `blocks` is 1 where the row at `verified` told its block, which
    confirms all rows before it.
    """

    last: int = 0
    verified: int = 0
    reading: int = 0
    short: int = 0
    low: int = 0
    high: int = 0
    cut: int = -1
    done: int = 0
    newest: int = 0
    parked: list[int] = []  # noqa: RUF012  # never changed in place
    blocks: int = 0


class State(StrEnum):
    """Whether a network may be published to: only once its log has been read to its end (ID-36)."""

    HISTORY = "history"
    READY = "ready"
    REREAD = "reread"
    """The log was taken back."""


class Hooks(NamedTuple):
    """An adapter's subscription to everything: the key, and how many forms of `FORMS` it turned out not to offer."""

    key: str
    form: int = 0
    answer: int = 0


class Interest(NamedTuple):
    """A subscription of a client."""

    types: list[str]
    metadata: list[str]
    endpoint: str
    secret: str | None
    key: str
    created: int
    active: int = 1


_EVENTS: Final = Rows(EVENTS, Stored)
_JOBS: Final = Rows(JOBS, Job)
_CURSORS: Final = Rows(CURSORS, Cursor)
_HOOKS: Final = Rows(HOOKS, Hooks)
_INTERESTS: Final = Rows(SUBSCRIPTIONS, Interest)
_DEAD: Final = Rows(DEAD, Dead)

get_event, put_event = _EVENTS.get, _EVENTS.put
"""By the event's id."""
get_hooks, put_hooks = _HOOKS.get, _HOOKS.put
"""By the network; none before its first start."""
get_interest, put_interest = _INTERESTS.get, _INTERESTS.put
"""By the subscription's name."""
get_dead, put_dead = _DEAD.get, _DEAD.put
"""By the dead letter's name, see `letter_of`."""
put_cursor = _CURSORS.put
"""By the network; its log is read when the row is due."""


def get_job(tx: Transaction, target: str, event_id: str) -> Job | None:
    """The job of that event for that target."""
    return _JOBS.get(tx, f"{target}|{event_id}")


def put_job(tx: Transaction, target: str, event_id: str, job: Job, *, due: bool = True) -> None:
    """Write a job; it gets its time unless another of its queue is before it or `due` is false."""
    _JOBS.put(tx, f"{target}|{event_id}", job, job.due if due and not job.before else None, job.lane)


def get_cursor(tx: Transaction, network: str) -> Cursor:
    """A network's cursor, at the beginning where there is none."""
    return _CURSORS.get(tx, network) or Cursor()


def get_state(tx: Transaction, network: str) -> State:
    """Whether a network may be published to."""
    return State(tx.get(STATES, network) or State.HISTORY)


Index = list[tuple[str, list[str], list[str], int]]
"""Active subscriptions with their types, metadata and times of creation."""
_index: Final[Callable[[str], Index]] = lru_cache(4)(json.loads)


def get_index(tx: Transaction) -> Index:
    """The index of subscriptions that events are matched with."""
    return _index(tx.get(INTERESTS, "index") or "[]")


def put_index(tx: Transaction, index: Index) -> None:
    """Write the index of subscriptions that events are matched with."""
    tx.put(INTERESTS, "index", _ENCODER.encode(index))


def notice_text(notice: Notice) -> str:
    """A notice as text."""
    return encode((notice.number, notice.time, list(notice.event), *notice[3:]))


def notice_of(text: str) -> Notice:
    """The notice that `notice_text` wrote."""
    number, time, event, *rest = json.loads(text)
    return Notice(number, time, _event(event), *rest)


def _event(fields: list[Any]) -> Event:
    kind, location, metadata, *rest = fields
    return Event(kind, location, tuple(metadata), *rest)
