"""A trial: a network in which a candidate plays one role, and the record of its messages."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, NamedTuple

from interchain_events.icrc72.cheats.stage import Troupe
from interchain_events.icrc72.conformance.probes import GARBAGE, Book, Line
from interchain_events.icrc72.conformance.wording import misfit, ranges
from interchain_events.icrc72.ic.canister import RUNNING, STOPPED, SYS_TRANSIENT, Answer, Canister
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.messaging import Happening, Recorder
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.methods import A, Method, R
from interchain_events.icrc72.services import codec


class Candidate(NamedTuple):
    """An implementation of a role, with functions for which the standard has no method."""

    make: Callable[[Principal], Canister]
    """Makes the canister, given the orchestrator. It is called again for an upgrade."""
    publish: Callable[[CanisterNetwork, Principal, int], None] | None = None
    """Lets a publisher make an event with a number."""
    handled: Callable[[CanisterNetwork, Principal], list[int]] | None = None
    """Returns the ids of the events that a subscriber has handled, in order."""
    register: Callable[[CanisterNetwork, Principal], None] | None = None
    """Lets a canister register that does not do so by itself."""


class Seen(NamedTuple, Generic[A]):
    """A decoded message with its entry in the trace."""

    at: Happening
    value: A


@dataclass(slots=True)
class Trial(Troupe):
    """A network with a candidate, and the verdicts on it."""

    candidate: Candidate
    book: Book
    recorder: Recorder = field(default_factory=Recorder)
    """The trace, from which verdicts are drawn."""
    who: Principal = field(default_factory=Principal)
    """The id of the candidate, once it is installed."""

    def __post_init__(self) -> None:
        self.network.observers.append(self.recorder)

    def install(self, subnet: int) -> None:
        """Install the candidate on a subnet."""
        self.who = self.network.create(subnet, self.candidate.make(self.system.orchestrator))

    def disturb(self, by: Principal, *methods: str) -> None:
        """Call methods of the candidate with arguments that cannot be decoded."""
        for method in methods:
            self.shout(by, self.who, method, GARBAGE)

    def upgrade(self) -> None:
        """Stop the candidate, upgrade it to the same code, start it, and judge this (IC-8)."""
        # Publishers may handle events, too, but only subscribers have a rule about their state.
        before = self.handled() if "IC-8 state" in self.book.rules else None
        self.network.stop(self.who)
        for _ in range(60):
            self.network.step()
            if self.network.status(self.who) == STOPPED:
                break
        stopped = self.network.status(self.who) == STOPPED
        upgraded = stopped and self.network.upgrade(
            self.who, self.candidate.make(self.system.orchestrator)
        )
        self.network.start(self.who)
        failure = "it trapped" if stopped else "it does not stop"
        self.book.must("IC-8", upgraded, f"round {self.network.round}: {failure}")
        after = self.handled() if upgraded else None
        if before is not None and after is not None:
            kept = after[: len(before)] == before
            breach = (
                f"round {self.network.round}: handled before the upgrade were {ranges(before)},"
                f" after it {ranges(after)}"
            )
            self.book.must("IC-8 state", kept, breach, len(before))

    def handled(self) -> list[int] | None:
        """Return the ids of the events that the candidate has handled, in order.

        Returns `None` if this cannot be seen.
        """
        if self.candidate.handled is None or not self.running():
            return None
        return self.candidate.handled(self.network, self.who)

    def seen(
        self,
        method: Method[A, R],
        kind: str,
        *,
        by: Principal | None = None,
        to: Principal | None = None,
    ) -> Iterator[Seen[A]]:
        """Yield the calls of a method whose argument can be decoded.

        `kind` is `send` or `execute`. Either side can be restricted to one canister.
        """
        for happening in self.recorder.happenings:
            concerned = by in {None, happening.sender} and to in {None, happening.receiver}
            if concerned and (happening.kind, happening.method) == (kind, method.name):
                with suppress(CandidError):
                    yield Seen(happening, method.value(happening.data))

    def items(
        self,
        method: Method[tuple[A, ...], R],
        kind: str,
        *,
        by: Principal | None = None,
        to: Principal | None = None,
    ) -> list[tuple[Happening, A]]:
        """Return all items of batches in the calls of a method."""
        items: list[tuple[Happening, A]] = []
        for seen in self.seen(method, kind, by=by, to=to):
            items += [(seen.at, item) for item in seen.value]
        return items

    def answers(
        self, method: Method[A, R], *, by: Principal, to: Principal
    ) -> list[Seen[R | None]]:
        """Return the answers of `by` to calls of a method from `to`.

        A reject, or a reply that cannot be decoded, is `None`.
        """
        answers: list[Seen[R | None]] = []
        for happening in self.recorder.happenings:
            if (happening.kind, happening.method, happening.sender, happening.receiver) == (
                "respond",
                method.name,
                by,
                to,
            ):
                result: R | None = None
                with suppress(CandidError):
                    result = None if happening.code else method.result(happening.data)
                answers.append(Seen(happening, result))
        return answers

    def running(self) -> bool:
        """Return whether the candidate runs."""
        return self.network.status(self.who) == RUNNING

    def judge_messages(self) -> None:
        """Judge whether the arguments that the candidate sends can be read (IC-11).

        For each method there is one breach: the first unreadable call, and the number of others.
        """
        sent = 0
        first: dict[str, str] = {}
        more: Counter[str] = Counter()
        for happening in self.recorder.happenings:
            if happening.kind != "send" or happening.sender != self.who:
                continue
            try:
                method = codec(happening.method)
            except KeyError:
                continue
            sent += 1
            try:
                method.args.decode(happening.data)
            except CandidError as error:
                if happening.method in first:
                    more[happening.method] += 1
                    continue
                breach = f"round {happening.round}: {happening.method}: {error}"
                difference = misfit(happening.data, method.args.types)
                first[happening.method] = f"{breach}: {difference}" if difference else breach
        broken: list[str] = []
        for name, breach in first.items():
            broken.append(f"{breach}, and {more[name]} more calls" if more[name] else breach)
        self.book.judge("IC-11", sent, broken)

    def judge_traps(self) -> None:
        """Judge whether the candidate traps on messages other than garbage (IC-4)."""
        happenings = self.recorder.happenings
        garbage: set[int] = set()
        executed = 0
        traps: dict[str, list[int]] = {}
        for happening in happenings:
            # A request is executed before it traps, so `garbage` is complete for each trap.
            if happening.kind == "execute":
                if happening.data == GARBAGE:
                    garbage.add(happening.number)
                if happening.receiver == self.who:
                    executed += 1
            # Number 0 stands for work without a request, for example of a timer.
            elif (
                happening.kind == "trap"
                and happening.receiver == self.who
                and happening.number not in garbage - {0}
            ):
                reason = happening.data.decode(errors="replace")
                traps.setdefault(reason, []).append(happening.round)
        broken = [f"round {ranges(rounds)}: {reason}" for reason, rounds in traps.items()]
        self.book.judge("IC-4", executed, broken)


@dataclass(frozen=True, slots=True)
class ActorLine(Line):
    """A connection of one actor to the candidate of a trial."""

    trial: Trial
    caller: Principal

    def call(self, method: str, arg: bytes) -> Answer:
        """Let the actor call the candidate, and return the answer from the trace."""
        trial = self.trial
        before = len(self.trial.recorder.happenings)
        trial.shout(self.caller, trial.who, method, arg)
        for happening in reversed(trial.recorder.happenings[before:]):
            if (happening.kind, happening.method, happening.sender, happening.receiver) == (
                "respond",
                method,
                trial.who,
                self.caller,
            ):
                return Answer(happening.data, happening.code)
        return Answer(b"", SYS_TRANSIENT)

    def query(self, method: str, arg: bytes) -> Answer:
        """Query the candidate as the anonymous user."""
        return self.trial.network.query(ANONYMOUS, self.trial.who, method, arg)

    def wait(self) -> None:
        """Step the network ten rounds."""
        self.trial.network.step(10)

    def moment(self) -> str:
        """Return the round as text."""
        return f"round {self.trial.network.round}"
