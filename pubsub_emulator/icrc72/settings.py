"""Every default that a configuration may change: the numbers of the specification that carry a degree sign."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and waits. Waits are in rounds, sizes in bytes of Candid."""

    batch_items: int = 100  # items of one call that are answered (IC-30a)
    config_bytes: int = 16 * 1024
    publications: int = 100
    subscriptions: int = 100
    list_check: int = 100  # rounds between two checks of a list canister (IC-33a)
    list_retry: int = 10
    list_silence: int = 300
    page: int = 100
    page_most: int = 1000
    stats_check: int = 100
    stats_kept: int = 10_000
    system_repeat: int = 4
    ping: int = 20
    death: int = 50
    system_queue: int = 100
    alert_entries: int = 200  # entries of one system event, so that it fits; more wait for the next
    event_bytes: int = 1 << 20
    repeated: int = 1000  # ids of a chain for which repetition is recognised (IC-42b)
    batch_notifications: int = 100
    batch_bytes: int = 1_900_000
    repeat_first: int = 4
    repeat_most: int = 256
    sends: int = 500  # new notifications a broadcaster sends in a round (IC-43c)
    store_bytes: int = 256 << 20
    queue_notifications: int = 10_000
    queue_bytes: int = 16 << 20
    silence: int = 1000
    drain_check: int = 10
    drain_kept: int = 100
    publisher_wait: int = 64
    confirmations: int = 100
    ranges: int = 10_000
    held: int = 1000
    gap_wait: int = 64
    gaps: int = 1000
    max_range: int = 10_000
    max_concurrent: int = 8
    live_replays: int = 4
    replay_requests: int = 100
    replay_window: int = 1000
    replay_events: int = 50  # replayed events a publisher sends in a round (RP-7b)
    replay_report: int = 50
    replay_silence: int = 200
    replay_stalled: int = 1000
    replay_poll: int = 10
    replay_settle: int = 200
    replay_sign: int = 200
    replay_tries: int = 3
    replay_forgotten: int = 10_000
    transfer_retry: int = 10
    replay_cycles: int = 0  # what a subscriber sends with a request; what is not accepted comes back


DEFAULTS = Settings()


def fitting(items: Iterable[T], size: Callable[[T], int], settings: Settings) -> list[T]:
    """The first items that fit into a message by their bytes: at least one, at most as many as a batch may have."""
    found: list[T] = []
    total = 0
    for each in items:
        total += size(each)
        if len(found) >= settings.batch_notifications or (found and total > settings.batch_bytes):
            break
        found.append(each)
    return found
