"""The page of a run: one self-contained HTML file with the compressed records of the run.

    index      read when the page opens: chains, keys, one row per candidate and per relay block
    d<chain>-  details of a chain's candidates, 48 to a part
    r          details of relay blocks, 64 to a part
    n          nodes by number: hash, length, bytes; 1,024 to a part

A part is JSON, deflated, in base64. The browser decodes it on demand. Untrusted names are inside
these parts or escaped, and the page's scripts insert them as text.
"""

import base64
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.explorer.recorder import RecordedChain, Recorder, as_json
from pubsub_emulator.explorer.svg import glyphs, legend
from pubsub_emulator.explorer.words import VERDICTS, DisplayNames, scenario_names
from pubsub_emulator.pages.assets import asset, script, styles
from pubsub_emulator.pages.document import head
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.version import VERSION

DETAILS: Final = 48
"""Candidates in one part."""
RELAY_DETAILS: Final = 64
"""Relay blocks in one part."""
NODES: Final = 1024
"""Nodes in one part."""
BLOCK_STYLES: Final = (
    "block/trie.css",
    "block/timeline.css",
    "block/block.css",
    "block/proof.css",
)
"""The styles of views of a block, in their order."""


def page_html(recorder: Recorder, title: str, description: str = "") -> str:
    """Return the page of a recorder. The same records give the same text."""
    parts = "".join(
        f'<script type="application/octet-stream" id="{name}">{_packed(content)}</script>\n'
        for name, content in _parts(recorder, title, description)
    )
    code = script("run/main.js")
    pieces = {
        "head": head(f"{title} · explorer", styles(*BLOCK_STYLES, "run/run.css"), code),
        "legend": legend(),
        "parts": parts,
        "script": code,
    }
    page = asset("run/page.html")
    for name, piece in pieces.items():
        page = page.replace(f"<!--{name}-->", piece, 1)
    return page


def record(simulation: Simulation) -> Recorder:
    """Return a recorder of everything that the simulation's network does from now on."""
    recorder = Recorder(scenario_names(simulation.scenario), simulation.network.relay)
    simulation.network.observe(recorder)
    return recorder


def page_of(recorder: Recorder, scenario: Scenario) -> str:
    """Return the page of a scenario's recorder."""
    return page_html(recorder, scenario.name, scenario.description)


def explore(
    scenario: Scenario,
    progress: Callable[[int], None] | None = None,
    rules: Rules = SHIPPED,
) -> str:
    """Run a scenario by `rules` and return its page.

    Equal scenarios and rules give equal pages. Raises `SettingsError`.
    """
    simulation = Simulation(scenario, rules=rules)
    recorder = record(simulation)
    simulation.run(progress)
    return page_of(recorder, scenario)


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def _parts(recorder: Recorder, title: str, description: str) -> Iterator[tuple[str, bytes]]:
    """Yield the parts of a page by name."""
    yield "index", as_json(page_index(recorder, title, description))
    by_chain: dict[ParaId, list[bytes]] = {}
    for row, detail in zip(recorder.index, recorder.details, strict=True):
        by_chain.setdefault(row[0], []).append(detail)
    for chain, details in by_chain.items():
        yield from _split(f"d{chain}-", details, DETAILS)
    yield from _split("r", recorder.relay_details, RELAY_DETAILS)
    nodes = (
        as_json([name.hex(), length, stored.hex()])
        for name, (_, length, stored) in recorder.nodes.items()
    )
    yield from _split("n", nodes, NODES)


def _split(name: str, rows: Iterable[bytes], limit: int) -> Iterator[tuple[str, bytes]]:
    """Yield rows as JSON lists of at most `limit` rows."""
    row_list = list(rows)
    for number, start in enumerate(range(0, len(row_list), limit)):
        yield f"{name}{number}", b"[" + b",".join(row_list[start : start + limit]) + b"]"


def _chain_row(chain: RecordedChain, names: DisplayNames) -> dict[str, object]:
    """Return a chain as a row of the index."""
    return {
        "id": chain.para,
        "name": names.chains.get(chain.para, ""),
        "subscribes": chain.subscribes,
        "cache": chain.cache,
        "collators": [key.hex() for key in chain.collators],
        "first": chain.first.hex() if chain.first else "",
    }


def page_index(recorder: Recorder, title: str, description: str) -> dict[str, object]:
    """Return the index of a page: chains, keys, one row per candidate and per relay block."""
    names = recorder.names
    chains = sorted(recorder.chains.values(), key=lambda chain: (not chain.subscribes, chain.para))
    return {
        "title": title,
        "description": description,
        "version": VERSION,
        "chains": [_chain_row(chain, names) for chain in chains],
        "keys": [[para, key.hex(), names.keys.get(key, "")] for para, key in recorder.keys],
        "strategies": list(recorder.strategies),
        "verdicts": {verdict.value: words for verdict, words in VERDICTS.items()},
        "relay": recorder.relay_blocks,
        "built": recorder.built,
        "candidates": recorder.index,
        "glyphs": glyphs(),
        "parts": {"details": DETAILS, "relay": RELAY_DETAILS, "nodes": NODES},
    }
