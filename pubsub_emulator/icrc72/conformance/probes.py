"""Probes: what a role is asked, what it owes as an answer, and the book of verdicts. They need a way to call it."""

import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

from pubsub_emulator.icrc72 import messages as m
from pubsub_emulator.icrc72 import methods
from pubsub_emulator.icrc72.alerts import member_alert
from pubsub_emulator.icrc72.audit.record import error_of
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.canister import CANISTER_ERROR, SYS_TRANSIENT, Answer
from pubsub_emulator.icrc72.ic.errors import CandidError
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.keys import FILTER, REPLAY
from pubsub_emulator.icrc72.methods import A, Method, R
from pubsub_emulator.icrc72.namespaces import system_namespace
from pubsub_emulator.icrc72.values import Value, map_, nat, text

PAIR = {"publisher": "member", "subscriber": "member", "broadcaster": "server", "orchestrator": "server"}
"""The table of rules that each role has in common with another."""


class Verdict(NamedTuple):
    """What a trial says about one rule: `broken` names each breach with its place; `shown` is how often it was met."""

    rule: str
    about: str
    shown: int
    broken: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True when nothing broke it."""
        return not self.broken


def rules_of(role: str) -> dict[str, str]:
    """The rules that a role is judged by, and what each is about."""
    tables = tomllib.loads((files(__package__) / "rules.toml").read_text(encoding="utf-8"))
    return {**tables["every"], **tables[PAIR[role]], **tables[role]}


class Book:
    """The verdicts on a role."""

    def __init__(self, role: str) -> None:
        self.rules = rules_of(role)
        self.verdicts: list[Verdict] = []

    def judge(self, rule: str, shown: int, broken: Iterable[str]) -> None:
        """Add a verdict. A rule that was never met is no rule that holds: that itself is said."""
        self.verdicts.append(Verdict(rule, self.rules[rule], shown, tuple(broken)))

    def must(self, rule: str, holds: object, words: str, shown: int = 1) -> None:
        """Add a verdict that rests on one thing; `words` say what is where it does not hold."""
        self.judge(rule, shown, [] if holds else [words])

    def same(self, rule: str, found: list[int], due: list[int]) -> None:
        """Add a verdict on numbers that are to be what is due."""
        self.must(rule, found == due, f"{found} instead of {due}", len(due))


T = TypeVar("T")
GARBAGE: Final = b"no Candid"
NOTHING: Final = b"DIDL\0\0"
STATS: Final = {"broadcaster": "icrc72_get_broadcaster_stats", "subscriber": "icrc72_get_subscriber_stats"}
"""The query for the statistics of those roles that have some."""


class Line(Protocol):
    """Calls the canister under trial, as a caller that has no rights there."""

    @property
    def caller(self) -> Principal:
        """Who calls."""

    def call(self, method: str, arg: bytes) -> Answer:
        """The answer to a call. Raises `NotAdmitted` where the canister takes none of this caller."""

    def query(self, method: str, arg: bytes) -> Answer:
        """The answer to a query."""

    def wait(self) -> None:
        """Let others act for a while."""

    def moment(self) -> str:
        """When the last call was, in words."""


def fake(number: int, namespace: str, source: Principal, data: Value | None = None) -> m.EventNotification:
    """A notification that somebody made up."""
    value = map_({"n": nat(number)}) if data is None else data
    return m.EventNotification(number, number, None, 1, namespace, value, (), source, None)


def fake_alert(
    publisher: Principal, source: Principal, publications: list[int], entry: Principal
) -> m.EventNotification:
    """A made-up notification that tells a publisher where to publish."""
    claim = member_alert("publisher", {("bc", each): (entry,) for each in publications}, (), ())
    return fake(9_000, system_namespace("publisher", publisher), source, claim)


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of one canister; `traps` are those that were well-formed and made it trap."""

    book: Book
    line: Line
    traps: list[str] = field(default_factory=list)

    def update(self, method: Method[A, R], value: A) -> R | None:
        """The result of a call, made up to four times where it is refused; `None` where there is none to be read."""
        answer = Answer(b"", SYS_TRANSIENT)
        for _ in range(4):
            answer = self.line.call(method.name, method.argument(value))
            if answer.code != SYS_TRANSIENT:
                break
        if answer.code == CANISTER_ERROR:
            self.traps.append(f"{self.line.moment()}: {method.name}: {answer.message}")
        return _read(method, answer)

    def query(self, method: Method[A, R], value: A) -> R | None:
        """The result of a query; `None` where there is none to be read."""
        return _read(method, self.line.query(method.name, method.argument(value)))

    def expect(self, rule: str, results: m.Results[T] | None, wanted: str, *, at: int = 0) -> None:
        """Judge the answer to one item: `Ok`, the name of its error, or the code of a generic one."""
        result = results[at] if results is not None and at < len(results) else None
        got = "nothing" if result is None else str(error_of(result) or "Ok")
        self.book.must(rule, got == wanted, f"{self.line.moment()}: it answered {got}, due is {wanted}")

    def stats(self, role: str) -> None:
        """Judge whether a query of its statistics is answered."""
        answer = self.line.query(STATS[role], NOTHING)
        self.book.must("IC-35d", answer.ok, answer.message)

    def publishing(self, source: Principal, namespace: str, time: int) -> None:
        """Judge what it answers to a stranger; `source` is a publisher of the namespace."""
        me = self.line.caller

        def published(source: Principal, *numbers: int) -> m.Results[tuple[int, ...]] | None:
            made = (time, namespace, map_({"n": nat(1)}), source, None)
            return self.update(methods.PUBLISH, tuple(m.Event(each, None, *made) for each in numbers))

        self.expect("IC-41", published(me, 30), "Unauthorized")
        self.expect("IC-41 source", published(source, 31), "Unauthorized")
        nothing = self.update(methods.CONFIRM, (10**9,))
        self.expect("IC-44", nothing.value if nothing is not None else None, "NotFound")
        self.expect("IC-30a", published(me, *range(40, 141)), "GenericBatchError", at=100)

    def registering(self, prefix: str) -> None:
        """Judge what it answers to registrations and changes; namespaces begin with `prefix`."""

        def publishes(rule: str, wanted: str, name: str, *config: tuple[str, Value]) -> None:
            item = m.PublicationRegistration(name, config)
            self.expect(rule, self.update(methods.REGISTER_PUBLICATION, (item,)), wanted)

        publishes("IC-31", "Ok", f"{prefix}.new")
        publishes("IC-31 system", "Unauthorized", system_namespace("publisher", self.line.caller))
        publishes("IC-30b", "ImproperConfig", "no spaces")
        publishes("IC-30b keys", "ImproperConfig", f"{prefix}.keys", ("icrc72:nonsense", nat(1)))
        self.expect("IC-32 system", self.subscribed(system_namespace("subscriber", ANONYMOUS)), "Unauthorized")
        self.expect("IC-26", self.subscribed(f"{prefix}.filter", (FILTER, text("((("))), "ImproperConfig")
        gone = m.PublicationDelete(identified(f"{prefix}.none"))
        self.expect("IC-34 unknown", self.update(methods.DELETE_PUBLICATION, (gone,)), "1")
        first, again = self.subscribed(f"{prefix}.twice"), self.subscribed(f"{prefix}.twice")
        self.book.must("IC-32", first is not None and first == again, f"{first}, then {again}", 2)
        many = (m.PublicationRegistration("no spaces", ()),) * 101
        self.expect("IC-30a", self.update(methods.REGISTER_PUBLICATION, many), "GenericBatchError", at=100)

    def subscribed(self, name: str, *config: tuple[str, Value]) -> m.Results[int] | None:
        """The answer to a subscription."""
        return self.update(methods.REGISTER_SUBSCRIPTION, (m.SubscriptionRegistration(name, config),))

    def intruding(self, name: str) -> None:
        """Judge what it answers to who takes or changes a publication of others."""
        item = m.PublicationRegistration(name, ())
        self.expect("IC-31 creator", self.update(methods.REGISTER_PUBLICATION, (item,)), "UnauthorizedPublisher")
        change = m.PublicationUpdate(identified(name), (REPLAY, map_({})))
        self.expect("IC-34", self.update(methods.UPDATE_PUBLICATION, (change,)), "Unauthorized")

    def listing(self, name: str | None, brokers: Collection[Principal], *, every: bool = False) -> None:
        """Judge its lists; they have a publication and broadcasters, as far as one knows, or just `every` one."""
        names = self.names()
        if name is not None:
            self.book.must("IC-35b", name in names, f"{names} without {name}")
        self.book.must("IC-35a", names == sorted(names), f"{names}", len(names))
        first = names[0] if names else ""
        page = [each.namespace for each in self.query(methods.GET_PUBLICATIONS, m.ByText(first, 1)) or ()]
        self.book.must("IC-35a pages", page == names[1:2], f"{page} after {first!r}")
        if brokers:
            listed = {each.broadcaster for each in self.query(methods.GET_BROADCASTERS, m.ByPrincipal()) or ()}
            right = listed == set(brokers) if every else listed >= set(brokers)
            self.book.must("IC-35b broadcasters", right, f"{sorted(each.text for each in listed)}")

    def names(self) -> list[str]:
        """The namespaces of its first page of publications."""
        return [each.namespace for each in self.query(methods.GET_PUBLICATIONS, m.ByText()) or ()]

    def replaying(self, name: str, prefix: str, events: int | None, *, waits: int = 20) -> None:
        """Judge what it answers to replays of four events, of which so many are there (`None`: nobody knows)."""

        def asks(of: str, start: int, end: int) -> m.Results[int] | None:
            return self.update(methods.REGISTER_REPLAY, (m.ReplayRegistration(of, (start, end), ()),))

        self.expect("RP-3 who", asks(name, 1, 2), "SubscriptionNotFound")
        self.subscribed(name)
        self.expect("RP-3 range", asks(name, 3, 3), "ImproperConfig")
        self.expect("RP-3", asks(f"{prefix}.no", 1, 2), "PublicationNotFound")
        self.expect("RP-3 wide", asks(name, 1, 2**63), "RangeTooLarge")
        answer = asks(name, 2, 6)
        if events is None and answer and isinstance(error_of(answer[0]), int):
            return  # it has no such events, too many replays or no broadcaster
        self.expect("RP-2", answer, "Ok")
        if not answer or answer[0] is None or answer[0].tag != "Ok":
            return
        number = answer[0].value
        report = (m.ReplayStatusUpdate(number, m.state_of("completed", 4, "")),)
        self.expect("RP-5 who", self.update(methods.REPLAY_STATUS, report), "Unauthorized")
        states: list[m.ReplayState] = []
        over: list[int] = []
        for _ in range(waits):
            self.line.wait()
            found = self.query(methods.GET_REPLAYS, m.ByNat()) or ()
            states = [each.status for each in found if each is not None and each.replayId == number]
            over = [each.value for each in states if each.tag == "completed"]
            if over:
                break
        if over or not states or events is not None:
            self.book.must("RP-5", over and over[0] in ({events} if events is not None else range(5)), f"{states}")
        if not over:
            self.update(methods.CANCEL_REPLAY, (number,))
        self.expect("RP-11", self.update(methods.CANCEL_REPLAY, (number,)), "CannotCancel")


def _read(method: Method[A, R], answer: Answer) -> R | None:
    try:
        return method.result(answer.data) if answer.ok else None
    except CandidError:
        return None


def identified(namespace: str) -> Variant[Literal["namespace"], str]:
    """The publication or subscription of a namespace."""
    return Variant("namespace", namespace)
