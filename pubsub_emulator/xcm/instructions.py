"""Every XCM v5 instruction, 0 to 51, and `Publish` at the next free discriminant, 52 (PS-20).

Fields are named, ordered and typed as in `xcm::v5::Instruction`. Instructions of nested messages
count towards the limit of the outer message.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader, encode_bytes, encode_compact
from pubsub_emulator.primitives.types import U32_MAX
from pubsub_emulator.xcm import response, schema
from pubsub_emulator.xcm.assets import Asset, AssetFilter, Assets, AssetTransferFilter
from pubsub_emulator.xcm.errors import XcmDecodeError
from pubsub_emulator.xcm.location import InteriorLocation, Junction, Location, NetworkId
from pubsub_emulator.xcm.outcome import WeightField
from pubsub_emulator.xcm.response import (
    Hints,
    IndexedError,
    MaybeErrorCode,
    QueryResponseInfo,
    Response,
    WeightLimit,
)
from pubsub_emulator.xcm.schema import (
    U32,
    Bytes32,
    ByteVec,
    CompactU32,
    CompactU64,
    RustEnum,
    XcmReader,
    variant,
)

PUBLISH_INDEX: Final = 52


class Instruction(RustEnum):
    """One step of a message."""

    __slots__ = ()


def encode_instructions(message: "Sequence[Instruction]") -> bytes:
    """Encode a `Vec<Instruction>`.

    Raises `ScaleError` for values that their types cannot hold.
    """
    return join_instructions(map(encode_instruction, message))


def encode_instruction(instruction: "Instruction") -> bytes:
    """Encode one `Instruction`.

    Raises `ScaleError` for values that their types cannot hold.
    """
    if type(instruction) is not Publish:
        return Instruction.codec.encode(instruction)
    key = instruction.key
    ttl = instruction.ttl
    if len(key) != 32 or not 0 <= ttl <= U32_MAX:
        raise ScaleError(
            f"Publish wants a key of 32 bytes and a u32 ttl, not {len(key)} bytes and {ttl}"
        )
    return b"\x34" + key + encode_bytes(instruction.value) + ttl.to_bytes(4, "little")


def join_instructions(encoded: Iterable[bytes]) -> bytes:
    """Encode a `Vec<Instruction>` of instructions that are encoded already."""
    parts = list(encoded)
    return encode_compact(len(parts)) + b"".join(parts)


def read_instructions(plain: Reader) -> "tuple[Instruction, ...]":
    """Read a `Vec<Instruction>` one level deeper, and count its instructions in `plain`.

    Raises `ScaleError`.

    Nearly every instruction is a `Publish`, so it has a fast path. Only the input bounds the length
    of its value here; the pallet refuses one that is too long (`ValueTooLong`).
    """
    reader = plain if isinstance(plain, XcmReader) else schema.as_xcm_reader(plain)
    start = reader.pos
    data = reader.data
    size = len(data)
    if start < size and not data[start] & 3 and data[start] >> 2 < size - start:
        count = data[start] >> 2
        reader.pos = start + 1
    else:
        count = reader.count(None, "Xcm")
    reader.instructions += count
    if reader.instructions > schema.MAX_INSTRUCTIONS_TO_DECODE:
        raise XcmDecodeError(f"more than {schema.MAX_INSTRUCTIONS_TO_DECODE} instructions", start)
    if reader.depth == schema.MAX_XCM_DECODE_DEPTH:
        # This raises the error that names the limit.
        reader.descend()
    reader.depth += 1
    read_any = Instruction.codec.read
    message: list[Instruction] = []
    for _ in range(count):
        pos = reader.pos
        value_start = pos + 33
        if value_start < size and data[pos] == PUBLISH_INDEX:
            # Lengths up to 63 take one byte, and those up to 16,383 two bytes in their shortest
            # form. All others are left to the general codec.
            first = data[value_start]
            if first & 3 == 0:
                value_start += 1
                end = value_start + (first >> 2)
            elif first & 3 == 1 and value_start + 1 < size and data[value_start + 1]:
                end = value_start + 2 + (data[value_start + 1] << 6 | first >> 2)
                value_start += 2
            else:
                message.append(read_any(reader))
                continue
            after = end + 4
            if after <= size:
                message.append(
                    Publish(
                        data[pos + 1 : pos + 33],
                        data[value_start:end],
                        int.from_bytes(data[end:after], "little"),
                    )
                )
                reader.pos = after
                continue
        message.append(read_any(reader))
    reader.depth -= 1
    return tuple(message)


XCM: "Final[schema.XcmCodec[tuple[Instruction, ...]]]" = schema.XcmCodec(
    "Xcm",
    encode_instructions,
    read_instructions,
    schema.Shape(schema.Kind.SEQUENCE, schema.MAX_INSTRUCTIONS_TO_DECODE, (Instruction.codec,)),
)

Xcm = Annotated[tuple[Instruction, ...], XCM]
"""A message: its instructions in order."""


@variant(6)
class Transact(Instruction):
    """Dispatch a call."""

    origin_kind: response.OriginKindField
    fallback_max_weight: WeightField | None
    call: response.DoubleEncoded


@variant(10)
class ClearOrigin(Instruction):
    """Forget the origin."""


@variant(11)
class DescendOrigin(Instruction):
    """Take on an origin below the present one."""

    inner: InteriorLocation


@variant(21)
class SetErrorHandler(Instruction):
    """Set the instructions that run when one fails; an earlier handler's weight is refunded."""

    inner: Xcm


@variant(22)
class SetAppendix(Instruction):
    """Set the instructions that run at the end in any case.

    An earlier appendix's weight is refunded.
    """

    inner: Xcm


@variant(23)
class ClearError(Instruction):
    """Forget the error, so that the message ends as complete."""


@variant(25)
class Trap(Instruction):
    """Fail with this code."""

    inner: CompactU64


@variant(30)
class ExpectOrigin(Instruction):
    """Fail unless the origin is exactly this."""

    inner: Location | None


@variant(44)
class SetTopic(Instruction):
    """Set the topic."""

    inner: Bytes32


@variant(45)
class ClearTopic(Instruction):
    """Forget the topic."""


@variant(47)
class UnpaidExecution(Instruction):
    """Claim free execution, and fail unless the origin is `check_origin` (if given)."""

    weight_limit: WeightLimit
    check_origin: Location | None


@variant(50)
class ExecuteWithOrigin(Instruction):
    """Execute a message under another origin."""

    descendant_origin: InteriorLocation | None
    xcm: Xcm


@variant(52)
class Publish(Instruction):
    """Publish one key of the origin parachain on the relay chain (PS-20).

    u8        0x34
    [u8; 32]  key
    Vec<u8>   value
    u32       ttl    blocks, 0 = never expires; little-endian, not compact
    """

    key: Bytes32
    value: ByteVec
    ttl: U32


schema.declare(
    Instruction,
    {
        0: ("WithdrawAsset", {"inner": Assets}),
        1: ("ReserveAssetDeposited", {"inner": Assets}),
        2: ("ReceiveTeleportedAsset", {"inner": Assets}),
        3: (
            "QueryResponse",
            {
                "query_id": CompactU64,
                "response": Response,
                "max_weight": WeightField,
                "querier": Location | None,
            },
        ),
        4: ("TransferAsset", {"assets": Assets, "beneficiary": Location}),
        5: ("TransferReserveAsset", {"assets": Assets, "dest": Location, "xcm": Xcm}),
        7: (
            "HrmpNewChannelOpenRequest",
            {"sender": CompactU32, "max_message_size": CompactU32, "max_capacity": CompactU32},
        ),
        8: ("HrmpChannelAccepted", {"recipient": CompactU32}),
        9: (
            "HrmpChannelClosing",
            {"initiator": CompactU32, "sender": CompactU32, "recipient": CompactU32},
        ),
        12: ("ReportError", {"inner": QueryResponseInfo}),
        13: ("DepositAsset", {"assets": AssetFilter, "beneficiary": Location}),
        14: ("DepositReserveAsset", {"assets": AssetFilter, "dest": Location, "xcm": Xcm}),
        15: ("ExchangeAsset", {"give": AssetFilter, "want": Assets, "maximal": bool}),
        16: ("InitiateReserveWithdraw", {"assets": AssetFilter, "reserve": Location, "xcm": Xcm}),
        17: ("InitiateTeleport", {"assets": AssetFilter, "dest": Location, "xcm": Xcm}),
        18: ("ReportHolding", {"response_info": QueryResponseInfo, "assets": AssetFilter}),
        19: ("BuyExecution", {"fees": Asset, "weight_limit": WeightLimit}),
        20: ("RefundSurplus", {}),
        24: ("ClaimAsset", {"assets": Assets, "ticket": Location}),
        26: ("SubscribeVersion", {"query_id": CompactU64, "max_response_weight": WeightField}),
        27: ("UnsubscribeVersion", {}),
        28: ("BurnAsset", {"inner": Assets}),
        29: ("ExpectAsset", {"inner": Assets}),
        31: ("ExpectError", {"inner": IndexedError}),
        32: ("ExpectTransactStatus", {"inner": MaybeErrorCode}),
        33: ("QueryPallet", {"module_name": ByteVec, "response_info": QueryResponseInfo}),
        34: (
            "ExpectPallet",
            {
                "index": CompactU32,
                "name": ByteVec,
                "module_name": ByteVec,
                "crate_major": CompactU32,
                "min_crate_minor": CompactU32,
            },
        ),
        35: ("ReportTransactStatus", {"inner": QueryResponseInfo}),
        36: ("ClearTransactStatus", {}),
        37: ("UniversalOrigin", {"inner": Junction}),
        38: ("ExportMessage", {"network": NetworkId, "destination": InteriorLocation, "xcm": Xcm}),
        39: ("LockAsset", {"asset": Asset, "unlocker": Location}),
        40: ("UnlockAsset", {"asset": Asset, "target": Location}),
        41: ("NoteUnlockable", {"asset": Asset, "owner": Location}),
        42: ("RequestUnlock", {"asset": Asset, "locker": Location}),
        43: ("SetFeesMode", {"jit_withdraw": bool}),
        46: ("AliasOrigin", {"inner": Location}),
        48: ("PayFees", {"asset": Asset}),
        49: (
            "InitiateTransfer",
            {
                "destination": Location,
                "remote_fees": AssetTransferFilter | None,
                "preserve_origin": bool,
                "assets": response.AssetTransferFilters,
                "remote_xcm": Xcm,
            },
        ),
        51: ("SetHints", {"hints": Hints}),
    },
)
