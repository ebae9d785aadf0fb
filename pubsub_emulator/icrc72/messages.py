"""The records of the services in `did/`, as Python has them: fields in the order of the interface description."""

from typing import NamedTuple

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72.values import Pairs, Property


class GenericError(NamedTuple):
    """An error with a code of `keys.md`."""

    error_code: int
    message: str


class Event(NamedTuple):
    """What a publisher made."""

    eventId: int  # noqa: N815 — the field's name in the standard
    prevEventId: int | None  # noqa: N815 — the field's name in the standard
    timestamp: int
    namespace: str
    data: Variant
    source: Principal
    headers: Pairs | None


class EventNotification(NamedTuple):
    """What a subscriber gets."""

    notificationId: int  # noqa: N815 — the field's name in the standard
    eventId: int  # noqa: N815 — the field's name in the standard
    prevEventId: int | None  # noqa: N815 — the field's name in the standard
    timestamp: int
    namespace: str
    data: Variant
    headers: Pairs | None
    source: Principal
    filter: str | None


class PublicationRegistration(NamedTuple):
    """A publication to be registered."""

    namespace: str
    config: Pairs
    memo: bytes | None = None


class PublicationUpdate(NamedTuple):
    """One key of a publication's configuration."""

    publication: Variant
    config: tuple[str, Variant]
    memo: bytes | None = None


class PublicationDelete(NamedTuple):
    """A publication to be deleted."""

    publication: Variant
    memo: bytes | None = None


class SubscriptionRegistration(NamedTuple):
    """A subscription to be registered."""

    namespace: str
    config: Pairs
    memo: bytes | None = None


class SubscriptionUpdate(NamedTuple):
    """One key of a subscription's configuration."""

    subscription: Variant
    config: tuple[str, Variant]
    subscriber: Principal | None = None
    memo: bytes | None = None


class SubscriptionDelete(NamedTuple):
    """A subscription to be deleted."""

    subscription: Variant
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

    statistics: Variant
    slice: tuple[Variant, ...] = ()


class ByPrincipal(NamedTuple):
    """A page of entries by principal."""

    prev: Principal | None = None
    take: int | None = None
    filter: OrchestrationFilter | None = None


class ByText(NamedTuple):
    """A page of entries by text."""

    prev: str | None = None
    take: int | None = None
    filter: OrchestrationFilter | None = None


class ByNat(NamedTuple):
    """A page of entries by number."""

    prev: int | None = None
    take: int | None = None
    filter: OrchestrationFilter | None = None


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
    status: Variant


class ReplayStatusUpdate(NamedTuple):
    """A publisher's report."""

    replayId: int  # noqa: N815 — the field's name in the standard
    status: Variant


class Account(NamedTuple):
    """An account on a ledger."""

    owner: Principal
    subaccount: bytes | None = None


class ApproveArgs(NamedTuple):
    """What a payer allows somebody to take."""

    from_subaccount: bytes | None
    spender: Account
    amount: int
    expected_allowance: int | None = None
    expires_at: int | None = None
    fee: int | None = None
    memo: bytes | None = None
    created_at_time: int | None = None


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


RECORDS = {
    "ICRC16Property": Property,
    **{
        each.__name__: each
        for each in (
            GenericError,
            Event,
            EventNotification,
            PublicationRegistration,
            PublicationUpdate,
            PublicationDelete,
            SubscriptionRegistration,
            SubscriptionUpdate,
            SubscriptionDelete,
            PublicationInfo,
            PublisherInfo,
            SubscriptionInfo,
            SubscriberInfo,
            BroadcasterInfo,
            OrchestrationFilter,
            ByPrincipal,
            ByText,
            ByNat,
            ReplayRegistration,
            ReplayStatus,
            ReplayStatusUpdate,
            Account,
            ApproveArgs,
            TransferFromArgs,
            TransferArg,
        )
    },
}
"""The Python class of each named record."""
