"""A summary of a run in figures, counted by an observer in constant memory."""

from collections import Counter
from dataclasses import dataclass, fields, is_dataclass
from dataclasses import field as dataclass_field

from pubsub_emulator.emulator.network.records import BlockRecord, Observer, RelayRecord
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.dispatch import ModuleError
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.system import ExtrinsicFailed
from pubsub_emulator.runtime.pallet_pubsub.events import (
    DataPublished,
    KeyExpired,
    KeysDeleted,
    KeysForcedDeleted,
)
from pubsub_emulator.xcm import Incomplete


@dataclass(slots=True)
class ChainSummary:
    """The figures of one parachain, with sizes in bytes."""

    blocks: int = 0
    """Valid blocks."""
    refused: int = 0
    """Invalid candidates."""
    delivered: int = 0
    """Delivered values."""
    removed: int = 0
    """Delivered removals."""
    messages_bytes: int = 0
    """The size of inbound messages."""
    proof_bytes: int = 0
    """The size of proofs."""
    unpruned_bytes: int = 0
    """The size that proofs had before pruning."""
    budget_bytes: int = 0
    """The sum of budgets."""
    used_bytes: int = 0
    """The sum of charges against budgets."""
    own_state_bytes: int = 0
    """The size that reading the parachain's own state adds to its storage proofs."""
    cache_state_bytes: int = 0
    """The part of `own_state_bytes` for the cache."""
    stops: int = 0
    """Blocks in which the walk stopped because the budget was used up."""
    unchanged: int = 0
    """Visits of publishers whose root had been processed before."""
    largest_proof: int = 0
    """The size of the largest proof."""
    latency: int = 0
    """The sum of the numbers of relay blocks from publication to delivery, over all updates."""
    latest: int = 0
    """The largest number of relay blocks from publication to delivery."""
    ref_time: int = 0
    """The reference time of all blocks (`BlockLedger.weight`)."""
    proof_size: int = 0
    """The proof size of all blocks (`BlockLedger.weight`)."""


@dataclass(slots=True)
class PublisherSummary:
    """The figures of one publisher, in numbers of keys."""

    published: int = 0
    expired: int = 0
    deleted: int = 0
    failed: Counter[str] = dataclass_field(default_factory=Counter)
    """Failed publishes by error."""
    cut_short: int = 0
    """Messages that ended at a failed instruction, so that later ones did not run (PS-21)."""


@dataclass(slots=True)
class Summary(Observer):
    """All figures of a run."""

    relay_blocks: int = 0
    """The height of the newest relay block."""
    relay_root: bytes = b""
    """The storage root of the newest relay block."""
    chains: dict[ParaId, ChainSummary] = dataclass_field(default_factory=dict)
    verdicts: Counter[str] = dataclass_field(default_factory=Counter)
    """Invalid candidates by verdict."""
    cheats: Counter[tuple[str, str]] = dataclass_field(default_factory=Counter)
    """Invalid candidates by strategy and verdict."""
    idle: Counter[str] = dataclass_field(default_factory=Counter)
    """Honest blocks whose authors tried a strategy that changed nothing, by strategy."""
    publishers: dict[ParaId, PublisherSummary] = dataclass_field(default_factory=dict)
    failed_calls: Counter[str] = dataclass_field(default_factory=Counter)
    """Failed calls on the relay chain, by error."""
    lost_downward: int = 0
    """Downward messages that were lost because a queue was full."""
    weight: Weight = WEIGHT_ZERO
    """The weight that calls and hooks of all relay blocks used."""
    heaviest: Weight = WEIGHT_ZERO
    """The maximum weight of one block, separately for each dimension."""
    lags: Counter[int] = dataclass_field(default_factory=Counter)
    """Entries removed as expired, by the number of relay blocks since their expiry."""
    blocks: dict[int, int] = dataclass_field(default_factory=dict)
    """Relay blocks by the time of insertion of entries that are published in them."""
    undetected: int = 0
    """Cheats that were judged as valid blocks. The number is 0 if the verifier is right."""

    def relay_block(self, record: RelayRecord) -> None:
        """Count a relay block and its events."""
        self.relay_blocks = record.number
        self.blocks[record.clock] = record.number
        self.relay_root = record.storage_root
        for event in record.events:
            self._event(event)
        self.lost_downward += record.lost_downward
        self.weight += record.weight
        self.heaviest = Weight(
            max(self.heaviest.ref_time, record.weight.ref_time),
            max(self.heaviest.proof_size, record.weight.proof_size),
        )
        self.lags.update(record.lags)
        for message in record.executions:
            if message.execution.failures:
                publisher = self._publisher(message.para)
                publisher.cut_short += isinstance(message.execution.outcome, Incomplete)
                publisher.failed.update(
                    failure.error.kind.name if failure.cause is None else _error(failure.cause)
                    for failure in message.execution.failures
                )

    def _event(self, event: Event) -> None:
        """Count an event of the relay chain."""
        match event:
            case DataPublished(publisher):
                self._publisher(publisher).published += 1
            case KeyExpired(publisher):
                self._publisher(publisher).expired += 1
            case KeysDeleted(publisher, count) | KeysForcedDeleted(publisher, count):
                self._publisher(publisher).deleted += count
            case ExtrinsicFailed(error):
                self.failed_calls[_error(error)] += 1

    def _publisher(self, para: ParaId) -> PublisherSummary:
        return self.publishers.setdefault(para, PublisherSummary())

    def candidate(self, record: BlockRecord) -> None:
        """Count a candidate."""
        chain = self.chains.setdefault(record.chain, ChainSummary())
        if record.idle is not None:
            self.idle[record.idle] += 1
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
        called = {(delivery.publisher, delivery.key) for delivery in record.outcome.deliveries}
        for change in record.outcome.plan.changes:
            if change.entry is not None and (change.para, change.key) in called:
                # With some rules, the time of insertion is not the number of the relay block.
                inserted = change.entry.when_inserted
                age = record.included_at - self.blocks.get(inserted, inserted)
                chain.latency += age
                chain.latest = max(chain.latest, age)
        chain.messages_bytes += ledger.messages_bytes
        chain.proof_bytes += ledger.proof_bytes
        chain.unpruned_bytes += ledger.static_bytes + sum(size for _, size in record.unpruned)
        chain.budget_bytes += ledger.budget
        chain.used_bytes += ledger.used
        chain.own_state_bytes += ledger.own_state_bytes
        chain.cache_state_bytes += ledger.cache_state_bytes
        chain.ref_time += ledger.weight.ref_time
        chain.proof_size += ledger.weight.proof_size
        chain.stops += record.outcome.plan.cursor is not None
        chain.unchanged += sum(publisher.unchanged for publisher in ledger.publishers)
        chain.largest_proof = max(chain.largest_proof, ledger.proof_bytes)

    def json(self) -> dict[str, object]:
        """Return the figures as they are in `summary.json`."""
        cheats = sorted(self.cheats.items())
        return {
            "relay_blocks": self.relay_blocks,
            "relay_root": hexed(self.relay_root),
            "verdicts": plain(self.verdicts),
            "cheats": [
                {"strategy": strategy, "verdict": verdict, "blocks": count}
                for (strategy, verdict), count in cheats
            ],
            "undetected": self.undetected,
            "publishers": plain(self.publishers),
            "failed_calls": plain(self.failed_calls),
            "lost_downward": self.lost_downward,
            "weight": plain(self.weight),
            "heaviest_block": plain(self.heaviest),
            "expiry_lag": plain(self.lags),
            "chains": plain(self.chains),
        }


def plain(value: object) -> object:
    """Return figures as JSON values, with tables in ascending order of keys."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in sorted(value.items())}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value


def _error(error: PubsubError) -> str:
    return error.name if isinstance(error, ModuleError) else type(error).__name__
