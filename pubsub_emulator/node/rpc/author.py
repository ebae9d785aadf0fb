"""`author_*`, `payment_*`, `system_accountNextIndex`, `system_dryRun`: extrinsics and fees."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from pubsub_emulator.node import api
from pubsub_emulator.node.at import At
from pubsub_emulator.node.chain.block import StoredBlock
from pubsub_emulator.node.pool import MOST_EXTRINSIC, PoolChange, Refused, check
from pubsub_emulator.node.rpc.call import RpcCall, unsubscribes
from pubsub_emulator.node.rpc.errors import RpcError, invalid_params
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import AT, Param, hexadecimal, text
from pubsub_emulator.node.rpc.session import compact
from pubsub_emulator.node.rpc.transactions import Watcher
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.ss58 import BadAddress, decode_address
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.primitives.weights import read_weight
from pubsub_emulator.runtime.accounts.apply import CheckedExtrinsic
from pubsub_emulator.runtime.accounts.extrinsic import UndecodableExtrinsic

T = TypeVar("T")

SHORT: Final = 4096
"""The maximum size in bytes of an extrinsic that is checked in the event loop. A longer one can
contain many calls and take long to decode.
"""
EXTRINSIC: Final = Param("bytes", hexadecimal, aliases=("extrinsic", "encodedXt"))
_CLASSES: Final = ("normal", "operational", "mandatory")
Verdict = CheckedExtrinsic | Refused | None
"""The result of checking an extrinsic, or `None` if it has not been checked yet."""


def submit(call: RpcCall, extrinsic: bytes, verdict: Verdict = None) -> Hash:
    """Put an extrinsic into the chain's pool, request a step, and return the extrinsic's hash.

    `verdict` is the result of `when_checked`. Raises `RpcError` if the pool refuses the extrinsic.
    """
    node = call.node
    try:
        if isinstance(verdict, Refused):
            raise verdict
        name = node.pools[call.chain].submit(node.at(call.view.best), extrinsic, verdict)
    except Refused as refused:
        raise RpcError(refused.code, refused.message, data=refused.data) from refused
    node.control.ask()
    return name


def when_checked(call: RpcCall, extrinsic: bytes, then: Callable[[Verdict], T]) -> T | Awaitable[T]:
    """Call `then` with the verdict on an extrinsic and return its result.

    For a short extrinsic, `then` is called at once with the verdict `None`. A long one is checked
    in another thread first, so that it does not delay the event loop.
    """
    return then(None) if len(extrinsic) <= SHORT else _when_checked(call, extrinsic, then)


async def _when_checked(call: RpcCall, extrinsic: bytes, then: Callable[[Verdict], T]) -> T:
    """Check an extrinsic in another thread and call `then`.

    A verdict is only valid at the block of its check. If the chain has a new best block after the
    check, it is repeated.
    """

    def judge() -> Verdict:
        try:
            return check(call.node.at(best), extrinsic)
        except Refused as refused:
            return refused

    while True:
        # `judge` reads `best`, which each round sets again.
        best = call.view.best
        verdict = await call.node.control.beside(judge, executing=True)
        if call.view.best is best:
            return then(verdict)


@method("author_submitExtrinsic", EXTRINSIC)
def submit_extrinsic(call: RpcCall, extrinsic: bytes) -> Json:
    """Put an extrinsic into the pool and return its hash."""

    def then(verdict: Verdict) -> Json:
        extrinsic_hash = submit(call, extrinsic, verdict)
        call.node.tell_pooled(call.chain)
        return hexed(extrinsic_hash)

    return when_checked(call, extrinsic, then)


class Updates(Watcher):
    """A subscription to the status of a submitted extrinsic."""

    method = "author_extrinsicUpdate"
    group = "extrinsic"

    def pooled(self, change: PoolChange) -> None:
        """Send a change of status in the pool."""
        status: object = (
            {"usurped": hexed(change.by)} if change.kind == "usurped" and change.by else change.kind
        )
        if change.kind != "retracted":
            self.notify(compact(status))
        if change.kind in {"usurped", "dropped", "invalid"}:
            self.end()

    def included(self, block: StoredBlock, _index: int) -> None:
        """Send that a best block includes the extrinsic."""
        self.notify(compact({"inBlock": hexed(block.hash)}))

    def finalized(self, block: StoredBlock, _index: int) -> None:
        """Send that a final block includes the extrinsic, and end."""
        self.notify(compact({"finalized": hexed(block.hash)}))
        self.end()

    def retracted(self, block: StoredBlock) -> None:
        """Send that the extrinsic's block is no longer on the best chain."""
        self.notify(compact({"retracted": hexed(block.hash)}))


@method("author_submitAndWatchExtrinsic", EXTRINSIC, live=True)
def submit_and_watch(call: RpcCall, extrinsic: bytes) -> Json:
    """Put an extrinsic into the pool and subscribe to its status."""

    def then(verdict: Verdict) -> Json:
        name = submit(call, extrinsic, verdict)
        subscription = Updates(call.node.watches, call.chain, name)
        opened = call.open(subscription)
        call.node.watches.watch(call.chain, name, extrinsic, subscription)
        call.node.tell_pooled(call.chain)
        return opened

    return when_checked(call, extrinsic, then)


unsubscribes("author_unwatchExtrinsic", Updates.group)


@method("author_pendingExtrinsics")
def pending(call: RpcCall) -> Json:
    """Return the extrinsics in the pool that are ready for a block."""
    return [hexed(extrinsic) for extrinsic in call.node.pools[call.chain].pending()]


@method("system_accountNextIndex", Param("account", text), aliases=("account_nextIndex",))
def next_index(call: RpcCall, address: str) -> Json:
    """Return the next nonce of an account, counting its extrinsics in the pool."""
    try:
        account = decode_address(address)
    except BadAddress as error:
        raise invalid_params(str(error)) from error
    return call.node.pools[call.chain].next_index(call.node.at(call.view.best), account)


def _tried(call: RpcCall, extrinsic: bytes, at: bytes | None, run: Callable[[At], bytes]) -> bytes:
    """Call `run` with the block `at` and return its result.

    Raises `RpcError` 2 if `extrinsic`, which `run` reads, is too long or cannot be decoded.
    """
    if len(extrinsic) > MOST_EXTRINSIC:
        raise _cannot_try(f"more than {MOST_EXTRINSIC} bytes")
    try:
        return run(call.node.at(call.block(at)))
    except (api.ApiFailed, UndecodableExtrinsic) as error:
        raise _cannot_try(str(error)) from error


def _cannot_try(reason: str) -> RpcError:
    return RpcError(2, "Unable to dry run extrinsic", reason)


def _query(call: RpcCall, function: str, extrinsic: bytes, at: bytes | None) -> scale.Reader:
    """Call a fee function with an extrinsic and its length, and return a reader of its result."""
    data = extrinsic + scale.u32.encode(len(extrinsic))
    return scale.Reader(_tried(call, extrinsic, at, lambda where: api.call(where, function, data)))


@method("payment_queryInfo", EXTRINSIC, AT, executing=True)
def query_info(call: RpcCall, extrinsic: bytes, at: bytes | None) -> Json:
    """Return the weight and the fee of an extrinsic without its tip."""
    reader = _query(call, "TransactionPaymentApi_query_info", extrinsic, at)
    weight = read_weight(reader)
    shown = {"ref_time": weight.ref_time, "proof_size": weight.proof_size}
    return {"weight": shown, "class": _CLASSES[reader.u8()], "partialFee": str(reader.uint(16))}


@method("payment_queryFeeDetails", EXTRINSIC, AT, executing=True)
def query_fee_details(call: RpcCall, extrinsic: bytes, at: bytes | None) -> Json:
    """Return the parts of an extrinsic's fee."""
    reader = _query(call, "TransactionPaymentApi_query_fee_details", extrinsic, at)
    if not reader.boolean():
        return {"inclusionFee": None}
    names = ("baseFee", "lenFee", "adjustedWeightFee")
    return {"inclusionFee": {name: hex(reader.uint(16)) for name in names}}


@method("system_dryRun", EXTRINSIC, AT, aliases=("system_dryRunAt",), unsafe=True, executing=True)
def dry_run(call: RpcCall, extrinsic: bytes, at: bytes | None) -> Json:
    """Return the `ApplyExtrinsicResult` of an extrinsic in the next block."""
    return hexed(_tried(call, extrinsic, at, lambda where: api.dry_run(where, extrinsic)))
