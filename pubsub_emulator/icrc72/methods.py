"""The methods of the standards as the roles call them, each with its types, and the results of batches."""

from typing import Final, Generic, Literal, TypeVar, cast

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72 import messages as m
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.services import codec
from pubsub_emulator.icrc72.values import Pairs, Value

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


class Method(Generic[A, R]):
    """A method with the types of its argument and result; `None` where it has none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def argument(self, value: A) -> bytes:
        """The bytes of a call."""
        args = codec(self.name).args
        return args.encode(value) if args.types else args.encode()

    def value(self, data: bytes) -> A:
        """The argument in a call. Raises `CandidError`."""
        values = codec(self.name).args.decode(data)
        return cast("A", values[0] if values else None)

    def result(self, data: bytes) -> R:
        """The result in an answer. Raises `CandidError`."""
        values = codec(self.name).rets.decode(data)
        return cast("R", values[0] if values else None)

    def reply(self, ctx: Context, result: R) -> None:
        """Answer a call."""
        rets = codec(self.name).rets
        ctx.reply(rets.encode(result) if rets.types else rets.encode())


_Batch = Method[tuple[A, ...], m.Results[R]]
Trusted = Variant[Literal["Ok"], Value] | Variant[Literal["err", "Err"], str]
Transferred = Variant[Literal["Ok"], int] | Variant[Literal["Err"], Variant[str, object]]
Member = tuple[Variant[Literal["Identity"], Principal], tuple[tuple[str, ...], ...]]  # inner lists are alternatives


def member(who: Principal, name: str) -> Member:
    """The question whether a list has a principal."""
    return Variant("Identity", who), ((name,),)


REGISTER_PUBLICATION: Final = _Batch[m.PublicationRegistration, int]("icrc72_register_publication")
REGISTER_SUBSCRIPTION: Final = _Batch[m.SubscriptionRegistration, int]("icrc72_register_subscription")
UPDATE_PUBLICATION: Final = _Batch[m.PublicationUpdate, bool]("icrc72_update_publication")
UPDATE_SUBSCRIPTION: Final = _Batch[m.SubscriptionUpdate, bool]("icrc72_update_subscription")
DELETE_PUBLICATION: Final = _Batch[m.PublicationDelete, bool]("icrc72_delete_publication")
DELETE_SUBSCRIPTION: Final = _Batch[m.SubscriptionDelete, bool]("icrc72_delete_subscription")
GET_VALID: Final = Method[None, m.Valid]("icrc72_get_valid_broadcasters")
GET_VALID_ONE: Final = Method[None, m.Valid]("icrc72_get_valid_broadcaster")
GET_PUBLICATIONS: Final = Method[m.ByText, tuple[m.PublicationInfo, ...]]("icrc72_get_publications")
GET_SUBSCRIPTIONS: Final = Method[m.ByNat, tuple[m.SubscriptionInfo, ...]]("icrc72_get_subscriptions")
GET_BROADCASTERS: Final = Method[m.ByPrincipal, tuple[m.BroadcasterInfo, ...]]("icrc72_get_broadcasters")
GET_BROADCASTER_STATS: Final = Method[None, Pairs]("icrc72_get_broadcaster_stats")
PUBLISH: Final = _Batch[m.Event, tuple[int, ...]]("icrc72_publish")
CONFIRM: Final = Method[tuple[int, ...], m.ConfirmResult]("icrc72_confirm_notifications")
HANDLE: Final = Method[tuple[m.EventNotification, ...], None]("icrc72_handle_notification")
HANDLE_TRUSTED: Final = Method[tuple[m.EventNotification, ...], Trusted]("icrc72_handle_notification_trusted")
REGISTER_REPLAY: Final = _Batch[m.ReplayRegistration, int]("icrc77_register_replay")
CANCEL_REPLAY: Final = _Batch[int, int]("icrc77_cancel_replay")
REPLAY_STATUS: Final = _Batch[m.ReplayStatusUpdate, int]("icrc77_replay_status")
GET_REPLAYS: Final = Method[m.ByNat, tuple[m.ReplayStatus | None, ...]]("icrc77_get_replays")
ARCHIVE_APPEND: Final = Method[m.ArchivePart, tuple[int, int]]("archive_append")
ARCHIVE_PAGE: Final = Method[tuple[str, int, int, int], tuple[m.Event, ...]]("archive_page")
IS_MEMBER: Final = Method[tuple[Member, ...], tuple[bool, ...]]("icrc75_is_member")
LEDGER_FEE: Final = Method[None, int]("icrc1_fee")
TRANSFER: Final = Method[m.TransferArg, Transferred]("icrc1_transfer")
TRANSFER_FROM: Final = Method[m.TransferFromArgs, Transferred]("icrc2_transfer_from")


def ok(value: T) -> m.Ok[T]:
    """A result that is Ok."""
    return Variant("Ok", value)


def err(tag: m.NoDetail) -> m.Err:
    """A result that is an error without any detail."""
    return Variant("Err", Variant(tag, None))


def refused(tag: m.Told, words: str) -> m.Err:
    """A result that is an error with words."""
    return Variant("Err", Variant(tag, words))


def forbidden(tag: Literal["UnauthorizedPublisher", "UnauthorizedSubscriber"], namespace: str) -> m.Err:
    """A result for somebody who may not publish in a namespace, or subscribe to it."""
    return Variant("Err", Variant(tag, (namespace,)))


def generic(code: int) -> m.Err:
    """A result with a code of `keys.CODES`."""
    tag: Literal["GenericError"] = "GenericError"
    return Variant("Err", Variant(tag, m.GenericError(code, keys.CODES[code])))


def too_many(most: int) -> m.Err:
    """The last result of a batch of more than `most` items (IC-30)."""
    return refused("GenericBatchError", f"at most {most} items are answered")


def is_ok(results: m.Results[T] | None) -> bool:
    """True when the first item of a batch was Ok."""
    return results is not None and len(results) > 0 and results[0] is not None and results[0].tag == "Ok"


def words_of(error: m.Error) -> str:
    """An error as one line."""
    match error:
        case ("GenericError", (code, message)):
            return f"{message} (code {code})"
        case ("UnauthorizedPublisher" | "UnauthorizedSubscriber" as tag, (namespace,)):
            return f"{tag}: {namespace}"
        case _:
            return error.tag if error.value is None else f"{error.tag}: {error.value}"
