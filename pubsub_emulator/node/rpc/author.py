"""`author_*`, `payment_*`, `system_accountNextIndex`, `system_dryRun`: extrinsics and what they cost."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from pubsub_emulator.node import api
from pubsub_emulator.node.at import At
from pubsub_emulator.node.chain.block import Block
from pubsub_emulator.node.pool import MOST_EXTRINSIC, PoolChange, Refused, check
from pubsub_emulator.node.rpc.call import Call, unsubscribes
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
from pubsub_emulator.runtime.accounts.apply import Checked
from pubsub_emulator.runtime.accounts.extrinsic import UndecodableExtrinsic

T = TypeVar("T")

SHORT: Final = 4096
"""Bytes of an extrinsic that is checked at once; one with more can hold many calls."""
EXTRINSIC: Final = Param("bytes", hexadecimal, aliases=("extrinsic", "encodedXt"))
_CLASSES: Final = ("normal", "operational", "mandatory")


Verdict = Checked | Refused | None
"""Of an extrinsic that was checked beside the event loop, `None` where it is still to be checked."""


def submit(call: Call, extrinsic: bytes, verdict: Verdict = None) -> Hash:
    """Put an extrinsic into the chain's pool and ask for a step. Raises `RpcError`."""
    node = call.node
    try:
        if isinstance(verdict, Refused):
            raise verdict
        name = node.pools[call.chain].submit(node.at(call.view.best), extrinsic, verdict)
    except Refused as refused:
        raise RpcError(refused.code, refused.message, refused.data) from refused
    node.control.ask()
    return name


def when_checked(call: Call, extrinsic: bytes, then: Callable[[Verdict], T]) -> T | Awaitable[T]:
    """The result of `then`: at once for a short extrinsic, else when it was checked beside the event loop."""
    return then(None) if len(extrinsic) <= SHORT else _when_checked(call, extrinsic, then)


async def _when_checked(call: Call, extrinsic: bytes, then: Callable[[Verdict], T]) -> T:
    def judge() -> Verdict:
        try:
            return check(call.node.at(best), extrinsic)
        except Refused as refused:
            return refused

    while True:
        best = call.view.best
        verdict = await call.node.control.beside(judge, executing=True)
        if call.view.best is best:
            return then(verdict)


@method("author_submitExtrinsic", EXTRINSIC)
def submit_extrinsic(call: Call, extrinsic: bytes) -> Json:
    """Put an extrinsic into the pool; returns its hash."""

    def then(verdict: Verdict) -> Json:
        name = submit(call, extrinsic, verdict)
        call.node.tell_pooled(call.chain)
        return hexed(name)

    return when_checked(call, extrinsic, then)


class Updates(Watcher):
    """The status updates of an extrinsic."""

    method = "author_extrinsicUpdate"
    group = "extrinsic"

    def pooled(self, change: PoolChange) -> None:
        """The pool's status of it has changed."""
        status: object = {"usurped": hexed(change.by)} if change.kind == "usurped" and change.by else change.kind
        if change.kind != "retracted":
            self.notify(compact(status))
        if change.kind in {"usurped", "dropped", "invalid"}:
            self.end()

    def included(self, block: Block, _index: int) -> None:
        """It is in a best block."""
        self.notify(compact({"inBlock": hexed(block.hash)}))

    def finalized(self, block: Block, _index: int) -> None:
        """It is in a final block."""
        self.notify(compact({"finalized": hexed(block.hash)}))
        self.end()

    def retracted(self, block: Block) -> None:
        """Its block was left."""
        self.notify(compact({"retracted": hexed(block.hash)}))


@method("author_submitAndWatchExtrinsic", EXTRINSIC, live=True)
def submit_and_watch(call: Call, extrinsic: bytes) -> Json:
    """Put an extrinsic into the pool and tell what becomes of it."""

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
def pending(call: Call) -> Json:
    """Extrinsics that are ready to be part of a block."""
    return [hexed(extrinsic) for extrinsic in call.node.pools[call.chain].pending()]


@method("system_accountNextIndex", Param("account", text), aliases=("account_nextIndex",))
def next_index(call: Call, address: str) -> Json:
    """The nonce after those that wait in the pool."""
    try:
        account = decode_address(address)
    except BadAddress as error:
        raise invalid_params(str(error)) from error
    return call.node.pools[call.chain].next_index(call.node.at(call.view.best), account)


def _tried(call: Call, extrinsic: bytes, at: bytes | None, run: Callable[[At], bytes]) -> bytes:
    """What `run` makes of an extrinsic at a block. Raises `RpcError` 2 for one that is too long or does not decode."""
    why = f"more than {MOST_EXTRINSIC} bytes"
    if len(extrinsic) <= MOST_EXTRINSIC:
        try:
            return run(call.node.at(call.block(at)))
        except (api.ApiFailed, UndecodableExtrinsic) as error:
            why = str(error)
    raise RpcError(2, "Unable to dry run extrinsic", why)


def _query(call: Call, function: str, extrinsic: bytes, at: bytes | None) -> scale.Reader:
    data = extrinsic + scale.u32.encode(len(extrinsic))
    return scale.Reader(_tried(call, extrinsic, at, lambda where: api.call(where, function, data)))


@method("payment_queryInfo", EXTRINSIC, AT, executing=True)
def query_info(call: Call, extrinsic: bytes, at: bytes | None) -> Json:
    """The weight and the fee of an extrinsic, without its tip."""
    reader = _query(call, "TransactionPaymentApi_query_info", extrinsic, at)
    weight = read_weight(reader)
    shown = {"ref_time": weight.ref_time, "proof_size": weight.proof_size}
    return {"weight": shown, "class": _CLASSES[reader.u8()], "partialFee": str(reader.uint(16))}


@method("payment_queryFeeDetails", EXTRINSIC, AT, executing=True)
def query_fee_details(call: Call, extrinsic: bytes, at: bytes | None) -> Json:
    """The parts of an extrinsic's fee."""
    reader = _query(call, "TransactionPaymentApi_query_fee_details", extrinsic, at)
    if not reader.boolean():
        return {"inclusionFee": None}
    names = ("baseFee", "lenFee", "adjustedWeightFee")
    return {"inclusionFee": {name: hex(reader.uint(16)) for name in names}}


@method("system_dryRun", EXTRINSIC, AT, aliases=("system_dryRunAt",), unsafe=True, executing=True)
def dry_run(call: Call, extrinsic: bytes, at: bytes | None) -> Json:
    """The `ApplyExtrinsicResult` of an extrinsic in the next block."""
    return hexed(_tried(call, extrinsic, at, lambda where: api.dry_run(where, extrinsic)))
