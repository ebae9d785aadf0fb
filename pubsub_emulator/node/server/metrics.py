"""The figures of `/metrics` (ND-26).

Labels are chains, publishers and reasons, but never keys, so that the number of series is bounded.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter
from typing import Final, TypeVar

from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.node.chain.block import RELAY, Chain, Moment
from pubsub_emulator.node.chain.timeline import Advance
from pubsub_emulator.node.rpc.node import RpcNode
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import ExtrinsicFailed
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.storage import PublishedKeys, TotalStorageSize, TtlData
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.parachain.ledger import BlockLedger
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.serving.metrics import Histogram, family, sample

LATENCY: Final = (1, 2, 3, 5, 8, 13, 21, 50)
"""Upper bounds of the histogram of deliveries, in relay blocks."""
CALL_TIME: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Upper bounds of the histogram of calls, in seconds."""

_COUNTED: Final[Mapping[str, tuple[str, ...]]] = {
    "published_total": ("publisher",),
    "expired_total": ("publisher",),
    "failed_calls_total": ("reason",),
    "refused_total": ("publisher", "reason"),
    **dict.fromkeys(("verdicts_total", "proof_bytes", "budget_bytes"), ("chain", "reason")),
    **dict.fromkeys(("charges_bytes", "walks_total", "saved_bytes"), ("chain", "reason")),
}
"""The counters with their labels."""

Series = tuple[str, str, Iterable[str]]
"""The name, type and lines of one metric."""
Key = TypeVar("Key", bound=tuple[object, ...])
K = TypeVar("K", int, str)


class NodeMetrics:
    """Counters of a node since its start."""

    def __init__(self, rules: Rules = SHIPPED) -> None:
        self._rules = rules
        self._counted: dict[str, Counter[tuple[object, ...]]] = {
            name: Counter() for name in _COUNTED
        }
        self._completed: dict[ParaId, int] = {}
        """The relay block in which each chain last completed a walk over its subscriptions."""
        self._latency: dict[int, Histogram] = {}
        """The ages of delivered values in relay blocks, by chain."""
        self._calls: dict[str, Histogram] = {}
        """The durations of calls in seconds, by method."""
        self._failed: Counter[str] = Counter()
        """The numbers of failed calls, by method."""

    def noted(self, advance: Advance) -> None:
        """Count the results of a step. A rewind does not decrease counters."""
        if advance.rewound:
            return
        self._relay(advance.moment)
        for record in advance.moment.records:
            if record.refusal is not None:
                self._add("verdicts_total", record.chain, record.refusal.verdict.value)
            elif record.outcome is not None:
                self._spent(record.chain, record.outcome.ledger, dict(record.unpruned))
                if items.PROCESSING_CURSOR.get(Storage(record.outcome.state)) is None:
                    self._completed[record.chain] = record.included_at
        self._delivered(advance.moment)

    def _spent(self, chain: ParaId, ledger: BlockLedger, unpruned: Mapping[ParaId, int]) -> None:
        """Count the use of a block's budget.

        `unpruned` is the size of each publisher's proof before pruning, in bytes.
        """
        self._add("budget_bytes", chain, "used", by=ledger.used)
        self._add("budget_bytes", chain, "budget", by=ledger.budget)
        self._add("proof_bytes", chain, "static", by=ledger.static_bytes)
        if ledger.requested_bytes:
            self._add("proof_bytes", chain, "requested", by=ledger.requested_bytes)
        self._add("charges_bytes", chain, "map", by=ledger.map_charges)
        for publisher in ledger.publishers:
            self._add("proof_bytes", chain, "top_path", by=publisher.top_path_bytes)
            self._add("proof_bytes", chain, "child", by=publisher.child_node_bytes)
            self._add("proof_bytes", chain, "value", by=publisher.value_bytes)
            self._add("charges_bytes", chain, "cache", by=publisher.cache_charges)
            self._add("charges_bytes", chain, "row", by=publisher.row_charges)
            self._add("walks_total", chain, "unchanged" if publisher.unchanged else "changed")
            self._add("saved_bytes", chain, "cache", by=publisher.cached_bytes)
            if publisher.unchanged:
                saved = max(unpruned.get(publisher.para, 0) - publisher.top_path_bytes, 0)
                self._add("saved_bytes", chain, "unchanged", by=saved)

    def _add(self, name: str, *key: object, by: int = 1) -> None:
        self._counted[name][key] += by

    def began(self) -> float:
        """Return the time at which a call begins."""
        return perf_counter()

    def ended(self, method: str, began: float, *, failed: bool) -> None:
        """Count a call that began at the time `began`, on the clock `perf_counter`."""
        seconds = perf_counter() - began
        if method not in self._calls:
            self._calls[method] = Histogram(CALL_TIME)
        self._calls[method].note(seconds)
        if failed:
            self._failed[method] += 1

    def _relay(self, moment: Moment) -> None:
        """Count the events and failures of a relay block."""
        for record in every_runtime().stored_events(Storage(moment.relay.state)):
            match record.event:
                case DataPublished(publisher):
                    self._add("published_total", publisher)
                case KeyExpired(publisher):
                    self._add("expired_total", publisher)
                case ExtrinsicFailed(error):
                    self._add("failed_calls_total", _reason(error))
        for message in moment.executions:
            for failure in message.execution.failures:
                cause = failure.cause
                reason = failure.error.kind.name if cause is None else _reason(cause)
                self._add("refused_total", message.para, reason)
            if message.execution.rejected is not None:
                self._add("refused_total", message.para, type(message.execution.rejected).__name__)

    def _delivered(self, moment: Moment) -> None:
        """Count how many relay blocks after its publication each value was delivered."""
        for record in moment.records:
            for delivery in () if record.outcome is None else record.outcome.deliveries:
                child, (key,) = self._rules.placed(delivery.publisher, (delivery.key,))
                trie = moment.relay.state.children.get(child)
                entry = None if trie is None or delivery.value is None else trie.get(key)
                if entry is not None:
                    inserted = self._rules.read(entry).when_inserted
                    histogram = self._latency.setdefault(record.chain, Histogram(LATENCY))
                    histogram.note(max(record.included_at - inserted, 0))

    # Output

    def text(self, node: RpcNode) -> str:
        """Return all metrics in Prometheus' text format."""
        lines: list[str] = []
        for name, kind, rows in self._series(node):
            lines += family(name, kind, "", rows)
        return "\n".join(lines) + "\n"

    def _series(self, node: RpcNode) -> Iterator[Series]:
        """Yield all metrics, those of this project and those with the names of a Substrate node."""
        yield from self._counters()
        yield from _states(node)
        yield from self._ages(node)
        views = node.timeline.views
        heights: list[str] = []
        for chain, view in views.items():
            for status, block in (("best", view.best), ("finalized", view.final)):
                labels = (("chain", _name(chain)), ("status", status))
                heights.append(sample("substrate_block_height", block.number, labels))
        yield "substrate_block_height", "gauge", heights
        ready = [
            sample(
                "substrate_ready_transactions_number", pool.ready_count, (("chain", _name(chain)),)
            )
            for chain, pool in node.pools.items()
        ]
        yield "substrate_ready_transactions_number", "gauge", ready
        yield _histograms("substrate_rpc_calls_time", "method", self._calls)
        finished = {
            (method, "false"): sum(histogram.counts) - self._failed[method]
            for method, histogram in self._calls.items()
        }
        finished |= {(method, "true"): self._failed[method] for method in self._calls}
        yield _figures("substrate_rpc_calls_finished", ("method", "is_error"), finished, "counter")

    def _counters(self) -> Iterator[Series]:
        """Yield the counters, and figures that are calculated from them."""
        for name, labels in _COUNTED.items():
            yield _figures(f"pubsub_{name}", labels, self._counted[name], "counter")
        proof = self._counted["proof_bytes"]
        saved = self._counted["saved_bytes"]
        hits = {chain: saved[chain, "cache"] for chain, reason in saved if reason == "cache"}
        totals = {chain: hits[chain] + proof[chain, "child"] for chain in hits}
        ratios = {(chain,): hits[chain] / total for chain, total in totals.items() if total}
        yield _figures("pubsub_cache_hit_ratio", ("chain",), ratios)
        yield _histograms("pubsub_delivery_blocks", "chain", self._latency)

    def _ages(self, node: RpcNode) -> Iterator[Series]:
        """Yield how many relay blocks ago each chain last completed a walk.

        The age is 0 if the chain's newest block has no cursor, because it completed a walk.
        """
        best = node.timeline.views[RELAY].best.number
        ages = {(chain,): max(best - height, 0) for chain, height in self._completed.items()}
        for chain, view in node.timeline.views.items():
            if chain is not RELAY and items.PROCESSING_CURSOR.get(Storage(view.best.state)) is None:
                ages[chain,] = 0
        yield _figures("pubsub_cursor_age_blocks", ("chain",), ages)


def _states(node: RpcNode) -> Iterator[Series]:
    """Yield the metrics that are read from the present states of chains."""
    views = node.timeline.views
    best = views[RELAY].best
    storage = Storage(best.state)
    keys = {(para,): PublishedKeys.get(storage, para) for para in PublishedKeys.keys(storage)}
    yield _figures("pubsub_keys_total", ("publisher",), keys)
    sizes = {(para,): TotalStorageSize.get(storage, para) for (para,) in keys}
    yield _figures("pubsub_stored_bytes", ("publisher",), sizes)
    limits = node.network.config.relay.pubsub
    used = {(para, "keys"): count / limits.max_stored_keys for (para,), count in keys.items()}
    used |= {
        (para, "bytes"): size / limits.max_total_storage_size for (para,), size in sizes.items()
    }
    yield _figures("pubsub_limit_ratio", ("publisher", "reason"), used)
    queues = {
        chain: node.network.relay.runtime.message_queue.footprint(storage, chain)
        for chain in views
        if chain
    }
    counts = {(chain,): count for chain, (count, _) in queues.items()}
    yield _figures("pubsub_queued_messages_total", ("chain",), counts)
    yield _figures(
        "pubsub_queued_bytes", ("chain",), {(chain,): size for chain, (_, size) in queues.items()}
    )
    overdue = [
        best.number - ttl - inserted for _, _, (ttl, inserted) in TtlData.rows(storage) if ttl
    ]
    late = [blocks for blocks in overdue if blocks >= 0]
    yield _figures("pubsub_overdue_total", (), {(): len(late)})
    yield _figures("pubsub_overdue_oldest_blocks", (), {(): max(late, default=0)})
    pending: dict[tuple[object, ...], int] = {}
    disabled: dict[tuple[object, ...], int] = {}
    cached: dict[tuple[object, ...], int] = {}
    for chain, view in views.items():
        if chain is RELAY:
            continue
        state = Storage(view.best.state)
        spec = runtime_spec(state)
        roots = items.PROCESSED_ROOTS.get(state)
        for publisher, wanted in spec.subscriptions.items():
            current = best.state.child_root(node.network.rules.placed(publisher, ())[0])
            behind = current is not None and roots.get(publisher) != current
            pending[chain,] = pending.get((chain,), 0) + (len(wanted) if behind else 0)
            disabled[chain,] = disabled.get((chain,), 0) + items.DISABLED_PUBLISHERS.contains(
                state, publisher
            )
            slots = sum(len(slot) for _, slot in items.CACHE_SLOTS.items(state, publisher))
            cached[chain,] = (
                cached.get((chain,), 0) + slots + items.CACHE_INFO.get(state, publisher).bytes
            )
    yield _figures("pubsub_pending_items_total", ("chain",), pending)
    yield _figures("pubsub_disabled_publishers_total", ("chain",), disabled)
    yield _figures("pubsub_cache_bytes", ("chain",), cached)


def _figures(
    name: str, labels: tuple[str, ...], values: Mapping[Key, float], kind: str = "gauge"
) -> Series:
    """Return a metric with a value for each combination of labels."""
    rows = sorted((tuple(map(str, key)), value) for key, value in values.items())
    return (
        name,
        kind,
        [sample(name, value, tuple(zip(labels, key, strict=True))) for key, value in rows],
    )


def _histograms(name: str, label: str, histograms: Mapping[K, Histogram]) -> Series:
    """Return a metric with a histogram for each value of one label."""
    lines: list[str] = []
    for key, histogram in sorted(histograms.items()):
        lines += histogram.lines(name, ((label, str(key)),))
    return name, "histogram", lines


def _name(chain: Chain) -> str:
    return "relay" if chain is RELAY else str(chain)


def _reason(error: PubsubError) -> str:
    return str(error) or type(error).__name__
