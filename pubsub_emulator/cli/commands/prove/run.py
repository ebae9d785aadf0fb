"""`pubsub prove`: shows what a request costs, and writes its proof and a plot."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import say, say_document, stage, table
from pubsub_emulator.client.kept_answers import default_folder
from pubsub_emulator.client.request_costs import BlockCost
from pubsub_emulator.files.atomic import write_whole
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.proving.costs import Costs, ProofPlan, costs_of
from pubsub_emulator.proving.documents import document, proof_file
from pubsub_emulator.proving.names import OwnNames
from pubsub_emulator.proving.sources import blocks_of
from pubsub_emulator.proving.tables import as_markdown, head, notes, tables
from pubsub_emulator.proving.verify import state_root, verify_file
from pubsub_emulator.runtime.framework.words import words

_PREVIEW: Final = 16
"""The maximum number of bytes of a value that are shown."""


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
    """Prove a request in the blocks of a source and show the costs. Raises `PubsubError`."""
    if request is None and not top and not children:
        raise click.UsageError("name the keys with --request, --top or --child")
    if plot is not None and plot.suffix not in {".svg", ".png"}:
        raise click.UsageError(f"--plot {plot}: the name must end with .svg or .png")
    draw = None if plot is None else _drawing()
    plan = ProofPlan(
        source,
        request,
        top,
        children,
        para=para,
        blocks=blocks_of(blocks),
        metadata=metadata,
        seconds=timeout,
        cache=None if no_cache else cache or default_folder(),
    )
    costs = costs_of(plan, stage)
    _show(costs, markdown=markdown)
    if out is not None:
        write_whole(out, json.dumps(proof_file(costs), indent=1) + "\n")
        say(f"written: {out}")
    if plot is not None and draw is not None:
        draw(costs.names, costs.blocks, plot)
        say(f"written: {plot}")
    return Result(document(costs))


def _drawing() -> Callable[[OwnNames, Sequence[BlockCost], Path], None]:
    """Import the plot library and return the function that draws costs.

    This happens before the costs are measured, so that a missing library is reported at once.
    Raises `ModuleNotFoundError`, from which the command learns which extra to name.
    """
    from pubsub_emulator.proving.plot import draw_costs

    return draw_costs


def _show(costs: Costs, *, markdown: bool) -> None:
    """Print the costs."""
    if markdown:
        say_document(as_markdown(costs))
        return
    say(*head(costs))
    for entry in tables(costs):
        table(entry.title, entry.header, entry.rows)
    more = notes(costs)
    if more:
        say(*more)


def verify(path: Path, root: str) -> Result:
    """Check that a file proves every key of its request under a root, and show the values.

    Raises `InputError` if it does not.
    """
    verified = verify_file(path, state_root(root))
    rows = (
        (key.name, "absent" if key.value is None else words(key.value, _PREVIEW))
        for key in verified.keys
    )
    table("keys", ("key", "value"), rows)
    say(
        f"{counted(len(verified.keys), 'key is', 'keys are')} proven under"
        f" {hexed(verified.root)} by {counted(verified.nodes, 'node')},"
        f" {counted(verified.size, 'byte')} without their lengths"
    )
    for node_hash in verified.unneeded:
        say(f"no key needs node {hexed(node_hash)}")
    if verified.repeated:
        repetitions = counted(verified.repeated, "repetition")
        say(f"the file has {repetitions} of nodes")
    return Result(verified.document(), 0 if verified.is_exact else FINDINGS)
