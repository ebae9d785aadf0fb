"""The settings of the state machine. Times are in milliseconds unless their text says otherwise."""

from dataclasses import dataclass, field
from typing import Final

START: Final = 0
"""The value of `since` for which all events are published, however old."""
NOW: Final = -1
"""The value of `since` for the time of the first start, which the store remembers (see
`continuity`)."""
MOST_SUBSCRIPTIONS: Final = 10_000
"""The greatest number of clients' subscriptions."""
MOST_INDEX_BYTES: Final = 4 * 2**20
"""The greatest size of the index of subscriptions, in bytes."""
FORMS: Final = ("all", "star", "types")
"""The forms of a subscription to everything, in the order in which they are tried (ID-32).

Adapters differ: `all` uses the route `/subscribe/all`, `star` the event type `*`, and `types` lists
the event types of the settings.
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of one distributor."""

    networks: tuple[str, ...]
    """The names of all networks. If an event is on several, queries show it from the first of
    these."""
    owner: str
    """The name under which this run of this process claims work."""
    public_url: str = "http://127.0.0.1"
    """The URL at which adapters reach this distributor, without a slash at the end."""
    legacy: frozenset[str] = field(default_factory=frozenset)
    """Networks behind public adapters. Their logs are read by time, and each of them handles one
    call at a time."""
    doubling: frozenset[str] = field(default_factory=frozenset)
    """Networks that publish an id again when they are asked again. Replication to them waits at
    least `doubling_delay`."""
    call_timeout: int = 10_000
    """The longest time of a call of an adapter."""
    post_timeout: int = 5_000
    """The longest time of a notification of a subscriber."""
    replication_delay: int = 0
    """The wait before an event of one network is published on the others (ID-35)."""
    doubling_delay: int = 15_000
    """The least wait before an event is published on a network in `doubling`."""
    since: int = START
    """The second from which events of a network's history are published on other networks, `START`
    or `NOW`."""
    retain: int = 0
    """The age, by chain time, at which ids are forgotten (ID-46), 0 to keep all."""
    silence: int = 30_000
    """The interval at which a log is read and an adapter's subscriptions are compared, even without
    notifications."""
    check_after: int = 60_000
    """The wait until an accepted publication that does not appear in the log is probed, and between
    such probes (ID-34)."""
    most_check: int = 86_400_000
    """The longest wait between two such probes of a legacy network."""
    patience: int = 60_000
    """How long a log must stay shorter than the part already read before it counts as rewound."""
    page: int = 200
    """The number of rows in one read of a log, and of jobs or revocations in one step."""
    recheck: int = 100
    """How many rows before the last confirmed one are read again if an adapter does not report
    blocks."""
    overlap: int = 120
    """How many seconds of a legacy log are read again with each read."""
    gap_patience: int = 15_000
    """How long an event of a legacy log waits for missing events with lower numbers. Their
    notifications may still arrive."""
    most_failures: int = 12
    """The number of failed notifications after which a job becomes a dead letter."""
    most_backoff: int = 3_600_000
    """The longest wait between two notifications of the same event (ID-41)."""
    most_retry: int = 60_000
    """The longest wait between the end of a lease and the probe of its unclear call."""
    most_parked: int = 256
    """The greatest number of notices that a network may have beyond a gap. Further ones are read
    from the log later."""
    most_subscriptions: int = MOST_SUBSCRIPTIONS
    """The greatest number of clients' subscriptions."""
    most_index_bytes: int = MOST_INDEX_BYTES
    """The greatest size of the index of subscriptions, which every event reads."""
    alarm_after: int = 3
    """The number of untrue acceptances of the same event on a network that raises an alarm."""

    @property
    def lease(self) -> int:
        """Return the lease of a claim for a call: two timeouts.

        Calls begin only in the first half of the lease, so they have ended when it ends.
        """
        return 2 * self.call_timeout

    def delay(self, network: str) -> int:
        """Return the wait until an arrived event is published on another network (ID-35)."""
        return max(self.replication_delay, self.doubling_delay if network in self.doubling else 0)

    def hook_url(self, network: str, key: str) -> str:
        """Return the URL at which an adapter notifies of every event."""
        return f"{self.public_url}/internal/eventNotification/{network}/{key}"

    def interest_url(self, network: str, subscription: str, key: str) -> str:
        """Return the URL at which an adapter notifies of one client's subscription."""
        return f"{self.public_url}/internal/desmosNotification/{network}/{subscription}/{key}"

    def ours(self, network: str, endpoint: str) -> bool:
        """Return whether an endpoint is this distributor's webhook for the network.

        Any key in the URL counts, because the distributor may have used another key earlier.
        """
        bases = ("eventNotification", "desmosNotification")
        return any(
            endpoint.startswith(f"{self.public_url}/internal/{base}/{network}/") for base in bases
        )
