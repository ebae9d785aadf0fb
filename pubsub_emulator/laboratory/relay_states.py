"""Whole relay states as files: every storage value, every child trie, the header that commits to them.

    version      1
    name, about  what the file shows, for people
    relay_state  number, header (SCALE), hash of the header,
                 entries   [key, value] of the top trie, ascending, child roots left out
                 children  storage_key (without `:child_storage:default:`) and entries of each child trie
                 extrinsics the block's body; the first one enters the backed candidates

Another implementation computes the root of `entries` and the child roots, and compares it with the header's; every
value decodes as the item of its prefix. Bytes are hexadecimal with `0x`.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.runtime.framework.storage import State

VERSION: Final = 1
FOLDER: Final = "relay"
"""The folder below a set of fixtures that holds relay states."""

KEPT: Final = 4
"""How many states of a scenario are written, spread over its length."""


def relay_states(scenario: str) -> list[dict[str, object]]:
    """The relay states of a bundled scenario at `KEPT` of its blocks."""
    simulation = Simulation(load_bundled(scenario))
    network = simulation.network
    blocks = simulation.scenario.relay_blocks
    wanted = {blocks * part // KEPT for part in range(1, KEPT + 1)}
    found = []
    while network.number < blocks:
        block = simulation.step().block
        if network.number in wanted:
            found.append(relay_state(block.header, network.relay.state, block.extrinsics))
    return found


def relay_state(header: Header, state: State, extrinsics: Iterable[bytes]) -> dict[str, object]:
    """One state as it is written."""
    top = [(key, value) for key, value in state.top_entries() if not key.startswith(CHILD_STORAGE_PREFIX)]
    keys = sorted(state.children)
    children = [{"storage_key": hexed(key), "entries": _pairs(state.child_entries(key))} for key in keys]
    return {
        "version": VERSION,
        "name": f"relay-state-{header.number:03}",
        "about": f"relay block {header.number}: {len(top)} entries and {len(children)} child tries",
        "relay_state": {
            "number": header.number,
            "header": hexed(header.encode()),
            "hash": hexed(header.hash()),
            "entries": _pairs(top),
            "children": children,
            "extrinsics": [hexed(extrinsic) for extrinsic in extrinsics],
        },
    }


def write_relay_states(states: Iterable[dict[str, object]], folder: Path) -> None:
    """Write each state into the folder `relay` below `folder`."""
    below = folder / FOLDER
    below.mkdir()
    for state in states:
        (below / f"{state['name']}.json").write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")


def _pairs(entries: Iterable[tuple[bytes, bytes]]) -> list[list[str]]:
    return [[hexed(key), hexed(value)] for key, value in entries]
