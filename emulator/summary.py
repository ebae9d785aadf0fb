"""What a run came to, in figures: an observer that only counts, and keeps nothing that grows with the run."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from emulator.records import AuthorityRecord, BlockRecord, CheckpointRecord, RelayRecord, SubscriptionRecord
from primitives.types import ParaId


@dataclass(slots=True)
class ChainSummary:
    """One parachain; sizes in bytes."""

    blocks: int = 0
    refused: int = 0
    delivered: int = 0
    removed: int = 0
    messages_bytes: int = 0
    proof_bytes: int = 0
    unpruned_bytes: int = 0
    budget_bytes: int = 0
    used_bytes: int = 0
    own_state_bytes: int = 0
    cache_state_bytes: int = 0
    stops: int = 0
    """Blocks in which the walk stopped at the budget."""
    unchanged: int = 0
    """Publishers met whose root was the one processed."""
    largest_proof: int = 0


@dataclass(slots=True)
class Summary:
    """Everything, by chain; `verdicts` by what was found, `cheats` by (strategy, verdict)."""

    relay_blocks: int = 0
    relay_root: bytes = b""
    chains: dict[ParaId, ChainSummary] = field(default_factory=dict)
    verdicts: Counter[str] = field(default_factory=Counter)
    cheats: Counter[tuple[str, str]] = field(default_factory=Counter)
    undetected: int = 0
    """Blocks by a cheat that was told to cheat, and were valid: none, if the verifier is right."""

    # An observer

    def relay_block(self, record: RelayRecord) -> None:
        """Count it."""
        self.relay_blocks = record.number
        self.relay_root = record.storage_root

    def authorities(self, record: AuthorityRecord) -> None:
        """Nothing to count."""

    def subscriptions(self, record: SubscriptionRecord) -> None:
        """Nothing to count."""

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Nothing to count."""

    def candidate(self, record: BlockRecord) -> None:
        """Count a candidate."""
        chain = self.chains.setdefault(record.chain, ChainSummary())
        if record.refusal is not None:
            chain.refused += 1
            verdict = record.refusal.verdict.value
            self.verdicts[verdict] += 1
            if record.strategy is not None:
                self.cheats[record.strategy, verdict] += 1
        if record.outcome is None:
            return
        self.undetected += record.strategy is not None
        ledger = record.outcome.ledger
        chain.blocks += 1
        for delivery in record.outcome.deliveries:
            if delivery.value is None:
                chain.removed += 1
            else:
                chain.delivered += 1
        chain.messages_bytes += ledger.messages_bytes
        chain.proof_bytes += ledger.proof_bytes
        chain.unpruned_bytes += ledger.static_bytes + sum(size for _, size in record.unpruned)
        chain.budget_bytes += ledger.budget
        chain.used_bytes += ledger.used
        chain.own_state_bytes += ledger.own_state_bytes
        chain.cache_state_bytes += ledger.cache_state_bytes
        chain.stops += record.outcome.plan.cursor is not None
        chain.unchanged += sum(publisher.unchanged for publisher in ledger.publishers)
        chain.largest_proof = max(chain.largest_proof, ledger.proof_bytes)

    def json(self) -> dict[str, Any]:
        """As written to `summary.json`."""
        return {
            "relay_blocks": self.relay_blocks,
            "relay_root": "0x" + self.relay_root.hex(),
            "verdicts": dict(sorted(self.verdicts.items())),
            "cheats": [
                {"strategy": strategy, "verdict": verdict, "blocks": count}
                for (strategy, verdict), count in sorted(self.cheats.items())
            ],
            "undetected": self.undetected,
            "chains": {str(para): _fields(chain) for para, chain in sorted(self.chains.items())},
        }


def _fields(chain: ChainSummary) -> dict[str, int]:
    return {name: getattr(chain, name) for name in ChainSummary.__slots__}
