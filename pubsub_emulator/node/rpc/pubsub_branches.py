"""Branches of the network by name (`--dev`), which every page and client of a node sees.

The network goes on along one branch. Each other branch is a snapshot that has the branch's name.
"""

from dataclasses import replace
from typing import Final

from pubsub_emulator.node.rpc.call import Call
from pubsub_emulator.node.rpc.dev import drop, place, restore, set_head, snapshot
from pubsub_emulator.node.rpc.errors import refused
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import Param, text
from pubsub_emulator.primitives.hexadecimal import hexed

MOST_BRANCHES: Final = 64
"""The maximum number of branches beside the present one. Each keeps the state of its newest block.
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
def branches(call: Call) -> Json:
    """Return the name of the present branch, and the other branches in the order they were left.

    Each of the others has its name, its snapshot (`id`), and the number and hash of its newest
    relay block.
    """
    node = call.node
    others = [
        {
            "name": kept.branch,
            "id": name,
            "number": kept.moment.number,
            "hash": hexed(kept.moment.relay.hash),
        }
        for name, kept in node.snapshots.items()
        if kept.branch is not None
    ]
    return {"name": node.branch, "others": others}


@method("pubsub_fork", NAME, Param("hashOrNumber", place), unsafe=True)
async def fork(call: Call, name: str, at: int | bytes) -> Json:
    """Leave the present branch as it is and go on from one of its blocks under another name.

    Returns the hash of that block. A negative number counts from the best block.
    """
    node = call.node
    known = [kept.branch for kept in node.snapshots.values() if kept.branch is not None]
    if name in {*known, node.branch}:
        raise refused(f"there is a branch {name!r} already")
    if len(known) >= MOST_BRANCHES:
        raise refused(f"there are {MOST_BRANCHES} other branches already")
    left = node.branch
    held = _leave(call)
    node.branch = name
    try:
        best = call.view.best
        if at not in {best.number, best.hash}:
            await set_head(call, at)
    except BaseException:
        node.branch = left
        drop(call, held)
        raise
    return hexed(call.view.best.hash)


@method("pubsub_switch", NAME, unsafe=True)
async def switch(call: Call, name: str) -> Json:
    """Leave the present branch as it is and go on along another one.

    Returns the hash of its best block on this chain.
    """
    node = call.node
    wanted = [held for held, kept in node.snapshots.items() if kept.branch == name]
    if not wanted:
        raise refused(f"there is no other branch {name!r}")
    left = node.branch
    held = _leave(call)
    node.branch = name
    try:
        await restore(call, wanted[0])
    except BaseException:
        node.branch = left
        drop(call, held)
        raise
    drop(call, wanted[0])
    return hexed(call.view.best.hash)


def _leave(call: Call) -> str:
    """Keep the present branch as a snapshot with its name, and return the snapshot's."""
    node = call.node
    held = str(snapshot(call, None))
    node.snapshots[held] = replace(node.snapshots[held], branch=node.branch)
    return held
