"""A run as the network told it, and as its page has it: the records are opened as the page's script opens them."""

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pubsub_emulator.emulator.network.records import BlockRecord, CheckpointRecord, Observer, RelayRecord
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.explorer.recorder import Recorder
from pubsub_emulator.explorer.words import Names
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.view import Item
from pubsub_emulator.runtime.parachain.execute import BlockOutcome

SCENARIO = """
name = "explored"
description = "Every cache policy, cheats of many kinds, and values so large that walks stop."
seed = "explored"
relay_blocks = 26
[relay]
# A value may be so long that the stop rule fires some 36,000 bytes into a budget of 1 MiB.
max_value_length = 1_012_000
max_stored_keys = 12
[[publishers]]
paras = [1000, 2000]
keys = 8
value_size = { min = 1, max = 60 }
update_rate = 0.2
delete_rate = 0.05
ttl = [0, 0, 6]
[[publishers]]
paras = [1001]
keys = 12
value_size = 3400
update_rate = 0.1
[[subscribers]]
name = "slots"
para = 3000
cache = "slots"
max_pov_size = 1_600_000
reserve_minimum = true
subscribe = [{ publishers = "all", missing_keys = 1 }]
[[subscribers.collators]]
[[subscribers.collators]]
strategies = ["omit-node", "add-junk", "stale-root", "unknown-relay-parent", "wrong-state-root", "duplicate-node"]
rate = 0.8
[[subscribers.load]]
first_block = 5
last_block = 12
downward_messages = 2
downward_size = 30
senders = [1000, 2000]
horizontal_size = 20
[[subscribers]]
name = "nodes"
para = 3001
cache = "nodes"
max_pov_size = 1_600_000
reserve_minimum = true
subscribe = [{ publishers = "all" }]
blocks_per_relay_block = 2
[[subscribers.collators]]
strategies = ["omit-publisher", "add-unsubscribed-path", "add-cached-node", "truncate-early", "stranger"]
rate = 0.7
[[subscribers.collators]]
[[subscribers]]
name = "none"
para = 3002
cache = "none"
max_pov_size = 1_600_000
reserve_minimum = true
subscribe = [{ publishers = [1000, 2000], keys = 5 }]
[[subscribers.collators]]
strategies = ["add-needless-node", "empty-proof", "bit-flip"]
rate = 0.5
"""
"""Few blocks with much in them."""


@dataclass
class Page:
    """All parts of a page by name."""

    parts: dict[str, Any]

    @property
    def index(self) -> dict[str, Any]:
        opened: dict[str, Any] = self.parts["index"]
        return opened

    def details(self) -> list[dict[str, Any]]:
        """The details of every candidate, in the order of the index."""
        seen: dict[int, int] = {}
        out = []
        for row in self.index["candidates"]:
            at = seen[row[0]] = seen.get(row[0], -1) + 1
            size = self.index["parts"]["details"]
            out.append(self.parts[f"d{row[0]}-{at // size}"][at % size])
        return out

    def node(self, number: int) -> tuple[str, int, str]:
        size = self.index["parts"]["nodes"]
        name, length, kept = self.parts[f"n{number // size}"][number % size]
        return name, length, kept


def open_page(text: str) -> Page:
    found = re.findall(r'<script type="application/octet-stream" id="([a-z0-9-]+)">([A-Za-z0-9+/=]*)</script>', text)
    return Page({name: json.loads(zlib.decompress(base64.b64decode(content))) for name, content in found})


@dataclass
class Told(Observer):
    """Every record of a run, and for each candidate the state it was judged on."""

    blocks: list[BlockRecord] = field(default_factory=list)
    before: list[State] = field(default_factory=list)
    relay: list[RelayRecord] = field(default_factory=list)
    states: dict[ParaId, State] = field(default_factory=dict)

    def relay_block(self, record: RelayRecord) -> None:
        self.relay.append(record)

    def checkpoint(self, record: CheckpointRecord) -> None:
        self.states[record.chain] = record.state

    def candidate(self, record: BlockRecord) -> None:
        self.blocks.append(record)
        self.before.append(self.states[record.chain])
        if record.outcome is not None:
            self.states[record.chain] = record.outcome.state

    def cursor(self, at: int) -> Item | None:
        return items.PROCESSING_CURSOR.get(Storage(self.before[at]))


@dataclass
class Explored:
    """The run of `SCENARIO`."""

    told: Told
    recorder: Recorder
    names: Names
    text: str
    page: Page
    simulation: Simulation

    def first(self, wanted: Callable[[BlockRecord], bool]) -> int:
        """The place of the first candidate that `wanted` holds for."""
        return next(at for at, block in enumerate(self.told.blocks) if wanted(block))

    def details(self) -> Iterator[tuple[dict[str, Any], BlockRecord]]:
        """Every candidate, as the page has it and as it was told."""
        return zip(self.page.details(), self.told.blocks, strict=True)

    def accepted(self) -> Iterator[tuple[dict[str, Any], BlockOutcome, int]]:
        """Those that were accepted, with their places."""
        for at, (detail, block) in enumerate(self.details()):
            if block.outcome is not None:
                yield detail, block.outcome, at
