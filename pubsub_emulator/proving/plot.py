"""The costs of a request as a chart: by key in one block, or by block."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import vl_convert

from pubsub_emulator.client.request_costs import BlockCost
from pubsub_emulator.files.atomic import write_whole, write_whole_bytes
from pubsub_emulator.laboratory.experiments.charts import specification
from pubsub_emulator.laboratory.experiments.presets import Figure, Row
from pubsub_emulator.proving.names import OwnNames

MOST_BARS: Final = 60
"""The maximum number of keys in a chart: those with the most bytes."""
_NAME: Final = 50
"""The maximum number of characters of a key's name."""


def draw_costs(names: OwnNames, blocks: Sequence[BlockCost], file: Path) -> None:
    """Draw the costs to a file, whose name ends with .svg or .png."""
    figure = _by_key(names, blocks[0]) if len(blocks) == 1 else _by_block(blocks)
    chart = specification(figure)
    if file.suffix == ".svg":
        write_whole(file, vl_convert.vegalite_to_svg(chart))
    else:
        write_whole_bytes(file, vl_convert.vegalite_to_png(chart, scale=2))


def _by_key(names: OwnNames, block: BlockCost) -> Figure:
    """Return a chart with two bars for each key: its own bytes, and its share of shared nodes."""
    costs = sorted(block.request.keys, key=lambda cost: cost.own_bytes + cost.shared_bytes)
    rows: list[Row] = []
    for cost in reversed(costs[-MOST_BARS:]):
        name = names.name(cost.asked)[:_NAME]
        rows.append({"key": name, "bytes": cost.own_bytes, "part": "own nodes"})
        rows.append({"key": name, "bytes": round(cost.shared_bytes), "part": "share of shared"})
    return Figure(
        name="request",
        title=f"bytes of each key in block {block.number}",
        rows=tuple(rows),
        x="bytes",
        y="key",
        series="part",
        bars=True,
    )


def _by_block(blocks: Sequence[BlockCost]) -> Figure:
    """Return a chart with a line for each part of the proof: its size by block."""
    rows: list[Row] = []
    for block in blocks:
        proofs = [("request", block.request), ("static keys", block.static), ("both", block.both)]
        for part, proof in proofs:
            if proof is not None:
                rows.append({"block": block.number, "bytes": proof.size, "part": part})
    return Figure(
        name="request",
        title="bytes of the proof by block",
        rows=tuple(rows),
        x="block",
        y="bytes",
        series="part",
    )
