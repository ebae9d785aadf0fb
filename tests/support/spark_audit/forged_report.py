"""Audits and their reports for tests.

One is real. The others are made of rows for events that no network would cause.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.rows import empty_row
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.judge.results import Results, write_report, write_result

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'{{7*7}}<svg/onload=alert(2)>"


@dataclass(frozen=True)
class Reported:
    """An audit, and the page made of it."""

    audit: Path
    page: Path

    @property
    def results(self) -> Results:
        return Results.open(self.audit)


def forge(out: Path, tables: dict[schema.Table, list[Row]], **report: Any) -> Path:
    """Write an audit's output with these rows in its summary.

    If there are candidates, they are of one chain.
    """
    named: dict[str, list[str]] = {}
    items = {
        table: tables.pop(table)
        for table in (schema.BLOCK_MEASURES, schema.PUBLISHER_MEASURES)
        if table in tables
    }
    folders = {"summary/forged": tables}
    if items:
        row = items[schema.BLOCK_MEASURES][0]
        folders[f"items/network={row['network']}/00000000-forged"] = items
    place = open_store(out)
    for folder, held in folders.items():
        receipt = write_result(
            place, folder, {table.name: (table, rows) for table, rows in held.items()}, {}
        )
        for name, (path, _size) in receipt["files"].items():
            named.setdefault(name, []).append(path)
    plain = {
        "verifier": "0",
        "digest": "00",
        "candidates": 0,
        "judged": 0,
        "proof_bytes": 0,
        "candidates_per_second": None,
        "findings": {"error": 0, "info": 0, "warning": 0},
        "head": "ab" * 32,
        "complete_up_to": "head 0xab, as the history itself says",
        "history": "history",
        "read_errors": len(tables.get(schema.READ_ERRORS, ())),
        "tables": named,
    }
    write_report(place, {**plain, **report})
    return out


def chain(**fields: Any) -> Row:
    """Return a row of `chains`."""
    plain = {
        "network": "dev",
        "chain": 1,
        "status": "verified",
        "reasons": [],
        "segments": 1,
        "complete": 1,
    }
    counts = {"candidates": 1, "judged": 1, "proof_bytes": 0}
    return {**empty_row(schema.CHAINS), **plain, **counts, **fields}


def block(position: int, **fields: Any) -> Row:
    """Return a valid block's row of `block_measures`."""
    plain: Row = {
        "network": "dev",
        "chain": 1,
        "segment": 0,
        "position": position,
        "number": position,
        "judged": True,
        "relay_root_checked": True,
    }
    figures = {
        "status": "included",
        "relay_parent": position,
        "relay_lag": 1,
        "proof_nodes": 1,
        "messages_bytes": 2,
    }
    return {**empty_row(schema.BLOCK_MEASURES), **plain, **figures, "proof_bytes": 100, **fields}


def finding(**fields: Any) -> Row:
    """Return a row of `findings`."""
    plain = {
        "id": bytes(32),
        "network": "dev",
        "chain": 1,
        "code": "BadSeal",
        "severity": "warning",
    }
    return {
        **empty_row(schema.FINDINGS),
        **plain,
        "evidence": b"",
        "detail": "",
        "verifier": "0",
        **fields,
    }


def unread(**fields: Any) -> Row:
    """Return a row of `read_errors`."""
    return {**empty_row(schema.READ_ERRORS), "path": "blocks/x.parquet", "error": "", **fields}
