"""Inputs and effects of the state machine, and a step on the way from one to the others.

An input is the end of something (an answer, a page, a time that has come) or a wish of a client. An effect is a call
that the shell makes after the step's writes were stored; what became of it returns as an input.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from pubsub_emulator.distributor.core.rules import Rules
from pubsub_emulator.distributor.event import Event, Notice
from pubsub_emulator.distributor.once import DueRow, Transaction


class Yes(NamedTuple):
    """The adapter published, or the network had the event already; `time` is the block's, in seconds, 0 if unsaid."""

    time: int


class No(NamedTuple):
    """The adapter refused, and will refuse again."""

    reason: str


class Unknown(NamedTuple):
    """Neither: the call may have been carried out."""

    reason: str


Answer = Yes | No | Unknown


class Start(NamedTuple):
    """A process starts. `keys` has a fresh random text for each network and is used where there is none yet."""

    keys: dict[str, str]


class Publish(NamedTuple):
    """A client publishes (ID-30)."""

    id: str
    event: Event


class Answered(NamedTuple):
    """The answer of an adapter to `Call`."""

    network: str
    id: str
    answer: Answer


class Noticed(NamedTuple):
    """A notification came in (ID-31), for one interest if `subscription` is given (ID-40)."""

    network: str
    key: str
    notice: Notice
    subscription: str | None = None


class Page(NamedTuple):
    """Notices by number; `complete`: there are no more now, else `until` is the second up to which time was read."""

    notices: tuple[Notice, ...]
    complete: bool
    until: int = 0


class Paged(NamedTuple):
    """The result of `Read`; `None`: it failed."""

    network: str
    after: int
    page: Page | None


class Probed(NamedTuple):
    """Whether the network has the id; `None`: it could not be told. `asked_at` is the probe's.

    `hidden`: it is not shown and would not be, as a legacy adapter shows the newest event of an entity and has another.
    """

    network: str
    id: str
    there: bool | None
    asked_at: int
    hidden: bool = False


class Posted(NamedTuple):
    """The status of a `Post`; `None`: no answer."""

    subscription: str
    id: str
    status: int | None


class Subscribe(NamedTuple):
    """A client subscribes. `fresh` and `key` are random texts."""

    types: tuple[str, ...]
    metadata: tuple[str, ...]
    endpoint: str
    secret: str | None
    fresh: str
    key: str


class Unsubscribe(NamedTuple):
    """A client ends a subscription."""

    subscription: str


class Redrive(NamedTuple):
    """An operator redrives a dead letter."""

    letter: str


class Hook(NamedTuple):
    """A subscription that an adapter lists."""

    subscription: str
    endpoint: str


class Listed(NamedTuple):
    """The subscriptions that an adapter lists, or `None` if it did not answer."""

    network: str
    hooks: tuple[Hook, ...] | None


class Hooked(NamedTuple):
    """Whether an adapter accepted one form of subscription, or `None` if that is unknown."""

    network: str
    form: str
    accepted: bool | None


Due = DueRow
End = Answered | Noticed | Paged | Probed | Posted | Due | Listed | Hooked
Input = End | Start | Publish | Subscribe | Unsubscribe | Redrive


class Call(NamedTuple):
    """Publish on a network; not begun after `before` (ms by the store's clock)."""

    network: str
    id: str
    event: Event
    before: int


class Probe(NamedTuple):
    """Ask a network whether it has the id; `since` (seconds) bounds the search where only times can be asked for.

    `asked_at` is the store's time, ms: an answer to a probe from before what it would change is not taken in.
    """

    network: str
    id: str
    since: int
    asked_at: int
    entity: str = ""


class Post(NamedTuple):
    """Notify a subscriber; not begun after `before` (ms by the store's clock). `webhook` is the same each time."""

    subscription: str
    id: str
    endpoint: str
    secret: str | None
    webhook: str
    notice: Notice
    before: int


class Read(NamedTuple):
    """Read a network's log after a number; `since` (seconds) where a legacy adapter is read by time."""

    network: str
    after: int
    limit: int
    since: int


class List(NamedTuple):
    """Ask an adapter for its subscriptions."""

    network: str


class MakeHook(NamedTuple):
    """Subscribe on an adapter: to everything, in one of the forms of ID-32, or for one interest (ID-40)."""

    network: str
    form: str
    endpoint: str
    types: tuple[str, ...] | None = None
    metadata: tuple[str, ...] = ()


class DropHook(NamedTuple):
    """Remove a subscription of ours from an adapter."""

    network: str
    subscription: str


class Reply(NamedTuple):
    """The answer to the client whose input this was; `code` is an error's, empty where there is none."""

    code: str = ""
    value: str = ""
    new: bool = True


class Note(NamedTuple):
    """Something for logs and metrics, for example `conflict`, `quarantine`, `rewind` or `dead-letter`."""

    kind: str
    place: str
    id: str = ""
    detail: str = ""


Effect = Call | Probe | Post | Read | List | MakeHook | DropHook | Reply | Note
Effects = list[Effect]


def reply_of(effects: Effects) -> Reply:
    """The reply among effects."""
    return next(effect for effect in effects if isinstance(effect, Reply))


@dataclass(slots=True)
class Turn:
    """One step under way: the rules, the transaction, the store's clock in ms, and the effects so far."""

    rules: Rules
    tx: Transaction
    now: int
    effects: Effects = field(default_factory=list)

    def emit(self, effect: Effect) -> None:
        """Add an effect that is carried out after the writes are stored."""
        self.effects.append(effect)

    def note(self, kind: str, place: str, event_id: str = "", detail: str = "") -> None:
        """Add a note for logs and metrics."""
        self.effects.append(Note(kind, place, event_id, detail))
