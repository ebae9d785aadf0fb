"""The settings that the state machine needs. Times are in ms unless said otherwise."""

from dataclasses import dataclass, field
from typing import Final

START: Final = 0
"""`since`: every event of every history."""
FORMS: Final = ("all", "star", "types")
"""Forms of a subscription to everything, in the order in which they are tried (ID-32)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One distributor's settings; `owner` names this run of this process."""

    networks: tuple[str, ...]
    owner: str
    public_url: str = "http://127.0.0.1"
    legacy: frozenset[str] = field(default_factory=frozenset)
    doubling: frozenset[str] = field(default_factory=frozenset)
    """Networks that take an id twice, to which replication waits at least `doubling_delay`."""
    call_timeout: int = 10_000
    post_timeout: int = 5_000
    replication_delay: int = 0
    doubling_delay: int = 15_000
    since: int = START
    """Events of a history before this time (seconds) are not published."""
    retain: int = 0
    """How long ids are kept, by chain time; 0 keeps all."""
    silence: int = 30_000
    check_after: int = 60_000
    patience: int = 60_000
    """How long a log must be shorter than what was read of it before it counts as taken back."""
    page: int = 200
    recheck: int = 100
    """How many rows before the last confirmed one are read again where an adapter does not tell blocks."""
    overlap: int = 120
    """How many seconds a legacy adapter's log is read again."""
    gap_patience: int = 15_000
    """How long an event of a legacy log waits for those before it, whose notifications may be under way."""
    most_failures: int = 12
    most_backoff: int = 3_600_000
    most_retry: int = 60_000
    most_parked: int = 256
    alarm_after: int = 3

    @property
    def lease(self) -> int:
        """Milliseconds of a lease for calls: two timeouts. Calls begin only in the first of them."""
        return 2 * self.call_timeout

    def delay(self, network: str) -> int:
        """Milliseconds from an event's arrival until it is published on another network (ID-35)."""
        return max(self.replication_delay, self.doubling_delay if network in self.doubling else 0)

    def hook_url(self, network: str, key: str) -> str:
        """The URL at which an adapter notifies of every event."""
        return f"{self.public_url}/internal/eventNotification/{network}/{key}"

    def interest_url(self, network: str, subscription: str, key: str) -> str:
        """The URL at which an adapter notifies for one interest."""
        return f"{self.public_url}/internal/desmosNotification/{network}/{subscription}/{key}"

    def ours(self, network: str, endpoint: str) -> bool:
        """Whether an endpoint is a webhook of this distributor for that network, of whatever key."""
        bases = ("eventNotification", "desmosNotification")
        return any(endpoint.startswith(f"{self.public_url}/internal/{base}/{network}/") for base in bases)
