"""The typed methods of the standards, and helpers for the results of batches.

Roles call and answer methods through these objects, so a type checker knows the argument and the
result of each.
"""

from functools import cached_property
from typing import Final, Generic, Literal, TypeVar, cast

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.services import Codec, codec
from interchain_events.icrc72.values import Pairs, Value

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


class Method(Generic[A, R]):
    """A method with the types of its only argument and result, which are `None` if it has none.

    `proven` says that its arguments have only values that were read from messages before, apart
    from a few that are not nested (see `Codec.message`).
    """

    def __init__(self, name: str, *, proven: bool = False) -> None:
        self.name = name
        self._proven = proven

    @cached_property
    def _args(self) -> Codec:
        return codec(self.name).args

    @cached_property
    def _rets(self) -> Codec:
        return codec(self.name).rets

    def argument(self, value: A, *, proven: bool = False) -> bytes:
        """Encode the argument of a call.

        `proven` says the same of this argument that the class says of all arguments of a method.
        """
        args = self._args
        if not args.types:
            return args.message()
        return args.message(value, proven=proven or self._proven)

    def value(self, data: bytes) -> A:
        """Decode the argument of a call. Raises `CandidError`."""
        values = self._args.values(data)
        return cast("A", values[0] if values else None)

    def result(self, data: bytes) -> R:
        """Decode the result in an answer. Raises `CandidError`."""
        values = self._rets.values(data)
        return cast("R", values[0] if values else None)

    def answer(self, result: R) -> bytes:
        """Encode the result of a call."""
        rets = self._rets
        return rets.message(result) if rets.types else rets.message()

    def reply(self, ctx: Context, result: R) -> None:
        """Answer the call that is being served with a result."""
        ctx.reply(self.answer(result))


_Batch = Method[tuple[A, ...], m.Results[R]]
Trusted = Variant[Literal["Ok"], Value] | Variant[Literal["err", "Err"], str]
"""The answer of a subscriber to trusted notifications. ICRC-72 writes `err` in lower case."""
Transferred = Variant[Literal["Ok"], int] | Variant[Literal["Err"], Variant[str, object]]
"""The answer of a ledger to a transfer: the index of its block, or an error."""
Member = tuple[Variant[Literal["Identity"], Principal], tuple[tuple[str, ...], ...]]
"""A question to a list canister: an identity and lists; one of the inner tuples has to hold."""


def member(who: Principal, name: str) -> Member:
    """Return the question whether a list contains a principal."""
    return Variant("Identity", who), ((name,),)


REGISTER_PUBLICATION: Final = _Batch[m.PublicationRegistration, int]("icrc72_register_publication")
REGISTER_SUBSCRIPTION: Final = _Batch[m.SubscriptionRegistration, int](
    "icrc72_register_subscription"
)
UPDATE_PUBLICATION: Final = _Batch[m.PublicationUpdate, bool]("icrc72_update_publication")
UPDATE_SUBSCRIPTION: Final = _Batch[m.SubscriptionUpdate, bool]("icrc72_update_subscription")
DELETE_PUBLICATION: Final = _Batch[m.PublicationDelete, bool]("icrc72_delete_publication")
DELETE_SUBSCRIPTION: Final = _Batch[m.SubscriptionDelete, bool]("icrc72_delete_subscription")
GET_VALID: Final = Method[None, m.Valid]("icrc72_get_valid_broadcasters")
GET_VALID_ONE: Final = Method[None, m.Valid]("icrc72_get_valid_broadcaster")
GET_PUBLICATIONS: Final = Method[m.ByText, tuple[m.PublicationInfo, ...]]("icrc72_get_publications")
GET_SUBSCRIPTIONS: Final = Method[m.ByNat, tuple[m.SubscriptionInfo, ...]](
    "icrc72_get_subscriptions"
)
GET_BROADCASTERS: Final = Method[m.ByPrincipal, tuple[m.BroadcasterInfo, ...]](
    "icrc72_get_broadcasters"
)
GET_BROADCASTER_STATS: Final = Method[None, Pairs]("icrc72_get_broadcaster_stats")
PUBLISH: Final = _Batch[m.Event, tuple[int, ...]]("icrc72_publish")
CONFIRM: Final = Method[tuple[int, ...], m.ConfirmResult]("icrc72_confirm_notifications")
HANDLE: Final = Method[tuple[m.EventNotification, ...], None](
    "icrc72_handle_notification", proven=True
)
HANDLE_TRUSTED: Final = Method[tuple[m.EventNotification, ...], Trusted](
    "icrc72_handle_notification_trusted", proven=True
)
FLAT_RESULTS: Final = frozenset([GET_BROADCASTER_STATS.name])
"""Queries whose results may be long, but are never nested deep (see `Codec.message`)."""
REGISTER_REPLAY: Final = _Batch[m.ReplayRegistration, int]("icrc77_register_replay")
CANCEL_REPLAY: Final = _Batch[int, int]("icrc77_cancel_replay")
REPLAY_STATUS: Final = _Batch[m.ReplayStatusUpdate, int]("icrc77_replay_status")
GET_REPLAYS: Final = Method[m.ByNat, tuple[m.ReplayStatus | None, ...]]("icrc77_get_replays")
ARCHIVE_APPEND: Final = Method[m.ArchivePart, tuple[int, int]]("archive_append")
ARCHIVE_PAGE: Final = Method[tuple[str, int, int, int], tuple[m.Event, ...]]("archive_page")
GET_BLOCKS: Final = Method[tuple[tuple[int, int], ...], m.Blocks]("icrc3_get_blocks")
GET_ARCHIVES: Final = Method[tuple[Principal | None], tuple[m.FurtherArchive, ...]](
    "icrc3_get_archives"
)
IS_MEMBER: Final = Method[tuple[Member, ...], tuple[bool, ...]]("icrc75_is_member")
LEDGER_FEE: Final = Method[None, int]("icrc1_fee")
TRANSFER: Final = Method[m.TransferArg, Transferred]("icrc1_transfer")
TRANSFER_FROM: Final = Method[m.TransferFromArgs, Transferred]("icrc2_transfer_from")


def ok(value: T) -> m.Ok[T]:
    """Return a result Ok."""
    return Variant("Ok", value)


def err(tag: m.NoDetail) -> m.Err:
    """Return an error without detail."""
    return Variant("Err", Variant(tag, None))


def refused(tag: m.Told, words: str) -> m.Err:
    """Return an error with a text."""
    return Variant("Err", Variant(tag, words))


def forbidden(
    tag: Literal["UnauthorizedPublisher", "UnauthorizedSubscriber"], namespace: str
) -> m.Err:
    """Return the error for a caller that may not publish in a namespace or subscribe to it."""
    return Variant("Err", Variant(tag, (namespace,)))


def generic(code: int) -> m.Err:
    """Return a generic error with a code of `keys.CODES`."""
    tag: Literal["GenericError"] = "GenericError"
    return Variant("Err", Variant(tag, m.GenericError(code, keys.CODES[code])))


def too_many(most: int) -> m.Err:
    """Return the last result of a batch that has more than `most` items (IC-30)."""
    return refused("GenericBatchError", f"at most {most} items are answered")


def is_ok(results: m.Results[T] | None) -> bool:
    """Return whether the first item of a batch was Ok."""
    return (
        results is not None
        and len(results) > 0
        and results[0] is not None
        and results[0].tag == "Ok"
    )


def words_of(error: m.Error) -> str:
    """Return an error as one line of text."""
    match error:
        case ("GenericError", (code, message)):
            return f"{message} (code {code})"
        case ("UnauthorizedPublisher" | "UnauthorizedSubscriber" as tag, (namespace,)):
            return f"{tag}: {namespace}"
        case _:
            return error.tag if error.value is None else f"{error.tag}: {error.value}"
