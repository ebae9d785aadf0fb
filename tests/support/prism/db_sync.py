"""A database as cardano-db-sync has it, written block by block and rolled back as db-sync does."""

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cbor2
import psycopg

from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.metadata import LABEL

FOLDER = Path(__file__).resolve().parents[2] / "vectors" / "prism" / "db_sync"
MAINNET: list[dict[str, Any]] = [
    json.loads(line) for line in (FOLDER / "mainnet.jsonl").read_text().splitlines()
]
"""Real transactions of Cardano, in the order of the chain: index, tx, cbor."""


def as_json(value: Any) -> Any:
    """Return a metadatum as db-sync writes it in JSON."""
    match value:
        case bytes():
            return "0x" + value.hex()
        case list():
            return [as_json(each) for each in value]
        case dict():
            return {
                key if isinstance(key, str) else str(as_json(key)): as_json(each)
                for key, each in value.items()
            }
    return value


def metadatum(content: bytes, size: int = 64) -> dict[str, Any]:
    """Return an object as PRISM nodes write it in metadata."""
    return {"v": 1, "c": [content[at : at + size] for at in range(0, len(content), size)]}


class DbSync:
    """One database; each method is a transaction of db-sync.

    Two blocks have one slot, as some of Cardano have.
    """

    begins = 1_672_531_200
    seconds = 20
    """The time of block 0, since 1970, and of each block."""

    def __init__(self, url: str, *, has_json: bool = True) -> None:
        self.url = url
        self.has_json = has_json
        self.number = 0
        self.branch = 0
        self._txs = 0
        self.run((FOLDER / "schema.sql").read_text())
        with self._connected() as connection:
            self._block(connection, None, sha256(b"genesis"))

    def _connected(self) -> AbstractContextManager[psycopg.Connection[Any]]:
        """Run a transaction."""
        return psycopg.connect(self.url)

    def run(self, statement: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Execute a statement."""
        with self._connected() as connection:
            cursor = connection.execute(statement.encode(), tuple(params) or None)
            return cursor.fetchall() if cursor.description else []

    def build(self, *objects: bytes) -> int:
        """Append a block with a transaction for each object, and return its number."""
        return self.build_metadata(*map(metadatum, objects))

    def build_metadata(self, *values: Any, valid: bool = True, key: int = LABEL) -> int:
        """Append a block with a transaction for each metadatum of the label."""
        return self.build_raw(
            (
                (json.dumps(as_json(each)) if self.has_json else None, cbor2.dumps({key: each}))
                for each in values
            ),
            valid=valid,
            key=key,
        )

    def build_raw(
        self, listed: Iterable[tuple[str | None, bytes]], *, valid: bool = True, key: int = LABEL
    ) -> int:
        """Append a block with a transaction for each pair of JSON and CBOR."""
        self.number += 1
        with self._connected() as connection:
            block = self._block(connection, self.number, self.hash(self.number))
            for index, (text, raw) in enumerate(listed):
                self._txs += 1
                made = connection.execute(
                    "INSERT INTO tx (hash, block_id, block_index, out_sum, fee, deposit, size,"
                    " valid_contract, script_size) VALUES (%s, %s, %s, 0, 0, 0, 1, %s, 0)"
                    " RETURNING id",
                    (sha256(f"tx {self._txs}".encode()), block, index, valid),
                ).fetchone()
                assert made is not None
                connection.execute(
                    "INSERT INTO tx_metadata (key, json, bytes, tx_id) VALUES (%s, %s, %s, %s)",
                    (key, text, raw, made[0]),
                )
        return self.number

    def hash(self, number: int) -> bytes:
        """Return the hash of a block on this branch."""
        return sha256(f"{self.branch} {number}".encode())

    def empty(self, count: int) -> None:
        """Append many empty blocks at once."""
        self.run(
            "INSERT INTO block (hash, slot_no, block_no, slot_leader_id, size, time, tx_count,"
            " proto_major, proto_minor) SELECT sha256(convert_to(%s || n, 'UTF8')), n / 2, n, 1, 1,"
            " timestamp '2023-01-01' + n * interval '20 s', 0, 8, 0 FROM generate_series(%s::int,"
            " %s::int) AS n",
            (f"{self.branch} ", self.number + 1, self.number + count),
        )
        self.number += count

    def back_to(self, number: int) -> None:
        """Roll back: remove the rows of all blocks after this one, and begin another branch."""
        self.run(
            "WITH gone AS (DELETE FROM block WHERE block_no > %s RETURNING id), "
            "txs AS (DELETE FROM tx WHERE block_id IN (SELECT id FROM gone) RETURNING id) "
            "DELETE FROM tx_metadata WHERE tx_id IN (SELECT id FROM txs)",
            (number,),
        )
        self.number = number
        self.branch += 1

    def _block(
        self, connection: psycopg.Connection[Any], number: int | None, block_hash: bytes
    ) -> Any:
        time = datetime.fromtimestamp(self.begins + self.seconds * (number or 0), UTC).replace(
            tzinfo=None
        )
        made = connection.execute(
            "INSERT INTO block (hash, slot_no, block_no, slot_leader_id, size, time, tx_count,"
            " proto_major, proto_minor) VALUES (%s, %s, %s, 1, 1, %s, 0, 8, 0) RETURNING id",
            (block_hash, number and number // 2, number, time),
        ).fetchone()
        assert made is not None
        return made[0]
