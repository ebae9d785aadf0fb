"""Folders: histories with their blocks, audits, fixtures."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.inspection.block import judged_block, node_figures, node_page
from pubsub_emulator.inspection.view import View, counted, view
from pubsub_emulator.laboratory.fixture_set import read_vectors
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.spark_audit.compare import HistoryRecord
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.reader import Fault, History, check_file
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge.results import Results

MOST_NAMED: Final = 12
"""Blocks that an error names, and files that are not readable."""


def history(path: Path) -> View:
    """Return the view of a history.

    Its manifests and the rows of the table `blocks` are read. The files of all other tables are
    only checked.
    """
    opened = History.open(path)
    faults = list(opened.faults)
    entries = list(itertools.chain.from_iterable(commit.files for commit in opened.commits))
    rows = Counter[str]()
    sizes = Counter[str]()
    for entry in entries:
        rows[entry.table] += entry.rows
        sizes[entry.table] += entry.weight
    chains: dict[tuple[str, int], Counter[str]] = {}
    verdicts: Counter[str] = Counter()
    for row in opened.rows(opened.files(schema.BLOCKS), faults):
        chains.setdefault((row["network"], row["chain"]), Counter())[row["status"]] += 1
        if row["verdict"]:
            verdicts[row["verdict"]] += 1
    for entry in entries:
        if entry.table != schema.BLOCKS.name:
            faults += check_file(opened.root, entry)
    # A damaged file gives an equal fault for each chain in it.
    faults = list({(fault.path, fault.row_group, fault.error): fault for fault in faults}.values())
    figures = {
        "networks": sorted({commit.network for commit in opened.commits}),
        "segments": len(opened.commits),
        "chains": len(chains),
        "relay_blocks": rows["relay_headers"],
        "blocks": rows["blocks"],
        "deliveries": rows["deliveries"],
        "proof_nodes": rows["nodes"],
        "bytes": sizes.total(),
        "unreadable": len(faults),
        "by_chain": [
            {"network": network, "chain": chain, **counts}
            for (network, chain), counts in sorted(chains.items())
        ],
        "verdicts": dict(sorted(verdicts.items())),
        "tables": {name: {"rows": rows[name], "bytes": sizes[name]} for name in sorted(rows)},
        "faults": [{"path": _place_of(fault), "error": fault.error} for fault in faults],
    }
    lines = tuple(
        (f"{network} {chain}", counts["included"], counts["rejected"], counts["imported"])
        for (network, chain), counts in sorted(chains.items())
    )
    pages: list[Shown] = [
        Grid("blocks by chain", ("chain", "included", "rejected", "imported"), lines)
    ]
    if verdicts:
        pages.append(counted("refused blocks", ("verdict", "blocks"), verdicts))
    tables = tuple((name, rows[name], sizes[name]) for name in sorted(rows))
    pages.append(Grid("tables", ("table", "rows", "bytes"), tables))
    if faults:
        pages += unreadable((_place_of(fault), fault.error) for fault in faults)
    pages.append(
        Line("`--block CHAIN:NUMBER` shows a block with its ledger, proof nodes and deliveries")
    )
    return view("history", path, figures, pages)


def unreadable(places: Iterable[tuple[str, str]]) -> Iterator[Line]:
    """Yield lines about the files that could not be read.

    The lines are not a table, because the names of files leave no room for columns.
    """
    distinct = list(dict.fromkeys(places))
    yield Line(f"not readable: {len(distinct):,}")
    yield from (Line(f"  {place}: {error}") for place, error in distinct[:MOST_NAMED])
    if len(distinct) > MOST_NAMED:
        yield Line(f"  and {len(distinct) - MOST_NAMED:,} more; --json has all")
    yield Line("an intact copy of a damaged file repairs it: the manifest has its digest\n")


def _place_of(fault: Fault) -> str:
    """Return the file of a fault, with its row group if the fault is in one."""
    return fault.path if fault.row_group is None else f"{fault.path}, row group {fault.row_group}"


def history_block(path: Path, block: str, rules: Rules = SHIPPED) -> View:
    """Return the view of all candidates for one block, `[NETWORK/]CHAIN:NUMBER`, executed again.

    An imported relay proof of that block is shown instead if there is no candidate. `rules` apply
    if the chain names them. Raises `InputError`, `CompareError`.
    """
    network, chain, number = _place(block)
    record = HistoryRecord(path, rules)
    chains = [entry for entry in record.chains if entry[1] == chain and network in (None, entry[0])]
    if not chains:
        known_chains = ", ".join(f"{name}/{para}" for name, para in record.chains) or "none"
        raise InputError(f"{path}: --block {block}: no such chain. Chains: {known_chains}")
    if len(chains) > 1:
        choices = ", ".join(f"{name}/{chain}:{number}" for name, _ in chains)
        raise InputError(f"{path}: --block {block}: several networks have that chain: {choices}")
    numbers = set[int]()
    matching = []
    for judged in record.blocks(*chains[0]):
        candidate_number = judged.candidate.header.number
        if candidate_number == number:
            matching.append(judged)
        elif matching and candidate_number > number:
            break
        numbers.add(candidate_number)
    imported: dict[int, Row] = {}
    if not matching:
        for row in record.rows(tuple(record.history.files(schema.BLOCKS, *chains[0]))):
            if row["status"] == "imported" and row["number"] is not None:
                imported[row["number"]] = row
    if number in imported:
        return _imported_proof(path, *chains[0], imported[number], record)
    if not matching:
        known = sorted({*numbers, *imported})
        raise InputError(f"{path}: --block {block}: the chain has {_numbers(known)}")
    views = [judged_block(entry, path) for entry in matching]
    pages = tuple(itertools.chain.from_iterable(entry.pages for entry in views))
    return View(
        {"kind": "blocks", "path": str(path), "blocks": [entry.document for entry in views]}, pages
    )


def _numbers(numbers: list[int]) -> str:
    """Return ascending block numbers in words: as a range, or the first ones if there are gaps."""
    if not numbers:
        return "no blocks"
    if len(numbers) == 1:
        return f"block {numbers[0]}"
    if numbers[-1] - numbers[0] + 1 == len(numbers):
        return f"blocks {numbers[0]} to {numbers[-1]}"
    listed = ", ".join(map(str, numbers[:MOST_NAMED]))
    more = len(numbers) - MOST_NAMED
    return f"blocks {listed} and {more} more" if more > 0 else f"blocks {listed}"


def _imported_proof(path: Path, network: str, chain: int, row: Row, record: HistoryRecord) -> View:
    """Show an imported relay proof.

    It has no block and no state, so nothing can be executed.
    """
    node_rows = record.rows(
        tuple(record.history.files(schema.NODES, network, None, row["segment"]))
    )
    data = {node_row["number"]: node_row["data"] for node_row in node_rows}
    nodes = [node_figures(data[reference]) for reference in row["proof"] if reference in data]
    figures = {
        "network": network,
        "chain": chain,
        "number": row["number"],
        "relay_parent": row["relay_parent"],
        "relay_root": row["relay_parent_root"],
        "proof_nodes": len(row["proof"]),
        "proof_bytes": sum(node.cost for node in nodes),
        "nodes": [node._asdict() for node in nodes],
    }
    return view("imported relay proof", path, figures, (node_page(nodes),))


def _place(text: str) -> tuple[str | None, int, int]:
    """Parse `[NETWORK/]CHAIN:NUMBER`. Raises `InputError`."""
    network, slash, rest = text.rpartition("/")
    chain, colon, number = rest.partition(":")
    if not colon or not chain.isdecimal() or not number.isdecimal():
        raise InputError(
            f"--block is CHAIN:NUMBER, as in 2000:17, or NETWORK/CHAIN:NUMBER, not {text!r}"
        )
    return network if slash else None, int(chain), int(number)


def audit(path: Path) -> View:
    """Return the view of an audit, from its report and tables. Raises `ResultError`."""
    results = Results.open(path)
    report = results.report
    chains = list(results.rows(schema.CHAINS))
    codes = Counter(row["code"] for row in results.rows(schema.FINDINGS))
    read_errors = list(results.rows(schema.READ_ERRORS))
    figures = {
        **{
            name: value
            for name, value in report.items()
            if isinstance(value, str | int) and value is not None
        },
        "chains": len(chains),
        "findings": sum(codes.values()),
        "read_errors": len(read_errors),
        "codes": dict(sorted(codes.items())),
        "by_chain": [
            {name: row.get(name) for name in ("network", "chain", "name", "status")}
            for row in chains
        ],
        "read_error_rows": [{"path": row["path"], "error": row["error"]} for row in read_errors],
    }
    statuses = Counter(row["status"] for row in chains)
    pages: list[Shown] = [counted("chains", ("status", "chains"), statuses)]
    if codes:
        pages.append(counted("findings", ("code", "count"), codes))
    if read_errors:
        pages += unreadable((row["path"], row["error"]) for row in read_errors)
    return view("audit", path, figures, pages)


def fixtures(path: Path) -> View:
    """Return the view of a folder of fixtures. Raises `FixtureError`."""
    vectors = read_vectors(path)
    verdicts = Counter(fixture.expected.verdict or "accepted" for fixture in vectors)
    figures = {
        "fixtures": len(vectors),
        "chains": len({fixture.chain for fixture in vectors}),
        "verdicts": dict(sorted(verdicts.items())),
        "names": [fixture.name for fixture in vectors],
    }
    return view(
        "folder of fixtures", path, figures, (counted("fixtures", ("verdict", "files"), verdicts),)
    )
