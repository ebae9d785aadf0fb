"""Counters of a running network (PS-71): `Metrics().note(network, network.step()[0])` after each step.

Its memory grows only with the number of reasons. Times are in relay blocks, ages of cursors in the parachain's.
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
from pubsub_emulator.runtime.pallet_subscriber.storage import CACHE_INFO, CACHE_SLOTS, PROCESSING_CURSOR
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused
from pubsub_emulator.runtime.relay.message_queue import OverweightDropped, ProcessingFailed
from pubsub_emulator.runtime.rules import rules_of


@dataclass(slots=True)
class SubscriberMetrics:
    """One subscriber, after its newest block."""

    pending: int = 0
    """Items whose publisher is not resolved under its newest root, without those of disabled publishers."""
    cursor_age: int = 0
    """The number of latest blocks in a row whose walk ended with a cursor."""
    cache_nodes: int = 0
    cache_bytes: int = 0
    """Bytes of cached nodes or, with policy `slots`, of the rows of slots."""
    latency: Counter[int] = field(default_factory=Counter)
    """Callbacks by relay blocks since the publish."""


@dataclass(slots=True)
class Metrics:
    """The whole network."""

    published: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Publishes, messages and parachain blocks that failed, by reason."""
    verdicts: Counter[str] = field(default_factory=Counter)
    ttl_rows: int = 0
    expiry_lag: Counter[int] = field(default_factory=Counter)
    """Removed entries by blocks since their expiry."""
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
        """All of it as plain values, in a fixed order."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}

    def _relay(self, network: Network, step: Step) -> None:
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
                    lifetime = TtlData.get(Storage(before.state), event.publisher, event.key)
                    if lifetime is not None:
                        self.expiry_lag[step.number - sum(lifetime)] += 1
        for ran in network.relay.executions:
            for failure in ran.execution.failures:
                self.failures[failure.error.kind.name if failure.cause is None else str(failure.cause)] += 1
        self.ttl_rows = sum(1 for _ in TtlData.rows(network.relay.storage()))

    def _subscriber(self, network: Network, step: Step, chain: Parachain) -> None:
        mine = self.subscribers.setdefault(chain.para, SubscriberMetrics())
        storage = Storage(chain.state)
        spec = runtime_spec(storage)
        view = SubscriberView(storage, spec)
        rules = rules_of(spec.rules)
        roots, _ = view.processed_roots()
        mine.pending = mine.cache_nodes = mine.cache_bytes = 0
        for publisher, keys in spec.subscriptions.items():
            newest = network.relay.state.child_root(rules.placed(publisher, ())[0]) or EMPTY_TRIE_ROOT
            if roots.get(publisher) != newest and not view.is_disabled(publisher):
                mine.pending += len(keys)
            info = CACHE_INFO.get(storage, publisher)
            slots = [row for _, row in CACHE_SLOTS.items(storage, publisher)]
            mine.cache_nodes += info.nodes + len(slots)
            mine.cache_bytes += info.bytes + sum(map(len, slots))
        for record in step.records:
            if record.chain != chain.para or record.outcome is None:
                continue
            after = Storage(record.outcome.state)
            mine.cursor_age = mine.cursor_age + 1 if PROCESSING_CURSOR.exists(after) else 0
            for delivery in record.outcome.deliveries:
                row = delivered.get(after, runtime_spec(after), delivery.publisher, delivery.key)
                if delivery.value is not None and row is not None:
                    mine.latency[step.number - row.when_inserted] += 1
