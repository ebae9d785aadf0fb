"""`transaction_v1_*` and `transactionWatch_v1_*`: broadcasts of extrinsics and their status."""

from inspect import iscoroutine
from typing import Final

from pubsub_emulator.node.chain.block import StoredBlock
from pubsub_emulator.node.chain.timeline import Advance
from pubsub_emulator.node.pool import PoolChange
from pubsub_emulator.node.rpc.author import Verdict, submit, when_checked
from pubsub_emulator.node.rpc.call import RpcCall
from pubsub_emulator.node.rpc.errors import INVALID_PARAMS, RpcError
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import Param, hexadecimal, text
from pubsub_emulator.node.rpc.session import RpcSubscription, compact
from pubsub_emulator.node.rpc.transactions import Watcher
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed

TRANSACTION: Final = Param("transaction", hexadecimal)
MOST_BROADCASTS: Final = 16
"""The maximum number of broadcasts of a connection."""


def _place(block: StoredBlock, index: int) -> Json:
    return {"hash": hexed(block.hash), "index": index}


class TransactionWatch(Watcher):
    """A subscription to the status of a submitted extrinsic."""

    method = "transactionWatch_v1_watchEvent"
    group = "transactionWatch"

    def pooled(self, change: PoolChange) -> None:
        """Send a change of status in the pool."""
        match change.kind:
            case "ready" | "future":
                self.notify('{"event":"validated"}')
            case "dropped":
                self.notify(compact({"event": "dropped", "error": "the pool has no room for it"}))
                self.end()
            case "usurped" | "invalid":
                reason = (
                    "another extrinsic took its place"
                    if change.kind == "usurped"
                    else "it became invalid"
                )
                self.notify(compact({"event": "invalid", "error": reason}))
                self.end()

    def included(self, block: StoredBlock, index: int) -> None:
        """Send that a best block includes the extrinsic."""
        self.notify(compact({"event": "bestChainBlockIncluded", "block": _place(block, index)}))

    def finalized(self, block: StoredBlock, index: int) -> None:
        """Send that a final block includes the extrinsic, and end."""
        self.notify(compact({"event": "finalized", "block": _place(block, index)}))
        self.end()

    def retracted(self, _block: StoredBlock) -> None:
        """Send that the extrinsic's block is no longer on the best chain."""
        self.notify('{"event":"bestChainBlockIncluded","block":null}')


@method("transactionWatch_v1_submitAndWatch", TRANSACTION, live=True)
def submit_and_watch(call: RpcCall, extrinsic: bytes) -> Json:
    """Put an extrinsic into the pool and subscribe to its status.

    If the pool refuses the extrinsic, the call succeeds and the subscription sends an event.
    """
    # The subscription must exist before the pool can refuse the extrinsic.
    subscription = TransactionWatch(call.node.watches, call.chain, blake2_256(extrinsic))
    opened = call.open(subscription)

    def then(verdict: Verdict) -> Json:
        try:
            name = submit(call, extrinsic, verdict)
        except RpcError as error:
            reason = error.message if error.data is None else f"{error.message}: {error.data}"
            subscription.notify(compact({"event": "invalid", "error": reason}))
            subscription.end()
        else:
            call.node.watches.watch(call.chain, name, extrinsic, subscription)
            call.node.tell_pooled(call.chain)
        return opened

    return when_checked(call, extrinsic, then)


@method("transactionWatch_v1_unwatch", Param("subscription", text), live=True)
def unwatch(call: RpcCall, name: str) -> None:
    """End a subscription. Raises `RpcError` -32602 if there is none."""
    if call.session is None or not call.session.remove(name, TransactionWatch.group):
        raise RpcError(INVALID_PARAMS, "Invalid subscription", f"{name} is not a subscription")


class Broadcast(RpcSubscription):
    """An extrinsic that is submitted again after each block. It has no events."""

    method = ""
    group = "broadcast"

    def __init__(self, call: RpcCall, extrinsic: bytes) -> None:
        super().__init__(call.chain)
        self._call = RpcCall(call.node, call.chain, None)
        self._extrinsic = extrinsic

    def attempt(self) -> None:
        """Put the extrinsic into the pool if it is valid now."""
        later = when_checked(self._call, self._extrinsic, self._try)
        if iscoroutine(later) and self.session is not None:
            self.session.outlet.spawn(later)

    def _try(self, verdict: Verdict) -> None:
        """Submit the extrinsic and ignore a refusal: it may be valid after the next block."""
        try:
            submit(self._call, self._extrinsic, verdict)
        except RpcError:
            return
        self._call.node.tell_pooled(self.chain)

    def advanced(self, advance: Advance) -> None:
        """Try again after a new best block."""
        if advance.rewound or advance.chains[self.chain].new:
            self.attempt()


@method("transaction_v1_broadcast", TRANSACTION, live=True)
def broadcast(call: RpcCall, extrinsic: bytes) -> Json:
    """Submit an extrinsic after each block until the client stops it.

    Returns null if the connection has the maximum number of broadcasts.
    """
    if call.session is None:
        return None
    broadcasts = sum(
        isinstance(subscription, Broadcast) for subscription in call.session.subscriptions.values()
    )
    if broadcasts >= MOST_BROADCASTS:
        return None
    subscription = Broadcast(call, extrinsic)
    opened = call.open(subscription)
    subscription.attempt()
    return opened


@method("transaction_v1_stop", Param("operationId", text), live=True)
def stop(call: RpcCall, name: str) -> None:
    """Stop a broadcast. Raises `RpcError` -32602 if there is none."""
    if call.session is None or not call.session.remove(name, Broadcast.group):
        raise RpcError(INVALID_PARAMS, "Invalid operation id", f"{name} is not a broadcast")
