"""A run as the network reported it, and as its page shows it.

The records are opened in the same way as by the page's script.
"""

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from support.plumbing.scenarios import scenario

from pubsub_emulator.emulator.network.records import (
    BlockRecord,
    CheckpointRecord,
    Observer,
    RelayRecord,
)
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.explorer.recorder import Recorder
from pubsub_emulator.explorer.words import DisplayNames
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.view import Item
from pubsub_emulator.runtime.parachain.execute import BlockOutcome

SCENARIO = scenario("explored")
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
        """Return the details of every candidate, in the order of the index."""
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
    found = re.findall(
        r'<script type="application/octet-stream" id="([a-z0-9-]+)">([A-Za-z0-9+/=]*)</script>',
        text,
    )
    return Page(
        {name: json.loads(zlib.decompress(base64.b64decode(content))) for name, content in found}
    )


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
    names: DisplayNames
    text: str
    page: Page
    simulation: Simulation

    def first(self, wanted: Callable[[BlockRecord], bool]) -> int:
        """Return the place of the first candidate for which `wanted` is true."""
        return next(at for at, block in enumerate(self.told.blocks) if wanted(block))

    def details(self) -> Iterator[tuple[dict[str, Any], BlockRecord]]:
        """Yield every candidate, as the page shows it and as it was reported."""
        return zip(self.page.details(), self.told.blocks, strict=True)

    def accepted(self) -> Iterator[tuple[dict[str, Any], BlockOutcome, int]]:
        """Yield the accepted candidates with their outcomes and places."""
        for at, (detail, block) in enumerate(self.details()):
            if block.outcome is not None:
                yield detail, block.outcome, at
