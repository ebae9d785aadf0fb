"""A row as one line of JSON, for servers and the command line; its fields are the stored text itself."""

import json
from collections.abc import Sequence

from pubsub_emulator.events.rows import Row
from pubsub_emulator.primitives.hashing import blake2_256


def row_json(row: Row) -> str:
    """`{"seq":…,"anchor":…,"chain":…,"block":…,"index":…,"kind":…,"id":"0x…","time":…,"fields":{…}}`."""
    chain = "null" if row.chain is None else row.chain
    return (
        f'{{"seq":{row.seq},"anchor":{row.anchor},"chain":{chain},"block":{row.block},"index":{row[4]},'
        f'"kind":{json.dumps(row.kind)},"id":"0x{row.id.hex()}","time":{row.time},"fields":{row.body}}}'
    )


def rows_json(rows: Sequence[Row]) -> str:
    """A JSON list of rows."""
    return f"[{','.join(map(row_json, rows))}]"


def row_digest(row: Row) -> bytes:
    """blake2b-256 of the row's JSON: equal for equal rows, whoever delivers them."""
    return blake2_256(row_json(row).encode())
