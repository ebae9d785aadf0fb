"""Counters of a running network (PS-71).

Call `metrics.note(network, step)` after each step. Memory grows only with the number of distinct
reasons and delays. Times are in relay blocks, except for the ages of cursors, which are in blocks
of the parachain.
"""

from collections import Counter
from dataclasses import dataclass, field, fields

from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.emulator.network.parachain import Parachain
from pubsub_emulator.emulator.observers.summary import plain
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, ParaId
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.storage import TtlData
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.storage import (
    CACHE_INFO,
    CACHE_SLOTS,
    PROCESSING_CURSOR,
)
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused
from pubsub_emulator.runtime.relay.message_queue import OverweightDropped, ProcessingFailed


@dataclass(slots=True)
class SubscriberMetrics:
    """The counters of one subscriber after its newest block."""

    pending: int = 0
    """Items of publishers whose newest root has not been processed. Disabled publishers are not
    counted.
    """
    cursor_age: int = 0
    """The number of successive newest blocks whose walks stopped before their ends."""
    cache_nodes: int = 0
    """Cached nodes or rows of slots."""
    cache_bytes: int = 0
    """The size of cached nodes or, with policy `slots`, of the rows of slots, in bytes."""
    latency: Counter[int] = field(default_factory=Counter)
    """Deliveries by the number of relay blocks since the publication."""


@dataclass(slots=True)
class Metrics:
    """The counters of a whole network."""

    published: int = 0
    """Publications."""
    failures: Counter[str] = field(default_factory=Counter)
    """Publishes, messages and parachain blocks that failed, by reason."""
    verdicts: Counter[str] = field(default_factory=Counter)
    """Invalid candidates by verdict."""
    ttl_rows: int = 0
    """Entries with a lifetime."""
    expiry_lag: Counter[int] = field(default_factory=Counter)
    """Removed entries by the number of blocks since their expiry."""
    subscribers: dict[ParaId, SubscriberMetrics] = field(default_factory=dict)

    def note(self, network: Network, step: Step) -> None:
        """Count a step that `network` has just made."""
        self._relay(network, step)
        for record in step.records:
            if record.refusal is not None:
                self.verdicts[record.refusal.verdict.value] += 1
        for _, chain in sorted(network.parachains.items()):
            if runtime_spec(Storage(chain.state)).subscriptions:
                self._subscriber(network, step, chain)

    def json(self) -> dict[str, object]:
        """Return all counters as plain values in a fixed order."""
        return {counter.name: plain(getattr(self, counter.name)) for counter in fields(self)}

    def _relay(self, network: Network, step: Step) -> None:
        """Count the events and failures of the relay block."""
        before = network.relay.block(step.number - 1)
        for event in step.events:
            match event:
                case DataPublished():
                    self.published += 1
                case ProcessingFailed():
                    self.failures[event.error.kind.name] += 1
                case OverweightDropped():
                    self.failures["OverweightDropped"] += 1
                case CandidateRefused():
                    self.failures[str(event.error)] += 1
                case KeyExpired() if before is not None:
                    # The block has removed the entry, so its lifetime is read from the parent's
                    # state.
                    lifetime = TtlData.get(Storage(before.state), event.publisher, event.key)
                    if lifetime is not None:
                        self.expiry_lag[step.number - sum(lifetime)] += 1
        for message in network.relay.executions:
            for failure in message.execution.failures:
                cause = failure.cause
                reason = failure.error.kind.name if cause is None else str(cause)
                self.failures[reason] += 1
        self.ttl_rows = sum(1 for _ in TtlData.rows(network.relay.storage()))

    def _subscriber(self, network: Network, step: Step, chain: Parachain) -> None:
        """Update the counters of a subscriber."""
        counters = self.subscribers.setdefault(chain.para, SubscriberMetrics())
        storage = Storage(chain.state)
        spec = runtime_spec(storage)
        view = SubscriberView(storage, spec, network.rules)
        roots, _ = view.processed_roots()
        counters.pending = 0
        counters.cache_nodes = 0
        counters.cache_bytes = 0
        for publisher, keys in spec.subscriptions.items():
            newest = (
                network.relay.state.child_root(view.rules.placed(publisher, ())[0])
                or EMPTY_TRIE_ROOT
            )
            if roots.get(publisher) != newest and not view.is_disabled(publisher):
                counters.pending += len(keys)
            info = CACHE_INFO.get(storage, publisher)
            slots = [row for _, row in CACHE_SLOTS.items(storage, publisher)]
            counters.cache_nodes += info.nodes + len(slots)
            counters.cache_bytes += info.bytes + sum(map(len, slots))
        for record in step.records:
            if record.chain != chain.para or record.outcome is None:
                continue
            after = Storage(record.outcome.state)
            counters.cursor_age = counters.cursor_age + 1 if PROCESSING_CURSOR.exists(after) else 0
            for delivery in record.outcome.deliveries:
                row = delivered.get(after, runtime_spec(after), delivery.publisher, delivery.key)
                if delivery.value is not None and row is not None:
                    counters.latency[step.number - row.when_inserted] += 1
