"""Emulated networks with their adapters, and emulated subscribers: the surroundings of a distributor."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.distributor.core.messages import Page
from pubsub_emulator.distributor.event import Event, Notice, find_id
from pubsub_emulator.primitives.hashing import blake2_256

SIGNER: Final = "0x" + "eb" * 20
PUBLISHER: Final = "0x" + "43" * 32
"""What an adapter signs with where a publication names no `iss`."""


@dataclass
class SimulatedNetwork:
    """A log with the adapter that serves it.

    `up` is the adapter; `refuses` is the reason of a No; `lies` says yes and does nothing; `mute` does and answers
    nothing; `delay` (ms) passes before a deed; `unique` refuses an id that is there (ID-50). `tells_blocks` is
    whether rows and notifications have their block's hash. A legacy adapter lists by time, and of an entity only the
    newest event.
    """

    name: str
    unique: bool = True
    legacy: bool = False
    tells_blocks: bool = True
    up: bool = True
    refuses: str = ""
    lies: bool = False
    mute: bool = False
    delay: int = 0
    offers: tuple[str, ...] = ("all", "star", "types")
    lists_all: bool = True
    lists: bool = True
    log: list[Notice] = field(default_factory=list)
    hooks: dict[str, str] = field(default_factory=dict)
    unlisted: dict[str, str] = field(default_factory=dict)
    hooks_made: int = 0
    branch: int = 0
    """How often the log was taken back."""
    _counts: Counter[str] = field(default_factory=Counter, repr=False)
    _counted: int = 0
    strangers: list[Counter[tuple[str, str]]] = field(default_factory=list, repr=False)
    """Where each distributor on it counts publications by others, by network and id."""

    def has(self, event_id: str) -> bool:
        """Whether the log has the id."""
        return self.count(event_id) > 0

    def count(self, event_id: str) -> int:
        """The number of times that it has the id."""
        if len(self.log) < self._counted:
            self._counted = 0
            self._counts.clear()
        if len(self.log) > self._counted:
            self._counts.update(notice.id for notice in self.log[self._counted :] if notice.id)
            self._counted = len(self.log)
        return self._counts[event_id]

    def append(self, event: Event, now: int) -> Notice | None:
        """Write an event into the log; `None` where the network has its id and takes each only once."""
        found, fault = find_id(event.data_location)
        if found is not None and self.unique and self.has(found):
            return None
        stamped = event._replace(iss=event.iss or PUBLISHER)
        notice = Notice(len(self.log) + 1, now // 1000, stamped, found, SIGNER, fault, self._block(event))
        self.log.append(notice)
        return notice

    def _block(self, event: Event) -> str:
        """The hash of the next block: of its parent's, of the event, and of the branch."""
        if not self.tells_blocks or self.legacy:
            return ""
        parent = self.log[-1].block if self.log else ""
        return f"0x{blake2_256(f'{parent}|{self.branch}|{event.digest()}'.encode()).hex()}"

    def cut(self, to: int) -> None:
        """Take the log back; what follows is on another branch."""
        del self.log[to:]
        self._counts.clear()
        self._counted = 0
        self.branch += 1

    def page(self, after: int, limit: int, since: int) -> Page:
        """A page of the log."""
        if not self.legacy:
            return Page(tuple(self.log[after : after + limit]), after + limit >= len(self.log))
        newest = {notice.event.order: notice for notice in self.log if notice.time >= since}
        return Page(tuple(newest.values()), complete=True)

    def hook(self, endpoint: str, form: str) -> bool:
        """Subscribe an endpoint; whether that form is offered."""
        if form in {"all", "star", "types"} and form not in self.offers:
            return False
        self.hooks_made += 1
        listed = self.lists and (form != "all" or self.lists_all)
        (self.hooks if listed else self.unlisted)[f"{self.name}-{self.hooks_made}"] = endpoint
        return True


@dataclass
class Subscriber:
    """A client's endpoint. `answers` are the statuses of the next POSTs, then `status`; `None` is no answer."""

    status: int | None = 200
    answers: list[int | None] = field(default_factory=list)
    got: list[tuple[str, str, int | None]] = field(default_factory=list)
    """`(webhook id, global id, answer)` of every POST."""

    def post(self, webhook: str, event_id: str) -> int | None:
        """Take a POST."""
        answer = self.answers.pop(0) if self.answers else self.status
        self.got.append((webhook, event_id, answer))
        return answer

    def acknowledged(self, event_id: str) -> int:
        """The number of POSTs of an id that were answered with 2xx."""
        return sum(found == event_id and answer is not None and answer // 100 == 2 for _, found, answer in self.got)
