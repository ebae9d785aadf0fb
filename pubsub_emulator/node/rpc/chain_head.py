"""`chainHead_v1_*`: follows of a chain, and operations on pinned blocks.

A follow reports all new blocks and pins them, so that they stay stored until the client unpins
them. Operations read pinned blocks and send their results as events of the follow.
"""

from collections.abc import Callable, Iterator
from functools import partial, wraps
from itertools import chain as chained
from typing import Final, TypeVar

from pubsub_emulator.node.at import runtime_version
from pubsub_emulator.node.chain.block import StoredBlock
from pubsub_emulator.node.chain.timeline import Advance, ChainView
from pubsub_emulator.node.rpc.call import RpcCall
from pubsub_emulator.node.rpc.errors import RpcError
from pubsub_emulator.node.rpc.legacy_state import CODE, run
from pubsub_emulator.node.rpc.method import Handler, Json, method
from pubsub_emulator.node.rpc.params import Param, block_hash, boolean, hexadecimal, list_of, text
from pubsub_emulator.node.rpc.session import Overflow, RpcSubscription, compact
from pubsub_emulator.node.rpc.storage_items import CHILD_TRIE, UNPAGED_ITEMS, Query, find, trie_of
from pubsub_emulator.node.types.values import camel
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.definitions import RuntimeVersion

T = TypeVar("T")
Event = dict[str, object]

MOST_FOLLOWS: Final = 4
"""The maximum number of follows of a connection."""
MOST_PINS: Final = 512
"""The maximum number of blocks that a follow pins. A follow with more ends."""
MOST_OPERATIONS: Final = 16
"""The maximum size of all running operations of a follow. A storage operation has the size of its
number of items, and any other operation has the size 1.
"""
INITIAL: Final = 16
"""The maximum number of final blocks that the first event reports."""
PAGE_ITEMS: Final = 256
"""The maximum number of items in one event of a storage listing."""
PAGE_BYTES: Final = 1_048_576
"""The maximum number of hexadecimal digits in one event of a storage listing."""
LIMIT_REACHED: Final = {"result": "limitReached"}
"""The answer if the operations of the follow leave no room."""


def runtime_json(version: RuntimeVersion) -> dict[str, object]:
    """Return a runtime version in the form that the events of a follow contain."""
    names = ("spec_name", "impl_name", "spec_version", "impl_version", "transaction_version")
    spec = {camel(name): getattr(version, name) for name in names}
    return {
        "type": "valid",
        "spec": {**spec, "apis": {hexed(name): number for name, number in version.apis}},
    }


class Follow(RpcSubscription):
    """One follow of a chain, with its pinned blocks and running operations."""

    method = "chainHead_v1_followEvent"
    group = "chainHead"
    overflow = Overflow.STOP

    def __init__(self, call: RpcCall, *, with_runtime: bool) -> None:
        super().__init__(call.chain)
        self.with_runtime = with_runtime
        self.pinned: dict[Hash, StoredBlock] = {}
        self.operations: dict[str, Operation] = {}
        """The running and paused operations by id."""
        self._node = call.node
        self._best: StoredBlock | None = None
        """The best block that was reported last."""
        self._count = 0
        """The number of operations so far, for their ids."""

    # Events

    def begin(self, view: ChainView) -> None:
        """Send the first events: some final blocks, all later blocks, and the best block."""
        first = max(view.since, view.final.number - INITIAL + 1, 0)
        known = (view.at_height(number) for number in range(first, view.final.number + 1))
        final = [block for block in known if block is not None]
        for block in final:
            self._pin(block)
        event: Event = {
            "event": "initialized",
            "finalizedBlockHashes": [hexed(block.hash) for block in final],
        }
        if self.with_runtime:
            event["finalizedBlockRuntime"] = runtime_json(
                runtime_version(self._node.at(view.final))
            )
        self.notify(compact(event))
        for number in range(view.final.number + 1, view.best.number + 1):
            self._report(view.heights[number])
        self._report_best(view.best)

    def advanced(self, advance: Advance) -> None:
        """Send new, best and final blocks.

        A rewind ends the follow, because it can undo blocks that were reported as final.
        """
        if advance.rewound:
            self.stop()
            return
        change = advance.chains[self.chain]
        for block in change.new:
            self._report(block)
        if change.new:
            self._report_best(change.view.best)
        if change.finalized:
            hashes = [hexed(block.hash) for block in change.finalized]
            self.notify(
                compact(
                    {"event": "finalized", "finalizedBlockHashes": hashes, "prunedBlockHashes": []}
                )
            )
        if len(self.pinned) > MOST_PINS:
            self.stop()

    def stop(self) -> None:
        """Send `stop` and end. The client has to follow again."""
        self.notify('{"event":"stop"}')
        self.end()

    def silent(self) -> None:
        """Send the best block again.

        polkadot-api considers a follow without events to be dead.
        """
        if self._best is not None:
            self._report_best(self._best)

    def closed(self) -> None:
        """Unpin all blocks and drop all operations."""
        for block in self.pinned.values():
            self._node.timeline.unpin(block)
        self.pinned.clear()
        self.operations.clear()

    def _report(self, block: StoredBlock) -> None:
        """Report a new block, with its runtime if the code differs from that of its parent."""
        self._pin(block)
        above = block.header.parent_hash
        event: Event = {
            "event": "newBlock",
            "blockHash": hexed(block.hash),
            "parentBlockHash": hexed(above),
        }
        if self.with_runtime:
            parent = self._node.timeline.block(self.chain, above)
            changed = parent is not None and parent.state.top.get(CODE) != block.state.top.get(CODE)
            event["newRuntime"] = (
                runtime_json(runtime_version(self._node.at(block))) if changed else None
            )
        self.notify(compact(event))

    def _report_best(self, block: StoredBlock) -> None:
        self._best = block
        self.notify(f'{{"event":"bestBlockChanged","bestBlockHash":"{hexed(block.hash)}"}}')

    def _pin(self, block: StoredBlock) -> None:
        if block.hash not in self.pinned:
            self.pinned[block.hash] = block
            self._node.timeline.pin(block)

    # For the methods below

    def pinned_block(self, name: bytes) -> StoredBlock:
        """Return a pinned block. Raises `RpcError` -32801 if it is not pinned."""
        block = self.pinned.get(Hash(name))
        if block is None:
            raise RpcError(-32801, "Invalid block hash", f"block {hexed(name)} is not pinned")
        return block

    def unpin(self, names: list[bytes]) -> None:
        """Unpin all these blocks, or none of them if one is invalid.

        Raises `RpcError` -32801 or -32804.
        """
        if len(dict.fromkeys(names)) < len(names):
            raise RpcError(-32804, "Duplicate hashes", "a block hash is listed twice")
        for block in [self.pinned_block(name) for name in names]:
            del self.pinned[block.hash]
            self._node.timeline.unpin(block)

    async def beside(self, work: Callable[[], T]) -> T:
        """Call `work`, which runs the runtime, in another thread."""
        return await self._node.control.beside(work, executing=True)

    def room_for_operations(self) -> int:
        """Return the maximum size of further operations."""
        return MOST_OPERATIONS - sum(operation.size for operation in self.operations.values())

    def operate(self, operation: "Operation") -> str:
        """Start an operation and return its id."""
        self._count += 1
        operation.id = f"{self.id}o{self._count}"
        self.operations[operation.id] = operation
        operation.go()
        return operation.id


class Operation:
    """One operation of a follow. Its `size` counts towards `MOST_OPERATIONS`."""

    def __init__(
        self, follow: Follow, events: Iterator[Event] | Callable[[], Event], size: int = 1
    ) -> None:
        """Prepare an operation.

        `events` are its events in order, or a function that computes the only one.
        """
        self.id = ""
        self.size = size
        self.waiting = False
        """Whether it is paused until the client continues it."""
        self._follow = follow
        self._events = events

    def go(self) -> None:
        """Run in the background until the end or the next pause."""
        self.waiting = False
        if self._follow.session is not None:
            self._follow.session.outlet.spawn(self._run())

    async def _run(self) -> None:
        """Send the events of the operation until it ends, pauses, or is stopped."""
        events = self._events
        if not isinstance(events, Iterator):
            events = iter((await self._follow.beside(events),))
        for event in events:
            if self._follow.operations.get(self.id) is not self:
                return
            if event["event"] == "operationWaitingForContinue":
                self.waiting = True
            self._follow.notify(
                compact({"event": event.pop("event"), "operationId": self.id, **event})
            )
            if self.waiting:
                return
            await self._follow.room()
        self._follow.operations.pop(self.id, None)


FOLLOW: Final = Param("followSubscription", text)
HASH: Final = Param("hash", block_hash)
OPERATION: Final = Param("operationId", text)


def of_follow(name: str, *params: Param, without: Json = None) -> Callable[[Handler], Handler]:
    """Declare a method on a follow.

    The decorated function receives the call, the `Follow` and the parameters. The method returns
    `without` if there is no such follow.
    """

    def declare(run: Handler) -> Handler:
        @method(name, FOLLOW, *params, live=True)
        @wraps(run)
        def find_and_run(call: RpcCall, wanted: str, *arguments: object) -> Json:
            follow = None if call.session is None else call.session.find(wanted, Follow.group)
            return run(call, follow, *arguments) if isinstance(follow, Follow) else without

        return run

    return declare


@method("chainHead_v1_follow", Param("withRuntime", boolean), live=True)
def begin_follow(call: RpcCall, with_runtime: bool) -> Json:
    """Open a follow and return its id. Its events report the blocks of the chain."""
    if call.session is not None:
        follows = sum(
            isinstance(subscription, Follow) for subscription in call.session.subscriptions.values()
        )
        if follows >= MOST_FOLLOWS:
            raise RpcError(-32800, "Maximum number of chainHead_follow has been reached")
    subscription = Follow(call, with_runtime=with_runtime)
    opened = call.open(subscription)
    subscription.begin(call.view)
    return opened


@method("chainHead_v1_unfollow", FOLLOW, live=True)
def unfollow(call: RpcCall, name: str) -> None:
    """End a follow and unpin its blocks."""
    if call.session is not None:
        call.session.remove(name, Follow.group)


@of_follow("chainHead_v1_header", HASH)
def header(_call: RpcCall, follow: Follow, block: bytes) -> Json:
    """Return the SCALE bytes of a pinned block's header."""
    return hexed(follow.pinned_block(block).header.encode())


@of_follow("chainHead_v1_body", HASH, without=LIMIT_REACHED)
def body(call: RpcCall, follow: Follow, block: bytes) -> Json:
    """Start an operation that sends a pinned block's extrinsics."""
    pinned = follow.pinned_block(block)
    if follow.room_for_operations() < 1:
        return LIMIT_REACHED
    events: list[Event] = [
        {"event": "operationBodyDone", "value": [hexed(extrinsic) for extrinsic in pinned.body]}
    ]
    return _started(call, follow, Operation(follow, iter(events)))


def _started(call: RpcCall, follow: Follow, operation: Operation, **more: int) -> Json:
    """Start an operation and return the answer, with the members `more`."""
    # The operation's events must follow the answer, which contains its id.
    call.hold(follow)
    return {"result": "started", "operationId": follow.operate(operation), **more}


_ARGUMENTS: Final = (Param("function", text), Param("callParameters", hexadecimal))


@of_follow("chainHead_v1_call", HASH, *_ARGUMENTS, without=LIMIT_REACHED)
def call_runtime(call: RpcCall, follow: Follow, block: bytes, function: str, data: bytes) -> Json:
    """Start an operation that calls a runtime function on a pinned block."""
    pinned = follow.pinned_block(block)
    if not follow.with_runtime:
        raise RpcError(-32802, "Invalid runtime call", "the follow was begun without runtime")
    if follow.room_for_operations() < 1:
        return LIMIT_REACHED
    work = partial(_call_event, call, pinned, function, data)
    return _started(call, follow, Operation(follow, work))


def _call_event(call: RpcCall, block: StoredBlock, function: str, data: bytes) -> Event:
    """Call a runtime function and return the event with its result or its error."""
    try:
        return {"event": "operationCallDone", "output": hexed(run(call, block, function, data))}
    except RpcError as error:
        return {"event": "operationError", "error": error.message}


@of_follow("chainHead_v1_storage", HASH, UNPAGED_ITEMS, CHILD_TRIE, without=LIMIT_REACHED)
def storage(
    call: RpcCall, follow: Follow, block: bytes, items: list[Query], child: bytes | None
) -> Json:
    """Start an operation that sends storage entries of a pinned block.

    Items beyond the limit of operations are discarded; the answer says how many.
    """
    pinned = follow.pinned_block(block)
    accepted = items[: max(follow.room_for_operations(), 0)]
    if items and not accepted:
        return LIMIT_REACHED
    # A request for no items is an operation as well, which ends at once.
    size = max(len(accepted), 1)
    operation = Operation(follow, _storage_events(pinned, accepted, child), size)
    return _started(call, follow, operation, discardedItems=len(items) - len(accepted))


def _storage_events(block: StoredBlock, items: list[Query], child: bytes | None) -> Iterator[Event]:
    """Yield the events of a storage operation.

    Single entries come first, in one event. Listings are sent in pages. After each page but the
    last, the operation waits until the client continues it.
    """
    trie = trie_of(block, child)
    simple = [item for item in items if not item.lists]
    page = list(chained.from_iterable(find(trie, item) for item in simple))
    if page:
        yield {"event": "operationStorageItems", "items": page}
    page = []
    page_size = 0
    for entry in chained.from_iterable(find(trie, item) for item in items if item.lists):
        entry_size = sum(map(len, entry.values()))
        if page and (len(page) == PAGE_ITEMS or page_size + entry_size > PAGE_BYTES):
            yield {"event": "operationStorageItems", "items": page}
            yield {"event": "operationWaitingForContinue"}
            page = []
            page_size = 0
        page.append(entry)
        page_size += entry_size
    if page:
        yield {"event": "operationStorageItems", "items": page}
    yield {"event": "operationStorageDone"}


@of_follow("chainHead_v1_continue", OPERATION)
def go_on(_call: RpcCall, follow: Follow, name: str) -> None:
    """Continue a paused storage operation. Raises `RpcError` -32803 if it is not paused."""
    operation = follow.operations.get(name)
    if operation is not None:
        if not operation.waiting:
            raise RpcError(
                -32803, "Invalid continue call", "the operation does not wait to be continued"
            )
        operation.go()


@of_follow("chainHead_v1_stopOperation", OPERATION)
def stop_operation(_call: RpcCall, follow: Follow, name: str) -> None:
    """Stop an operation. It sends no more events."""
    follow.operations.pop(name, None)


def _hashes(value: object) -> list[bytes]:
    return list_of(block_hash)(value) if isinstance(value, list) else [block_hash(value)]


@of_follow("chainHead_v1_unpin", Param("hashOrHashes", _hashes))
def unpin(_call: RpcCall, follow: Follow, hashes: list[bytes]) -> None:
    """Unpin one or several blocks."""
    follow.unpin(hashes)
