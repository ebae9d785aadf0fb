"""The inputs and effects of the state machine, and the context of one step.

An input is a result (an answer, a page, a row that has become due) or a request of a client. An
effect is a call that the shell (the service or the simulation) makes after the writes of the step
have been stored. The result of an effect returns to the state machine as an input.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once import DueRow, Transaction


class Yes(NamedTuple):
    """An answer of an adapter: the event is on the network.

    The adapter has just published it, or the network had it before.
    """

    time: int
    """The time of the event's block in seconds, 0 if the adapter does not report it."""


class No(NamedTuple):
    """An answer of an adapter: the event is refused, and a repeated call would be refused again."""

    reason: str


class Unknown(NamedTuple):
    """An answer of an adapter that is unclear: the call may or may not have been carried out."""

    reason: str


Answer = Yes | No | Unknown
"""The outcome of a `CallNetwork`."""


class Start(NamedTuple):
    """A process of the distributor starts."""

    keys: dict[str, str]
    """A fresh random text for each network. It becomes the key of the network's webhook unless the
    store has one already."""


class Publish(NamedTuple):
    """A client publishes an event (ID-30)."""

    id: str
    """The global id of the event."""
    event: Event


class Answered(NamedTuple):
    """The answer of an adapter to a `CallNetwork`."""

    network: str
    id: str
    answer: Answer


class Noticed(NamedTuple):
    """A notification from an adapter (ID-31)."""

    network: str
    key: str
    """The key in the webhook's URL, by which the adapter proves that it knows the subscription."""
    notice: Notice
    subscription: str | None = None
    """The client's subscription for which the adapter notifies (ID-40), `None` if it notifies of
    everything."""


class LogPage(NamedTuple):
    """A part of a network's log."""

    notices: tuple[Notice, ...]
    """Notices in ascending order of their numbers."""
    complete: bool
    """Whether the page reaches the end of the log as it is now."""
    until: int = 0
    """The second up to which a legacy log was read, if the page is not complete."""


class Paged(NamedTuple):
    """The result of a `ReadLog`."""

    network: str
    after: int
    """The number after which the page was requested. It identifies the `ReadLog` that is
    answered."""
    page: LogPage | None
    """`None` if the read failed."""


class Probed(NamedTuple):
    """The result of a `ProbeNetwork`."""

    network: str
    id: str
    there: bool | None
    """Whether the network has the id, `None` if the adapter could not tell."""
    asked_at: int
    """The `asked_at` of the probe."""
    hidden: bool = False
    """Whether the event may be on the network although no probe can ever show it.

    A legacy adapter shows only the newest event of each entity and second. `hidden` is true if it
    shows another event of this entity in a second in which the event may have been published.
    """
    last: int = 0
    """The second of the last event that a legacy adapter shows, 0 if it shows none."""


class Posted(NamedTuple):
    """The result of a `Post`."""

    subscription: str
    id: str
    status: int | None
    """The HTTP status, `None` without an answer."""
    cause: str = ""
    """Why there is no answer, empty if there is one."""
    retry_after: int = 0
    """The ms that the subscriber asks to wait, 0 if it does not say."""


class Subscribe(NamedTuple):
    """A client subscribes (ID-40)."""

    types: tuple[str, ...]
    metadata: tuple[str, ...]
    """A matching event has at least one of these values. An empty tuple matches every event."""
    endpoint: str
    secret: str | None
    """The secret with which notifications are signed (ID-42), `None` to send them unsigned."""
    fresh: str
    """A random text. It becomes the subscription's name if the subscription is new."""
    key: str
    """A random text. It becomes the key of the subscription's webhooks if the subscription is
    new."""


class Unsubscribe(NamedTuple):
    """A client ends a subscription."""

    subscription: str


class Redrive(NamedTuple):
    """An operator asks to try a dead letter again."""

    letter: str
    """The name of the dead letter, see `rows.letter_of`."""


class Hook(NamedTuple):
    """A subscription that an adapter lists."""

    subscription: str
    """The adapter's name for it, empty if the adapter does not give one."""
    endpoint: str


class Listed(NamedTuple):
    """The result of a `ListHooks`."""

    network: str
    hooks: tuple[Hook, ...] | None
    """All subscriptions that the adapter has, `None` if it did not answer."""


class Hooked(NamedTuple):
    """The result of a `MakeHook`."""

    network: str
    form: str
    """The `form` of the `MakeHook`."""
    accepted: bool | None
    """Whether the adapter accepted the subscription, `None` if that is unclear."""


Due = DueRow
"""A row of the store that has become due."""
End = Answered | Noticed | Paged | Probed | Posted | Due | Listed | Hooked
"""Inputs that do not come from a client or operator."""
Input = End | Start | Publish | Subscribe | Unsubscribe | Redrive
"""Everything that `step` accepts."""


class CallNetwork(NamedTuple):
    """Publish an event on a network."""

    network: str
    id: str
    event: Event
    before: int
    """The time of the store's clock, in ms, after which the call must not begin.

    A call begins only in the first half of its claim's lease. So it has timed out when the lease
    ends, which is when another process may make the call.
    """


class ProbeNetwork(NamedTuple):
    """Ask a network whether it has an id."""

    network: str
    id: str
    since: int
    """The second from which to search. Only legacy adapters, which are asked by time, use it."""
    asked_at: int
    """The time of the store's clock, in ms, at which the probe was emitted. If the state has
    changed since then, the result is ignored."""
    entity: str = ""
    """The entity of the event (`Event.order`), empty if the event is not stored."""
    time: int = 0
    """The second of the event's block according to the adapter that accepted it, 0 if unknown."""


class Post(NamedTuple):
    """Notify a subscriber of an event."""

    subscription: str
    id: str
    endpoint: str
    secret: str | None
    webhook: str
    """The value of the header `webhook-id`. It is the same for each repetition, so that the
    subscriber can recognize them."""
    notice: Notice
    before: int
    """The time of the store's clock, in ms, after which the POST must not begin."""


class ReadLog(NamedTuple):
    """Read a part of a network's log."""

    network: str
    after: int
    """The number after which to begin."""
    limit: int
    """The greatest number of notices."""
    since: int
    """The second from which to read. Only legacy adapters, which are read by time, use it."""


class ListHooks(NamedTuple):
    """Ask an adapter for its subscriptions."""

    network: str


class MakeHook(NamedTuple):
    """Subscribe on an adapter."""

    network: str
    form: str
    """One of `rules.FORMS` for a subscription to everything (ID-32), or `interest:` and the name of
    a client's subscription (ID-40)."""
    endpoint: str
    types: tuple[str, ...] | None = None
    """Event types, `None` for everything. For a subscription to everything, the shell fills in
    types and metadata according to `form`."""
    metadata: tuple[str, ...] = ()


class DropHook(NamedTuple):
    """Remove one of the distributor's own subscriptions from an adapter."""

    network: str
    subscription: str


class Reply(NamedTuple):
    """The answer to the client whose request was the input."""

    code: str = ""
    """The code of an error, empty on success."""
    value: str = ""
    """The id or name that the client gets, or an explanation of the error."""
    new: bool = True
    """Whether the request changed something: the event was missing on a network, or the
    subscription did not exist."""


class Note(NamedTuple):
    """Something for logs and metrics."""

    kind: str
    """For example `conflict`, `quarantine`, `rewind` or `dead-letter`."""
    place: str
    """The network, target or subscription that the note is about."""
    id: str = ""
    detail: str = ""


Effect = (
    CallNetwork | ProbeNetwork | Post | ReadLog | ListHooks | MakeHook | DropHook | Reply | Note
)
Effects = list[Effect]


def reply_of(effects: Effects) -> Reply:
    """Return the reply among the effects of a client's request or of a notification.

    Such a step always emits one. Raises `StopIteration` for the effects of other inputs.
    """
    return next(effect for effect in effects if isinstance(effect, Reply))


@dataclass(slots=True)
class Turn:
    """The context of one step.

    The functions of `core` read the state from `tx`, write to it, and collect effects here.
    """

    rules: Rules
    tx: Transaction
    now: int
    """The store's clock in ms. It does not change during the step."""
    effects: Effects = field(default_factory=list)

    def emit(self, effect: Effect) -> None:
        """Add an effect, which is carried out after the writes have been stored."""
        self.effects.append(effect)

    def note(self, kind: str, place: str, event_id: str = "", detail: str = "") -> None:
        """Add a note for logs and metrics."""
        self.effects.append(Note(kind, place, event_id, detail))
