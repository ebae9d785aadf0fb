"""A trial: a candidate in one role among emulated ones, what it was seen to do, and the verdict of each rule."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, NamedTuple

from pubsub_emulator.icrc72.cheats.stage import Troupe
from pubsub_emulator.icrc72.conformance.probes import GARBAGE, Book, Line
from pubsub_emulator.icrc72.ic.canister import RUNNING, STOPPED, SYS_TRANSIENT, Answer, Canister
from pubsub_emulator.icrc72.ic.errors import CandidError
from pubsub_emulator.icrc72.ic.messaging import Happening, Recorder
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.methods import A, Method, R


class Candidate(NamedTuple):
    """The role that is tried: how it is made, and how it is used where the standard has no method for that."""

    make: Callable[[Principal], Canister]
    """The canister, given the orchestrator; called again for an upgrade."""
    publish: Callable[[CanisterNetwork, Principal, int], None] | None = None
    """Lets a publisher make an event."""
    handled: Callable[[CanisterNetwork, Principal], list[int]] | None = None
    """The ids of the events that a subscriber has handled, in order."""


class Seen(NamedTuple, Generic[A]):
    """A message that was read."""

    at: Happening
    value: A


@dataclass(slots=True)
class Trial(Troupe):
    """A network with a candidate."""

    candidate: Candidate
    book: Book
    recorder: Recorder = field(default_factory=Recorder)  # the trace behind each verdict
    who: Principal = field(default_factory=Principal)

    def __post_init__(self) -> None:
        self.network.observers.append(self.recorder)

    def install(self, subnet: int) -> None:
        """Install the candidate."""
        self.who = self.network.create(subnet, self.candidate.make(self.system.orchestrator))

    def disturb(self, by: Principal, *methods: str) -> None:
        """Send the candidate what it cannot read."""
        for method in methods:
            self.shout(by, self.who, method, GARBAGE)

    def upgrade(self) -> None:
        """Upgrade the candidate to itself."""
        self.network.stop(self.who)
        for _ in range(60):
            self.network.step()
            if self.network.status(self.who) == STOPPED:
                break
        stopped = self.network.status(self.who) == STOPPED
        done = stopped and self.network.upgrade(self.who, self.candidate.make(self.system.orchestrator))
        self.network.start(self.who)
        self.book.must("IC-8", done, f"round {self.network.round}: {'it trapped' if stopped else 'it does not stop'}")

    def seen(
        self, method: Method[A, R], kind: str, *, by: Principal | None = None, to: Principal | None = None
    ) -> Iterator[Seen[A]]:
        """Every call of a method, as it was sent or executed, whose argument can be read."""
        for each in self.recorder.happenings:
            fits = by in {None, each.sender} and to in {None, each.receiver}
            if fits and (each.kind, each.method) == (kind, method.name):
                with suppress(CandidError):
                    yield Seen(each, method.value(each.data))

    def items(
        self, method: Method[tuple[A, ...], R], kind: str, *, by: Principal | None = None, to: Principal | None = None
    ) -> list[tuple[Happening, A]]:
        """Every item of the calls of a method."""
        return [(seen.at, each) for seen in self.seen(method, kind, by=by, to=to) for each in seen.value]

    def answers(self, method: Method[A, R], *, by: Principal, to: Principal) -> list[Seen[R | None]]:
        """Every answer of `by` to calls of a method; `None` for a rejection, and for a reply that cannot be read."""
        found: list[Seen[R | None]] = []
        for each in self.recorder.happenings:
            if (each.kind, each.method, each.sender, each.receiver) == ("respond", method.name, by, to):
                result: R | None = None
                with suppress(CandidError):
                    result = None if each.code else method.result(each.data)
                found.append(Seen(each, result))
        return found

    def running(self) -> bool:
        """True while the candidate runs."""
        return self.network.status(self.who) == RUNNING

    def judge_traps(self) -> None:
        """Judge whether what is well-formed makes it trap."""
        happened = self.recorder.happenings
        bad = {each.number for each in happened if each.kind == "execute" and each.data == GARBAGE} - {0}
        found = [each for each in happened if each.kind == "trap" and each.receiver == self.who]
        words = [f"round {x.round}: {x.data.decode(errors='replace')}" for x in found if x.number not in bad]
        shown = sum(each.kind == "execute" and each.receiver == self.who for each in happened)
        self.book.judge("IC-4", shown, words)


@dataclass(frozen=True, slots=True)
class ActorLine(Line):
    """A line to the candidate of a trial: the calls of one actor."""

    trial: Trial
    caller: Principal

    def call(self, method: str, arg: bytes) -> Answer:
        """Let the actor call the candidate."""
        trial, before = self.trial, len(self.trial.recorder.happenings)
        trial.shout(self.caller, trial.who, method, arg)
        for each in reversed(trial.recorder.happenings[before:]):
            if (each.kind, each.method, each.sender, each.receiver) == ("respond", method, trial.who, self.caller):
                return Answer(each.data, each.code)
        return Answer(b"", SYS_TRANSIENT)

    def query(self, method: str, arg: bytes) -> Answer:
        """Ask as nobody."""
        return self.trial.network.query(ANONYMOUS, self.trial.who, method, arg)

    def wait(self) -> None:
        """Let ten rounds pass."""
        self.trial.network.step(10)

    def moment(self) -> str:
        """The round."""
        return f"round {self.trial.network.round}"
