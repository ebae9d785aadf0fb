"""The state of a publisher: log, publications and replays. It is saved in upgrades."""

from dataclasses import field

from interchain_events.icrc72.facts import Trouble
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import record, stable
from interchain_events.icrc72.messages import Event, StateName
from interchain_events.icrc72.values import Pairs, Value

stable(Event)


@record
class Logged:
    """A row of the publisher's log."""

    event: Event
    hash: bytes
    """The hash of the event's data."""
    round: int
    """The round in which the event was made."""
    index: int
    """Its position among the events of this round."""
    size: int
    """The bytes of the event in Candid."""
    archived: bool = False
    """Whether data and headers are in the archive, so that the event here lacks them."""
    refused: str = ""
    """The reason for which no broadcaster accepts the event, if it was given up."""


@record
class LogBlock:
    """All events of one round, which are appended together in a later round (EV-2)."""

    round: int
    first: int
    """Its first row of the log."""
    count: int
    """How many rows it has."""
    hash: bytes


@record
class Sender:
    """The events of one namespace and partition, which go to one entry in order."""

    entry: Principal | None = None
    next: int = 0
    """The position in `events` of the next one to send."""
    tries: int = 0
    """How many times sending has failed since the last success."""
    wait: int = 0
    """The round before which nothing is sent."""
    busy: int = 0
    """The number of the batch under way, or 0."""
    events: list[int] = field(default_factory=list)
    """Rows of the log."""


@record
class Mine:
    """A publication, from its publisher's point of view."""

    namespace: str
    config: Pairs
    id: int | None = None
    """The id that the orchestrator gave; `None` until it is registered."""
    creator: Principal | None = None
    """The creator; `None` until the configuration is known."""
    mode: str = "fifo"
    partitions: int = 1
    last: int = 0
    """The id of the last event."""
    lasts: dict[int, int | None] = field(default_factory=dict)
    """The id of the last event of each partition."""
    senders: dict[int, Sender] = field(default_factory=dict)
    """The sender of each partition."""
    entries: tuple[Principal, ...] = ()
    """The assigned broadcasters, by partition."""
    waiting: list[tuple[Value, Pairs, int | None, int, int]] = field(default_factory=list)
    """Events that have no ids yet, because `creator` is unknown: data, headers, chosen id, time
    (ns) and round of each."""
    error: str = ""
    """The error with which the registration was refused."""


@record
class Replaying:
    """A replay on which this publisher works."""

    namespace: str
    start: int
    end: int | None
    """The id after the last one of the range; `None` if it is open."""
    entry: Principal
    place: int = 0
    """The id after the last one that the entry accepted."""
    last: int | None = None
    """The id of the last event to send; -1 if there are none, `None` until it is chosen."""
    busy: bool = False
    """Whether a call with a batch, or for a page of the archive, is under way."""
    tries: int = 0
    """How many times sending has failed since the last success."""
    wait: int = 0
    """The round before which nothing is sent."""
    state: StateName = "running"
    text: str = ""
    """The error, if the state is `errored`."""
    count: int = 0
    """How many events the entry has accepted."""
    reported: str = ""
    """The state that was last reported; empty before the first report."""
    report: int = 0
    """The round of the next report."""
    reporting: bool = False
    """Whether a report is under way."""
    since: int = 0
    """The round in which the entry last accepted an event."""
    page: dict[int, Event] = field(default_factory=dict)
    """The events of the last page from the archive, by id."""


@record
class PublisherState:
    """The whole state of a publisher."""

    mine: dict[str, Mine] = field(default_factory=dict)
    """Its publications by namespace."""
    log: list[Logged] = field(default_factory=list)
    blocks: list[LogBlock] = field(default_factory=list)
    """The blocks of the log. The newest rows may not be in a block yet."""
    replays: dict[int, Replaying] = field(default_factory=dict)
    canceled: dict[int, int] = field(default_factory=dict)
    """For each canceled replay, how many events were sent; this must be reported once."""
    batches: int = 0
    """The number of the last batch that was sent."""
    errors: list[Trouble] = field(default_factory=list)
    """The last errors from the orchestrator."""
    refused: list[tuple[str, int, str]] = field(default_factory=list)
    """The last events that were given up: namespace, id and reason."""
    archived: int = 0
    """How many blocks the archive has."""
    archived_events: int = 0
    """How many events of the next block the archive has."""
    archive_wait: int = 0
    """The round before which the archive is not called."""

    def appended(self) -> int:
        """Return how many rows of the log are in blocks."""
        return self.blocks[-1].first + self.blocks[-1].count if self.blocks else 0
