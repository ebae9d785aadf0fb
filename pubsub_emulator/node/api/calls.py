"""The functions by name: arguments from SCALE, what is asked about a block, the answer as SCALE."""

from collections.abc import Callable
from typing import Final

from pubsub_emulator.node.api import dry_runs
from pubsub_emulator.node.at import METADATA_VERSIONS, At, metadata, runtime_version
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.scale import Reader, encode_bytes, encode_compact
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, encode_weight, read_weight
from pubsub_emulator.runtime.accounts.chain import NextBlock
from pubsub_emulator.runtime.accounts.extrinsic import BareExtrinsic, SignedExtrinsic, UndecodableExtrinsic, decode
from pubsub_emulator.runtime.accounts.transaction_payment import LENGTH_FEE, fee_of, weight_fee
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import BASE_WEIGHT
from pubsub_emulator.runtime.framework.validity import InvalidTransaction


class UnknownFunction(PubsubError):
    """A function that no runtime API of this chain has."""


class ApiFailed(PubsubError):
    """Arguments that a function cannot read."""


def call(at: At, name: str, data: bytes) -> bytes:
    """Call function `name` with the SCALE of its arguments.

    Raises `UnknownFunction`, and `ApiFailed` for arguments that it cannot read.
    """
    function = _FUNCTIONS.get(name)
    if function is None:
        raise UnknownFunction(f"Exported method {name} is not found")
    reader = Reader(data)
    try:
        answer = function(at, reader)
        reader.end()
    except ScaleError as error:
        raise ApiFailed(f"{name}: {error}") from error
    return answer


def _version(at: At, reader: Reader) -> bytes:
    del reader
    return runtime_version(at).encode()


def _metadata(at: At, reader: Reader) -> bytes:
    del reader
    return encode_bytes(metadata(at, METADATA_VERSIONS[0]))


def _metadata_at_version(at: At, reader: Reader) -> bytes:
    version = reader.uint(4)
    if version not in METADATA_VERSIONS:
        return b"\x00"
    return b"\x01" + encode_bytes(metadata(at, version))


def _metadata_versions(at: At, reader: Reader) -> bytes:
    del at, reader
    return encode_compact(len(METADATA_VERSIONS)) + b"".join(scale.u32.encode(version) for version in METADATA_VERSIONS)


def _validate_transaction(at: At, reader: Reader) -> bytes:
    source = reader.u8()
    if source > 2:
        raise ScaleError(f"no transaction source {source}")
    raw = _extrinsic(reader)
    reader.take(32)
    try:
        return b"\x00" + NextBlock(at.runtime, at.state, at.header).validate(raw).encode()
    except InvalidTransaction as error:
        return b"\x01" + error.encode()
    except UndecodableExtrinsic as error:
        raise ScaleError(str(error)) from error


def _account_nonce(at: At, reader: Reader) -> bytes:
    who = AccountId(reader.take(32))
    return scale.u32.encode(system.account(Storage(at.state), who).nonce)


def _extrinsic(reader: Reader) -> bytes:
    """The next extrinsic, with its length."""
    start = reader.pos
    reader.bytes_()
    return reader.data[start : reader.pos]


def _priced(at: At, reader: Reader) -> tuple[SignedExtrinsic | BareExtrinsic, int]:
    """The next extrinsic, and the length that the caller says it has."""
    try:
        extrinsic = decode(_extrinsic(reader), at.runtime.calls)
    except UndecodableExtrinsic as error:
        raise ScaleError(str(error)) from error
    return extrinsic, reader.uint(4)


def _query_info(at: At, reader: Reader) -> bytes:
    extrinsic, length = _priced(at, reader)
    if isinstance(extrinsic, BareExtrinsic):
        return encode_weight(WEIGHT_ZERO) + b"\x02" + scale.u128.encode(0)
    weight = at.runtime.calls.weight(extrinsic.call)
    partial = fee_of(length, weight).total
    return encode_weight(BASE_WEIGHT + weight) + b"\x00" + scale.u128.encode(partial)


def _query_fee_details(at: At, reader: Reader) -> bytes:
    extrinsic, length = _priced(at, reader)
    if isinstance(extrinsic, BareExtrinsic):
        return b"\x00" + scale.u128.encode(0)
    fee = fee_of(length, at.runtime.calls.weight(extrinsic.call), extrinsic.extra.tip)
    parts = (fee.base, fee.length, fee.weight, fee.tip)
    return b"\x01" + b"".join(scale.u128.encode(part) for part in parts)


def _query_weight_to_fee(at: At, reader: Reader) -> bytes:
    del at
    return scale.u128.encode(weight_fee(read_weight(reader)))


def _query_length_to_fee(at: At, reader: Reader) -> bytes:
    del at
    return scale.u128.encode(LENGTH_FEE * reader.uint(4))


def _dry_run_call(at: At, reader: Reader) -> bytes:
    return dry_runs.dry_run_call(at.runtime, at.state, at.header, reader)


_FUNCTIONS: Final[dict[str, Callable[[At, Reader], bytes]]] = {
    "Core_version": _version,
    "Metadata_metadata": _metadata,
    "Metadata_metadata_at_version": _metadata_at_version,
    "Metadata_metadata_versions": _metadata_versions,
    "TaggedTransactionQueue_validate_transaction": _validate_transaction,
    "AccountNonceApi_account_nonce": _account_nonce,
    "TransactionPaymentApi_query_info": _query_info,
    "TransactionPaymentApi_query_fee_details": _query_fee_details,
    "TransactionPaymentApi_query_weight_to_fee": _query_weight_to_fee,
    "TransactionPaymentApi_query_length_to_fee": _query_length_to_fee,
    "DryRunApi_dry_run_call": _dry_run_call,
}
FUNCTIONS: Final = tuple(_FUNCTIONS)
"""Their names."""
