"""Outcomes of a message: `xcm::v5::Error`, `Outcome`, and `ProcessMessageError` for a queue.

`Error` is one byte, followed by a u64 for `Trap` and by a weight for `WeightLimitReached`. Upstream
fixes the discriminants 0 to 35. The relay runtime's metadata shows 36 to 40.

`PublishFailed` takes 41, the next free one, so that every existing error keeps the byte that
clients know. The Rust attempt at this protocol uses the same name.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated, Final

from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.weights import Weight, encode_weight, read_weight
from pubsub_emulator.xcm.schema import (
    SKIP,
    U8,
    Kind,
    RustEnum,
    Shape,
    Struct,
    XcmCodec,
    names,
    struct,
    uint,
    variant,
)

WEIGHT: Final[XcmCodec[Weight]] = XcmCodec(
    "Weight", encode_weight, read_weight, Shape(Kind.STRUCT, type=Weight)
)
"""`Weight`: `Compact<u64>` ref_time (ps), `Compact<u64>` proof_size (bytes)."""

WeightField = Annotated[Weight, WEIGHT]


class XcmErrorKind(IntEnum):
    """Names and discriminants of `xcm::v5::Error`."""

    Overflow = 0
    Unimplemented = 1
    UntrustedReserveLocation = 2
    UntrustedTeleportLocation = 3
    LocationFull = 4
    LocationNotInvertible = 5
    BadOrigin = 6
    InvalidLocation = 7
    AssetNotFound = 8
    FailedToTransactAsset = 9
    NotWithdrawable = 10
    LocationCannotHold = 11
    ExceedsMaxMessageSize = 12
    DestinationUnsupported = 13
    Transport = 14
    Unroutable = 15
    UnknownClaim = 16
    FailedToDecode = 17
    MaxWeightInvalid = 18
    NotHoldingFees = 19
    TooExpensive = 20
    Trap = 21
    ExpectationFalse = 22
    PalletNotFound = 23
    NameMismatch = 24
    VersionIncompatible = 25
    HoldingWouldOverflow = 26
    ExportError = 27
    ReanchorFailed = 28
    NoDeal = 29
    FeesNotMet = 30
    LockError = 31
    NoPermission = 32
    Unanchored = 33
    NotDepositable = 34
    TooManyAssets = 35
    UnhandledXcmVersion = 36
    WeightLimitReached = 37
    Barrier = 38
    WeightNotComputable = 39
    ExceedsStackLimit = 40
    PublishFailed = 41


@dataclass(frozen=True, slots=True)
class XcmError:
    """`xcm::v5::Error`."""

    kind: XcmErrorKind
    detail: int | Weight | None = None
    """The code of a `Trap` or the weight of a `WeightLimitReached`, otherwise `None`."""


_KIND = names(XcmErrorKind)
_U64 = uint(64)


def _encode_error(error: XcmError) -> bytes:
    head = _KIND.encode(error.kind)
    if error.kind is XcmErrorKind.Trap and isinstance(error.detail, int):
        return head + _U64.encode(error.detail)
    if error.kind is XcmErrorKind.WeightLimitReached and isinstance(error.detail, Weight):
        return head + encode_weight(error.detail)
    if (
        error.kind in (XcmErrorKind.Trap, XcmErrorKind.WeightLimitReached)
        or error.detail is not None
    ):
        raise ScaleError(f"{error.kind.name} does not go with {error.detail}")
    return head


def _read_error(reader: Reader) -> XcmError:
    kind = _KIND.read(reader)
    if kind is XcmErrorKind.Trap:
        return XcmError(kind, reader.uint(8))
    if kind is XcmErrorKind.WeightLimitReached:
        return XcmError(kind, read_weight(reader))
    return XcmError(kind)


XCM_ERROR: Final[XcmCodec[XcmError]] = XcmCodec(
    "Error", _encode_error, _read_error, Shape(Kind.STRUCT, type=XcmError)
)

XcmErrorField = Annotated[XcmError, XCM_ERROR]


@struct
class InstructionError(Struct):
    """The failed instruction's index in its list, and its error (PS-21).

    u8     index   255 for instruction 255 and all later ones
    Error  error
    """

    index: U8
    error: XcmErrorField
    cause: Annotated[PubsubError | None, SKIP] = field(default=None, compare=False)
    """The pallet's own error behind a `PublishFailed`.

    It is neither encoded nor compared, since the Rust type has no such field.
    """


class Outcome(RustEnum):
    """`xcm::v5::Outcome`."""

    __slots__ = ()


@variant(0)
class Complete(Outcome):
    """Every instruction succeeded, or an error was cleared."""

    used: WeightField


@variant(1)
class Incomplete(Outcome):
    """An instruction failed; the effects of those before it remain."""

    used: WeightField
    error: InstructionError


@variant(2)
class Error(Outcome):
    """Nothing was executed."""

    inner: InstructionError


class ProcessMessageError(RustEnum):
    """The reason why a message was not processed.

    It is `frame_support::traits::ProcessMessageError`, a value and not an exception.
    """

    __slots__ = ()


@variant(0)
class BadFormat(ProcessMessageError):
    """The message does not have the form that the barrier admits."""


@variant(1)
class Corrupt(ProcessMessageError):
    """The bytes do not decode."""


@variant(2)
class Unsupported(ProcessMessageError):
    """The message decodes, but this chain does not support it or its origin may not send it."""


@variant(3)
class Overweight(ProcessMessageError):
    """The message does not fit into the weight that is left; it takes up to this weight."""

    inner: WeightField


@variant(4)
class Yield(ProcessMessageError):
    """The queue yields its turn."""


@variant(5)
class StackLimitReached(ProcessMessageError):
    """The message has too many instructions."""
