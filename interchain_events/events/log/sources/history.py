"""The log of a written history: the events of its relay blocks and of included blocks (EV-4)."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from interchain_events.events.errors import SourceError
from interchain_events.events.log.sources.fields import fields_of, kind_of
from interchain_events.events.rows import Block, ChainBlock, assemble
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.history.rows import decode_events
from pubsub_emulator.spark_audit.history.schema import EVENTS


def history_networks(root: Path) -> list[str]:
    """Return the names of the networks in the history at `root`.

    Raises `CommitError` if there is no history.
    """
    return sorted({commit.network for commit in History.open(root).commits})


def history_blocks(root: Path, network: str) -> Iterator[Block]:
    """Yield every leading block of a network's history, in order.

    Raises `CommitError` if there is no history at `root`. Raises `SourceError` if it has no events,
    as those of older versions, or if a part of it cannot be read.
    """
    # This import registers the classes that decode events.
    import_module("pubsub_emulator.emulator.network.network")
    history = History.open(root)
    _check(root, history.faults)
    files = history.files(EVENTS, network)
    if not files:
        raise SourceError(f"{root}: the history has no events of {network!r}")
    faults: list[Fault] = []
    rows = history.rows(files, faults)
    for _, group in groupby(rows, key=lambda row: row["anchor"]):
        _check(root, faults)
        yield _block(root, list(group))
    _check(root, faults)


def _block(root: Path, rows: list[dict[str, Any]]) -> Block:
    """Return the log's block made of the rows of one relay block.

    Raises `SourceError` if a row is missing.
    """
    leading = rows[0]
    if leading["place"] != 0 or [row["place"] for row in rows] != list(range(len(rows))):
        raise SourceError(f"{root}: relay block {leading['anchor']} lacks rows in {EVENTS.name}")
    blocks = [_chain_block(root, row) for row in rows]
    return assemble(blocks[0], blocks[1:], parent=leading["parent"])


def _chain_block(root: Path, row: dict[str, Any]) -> ChainBlock:
    """Return the block of one row of the history. Raises `SourceError`."""
    try:
        events = [(kind_of(event), fields_of(event)) for event in decode_events(row["events"])]
    except ScaleError as error:
        raise SourceError(
            f"{root}: events of block {row['number']} of chain {row['chain']}: {error}"
        ) from error
    return ChainBlock(row["chain"], row["number"], row["hash"], row["time"], events)


def _check(root: Path, faults: Iterable[Fault]) -> None:
    """Raise `SourceError` for the first fault that the reader has found."""
    for fault in faults:
        raise SourceError(f"{root}/{fault.path}: {fault.error}")
