"""Named branches of the network (`--dev`), which all pages and clients of a node share.

The network continues on one branch, the present one. Each other branch is a snapshot with the
branch's name.
"""

from dataclasses import replace
from typing import Final

from pubsub_emulator.node.rpc.call import RpcCall
from pubsub_emulator.node.rpc.dev import drop, place, restore, set_head
from pubsub_emulator.node.rpc.dev import snapshot as take_snapshot
from pubsub_emulator.node.rpc.errors import refused
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import Param, text
from pubsub_emulator.primitives.hexadecimal import hexed

MOST_BRANCHES: Final = 64
"""The maximum number of branches besides the present one. Each keeps the state of its newest block
in memory.
"""
LONGEST_NAME: Final = 40
"""The maximum length of a branch's name in characters."""


def _name(value: object) -> str:
    """Read the name of a branch."""
    name = text(value).strip()
    if not 1 <= len(name) <= LONGEST_NAME:
        raise ValueError(f"a name has 1 to {LONGEST_NAME} characters")
    return name


NAME: Final = Param("name", _name)


@method("pubsub_branches", unsafe=True)
def branches(call: RpcCall) -> Json:
    """Return the name of the present branch, and the other branches in the order they were left.

    Each of the others has its name, its snapshot (`id`), and the number and hash of its newest
    relay block.
    """
    node = call.node
    others = [
        {
            "name": snapshot.branch,
            "id": snapshot_id,
            "number": snapshot.moment.number,
            "hash": hexed(snapshot.moment.relay.hash),
        }
        for snapshot_id, snapshot in node.snapshots.items()
        if snapshot.branch is not None
    ]
    return {"name": node.branch, "others": others}


@method("pubsub_fork", NAME, Param("hashOrNumber", place), unsafe=True)
async def fork(call: RpcCall, name: str, at: int | bytes) -> Json:
    """Start a new branch at a block of the present branch, which is stored.

    Returns the hash of that block. A negative number counts from the best block.
    """
    node = call.node
    others = [
        snapshot.branch for snapshot in node.snapshots.values() if snapshot.branch is not None
    ]
    if name in {*others, node.branch}:
        raise refused(f"there is a branch {name!r} already")
    if len(others) >= MOST_BRANCHES:
        raise refused(f"there are {MOST_BRANCHES} other branches already")
    old_branch = node.branch
    stored = _store(call)
    node.branch = name
    try:
        best = call.view.best
        if at not in {best.number, best.hash}:
            await set_head(call, at)
    except BaseException:
        node.branch = old_branch
        drop(call, stored)
        raise
    return hexed(call.view.best.hash)


@method("pubsub_switch", NAME, unsafe=True)
async def switch(call: RpcCall, name: str) -> Json:
    """Store the present branch and continue on another one.

    Returns the hash of its best block on this chain.
    """
    node = call.node
    destination = next(
        (
            snapshot_id
            for snapshot_id, snapshot in node.snapshots.items()
            if snapshot.branch == name
        ),
        None,
    )
    if destination is None:
        raise refused(f"there is no other branch {name!r}")
    old_branch = node.branch
    stored = _store(call)
    node.branch = name
    try:
        await restore(call, destination)
    except BaseException:
        node.branch = old_branch
        drop(call, stored)
        raise
    drop(call, destination)
    return hexed(call.view.best.hash)


def _store(call: RpcCall) -> str:
    """Store the present branch as a snapshot, and return the id of the snapshot."""
    node = call.node
    snapshot_id = str(take_snapshot(call, None))
    node.snapshots[snapshot_id] = replace(node.snapshots[snapshot_id], branch=node.branch)
    return snapshot_id
