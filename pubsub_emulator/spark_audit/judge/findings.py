"""Findings: their codes, their severity, and the thresholds for patterns.

The verdicts of PS-52 are also codes of findings. This module has the other codes.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.version import VERSION

REJECTED_VALID: Final = "RejectedValid"
"""The chain refused a valid candidate."""

VERDICT_MISMATCH: Final = "VerdictMismatch"
"""The chain refused a candidate for another reason than this audit finds."""

DELIVERY_MISMATCH: Final = "DeliveryMismatch"
"""The callbacks on record differ from those that executing the block gives."""

SEAM_MISMATCH: Final = "SeamMismatch"
"""A segment does not end where the next one starts (AU-1)."""

RELAY_ROOT_MISMATCH: Final = "RelayRootMismatch"
"""A row of `blocks` or an inherent states another relay storage root than the relay header."""

UNTRUSTED_START: Final = "UntrustedStart"
"""A chain's first checkpoint is neither its genesis nor named as trusted."""

MISSING_SEGMENT: Final = "MissingSegment"
"""The history lacks a segment's checkpoint or blocks of a chain."""

UNOPENED_PROOF: Final = "UnopenedProof"
"""An imported relay proof does not open under its storage root."""

MISSING_KEY: Final = "MissingKey"
"""An imported relay proof does not give the value of a key that every parachain reads."""

UNREAD_NODES: Final = "UnreadNodes"
"""An imported relay proof has nodes that cannot belong to any key, or lists nodes twice."""

UNPLACED_NODES: Final = "UnplacedNodes"
"""An imported relay proof has nodes without a parent in the proof. A key may need them if the chain
has stored their parents."""

RELAY_LAG: Final = "RelayParentLag"
"""A collator's blocks used relay parents that were old when the blocks were judged."""
STALLING: Final = "StallingCollator"
"""Many blocks in a row used the relay parent of the block before."""
AT_BUDGET: Final = "AlwaysAtBudget"
"""A collator's blocks used the whole budget, or nearly, many times in a row."""
EQUIVOCATION: Final = "Equivocation"
"""A collator sealed two different headers for one slot."""
CURSOR_JUMP: Final = "CursorJump"
"""A block did not continue at the cursor that the block before left."""
EXPIRED_AS_VALID: Final = "ExpiredDeliveredAsValid"
"""Entries were delivered as valid although they had expired when the block was judged."""
STARVATION: Final = "Starvation"
"""A publisher was not served for many blocks in a row, while the budget ran out."""


class Severity(Enum):
    """The severity of a finding."""

    INFO = "info"
    """Something worth knowing."""
    WARNING = "warning"
    """An attempt that failed."""
    ERROR = "error"
    """A chain accepted a block that it had to refuse, or refused a valid one, or contradicts
    itself."""

    def at_least(self, other: "Severity") -> bool:
        """Return whether this severity is `other` or worse."""
        order = tuple(Severity)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The minimum figures with which a pattern is a finding of severity `info`."""

    relay_lag: int = 10
    """Relay blocks between a block's relay parent and the relay block in which it was judged. One
    such block is a finding already."""
    stalled_blocks: int = 8
    """Blocks in a row with the same relay parent."""
    at_budget_blocks: int = 8
    """Blocks in a row of one collator at the budget."""
    budget_ppm: int = 950_000
    """Millionths of the budget from which a block counts as being at the budget."""
    starved_blocks: int = 16
    """Blocks in a row in which a publisher was not served."""


def weigh(found: str | None, recorded: str | None) -> str | None:
    """Return the code of a block's finding, `None` if there is no finding.

    `found` is the verdict of this audit, `None` for a valid block. `recorded` is the verdict for
    which the chain refused the block according to the history, `None` for an included block.
    """
    if found == recorded or recorded is None:
        return found
    return REJECTED_VALID if found is None else VERDICT_MISMATCH


def finding_id(network: str, chain: int, code: str, subject: bytes) -> Hash:
    """Return a finding's id, which is equal in every run.

    `subject` distinguishes findings of the same code about the same chain.
    """
    parts = (network.encode(), chain.to_bytes(4, "little"), code.encode(), subject)
    return blake2_256(b"".join(map(encode_bytes, parts)))


def finding_row(  # noqa: PLR0917  # the parts of a finding
    chain: tuple[str, int],
    code: str,
    severity: Severity,
    subject: bytes,
    evidence: bytes,
    detail: str,
    place: Row,
) -> Row:
    """Return a row of `findings` about a chain, given as network and ParaId.

    `place` has those of the columns `segment`, `position`, `number`, `block` and `collator` that
    apply. `subject` distinguishes findings of the same code about the same chain.
    """
    place_columns = {
        name: place.get(name) for name in ("segment", "position", "number", "block", "collator")
    }
    verdict_columns = {
        "code": code,
        "severity": severity.value,
        "evidence": evidence,
        "detail": detail,
        "verifier": VERSION,
    }
    return {
        "id": finding_id(*chain, code, subject),
        "network": chain[0],
        "chain": chain[1],
        **place_columns,
        **verdict_columns,
    }
