"""The candidate of a row, and the row corrected by the candidate's header and the state."""

from collections.abc import Mapping
from typing import Final

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.header import Header, turn_of
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.rows import LostNode, RowError, candidate_of, slot_of
from pubsub_emulator.spark_audit.history.schema import I64_MAX
from pubsub_emulator.spark_audit.judge.notes import Place, contradictions, short, shown

IMPORTED_ONLY: Final = ("source", "block_time", "runtime")
"""Columns of `blocks` that only an imported block has."""


class Unusable(Exception):
    """A row from which no candidate can be rebuilt, with the reason as the message.

    It never reaches the user: the judgement catches it and ends the segment.
    """


def rebuild(
    place: Place, row: Row, nodes: Mapping[int, bytes], head: ChainHead
) -> tuple[Candidate, Row, list[Fault]]:
    """Return a row's candidate, the corrected row, and a fault for each correction.

    In the corrected row, columns have the values that header and state give them, so that no
    measure depends on a false claim. Raises `LostNode` if a node of the proof is missing, and
    `Unusable` if the row is not a candidate or the state is not that of a known parachain.
    """
    position = row["position"]
    try:
        candidate = candidate_of(row, nodes)
        spec = runtime_spec(head.state.top)
    except LostNode:
        raise
    except (RowError, ScaleError) as error:
        raise Unusable(str(error)) from None
    if spec.handler not in HANDLERS:
        raise Unusable(f"the handler {short(spec.handler)!r} is not known here")
    facts = _facts(candidate.header, head, spec)
    faults = contradictions(place, row, facts)
    if row["status"] == "included" and (row["verdict"] is not None or row["detail"] is not None):
        message = (
            f"the row says both included and refused, for {shown(row['verdict'] or row['detail'])}"
        )
        faults.append(place.fault(message, position))
    forbidden = (name for name in IMPORTED_ONLY if row.get(name))
    faults += [
        place.fault(f"the row of a candidate has {name} {shown(row[name])}", position)
        for name in forbidden
    ]
    weight = candidate.inherent.messages_used
    if row["messages_used"] != weight:
        message = (
            f"the row says that messages take {row['messages_used']} bytes, and they take {weight}"
        )
        faults.append(place.fault(message, position))
    unpruned = row["unpruned"]
    # Measures are signed integers of 64 bits.
    if unpruned is not None and sum(part["bytes"] for part in unpruned) > I64_MAX:
        faults.append(place.fault("the sum of unpruned is too large", position))
        unpruned = None
    return candidate, {**row, **facts, "messages_used": weight, "unpruned": unpruned}, faults


def _facts(header: Header, head: ChainHead, spec: RuntimeSpec) -> Row:
    """Return the columns of a candidate's row that its header and its parent's state determine."""
    return {
        "number": header.number,
        "slot": slot_of(header),
        "parent": header.parent_hash,
        "state_root": header.state_root,
        "parent_state_root": head.header.state_root,
        "max_pov": spec.max_pov_size,
        "allowed_pov": spec.allowed_pov,
        "collator": _author(head.state, header),
    }


def _author(state: State, header: Header) -> bytes | None:
    """Return the collator whose turn the header's slot is, by the state of its parent.

    Returns `None` if the header has no slot or the state has no collators.
    """
    slot = header.aura_slot()
    keys = AUTHORITIES.get(Storage(state))
    return None if slot is None or not keys else turn_of(slot, keys)
