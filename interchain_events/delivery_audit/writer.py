"""The writer of deliveries, which adds files to tables in a folder.

A file `<folder>/<table>/<random>.parquet` is either complete or does not exist.
"""

import secrets
from pathlib import Path

from pubsub_emulator.spark_audit.history.commit import encode_parquet
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import open_store


def append_part(folder: Path, table: Table, rows: list[Row]) -> Path | None:
    """Add rows to a table and return the new file, `None` if there are no rows.

    Raises `OSError` or `SchemaError`. Then no file is added.
    """
    if not rows:
        return None
    name = f"{table.name}/{secrets.token_hex(8)}.parquet"
    open_store(folder).put_same(name, encode_parquet(table, rows))
    return folder / name
