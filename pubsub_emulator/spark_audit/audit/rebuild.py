"""A candidate from its row, and the row with what header and state say in the place of what it claims."""

from collections.abc import Mapping

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.header import Header, turn_of
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS
from pubsub_emulator.runtime.parachain.block import Candidate
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.spark_audit.audit.measures import I64_MAX
from pubsub_emulator.spark_audit.audit.notes import Notes, short, shown
from pubsub_emulator.spark_audit.history.rows import LostNode, Row, RowError, candidate_of


class Undecided(Exception):  # no error of the program: the segment cannot be judged further
    """The judgement of this segment cannot go on."""


def rebuild(notes: Notes, row: Row, nodes: Mapping[int, bytes], parent: Header, state: State) -> tuple[Candidate, Row]:
    """The candidate of a row, and the row with what header and state say. Raises `LostNode`, `Undecided`."""
    position = row["position"]
    try:
        candidate = candidate_of(row, nodes)
        spec = runtime_spec(state.top)
    except LostNode:
        raise
    except (RowError, ScaleError) as error:
        notes.fault(notes.blocks_path(), str(error), position=position)
        raise Undecided from None
    if spec.handler not in HANDLERS:
        notes.fault(notes.blocks_path(), f"the handler {short(spec.handler)!r} is not known here", position=position)
        raise Undecided
    facts = _facts(candidate.header, parent, state, spec)
    for name, fact in facts.items():
        if row[name] != fact:
            said = f"the row says {name} {shown(row[name])}, its block says {shown(fact)}"
            notes.fault(notes.blocks_path(), said, position=position)
    if row["status"] == "included" and (row["verdict"] is not None or row["detail"] is not None):
        said = f"the row says both included and refused, for {shown(row['verdict'] or row['detail'])}"
        notes.fault(notes.blocks_path(), said, position=position)
    unpruned = row["unpruned"]
    if unpruned is not None and sum(part["bytes"] for part in unpruned) > I64_MAX:
        notes.fault(notes.blocks_path(), "the sum of unpruned is too large", position=position)
        unpruned = None
    return candidate, {**row, **facts, "unpruned": unpruned}


def _facts(header: Header, parent: Header, state: State, spec: RuntimeSpec) -> Row:
    """Columns of a candidate's row that its header and the state it was judged on say too."""
    return {
        "number": header.number,
        "slot": header.aura_slot(),
        "parent": header.parent_hash,
        "state_root": header.state_root,
        "parent_state_root": parent.state_root,
        "max_pov": spec.max_pov_size,
        "allowed_pov": spec.allowed_pov,
        "collator": _author(state, header),
    }


def _author(state: State, header: Header) -> bytes | None:
    """The collator whose turn the header's slot is, by the state that it was judged on."""
    slot, keys = header.aura_slot(), AUTHORITIES.get(Storage(state))
    return None if slot is None or not keys else turn_of(slot, keys)
