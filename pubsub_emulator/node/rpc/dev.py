"""`dev_*` (`--dev`): blocks on request, storage, time, rewinds and snapshots.

Requests that cannot be fulfilled are errors with code 1.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from pubsub_emulator.emulator.network import actions
from pubsub_emulator.node.chain.block import RELAY, StoredBlock
from pubsub_emulator.node.pool import Refused
from pubsub_emulator.node.rpc.call import RpcCall, attempt
from pubsub_emulator.node.rpc.errors import refused
from pubsub_emulator.node.rpc.legacy_state import KEYS
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.node import StoredSnapshot
from pubsub_emulator.node.rpc.params import (
    AT,
    Pair,
    Param,
    Read,
    block_hash,
    fields,
    hexadecimal,
    list_of,
    pairs_of,
    para,
    text,
    u32,
)
from pubsub_emulator.node.types.rows import storage_pairs
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.storage import LAST_RELAY_PARENT

T = TypeVar("T")
ByPara = tuple[tuple[ParaId, tuple[bytes, ...]], ...]
"""Messages by the parachain that sends them."""

MOST_BLOCKS: Final = 1000
"""The maximum number of blocks in one request."""
MOST_STEPS: Final = 64
"""The maximum number of relay blocks in which a parachain must build a requested block."""
MOST_UNDOS: Final = 40
"""The maximum number of snapshots for undoing. Beyond it, the oldest one is dropped."""
MOST_WORDS: Final = 200
"""The maximum length of a snapshot's description, in characters."""
SLOT: Final = 6000
"""The length of a relay slot in milliseconds."""


# Blocks


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages from other chains, to be processed by the call's chain."""

    ump: ByPara | None = None
    """Messages to the relay chain, by sender."""
    dmp: tuple[bytes, ...] | None = None
    """Messages from the relay chain to a parachain."""
    hrmp: ByPara | None = None
    """Messages to a parachain, by sender."""


@dataclass(frozen=True, slots=True)
class NewBlock(Messages):
    """Parameters of `dev_newBlock`."""

    count: int | None = None
    """The number of blocks to build."""
    to: int | None = None
    """The height to build up to, instead of a count."""
    transactions: tuple[bytes, ...] = ()
    """Extrinsics to put into the pool before the first block."""


def _messages_of(field: str) -> Read[tuple[bytes, ...]]:
    """Return a reader for a list of messages, whose bytes are in the field `field`.

    Chopsticks' optional field `sentAt` is accepted and ignored.
    """

    def read(value: object) -> bytes:
        if (
            not isinstance(value, dict)
            or not value.keys() <= {"sentAt", field}
            or field not in value
        ):
            raise ValueError(f"an object with {field} is expected")
        return hexadecimal(value[field])

    return lambda value: tuple(list_of(read)(value))


def _by_para(read: Read[tuple[bytes, ...]]) -> Read[ByPara]:
    """Return a reader for an object with the ids of parachains as names."""

    def read_all(value: object) -> ByPara:
        if not isinstance(value, dict):
            raise ValueError("an object by parachain is expected")
        for name in value:
            if not name.isdecimal():
                raise ValueError(f"{name!r} is not a parachain's id")
        return tuple((para(int(name)), read(items)) for name, items in value.items())

    return read_all


def _byte_strings(value: object) -> tuple[bytes, ...]:
    """Read a list of byte strings in hex."""
    return tuple(list_of(hexadecimal)(value))


MESSAGES: Final[Mapping[str, Read[object]]] = {
    "ump": _by_para(_byte_strings),
    "dmp": _messages_of("msg"),
    "hrmp": _by_para(_messages_of("data")),
}
"""Readers for the fields of `Messages`."""
_NEW_BLOCK: Final = fields(
    NewBlock, {"count": u32, "to": u32, "transactions": _byte_strings, **MESSAGES}
)


@method("dev_newBlock", Param("config", _NEW_BLOCK, optional=True), unsafe=True)
async def new_block(call: RpcCall, config: NewBlock | None) -> Json:
    """Build blocks of this chain and return the hash of the last one.

    All messages and extrinsics are for the first of these blocks.
    """
    wanted = config or NewBlock()
    best = call.view.best.number
    if wanted.count is not None and wanted.to is not None:
        raise refused("count and to exclude each other")
    if wanted.to is not None:
        count = wanted.to - best
    else:
        count = 1 if wanted.count is None else wanted.count
    if not 1 <= count <= MOST_BLOCKS:
        raise refused(f"1 to {MOST_BLOCKS} blocks are built at once, not {count}")
    todo = list(inputs(call, wanted))
    submit_all(call, wanted.transactions)
    for _ in range(count):
        if call.chain is RELAY:
            await attempt(call.node.control.build(todo))
        else:
            await build_on(call, call.chain, todo)
        todo = []
    return hexed(call.view.best.hash)


def submit_all(call: RpcCall, transactions: tuple[bytes, ...]) -> None:
    """Put all extrinsics into the chain's pool, or leave it unchanged if one is refused.

    Raises `RpcError`.
    """
    if not transactions:
        return
    pool = call.node.pools[call.chain]
    at = call.node.at(call.view.best)
    # A copy of the pool gets the extrinsics first. If it accepts all of them, so does the pool.
    for target in (pool.copy(), pool):
        for extrinsic in transactions:
            try:
                target.submit(at, extrinsic)
            except Refused as error:
                raise refused(error) from error
    call.node.tell_pooled(call.chain)


async def build_on(call: RpcCall, chain: ParaId, todo: Iterable[actions.Action] = ()) -> None:
    """Build relay blocks until a parachain has one more block.

    Raises `RpcError` with code 1 if it has none after `MOST_STEPS` relay blocks.
    """
    before = call.view.best.number
    await _until(call, chain, lambda block: block.number > before, todo)


async def _until(
    call: RpcCall,
    chain: ParaId,
    done: Callable[[StoredBlock], bool],
    todo: Iterable[actions.Action] = (),
) -> None:
    """Build relay blocks until a parachain's best block satisfies `done`.

    The parachain has a turn in each relay block.
    """
    for _ in range(MOST_STEPS):
        await attempt(call.node.control.build([*todo, actions.Turn(para=chain)]))
        todo = ()
        if done(call.node.timeline.views[chain].best):
            return
    raise refused(f"parachain {chain} built no block in {MOST_STEPS} relay blocks")


def inputs(call: RpcCall, wanted: Messages) -> Iterable[actions.Action]:
    """Yield the actions that send the messages to the call's chain.

    Raises `RpcError` if the chain cannot receive messages of that kind.
    """
    chain = call.chain
    if chain is RELAY:
        if wanted.dmp or wanted.hrmp:
            raise refused("dmp and hrmp go to a parachain: call its path")
        for sender, messages in wanted.ump or ():
            yield from (actions.Upward(para=sender, message=message) for message in messages)
        return
    if wanted.ump:
        raise refused("ump goes to the relay chain: call its path")
    yield from (actions.Downward(para=chain, message=message) for message in wanted.dmp or ())
    for sender, messages in wanted.hrmp or ():
        yield from (
            actions.Horizontal(sender=sender, recipient=chain, message=message)
            for message in messages
        )


@method("dev_setBlockBuildMode", Param("mode", text), unsafe=True)
def set_build_mode(call: RpcCall, mode: str) -> None:
    """Set the mode of building: `Batch`, `Instant` (one extrinsic per block) or `Manual`."""
    modes = {"Batch": "instant", "Instant": "single", "Manual": "manual"}
    if mode not in modes:
        raise refused(f"blocks are built in the modes {', '.join(modes)}, not {mode!r}")
    call.node.control.set_mode(modes[mode])


# State and time


def _entries(value: object) -> list[Pair] | dict[str, object]:
    return value if isinstance(value, dict) else pairs_of(value)


@method(
    "dev_setStorage", Param("values", _entries), Param("at", block_hash, optional=True), unsafe=True
)
async def set_storage(
    call: RpcCall, values: list[Pair] | dict[str, object], at: bytes | None
) -> Json:
    """Write storage with the root origin and return the hash of the block that contains it.

    The relay chain writes in the next block. A parachain receives a message from the relay chain,
    which can take several blocks. Raises `RpcError` with code 1 if the runtime did not write all
    values.
    """
    if at is not None and at != call.view.best.hash:
        raise refused("storage is written on the best block only")
    if isinstance(values, list):
        pairs = values
    else:
        try:
            pairs = storage_pairs(call.node.at(call.view.best), values)
        except PubsubError as error:
            raise refused(error) from error
    if any(key.startswith(CHILD_STORAGE_PREFIX) for key, _ in pairs):
        raise refused("child tries are not written: publish instead")
    action = actions.SetStorage(chain=call.chain, entries=tuple(pairs))
    sent = await attempt(call.node.control.build((action,)))
    if call.chain is not RELAY:
        # The message arrives with the first block whose relay parent contains it.
        def has_arrived(block: StoredBlock) -> bool:
            return (LAST_RELAY_PARENT.get(Storage(block.state)) or 0) >= sent.number

        await _until(call, call.chain, has_arrived)
    get = call.view.best.state.top.get
    unwritten = next((key for key, value in dict(pairs).items() if get(key) != value), None)
    if unwritten is not None:
        raise refused(f"the runtime did not write {hexed(unwritten)}")
    return hexed(call.view.best.hash)


def _moment_in_time(value: object) -> int:
    """Read a time: milliseconds since 1970, or an ISO date, which is in UTC by default."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError("a date or milliseconds are expected")
    try:
        date = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a date, such as 2030-01-31T12:00:00Z") from None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return round(date.timestamp() * 1000)


@method("dev_timeTravel", Param("date", _moment_in_time), unsafe=True)
async def time_travel(call: RpcCall, milliseconds: int) -> Json:
    """Give the next relay block a later slot and return its time in milliseconds since 1970."""
    slot = milliseconds // SLOT
    await attempt(call.node.control.act((actions.Travel(slot=slot),)))
    return slot * SLOT


# Going back


def place(value: object) -> int | bytes:
    """Read a block hash, or a number that may be negative."""
    if isinstance(value, str):
        return block_hash(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("a hash or a number is expected")
    return value


@method("dev_setHead", Param("hashOrNumber", place, aliases=("hash", "number")), unsafe=True)
async def set_head(call: RpcCall, at: int | bytes) -> Json:
    """Return to a block of this chain. A negative number counts from the best block."""
    view = call.view
    if isinstance(at, bytes):
        block = call.find(at)
    else:
        block = view.at_height(view.best.number + at if at < 0 else at)
    moment = None if block is None else call.node.timeline.moment_of(block)
    if moment is None or moment.number < call.node.floor:
        name = at if isinstance(at, int) else hexed(at)
        raise refused(f"block {name} is unknown, or older than the start of the node")
    await attempt(call.node.control.rewind(moment))
    return hexed(call.view.best.hash)


@method("dev_snapshot", Param("before", text, optional=True), unsafe=True)
def snapshot(call: RpcCall, before: str | None) -> Json:
    """Store the present state of the network and return the name of the snapshot.

    With `before`, a description of the following action, the snapshot is listed by `pubsub_undos`.
    """
    node = call.node
    undos = [name for name, stored in node.snapshots.items() if stored.before is not None]
    if before is not None and len(undos) >= MOST_UNDOS:
        drop(call, undos[0])
    for block in node.timeline.newest.heads.values():
        node.timeline.pin(block)
    name = f"{len(node.snapshots) + node.dropped_snapshots + 1:#x}"
    node.snapshots[name] = StoredSnapshot(
        node.timeline.newest,
        pending=tuple(node.live.pending),
        pools={chain: pool.copy() for chain, pool in node.pools.items()},
        before=None if before is None else before[:MOST_WORDS],
    )
    return name


@method("pubsub_undos", unsafe=True)
def undos(call: RpcCall) -> Json:
    """Return the snapshots that were taken for undoing, the oldest first.

    Each has its name (`id`), the action that followed (`what`), and its relay block (`at`).
    """
    return [
        {"id": name, "what": stored.before, "at": stored.moment.number}
        for name, stored in call.node.snapshots.items()
        if stored.before is not None
    ]


@method("dev_revert", Param("id", text), unsafe=True)
async def revert(call: RpcCall, name: str) -> Json:
    """Return to a snapshot and delete it together with all later ones."""
    if not await restore(call, name):
        return False
    names = list(call.node.snapshots)
    for later in names[names.index(name) :]:
        drop(call, later)
    return True


@method("dev_restore", Param("id", text), unsafe=True)
async def restore(call: RpcCall, name: str) -> Json:
    """Return to a snapshot without deleting any, and return whether it exists."""
    stored = call.node.snapshots.get(name)
    if stored is None:
        return False
    await attempt(call.node.control.rewind(stored.moment, stored.pending))
    call.node.pools.update({chain: pool.copy() for chain, pool in stored.pools.items()})
    return True


@method("dev_forget", Param("id", text), unsafe=True)
def drop(call: RpcCall, name: str) -> Json:
    """Delete a snapshot and return whether it existed."""
    stored = call.node.snapshots.pop(name, None)
    if stored is None:
        return False
    call.node.dropped_snapshots += 1
    for block in stored.moment.heads.values():
        call.node.timeline.unpin(block)
    return True


@method("dev_getReadProof", KEYS, AT, unsafe=True, heavy=True)
def get_read_proof(call: RpcCall, keys: list[bytes], at: bytes | None) -> Json:
    """Return the trie nodes that prove keys of a block, and the state root to verify them with."""
    block = call.block(at)
    nodes: dict[Hash, bytes] = {}
    block.state.prove(keys, {}, nodes)
    root = hexed(block.header.state_root)
    return {"at": hexed(block.hash), "proof": list(map(hexed, nodes.values())), "stateRoot": root}
