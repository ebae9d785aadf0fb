"""Appends parts to tables in a folder: `<folder>/<table>/<random>.parquet`, each written aside and renamed."""

import contextlib
import secrets
from pathlib import Path
from typing import Any

from pubsub_emulator.spark_audit.history.commit import sync_directory, write_parquet
from pubsub_emulator.spark_audit.history.schema import Table


def append_part(folder: Path, table: Table, rows: list[dict[str, Any]]) -> Path | None:
    """Add rows to a table; no file for no rows. Raises `OSError`, `SchemaError`; nothing is half-written then."""
    if not rows:
        return None
    place = folder / table.name
    place.mkdir(parents=True, exist_ok=True)
    name = secrets.token_hex(8)
    staged = place / f".{name}.part"
    try:
        write_parquet(staged, table, rows)
        target = place / f"{name}.parquet"
        staged.replace(target)
        sync_directory(place)
    finally:
        with contextlib.suppress(FileNotFoundError):
            staged.unlink()
    return target
