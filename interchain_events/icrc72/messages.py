"""The records and variants of the services in `did/` as Python types.

The fields of a record are in the order of the `.did` file: the decoder makes these named tuples
from the values in that order.
"""

from typing import Final, Generic, Literal, NamedTuple, TypeVar

from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.values import Pairs, Property, Value

T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")


class GenericError(NamedTuple):
    """An error with a code of `keys.CODES`."""

    error_code: int
    message: str


NoDetail = Literal[
    "Unauthorized", "Busy", "NotFound", "PublicationNotFound", "SubscriptionNotFound"
]
"""The tags of errors without detail."""
Told = Literal[
    "ImproperConfig",
    "ImproperId",
    "GenericBatchError",
    "PaymentRequired",
    "RangeTooLarge",
    "CannotCancel",
]
"""The tags of errors with a text."""
Error = (
    Variant[NoDetail, None]
    | Variant[Told, str]
    | Variant[Literal["UnauthorizedPublisher", "UnauthorizedSubscriber"], tuple[str]]
    | Variant[Literal["GenericError"], GenericError]
)
"""The error for an item of a batch. Each method uses some of these."""

Ok = Variant[Literal["Ok"], T_co]
Err = Variant[Literal["Err"], Error]
Result = Ok[T_co] | Err
"""The answer to one item of a batch."""

Results = tuple[Result[T_co] | None, ...]
"""The answers to a batch; `None` for an item that was not processed."""

AllAccepted = Variant[Literal["allAccepted"], None]
Itemized = Variant[Literal["itemized"], Results[None]]
ConfirmResult = AllAccepted | Itemized
_Flat = (
    Variant[Literal["namespace"], str]
    | Variant[Literal["id", "publicationId", "subscriptionId"], int]
)
Identifier = _Flat | Variant[Literal["id"], _Flat]
"""A reference to a publication or subscription.

The draft of ICRC-72 also writes an id as a variant inside of `id`.
"""


def named(identifier: Identifier) -> str | int:
    """Return the namespace or the id in a reference."""
    inside = identifier.value
    return inside.value if isinstance(inside, Variant) else inside


def changes(config: tuple[str, Value] | Pairs) -> Pairs:
    """Return the keys and values that an update changes: a single pair, or those of a map."""
    return (config,) if config and isinstance(config[0], str) else config


Slice = (
    Variant[Literal["BySubscriber", "ByPublisher", "ByBroadcaster"], Principal]
    | Variant[Literal["ByNamespace"], str]
)
"""A condition of a query."""
Statistics = Variant[Literal["None", "All"], None] | Variant[Literal["List"], tuple[str, ...]]
"""The statistics that a query asks for."""
ReplayState = (
    Variant[Literal["pending", "running"], None]
    | Variant[Literal["completed", "canceled"], int]
    | Variant[Literal["errored"], str]
)
"""The state of a replay, with a number of events or the text of an error."""
_Named = Variant[Literal["None", "All"], None]
ALL: Final[_Named] = Variant("All", None)
NO_STATISTICS: Final[_Named] = Variant("None", None)


def by_namespace(name: str) -> Variant[Literal["ByNamespace"], str]:
    """Return the condition that a namespace matches a pattern."""
    return Variant("ByNamespace", name)


def by_subscriber(who: Principal) -> Variant[Literal["BySubscriber"], Principal]:
    """Return the condition that a subscriber is this principal."""
    return Variant("BySubscriber", who)


StateName = Literal["pending", "running", "completed", "canceled", "errored"]


def state_of(name: StateName, count: int, words: str) -> ReplayState:
    """Return the state of a replay with its number of events or the text of its error."""
    match name:
        case "completed" | "canceled":
            return Variant(name, count)
        case "pending" | "running":
            return Variant(name, None)
        case "errored":
            return Variant(name, words)


Valid = (
    Variant[Literal["list"], tuple[Principal, ...]]
    | Variant[Literal["icrc75"], tuple[Principal, str]]
)
"""The valid broadcasters, or a list canister and the list that contains them."""


class Event(NamedTuple):
    """An event in the form in which publishers and relays send it."""

    eventId: int  # noqa: N815 — the field's name in the standard
    prevEventId: int | None  # noqa: N815 — the field's name in the standard
    timestamp: int
    namespace: str
    data: Value
    source: Principal
    headers: Pairs | None


class EventNotification(NamedTuple):
    """An event in the form in which subscribers get it."""

    notificationId: int  # noqa: N815 — the field's name in the standard
    eventId: int  # noqa: N815 — the field's name in the standard
    prevEventId: int | None  # noqa: N815 — the field's name in the standard
    timestamp: int
    namespace: str
    data: Value
    headers: Pairs | None
    source: Principal
    filter: str | None


class PublicationRegistration(NamedTuple):
    """A request to register a publication or subscription."""

    namespace: str
    config: Pairs
    memo: bytes | None = None


SubscriptionRegistration = PublicationRegistration


class PublicationUpdate(NamedTuple):
    """A request to change keys of a publication's configuration."""

    publication: Identifier
    config: tuple[str, Value] | Pairs
    memo: bytes | None = None


class PublicationDelete(NamedTuple):
    """A request to delete a publication."""

    publication: Identifier
    memo: bytes | None = None


class SubscriptionUpdate(NamedTuple):
    """A request to change keys of a subscription's configuration."""

    subscription: Identifier
    config: tuple[str, Value] | Pairs
    subscriber: Principal | None = None
    memo: bytes | None = None


class SubscriptionDelete(NamedTuple):
    """A request to delete a subscription."""

    subscription: Identifier
    subscriber: Principal | None = None
    memo: bytes | None = None


class PublicationInfo(NamedTuple):
    """A publication in an answer."""

    namespace: str
    publicationId: int  # noqa: N815 — the field's name in the standard
    config: Pairs
    stats: Pairs


class PublisherInfo(NamedTuple):
    """A publisher in an answer."""

    publisher: Principal
    stats: Pairs


class SubscriptionInfo(NamedTuple):
    """A subscription in an answer."""

    subscriptionId: int  # noqa: N815 — the field's name in the standard
    namespace: str
    config: Pairs
    stats: Pairs


class SubscriberInfo(NamedTuple):
    """A subscriber in an answer."""

    subscriber: Principal
    stats: Pairs


class BroadcasterInfo(NamedTuple):
    """A broadcaster in an answer."""

    broadcaster: Principal
    stats: Pairs


class OrchestrationFilter(NamedTuple):
    """The conditions of a query, and the statistics that it asks for."""

    statistics: Statistics
    slice: tuple[Slice, ...] = ()


class Page(NamedTuple, Generic[K]):
    """A request for a page of entries: those after `prev`, at most `take`."""

    prev: K | None = None
    take: int | None = None
    filter: OrchestrationFilter | None = None


ByPrincipal = Page[Principal]
ByText = Page[str]
ByNat = Page[int]


class ReplayRegistration(NamedTuple):
    """A request for a replay.

    The range has the first id and the id after the last one; `None` leaves the end open.
    """

    namespace: str
    range: tuple[int, int | None]
    config: Pairs
    memo: bytes | None = None


class ReplayStatus(NamedTuple):
    """A replay in an answer."""

    replayId: int  # noqa: N815 — the field's name in the standard
    namespace: str
    config: Pairs
    stats: Pairs
    range: tuple[int, int | None]
    status: ReplayState


class ReplayStatusUpdate(NamedTuple):
    """A publisher's report on a replay."""

    replayId: int  # noqa: N815 — the field's name in the standard
    status: ReplayState


class ArchivePart(NamedTuple):
    """Events of one block of a log, which a publisher hands over to its archive."""

    number: int
    """The number of the block, counted from 1."""
    round: int
    parent: bytes
    """The hash of the block before it."""
    hash: bytes
    offset: int
    """The position of the first of these events in the block."""
    total: int
    """The number of events in the block."""
    events: tuple[Event, ...]


class Blocks(NamedTuple):
    """An answer of `icrc3_get_blocks`."""

    length: int
    """How many blocks the log has."""
    blocks: tuple[tuple[int, Value], ...]
    """Indices and blocks."""
    archived: tuple[object, ...]
    """What is in further archives. Only whether there is something is read."""


class FurtherArchive(NamedTuple):
    """A further archive of an ICRC-3 log."""

    canister: Principal
    start: int
    """The index of its first block."""
    end: int
    """The index of its last block."""


class Account(NamedTuple):
    """An account on a ledger."""

    owner: Principal
    subaccount: bytes | None = None


class TransferFromArgs(NamedTuple):
    """A transfer from the account of a payer that has approved it (ICRC-2)."""

    spender_subaccount: bytes | None
    source: Account
    to: Account
    amount: int
    fee: int | None = None
    memo: bytes | None = None
    created_at_time: int | None = None


class TransferArg(NamedTuple):
    """A transfer from the caller's own account (ICRC-1)."""

    from_subaccount: bytes | None
    to: Account
    amount: int
    fee: int | None = None
    memo: bytes | None = None
    created_at_time: int | None = None


RECORDS: dict[str, type[tuple[object, ...]]] = {
    "ICRC16Property": Property,
    **dict.fromkeys(("ByPrincipal", "ByText", "ByNat"), Page),
    **{
        name: each
        for name, each in globals().items()
        if isinstance(each, type) and issubclass(each, tuple)
    },
}
"""The Python classes of records by the name of the type in the `.did` files."""
