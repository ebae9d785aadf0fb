"""The plan of the folds of a round, which add new segments to the totals of their chains.

A fold continues from the states in which the last folds of its chains ended.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from pubsub_emulator.spark_audit.audit.ledger import NetworkLedger
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.results import FoldReceipt, RowRange, SegmentReceipt
from pubsub_emulator.spark_audit.judge.units import BLOCK_WEIGHT, Fold, fold_fingerprint
from pubsub_emulator.spark_audit.tables.parts import Tables

FOLDED: Final = 256
"""Segments times chains in a fold, approximately. If a round has few segments of a network, a fold
has more chains."""

_BLOCKS: Final = schema.BLOCK_MEASURES.name
_PUBLISHERS: Final = schema.PUBLISHER_MEASURES.name
"""The tables whose rows are folded."""


def plan_folds(
    root: str,
    receipts: Sequence[SegmentReceipt],
    networks: Mapping[str, NetworkLedger],
    tables: Tables,
    limits: Thresholds,
) -> list[Fold]:
    """Return the folds of a round. `receipts` are those of its segments, in order of networks.

    A network's chains are divided into several folds, so that all cores have work, whether there
    are many networks, many chains or many segments. `root` is the history's address.
    """
    folds: list[Fold] = []
    for network, group in groupby(receipts, lambda receipt: receipt["network"]):
        network_receipts = list(group)
        ledger = networks.get(network)
        last_folds = [] if ledger is None else ledger.account.folds
        folds += [
            _plan_fold(
                root,
                network_receipts,
                chains,
                last_folds=last_folds,
                tables=tables,
                limits=limits,
            )
            for chains in _chain_groups(network_receipts, last_folds)
        ]
    return folds


def _chain_groups(
    receipts: Sequence[SegmentReceipt], last_folds: Sequence[FoldReceipt]
) -> Iterator[tuple[int, ...]]:
    """Divide a network's chains into groups, one for each fold.

    Chains without new segments are in a group as well: each chain must be in exactly one fold that
    ends with the last segment. A network without chains still has one fold.
    """
    distinct: set[int] = set()
    for fold in last_folds:
        distinct.update(map(int, fold["chains"]))
    for receipt in receipts:
        distinct.update(chain["chain"] for chain in receipt["chains"])
    chains = sorted(distinct)
    segments = len({receipt["segment"] for receipt in receipts})
    size = max(FOLDED // segments, 1)
    for start in range(0, max(len(chains), 1), size):
        yield tuple(chains[start : start + size])


def _plan_fold(
    root: str,
    receipts: Sequence[SegmentReceipt],
    chains: tuple[int, ...],
    *,
    last_folds: Sequence[FoldReceipt],
    tables: Tables,
    limits: Thresholds,
) -> Fold:
    """Return the task that folds these chains. `receipts` are all of one network in this round."""
    network = receipts[0]["network"]
    previous = [fold for fold in last_folds if not {*chains}.isdisjoint(map(int, fold["chains"]))]
    with_chains: list[SegmentReceipt] = []
    blocks = 0
    for receipt in receipts:
        judged = [chain for chain in receipt["chains"] if chain["chain"] in chains]
        if judged:
            with_chains.append(receipt)
            blocks += sum(chain["candidates"] for chain in judged)
    block_rows = _find_rows(_BLOCKS, with_chains, tables)
    publisher_rows = _find_rows(_PUBLISHERS, with_chains, tables)
    return Fold(
        root=root,
        network=network,
        chains=chains,
        first=receipts[0]["segment"],
        last=receipts[-1]["segment"],
        segments=tuple(zip(block_rows, publisher_rows, strict=True)),
        befores=tuple(fold["files"]["state.json"][0] for fold in previous),
        limits=limits,
        # A fold over a result that must not be reused must not be reused itself.
        keep=all(receipt["kept"] for receipt in (*receipts, *previous)),
        weight=blocks * BLOCK_WEIGHT,
        fingerprint=fold_fingerprint(
            [fold["fingerprint"] for fold in previous],
            network,
            chains,
            receipts=receipts,
            limits=limits,
        ),
    )


def _find_rows(
    name: str, receipts: Sequence[SegmentReceipt], tables: Tables
) -> list[RowRange | None]:
    """Return where each receipt's rows of the table `name` are, `None` if it has no such rows.

    Rows of new results are in the results' own files. The last run has put its rows into the
    output's tables; its receipts have the key `unread`.
    """
    in_tables = [receipt["folder"] for receipt in receipts if "unread" in receipt]
    found = tables.find(name, in_tables) if in_tables else {}
    ranges: list[RowRange | None] = []
    for receipt in receipts:
        if name not in receipt["files"]:
            ranges.append(None)
            continue
        path, _ = receipt["files"][name]
        ranges.append(found.get(receipt["folder"]) or RowRange(path))
    return ranges
