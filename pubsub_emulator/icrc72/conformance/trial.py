"""A trial: a candidate in one role among emulated ones, what it was seen to do, and the verdict of each rule."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple

from pubsub_emulator.icrc72.cheats.stage import Troupe
from pubsub_emulator.icrc72.ic.canister import Canister
from pubsub_emulator.icrc72.ic.errors import CandidError
from pubsub_emulator.icrc72.ic.messaging import RUNNING, STOPPED
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.ic.trace import Happening, Recorder
from pubsub_emulator.icrc72.methods import A, Method, R

GARBAGE: Final = b"no Candid"
OF_ALL: Final = {
    "IC-4": "what it is sent, if it can be read, does not make it trap",
    "IC-8": "it can be stopped and upgraded",
    "IC-35d": "it tells its statistics",
}
"""The rules of every role, and what each is about."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The role that is tried: how it is made, and how it is used where the standard has no method for that."""

    make: Callable[[Principal], Canister]
    """The canister, given the orchestrator; called again for an upgrade."""
    publish: Callable[[CanisterNetwork, Principal, int], None] | None = None
    """Lets a publisher make an event."""
    handled: Callable[[CanisterNetwork, Principal], list[int]] | None = None
    """The ids of the events that a subscriber has handled, in order."""


class Verdict(NamedTuple):
    """What a trial says about one rule: `broken` names each breach with its round; `shown` is how often it was met."""

    rule: str
    about: str
    shown: int
    broken: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True when nothing broke it."""
        return not self.broken


class Seen(NamedTuple, Generic[A]):
    """A message that was read."""

    at: Happening
    value: A


@dataclass(slots=True)
class Trial(Troupe):
    """A network with a candidate; `about` has the rules of its role, and what each is about."""

    candidate: Candidate
    about: Mapping[str, str]
    recorder: Recorder = field(default_factory=Recorder)
    """All that happened, in order: the trace behind each verdict."""
    who: Principal = field(default_factory=Principal)
    verdicts: list[Verdict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.network.observers.append(self.recorder)

    # What the kit does

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
        self.must("IC-8", done, f"round {self.network.round}: {'it trapped' if stopped else 'it does not stop'}")

    # What was seen

    def seen(
        self, method: Method[A, R], kind: str, *, by: Principal | None = None, to: Principal | None = None
    ) -> Iterator[Seen[A]]:
        """Every call of a method, as it was sent or executed, whose argument can be read."""
        for each in self.recorder.happenings:
            fits = by in {None, each.sender} and to in {None, each.receiver}
            if fits and (each.kind, each.method) == (kind, method.name):
                try:
                    yield Seen(each, method.value(each.data))
                except CandidError:
                    continue

    def items(
        self, method: Method[tuple[A, ...], R], kind: str, *, by: Principal | None = None, to: Principal | None = None
    ) -> list[tuple[Happening, A]]:
        """Every item of the calls of a method."""
        return [(seen.at, each) for seen in self.seen(method, kind, by=by, to=to) for each in seen.value]

    def answers(self, method: Method[A, R], *, by: Principal, to: Principal) -> list[Seen[R | None]]:
        """Every answer of `by` to calls of a method; `None` for a rejection, and for a reply that cannot be read."""
        found: list[Seen[R | None]] = []
        for each in self.recorder.happenings:
            if each.kind == "respond" and each.method == method.name and (each.sender, each.receiver) == (by, to):
                try:
                    found.append(Seen(each, None if each.code else method.result(each.data)))
                except CandidError:
                    found.append(Seen(each, None))
        return found

    def traps(self) -> list[Happening]:
        """Every trap of the candidate, but for those that what cannot be read brought about."""
        found = [each for each in self.recorder.happenings if each.kind == "trap" and each.receiver == self.who]
        bad = {each.number for each in self.recorder.happenings if each.kind == "execute" and each.data == GARBAGE}
        return [each for each in found if each.number not in bad or not each.number]

    def running(self) -> bool:
        """True while the candidate runs."""
        return self.network.status(self.who) == RUNNING

    # What is judged

    def judge(self, rule: str, shown: int, broken: Iterable[str]) -> None:
        """Add a verdict. A rule that was never met is no rule that holds: that itself is said."""
        self.verdicts.append(Verdict(rule, {**OF_ALL, **self.about}[rule], shown, tuple(broken)))

    def must(self, rule: str, holds: object, words: str, shown: int = 1) -> None:
        """Add a verdict that rests on one thing; `words` say what is where it does not hold."""
        self.judge(rule, shown, [] if holds else [words])

    def same(self, rule: str, found: list[int], due: list[int]) -> None:
        """Add a verdict on numbers that are to be what is due."""
        self.must(rule, found == due, f"{found} instead of {due}", len(due))

    def judge_traps(self) -> None:
        """What is well-formed makes nobody trap."""
        shown = sum(each.kind == "execute" and each.receiver == self.who for each in self.recorder.happenings)
        self.judge(
            "IC-4", shown, [f"round {each.round}: {each.data.decode(errors='replace')}" for each in self.traps()]
        )

    def judge_stats(self, method: str) -> None:
        """Whether a query of the candidate's statistics is answered."""
        answer = self.network.query(ANONYMOUS, self.who, method, b"DIDL\0\0")
        self.must("IC-35d", answer.ok, answer.message)
