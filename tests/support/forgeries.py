"""Every way of forging one value of a history, and what an audit makes of each; see `test_forgeries`.

PYTHONPATH=. python tests/forgeries.py      prints column, forgery and outcome of all of them
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from audit_support import SUBSCRIBER, drop_a_node, write_history
from history_forgery import Segment, load, store

from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.history.schema import Column, SchemaError, Table

CLAIMS: Final[dict[str, str]] = {
    "relay_headers.hash": "the relay chain's word; the header it is the hash of is not stored",
    "relay_headers.number": "the trusted input: what no block refers to is not looked into",
    "relay_headers.storage_root": "the trusted input: what no block refers to is not looked into",
    "relay_headers.slot": "the trusted input: what no block refers to is not looked into",
    "blocks.detail": "the chain's words beside its verdict, which is judged",
    "blocks.included_at": "the network's word on when a block was judged, between the blocks around it",
    "blocks.unpruned": "the collator's own witness of its full proof",
    "blocks.strategy": "what a simulation told the author to do; never read",
    "blocks.source": "where an imported proof is from",
    "events": "what a log is made of; no audit reads it",
    "truth": "what `score` holds findings against; no audit reads it",
    "checkpoints.entries": "of the checkpoint behind the last segment, until the next segment is there",
    "checkpoints.children": "of the checkpoint behind the last segment, until the next segment is there",
}
"""Columns, or tables, in which a forgery may pass, and why that is so."""


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


class Forger:
    """A history with a cheat in it, its audit, and audits of what forgeries make of it."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.history = write_history(scratch / "base", 6, segment_length=3, cheats={5: drop_a_node})
        self.reference = self._audit(self.history)

    def forgeries(self, columns: frozenset[str] = frozenset()) -> Iterator[Forgery]:
        """All of them, or those of some columns."""
        segments = load(self.history)
        for table in HISTORY_TABLES.values():
            if table.name in CLAIMS:
                continue
            for column in table.columns:
                if not columns or f"{table.name}.{column.name}" in columns:
                    yield from _of_column(segments, table, column)

    def outcome(self, forgery: Forgery) -> str:
        """`detected`, `passes`, or `not writable` for what no file of the table can hold."""
        segments = load(self.history)
        segments[forgery.segment].parts[forgery.table.name, forgery.chain][forgery.row][forgery.column.name] = (
            forgery.value
        )
        target = Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            found = self._audit(store(segments, target / "forged"))
        except SchemaError:
            return "not writable"
        except AuditFailed as failure:
            return f"stops the audit: {failure}"
        finally:
            shutil.rmtree(target)
        return "passes" if _verdict(found) == _verdict(self.reference) else "detected"

    def _audit(self, history: Path) -> AuditResult:
        return audit(history, history.with_name(f"{history.name}.out"), engine="python")


def _verdict(result: AuditResult) -> tuple[Any, ...]:
    """What an audit comes to, figures and digests aside."""
    return result.exit_code, result.codes, result.quarantined, [(row["chain"], row["status"]) for row in result.chains]


def _of_column(segments: list[Segment], table: Table, column: Column) -> Iterator[Forgery]:
    """Forgeries of the subscriber's rows in the second segment, a refused candidate among them, or in the first."""
    for at in (1, 0):
        for (name, chain), rows in segments[at].parts.items():
            if name != table.name or chain not in {None, SUBSCRIBER}:
                continue
            refused = [n for n, row in enumerate(rows) if row.get("status") == "rejected"]
            own = [n for n, row in enumerate(rows) if row.get("chain", SUBSCRIBER) == SUBSCRIBER]
            for place in dict.fromkeys((own[0], *refused)):
                for tag, value in _values(column.type, rows[place][column.name], nullable=column.nullable):
                    yield Forgery(table, column, tag, at, chain, place, value)
            return


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
            if isinstance(rows[0], dict):
                for name in rows[0]:
                    inner = kind.value_type.field(name).type
                    for tag, value in _values(inner, rows[0][name]):
                        yield f"[0].{name} {tag}", [{**rows[0], name: value}, *rows[1:]]
            else:
                yield from ((f"[0] {tag}", [v, *rows[1:]]) for tag, v in _values(kind.value_type, rows[0]))
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
    """Some value of a type."""
    if pa.types.is_struct(kind):
        return {field.name: _made_up(field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_made_up(kind.value_type)]
    return next(value for _, value in _values(kind, None))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        forger = Forger(Path(scratch))
        for forgery in forger.forgeries(frozenset(sys.argv[1:])):
            print(f"{forgery.name:32} {forgery.tag:24} {forger.outcome(forgery)}", flush=True)  # noqa: T201  # a tool


if __name__ == "__main__":
    main()
