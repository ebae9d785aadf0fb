"""Responses to queries, and the smaller types that instructions use, as in XCM v5."""

from enum import IntEnum
from typing import Annotated, Final

from pubsub_emulator.xcm import assets, schema
from pubsub_emulator.xcm.location import Location
from pubsub_emulator.xcm.outcome import XCM_ERROR, WeightField, XcmError
from pubsub_emulator.xcm.schema import (
    U32,
    ByteVec,
    CompactU32,
    CompactU64,
    RustEnum,
    Struct,
    sequence,
    struct,
    variant,
)

MAX_DISPATCH_ERROR_LEN: Final = 128
MAX_PALLET_NAME_LEN: Final = 48
MAX_PALLETS_INFO: Final = 64
MAX_HINTS: Final = 1
"""`HintNumVariants`: one hint of each sort."""
MAX_ASSET_TRANSFER_FILTERS: Final = 6

ErrorCode = Annotated[bytes, schema.byte_vec(MAX_DISPATCH_ERROR_LEN)]
PalletName = Annotated[bytes, schema.byte_vec(MAX_PALLET_NAME_LEN)]

IndexedError = Annotated[
    tuple[int, XcmError] | None, schema.optional(schema.pair(schema.uint(32), XCM_ERROR))
]
"""`Option<(u32, Error)>`."""


class MaybeErrorCode(
    RustEnum,
    unnamed={
        0: ("Success", {}),
        1: ("Error", {"inner": ErrorCode}),
        2: ("TruncatedError", {"inner": ErrorCode}),
    },
):
    """The result of a dispatched call."""


@struct
class PalletInfo(Struct):
    """A pallet's index, names and version."""

    index: CompactU32
    name: PalletName
    module_name: PalletName
    major: CompactU32
    minor: CompactU32
    patch: CompactU32


class Response(
    RustEnum,
    unnamed={
        0: ("Null", {}),
        1: ("Assets", {"inner": assets.Assets}),
        2: ("ExecutionResult", {"inner": IndexedError}),
        3: ("Version", {"inner": U32}),
        4: (
            "PalletsInfo",
            {
                "inner": Annotated[
                    tuple[PalletInfo, ...], sequence(PalletInfo.codec, MAX_PALLETS_INFO)
                ]
            },
        ),
        5: ("DispatchResult", {"inner": MaybeErrorCode}),
    },
):
    """The answer to a query."""


@struct
class QueryResponseInfo(Struct):
    """The destination of a response."""

    destination: Location
    query_id: CompactU64
    max_weight: WeightField


class WeightLimit(RustEnum):
    """The limit of the weight that is bought."""


@variant(0)
class Unlimited(WeightLimit):
    """Any weight."""


@variant(1)
class Limited(WeightLimit):
    """At most this weight."""

    inner: WeightField


class OriginKind(IntEnum):
    """The rule by which a location becomes a call's origin."""

    Native = 0
    SovereignAccount = 1
    Superuser = 2
    Xcm = 3


OriginKindField = Annotated[OriginKind, schema.names(OriginKind)]


@struct
class DoubleEncoded(Struct):
    """An encoded call, which is never decoded here."""

    encoded: ByteVec


class Hint(RustEnum, unnamed={0: ("AssetClaimer", {"location": Location})}):
    """A hint for the executor."""


Hints = Annotated[tuple[Hint, ...], sequence(Hint.codec, MAX_HINTS)]
AssetTransferFilters = Annotated[
    tuple[assets.AssetTransferFilter, ...],
    sequence(assets.AssetTransferFilter.codec, MAX_ASSET_TRANSFER_FILTERS),
]
