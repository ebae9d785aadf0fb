"""Histories that are read and written again with other values and matching digests.

This is what a forger who owns the files can do.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pubsub_emulator.spark_audit.history import manifest
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    HISTORY_TABLES,
    canonical_json,
    digest_of,
)
from pubsub_emulator.spark_audit.history.reader import History

Rows = list[dict[str, Any]]


@dataclass
class Segment:
    """One commit, open to changes: rows by table and chain."""

    network: str
    segment: int
    parts: dict[tuple[str, int | None], Rows]
    positions: dict[int, int]


def load(history: Path) -> list[Segment]:
    opened = History.open(history)
    out = []
    for commit in opened.commits:
        parts: dict[tuple[str, int | None], Rows] = {}
        for entry in commit.files:
            parts.setdefault((entry.table, entry.chain), []).extend(opened.rows([entry], []))
        out.append(Segment(commit.network, commit.segment, parts, dict(commit.next_positions)))
    return out


def store(segments: list[Segment], target: Path, rows_per_group: int = 256) -> Path:
    """Write the segments as one history, each network's manifests chained in the order given."""
    last: dict[str, Any] = {}
    for each in segments:
        parts = [
            HistoryPart(HISTORY_TABLES[name], rows, "p", chain, rows_per_group)
            for (name, chain), rows in each.parts.items()
            if rows
        ]
        after = last.get(each.network)
        last[each.network] = write_commit(
            target, each.network, each.segment, parts, each.positions, after
        )
    return target


def rewrite_manifests(history: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the bodies of all manifests and make names, digests and the chain good again."""
    digests: dict[str, str] = {}
    folder = history / COMMITS
    for path in sorted(folder.glob("*.json")):
        body = json.loads(path.read_bytes())
        old = body.pop("digest")
        body["previous"] = digests.get(body["previous"], body["previous"])
        change(body)
        digest = digest_of(canonical_json(body))
        digests[old] = digest
        path.unlink()
        network, segment = body.get("network"), body.get("segment")
        named = isinstance(network, str) and "/" not in network and isinstance(segment, int)
        name = manifest.manifest_name(network, segment, digest) if named else path.name
        (folder / name).write_bytes(canonical_json({**body, "digest": digest}))
