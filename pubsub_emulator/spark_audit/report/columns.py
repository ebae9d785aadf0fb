"""Access to the audit's tables by chain and by column.

Figures are added up in Arrow, not row by row, so that a long history takes little time and memory.
"""

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
"""The columns that identify a chain."""

Names = Mapping[Chain, str]
"""The chains' names in their histories, if they have one."""

Columns = Callable[[], Iterator[pa.Table]]
"""Yields some columns of a chain's rows, a part at a time, and can be called several times."""


def called(chain: Chain, names: Names) -> str:
    """Return a chain in words: network, ParaId, and name if there is one."""
    network, para = chain
    return f"{network} {para} {names.get(chain, '')}".rstrip()


def columns(results: Results, table: Table, chain: Chain, names: Sequence[str]) -> Columns:
    """Return a function that yields some columns of a chain's rows.

    Calling it raises `ResultError` if the table cannot be read.
    """
    network, para = chain
    wanted = list(dict.fromkeys((*PLACE, *names)))

    def parts() -> Iterator[pa.Table]:
        for group in results.groups(table, wanted):
            of_chain = group.filter(
                pc.and_(pc.equal(group["network"], network), pc.equal(group["chain"], para))
            )
            for name in names:
                if name not in of_chain.column_names:
                    # The file is older than this column of the table.
                    of_chain = of_chain.append_column(
                        name, pa.nulls(of_chain.num_rows, table.wider.schema.field(name).type)
                    )
            if of_chain.num_rows:
                yield of_chain.select(list(names))

    return parts


def grouped(
    parts: Iterator[pa.Table], keys: Sequence[str], sums: Sequence[tuple[str, str]]
) -> list[Row]:
    """Add up rows by the columns `keys`, and return the results in their order.

    `sums` are pairs of a column and `sum`, `max`, `min` or `count`. A result has a name like
    `proof_bytes_sum`. Integers stay exact, and nulls are not counted.
    """
    # Each part is aggregated, and then the results are aggregated. So only small tables are in
    # memory together.
    partial_sums = [part.group_by(list(keys)).aggregate(list(sums)) for part in parts]
    if not partial_sums:
        return []
    merge_steps: list[tuple[str, str]] = []
    renamed: dict[str, str] = {}
    for name, function in sums:
        column = f"{name}_{function}"
        # In the second step, counts are added.
        merging = "sum" if function == "count" else function
        merge_steps.append((column, merging))
        renamed[f"{column}_{merging}"] = column
    merged = pa.concat_tables(partial_sums).group_by(list(keys)).aggregate(merge_steps)
    names = [renamed.get(name, name) for name in merged.column_names]
    rows: list[Row] = merged.rename_columns(names).to_pylist()
    # Nulls come first. They cannot be compared with other values.
    return sorted(rows, key=lambda row: tuple((row[key] is not None, row[key]) for key in keys))


def valid(part: pa.Table) -> pa.Table:
    """Return the valid included blocks and imported proofs in a part of `block_measures`.

    The table `summaries` has rows for the same blocks.
    """
    return part.filter(
        pc.and_(pc.not_equal(part["status"], "rejected"), pc.is_null(part["verdict"]))
    )
