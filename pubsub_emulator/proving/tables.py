"""The cost of a request as tables and sentences."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.client.request_costs import sizes
from pubsub_emulator.files.shown import marked
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.proving.costs import Costs, compact_size
from pubsub_emulator.runtime.framework.request_proof import (
    BUDGET,
    LARGE_POV,
    POV,
    KeyCost,
)

_LIMITS: Final = (("of 5 MiB", POV), ("of 10 MiB", LARGE_POV), ("of 1 MiB", BUDGET))
"""The sizes that a proof is compared with, and the titles of their columns."""


@dataclass(frozen=True, slots=True)
class CostTable:
    """A table of the result."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def head(costs: Costs) -> list[str]:
    """Return two lines of text: the newest block, and its state root."""
    newest = costs.newest
    block = "" if newest.block is None else f", {hexed(newest.block)}"
    return [f"block {newest.number}{block}", f"state root {hexed(newest.request.root)}"]


def tables(costs: Costs) -> list[CostTable]:
    """Return the tables of sizes and of keys."""
    return [_sizes_table(costs), _keys_table(costs)]


def as_markdown(costs: Costs) -> str:
    """Return the head, the tables and the notes as Markdown."""
    lines = [*head(costs), ""]
    for table in tables(costs):
        lines += _markdown(table)
    return "\n".join([*lines, *notes(costs)])


def _sizes_table(costs: Costs) -> CostTable:
    """Return the sizes of each part in one block, or their range over several blocks."""
    titles = tuple(title for title, _ in _LIMITS)
    if len(costs.blocks) == 1:
        rows = [
            (part, len(proof.nodes), proof.size, compact_size(proof), *_shares(proof.size))
            for part, (proof,) in costs.parts()
        ]
        return CostTable("sizes", ("part", "nodes", "bytes", "compact bytes", *titles), tuple(rows))
    ranges = [(part, sizes(proofs)) for part, proofs in costs.parts()]
    range_rows = [
        (
            part,
            range_sizes.min,
            _figure(range_sizes.median),
            range_sizes.max,
            *_shares(range_sizes.max),
        )
        for part, range_sizes in ranges
    ]
    header = ("part", "min bytes", "median", "max", *(f"max {title}" for title in titles))
    first = costs.blocks[0].number
    title = f"sizes in blocks {first} to {costs.newest.number}"
    return CostTable(title, header, tuple(range_rows))


def _keys_table(costs: Costs) -> CostTable:
    """Return the sizes of each key in bytes, and how often its path changed in several blocks."""
    changes = costs.changes()
    header: tuple[str, ...] = (
        "key",
        "value",
        "own nodes",
        "own bytes",
        "share of shared",
        "whole path",
    )
    rows = []
    for cost in costs.newest.request.keys:
        row: tuple[object, ...] = (
            costs.names.name(cost.asked),
            _value(cost),
            cost.own_nodes,
            cost.own_bytes,
            round(cost.shared_bytes),
            cost.path_bytes,
        )
        rows.append(row if changes is None else (*row, changes.paths.get(cost.asked, 0)))
    if changes is not None:
        header = (*header, f"path changes in {changes.steps}")
    return CostTable("keys, in the newest block", header, tuple(rows))


def notes(costs: Costs) -> list[str]:
    """Return sentences about the costs that go below the tables."""
    lines = []
    if len(costs.blocks) < costs.wanted:
        lines.append(
            f"The source has only {counted(len(costs.blocks), 'block')} of the {costs.wanted:,}"
            " that --blocks names."
        )
    keys = costs.newest.request.keys
    absent = [cost for cost in keys if cost.value is None]
    if absent:
        verb = "is" if len(absent) == 1 else "are"
        without = "it" if len(absent) == 1 else "them"
        smaller = counted(costs.newest.absent_bytes, "byte")
        in_block = costs.newest.absent_block_bytes
        if in_block is None:
            saved = f"the request would be {smaller} smaller"
        else:
            saved = (
                f"the request alone would be {smaller} smaller, and the block"
                f" {counted(in_block, 'byte')} smaller"
            )
        lines.append(
            f"{len(absent)} of {counted(len(keys), 'key')} {verb} absent."
            f" Without {without}, {saved}."
        )
    if costs.newest.both is not None and costs.newest.static is not None:
        more = costs.newest.both.size - costs.newest.static.size
        lines.append(
            f"On top of the static keys, the request adds {counted(more, 'byte')} to the block."
        )
    changes = costs.changes()
    if changes is not None:
        lines.append(
            f"The median of the nodes that the block before does not have is"
            f" {counted(round(changes.new_bytes), 'byte')}. A cache of nodes could save the others."
        )
    return lines


def _shares(size: float) -> tuple[str, ...]:
    """Return a size in percent of each of `_LIMITS`."""
    return tuple(f"{100 * size / limit:.2f} %" for _, limit in _LIMITS)


def _value(cost: KeyCost) -> str:
    return "absent" if cost.value is None else counted(len(cost.value), "byte")


def _figure(median: float) -> float:
    """Return a median of whole numbers without a needless decimal."""
    return int(median) if median == int(median) else median


def _markdown(shown: CostTable) -> list[str]:
    """Return the lines of a table in Markdown."""
    separator = f"|{' --- |' * len(shown.header)}"
    lines = [_markdown_row(row) for row in shown.rows]
    header = _markdown_row(shown.header)
    return [f"**{marked(shown.title)}**", "", header, separator, *lines, ""]


def _markdown_row(row: Iterable[object]) -> str:
    """Return a row of a table in Markdown. Texts are escaped."""
    cells = [f"{cell:,}" if isinstance(cell, (int, float)) else marked(str(cell)) for cell in row]
    return f"| {' | '.join(cells)} |"
