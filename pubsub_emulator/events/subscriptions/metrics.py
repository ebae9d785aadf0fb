"""Counters and gauges of a service in Prometheus' text format."""

from collections.abc import Iterator
from typing import Final

from pubsub_emulator.events.subscriptions.service import EventService, F
from pubsub_emulator.serving.metrics import family, sample

_COUNTERS: Final = {
    "rows": "Rows handed to clients.",
    "messages": "Messages with rows handed to clients.",
    "heartbeats": "Messages without rows.",
    "catch_up_reads": "Reads of the log for clients that were behind.",
    "streams_opened": "Streams opened.",
    "streams_abandoned": "Streams ended because what they had sent was taken back.",
}


def prometheus(service: EventService[F]) -> str:
    """One family each for the counters, and gauges for what is open now."""
    lines: list[str] = []
    for name, words in _COUNTERS.items():
        lines += _family(f"pubsub_events_{name}_total", "counter", words, service.counts[name])
    gauges = {
        "head_seq": ("The last row known.", service.head_seq),
        "streams": ("Streams open now.", service.open_streams),
        "waiting_rows": ("Rows in all queues.", service.waiting_rows),
        "available": ("Whether the log answers.", int(service.available)),
    }
    for name, (words, value) in gauges.items():
        lines += _family(f"pubsub_events_{name}", "gauge", words, value)
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, words: str, value: int) -> Iterator[str]:
    return family(name, kind, words, [sample(name, value)])
