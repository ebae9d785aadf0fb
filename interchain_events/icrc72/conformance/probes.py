"""Probes of a canister by calls, and the book in which verdicts are collected.

A probe calls the canister and compares the answer with the one that the rules demand. It does not
matter where the canister runs: a `Line` makes the calls.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

from interchain_events.icrc72 import messages as m
from interchain_events.icrc72 import methods
from interchain_events.icrc72.alerts import MemberAlert
from interchain_events.icrc72.audit.record import error_of
from interchain_events.icrc72.conformance.rules import CAUSES, REQUIRED, rules_of
from interchain_events.icrc72.conformance.wording import candid_text, difference
from interchain_events.icrc72.facts import EntriesFact
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import CANISTER_ERROR, SYS_TRANSIENT, Answer
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.errors import shown as shown_number
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.keys import FILTER, REPLAY
from interchain_events.icrc72.methods import A, Method, R
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.values import Value, map_, nat, text


class Verdict(NamedTuple):
    """The verdict on one rule."""

    rule: str
    """The number of the rule, which a word may follow."""
    about: str
    """The rule in words."""
    shown: int
    """How many times the rule applied; 0 if it could not be judged."""
    broken: tuple[str, ...]
    """A text for each breach, with its place."""
    level: str = REQUIRED
    """One of `rules.LEVELS`."""
    cause: str = ""
    """The rule whose breach explains this one, or an empty text."""

    @property
    def holds(self) -> bool:
        """Return whether there is no breach."""
        return not self.broken


class Book:
    """The verdicts on a role."""

    def __init__(self, role: str, with_: tuple[str, ...] = ()) -> None:
        """Begin without verdicts. `with_` are the extensions whose rules are required."""
        self._role = role
        self.rules = rules_of(role, with_)
        self._judged: list[Verdict] = []

    @property
    def verdicts(self) -> list[Verdict]:
        """Return one verdict for each rule.

        If a breach of another rule explains the breaches, that rule is the verdict's `cause`.
        """
        merged: dict[str, Verdict] = {}
        for judged in self._judged:
            former = merged.get(judged.rule, judged._replace(shown=0, broken=()))
            merged[judged.rule] = judged._replace(
                shown=former.shown + judged.shown, broken=former.broken + judged.broken
            )
        broken = {
            verdict.rule
            for verdict in merged.values()
            if verdict.broken and verdict.level == REQUIRED
        }
        verdicts: list[Verdict] = []
        for verdict in merged.values():
            causes = CAUSES.get(verdict.rule, ()) if verdict.broken else ()
            cause = next((cause for cause in causes if cause in broken), "")
            verdicts.append(verdict._replace(cause=cause))
        return verdicts

    def claim(self, extension: str) -> None:
        """Require the rules of an extension from now on, because the canister makes use of it."""
        self.rules = rules_of(self._role, (extension,))

    def judge(self, rule: str, shown: int, broken: Iterable[str]) -> None:
        """Add a verdict with all breaches.

        `shown` is how many times the rule applied. With it a reader can tell a rule that was kept
        from a rule that was not tested.
        """
        known = self.rules[rule]
        self._judged.append(Verdict(rule, known.about, shown, tuple(broken), known.level))

    def must(self, rule: str, holds: object, words: str, shown: int = 1) -> None:
        """Add a verdict by one condition. `words` describe the breach if it does not hold."""
        self.judge(rule, shown, [] if holds else [words])

    def same(self, rule: str, ids: list[int], due: list[int]) -> None:
        """Add a verdict on ids, which must equal those that are due."""
        self.must(rule, ids == due, difference(ids, due), len(due))


T = TypeVar("T")
GARBAGE: Final = b"no Candid"
"""An argument that cannot be decoded."""
NOTHING: Final = b"DIDL\0\0"
"""A Candid message without values."""
STATS: Final = {
    "broadcaster": "icrc72_get_broadcaster_stats",
    "subscriber": "icrc72_get_subscriber_stats",
}
"""The query for statistics of the roles that have one."""


class Line(Protocol):
    """A connection to the canister under trial, for a caller that has no rights there."""

    @property
    def caller(self) -> Principal:
        """The principal that calls."""

    def call(self, method: str, arg: bytes) -> Answer:
        """Return the answer to a call.

        Raises `NotAdmitted` if the canister does not admit calls of this caller.
        """

    def query(self, method: str, arg: bytes) -> Answer:
        """Return the answer to a query."""

    def wait(self) -> None:
        """Wait for a while, in which other canisters can act."""

    def moment(self) -> str:
        """Return the time of the last call as text for a verdict."""


def fake(
    number: int, namespace: str, source: Principal, data: Value | None = None
) -> m.EventNotification:
    """Return a forged notification of an event."""
    value = map_({"n": nat(number)}) if data is None else data
    return m.EventNotification(
        number,
        number,
        None,
        timestamp=1,
        namespace=namespace,
        data=value,
        headers=(),
        source=source,
        filter=None,
    )


def fake_alert(
    publisher: Principal, source: Principal, publications: list[int], entry: Principal
) -> m.EventNotification:
    """Return a forged system event that gives a publisher an entry."""
    alert = MemberAlert({EntriesFact(number): (entry,) for number in publications}, ())
    namespace = system_namespace("publisher", publisher)
    return fake(9_000, namespace, source, alert.data("publisher"))


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of one canister."""

    book: Book
    line: Line
    traps: list[str] = field(default_factory=list)
    """The well-formed calls that made the canister trap."""

    def update(self, method: Method[A, R], value: A) -> R | None:
        """Return the result of a call, or `None` if there is no readable one.

        A call that the system refuses is made up to four times.
        """
        answer = Answer(b"", SYS_TRANSIENT)
        for _ in range(4):
            answer = self.line.call(method.name, method.argument(value))
            if answer.code != SYS_TRANSIENT:
                break
        if answer.code == CANISTER_ERROR:
            self.traps.append(f"{self.line.moment()}: {method.name}: {answer.message}")
        return _read(method, answer)

    def query(self, method: Method[A, R], value: A) -> R | None:
        """Return the result of a query, or `None` if there is no readable one."""
        return _read(method, self.line.query(method.name, method.argument(value)))

    def expect(self, rule: str, results: m.Results[T] | None, wanted: str, *, at: int = 0) -> None:
        """Judge the answer to the item at position `at` of a batch.

        `wanted` is `Ok`, the name of an error, or the code of a generic error.
        """
        result = results[at] if results is not None and at < len(results) else None
        error = error_of(result)
        if result is None:
            answer = "nothing"
        elif isinstance(error, int):
            # The code of a generic error is a number of any size.
            answer = shown_number(error)
        else:
            answer = error or "Ok"
        words = f"{self.line.moment()}: it answered {answer}, due is {wanted}"
        self.book.must(rule, answer == wanted, words)

    def stats(self, role: str) -> None:
        """Judge whether the query for statistics is answered."""
        answer = self.line.query(STATS[role], NOTHING)
        self.book.must("IC-35d", answer.ok, answer.message)

    def publishing(self, source: Principal, namespace: str, time: int) -> None:
        """Judge the answers of a broadcaster to a stranger that publishes and confirms.

        `source` is a publisher of the namespace.
        """
        me = self.line.caller

        def published(source: Principal, *numbers: int) -> m.Results[tuple[int, ...]] | None:
            data = map_({"n": nat(1)})
            events = tuple(
                m.Event(
                    number, None, time, namespace=namespace, data=data, source=source, headers=None
                )
                for number in numbers
            )
            return self.update(methods.PUBLISH, events)

        self.expect("IC-41", published(me, 30), "Unauthorized")
        self.expect("IC-41 source", published(source, 31), "Unauthorized")
        confirmation = self.update(methods.CONFIRM, (10**9,))
        self.expect("IC-44", None if confirmation is None else confirmation.value, "NotFound")
        self.expect("IC-30a", published(me, *range(40, 141)), "GenericBatchError", at=100)

    def registering(self, prefix: str) -> None:
        """Judge the answers of an orchestrator to registrations and changes.

        The namespaces that are registered begin with `prefix`.
        """

        def publishes(rule: str, wanted: str, name: str, *config: tuple[str, Value]) -> None:
            item = m.PublicationRegistration(name, config)
            self.expect(rule, self.update(methods.REGISTER_PUBLICATION, (item,)), wanted)

        publishes("IC-31", "Ok", f"{prefix}.new")
        publishes("IC-31 system", "Unauthorized", system_namespace("publisher", self.line.caller))
        publishes("IC-30b", "ImproperConfig", "no spaces")
        publishes("IC-30b keys", "ImproperConfig", f"{prefix}.keys", ("icrc72:nonsense", nat(1)))
        self.expect(
            "IC-32 system",
            self.subscribed(system_namespace("subscriber", ANONYMOUS)),
            "Unauthorized",
        )
        self.expect(
            "IC-26", self.subscribed(f"{prefix}.filter", (FILTER, text("((("))), "ImproperConfig"
        )
        gone = m.PublicationDelete(identified(f"{prefix}.none"))
        self.expect("IC-34 unknown", self.update(methods.DELETE_PUBLICATION, (gone,)), "1")
        first = self.subscribed(f"{prefix}.twice")
        again = self.subscribed(f"{prefix}.twice")
        self.book.must(
            "IC-32",
            first is not None and first == again,
            f"{candid_text(first)}, then {candid_text(again)}",
            2,
        )
        many = (m.PublicationRegistration("no spaces", ()),) * 101
        self.expect(
            "IC-30a", self.update(methods.REGISTER_PUBLICATION, many), "GenericBatchError", at=100
        )

    def subscribed(self, name: str, *config: tuple[str, Value]) -> m.Results[int] | None:
        """Register a subscription, and return the answer."""
        return self.update(
            methods.REGISTER_SUBSCRIPTION, (m.SubscriptionRegistration(name, config),)
        )

    def intruding(self, name: str) -> None:
        """Judge the answers to a stranger that joins or changes the publication of another one."""
        item = m.PublicationRegistration(name, ())
        self.expect(
            "IC-31 creator",
            self.update(methods.REGISTER_PUBLICATION, (item,)),
            "UnauthorizedPublisher",
        )
        change = m.PublicationUpdate(identified(name), (REPLAY, map_({})))
        self.expect("IC-34", self.update(methods.UPDATE_PUBLICATION, (change,)), "Unauthorized")

    def listing(
        self, name: str | None, brokers: Collection[Principal], *, every: bool = False
    ) -> None:
        """Judge the lists of an orchestrator.

        They must be in order and contain the publication `name` and the broadcasters `brokers`.
        With `every`, these are all broadcasters that there are.
        """
        names = self.names()
        if name is not None:
            self.book.must("IC-35b", name in names, f"{candid_text(tuple(names))} without {name}")
        self.book.must("IC-35a", names == sorted(names), candid_text(tuple(names)), len(names))
        first = names[0] if names else ""
        second = self.names(m.ByText(first, 1))
        self.book.must(
            "IC-35a pages",
            second == names[1:2],
            f"{candid_text(tuple(second))} after {candid_text(first)}",
        )
        if brokers:
            infos = self.query(methods.GET_BROADCASTERS, m.ByPrincipal()) or ()
            listed = {info.broadcaster for info in infos}
            right = listed == set(brokers) if every else listed >= set(brokers)
            texts = sorted(broadcaster.text for broadcaster in listed)
            self.book.must("IC-35b broadcasters", right, f"{texts}")

    def names(self, page: m.ByText | None = None) -> list[str]:
        """Return the namespaces on a page of publications, by default the first one."""
        infos = self.query(methods.GET_PUBLICATIONS, page or m.ByText()) or ()
        return [info.namespace for info in infos]

    def replaying(self, name: str, prefix: str, events: int | None, *, waits: int = 20) -> None:
        """Judge the answers of an orchestrator about replays, and a replay of four events.

        `events` is how many of the four exist, or `None` if this is not known. The state of the
        replay is read until it has ended, at most `waits` times.
        """

        def asks(namespace: str, start: int, end: int) -> m.Results[int] | None:
            item = m.ReplayRegistration(namespace, (start, end), ())
            return self.update(methods.REGISTER_REPLAY, (item,))

        self.expect("RP-3 who", asks(name, 1, 2), "SubscriptionNotFound")
        self.subscribed(name)
        self.expect("RP-3 range", asks(name, 3, 3), "ImproperConfig")
        self.expect("RP-3", asks(f"{prefix}.no", 1, 2), "PublicationNotFound")
        self.expect("RP-3 wide", asks(name, 1, 2**63), "RangeTooLarge")
        answer = asks(name, 2, 6)
        # A foreign canister may answer with a generic error, because it does not have such events,
        # has too many replays, or has no broadcaster.
        if events is None and answer and isinstance(error_of(answer[0]), int):
            return
        self.expect("RP-2", answer, "Ok")
        if not answer or answer[0] is None or answer[0].tag != "Ok":
            return
        number = answer[0].value
        report = (m.ReplayStatusUpdate(number, m.state_of("completed", 4, "")),)
        self.expect("RP-5 who", self.update(methods.REPLAY_STATUS, report), "Unauthorized")
        states: list[m.ReplayState] = []
        counts: list[int] = []
        for _ in range(waits):
            self.line.wait()
            replays = self.query(methods.GET_REPLAYS, m.ByNat()) or ()
            states = [
                replay.status
                for replay in replays
                if replay is not None and replay.replayId == number
            ]
            counts = [state.value for state in states if state.tag == "completed"]
            if counts:
                break
        # A foreign replay that is listed but does not end in time cannot be judged.
        if counts or not states or events is not None:
            possible = range(5) if events is None else [events]
            completed = bool(counts) and counts[0] in possible
            self.book.must("RP-5", completed, candid_text(tuple(states)))
        if not counts:
            self.update(methods.CANCEL_REPLAY, (number,))
        self.expect("RP-11", self.update(methods.CANCEL_REPLAY, (number,)), "CannotCancel")


def _read(method: Method[A, R], answer: Answer) -> R | None:
    """Return the result in an answer, or `None` if it is a reject or unreadable."""
    try:
        return method.result(answer.data) if answer.ok else None
    except CandidError:
        return None


def identified(namespace: str) -> Variant[Literal["namespace"], str]:
    """Return a reference to the publication or subscription of a namespace."""
    return Variant("namespace", namespace)
