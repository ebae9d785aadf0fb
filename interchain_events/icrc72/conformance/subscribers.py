"""Trials of subscribers (IC-44, IC-49, RP-10)."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from interchain_events.icrc72 import keys, methods
from interchain_events.icrc72.cheats.stage import SAY
from interchain_events.icrc72.conformance.members import PATIENCE, begin, judge_inbox, registered
from interchain_events.icrc72.conformance.probes import Probes, fake
from interchain_events.icrc72.conformance.stand import Odd, Stand, odd_notifications
from interchain_events.icrc72.conformance.trial import ActorLine, Candidate, Seen, Trial
from interchain_events.icrc72.conformance.wording import (
    candid_text,
    first_disorder,
    ranges,
)
from interchain_events.icrc72.facts import Width
from interchain_events.icrc72.filters import lets_pass
from interchain_events.icrc72.ic.canister import RUNNING
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.messaging import Happening, Schedule
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.stable import encode
from interchain_events.icrc72.methods import (
    CONFIRM,
    HANDLE,
    HANDLE_TRUSTED,
    Trusted,
)
from interchain_events.icrc72.namespaces import is_system

_REPEATS: Final = 20
"""How often the stand sends an unconfirmed notification, every 20 rounds."""


def try_subscriber(
    candidate: Candidate, seed: bytes = b"", refuse: int = 20, *, with_: tuple[str, ...] = ()
) -> Trial:
    """Try a subscriber.

    It is tried with refused and late messages, a stranger's notifications, an upgrade, and an exit
    that dies with queued events, for which it then has to ask. In the end it gets events with every
    kind of data and ids. `with_` are the extensions that it claims to support.
    """
    trial = begin(candidate, "subscription", seed, refuse, with_)
    network = trial.network
    patterns = registered(trial, "subscription")
    if not patterns:
        trial.judge_messages()
        trial.judge_traps()
        return trial
    # A namespace that matches its first pattern.
    parts = patterns[0].split(".")
    name = ".".join("any" if part == "**" else part.replace("*", "any") for part in parts)
    teller = trial.actor(0, {name: {keys.REPLAY: True}})
    stranger = trial.actor(1)
    network.step(120)
    trial.tell(teller, name, range(20))
    network.step(60)
    for number in (901, 902):
        trial.say(stranger, trial.who, HANDLE, (fake(number, name, teller),))
    trial.disturb(stranger, HANDLE.name)
    trial.tell(teller, name, range(4))
    trial.upgrade()
    trial.tell(teller, name, range(20))
    network.step(120)
    lost = _lose(trial, teller, name)
    judge_inbox(trial, "subscriber", stranger)
    Probes(trial.book, ActorLine(trial, stranger)).stats("subscriber")
    _judge_handled(trial, teller, lost)
    _judge_odd(trial, name, teller)
    return trial


class _FirstReplay:
    """An observer that notes the first request of a canister for a replay."""

    def __init__(self, canister: Principal) -> None:
        self._canister = canister
        self.number = 0
        """The number of the request, or 0."""

    def happened(self, happening: Happening) -> None:
        """Note the number of an entry of the trace if it is the request."""
        if self.number or happening.kind != "send" or happening.sender != self._canister:
            return
        if happening.method == methods.REGISTER_REPLAY.name:
            self.number = happening.number


@dataclass(frozen=True, slots=True)
class _RefusesFirst(Schedule):
    """A schedule in order that refuses the first request for a replay."""

    first: _FirstReplay = field(kw_only=True)

    def refuses(self, number: int) -> bool:
        """Return whether a request is the first one for a replay."""
        return number == self.first.number


def _lose(trial: Trial, teller: Principal, name: str) -> int | None:
    """Let the candidate miss five events, and judge whether it asks for them (RP-10).

    The candidate is stopped while its exit queues the events, and the exit is removed before it
    runs again. Its first request for a replay is refused, so it has to ask again. Returns `None` if
    it did. Otherwise returns the first id of the five: the candidate cannot handle these events,
    and handles later ones out of order.
    """
    network = trial.network
    first = _FirstReplay(trial.who)
    network.observers.append(first)
    network.schedule = _RefusesFirst(network.seed, first=first)
    last = _exit(trial)
    network.stop(trial.who)
    network.step(20)
    before = max((number for _, number in trial.system.logs()[teller]), default=0)
    missing = range(before + 1, before + 6)
    trial.tell(teller, name, range(5))
    network.step(6)
    if last is not None:
        network.uninstall(last)
    network.start(trial.who)
    network.step(200)
    trial.tell(teller, name, range(5))
    network.step(PATIENCE // 2)
    # Some canisters look for gaps only when an event arrives.
    trial.tell(teller, name, range(1))
    network.step(PATIENCE)
    return _judge_asking(trial, missing, first.number)


def _judge_asking(trial: Trial, missing: range, refused: int) -> int | None:
    """Judge whether the candidate has asked for missing events, and again after a refusal.

    `refused` is the number of the call that was refused. Returns the first missing event if it has
    not asked again.
    """
    requests = trial.items(methods.REGISTER_REPLAY, "send", by=trial.who)
    if requests:
        trial.book.claim("icrc77")
    covering = [call for call, request in requests if _covers(request.range, missing)]
    asked = [
        f"from {shown(low)}" if high is None else f"{shown(low)} to below {shown(high)}"
        for low, high in dict.fromkeys(request.range for _, request in requests)
    ]
    trial.book.must(
        "RP-10",
        covering,
        f"events {ranges(missing)} are missing, it asked for {'; '.join(asked) or 'nothing'}",
    )
    again = any(call.number != refused for call in covering)
    if covering:
        words = f"its request for events {ranges(missing)} was refused, and it did not ask again"
        trial.book.must("RP-10 again", again, words)
    return None if again else missing[0]


def _covers(range_: tuple[int, int | None], missing: range) -> bool:
    """Return whether the range of a replay has all missing events."""
    low, high = range_
    return low <= missing[0] and (high is None or high > missing[-1])


def _exit(trial: Trial) -> Principal | None:
    """Return the broadcaster that notified the candidate last, or `None` if none did."""
    senders = [call.at.sender for call in trial.seen(HANDLE, "execute", to=trial.who)]
    for sender in reversed(senders):
        if sender in trial.system.broadcasters:
            return sender
    return None


def _judge_handled(trial: Trial, teller: Principal, lost: int | None) -> None:
    """Judge the events that the candidate has handled, if the trial can see them.

    Events that pass the filter and skip of its own subscription are due, except those from the id
    `lost` on.
    """
    handled = trial.handled()
    if handled is None:
        return
    events = trial.system.logs()[teller]
    subscriptions = trial.system.registry.state.subscriptions.values()
    widths = [
        Width(subscription.config.filter, subscription.config.skip)
        for subscription in subscriptions
        if subscription.subscriber == trial.who and not is_system(subscription.pattern)
    ]
    due: set[int] = set()
    for (_, number), event in events.items():
        is_lost = lost is not None and number >= lost
        if not is_lost and any(lets_pass(width, event) for width in widths):
            due.add(number)
    missing = due - set(handled)
    strange = set(handled) - {number for _, number in events}
    twice = {number for number, count in Counter(handled).items() if count > 1}
    disorder = first_disorder(handled)
    trial.book.must("I1", not missing, f"{ranges(missing)} were not handled", len(due))
    trial.book.must("I1 once", not twice, f"{ranges(twice)} were handled again", len(handled))
    trial.book.must("I1 order", not disorder, f"it handled {disorder}", len(handled))
    trial.book.must("IC-49b events", not strange, f"{ranges(strange)} were handled", 2)


def _judge_odd(trial: Trial, name: str, source: Principal) -> None:
    """Judge whether the candidate takes notifications with every kind of data, ids and fields.

    A stand takes the place of its exit and sends them, each in a call of its own. The candidate has
    taken an event if it has handled or confirmed it, and has not trapped.
    """
    network = trial.network
    stand = _exit(trial)
    if stand is None or not trial.running() or network.status(stand) != RUNNING:
        return
    network.reinstall(stand, Stand())
    begun = len(trial.recorder.happenings)
    odd = list(odd_notifications(name, source, network.time(0)))
    _send_odd(trial, stand, odd, begun)
    trusted = fake(len(odd) + 1, name, source)
    trial.say(stand, trial.who, HANDLE_TRUSTED, (trusted,))
    # Events that come before their turn are held back for some time.
    network.step(120)
    _judge_taking(trial, stand, odd, begun)
    answers = trial.answers(HANDLE_TRUSTED, by=trial.who, to=stand)
    answer = answers[-1] if answers else None
    good = answer is not None and answer.value is not None and answer.value.tag == "Ok"
    words = "it did not answer" if answer is None else f"it answered {_answer_text(answer)}"
    trial.book.must("IC-46", good, words)


def _send_odd(trial: Trial, stand: Principal, odd: list[Odd], begun: int) -> None:
    """Let the stand send notifications.

    Like a broadcaster, it repeats those that are not confirmed, because a subscriber may be busy.
    `begun` is the first entry of the trace that counts.
    """
    network = trial.network
    arguments = {sent: HANDLE.argument((sent.notification,)) for sent in odd}
    waiting = odd
    for _ in range(_REPEATS):
        for sent in waiting:
            network.submit(ANONYMOUS, stand, SAY, encode((trial.who, HANDLE.name, arguments[sent])))
        network.step(20)
        confirmed = _confirmed_since(trial, stand, begun)
        trapped = {execution.data for execution in _trapped_since(trial, stand, begun)}
        waiting = [
            sent
            for sent in waiting
            if sent.notification.notificationId not in confirmed and arguments[sent] not in trapped
        ]
        if not waiting:
            break


def _judge_taking(trial: Trial, stand: Principal, odd: list[Odd], begun: int) -> None:
    """Judge whether the candidate has taken the notifications of the stand, rule by rule."""
    reasons_by_call = {
        happening.number: happening.data.decode(errors="replace")
        for happening in trial.recorder.happenings[begun:]
        if happening.kind == "trap"
    }
    traps = {
        HANDLE.value(execution.data)[0].notificationId: reasons_by_call[execution.number]
        for execution in _trapped_since(trial, stand, begun)
    }
    confirmed = _confirmed_since(trial, stand, begun)
    handled = set(trial.handled() or ())
    shown_by_rule: Counter[str] = Counter()
    broken: dict[str, dict[str, list[str]]] = {}
    for rule, about, note in odd:
        shown_by_rule[rule] += 1
        reason = traps.get(note.notificationId, "")
        if not reason and note.notificationId not in confirmed and note.eventId not in handled:
            reason = "neither confirmed nor handled"
        reasons = broken.setdefault(rule, {})
        if reason:
            reasons.setdefault(reason, []).append(about)
    for rule, reasons in broken.items():
        words = [f"{', '.join(abouts)}: {reason}" for reason, abouts in reasons.items()]
        trial.book.judge(rule, shown_by_rule[rule], words)


def _trapped_since(trial: Trial, stand: Principal, begun: int) -> list[Happening]:
    """Return the executions of notifications from the stand that trapped, from an entry on."""
    happenings = trial.recorder.happenings[begun:]
    trapped = {happening.number for happening in happenings if happening.kind == "trap"}
    executed = ("execute", HANDLE.name, stand)
    return [
        happening
        for happening in happenings
        if (happening.kind, happening.method, happening.sender) == executed
        and happening.number in trapped
    ]


def _confirmed_since(trial: Trial, stand: Principal, begun: int) -> set[int]:
    """Return the notifications that the candidate confirmed to the stand, from an entry on."""
    first = trial.recorder.happenings[begun].round
    return {
        number
        for call, number in trial.items(CONFIRM, "send", by=trial.who, to=stand)
        if call.round >= first
    }


def _answer_text(answer: Seen[Trusted | None]) -> str:
    """Return the answer to a trusted notification as text."""
    if answer.value is not None:
        return candid_text(answer.value)
    return answer.at.data.decode(errors="replace")[:200] or f"with reject code {answer.at.code}"
