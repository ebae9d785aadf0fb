"""The functions by name: arguments from SCALE, what is asked about a block, the answer as SCALE."""

from collections.abc import Callable
from typing import Final

from pubsub_emulator.node.api.dry_runs import dry_run_call
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
from pubsub_emulator.runtime.framework.validity import InvalidTransaction


class UnknownFunction(PubsubError):
    """A function that no runtime API of this chain has."""


class ApiFailed(PubsubError):
    """Arguments that a function cannot read."""


def call(at: At, name: str, data: bytes) -> bytes:
    """Call a function with the SCALE of its arguments. Raises `UnknownFunction`, and `ApiFailed` for bad arguments."""
    function = _FUNCTIONS.get(name)
    if function is None:
        raise UnknownFunction(f"Exported method {name} is not found")
    reader = Reader(data)
    try:
        answer = function(at, reader)
        reader.end()
    except (ScaleError, UndecodableExtrinsic) as error:
        raise ApiFailed(f"{name}: {error}") from error
    return answer


def _metadata_at_version(at: At, reader: Reader) -> bytes:
    version = reader.uint(4)
    return b"\x01" + encode_bytes(metadata(at, version)) if version in METADATA_VERSIONS else b"\x00"


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
    return decode(_extrinsic(reader), at.runtime.calls), reader.uint(4)


def _query_info(at: At, reader: Reader) -> bytes:
    extrinsic, length = _priced(at, reader)
    if isinstance(extrinsic, BareExtrinsic):
        return encode_weight(WEIGHT_ZERO) + b"\x02" + scale.u128.encode(0)
    weight = at.runtime.calls.weight(extrinsic.call)
    return encode_weight(system.BASE_WEIGHT + weight) + b"\x00" + scale.u128.encode(fee_of(length, weight).total)


def _query_fee_details(at: At, reader: Reader) -> bytes:
    extrinsic, length = _priced(at, reader)
    if isinstance(extrinsic, BareExtrinsic):
        return b"\x00" + scale.u128.encode(0)
    fee = fee_of(length, at.runtime.calls.weight(extrinsic.call), extrinsic.extra.tip)
    return b"\x01" + b"".join(map(scale.u128.encode, (fee.base, fee.length, fee.weight, fee.tip)))


_VERSIONS: Final = encode_compact(len(METADATA_VERSIONS)) + b"".join(map(scale.u32.encode, METADATA_VERSIONS))
_FUNCTIONS: Final[dict[str, Callable[[At, Reader], bytes]]] = {
    "Core_version": lambda at, _: runtime_version(at).encode(),
    "Metadata_metadata": lambda at, _: encode_bytes(metadata(at, METADATA_VERSIONS[0])),
    "Metadata_metadata_at_version": _metadata_at_version,
    "Metadata_metadata_versions": lambda _, __: _VERSIONS,
    "TaggedTransactionQueue_validate_transaction": _validate_transaction,
    "AccountNonceApi_account_nonce": _account_nonce,
    "TransactionPaymentApi_query_info": _query_info,
    "TransactionPaymentApi_query_fee_details": _query_fee_details,
    "TransactionPaymentApi_query_weight_to_fee": lambda _, reader: scale.u128.encode(weight_fee(read_weight(reader))),
    "TransactionPaymentApi_query_length_to_fee": lambda _, reader: scale.u128.encode(LENGTH_FEE * reader.uint(4)),
    "DryRunApi_dry_run_call": dry_run_call,
}
FUNCTIONS: Final = tuple(_FUNCTIONS)
"""Their names."""
