"""`pubsub prove`: the costs of a request as tables, a document, a proof file and a plot."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.prove.names import OwnNames
from pubsub_emulator.cli.commands.prove.requests import whole_request
from pubsub_emulator.cli.commands.prove.sources import blocks_of, opened
from pubsub_emulator.cli.commands.prove.verify import FORMAT
from pubsub_emulator.cli.screen import say, say_document, stage, table
from pubsub_emulator.client.kept_answers import default_folder
from pubsub_emulator.client.request_costs import BlockCost, Changes, Range, changes, sizes
from pubsub_emulator.files.atomic import write_whole
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.shown import marked
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import ACTIVE_CONFIG
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayProofRequest, TopKey
from pubsub_emulator.runtime.framework.request_proof import (
    BUDGET,
    LARGE_POV,
    POV,
    KeyCost,
    RequestProof,
    absent_bytes,
    joined,
)
from pubsub_emulator.trie.errors import TrieError

_LIMITS: Final = (("of 5 MiB", POV), ("of 10 MiB", LARGE_POV), ("of 1 MiB", BUDGET))
"""The sizes that a proof is compared with, and the titles of their columns."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the result."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Costs:
    """The result of a call: the cost of a request in one block or several."""

    request: RelayProofRequest
    para: int | None
    blocks: tuple[BlockCost, ...]
    names: OwnNames
    wanted: int = 1
    """The number of blocks that were asked for. The chain may have fewer."""

    @property
    def newest(self) -> BlockCost:
        """The cost in the newest block."""
        return self.blocks[-1]

    def parts(self) -> Iterator[tuple[str, list[RequestProof]]]:
        """Yield the parts of the proof with their proofs by block: request, static keys, both."""
        yield "request", [block.request for block in self.blocks]
        static = [block.static for block in self.blocks if block.static is not None]
        both = [block.both for block in self.blocks if block.both is not None]
        if static and both:
            yield "static keys", static
            yield "both, shared nodes once", both

    def changes(self) -> Changes | None:
        """Return how the requests' proofs differ from block to block."""
        return changes([block.request for block in self.blocks])


def prove_source(
    *,
    source: str,
    request: str | None,
    top: Sequence[str],
    children: Sequence[tuple[str, str]],
    para: int | None,
    blocks: str | None,
    metadata: str | None,
    out: Path | None,
    markdown: bool,
    plot: Path | None,
    timeout: int,
    cache: Path | None,
    no_cache: bool,
) -> Result:
    """Run the command for a source. Raises `PubsubError`."""
    if request is None and not top and not children:
        raise click.UsageError("name the keys with --request, --top or --child")
    if plot is not None and plot.suffix not in {".svg", ".png"}:
        raise click.UsageError(f"--plot {plot}: a file that ends with .svg or .png")
    draw = None if plot is None else _drawing()
    folder = None if no_cache else cache or default_folder()
    wanted = blocks_of(blocks)
    with opened(source, wanted, metadata, timeout, folder) as found:
        asked = whole_request(request, top, children, found.names, timeout)
        if not asked.keys:
            raise InputError("the request has no keys")
        of = None if para is None else ParaId(para)
        with stage(f"proving {counted(len(asked.keys), 'key')}", wanted.count) as advance:
            listed: list[BlockCost] = []
            for cost in found.costs(asked, of):
                listed.append(cost)
                advance(len(listed), wanted.count)
        if not listed:
            raise InputError(f"{source}: the source has no block")
        if of is not None:
            _check_relay_chain(source, listed[-1], of)
        costs = Costs(asked, para, tuple(listed), found.names, wanted.count)
    _show(costs, markdown=markdown)
    if out is not None:
        write_whole(out, json.dumps(_proof_file(costs), indent=1) + "\n")
        say(f"written: {out}")
    if plot is not None and draw is not None:
        draw(costs.names, costs.blocks, plot)
        say(f"written: {plot}")
    return Result(_document(costs))


def _check_relay_chain(source: str, cost: BlockCost, para: ParaId) -> None:
    """Refuse a state without the configuration that every relay chain has.

    Its proof is a static key's, so this needs no metadata. Raises `InputError`.
    """
    static = () if cost.static is None else cost.static.keys
    values = {found.asked: found.value for found in static}
    if values.get(TopKey(ACTIVE_CONFIG)) is None:
        raise InputError(
            f"{source}: this is not the relay chain of parachain {para}: its state has no"
            " Configuration.ActiveConfig; give SOURCE a node or state of the relay chain"
        )


def _drawing() -> Callable[[OwnNames, Sequence[BlockCost], Path], None]:
    """Return the function that draws costs.

    It is called before the work, which would be in vain without the extra. Raises
    `ModuleNotFoundError`, from which the command names the extra.
    """
    from pubsub_emulator.cli.commands.prove.plot import draw_costs

    return draw_costs


# Tables


def _show(costs: Costs, *, markdown: bool) -> None:
    """Print the result."""
    newest = costs.newest
    block = "" if newest.block is None else f", {hexed(newest.block)}"
    said = [f"block {newest.number}{block}", f"state root {hexed(newest.request.root)}"]
    tables = [_sizes_table(costs), _keys_table(costs)]
    more = _lines(costs)
    if markdown:
        lines = [*said, ""]
        for each in tables:
            lines += _markdown(each)
        say_document("\n".join([*lines, *more]))
        return
    say(*said)
    for each in tables:
        table(each.title, each.header, each.rows)
    if more:
        say(*more)


def _sizes_table(costs: Costs) -> Table:
    titles = tuple(title for title, _ in _LIMITS)
    if len(costs.blocks) == 1:
        rows = [
            (part, len(proof.nodes), proof.size, _compact_size(proof), *_shares(proof.size))
            for part, (proof,) in costs.parts()
        ]
        return Table("sizes", ("part", "nodes", "bytes", "compact bytes", *titles), tuple(rows))
    ranges = [(part, sizes(proofs)) for part, proofs in costs.parts()]
    listed = [
        (part, found.min, _figure(found.median), found.max, *_shares(found.max))
        for part, found in ranges
    ]
    header = ("part", "min bytes", "median", "max", *(f"max {title}" for title in titles))
    first = costs.blocks[0].number
    title = f"sizes in blocks {first} to {costs.newest.number}"
    return Table(title, header, tuple(listed))


def _keys_table(costs: Costs) -> Table:
    found = costs.changes()
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
        rows.append(row if found is None else (*row, found.paths.get(cost.asked, 0)))
    if found is not None:
        header = (*header, f"path changes in {found.steps}")
    return Table("keys, in the newest block", header, tuple(rows))


def _lines(costs: Costs) -> list[str]:
    """Return what the tables do not say."""
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
        smaller = counted(absent_bytes(costs.newest.request), "byte")
        without = "it" if len(absent) == 1 else "them"
        lines.append(
            f"{len(absent)} of {counted(len(keys), 'key')} {verb} absent. Without {without}, the"
            f" request would be {smaller} smaller."
        )
    if costs.newest.both is not None and costs.newest.static is not None:
        more = costs.newest.both.size - costs.newest.static.size
        lines.append(
            f"On top of the static keys, the request adds {counted(more, 'byte')} to the block."
        )
    found = costs.changes()
    if found is not None:
        lines.append(
            f"The median of the nodes that the block before does not have is"
            f" {counted(round(found.new_bytes), 'byte')}. A cache of nodes could save the others."
        )
    return lines


def _compact_size(proof: RequestProof) -> int | str:
    try:
        return sum(map(len, proof.compact()))
    except TrieError:
        # Few nodes that refer to each other repeatedly have a compact form of any size.
        return "too large"


def _shares(size: float) -> tuple[str, ...]:
    return tuple(f"{100 * size / limit:.2f} %" for _, limit in _LIMITS)


def _value(cost: KeyCost) -> str:
    return "absent" if cost.value is None else counted(len(cost.value), "byte")


def _figure(median: float) -> float:
    """Return a median of whole numbers without a needless decimal."""
    return int(median) if median == int(median) else median


def _markdown(shown: Table) -> list[str]:
    rows = [shown.header, ("---",) * len(shown.header), *shown.rows]
    lines = [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    return [f"**{marked(shown.title)}**", "", *lines, ""]


def _cell(value: object) -> str:
    if isinstance(value, (int, float)):
        return f"{value:,}"
    return value if value == "---" else marked(str(value))


# Documents


def _proof_file(costs: Costs) -> dict[str, object]:
    """Return the file of the newest block's proof: of all keys that were proven together.

    `open-proof` reads it as well, because it has the fields of a node's answer.
    """
    proof = costs.newest.whole
    request = joined(RelayProofRequest(tuple(cost.asked for cost in proof.keys)))
    block = costs.newest.block
    return {
        "format": FORMAT,
        "at": None if block is None else hexed(block),
        "number": costs.newest.number,
        "root": hexed(proof.root),
        "request": hexed(request.encode()),
        "proof": [hexed(node) for node in proof.listed()],
    }


def _document(costs: Costs) -> dict[str, Any]:
    found = costs.changes()
    newest = costs.newest
    parts = dict(costs.parts())
    document: dict[str, Any] = {
        "request": hexed(costs.request.encode()),
        "para": costs.para,
        "block": {
            "number": newest.number,
            "hash": None if newest.block is None else hexed(newest.block),
            "root": hexed(newest.request.root),
        },
        "parts": {part: _part(proofs[-1]) for part, proofs in parts.items()},
        "keys": [_key(costs, cost) for cost in newest.request.keys],
        "absent_bytes": absent_bytes(newest.request),
        "blocks": [
            {"number": block.number, "bytes": block.request.size, "all_bytes": block.whole.size}
            for block in costs.blocks
        ],
    }
    if found is not None:
        document["ranges"] = {part: asdict(_range(proofs)) for part, proofs in parts.items()}
        document["changes"] = {"steps": found.steps, "new_bytes_median": found.new_bytes}
        for row, cost in zip(document["keys"], newest.request.keys, strict=True):
            row["path_changes"] = found.paths.get(cost.asked, 0)
    return document


def _range(proofs: list[RequestProof]) -> Range:
    return sizes(proofs)


def _part(proof: RequestProof) -> dict[str, object]:
    return {
        "nodes": len(proof.nodes),
        "bytes": proof.size,
        "compact_bytes": _compact_size(proof),
        "share_of_5_mib": proof.size / POV,
        "share_of_10_mib": proof.size / LARGE_POV,
        "share_of_1_mib": proof.size / BUDGET,
    }


def _key(costs: Costs, cost: KeyCost) -> dict[str, object]:
    child = cost.asked if isinstance(cost.asked, ChildKey) else None
    return {
        "name": costs.names.name(cost.asked),
        "trie": None if child is None else hexed(child.storage_key),
        "key": hexed(cost.asked.key),
        "absent": cost.value is None,
        "value_bytes": None if cost.value is None else len(cost.value),
        "own_nodes": cost.own_nodes,
        "own_bytes": cost.own_bytes,
        "shared_bytes": cost.shared_bytes,
        "path_bytes": cost.path_bytes,
    }
