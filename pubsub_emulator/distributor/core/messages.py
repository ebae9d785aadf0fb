"""Inputs and effects of the state machine.

An input is the end of something (an answer, a page, a time that has come) or a wish of a client. An effect is a call
that the shell makes after the step's writes were stored; what became of it returns as an input.
"""

from dataclasses import dataclass
from typing import NamedTuple

from pubsub_emulator.distributor.event import Event, Notice


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


@dataclass(frozen=True, slots=True)
class Start:
    """A process starts. `keys` has a fresh random text for each network and is used where there is none yet."""

    keys: dict[str, str]


@dataclass(frozen=True, slots=True)
class Publish:
    """A client publishes (ID-30)."""

    id: str
    event: Event


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of an adapter to `Call`."""

    network: str
    id: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Noticed:
    """A notification came in (ID-31), for one interest if `subscription` is given (ID-40)."""

    network: str
    key: str
    notice: Notice
    subscription: str | None = None


@dataclass(frozen=True, slots=True)
class Paged:
    """The result of `Read`: notices by number; `complete` where the log has no more now. `None`: it failed.

    `until` is the second up to which a legacy log was read.
    """

    network: str
    after: int
    notices: tuple[Notice, ...] | None
    complete: bool = True
    until: int = 0


@dataclass(frozen=True, slots=True)
class Probed:
    """Whether the network has the id; `None`: it could not be told. `asked` is the probe's.

    `hidden`: it is not shown and would not be, as a legacy adapter shows the newest event of an entity and has another.
    """

    network: str
    id: str
    there: bool | None
    asked: int
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Posted:
    """The status of a `Post`; `None`: no answer."""

    subscription: str
    id: str
    status: int | None


@dataclass(frozen=True, slots=True)
class Due:
    """A row is due."""

    table: str
    key: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A client subscribes. `fresh` and `key` are random texts."""

    types: tuple[str, ...]
    metadata: tuple[str, ...]
    endpoint: str
    secret: str | None
    fresh: str
    key: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A client ends a subscription."""

    subscription: str


@dataclass(frozen=True, slots=True)
class Redrive:
    """An operator redrives a dead letter."""

    letter: str


class Hook(NamedTuple):
    """A subscription that an adapter lists."""

    subscription: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class Listed:
    """The subscriptions that an adapter lists, or `None` if it did not answer."""

    network: str
    hooks: tuple[Hook, ...] | None


@dataclass(frozen=True, slots=True)
class Hooked:
    """Whether an adapter accepted one form of subscription to everything, or `None` if that is unknown."""

    network: str
    form: str
    accepted: bool | None


Input = (
    Start
    | Publish
    | Answered
    | Noticed
    | Paged
    | Probed
    | Posted
    | Due
    | Subscribe
    | Unsubscribe
    | Redrive
    | Listed
    | Hooked
)


@dataclass(frozen=True, slots=True)
class Call:
    """Publish on a network; not begun after `before` (ms by the store's clock)."""

    network: str
    id: str
    event: Event
    before: int


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask a network whether it has the id; `since` (seconds) bounds the search where only times can be asked for.

    `asked` is the store's time, ms: an answer to a probe from before what it would change is not taken in.
    """

    network: str
    id: str
    since: int
    asked: int
    entity: str = ""


@dataclass(frozen=True, slots=True)
class Post:
    """Notify a subscriber; not begun after `before` (ms by the store's clock). `webhook` is the same each time."""

    subscription: str
    id: str
    endpoint: str
    secret: str | None
    webhook: str
    notice: Notice
    before: int


@dataclass(frozen=True, slots=True)
class Read:
    """Read a network's log after a number; `since` (seconds) where a legacy adapter is read by time."""

    network: str
    after: int
    limit: int
    since: int


@dataclass(frozen=True, slots=True)
class List:
    """Ask an adapter for its subscriptions."""

    network: str


@dataclass(frozen=True, slots=True)
class MakeHook:
    """Subscribe to everything on an adapter, in one of the forms of ID-32."""

    network: str
    form: str
    key: str


@dataclass(frozen=True, slots=True)
class MakeInterest:
    """Subscribe on an adapter for one interest (ID-40)."""

    network: str
    subscription: str
    key: str
    types: tuple[str, ...]
    metadata: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropHook:
    """Remove a subscription of ours from an adapter."""

    network: str
    subscription: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to the client whose input this was; `code` is an error's, empty where there is none."""

    code: str = ""
    value: str = ""
    new: bool = True


@dataclass(frozen=True, slots=True)
class Note:
    """Something for logs and metrics, for example `conflict`, `quarantine`, `rewind` or `dead-letter`."""

    kind: str
    place: str
    id: str = ""
    detail: str = ""


Effect = Call | Probe | Post | Read | List | MakeHook | MakeInterest | DropHook | Reply | Note
Effects = list[Effect]
