"""The state of a publisher: log, publications, replays."""

from dataclasses import field

from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.stable import record, stable
from pubsub_emulator.icrc72.messages import Event, StateName
from pubsub_emulator.icrc72.values import Pairs, Value

stable(Event)


@record
class Logged:
    """A row of the publisher's log: the event, the hash of its data, the round in which it was made."""

    event: Event
    hash: bytes
    round: int
    index: int
    size: int  # bytes of Candid
    archived: bool = False  # data and headers are in the archive; the event here is without them
    refused: str = ""  # why no broadcaster takes the event


@record
class LogBlock:
    """All events of one round, appended whole in a later round (EV-2)."""

    round: int
    first: int
    count: int
    hash: bytes


@record
class Sender:
    """Events of one namespace and partition on their way to its entry."""

    entry: Principal | None = None
    next: int = 0  # which of its events goes next
    tries: int = 0
    wait: int = 0
    busy: int = 0  # the number of the batch under way; 0 when none is
    events: list[int] = field(default_factory=list)  # rows of the log, in order


@record
class Mine:
    """A publication as its publisher knows it."""

    namespace: str
    config: Pairs
    id: int | None = None
    creator: Principal | None = None
    mode: str = "fifo"
    partitions: int = 1
    last: int = 0  # the id of the last event
    lasts: dict[int, int | None] = field(default_factory=dict)  # of each partition the last id
    senders: dict[int, Sender] = field(default_factory=dict)
    entries: tuple[Principal, ...] = ()
    waiting: list[tuple[Value, Pairs, int | None, int, int]] = field(default_factory=list)
    """Events made before ids could be given: data, headers, a number of one's own, time, round."""
    error: str = ""


@record
class Replaying:
    """A replay that this publisher works on."""

    namespace: str
    start: int
    end: int | None
    entry: Principal
    place: int = 0  # the id behind the last that the entry took
    last: int | None = None  # the id of the last event that it will send; -1 when there is none
    busy: bool = False
    tries: int = 0
    wait: int = 0
    state: StateName = "running"
    text: str = ""
    count: int = 0
    reported: str = ""
    report: int = 0
    reporting: bool = False
    since: int = 0
    page: dict[int, Event] = field(default_factory=dict)  # events that the archive has handed over


@record
class PublisherState:
    """The whole state of a publisher."""

    mine: dict[str, Mine] = field(default_factory=dict)
    log: list[Logged] = field(default_factory=list)
    blocks: list[LogBlock] = field(default_factory=list)
    replays: dict[int, Replaying] = field(default_factory=dict)
    canceled: dict[int, int] = field(default_factory=dict)
    batches: int = 0
    errors: list[tuple[int, int, str]] = field(default_factory=list)
    refused: list[tuple[str, int, str]] = field(default_factory=list)  # namespace, id and why
    archived: int = 0  # how many blocks the archive has
    archived_events: int = 0  # how many events of the next block it has
    archive_wait: int = 0

    def appended(self) -> int:
        """The number of rows of the log that are in blocks."""
        return self.blocks[-1].first + self.blocks[-1].count if self.blocks else 0
