"""What `/metrics` says, as Prometheus reads it: counted as blocks come, states read when somebody asks (ND-26).

Labels are chain, publisher and reason, never a key: there are as many series as parachains, publishers and reasons.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pubsub_emulator.node.chain.block import RELAY, Chain, Moment
from pubsub_emulator.node.chain.timeline import Advance
from pubsub_emulator.node.rpc.node import Node
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.runtime.framework.dispatch import DispatchError
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import ExtrinsicFailed, stored_events
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.storage import PublishedKeys, TotalStorageSize, TtlData
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.parachain.execute import runtime_spec

LATENCY: Final = (1, 2, 3, 5, 8, 13, 21, 50)
"""Upper bounds, in relay blocks, of the histogram of deliveries."""
CALL_TIME: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Upper bounds, in seconds, of the histogram of calls."""

Labels = tuple[tuple[str, str], ...]


class Histogram:
    """Counts by upper bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def note(self, value: float) -> None:
        """Count a value."""
        at = next((at for at, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[at] += 1
        self.total += value

    def lines(self, name: str, labels: Labels) -> Iterator[str]:
        """As Prometheus reads it."""
        running = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            running += count
            yield _line(f"{name}_bucket", (*labels, ("le", str(bound))), running)
        yield _line(f"{name}_sum", labels, self.total)
        yield _line(f"{name}_count", labels, running)


class NodeMetrics:
    """Counters of a node since it began."""

    def __init__(self) -> None:
        self._published: Counter[int] = Counter()
        self._expired: Counter[int] = Counter()
        self._refused: Counter[str] = Counter()
        self._verdicts: Counter[tuple[int, str]] = Counter()
        self._proof: Counter[tuple[int, str]] = Counter()
        self._saved: Counter[int] = Counter()
        self._budget: Counter[tuple[int, str]] = Counter()
        self._latency: dict[int, Histogram] = {}
        self._calls: dict[str, Histogram] = {}
        self._failed: Counter[str] = Counter()

    def noted(self, advance: Advance) -> None:
        """Count what a step brought; a rewind takes nothing back."""
        if advance.rewound:
            return
        self._relay(advance.moment)
        for record in advance.moment.records:
            if record.refusal is not None:
                self._verdicts[record.chain, record.refusal.verdict.value] += 1
            elif record.outcome is not None:
                held = record.outcome.ledger
                self._budget[record.chain, "used"] += held.used
                self._budget[record.chain, "budget"] += held.budget
                self._proof[record.chain, "static"] += held.static_bytes
                for each in held.publishers:
                    self._proof[record.chain, "top_path"] += each.top_path_bytes
                    self._proof[record.chain, "child"] += each.child_node_bytes
                    self._proof[record.chain, "value"] += each.value_bytes
                    self._saved[record.chain] += each.cached_bytes
        self._delivered(advance.moment)

    def called(self, method: str, seconds: float, *, failed: bool) -> None:
        """Count a call."""
        self._calls.setdefault(method, Histogram(CALL_TIME)).note(seconds)
        self._failed[method] += failed

    def _relay(self, moment: Moment) -> None:
        for record in stored_events(Storage(moment.relay.state)):
            match record.event:
                case DataPublished():
                    self._published[record.event.publisher] += 1
                case KeyExpired():
                    self._expired[record.event.publisher] += 1
                case ExtrinsicFailed():
                    self._refused[_reason(record.event.dispatch_error)] += 1

    def _delivered(self, moment: Moment) -> None:
        for record in moment.records:
            for each in () if record.outcome is None else record.outcome.deliveries:
                raw = moment.relay.state.children.get(derive_child_key(each.publisher))
                entry = None if raw is None or each.value is None else raw.get(each.key)
                if entry is not None:
                    inserted = int.from_bytes(entry[-4:], "little")
                    mine = self._latency.setdefault(record.chain, Histogram(LATENCY))
                    mine.note(max(record.included_at - inserted, 0))

    # What is asked for

    def text(self, node: Node) -> str:
        """All of it."""
        lines: list[str] = []
        for name, kind, rows in self._series(node):
            lines.append(f"# TYPE {name} {kind}")
            lines += rows
        return "\n".join(lines) + "\n"

    def _series(self, node: Node) -> Iterator[tuple[str, str, Iterable[str]]]:
        yield from self._counters()
        yield from _states(node)
        views = node.timeline.views
        heights = [
            _line("substrate_block_height", (("chain", _name(chain)), ("status", status)), block.number)
            for chain, view in views.items()
            for status, block in (("best", view.best), ("finalized", view.final))
        ]
        yield "substrate_block_height", "gauge", heights
        ready = [
            _line("substrate_ready_transactions_number", (("chain", _name(chain)),), pool.ready_count)
            for chain, pool in node.pools.items()
        ]
        yield "substrate_ready_transactions_number", "gauge", ready
        times = [
            line
            for method, histogram in sorted(self._calls.items())
            for line in histogram.lines("substrate_rpc_calls_time", (("method", method),))
        ]
        yield "substrate_rpc_calls_time", "histogram", times

    def _counters(self) -> Iterator[tuple[str, str, Iterable[str]]]:
        yield _counter("pubsub_published_total", ("publisher",), {(key,): n for key, n in self._published.items()})
        yield _counter("pubsub_expired_total", ("publisher",), {(key,): n for key, n in self._expired.items()})
        yield _counter("pubsub_failed_calls_total", ("reason",), {(key,): n for key, n in self._refused.items()})
        yield _counter("pubsub_verdicts_total", ("chain", "reason"), self._verdicts)
        yield _counter("pubsub_proof_bytes", ("chain", "reason"), self._proof)
        yield _counter("pubsub_budget_bytes", ("chain", "reason"), self._budget)
        yield _counter("pubsub_cache_saved_bytes", ("chain",), {(key,): n for key, n in self._saved.items()})
        latency = [
            line
            for chain, histogram in sorted(self._latency.items())
            for line in histogram.lines("pubsub_delivery_blocks", (("chain", str(chain)),))
        ]
        yield "pubsub_delivery_blocks", "histogram", latency


def _states(node: Node) -> Iterator[tuple[str, str, Iterable[str]]]:
    """What the newest states say."""
    views = node.timeline.views
    best = views[RELAY].best
    storage = Storage(best.state)
    keys = {(each,): PublishedKeys.get(storage, each) for each in PublishedKeys.keys(storage)}
    yield _gauge("pubsub_keys_total", ("publisher",), keys)
    sizes = {(each,): TotalStorageSize.get(storage, each) for (each,) in keys}
    yield _gauge("pubsub_stored_bytes", ("publisher",), sizes)
    overdue = [best.number - ttl - inserted for _, _, (ttl, inserted) in TtlData.rows(storage) if ttl]
    late = [lag for lag in overdue if lag >= 0]
    yield _gauge("pubsub_overdue_total", (), {(): len(late)})
    yield _gauge("pubsub_overdue_oldest_blocks", (), {(): max(late, default=0)})
    pending: dict[tuple[object, ...], int] = {}
    disabled: dict[tuple[object, ...], int] = {}
    cached: dict[tuple[object, ...], int] = {}
    for chain, view in views.items():
        if chain is RELAY:
            continue
        para = Storage(view.best.state)
        spec = runtime_spec(para)
        roots = items.PROCESSED_ROOTS.get(para)
        for publisher, wanted in spec.subscriptions.items():
            current = best.state.child_root(derive_child_key(publisher))
            behind = current is not None and roots.get(publisher) != current
            pending[chain,] = pending.get((chain,), 0) + (len(wanted) if behind else 0)
            disabled[chain,] = disabled.get((chain,), 0) + items.DISABLED_PUBLISHERS.contains(para, publisher)
            rows = sum(len(row) for _, row in items.CACHE_SLOTS.items(para, publisher))
            cached[chain,] = cached.get((chain,), 0) + rows + items.CACHE_INFO.get(para, publisher).bytes
    yield _gauge("pubsub_pending_items_total", ("chain",), pending)
    yield _gauge("pubsub_disabled_publishers_total", ("chain",), disabled)
    yield _gauge("pubsub_cache_bytes", ("chain",), cached)


def _counter(name: str, labels: tuple[str, ...], values: Mapping[Any, int]) -> tuple[str, str, Iterable[str]]:
    return name, "counter", _rows(name, labels, values)


def _gauge(name: str, labels: tuple[str, ...], values: Mapping[Any, int]) -> tuple[str, str, Iterable[str]]:
    return name, "gauge", _rows(name, labels, values)


def _rows(name: str, labels: tuple[str, ...], values: Mapping[Any, int]) -> list[str]:
    return [
        _line(name, tuple(zip(labels, map(str, key), strict=True)), value)
        for key, value in sorted(values.items(), key=lambda row: tuple(map(str, row[0])))
    ]


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _name(chain: Chain) -> str:
    return "relay" if chain is RELAY else str(chain)


def _reason(error: DispatchError) -> str:
    return str(error) or type(error).__name__
