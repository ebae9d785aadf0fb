"""Every way of forging one value of a history, and the result of its audit.

See `test_forgeries`.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from support.spark_audit.audits import SUBSCRIBER, drop_a_node, write_history
from support.spark_audit.history_forgery import Segment, load, store

from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.history.schema import Column, SchemaError, Table
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.real_proofs.imported import Present, RelayHeader, write_segment
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import read_relay_proof

CLAIMS: Final[dict[str, str]] = {
    "relay_headers.hash": "the relay chain's word; its header is not stored",
    "relay_headers.number": "the trusted input, read where a block refers to it",
    "relay_headers.storage_root": "the trusted input, read where a block refers to it",
    "relay_headers.slot": "the trusted input, read where a block refers to it",
    "blocks.detail": "the chain's words beside its verdict, which is judged",
    "blocks.included_at": "the network's word, between the blocks around it",
    "blocks.unpruned": "the collator's word",
    "blocks.strategy": "never read",
    "events": "what a log is made of; no audit reads it",
    "truth": "what `score` holds findings against; no audit reads it",
    "checkpoints.entries": "of the last checkpoint, until a segment follows",
    "checkpoints.children": "of the last checkpoint, until a segment follows",
}
"""Columns, or tables, in which a forgery may pass, and why that is so."""

_WORD = "the source's word"
_OF_HEADER = "compared with the header where there is one"
IMPORTED_CLAIMS: Final[dict[str, str]] = {
    "relay_headers.hash": "the relay chain's word; its header is not stored",
    "relay_headers.slot": "the relay chain's word",
    "blocks.number": _OF_HEADER,
    "blocks.block": _OF_HEADER,
    "blocks.header": "it may be left out, and nothing is compared with it",
    "blocks.parent": _OF_HEADER,
    "blocks.state_root": _OF_HEADER,
    "blocks.max_pov": _WORD,
    "blocks.downward": _WORD,
    "blocks.horizontal": _WORD,
    "blocks.messages_used": _WORD,
    "blocks.proof": "its order, which decides nothing",
    "blocks.source": "where the proof is from",
    "blocks.block_time": _WORD,
    "blocks.runtime": _WORD,
    "blocks.descendants": "but for number and root of the first",
    "blocks.collator_peer_id": _WORD,
    "blocks.claimed_max_pov": _WORD,
}
"""Columns of imported rows in which a forgery may pass, and why."""
_ONLY: Final = {"blocks.header": "no value", "blocks.proof": "reversed"}
"""Of these, the forgeries that may pass."""


@dataclass(frozen=True)
class Forgery:
    """One value changed in one row."""

    table: Table
    column: Column
    tag: str
    segment: int
    chain: int | None
    row: int
    value: Any

    @property
    def name(self) -> str:
        return f"{self.table.name}.{self.column.name}"

    def may_pass(self, claims: Mapping[str, str]) -> bool:
        """Return whether the page says that this forgery may pass."""
        compared = claims.get(self.name) == _OF_HEADER and self.row == 1
        return (
            self.name in claims
            and not compared
            and (claims is CLAIMS or self.tag == _ONLY.get(self.name, self.tag))
        )


class Forger:
    """A history with a cheat or with imported proofs, its audit, and audits of its forgeries."""

    def __init__(self, scratch: Path, *, imported: bool = False) -> None:
        self.scratch = scratch
        self.claims = IMPORTED_CLAIMS if imported else CLAIMS
        if imported:
            self.history = write_imported(scratch / "base")
        else:
            self.history = write_history(
                scratch / "base", 6, segment_length=3, cheats={5: drop_a_node}
            )
        self.reference = self._audit(self.history)
        self._segments = load(self.history)

    def forgeries(self, columns: frozenset[str] = frozenset()) -> Iterator[Forgery]:
        """Yield the forgeries that a file can contain, of all columns or only of these."""
        for table in HISTORY_TABLES.values():
            if table.name in CLAIMS:
                continue
            for column in table.wider.columns:
                if not columns or f"{table.name}.{column.name}" in columns:
                    yield from filter(self._is_writable, _of_column(self._segments, table, column))

    def _row(self, forgery: Forgery) -> dict[str, Any]:
        return self._segments[forgery.segment].parts[forgery.table.name, forgery.chain][forgery.row]

    def _is_writable(self, forgery: Forgery) -> bool:
        try:
            forgery.table.arrow([{**self._row(forgery), forgery.column.name: forgery.value}])
        except SchemaError:
            return False
        return True

    def outcome(self, forgery: Forgery) -> str:
        """Return `detected` or `passes`."""
        row = self._row(forgery)
        target = Path(tempfile.mkdtemp(dir=self.scratch))
        true = dict(row)
        row[forgery.column.name] = forgery.value
        try:
            found = self._audit(store(self._segments, target / "forged"))
        except AuditFailed as failure:
            return f"stops the audit: {failure}"
        finally:
            row.clear()
            row.update(true)
            shutil.rmtree(target)
        return "passes" if _verdict(found) == _verdict(self.reference) else "detected"

    def _audit(self, history: Path) -> AuditResult:
        return audit(history, history.with_name(f"{history.name}.out"), engine="python")


def _verdict(result: AuditResult) -> tuple[Any, ...]:
    """Return the result of an audit without figures and digests."""
    return (
        result.exit_code,
        result.codes,
        result.read_errors,
        [(row["chain"], row["status"]) for row in result.chains],
    )


def _of_column(segments: list[Segment], table: Table, column: Column) -> Iterator[Forgery]:
    """Yield forgeries of a column in the subscriber's rows.

    These are rows of the second segment, including a refused candidate, or else of the first.
    """
    for at in reversed(range(len(segments[:2]))):
        for (name, chain), rows in segments[at].parts.items():
            if name != table.name or chain not in {None, SUBSCRIBER, IMPORTED}:
                continue
            refused = [
                n for n, row in enumerate(rows) if row.get("status") in {"rejected", "imported"}
            ]
            own = [
                n
                for n, row in enumerate(rows)
                if row.get("chain", SUBSCRIBER) in {SUBSCRIBER, IMPORTED}
            ]
            for place in dict.fromkeys((own[-1 if chain == IMPORTED else 0], *refused)):
                for tag, value in _values(
                    column.type, rows[place].get(column.name), nullable=column.nullable
                ):
                    yield Forgery(
                        table, column, tag, segment=at, chain=chain, row=place, value=value
                    )
            return


IMPORTED: Final = 1000
"""The chain of the imported proofs."""
_PROOFS: Final = Path(__file__).resolve().parents[3] / "examples" / "mainnet"


def write_imported(path: Path) -> Path:
    """Write a history of two imported blocks, of which only the second has a header."""
    bare, other = (
        read_relay_proof(_PROOFS / f"asset-hub-kusama-{number}.json") for number in (450000, 650000)
    )
    assert bare.chain == other.chain == IMPORTED
    header = Header(Hash(b"\1" * 32), other.number, Hash(b"\2" * 32), Hash(b"\3" * 32))
    full = replace(
        other,
        header=header.encode(),
        block=header.hash(),
        parent=header.parent_hash,
        state_root=header.state_root,
        max_pov=5_242_880,
        relay_header=RelayHeader(Hash(b"\4" * 32), other.relay_root),
        block_time=datetime(2023, 1, 1, tzinfo=UTC),
        runtime="statemine-1",
        collator_peer_id=b"peer",
        descendants=(
            replace(header, number=other.relay_parent, state_root=other.relay_root).encode(),
        ),
    )
    write_segment(open_store(path), Present(None), [bare, full])
    return path


def _values(kind: pa.DataType, old: Any, *, nullable: bool = False) -> Iterator[tuple[str, Any]]:
    if nullable and old is not None:
        yield "no value", None
    if pa.types.is_list(kind):
        rows = old or []
        if not rows:
            yield "made up", [_made_up(kind.value_type)]
        else:
            yield "emptied", []
            yield "last repeated", [*rows, rows[-1]]
            if rows != rows[::-1]:
                yield "reversed", rows[::-1]
            if isinstance(rows[0], dict):
                for name in rows[0]:
                    inner = kind.value_type.field(name).type
                    for tag, value in _values(inner, rows[0][name]):
                        yield f"[0].{name} {tag}", [{**rows[0], name: value}, *rows[1:]]
            else:
                yield from (
                    (f"[0] {tag}", [v, *rows[1:]]) for tag, v in _values(kind.value_type, rows[0])
                )
    elif pa.types.is_timestamp(kind):
        yield "other", datetime(2020, 2, 2, tzinfo=UTC)
    elif pa.types.is_boolean(kind):
        yield "turned round", not old
    elif pa.types.is_integer(kind):
        most = {"uint32": 2**32 - 1, "uint64": 2**64 - 1}.get(str(kind), 2**63 - 1)
        for value in dict.fromkeys(((old or 0) + 1, 0, most)):
            if value != old:
                yield ("largest" if value == most else f"{value}"), value
    elif pa.types.is_string(kind):
        yield "other", "zzz"
    elif pa.types.is_fixed_size_binary(kind):
        yield "a bit flipped", bytes([old[0] ^ 1]) + old[1:] if old else bytes(kind.byte_width)
    else:
        yield "a bit flipped", bytes([old[0] ^ 1]) + old[1:] if old else b"x"
        yield "longer", (old or b"") + b"\0"


def _made_up(kind: pa.DataType) -> Any:
    """Return some value of a type."""
    if pa.types.is_struct(kind):
        return {field.name: _made_up(field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_made_up(kind.value_type)]
    return next(value for _, value in _values(kind, None))
