"""The runtime API functions by name.

Each function reads its arguments from SCALE bytes and returns its result as SCALE bytes. It reads
the block at which it is called and changes nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Final

from pubsub_emulator.emulator.network.parachain import pack
from pubsub_emulator.node.at import METADATA_VERSIONS, At, metadata, runtime_version
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.scale import Reader, encode_bytes, encode_compact
from pubsub_emulator.primitives.types import AccountId, ParaId
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, encode_weight, read_weight
from pubsub_emulator.runtime.accounts.chain import NextBlock, begin
from pubsub_emulator.runtime.accounts.extrinsic import (
    BareExtrinsic,
    SignedExtrinsic,
    UndecodableExtrinsic,
    decode,
)
from pubsub_emulator.runtime.accounts.publisher import Published, sent_upward
from pubsub_emulator.runtime.accounts.transaction_payment import LENGTH_FEE, fee_of, weight_fee
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.calls import CallReader
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome, Other, dispatch_result
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage
from pubsub_emulator.runtime.framework.origin import origin_caller
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.validity import InvalidTransaction
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.storage import DISABLED_PUBLISHERS
from pubsub_emulator.runtime.relay.dmp import QUEUES
from pubsub_emulator.xcm import Location, Parachain, Publish
from pubsub_emulator.xcm.location import PARENT
from pubsub_emulator.xcm.message import decode as decode_xcm

XCM_VERSION: Final = 5
"""The only version of XCM that is supported."""
_VERSION_NOT_KNOWN: Final = b"\x01\x01"
"""`Err(VersionedConversionFailed)` of `DryRunApi`."""
_KEYS_TO_PROVE: Final = "KeyToIncludeInRelayProof_keys_to_prove"
_OFFSET: Final = "RelayParentOffsetApi_relay_parent_offset"


class UnknownFunction(PubsubError):
    """A function that is not in the runtime APIs of the chain."""


class ApiFailed(PubsubError):
    """Arguments that a function cannot decode."""


def call(at: At, name: str, data: bytes) -> bytes:
    """Call a function with its SCALE-encoded arguments and return its encoded result.

    Raises `UnknownFunction`, or `ApiFailed` if the arguments cannot be decoded or further bytes
    follow them.
    """
    function = _FUNCTIONS.get(name)
    if function is None:
        raise UnknownFunction(f"Exported method {name} is not found")
    reader = Reader(data)
    try:
        result = function(at, reader)
        reader.end()
    except (ScaleError, UndecodableExtrinsic) as error:
        raise ApiFailed(f"{name}: {error}") from error
    return result


def _metadata_at_version(at: At, reader: Reader) -> bytes:
    """Return `Option<OpaqueMetadata>`, which is `None` for a version that is not provided."""
    version = reader.uint(4)
    if version not in METADATA_VERSIONS:
        return b"\x00"
    return b"\x01" + encode_bytes(metadata(at, version))


def _validate_transaction(at: At, reader: Reader) -> bytes:
    """Return `TransactionValidity` of an extrinsic in the next block.

    The arguments are the source (u8: in a block, local, or external), the extrinsic, and a block
    hash.
    """
    source = reader.u8()
    if source > 2:
        raise ScaleError(f"no transaction source {source}")
    raw = _extrinsic(reader)
    # The hash of the block is not needed, because the function is called at that block.
    reader.take(32)
    try:
        return b"\x00" + NextBlock(at.runtime, at.state, at.header).validate(raw).encode()
    except InvalidTransaction as error:
        return b"\x01" + error.encode()


def _account_nonce(at: At, reader: Reader) -> bytes:
    account = AccountId(reader.take(32))
    return scale.u32.encode(system.account(Storage(at.state), account).nonce)


def _keys_to_prove(at: At) -> bytes:
    """Return the `RelayProofRequest` of the runtime that executes the next block (UP-1, UP-2).

    Raises `UnknownFunction` on the relay chain.
    """
    if at.relay is not None:
        raise UnknownFunction(f"Exported method {_KEYS_TO_PROVE} is not found")
    spec = runtime_spec(at.state.top)
    storage = Storage(at.state)
    disabled = {para for para in spec.subscriptions if DISABLED_PUBLISHERS.contains(storage, para)}
    return spec.request(disabled).encode()


def _relay_parent_offset(at: At) -> bytes:
    """Return the relay parent offset of the runtime that executes the next block (UP-12).

    Raises `UnknownFunction` on the relay chain, and for a runtime without an offset.
    """
    offset = 0 if at.relay is not None else runtime_spec(at.state.top).relay_parent_offset
    if not offset:
        raise UnknownFunction(f"Exported method {_OFFSET} is not found")
    return scale.u32.encode(offset)


def _extrinsic(reader: Reader) -> bytes:
    """Read the next extrinsic and return it with its length prefix."""
    start = reader.pos
    reader.bytes_()
    return reader.data[start : reader.pos]


def _fee_arguments(at: At, reader: Reader) -> tuple[SignedExtrinsic | BareExtrinsic, int]:
    """Read the arguments of the fee functions: an extrinsic and its length in bytes.

    As in a Substrate runtime, the fee depends on the given length and not on the actual one.
    """
    return decode(_extrinsic(reader), at.runtime.calls), reader.uint(4)


def _query_info(at: At, reader: Reader) -> bytes:
    """Return `RuntimeDispatchInfo`: weight, class, and the fee without the tip."""
    extrinsic, length = _fee_arguments(at, reader)
    if isinstance(extrinsic, BareExtrinsic):
        # A bare extrinsic is an inherent, so its class is `Mandatory` (2) and it has no fee.
        return encode_weight(WEIGHT_ZERO) + b"\x02" + scale.u128.encode(0)
    weight = at.runtime.calls.weight(extrinsic.call)
    return (
        encode_weight(system.BASE_WEIGHT + weight)
        + b"\x00"
        + scale.u128.encode(fee_of(length, weight).total)
    )


def _query_fee_details(at: At, reader: Reader) -> bytes:
    """Return `FeeDetails`: an optional inclusion fee of three parts, and the tip."""
    extrinsic, length = _fee_arguments(at, reader)
    if isinstance(extrinsic, BareExtrinsic):
        return b"\x00" + scale.u128.encode(0)
    fee = fee_of(length, at.runtime.calls.weight(extrinsic.call), extrinsic.extra.tip)
    return b"\x01" + b"".join(map(scale.u128.encode, (fee.base, fee.length, fee.weight, fee.tip)))


def _dry_run_call(at: At, reader: Reader) -> bytes:
    """Run a call with an origin on top of the block's state, and discard the new state.

    Returns the effects of the call:

    Result< { Result<PostDispatchInfo, { PostDispatchInfo, DispatchError }>,
              Vec<event>, Option<message>, Vec<(destination, Vec<message>)> }, Error >
    """
    runtime = at.runtime
    arguments = CallReader(reader.data, runtime.calls, reader.pos)
    origin = origin_caller.read(arguments)
    call = runtime.calls.read(arguments)
    version = arguments.uint(4)
    reader.pos = arguments.pos
    if version != XCM_VERSION:
        return _VERSION_NOT_KNOWN
    storage = begin(at.state, at.header)
    system.note_extrinsic(storage, 0)
    before = dict(QUEUES.items(storage))
    try:
        with storage.transaction():
            outcome = runtime.calls.dispatch(storage, origin, call)
    except PubsubError:
        # In a block, this error would make the whole extrinsic invalid. The API has no such result.
        outcome = DispatchOutcome(runtime.calls.weight(call), Other())
    emitted = [event.encode() for event in events.events(storage)]
    forwarded = [*_downward(storage, before), *_upward(storage)]
    return b"\x00" + _encode_outcome(outcome) + _vec(emitted) + b"\x00" + _vec(forwarded)


def dry_run(at: At, extrinsic: bytes) -> bytes:
    """Return the `ApplyExtrinsicResult` of an extrinsic in the next block.

    `extrinsic` includes its length prefix. Raises `UndecodableExtrinsic`.
    """
    try:
        outcome = NextBlock(at.runtime, at.state, at.header).apply(extrinsic)
    except InvalidTransaction as error:
        return b"\x01" + error.encode()
    return b"\x00" + dispatch_result.encode(outcome.error)


def _encode_outcome(outcome: DispatchOutcome) -> bytes:
    """Encode `Result<PostDispatchInfo, DispatchErrorWithPostInfo>`."""
    info = b"\x01" + encode_weight(outcome.weight) + b"\x00"
    return b"\x00" + info if outcome.error is None else b"\x01" + info + outcome.error.encode()


def _vec(items: list[bytes]) -> bytes:
    return encode_compact(len(items)) + b"".join(items)


def _destination(location: Location, messages: list[bytes]) -> bytes:
    """Encode a destination with its messages, both as versioned XCM."""
    return bytes((XCM_VERSION,)) + Location.codec.encode(location) + _vec(messages)


def _downward(
    storage: Storage, before: Mapping[ParaId, list[InboundDownwardMessage]]
) -> Iterator[bytes]:
    """Yield each parachain as destination with its messages that were queued since `before`."""
    for para, queue in QUEUES.items(storage):
        new = [message.msg for message in queue[len(before.get(para, ())) :]]
        if new:
            yield _destination(Location(0, (Parachain(para),)), new)


def _upward(storage: Storage) -> list[bytes]:
    """Return the relay chain as destination with the messages that would be sent to it.

    The list is empty if there are none. Successive publications are packed into XCM messages in the
    same way as by the collator. Messages that are not XCM are left out, because the result's type
    cannot express them.
    """
    messages: list[bytes] = []
    for are_published, entries in groupby(
        sent_upward(storage), lambda entry: isinstance(entry, Published)
    ):
        if are_published:
            messages += pack(
                Publish(entry.key, entry.value, entry.ttl)
                for entry in entries
                if isinstance(entry, Published)
            )
        else:
            messages += (
                entry.message
                for entry in entries
                if not isinstance(entry, Published) and _is_xcm(entry.message)
            )
    return [_destination(PARENT, messages)] if messages else []


def _is_xcm(message: bytes) -> bool:
    """Return whether a message decodes as XCM."""
    try:
        decode_xcm(message)
    except ScaleError:
        return False
    return True


_VERSIONS: Final = encode_compact(len(METADATA_VERSIONS)) + b"".join(
    map(scale.u32.encode, METADATA_VERSIONS)
)
"""The answer of `Metadata_metadata_versions`."""
_FUNCTIONS: Final[dict[str, Callable[[At, Reader], bytes]]] = {
    "Core_version": lambda at, _: runtime_version(at).encode(),
    "Metadata_metadata": lambda at, _: encode_bytes(metadata(at, METADATA_VERSIONS[0])),
    "Metadata_metadata_at_version": _metadata_at_version,
    "Metadata_metadata_versions": lambda _, __: _VERSIONS,
    "TaggedTransactionQueue_validate_transaction": _validate_transaction,
    "AccountNonceApi_account_nonce": _account_nonce,
    "TransactionPaymentApi_query_info": _query_info,
    "TransactionPaymentApi_query_fee_details": _query_fee_details,
    "TransactionPaymentApi_query_weight_to_fee": lambda _, reader: scale.u128.encode(
        weight_fee(read_weight(reader))
    ),
    "TransactionPaymentApi_query_length_to_fee": lambda _, reader: scale.u128.encode(
        LENGTH_FEE * reader.uint(4)
    ),
    "DryRunApi_dry_run_call": _dry_run_call,
    _KEYS_TO_PROVE: lambda at, _: _keys_to_prove(at),
    _OFFSET: lambda at, _: _relay_parent_offset(at),
}
"""The functions by name. Each gets the block and a reader of its arguments."""
FUNCTIONS: Final = tuple(_FUNCTIONS)
"""The names of all functions."""
