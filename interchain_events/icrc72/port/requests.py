"""The calls of users, from their admission until nobody can send them again.

A signed call is valid until its `ingress_expiry`. Until then, anybody who has seen it can send it
again, so its id is kept at least as long. When the table is full, new calls are refused. A call
that is still valid is never forgotten for a newer one. Only answers are dropped, those of the
oldest calls first. The status of such a call is then `done`.
"""

import heapq
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from interchain_events.icrc72.ic.canister import SECOND, Answer, Ticket
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.port.authority import nat
from interchain_events.icrc72.port.envelope import Request
from interchain_events.icrc72.port.hash_tree import State
from interchain_events.icrc72.port.kept_tree import KeptTree

MOST_REQUESTS: Final = 50_000
"""How many ids are kept. Each takes about a kilobyte."""
MOST_ANSWER_BYTES: Final = 64 << 20
"""The most bytes of answers that are kept together."""
MOST_WAITING: Final = 1000
"""How many calls may be under way."""
MOST_WAITING_BYTES: Final = 32 << 20
"""The most bytes of the calls under way together."""
STAY: Final = 60 * SECOND
"""How long (ns) a call that has expired is kept, so that its sender can read the answer."""
_DONE: Final[State] = {b"status": b"done"}


@dataclass(slots=True, eq=False)
class Ingress:
    """A call of a user, without its argument."""

    id: bytes
    sender: Principal
    canister: Principal
    """The canister that it is for; the management canister has no bytes."""
    effective: Principal
    """The canister in the address that it was sent to."""
    subnet: int
    size: int
    """The bytes that it takes while it is under way."""
    ticket: Ticket | None
    """`None` once it has ended."""
    answer_bytes: int = 0
    """The bytes of its answer, if that is kept."""


class Requests:
    """The table of the calls of users.

    The limits are the number of ids, the bytes of answers, and the number and bytes of calls that
    are under way.
    """

    def __init__(
        self,
        subnets: int,
        *,
        most: int = MOST_REQUESTS,
        answer_bytes: int = MOST_ANSWER_BYTES,
        waiting: int = MOST_WAITING,
        waiting_bytes: int = MOST_WAITING_BYTES,
    ) -> None:
        self._most = most
        self._answer_bytes = answer_bytes
        self._most_waiting = waiting
        self._most_waiting_bytes = waiting_bytes
        self._trees = [KeptTree() for _ in range(subnets)]
        self._known: dict[bytes, Ingress] = {}
        self._ends: list[tuple[int, bytes]] = []
        """A heap of the times (ns) at which calls are forgotten, and their ids."""
        self._waiting: dict[bytes, Ingress] = {}
        self._waiting_bytes = 0
        self._answered: OrderedDict[bytes, Ingress] = OrderedDict()
        """The calls whose answers are kept, in the order in which they ended."""
        self._answered_bytes = 0

    def __len__(self) -> int:
        return len(self._known)

    def tree(self, subnet: int) -> State:
        """Return the statuses of a subnet's calls, as a part of its state."""
        return self._trees[subnet]

    def get(self, identity: bytes) -> Ingress | None:
        """Return a call that is known, or `None`."""
        return self._known.get(identity)

    def is_full(self) -> bool:
        """Return whether no id can be added before one expires."""
        return len(self._known) >= self._most

    def is_busy(self, size: int) -> bool:
        """Return whether a call of `size` bytes has to wait until others have ended.

        It never has to wait if no other call is under way.
        """
        full = len(self._waiting) >= self._most_waiting
        return bool(self._waiting) and (
            full or self._waiting_bytes + size > self._most_waiting_bytes
        )

    def add(self, request: Request, effective: Principal, subnet: int, ticket: Ticket) -> Ingress:
        """Add a call that was submitted, and return it."""
        known = Ingress(
            id=request.id,
            sender=request.sender,
            canister=request.canister,
            effective=effective,
            subnet=subnet,
            size=request.size,
            ticket=ticket,
        )
        self._known[request.id] = known
        self._waiting[request.id] = known
        self._waiting_bytes += known.size
        heapq.heappush(self._ends, (request.expiry + STAY, request.id))
        self._trees[subnet].put(request.id, {b"status": b"processing"})
        return known

    def forget(self, now: int) -> None:
        """Forget the calls that expired some time before `now` (ns).

        The bytes of one that is still under way count until it ends.
        """
        while self._ends and self._ends[0][0] <= now:
            _, identity = heapq.heappop(self._ends)
            call = self._known.pop(identity)
            self._trees[call.subnet].remove(identity)
            if self._answered.pop(identity, None) is not None:
                self._answered_bytes -= call.answer_bytes

    def settle(self) -> None:
        """Note the calls that have ended, and drop the oldest answers if there are too many."""
        for call in list(self._waiting.values()):
            answer = None if call.ticket is None else call.ticket.answer
            if answer is None:
                continue
            call.ticket = None
            del self._waiting[call.id]
            self._waiting_bytes -= call.size
            # It may have expired before it ended.
            if call.id in self._known:
                self._trees[call.subnet].put(call.id, _told_of(answer))
                call.answer_bytes = len(answer.data) + len(answer.message)
                self._answered[call.id] = call
                self._answered_bytes += call.answer_bytes
        while self._answered_bytes > self._answer_bytes:
            identity, call = self._answered.popitem(last=False)
            self._answered_bytes -= call.answer_bytes
            self._trees[call.subnet].put(identity, _DONE)


def rejection(answer: Answer) -> dict[str, object]:
    """Return a reject as agents get it. An error code such as IC0503 begins the message."""
    code, colon, _ = answer.message.partition(":")
    named = {"error_code": code} if colon and code.startswith("IC0") else {}
    return {"reject_code": answer.code, "reject_message": answer.message, **named}


def _told_of(answer: Answer) -> State:
    """Return the status of a call that has ended as a part of the state."""
    if answer.ok:
        return {b"status": b"replied", b"reply": answer.data}
    about = {key.encode(): str(value).encode() for key, value in rejection(answer).items()}
    return {**about, b"status": b"rejected", b"reject_code": nat(answer.code)}
