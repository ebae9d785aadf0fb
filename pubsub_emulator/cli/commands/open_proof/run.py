"""`pubsub open-proof`: shows what a node's read proof says, and where its bytes went."""

import json
from collections.abc import Sequence
from pathlib import Path

import click

from pubsub_emulator.cli.screen import say, say_document, table
from pubsub_emulator.files.atomic import write_whole
from pubsub_emulator.proving.opening import (
    HEADER,
    AttributedProof,
    Wanted,
    document,
    drawing,
    head,
    open_proofs,
    rows,
    unneeded,
)


def open_files(
    *,
    files: Sequence[Path],
    header: Path | None,
    root: str | None,
    child: str | None,
    keys: Sequence[str],
    top: Sequence[str],
    request: str | None,
    metadata: str | None,
    drawing_file: Path | None,
    as_json: bool,
) -> bool:
    """Show what proofs prove, and return whether every byte of every proof was needed.

    Raises `UsageError` for both a header and a root, and the errors of `open_proofs`.
    """
    if header is not None and root is not None:
        raise click.UsageError("give either --header or --root")
    opened = open_proofs(
        [*files, *([] if header is None else [header])],
        Wanted(child, keys, top, request),
        root=root,
        metadata=metadata,
    )
    if as_json:
        say_document(json.dumps(document(opened), indent=1))
    else:
        for proof in opened:
            _show(proof)
    if drawing_file is not None:
        write_whole(drawing_file, drawing(opened))
        say(f"written: {drawing_file}", aside=as_json)
    return not any(proof.has_unread for proof in opened)


def _show(opened: AttributedProof) -> None:
    say(*head(opened))
    table("", HEADER, rows(opened))
    for line in unneeded(opened):
        say(line)
