"""The measures of a block: those from its row, and those from executing it (PS-70)."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from pubsub_emulator.primitives.pubsub import TimedOut, ValidFor, node_cost
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber.storage import PROCESSING_CURSOR
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import EPOCH, Row, fields_of
from pubsub_emulator.spark_audit.history.rows import (
    BLOCK_PLACE,
    POSITIONED,
    columns_of,
    empty_row,
    messages_of,
)

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of relay block 0 of an emulated network.

A history does not have the relay chain's clock, and slots of parachains do not tell the time: their
number in a relay block depends on the number of collators.
"""
RELAY_BLOCK_DURATION: Final = timedelta(seconds=6)
"""The time between two relay blocks."""
LAST_SLOT: Final = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // RELAY_BLOCK_DURATION
"""The last slot that measures contain. A claimed slot may be any number."""

_SAME: Final = (*BLOCK_PLACE, "status", "verdict", "slot", "collator", "relay_parent", "max_pov")
"""Columns that `block_measures` takes from `blocks` unchanged."""
_LEDGER: Final = (
    "budget",
    "used",
    "unused",
    "static_bytes",
    "map_charges",
    "own_state_bytes",
    "cache_state_bytes",
    "extrinsics_bytes",
    "extrinsics_state_bytes",
    "requested_bytes",
)
"""Measures that have the same name in the block's ledger."""


def row_measures(row: Row, nodes: Mapping[int, bytes], *, judged: bool) -> Row:
    """Return the measures of a row that need no execution.

    Nodes that could not be read count as 0 bytes.
    """
    out = empty_row(schema.BLOCK_MEASURES) | columns_of(row, _SAME)
    out["judged"] = judged
    time = _block_time(row)
    out["block_time"] = time
    out["day"] = None if time is None else time.date()
    slot_now = row["slot_now"]
    out["slot_now"] = None if slot_now is None or slot_now > LAST_SLOT else slot_now
    out["relay_root_checked"] = row["status"] != "imported"
    out["relay_lag"] = (
        None if row["included_at"] is None else row["included_at"] - row["relay_parent"]
    )
    out["proof_nodes"] = len(row["proof"])
    out["proof_bytes"] = sum(
        node_cost(len(nodes[reference])) for reference in row["proof"] if reference in nodes
    )
    messages = messages_of(row)
    out["messages_bytes"] = messages.weight
    out["hashed_messages"] = messages.hashed_count
    out["descendants"] = len(row.get("descendants") or ())
    if row["unpruned"] is not None:
        out["unpruned_bytes"] = sum(part["bytes"] for part in row["unpruned"])
    return out


def _block_time(row: Row) -> datetime | None:
    """Return when a block was judged, `None` if that is not known.

    For a candidate, it is the time of the relay block in which it was judged. For an imported
    block, it is the time that the block itself states.
    """
    if row["status"] == "imported":
        stored: datetime | None = row.get("block_time")
        return stored
    number = row["included_at"]
    return None if number is None else START + number * RELAY_BLOCK_DURATION


def executed_measures(row: Row, before: State, outcome: BlockOutcome) -> Row:
    """Return the measures that executing an included candidate adds."""
    ledger = outcome.ledger
    lag = row["included_at"] - row["relay_parent"]
    states = [delivery.ttl_state for delivery in outcome.deliveries]
    sums = {
        name: sum(getattr(publisher, name) for publisher in ledger.publishers)
        for name in schema.LEDGER
    }
    out = {
        **sums,
        **fields_of(ledger, _LEDGER),
        "stopped": outcome.plan.cursor is not None,
        **fields_of(ledger.weight, ("ref_time", "proof_size")),
        "cache_net": sums["cached_bytes"] - ledger.cache_state_bytes,
        "publishers": len(ledger.publishers),
        "unchanged": sum(publisher_ledger.unchanged for publisher_ledger in ledger.publishers),
        "resolved": sum(publisher_ledger.complete for publisher_ledger in ledger.publishers),
        "deliveries": len(outcome.deliveries),
        "timed_out": sum(isinstance(state, TimedOut) for state in states),
        "expired_valid": sum(
            isinstance(state, ValidFor) and state.blocks <= lag for state in states
        ),
        "cursor_before": before.top.get(PROCESSING_CURSOR.key),
        "cursor_after": outcome.state.top.get(PROCESSING_CURSOR.key),
    }
    if row["unpruned"] is not None:
        # The sizes of proofs without pruning are the network's claim. They are not checked.
        full_sizes = {part["publisher"]: part["bytes"] for part in row["unpruned"]}
        unchanged = [publisher for publisher in ledger.publishers if publisher.unchanged]
        out["saved_unchanged"] = sum(
            full_sizes.get(publisher_ledger.para, 0) - publisher_ledger.top_path_bytes
            for publisher_ledger in unchanged
        )
        full_proof = ledger.static_bytes + ledger.requested_bytes + sum(full_sizes.values())
        out["saved_pruned"] = full_proof - ledger.proof_bytes
    return out


def publisher_rows(row: Row, outcome: BlockOutcome) -> list[Row]:
    """Return a row of `publisher_measures` for each publisher that the block read."""
    full_sizes = {part["publisher"]: part["bytes"] for part in row["unpruned"] or ()}
    delivered = Counter(delivery.publisher for delivery in outcome.deliveries)
    delays: defaultdict[int, list[int]] = defaultdict(list)
    for change in outcome.plan.changes:
        if change.entry is not None:
            delays[change.para].append(row["included_at"] - change.entry.when_inserted)
    place = columns_of(row, POSITIONED)
    return [
        {
            **place,
            "publisher": ledger.para,
            **fields_of(ledger, ("unchanged", *schema.LEDGER)),
            "resolved": ledger.complete,
            "unpruned_bytes": full_sizes.get(ledger.para),
            "deliveries": delivered[ledger.para],
            "delays": sorted(delays[ledger.para]),
        }
        for ledger in outcome.ledger.publishers
    ]
