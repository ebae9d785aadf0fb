"""Emulated networks with their adapters, and emulated subscribers."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from interchain_events.distributor.core.messages import LogPage
from interchain_events.distributor.event import Event, Notice, find_id
from pubsub_emulator.primitives.hashing import blake2_256

SIGNER: Final = "0x" + "eb" * 20
"""The address that signs transactions on every emulated network."""
PUBLISHER: Final = "0x" + "43" * 32
"""The publisher that an adapter fills in if a publication does not name an `iss`."""


@dataclass
class SimulatedNetwork:
    """The log of a network, and the adapter that serves it.

    A legacy adapter is read by time and shows only the newest event of each entity.
    """

    name: str
    unique: bool = True
    """Whether the network refuses an id that it already has (ID-50)."""
    legacy: bool = False
    tells_blocks: bool = True
    """Whether rows and notifications have the hash of their block."""
    up: bool = True
    """Whether the adapter can be reached."""
    refuses: str = ""
    """The reason with which every publication is refused, empty if they are accepted."""
    lies: bool = False
    """Whether publications are accepted but not carried out."""
    mute: bool = False
    """Whether publications are carried out but not answered."""
    delay: int = 0
    """Milliseconds that pass before a publication is carried out."""
    offers: tuple[str, ...] = ("all", "star", "types")
    """The forms of subscription to everything that the adapter accepts."""
    lists_all: bool = True
    """Whether the adapter lists subscriptions of the form `all`."""
    lists: bool = True
    """Whether the adapter lists subscriptions at all."""
    log: list[Notice] = field(default_factory=list)
    hooks: dict[str, str] = field(default_factory=dict)
    """The endpoints of the listed subscriptions, by the subscription's name."""
    unlisted: dict[str, str] = field(default_factory=dict)
    """The endpoints of subscriptions that are notified but not listed, by the subscription's
    name."""
    hooks_made: int = 0
    branch: int = 0
    """The number of times that the log was rewound."""
    _counts: Counter[str] = field(default_factory=Counter, repr=False)
    """The number of times that each id is in the log."""
    _counted: int = 0
    """The length of the log up to which `_counts` counts. Other code may append to the log."""
    strangers: list[Counter[tuple[str, str]]] = field(default_factory=list, repr=False)
    """A counter for each distributor on this network. It counts the publications by others, by
    network and id."""

    def has(self, event_id: str) -> bool:
        """Return whether the log has an id."""
        return self.count(event_id) > 0

    def count(self, event_id: str) -> int:
        """Return how many times an id is in the log."""
        if len(self.log) < self._counted:
            self._counted = 0
            self._counts.clear()
        if len(self.log) > self._counted:
            self._counts.update(notice.id for notice in self.log[self._counted :] if notice.id)
            self._counted = len(self.log)
        return self._counts[event_id]

    def append(self, event: Event, now: int) -> Notice | None:
        """Append an event to the log and return its notice.

        `now` is in ms. If the network has the id already and accepts each id only once, the log
        remains as it is and the result is `None`.
        """
        event_id, fault = find_id(event.data_location)
        if event_id is not None and self.unique and self.has(event_id):
            return None
        notice = Notice(
            len(self.log) + 1,
            now // 1000,
            event._replace(iss=event.iss or PUBLISHER),
            id=event_id,
            signer=SIGNER,
            fault=fault,
            block=self._block(event),
        )
        self.log.append(notice)
        return notice

    def _block(self, event: Event) -> str:
        """Return the hash of the next block, empty if blocks are not reported.

        It commits to the parent's hash, the event and the branch. So it is different after a
        rewind, even for the same event.
        """
        if not self.tells_blocks or self.legacy:
            return ""
        parent = self.log[-1].block if self.log else ""
        return f"0x{blake2_256(f'{parent}|{self.branch}|{event.digest()}'.encode()).hex()}"

    def cut(self, length: int) -> None:
        """Rewind the log to its first `length` events. Later events are on another branch."""
        del self.log[length:]
        self._counts.clear()
        self._counted = 0
        self.branch += 1

    def page(self, after: int, limit: int, since: int) -> LogPage:
        """Return a page of the log, as the adapter serves it."""
        if not self.legacy:
            notices = tuple(self.log[after : after + limit])
            return LogPage(notices, complete=after + limit >= len(self.log))
        newest = {notice.event.order: notice for notice in self.log if notice.time >= since}
        return LogPage(tuple(newest.values()), complete=True)

    def newest_of_seconds(self, since: int) -> tuple[Notice, ...]:
        """Return the newest event of each entity in each second from `since` on.

        A legacy adapter shows these to a caller that asks for each second separately.
        """
        newest = {
            (notice.event.order, notice.time): notice for notice in self.log if notice.time >= since
        }
        return tuple(newest.values())

    def hook(self, endpoint: str, form: str) -> bool:
        """Subscribe an endpoint. Returns whether the adapter offers that form."""
        if form in {"all", "star", "types"} and form not in self.offers:
            return False
        self.hooks_made += 1
        is_listed = self.lists and (form != "all" or self.lists_all)
        hooks = self.hooks if is_listed else self.unlisted
        hooks[f"{self.name}-{self.hooks_made}"] = endpoint
        return True


@dataclass
class SimulatedSubscriber:
    """The endpoint of a client."""

    status: int | None = 200
    """The status of the answers that follow those in `answers`, `None` for no answer."""
    answers: list[int | None] = field(default_factory=list)
    """The statuses of the next answers."""
    got: list[tuple[str, str, int | None]] = field(default_factory=list)
    """The webhook id, the global id and the answer of every POST."""

    def post(self, webhook: str, event_id: str) -> int | None:
        """Take a POST and return the status of the answer."""
        answer = self.answers.pop(0) if self.answers else self.status
        self.got.append((webhook, event_id, answer))
        return answer

    def acknowledged(self, event_id: str) -> int:
        """Return how many POSTs of an id were answered with a status of 200 to 299."""
        return sum(
            posted == event_id and answer is not None and answer // 100 == 2
            for _, posted, answer in self.got
        )
