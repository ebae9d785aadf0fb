"""Settings: the limits and waits of the roles, which a deployment may change."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and waits. Waits are in rounds, sizes in bytes of Candid."""

    batch_items: int = 100
    """How many items of one call are answered (IC-30a)."""
    config_bytes: int = 16 * 1024
    """The longest configuration of a publication or subscription."""
    publications: int = 100
    """How many publications a publisher may have."""
    subscriptions: int = 100
    """How many subscriptions a subscriber may have."""
    list_check: int = 100
    """The rounds after which a list canister is asked again about a member (IC-33a)."""
    list_retry: int = 10
    """The rounds between two times at which list canisters are asked."""
    list_silence: int = 300
    """The rounds after which an answer of a list canister is too old to be used."""
    page: int = 100
    """How many entries the page of a query has by default."""
    page_most: int = 1000
    """How many entries a page may have."""
    stats_check: int = 100
    """The rounds between two requests of the orchestrator for a broadcaster's statistics."""
    stats_kept: int = 10_000
    """How many figures a broadcaster keeps for the orchestrator."""
    system_repeat: int = 4
    """The rounds after which the orchestrator repeats a system event to a broadcaster."""
    ping: int = 20
    """The rounds without changes after which it sends an empty one, as a sign of life."""
    death: int = 50
    """The rounds without confirmation after which a broadcaster is taken for dead (IC-47c)."""
    system_queue: int = 100
    """How many system events a broadcaster queues for a member."""
    alert_entries: int = 200
    """How many entries a system event has, so that it fits into a message."""
    event_bytes: int = 1 << 20
    """The longest event."""
    repeated: int = 1000
    """For how many events of a chain a repetition is recognised (IC-42b)."""
    batch_notifications: int = 100
    """How many notifications or events a call has."""
    batch_bytes: int = 1_900_000
    """How many bytes the notifications or events of a call have."""
    repeat_first: int = 4
    """The rounds before the first repetition; each further one waits twice as long."""
    repeat_most: int = 256
    """The longest wait between repetitions."""
    sends: int = 500
    """How many notifications a broadcaster sends in a round (IC-43c)."""
    new_batches: int = 50
    """How many new batches a broadcaster sends in a round.

    Each is confirmed by a call, and a canister executes only 100 messages in a round. If more were
    sent, confirmations would wait in the inbox until their batches are sent again, which makes the
    inbox longer still.
    """
    narrow_namespaces: bool = False
    """Whether segments of namespaces have only letters, digits, `_` and `-` (IC-24)."""
    open_publications: bool = False
    """Whether anybody may publish where a publication has no list of allowed publishers (IC-33)."""
    other_subnets: bool = False
    """Whether broadcasters of other subnets serve members whose subnet has none (IC-37)."""
    store_bytes: int = 256 << 20
    """The bytes of a broadcaster's store for events of publishers, and again for relayed ones."""
    queue_notifications: int = 10_000
    """How many live notifications may be queued for a subscriber."""
    queue_bytes: int = 16 << 20
    """How many bytes their events may have."""
    silence: int = 1000
    """The rounds without confirmation after which a subscriber is silent (IC-45d)."""
    drain_check: int = 10
    """The rounds between two looks at the queues of a broadcaster that is being emptied."""
    drain_kept: int = 100
    """How long a broadcaster still reports that a removed publisher has no queued events."""
    publisher_wait: int = 64
    """The longest wait between attempts of publishers and of questions for valid broadcasters."""
    confirmations: int = 100
    """How many notifications a call confirms, and how many handler calls are under way."""
    ranges: int = 10_000
    """How many ranges of handled events a subscriber keeps for a chain."""
    held: int = 1000
    """How many events a subscriber holds back."""
    gap_wait: int = 64
    """The rounds for which it waits for missing events (IC-49e)."""
    gaps: int = 1000
    """How many gaps, replays and refused events members remember."""
    max_range: int = 10_000
    """How many ids a replay may have by default."""
    max_concurrent: int = 8
    """How many replays of a publication may run at once by default."""
    live_replays: int = 4
    """How many replays of a subscriber may run or wait."""
    replay_requests: int = 100
    """How many replays a subscriber may ask for in a window."""
    replay_window: int = 1000
    """The rounds of this window."""
    replay_events: int = 50
    """How many replayed events a publisher sends in a call (RP-7b)."""
    replay_report: int = 50
    """The rounds between two reports of a publisher on a replay."""
    replay_silence: int = 200
    """The rounds without a report after which the replay fails."""
    replay_stalled: int = 1000
    """The rounds without progress after which a replay fails or is not waited for."""
    replay_poll: int = 10
    """The rounds between two questions to the entry of a replay."""
    replay_settle: int = 200
    """How long the settlement of a canceled replay waits for the publisher's report."""
    replay_sign: int = 200
    """The rounds without events after which a subscriber asks for the state of its replay."""
    replay_tries: int = 3
    """How often a subscriber tries to close a gap."""
    replay_forgotten: int = 10_000
    """The rounds after which the orchestrator forgets a replay that has ended."""
    transfer_retry: int = 10
    """The rounds after which a failed transfer of a payment is repeated."""
    replay_cycles: int = 0
    """The cycles that a subscriber sends with a request; those not accepted come back."""


DEFAULTS = Settings()


def fitting(items: Iterable[T], size: Callable[[T], int], settings: Settings) -> list[T]:
    """Return the first items that fit into one message by number and bytes (`size`).

    One item is always returned, however large it is, so that senders make progress.
    """
    batch: list[T] = []
    total = 0
    for item in items:
        total += size(item)
        if len(batch) >= settings.batch_notifications or (batch and total > settings.batch_bytes):
            break
        batch.append(item)
    return batch
