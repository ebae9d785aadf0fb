"""The emulated Internet Computer, which is stepped in rounds (IC-1 to IC-10, I8, I13).

`step` runs one round on each subnet in turn: first heartbeats, then due timers, then messages that
have arrived, in the order in which they were sent or as the schedule draws. Idle canisters cost no
time.
"""

import gc
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Final

from interchain_events.icrc72.ic import canister as c
from interchain_events.icrc72.ic.candid.carried import plain
from interchain_events.icrc72.ic.canister import (
    SECOND,
    Answer,
    Call,
    CallContext,
    Canister,
    Context,
    Host,
    Key,
    Ticket,
)
from interchain_events.icrc72.ic.errors import CandidError, IcError, Trap
from interchain_events.icrc72.ic.management import OF_USERS, Make, serve
from interchain_events.icrc72.ic.messaging import (
    CALL_BYTES,
    Arrival,
    MessageLimits,
    Messaging,
    Schedule,
    Subnet,
)
from interchain_events.icrc72.ic.principal import (
    CANISTERS_OF_A_SUBNET,
    MANAGEMENT,
    Principal,
    canister_id,
    key_of,
    self_authenticating,
)

GENESIS: Final = 1_700_000_000 * SECOND
"""The time (ns) at which a network begins by default."""
CYCLES: Final = 10**13
"""The cycles of a new canister. Execution is free here, so cycles are only sent with calls."""

_SPARE_TIMERS: Final = 64
"""How many outdated entries of timers a subnet may have besides one for each canister."""

_NO_CANISTER: Final = Answer(b"", c.DESTINATION_INVALID, "there is no such canister")
_NOT_RUNNING: Final = Answer(b"", c.CANISTER_ERROR, c.STOPPING)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the garbage collector for a round.

    A round with many messages makes many objects. Most of them stay in states, or are freed because
    nothing refers to them any more. Collections during the round would examine these objects again
    and again, in vain.
    """
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


_SELDOM: Final = (100_000, 5, 5)
"""The thresholds of Python's garbage collector.

It examines new objects after every 100,000 of them. All objects are examined after 36 times as many
new ones, and only if they have grown by a quarter.
"""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Run the garbage collector less often, for programs that step a large network.

    The collector frees only reference cycles, since Python frees all other objects at once. The
    roles make no cycles. By default the collector still runs after 700 new objects, and examines
    all objects whenever a quarter of them is new. This is a third of the time that it takes to
    register 10,000 subscribers. Here it runs after 100,000 new objects, so that canisters which do
    make cycles take bounded memory.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class CanisterNetwork(Messaging):
    """An emulated Internet Computer.

    `skew` has the nanoseconds by which the clock of each subnet is ahead. Canisters run in the
    order of their messages and without threads, so the same seed and the same calls give the same
    trace (I13).
    """

    def __init__(
        self,
        subnets: int = 1,
        *,
        seed: bytes = b"",
        genesis: int = GENESIS,
        skew: Sequence[int] = (),
        schedule: Schedule | None = None,
        limits: MessageLimits | None = None,
    ) -> None:
        if subnets < 1 or (skew and len(skew) != subnets):
            raise IcError("a network has at least one subnet, and one skew per subnet")
        super().__init__(subnets, schedule or Schedule(seed), limits or MessageLimits())
        self.seed = seed
        self.genesis = genesis
        self.skew = tuple(skew) or (0,) * subnets
        self.make: Make | None = None
        """Makes canisters from modules for `install_code`, for example `WasmCanister`."""
        self._clocks = [partial(self.time, subnet) for subnet in range(subnets)]
        self._late: list[list[tuple[Key, Principal]]] = [[] for _ in range(subnets)]
        """For each subnet, a heap of canisters with an inbox, by their first message."""
        self._inboxes: dict[Principal, deque[Arrival]] = {}
        """The messages that wait because their canister had reached its limit for a round."""
        self._open: dict[Principal, set[CallContext]] = {}
        """The work of canisters that has not ended."""

    @property
    def subnets(self) -> int:
        """Return the number of subnets."""
        return len(self._subnets)

    def user(self, name: str) -> Principal:
        """Return the principal of a user, whose key is drawn from the seed and the name."""
        return self_authenticating(key_of(self.seed, f"user {name}"))

    def time(self, subnet: int) -> int:
        """Return the time on a subnet in nanoseconds (IC-1)."""
        return self.genesis + self.round * SECOND + self.skew[subnet]

    def next_id(self, subnet: int) -> Principal:
        """Return the id that the next canister of a subnet will have."""
        return canister_id(subnet, self._subnets[subnet].created)

    def create(
        self,
        subnet: int,
        code: Canister,
        *,
        cycles: int = CYCLES,
        controllers: Sequence[Principal] = (),
    ) -> Principal:
        """Create and start a canister, and return its id.

        Raises `IcError` if `init` traps or the subnet has no ids left.
        """
        place = self._subnets[subnet]
        if place.created >= CANISTERS_OF_A_SUBNET:
            raise IcError(f"subnet {subnet} has no canister ids left")
        identity = canister_id(subnet, place.created)
        place.created += 1
        host = Host(identity, subnet, code, self.limits.message_bytes, self._clocks[subnet])
        host.cycles = cycles
        host.controllers = tuple(controllers)
        self._hosts[identity] = host
        self._begin(host, code)
        return identity

    def _begin(self, host: Host, code: Canister) -> None:
        """Run `init` of new code. Raises `IcError` if it traps."""
        self._tell("install", 0, MANAGEMENT, host.id)
        self._install(host)
        self._begin_round(host)
        trapped = self._execute(host, None, MANAGEMENT, code.init)
        if trapped:
            host.code = None
            host.status = c.EMPTY
            raise IcError(f"the installation of {host.id.text} trapped: {trapped}")

    def hosts(self) -> Iterable[Host]:
        """Return the hosts of all canisters in the order of their creation."""
        return self._hosts.values()

    def running(self) -> list[Principal]:
        """Return the canisters that are running in the order of their creation."""
        return [host.id for host in self._hosts.values() if host.status == c.RUNNING]

    def canister(self, identity: Principal) -> Canister:
        """Return the code and state of a canister. Raises `IcError` if it does not exist."""
        host = self._hosts.get(identity)
        if host is None or host.code is None:
            raise IcError(f"there is no canister {identity.text}")
        return host.code

    def cycles(self, identity: Principal) -> int:
        """Return the cycles that a canister owns."""
        return self.host(identity).cycles

    def status(self, identity: Principal) -> str:
        """Return the status of a canister: `running`, `stopping`, `stopped` or `empty`."""
        return self.host(identity).status

    def is_idle(self) -> bool:
        """Return whether no message is on its way or waits to be executed. Timers may be set."""
        transit = any(place.transit for place in self._subnets)
        return not self._pending and not transit and not self._inboxes

    def submit(self, user: Principal, canister: Principal, method: str, arg: bytes) -> Ticket:
        """Send a user's request, and return the ticket that will have its answer.

        A request that the canister's `inspect` does not admit is rejected at once (IC-10).
        """
        host = self._hosts.get(canister)
        code = None if host is None else host.code
        self._tell("ingress", 0, user, canister, method, arg)
        if code is None and not (canister == MANAGEMENT and method in OF_USERS):
            return Ticket(_NO_CANISTER)
        if code is not None and not code.inspect(method, user, arg):
            return Ticket(Answer(b"", c.CANISTER_REJECT, c.REFUSED))
        ticket = Ticket()
        self._number += 1
        call = Call(user, canister, method, arg, c.GUARANTEED, number=self._number, ticket=ticket)
        subnet = 0 if host is None else host.subnet
        self._arrive(subnet, subnet, call, None)
        return ticket

    def query(self, caller: Principal, canister: Principal, method: str, arg: bytes) -> Answer:
        """Return the answer of a canister's query, which takes no time and changes nothing."""
        host = self._hosts.get(canister)
        if host is None or host.code is None:
            return _NO_CANISTER
        if host.status != c.RUNNING:
            return _NOT_RUNNING
        try:
            data = plain(host.code.query(caller, self.time(host.subnet), method, arg))
            Context(host, canister, caller, 0).bound(len(data))
        except (Trap, CandidError) as error:
            return Answer(b"", c.CANISTER_ERROR, f"IC0503: {error}")
        return Answer(data)

    def stop(self, identity: Principal) -> None:
        """Begin to stop a canister. It stops once it has all answers that it waits for (IC-8)."""
        host = self.host(identity)
        if host.status == c.RUNNING:
            host.status = c.STOPPING_STATUS
            self._tell("stop", 0, MANAGEMENT, identity)
            self._settle(host)

    def start(self, identity: Principal) -> None:
        """Start a canister that is stopping or stopped."""
        host = self.host(identity)
        if host.status in {c.STOPPING_STATUS, c.STOPPED}:
            host.status = c.RUNNING
            self._tell("start", 0, MANAGEMENT, identity)
            self._enqueue_timer(host)

    def upgrade(self, identity: Principal, code: Canister) -> bool:
        """Upgrade a stopped canister to new code (IC-8).

        Returns false if the upgrade trapped; the old code then stays with its state and timer.
        Raises `IcError` if the canister is not stopped.
        """
        host = self.host(identity)
        if host.status != c.STOPPED or host.code is None:
            raise IcError(f"{identity.text} is {host.status}, only a stopped canister is upgraded")
        # The timer of the old code is cleared, unless the upgrade traps.
        due = host.due
        host.due = None
        try:
            ctx = Context(host, identity, MANAGEMENT, self.time(host.subnet))
            handed_over = code.take_over(ctx, host.code)
        except (Trap, CandidError) as error:
            host.due = due
            self._tell("trap", 0, MANAGEMENT, identity, "upgrade", str(error).encode())
            return False
        host.code = code
        host.life += 1
        self._install(host)
        self._tell("upgrade", 0, MANAGEMENT, identity, "", handed_over)
        self._perform(host, CallContext(None, host.life, owes=False), ctx)
        return True

    def reinstall(self, identity: Principal, code: Canister) -> None:
        """Install other code without the state of the code before, if there was any.

        Raises `IcError` if `init` traps.
        """
        host = self.host(identity)
        if host.code is not None:
            self.uninstall(identity)
        host.code = code
        host.status = c.RUNNING
        self._begin(host, code)

    def uninstall(self, identity: Principal) -> None:
        """Remove code and state of a canister, and reject the calls that it has not answered."""
        host = self.host(identity)
        open_ = self._open.pop(identity, set())
        host.code = None
        host.status = c.EMPTY
        host.due = None
        host.life += 1
        self._tell("uninstall", 0, MANAGEMENT, identity)
        unanswered = [
            context.call for context in open_ if context.owes and context.call is not None
        ]
        for call in sorted(unanswered, key=lambda call: call.number):
            self._respond(call, Answer(b"", c.CANISTER_REJECT, "the canister was removed"))

    def step(self, rounds: int = 1) -> None:
        """Run a number of rounds on all subnets."""
        for _ in range(rounds):
            self.round += 1
            with _uncollected():
                self._time_out()
                for number in range(len(self._subnets)):
                    self._run_subnet(number)

    def _run_subnet(self, number: int) -> None:
        """Run heartbeats, due timers and messages of one subnet."""
        place = self._subnets[number]
        for host in place.heartbeats:
            if host.status == c.RUNNING and host.code is not None and host.code.heartbeat:
                self._tell("heartbeat", 0, MANAGEMENT, host.id)
                self._begin_round(host)
                self._execute(host, None, host.id, host.code.on_heartbeat)
        now = self.time(number)
        due: list[tuple[int, int, Principal]] = []
        while place.timers and place.timers[0][0] <= now:
            due.append(heapq.heappop(place.timers))
        # All due timers were taken before the first one runs. A timer that is set from here on runs
        # in the next round at the earliest. Otherwise a canister whose timer sets itself to a time
        # in the past would run for ever.
        ran: set[Principal] = set()
        for time, _, identity in due:
            host = self._hosts[identity]
            # An entry with another time is outdated: the timer was set again or cleared. If it was
            # set to the same time again, it has two entries.
            current = host.due == time and identity not in ran
            if current and host.status == c.RUNNING and host.code is not None:
                ran.add(identity)
                host.due = None
                self._tell("timer", 0, MANAGEMENT, identity)
                self._begin_round(host)
                self._execute(host, None, identity, host.code.on_timer)
        self._run_messages(number, place)

    def _run_messages(self, number: int, place: Subnet) -> None:
        """Execute the messages of a subnet that have arrived.

        They are executed in the order of their keys across all canisters. A canister that has
        reached its limit for the round continues with its inbox in the next one.
        """
        # Canisters with an inbox from former rounds, and those that are full in this round.
        late = self._late[number]
        full: list[tuple[Key, Principal]] = []
        for host, message in self._arrivals(place):
            key = message[0]
            if late:
                self._work_off(late, full, key)
            inbox = self._inboxes.get(host.id)
            # Messages in an inbox come before this one, and the canister has reached its limit.
            if inbox is not None:
                inbox.append(message)
            elif self._is_full(host):
                self._inboxes[host.id] = deque([message])
                full.append((key, host.id))
            else:
                self._deliver(host, message)
        self._work_off(late, full, None)
        late += full
        heapq.heapify(late)

    def _arrivals(self, place: Subnet) -> list[tuple[Host, Arrival]]:
        """Take the messages that have arrived, each with its canister, in the order of their keys.

        Messages to the management canister and to unknown canisters are served at once.
        """
        arrived: list[Arrival] = []
        rounds = [round_ for round_ in place.transit if round_ <= self.round]
        for round_ in rounds:
            arrived += place.transit.pop(round_)
        # They are almost in order already, so sorting takes less time than a heap would.
        arrived.sort(key=itemgetter(0))
        arrivals: list[tuple[Host, Arrival]] = []
        for message in arrived:
            _, call, answer = message
            host = self._hosts.get(call.receiver if answer is None else call.sender)
            if host is None:
                self._serve_without_host(call, answer)
            else:
                arrivals.append((host, message))
        return arrivals

    def _work_off(
        self,
        late: list[tuple[Key, Principal]],
        full: list[tuple[Key, Principal]],
        before: Key | None,
    ) -> None:
        """Execute the messages in inboxes whose keys are below `before`, or all with `None`.

        Canisters that have reached their limit are moved from `late` to `full`.
        """
        while late and (before is None or late[0][0] < before):
            key, identity = late[0]
            host = self._hosts[identity]
            if self._is_full(host):
                heapq.heappop(late)
                full.append((key, identity))
                continue
            inbox = self._inboxes[identity]
            message = inbox.popleft()
            if inbox:
                heapq.heapreplace(late, (inbox[0][0], identity))
            else:
                heapq.heappop(late)
                del self._inboxes[identity]
            self._deliver(host, message)

    def _is_full(self, host: Host) -> bool:
        """Return whether a canister has reached its limits for this round.

        If it was not executed in this round yet, its counts are reset.
        """
        if host.round != self.round:
            self._begin_round(host)
            return False
        limits = self.limits
        return host.ran >= limits.messages_a_round or host.sent >= limits.bytes_a_round

    def _deliver(self, host: Host, message: Arrival) -> None:
        """Execute a request or an answer of a canister that is not full."""
        _, call, answer = message
        host.ran += 1
        if answer is None:
            self._serve(host, call)
        else:
            self._take_answer(host, call, answer)

    def _begin_round(self, host: Host) -> None:
        """Reset the counts of a round when a canister is first executed in it."""
        if host.round != self.round:
            host.round = self.round
            host.ran = 0
            host.sent = 0

    def _serve_without_host(self, call: Call, answer: Answer | None) -> None:
        """Serve a request to the management canister, or reject one to an unknown canister."""
        if answer is not None:
            return
        self._request_arrived(call)
        served = serve(self, call) if call.receiver == MANAGEMENT else _NO_CANISTER
        call.arg = b""
        if served is not None:
            self._respond(call, served)

    def _serve(self, host: Host, call: Call) -> None:
        """Execute a request. Reject it if the canister does not run or the schedule refuses it."""
        self._request_arrived(call)
        if host.code is None:
            self._respond(call, Answer(b"", c.CANISTER_ERROR, "IC0537: the canister has no code"))
        elif host.status != c.RUNNING:
            self._respond(call, _NOT_RUNNING)
        elif (
            call.sender != call.receiver
            and call.ticket is None
            and self.schedule.refuses(call.number)
        ):
            self._tell("refuse", call.number, call.sender, call.receiver, call.method)
            self._respond(call, Answer(b"", c.SYS_TRANSIENT, "the request was refused"))
        else:
            if self.observers:
                self._tell(
                    "execute", call.number, call.sender, call.receiver, call.method, call.arg
                )
            context = CallContext(call, host.life, owes=True)
            self._execute(host, context, call.sender, host.code.update, call.method, call.arg)
        # The argument is not read any more, and the call may wait long for its answer.
        call.arg = b""

    def _take_answer(self, host: Host, call: Call, answer: Answer) -> None:
        """Give the caller back its cycles, and continue its work with an answer.

        The work ended if the code has changed since the call.
        """
        if self._pending.pop(call.number, None) is None:
            # The call has timed out, and the caller got an answer then.
            return
        host.under_way_bytes -= CALL_BYTES
        # After a timeout, the callee may still accept the cycles, so they do not come back.
        if call.cycles and answer.code != c.SYS_UNKNOWN:
            answer = answer._replace(refunded=call.cycles)
            host.cycles += call.cycles
            call.cycles = 0
        context = call.context
        if context is None or context.life != host.life or host.code is None:
            return
        context.waits -= 1
        if self.observers:
            self._tell(
                "answer",
                call.number,
                call.receiver,
                call.sender,
                call.method,
                answer.data,
                answer.code,
            )
        if call.then is not None:
            self._execute(host, context, host.id, call.then, answer, cleanup=call.cleanup)
        else:
            self._close(host, context)

    def _execute(
        self,
        host: Host,
        own: CallContext | None,
        caller: Principal,
        run: Callable[..., None],
        *arguments: object,
        cleanup: c.CleanUp | None = None,
    ) -> str:
        """Execute one message and carry its effects out, or undo it if it traps (IC-4, I8).

        `run` is called with a context and the arguments, in the work `own`, or in new work that no
        request has caused. Returns an empty text, or the reason of the trap. After a trap,
        `cleanup` is executed.
        """
        code = host.code
        if code is None:
            return ""
        if own is None:
            own = CallContext(None, host.life, owes=False)
        ctx = Context(host, host.id, caller, self.time(host.subnet), answered=not own.owes)
        call = own.call
        if call is not None:
            ctx.available = call.cycles
            if call.deadline:
                ctx.deadline = ctx.time + (call.deadline - self.round) * SECOND
        before = code.snapshot()
        try:
            run(ctx, *arguments)
        except (Trap, CandidError) as error:
            code.restore(before)
            self._tell("trap", call.number if call else 0, caller, host.id, "", str(error).encode())
            if cleanup is not None:
                self._clean_up(host, code, caller, cleanup)
            self._close(host, own, f"IC0503: {error}")
            return str(error) or "without a word"
        self._perform(host, own, ctx)
        return ""

    def _clean_up(self, host: Host, code: Canister, caller: Principal, cleanup: c.CleanUp) -> None:
        """Execute the clean-up of a call whose continuation trapped.

        Only its state and timer are kept: it can neither call nor answer.
        """
        ctx = Context(host, host.id, caller, self.time(host.subnet))
        before = code.snapshot()
        try:
            cleanup(ctx)
        except (Trap, CandidError) as error:
            code.restore(before)
            self._tell("trap", 0, caller, host.id, "clean-up", str(error).encode())
            return
        self._set_timer(host, ctx)

    def _perform(self, host: Host, own: CallContext, ctx: Context) -> None:
        """Carry out the effects of an execution: cycles, timer, answer and calls."""
        host.cycles = ctx.balance
        request = own.call
        if request is not None:
            request.cycles = ctx.available
        self._set_timer(host, ctx)
        if ctx.answer is not None and request is not None:
            own.owes = False
            self._respond(request, ctx.answer)
        for call in ctx.calls:
            call.context = own
            own.waits += 1
            self._send(host, call)
        self._close(host, own, "IC0506: the canister did not answer")

    def _close(self, host: Host, context: CallContext, unanswered: str = "") -> None:
        """Close a call context after an execution, unless it waits for answers to its own calls.

        If its request was not answered, it is rejected with the text `unanswered`. If this text is
        empty, the context stays open until its request is answered.
        """
        if unanswered and context.owes and not context.waits and context.call is not None:
            context.owes = False
            self._respond(context.call, Answer(b"", c.CANISTER_ERROR, unanswered))
        open_ = self._open.get(host.id)
        if context.waits or context.owes:
            # Most work ends with its first execution and is never listed.
            if open_ is None:
                self._open[host.id] = {context}
            else:
                open_.add(context)
            return
        # An uninstalled canister has lost its open work.
        if open_ is not None:
            open_.discard(context)
            if not open_:
                del self._open[host.id]
        self._settle(host)

    def _settle(self, host: Host) -> None:
        """Stop a stopping canister that has no open work, and answer the calls that stopped it."""
        if host.status == c.STOPPING_STATUS and host.id not in self._open:
            host.status = c.STOPPED
            self._tell("stopped", 0, MANAGEMENT, host.id)
            for call in host.stopping:
                self._respond(call, Answer(b"DIDL\0\0"))
            host.stopping = ()

    def _install(self, host: Host) -> None:
        """Update the list of canisters with a heartbeat after a change of code."""
        heartbeats = self._subnets[host.subnet].heartbeats
        if host in heartbeats:
            heartbeats.remove(host)
        if host.code is not None and host.code.heartbeat:
            heartbeats.append(host)

    def _set_timer(self, host: Host, ctx: Context) -> None:
        """Set or clear a canister's timer if the execution has asked for it."""
        if ctx.timer_set:
            host.due = ctx.timer
            self._enqueue_timer(host)

    def _enqueue_timer(self, host: Host) -> None:
        """Add a canister's timer to the heap of its subnet. Entries of former times stay there."""
        if host.due is not None:
            self._number += 1
            timers = self._subnets[host.subnet].timers
            heapq.heappush(timers, (host.due, self._number, host.id))
            if len(timers) > 2 * len(self._hosts) + _SPARE_TIMERS:
                self._tidy(timers)

    def _tidy(self, timers: list[tuple[int, int, Principal]]) -> None:
        """Remove the outdated entries, which otherwise stay in the heap until their time.

        Otherwise a canister could fill the heap by setting its timer to the far future again and
        again.
        """
        current: dict[Principal, tuple[int, int, Principal]] = {}
        for entry in sorted(timers):
            time, _, identity = entry
            if self._hosts[identity].due == time:
                current.setdefault(identity, entry)
        timers[:] = current.values()
        heapq.heapify(timers)

    def host(self, identity: Principal) -> Host:
        """Return the host of a canister. Raises `IcError` if it does not exist."""
        host = self._hosts.get(identity)
        if host is None:
            raise IcError(f"there is no canister {identity.text}")
        return host
