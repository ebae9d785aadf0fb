"""Findings: codes beside the verdicts of PS-52, how bad they are, and thresholds for what only a history shows."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.primitives.version import VERSION
from pubsub_emulator.spark_audit.history.row import Row

REJECTED_VALID: Final = "RejectedValid"
"""A candidate that the chain refused although it is valid."""

VERDICT_MISMATCH: Final = "VerdictMismatch"
"""A candidate that the chain refused for another reason than this audit finds."""

DELIVERY_MISMATCH: Final = "DeliveryMismatch"
"""Callbacks on record that executing the block does not give."""

SEAM_MISMATCH: Final = "SeamMismatch"
"""A segment that ends elsewhere than the next one starts (AU-1)."""

RELAY_ROOT_MISMATCH: Final = "RelayRootMismatch"
"""A block row that states another relay storage root than the relay header."""

UNTRUSTED_START: Final = "UntrustedStart"
"""A chain whose first checkpoint is neither genesis nor named as trusted."""

MISSING_SEGMENT: Final = "MissingSegment"
"""A chain of which a segment's checkpoint or blocks are not in the history."""

UNOPENED_PROOF: Final = "UnopenedProof"
"""An imported relay proof that its storage root does not open."""

UNREAD_NODES: Final = "UnreadNodes"
"""An imported relay proof with nodes that no key can need, or with nodes listed twice."""

UNPLACED_NODES: Final = "UnplacedNodes"
"""An imported relay proof with nodes that a key needs only if the chain has stored the nodes above them."""

RELAY_LAG: Final = "RelayParentLag"
STALLING: Final = "StallingCollator"
AT_BUDGET: Final = "AlwaysAtBudget"
EQUIVOCATION: Final = "Equivocation"
CURSOR_JUMP: Final = "CursorJump"
EXPIRED_AS_VALID: Final = "ExpiredDeliveredAsValid"
STARVATION: Final = "Starvation"


class Severity(Enum):
    """The severity of a finding: something to know, an attempt that failed, or a chain that took what it must not."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    def at_least(self, other: "Severity") -> bool:
        """Whether this is as bad as `other` or worse."""
        order = tuple(Severity)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which figures, in blocks or millionths of the budget, a history's habits are findings of severity `info`."""

    relay_lag: int = 10
    stalled_blocks: int = 8
    at_budget_blocks: int = 8
    budget_ppm: int = 950_000
    starved_blocks: int = 16


def weigh(found: str | None, recorded: str | None) -> str | None:
    """The code for a block with the verdict `found` that was recorded as refused with another, none for no verdict."""
    if found == recorded or recorded is None:
        return found
    return REJECTED_VALID if found is None else VERDICT_MISMATCH


def finding_id(network: str, chain: int, code: str, subject: bytes) -> Hash:
    """The id of a finding: equal in every run."""
    parts = (network.encode(), chain.to_bytes(4, "little"), code.encode(), subject)
    return blake2_256(b"".join(map(encode_bytes, parts)))


def finding_row(  # noqa: PLR0917  # what a finding is made of
    chain: tuple[str, int], code: str, severity: Severity, subject: bytes, evidence: bytes, detail: str, place: Row
) -> Row:
    """A finding about a chain of a network, and what `place` names; `subject` tells those of one code on it apart."""
    at = {name: place.get(name) for name in ("segment", "position", "number", "block", "collator")}
    said = {"code": code, "severity": severity.value, "evidence": evidence, "detail": detail, "verifier": VERSION}
    return {"id": finding_id(*chain, code, subject), "network": chain[0], "chain": chain[1], **at, **said}
