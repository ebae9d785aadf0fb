"""Every XCM v5 instruction, 0 to 51, and `Publish` at the next free discriminant, 52 (PS-20).

Names, order and types of the fields are those of `xcm::v5::Instruction`. A message is a tuple of instructions; a
message inside an instruction counts against the same limits as the outer one.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader, encode_bytes, encode_compact
from pubsub_emulator.primitives.types import U32_MAX
from pubsub_emulator.xcm.assets import Asset, AssetFilter, Assets, AssetTransferFilter
from pubsub_emulator.xcm.errors import XcmDecodeError
from pubsub_emulator.xcm.location import InteriorLocation, Junction, Location, NetworkId
from pubsub_emulator.xcm.outcome import WeightField
from pubsub_emulator.xcm.response import (
    AssetTransferFilters,
    DoubleEncoded,
    Hints,
    IndexedError,
    MaybeErrorCode,
    OriginKindField,
    QueryResponseInfo,
    Response,
    WeightLimit,
)
from pubsub_emulator.xcm.schema import (
    MAX_INSTRUCTIONS_TO_DECODE,
    MAX_XCM_DECODE_DEPTH,
    U32,
    Bytes32,
    ByteVec,
    CompactU32,
    CompactU64,
    Kind,
    Shape,
    Variants,
    XcmCodec,
    XcmReader,
    as_xcm_reader,
    variant,
)

PUBLISH_INDEX: Final = 52


class Instruction(Variants):
    """One step of a message."""

    __slots__ = ()


def encode_instructions(message: "Sequence[Instruction]") -> bytes:
    """`Vec<Instruction>`. Raises `ScaleError` for values that their types cannot hold."""
    return join_instructions(map(encode_instruction, message))


def encode_instruction(instruction: "Instruction") -> bytes:
    """One `Instruction`. Raises `ScaleError` for values that their types cannot hold."""
    if type(instruction) is not Publish:
        return Instruction.codec.encode(instruction)
    key, value, ttl = instruction.key, instruction.value, instruction.ttl
    if len(key) != 32 or not 0 <= ttl <= U32_MAX:
        raise ScaleError(f"Publish wants a key of 32 bytes and a u32 ttl, not {len(key)} bytes and {ttl}")
    return b"\x34" + key + encode_bytes(value) + ttl.to_bytes(4, "little")


def join_instructions(encoded: Iterable[bytes]) -> bytes:
    """`Vec<Instruction>` of instructions that are encoded already."""
    parts = list(encoded)
    return encode_compact(len(parts)) + b"".join(parts)


def read_instructions(plain: Reader) -> "tuple[Instruction, ...]":
    """`Vec<Instruction>`, one level deeper, with its length added to the message's count. Raises `ScaleError`.

    `Publish` has a fast path, since nearly every instruction is one. Its value is bounded by the input only; the pallet
    answers `ValueTooLong`.
    """
    reader = plain if isinstance(plain, XcmReader) else as_xcm_reader(plain)
    start = reader.pos
    data = reader.data
    size = len(data)
    if start < size and not data[start] & 3 and data[start] >> 2 < size - start:
        count = data[start] >> 2
        reader.pos = start + 1
    else:
        count = reader.count(None, "Xcm")
    reader.instructions += count
    if reader.instructions > MAX_INSTRUCTIONS_TO_DECODE:
        raise XcmDecodeError(f"more than {MAX_INSTRUCTIONS_TO_DECODE} instructions", start)
    if reader.depth == MAX_XCM_DECODE_DEPTH:
        reader.descend()  # which says so
    reader.depth += 1
    read_any = Instruction.codec.read
    out: list[Instruction] = []
    for _ in range(count):
        pos = reader.pos
        at = pos + 33
        if at < size and data[pos] == PUBLISH_INDEX:
            # One byte of length up to 63, two up to 16383 in their shortest form; anything else takes the general way.
            first = data[at]
            if first & 3 == 0:
                at += 1
                end = at + (first >> 2)
            elif first & 3 == 1 and at + 1 < size and data[at + 1]:
                end = at + 2 + (data[at + 1] << 6 | first >> 2)
                at += 2
            else:
                out.append(read_any(reader))
                continue
            after = end + 4
            if after <= size:
                out.append(Publish(data[pos + 1 : pos + 33], data[at:end], int.from_bytes(data[end:after], "little")))
                reader.pos = after
                continue
        out.append(read_any(reader))
    reader.depth -= 1
    return tuple(out)


XCM: "Final[XcmCodec[tuple[Instruction, ...]]]" = XcmCodec(
    "Xcm",
    encode_instructions,
    read_instructions,
    Shape(Kind.SEQUENCE, MAX_INSTRUCTIONS_TO_DECODE, (Instruction.codec,)),
)

Xcm = Annotated[tuple[Instruction, ...], XCM]
"""A message: its instructions in order."""


@variant(0)
class WithdrawAsset(Instruction):
    """Take assets from the origin into holding."""

    inner: Assets


@variant(1)
class ReserveAssetDeposited(Instruction):
    """Assets arrived in reserve here."""

    inner: Assets


@variant(2)
class ReceiveTeleportedAsset(Instruction):
    """Assets were burnt elsewhere for minting here."""

    inner: Assets


@variant(3)
class QueryResponse(Instruction):
    """The answer to a query."""

    query_id: CompactU64
    response: Response
    max_weight: WeightField
    querier: Location | None


@variant(4)
class TransferAsset(Instruction):
    """Move assets to a beneficiary."""

    assets: Assets
    beneficiary: Location


@variant(5)
class TransferReserveAsset(Instruction):
    """Move assets to a destination's account here and notify it."""

    assets: Assets
    dest: Location
    xcm: Xcm


@variant(6)
class Transact(Instruction):
    """Dispatch a call."""

    origin_kind: OriginKindField
    fallback_max_weight: WeightField | None
    call: DoubleEncoded


@variant(7)
class HrmpNewChannelOpenRequest(Instruction):
    """A channel is asked for."""

    sender: CompactU32
    max_message_size: CompactU32
    max_capacity: CompactU32


@variant(8)
class HrmpChannelAccepted(Instruction):
    """A channel was accepted."""

    recipient: CompactU32


@variant(9)
class HrmpChannelClosing(Instruction):
    """A channel closes."""

    initiator: CompactU32
    sender: CompactU32
    recipient: CompactU32


@variant(10)
class ClearOrigin(Instruction):
    """Forget the origin."""


@variant(11)
class DescendOrigin(Instruction):
    """Take on an origin below the present one."""

    inner: InteriorLocation


@variant(12)
class ReportError(Instruction):
    """Report the error register."""

    inner: QueryResponseInfo


@variant(13)
class DepositAsset(Instruction):
    """Put assets from holding into an account."""

    assets: AssetFilter
    beneficiary: Location


@variant(14)
class DepositReserveAsset(Instruction):
    """Put assets into a destination's account here and notify it."""

    assets: AssetFilter
    dest: Location
    xcm: Xcm


@variant(15)
class ExchangeAsset(Instruction):
    """Swap assets."""

    give: AssetFilter
    want: Assets
    maximal: bool


@variant(16)
class InitiateReserveWithdraw(Instruction):
    """Ask a reserve to withdraw."""

    assets: AssetFilter
    reserve: Location
    xcm: Xcm


@variant(17)
class InitiateTeleport(Instruction):
    """Teleport assets."""

    assets: AssetFilter
    dest: Location
    xcm: Xcm


@variant(18)
class ReportHolding(Instruction):
    """Report what is in holding."""

    response_info: QueryResponseInfo
    assets: AssetFilter


@variant(19)
class BuyExecution(Instruction):
    """Pay for execution from holding."""

    fees: Asset
    weight_limit: WeightLimit


@variant(20)
class RefundSurplus(Instruction):
    """Take back what was paid too much."""


@variant(21)
class SetErrorHandler(Instruction):
    """Set what runs when an instruction fails; an earlier handler's weight is given back."""

    inner: Xcm


@variant(22)
class SetAppendix(Instruction):
    """Set what runs at the end in any case; an earlier appendix's weight is given back."""

    inner: Xcm


@variant(23)
class ClearError(Instruction):
    """Forget the error, so that the message ends as complete."""


@variant(24)
class ClaimAsset(Instruction):
    """Claim trapped assets."""

    assets: Assets
    ticket: Location


@variant(25)
class Trap(Instruction):
    """Fail with this code."""

    inner: CompactU64


@variant(26)
class SubscribeVersion(Instruction):
    """Subscribe to the version in use here."""

    query_id: CompactU64
    max_response_weight: WeightField


@variant(27)
class UnsubscribeVersion(Instruction):
    """Undo a subscription."""


@variant(28)
class BurnAsset(Instruction):
    """Burn assets in holding."""

    inner: Assets


@variant(29)
class ExpectAsset(Instruction):
    """Fail unless holding has these assets."""

    inner: Assets


@variant(30)
class ExpectOrigin(Instruction):
    """Fail unless the origin is exactly this."""

    inner: Location | None


@variant(31)
class ExpectError(Instruction):
    """Fail unless the error register is exactly this."""

    inner: IndexedError


@variant(32)
class ExpectTransactStatus(Instruction):
    """Fail unless the last call ended like this."""

    inner: MaybeErrorCode


@variant(33)
class QueryPallet(Instruction):
    """Ask for pallets by module name."""

    module_name: ByteVec
    response_info: QueryResponseInfo


@variant(34)
class ExpectPallet(Instruction):
    """Fail unless a pallet is what is expected."""

    index: CompactU32
    name: ByteVec
    module_name: ByteVec
    crate_major: CompactU32
    min_crate_minor: CompactU32


@variant(35)
class ReportTransactStatus(Instruction):
    """Report how the last call ended."""

    inner: QueryResponseInfo


@variant(36)
class ClearTransactStatus(Instruction):
    """Forget how the last call ended."""


@variant(37)
class UniversalOrigin(Instruction):
    """Take on an origin of the universe."""

    inner: Junction


@variant(38)
class ExportMessage(Instruction):
    """Send a message over a bridge."""

    network: NetworkId
    destination: InteriorLocation
    xcm: Xcm


@variant(39)
class LockAsset(Instruction):
    """Lock an asset."""

    asset: Asset
    unlocker: Location


@variant(40)
class UnlockAsset(Instruction):
    """Unlock an asset."""

    asset: Asset
    target: Location


@variant(41)
class NoteUnlockable(Instruction):
    """An asset was locked for this chain."""

    asset: Asset
    owner: Location


@variant(42)
class RequestUnlock(Instruction):
    """Ask for an unlock."""

    asset: Asset
    locker: Location


@variant(43)
class SetFeesMode(Instruction):
    """Set how fees are taken."""

    jit_withdraw: bool


@variant(44)
class SetTopic(Instruction):
    """Set the topic."""

    inner: Bytes32


@variant(45)
class ClearTopic(Instruction):
    """Forget the topic."""


@variant(46)
class AliasOrigin(Instruction):
    """Take on another origin."""

    inner: Location


@variant(47)
class UnpaidExecution(Instruction):
    """Claim free execution, and fail unless the origin is as told."""

    weight_limit: WeightLimit
    check_origin: Location | None


@variant(48)
class PayFees(Instruction):
    """Pay for execution."""

    asset: Asset


@variant(49)
class InitiateTransfer(Instruction):
    """Transfer assets in whatever way each of them goes."""

    destination: Location
    remote_fees: AssetTransferFilter | None
    preserve_origin: bool
    assets: AssetTransferFilters
    remote_xcm: Xcm


@variant(50)
class ExecuteWithOrigin(Instruction):
    """Execute a message under another origin."""

    descendant_origin: InteriorLocation | None
    xcm: Xcm


@variant(51)
class SetHints(Instruction):
    """Set hints."""

    hints: Hints


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
