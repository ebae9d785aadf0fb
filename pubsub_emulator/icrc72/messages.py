"""The records of the services in `did/`, as Python has them: fields in the order of the interface description."""

from typing import Final, Generic, Literal, NamedTuple, TypeVar

from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.values import Pairs, Property, Value

T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")


class GenericError(NamedTuple):
    """An error with a code of `keys.md`."""

    error_code: int
    message: str


NoDetail = Literal["Unauthorized", "Busy", "NotFound", "PublicationNotFound", "SubscriptionNotFound"]
Told = Literal["ImproperConfig", "ImproperId", "GenericBatchError", "PaymentRequired", "RangeTooLarge", "CannotCancel"]
Error = (
    Variant[NoDetail, None]
    | Variant[Told, str]
    | Variant[Literal["UnauthorizedPublisher", "UnauthorizedSubscriber"], tuple[str]]
    | Variant[Literal["GenericError"], GenericError]
)
"""Why an item of a batch was refused; each method has some of these."""

Ok = Variant[Literal["Ok"], T_co]
Err = Variant[Literal["Err"], Error]
Result = Ok[T_co] | Err  # the answer to one item of a batch

Results = tuple[Result[T_co] | None, ...]  # the answers to a batch; `None` for an item that was not processed

AllAccepted = Variant[Literal["allAccepted"], None]
Itemized = Variant[Literal["itemized"], Results[None]]
ConfirmResult = AllAccepted | Itemized
_Flat = Variant[Literal["namespace"], str] | Variant[Literal["id", "publicationId", "subscriptionId"], int]
Identifier = _Flat | Variant[Literal["id"], _Flat]
"""Which publication or subscription is meant; the draft also writes an id as a variant inside `id`."""


def named(identifier: Identifier) -> str | int:
    """The namespace, or the id."""
    inside = identifier.value
    return inside.value if isinstance(inside, Variant) else inside


def changes(config: tuple[str, Value] | Pairs) -> Pairs:
    """The keys that an update changes: one, or those of a map."""
    return (config,) if config and isinstance(config[0], str) else config


Slice = (
    Variant[Literal["BySubscriber", "ByPublisher", "ByBroadcaster"], Principal] | Variant[Literal["ByNamespace"], str]
)
Statistics = Variant[Literal["None", "All"], None] | Variant[Literal["List"], tuple[str, ...]]
ReplayState = (
    Variant[Literal["pending", "running"], None]
    | Variant[Literal["completed", "canceled"], int]
    | Variant[Literal["errored"], str]
)
_Named = Variant[Literal["None", "All"], None]
ALL: Final[_Named] = Variant("All", None)
NO_STATISTICS: Final[_Named] = Variant("None", None)


def by_namespace(name: str) -> Variant[Literal["ByNamespace"], str]:
    """The slice of a namespace or pattern."""
    return Variant("ByNamespace", name)


def by_subscriber(who: Principal) -> Variant[Literal["BySubscriber"], Principal]:
    """The slice of a subscriber."""
    return Variant("BySubscriber", who)


StateName = Literal["pending", "running", "completed", "canceled", "errored"]


def state_of(name: StateName, count: int, words: str) -> ReplayState:
    """The state of a replay by its name, with its count or its error."""
    match name:
        case "completed" | "canceled":
            return Variant(name, count)
        case "pending" | "running":
            return Variant(name, None)
        case "errored":
            return Variant(name, words)


Valid = Variant[Literal["list"], tuple[Principal, ...]] | Variant[Literal["icrc75"], tuple[Principal, str]]
"""The valid broadcasters, or the list canister and its list that says who is one."""


class Event(NamedTuple):
    """An event as its publisher made it."""

    eventId: int  # noqa: N815 — the field's name in the standard
    prevEventId: int | None  # noqa: N815 — the field's name in the standard
    timestamp: int
    namespace: str
    data: Value
    source: Principal
    headers: Pairs | None


class EventNotification(NamedTuple):
    """An event as a subscriber gets it."""

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
    """A publication or subscription to be registered."""

    namespace: str
    config: Pairs
    memo: bytes | None = None


SubscriptionRegistration = PublicationRegistration


class PublicationUpdate(NamedTuple):
    """One key of a publication's configuration."""

    publication: Identifier
    config: tuple[str, Value] | Pairs
    memo: bytes | None = None


class PublicationDelete(NamedTuple):
    """A publication to be deleted."""

    publication: Identifier
    memo: bytes | None = None


class SubscriptionUpdate(NamedTuple):
    """One key of a subscription's configuration."""

    subscription: Identifier
    config: tuple[str, Value] | Pairs
    subscriber: Principal | None = None
    memo: bytes | None = None


class SubscriptionDelete(NamedTuple):
    """A subscription to be deleted."""

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
    """Which entries, with which statistics."""

    statistics: Statistics
    slice: tuple[Slice, ...] = ()


class Page(NamedTuple, Generic[K]):
    """A page of entries: those after `prev`, at most `take`."""

    prev: K | None = None
    take: int | None = None
    filter: OrchestrationFilter | None = None


ByPrincipal = Page[Principal]
ByText = Page[str]
ByNat = Page[int]


class ReplayRegistration(NamedTuple):
    """A replay that is asked for: the range is [from, to)."""

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
    """A publisher's report."""

    replayId: int  # noqa: N815 — the field's name in the standard
    status: ReplayState


class ArchivePart(NamedTuple):
    """Events of one block, as a publisher hands them over to its archive."""

    number: int
    round: int
    parent: bytes
    hash: bytes
    offset: int
    total: int
    events: tuple[Event, ...]


class Account(NamedTuple):
    """An account on a ledger."""

    owner: Principal
    subaccount: bytes | None = None


class TransferFromArgs(NamedTuple):
    """A transfer that the payer has allowed."""

    spender_subaccount: bytes | None
    source: Account
    to: Account
    amount: int
    fee: int | None = None
    memo: bytes | None = None
    created_at_time: int | None = None


class TransferArg(NamedTuple):
    """A transfer of one's own."""

    from_subaccount: bytes | None
    to: Account
    amount: int
    fee: int | None = None
    memo: bytes | None = None
    created_at_time: int | None = None


RECORDS: dict[str, type[tuple[object, ...]]] = {
    "ICRC16Property": Property,
    **dict.fromkeys(("ByPrincipal", "ByText", "ByNat"), Page),
    **{name: each for name, each in globals().items() if isinstance(each, type) and issubclass(each, tuple)},
}
"""The Python class of each named record."""
