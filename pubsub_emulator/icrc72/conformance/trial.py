"""A trial: a candidate in one role among emulated ones, what it was seen to do, and the verdict of each rule."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pubsub_emulator.icrc72.cheats.stage import SAY, Actor
from pubsub_emulator.icrc72.client import Config
from pubsub_emulator.icrc72.deployment import PubSub
from pubsub_emulator.icrc72.errors import Icrc72Error
from pubsub_emulator.icrc72.ic.canister import Canister
from pubsub_emulator.icrc72.ic.errors import CandidError
from pubsub_emulator.icrc72.ic.messaging import RUNNING, STOPPED
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.ic.stable import encode
from pubsub_emulator.icrc72.ic.trace import Happening, Recorder
from pubsub_emulator.icrc72.keys import REPLAY
from pubsub_emulator.icrc72.methods import A, Method, R
from pubsub_emulator.icrc72.services import codec

GARBAGE: Final = b"no Candid"


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


class Seen(NamedTuple):
    """A call that was read."""

    at: Happening
    value: object


@dataclass(slots=True)
class Trial:
    """A network with a candidate."""

    network: CanisterNetwork
    system: PubSub
    candidate: Candidate
    recorder: Recorder = field(default_factory=Recorder)
    """All that happened, in order: the trace behind each verdict."""
    who: Principal = field(default_factory=Principal)
    verdicts: list[Verdict] = field(default_factory=list)
    garbage: int = 0
    """How often the candidate was sent what cannot be read."""

    def __post_init__(self) -> None:
        self.network.observers.append(self.recorder)

    # What the kit does

    def install(self, subnet: int) -> None:
        """Install the candidate."""
        self.who = self.network.create(subnet, self.candidate.make(self.system.orchestrator))

    def actor(self, subnet: int, publications: dict[str, Config] | None = None, *follows: str) -> Principal:
        """Install an emulated app that does what it is told."""
        subscriptions: dict[str, Config] = {name: {} for name in follows}
        publications = publications or {}
        app = Actor(
            self.system.orchestrator, self.system.settings, publications=publications, subscriptions=subscriptions
        )
        return self.network.create(subnet, app)

    def teller(self, subnet: int, namespaces: tuple[str, ...]) -> Principal:
        """Install an emulated publisher whose events can be replayed."""
        return self.actor(subnet, {name: {REPLAY: True} for name in namespaces})

    def emit(self, teller: Principal, namespace: str, count: int) -> None:
        """Let an emulated publisher make events, one a round."""
        for number in range(count):
            self.network.submit(ANONYMOUS, teller, namespace, b"%d" % number)
            self.network.step()

    def say(self, by: Principal, to: Principal, method: Method[A, R], value: A) -> None:
        """Let an emulated app make a call."""
        self.shout(by, to, method.name, method.argument(value))

    def shout(self, by: Principal, to: Principal, method: str, raw: bytes) -> None:
        """Let an emulated app make a call with any bytes."""
        self.network.submit(ANONYMOUS, by, SAY, encode((to, method, raw)))
        self.network.step(14)

    def disturb(self, by: Principal, *methods: str) -> None:
        """Send the candidate what it cannot read."""
        for method in methods:
            self.garbage += 1
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
        words = () if done else (f"round {self.network.round}: {'it trapped' if stopped else 'it does not stop'}",)
        self.verdicts.append(Verdict("IC-8", "it can be stopped and upgraded", 1, words))

    # What was seen

    def seen(self, method: str, kind: str, *, by: Principal | None = None, to: Principal | None = None) -> list[Seen]:
        """Every call of a method, as it was sent or executed, whose argument can be read."""
        return list(self._seen(method, kind, by, to))

    def _seen(self, method: str, kind: str, by: Principal | None, to: Principal | None) -> Iterator[Seen]:
        for each in self.recorder.happenings:
            if each.kind != kind or each.method != method or by not in {None, each.sender}:
                continue
            if to in {None, each.receiver}:
                try:
                    values = codec(method).args.decode(each.data)
                except CandidError:
                    continue
                yield Seen(each, values[0] if values else None)

    def answers(self, method: str, *, by: Principal, to: Principal | None = None) -> list[Seen]:
        """Every reply of `by` to calls of a method that can be read; the value of a rejection is `None`."""
        found: list[Seen] = []
        for each in self.recorder.happenings:
            if each.kind == "respond" and each.method == method and each.sender == by and to in {None, each.receiver}:
                try:
                    values = codec(method).rets.decode(each.data) if not each.code else (None,)
                except CandidError:
                    values = (None,)
                found.append(Seen(each, values[0] if values else None))
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

    def judge(self, rule: str, about: str, shown: int, broken: Iterator[str] | list[str]) -> None:
        """Add a verdict. A rule that was never met is no rule that holds: that itself is said."""
        self.verdicts.append(Verdict(rule, about, shown, tuple(broken)))

    def judge_traps(self) -> None:
        """What is well-formed makes nobody trap."""
        shown = sum(each.kind == "execute" and each.receiver == self.who for each in self.recorder.happenings)
        self.judge(
            "IC-4",
            "what it is sent, if it can be read, does not make it trap",
            shown,
            [f"round {each.round}: {each.data.decode(errors='replace')}" for each in self.traps()],
        )


def ensure(candidate: object, what: str) -> None:
    """Raises `Icrc72Error` where a trial needs something that the candidate does not have."""
    if candidate is None:
        raise Icrc72Error(f"the trial needs {what}")
