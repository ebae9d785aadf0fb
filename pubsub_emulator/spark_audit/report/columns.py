"""The audit's tables by chain and by column: a long history is added up in Arrow, not row by row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.judge.results import Results

Chain = tuple[str, int]
"""Network and ParaId."""

PLACE: Final = ("network", "chain")
"""The columns that tell a chain."""

Names = Mapping[Chain, str]
"""What histories call chains, of those that have a name."""

Columns = Callable[[], Iterator[pa.Table]]
"""Goes once more through some columns of a chain's rows, a part at a time."""


def called(chain: Chain, names: Names) -> str:
    """Network, ParaId, and the name if there is one."""
    return " ".join((chain[0], str(chain[1]), names.get(chain, ""))).rstrip()


def columns(results: Results, table: Table, chain: Chain, names: Sequence[str]) -> Columns:
    """Some columns of a chain's rows in a table. Going through them raises `ResultError`."""
    network, para = chain
    wanted = list(dict.fromkeys((*PLACE, *names)))

    def parts() -> Iterator[pa.Table]:
        for group in results.groups(table, wanted):
            mine = group.filter(pc.and_(pc.equal(group["network"], network), pc.equal(group["chain"], para)))
            for name in names:
                if name not in mine.column_names:  # added to the table later
                    mine = mine.append_column(name, pa.nulls(mine.num_rows, table.wider.schema.field(name).type))
            if mine.num_rows:
                yield mine.select(list(names))

    return parts


def grouped(parts: Iterator[pa.Table], keys: Sequence[str], sums: Sequence[tuple[str, str]]) -> list[Row]:
    """Rows added up by `keys`, ascending; `sums` are (column, `sum`, `max`, `min` or `count`).

    A result is called like `proof_bytes_sum`. Integers stay exact; what has no value is not counted.
    """
    small = [part.group_by(list(keys)).aggregate(list(sums)) for part in parts]
    if not small:
        return []
    again = [(f"{name}_{how}", "sum" if how == "count" else how) for name, how in sums]
    merged = pa.concat_tables(small).group_by(list(keys)).aggregate(again)
    renamed = {f"{name}_{how}_{'sum' if how == 'count' else how}": f"{name}_{how}" for name, how in sums}
    rows: list[Row] = merged.rename_columns([renamed.get(name, name) for name in merged.column_names]).to_pylist()
    return sorted(rows, key=lambda row: tuple((row[key] is not None, row[key]) for key in keys))


def valid(part: pa.Table) -> pa.Table:
    """The valid included blocks and imported proofs among `block_measures`: those that the summaries count."""
    return part.filter(pc.and_(pc.not_equal(part["status"], "rejected"), pc.is_null(part["verdict"])))
