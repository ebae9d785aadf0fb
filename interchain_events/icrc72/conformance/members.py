"""Trials of publishers and subscribers (IC-39, IC-44, IC-48, IC-49; RP-2, RP-5 to RP-7, RP-10)."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain as chained
from typing import Final

from interchain_events.icrc72 import keys, methods
from interchain_events.icrc72.alerts import MemberAlert
from interchain_events.icrc72.cheats.stage import SAY, Actor
from interchain_events.icrc72.conformance.further import try_company
from interchain_events.icrc72.conformance.probes import Book, Probes, fake, fake_alert
from interchain_events.icrc72.conformance.stand import Odd, Stand, odd_notifications
from interchain_events.icrc72.conformance.trial import ActorLine, Candidate, Seen, Trial
from interchain_events.icrc72.conformance.wording import (
    candid_text,
    difference,
    first_disorder,
    ranges,
)
from interchain_events.icrc72.deployment import deploy
from interchain_events.icrc72.errors import ConfigError, Icrc72Error
from interchain_events.icrc72.facts import Due, Width
from interchain_events.icrc72.filters import lets_pass
from interchain_events.icrc72.headers import read
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import RUNNING, SYS_TRANSIENT
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.messaging import Happening, Schedule
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.stable import encode
from interchain_events.icrc72.messages import Event, ReplayRegistration
from interchain_events.icrc72.methods import (
    CONFIRM,
    HANDLE,
    HANDLE_TRUSTED,
    PUBLISH,
    Trusted,
    is_ok,
)
from interchain_events.icrc72.namespaces import is_system, system_namespace
from interchain_events.icrc72.values import value_hash

_CONFIRMING: Final = 20
"""The rounds in which a notification has to be confirmed. A canister may make calls before."""
_PATIENCE: Final = 400
"""The rounds in which a candidate has to finish its last task."""
_REPEATS: Final = 20
"""How often the stand sends an unconfirmed notification, every 20 rounds."""
Sent = list[tuple[Happening, Event]]
"""Events that the candidate sent, each with the entry of the trace."""
Notified = tuple[Principal, int]
"""A notification: the broadcaster that sent it, and its id there."""


def _begin(
    candidate: Candidate, role: str, seed: bytes, refuse: int, with_: tuple[str, ...]
) -> Trial:
    """Start a trial, and let the candidate register. `role` is `publication` or `subscription`."""
    network = CanisterNetwork(2, seed=seed, schedule=Schedule(seed, 2, refuse))
    subscribes = role == "subscription"
    system = deploy(network, broadcasters=(0, 1, 1) if subscribes else (0, 1))
    trial = Trial(system, candidate, Book("subscriber" if subscribes else "publisher", with_))
    trial.install(int(subscribes))
    if candidate.register is not None:
        network.step(5)
        candidate.register(network, trial.who)
    # A candidate that tries only once a minute has then tried five times.
    network.step(300)
    return trial


def _registered(trial: Trial, role: str) -> tuple[str, ...]:
    """Judge the candidate's registrations, and return the namespaces without system namespaces."""
    method = (
        methods.REGISTER_SUBSCRIPTION if role == "subscription" else methods.REGISTER_PUBLICATION
    )
    registered = [item.namespace for _, item in trial.items(method, "send", by=trial.who)]
    responses = trial.answers(method, by=trial.system.orchestrator, to=trial.who)
    answers = [response for response in responses if response.at.code != SYS_TRANSIENT]
    rounds: dict[str, list[int]] = {}
    for answer in answers:
        if not is_ok(answer.value):
            rounds.setdefault(candid_text(answer.value), []).append(answer.at.round)
    broken = [
        f"round {ranges(refusal_rounds)}: the answer was {text}"
        for text, refusal_rounds in rounds.items()
    ]
    trial.book.judge("IC-32" if role == "subscription" else "IC-31", len(answers), broken)
    names = tuple(dict.fromkeys(name for name in registered if not is_system(name)))
    trial.book.must(f"IC-39 {role}", names, f"no {role} was registered", len(registered))
    return names


def _judge_inbox(trial: Trial, role: str, stranger: Principal) -> None:
    """Judge how the candidate takes and confirms notifications.

    Every notification from a broadcaster that still runs must be confirmed, and no other one. Those
    of the stranger must not be.
    """
    own = system_namespace(role, trial.who)
    names = [
        item.namespace
        for _, item in trial.items(methods.REGISTER_SUBSCRIPTION, "send", by=trial.who)
    ]
    trial.book.must("IC-39 alerts", own in names, f"not to {own}", len(names))
    notified = trial.items(HANDLE, "execute", to=trial.who)
    received: dict[Notified, int] = {}
    for call, note in notified:
        received.setdefault((call.sender, note.notificationId), call.round)
    confirmed = {
        (call.receiver, number): call.round
        for call, number in trial.items(CONFIRM, "send", by=trial.who)
    }
    # Later notifications could still be confirmed after the end of the trial.
    latest = trial.network.round - _CONFIRMING
    running = trial.network.running()
    due = [
        (sender, number)
        for (sender, number), round_ in received.items()
        if sender != stranger and sender in running and round_ <= latest
    ]
    unconfirmed = [notification for notification in due if notification not in confirmed]
    breaches = [
        f"{texts}: they were never confirmed" for texts in _by_broadcaster(received, unconfirmed)
    ]
    trial.book.judge("IC-44", len(due), breaches)
    invented = [notification for notification in confirmed if notification not in received]
    breaches = [f"{texts}: it never sent these" for texts in _by_broadcaster(confirmed, invented)]
    trial.book.judge("IC-44 own", len(confirmed), breaches)
    asked = [*trial.seen(methods.GET_VALID, "send", by=trial.who)]
    asked_one = [*trial.seen(methods.GET_VALID_ONE, "send", by=trial.who)]
    trial.book.must("IC-49b", asked or asked_one, "it never asked")
    to_stranger = trial.seen(CONFIRM, "send", by=trial.who, to=stranger)
    breaches = [f"round {confirmation.at.round}" for confirmation in to_stranger]
    trial.book.judge("IC-49b strangers", 1, breaches)
    trial.judge_messages()
    trial.judge_traps()


def _by_broadcaster(rounds: Mapping[Notified, int], notifications: list[Notified]) -> list[str]:
    """Return a text for each broadcaster, with the rounds and ids of its notifications."""
    by_sender: dict[Principal, list[Notified]] = {}
    for notification in notifications:
        sender, _ = notification
        by_sender.setdefault(sender, []).append(notification)
    return [
        f"round {ranges(rounds[notification] for notification in sent)}: notifications"
        f" {ranges(number for _, number in sent)} of {sender.text}"
        for sender, sent in by_sender.items()
    ]


def try_subscriber(
    candidate: Candidate, seed: bytes = b"", refuse: int = 20, *, with_: tuple[str, ...] = ()
) -> Trial:
    """Try a subscriber.

    It is tried with refused and late messages, a stranger's notifications, an upgrade, and an exit
    that dies with queued events, for which it then has to ask. In the end it gets events with every
    kind of data and ids. `with_` are the extensions that it claims to support.
    """
    trial = _begin(candidate, "subscription", seed, refuse, with_)
    network = trial.network
    patterns = _registered(trial, "subscription")
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
    _judge_inbox(trial, "subscriber", stranger)
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
    network.step(_PATIENCE // 2)
    # Some canisters look for gaps only when an event arrives.
    trial.tell(teller, name, range(1))
    network.step(_PATIENCE)
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


def try_publisher(
    candidate: Candidate,
    seed: bytes = b"",
    refuse: int = 20,
    *,
    with_: tuple[str, ...] = (),
    further: bool = True,
) -> Trial:
    """Try a publisher.

    It is tried with refused and late messages, a stranger's system event, an upgrade and replays.
    `with_` are the extensions that it claims to support. With `further`, there is a second network
    in which it shares its namespace with another publisher, and its broadcaster dies
    (`try_company`). Raises `Icrc72Error` if the candidate has no `publish`.
    """
    if candidate.publish is None:
        raise Icrc72Error("the trial needs a way to let the publisher make an event")
    trial = _begin(candidate, "publication", seed, refuse, with_)
    network = trial.network
    names = _registered(trial, "publication")
    if not names:
        trial.judge_messages()
        trial.judge_traps()
        return trial
    listener = trial.actor(1, None, {name: {} for name in names})
    stranger = trial.actor(1)
    network.step(150)
    for number in range(12):
        candidate.publish(network, trial.who, number)
        network.step()
    network.step(60)
    ids = [
        number
        for number, publication in trial.system.registry.state.publications.items()
        if trial.who in publication.publishers
    ]
    alert = fake_alert(trial.who, trial.system.orchestrator, ids, stranger)
    trial.say(stranger, trial.who, HANDLE, (alert,))
    trial.disturb(stranger, HANDLE.name)
    trial.upgrade()
    for number in range(12, 20):
        candidate.publish(network, trial.who, number)
        network.step()
    network.step(150)
    network.schedule = Schedule(seed)
    published = [event.eventId for event in _firsts(_sent(trial)) if event.namespace == names[0]]
    # One replay has four events, and the range of the other one has no end.
    if len(published) > 6:
        for end in (published[6], None):
            request = ReplayRegistration(names[0], (published[2], end), ())
            trial.say(listener, trial.system.orchestrator, methods.REGISTER_REPLAY, (request,))
            network.step(_PATIENCE // 2)
    network.step(_PATIENCE // 2)
    _judge_inbox(trial, "publisher", stranger)
    live = _sent(trial)
    _judge_events(trial, live, names, stranger)
    _judge_ids(trial, live)
    _judge_sending(trial)
    _judge_taken(trial, listener, live)
    if len(published) > 6:
        due = {published[6]: published[2:6], None: published[2:]}
        _judge_replays(trial, names[0], due, live)
    if further:
        try_company(candidate, trial.book, names[0], seed, refuse)
    return trial


def _sent(trial: Trial, *, replayed: bool = False) -> Sent:
    """Return all live or all replayed events that the candidate sent, with repetitions."""
    return [
        (call, event)
        for call, event in trial.items(PUBLISH, "send", by=trial.who)
        if (read(event.headers).replay is not None) == replayed
    ]


def _firsts(live: Sent) -> list[Event]:
    """Return the events without repetitions, each as it was first sent."""
    firsts: dict[tuple[str, int], Event] = {}
    for _, event in live:
        firsts.setdefault((event.namespace, event.eventId), event)
    return list(firsts.values())


def _alerts(trial: Trial) -> list[tuple[int, Principal, MemberAlert]]:
    """Return the system events that the candidate got, with the round and the sender."""
    alerts: list[tuple[int, Principal, MemberAlert]] = []
    for call, note in trial.items(HANDLE, "execute", to=trial.who):
        with suppress(ConfigError):
            if is_system(note.namespace):
                alerts.append((call.round, call.sender, MemberAlert.read(note.data)))
    return alerts


def _judge_events(trial: Trial, live: Sent, names: tuple[str, ...], stranger: Principal) -> None:
    """Judge the receivers and the fields of live events, each by itself."""
    begun: int | None = None
    entries: set[Principal] = set()
    for round_, sender, alert in _alerts(trial):
        given = set(chained.from_iterable(alert.entries().values()))
        if sender != stranger and given:
            entries |= given
            begun = round_ if begun is None else min(begun, round_)

    # Each of these functions returns the breach of one rule, or an empty text.
    def receiver(call: Happening, event: Event) -> str:
        if begun is None or call.round < begun:
            return f"{shown(event.eventId)} before it was told where"
        if call.receiver not in entries:
            return f"{shown(event.eventId)} to {call.receiver.text}"
        return ""

    def source(_call: Happening, event: Event) -> str:
        return "" if event.source == trial.who else event.source.text

    def namespace(_call: Happening, event: Event) -> str:
        return "" if event.namespace in names else f"in {event.namespace}"

    def headers(_call: Happening, event: Event) -> str:
        return candid_text(event.headers) if read(event.headers).planted else ""

    def data_hash(_call: Happening, event: Event) -> str:
        given_hash = read(event.headers).hash
        wrong = given_hash is not None and given_hash != value_hash(event.data)
        return f"event {shown(event.eventId)}" if wrong else ""

    judges: dict[str, Callable[[Happening, Event], str]] = {
        "IC-39 entry": receiver,
        "IC-22 source": source,
        "IC-41 namespace": namespace,
        "IC-23": headers,
        "IC-21": data_hash,
    }
    for rule, judge in judges.items():
        broken: list[str] = []
        for call, event in live:
            breach = judge(call, event)
            if breach:
                broken.append(f"round {call.round}: {breach}")
        trial.book.judge(rule, len(live), broken)


def _judge_ids(trial: Trial, live: Sent) -> None:
    """Judge the ids, predecessors and timestamps of live events in their order."""
    firsts = {(event.namespace, event.eventId): event for event in _firsts(live)}
    rounds: dict[tuple[str, int], int] = {}
    broken: dict[str, list[str]] = {
        rule: [] for rule in ("IC-48 repeats", "IC-25", "IC-42", "IC-22 time")
    }
    for call, event in live:
        key = (event.namespace, event.eventId)
        first_round = rounds.setdefault(key, call.round)
        if firsts[key] != event:
            broken["IC-48 repeats"].append(
                f"round {call.round}: event {shown(event.eventId)} is another than in round"
                f" {first_round}"
            )
    last: dict[str, int] = {}
    for (namespace, number), event in firsts.items():
        round_ = rounds[namespace, number]
        before = last.get(namespace)
        if before is not None and number <= before:
            broken["IC-25"].append(f"round {round_}: {shown(number)} after {shown(before)}")
        if event.prevEventId not in {None, before}:
            broken["IC-42"].append(
                f"round {round_}: {shown(number)} names {candid_text(event.prevEventId)},"
                f" the event before is {candid_text(before)}"
            )
        now = trial.network.genesis + round_ * 10**9
        if not now - 600 * 10**9 <= event.timestamp <= now:
            broken["IC-22 time"].append(
                f"round {round_}: {shown(event.timestamp)} of event {shown(number)} is not of now,"
                f" {now}"
            )
        last[namespace] = number
    for rule, words in broken.items():
        trial.book.judge(rule, len(live) if rule == "IC-48 repeats" else len(firsts), words)


def _judge_sending(trial: Trial) -> None:
    """Judge that batches are small enough, and that an entry gets one live batch at a time."""
    calls = list(trial.seen(PUBLISH, "send", by=trial.who))
    large = [
        f"round {call.round}: {len(events)} events" for call, events in calls if len(events) > 100
    ]
    trial.book.judge("IC-30a", len(calls), large)
    # Positions in the trace are compared, because a round can have a call and an answer.
    positions: dict[int, int] = {}
    answered: dict[int, int] = {}
    for position, happening in enumerate(trial.recorder.happenings):
        positions[id(happening)] = position
        if (happening.kind, happening.method) == ("answer", PUBLISH.name):
            answered[happening.number] = position
    overlapping: list[str] = []
    busy_until: dict[Principal, int] = {}
    for call, events in calls:
        if any(read(event.headers).replay is not None for event in events):
            continue
        begun = positions[id(call)]
        if begun < busy_until.get(call.receiver, -1):
            overlapping.append(f"round {call.round}: a batch while another is under way")
        busy_until[call.receiver] = answered.get(call.number, begun)
    trial.book.judge("IC-48 batches", len(calls), overlapping)


def _judge_taken(trial: Trial, listener: Principal, live: Sent) -> None:
    """Judge that all 20 events were published until they reached a listener."""
    app = trial.network.canister(listener)
    handled = app.data if isinstance(app, Actor) else []
    sent = [event.eventId for event in _firsts(live)]
    lost = sorted(set(sent) - set(handled))
    broken: list[str] = []
    if lost:
        broken.append(f"{ranges(lost)} were not taken by its entry")
    if len(sent) < 20:
        broken.append(f"20 events were made, {len(sent)} were published")
    trial.book.judge("IC-48", len(sent), broken)


def _judge_replays(
    trial: Trial, name: str, due: Mapping[int | None, list[int]], live: Sent
) -> None:
    """Judge replays: their receivers, events, marks and reports.

    `due` has the ids of the events of each replay by the end of its range, which is `None` if it is
    open.
    """
    originals = {event.eventId: event for _, event in live}
    replays: dict[int, Due] = {}
    entries: set[Principal] = set()
    for _, _, alert in _alerts(trial):
        replays.update(alert.due())
        entries.update(replay.entry for replay in alert.due().values())
    trial.book.must("RP-6", replays, "the orchestrator told nothing", len(replays))
    broken: dict[str, list[str]] = {rule: [] for rule in ("RP-6 entry", "RP-7 marks", "RP-7")}
    sent = _sent(trial, replayed=True)
    sent_ids: dict[int | None, list[int]] = {end: [] for end in due}
    open_end_named = False
    for call, event in sent:
        headers = read(event.headers)
        words = f"round {call.round}: event {shown(event.eventId)}"
        if call.receiver not in entries:
            broken["RP-6 entry"].append(f"{words} to {call.receiver.text}")
        replay = replays.get(headers.replay or 0)
        if replay is None:
            broken["RP-7 marks"].append(
                f"{words} for replay {candid_text(headers.replay)}, which nobody asked for"
            )
        else:
            last = due.get(replay.end, [0])[-1]
            sent_ids.setdefault(replay.end, []).append(event.eventId)
            if replay.end is None and headers.end is not None:
                open_end_named = True
            if headers.end not in {None, last}:
                broken["RP-7 marks"].append(
                    f"{words} says that {candid_text(headers.end)} is the last, it is {last}"
                )
        original = originals.get(event.eventId)
        # A replayed event has more headers.
        if original is None or original._replace(headers=None) != event._replace(headers=None):
            broken["RP-7"].append(f"{words} is not what it was")
    # If the range has no end, only the publisher knows its last event.
    if sent_ids.get(None) and not open_end_named:
        broken["RP-7 marks"].append("no event of the range without an end says which is the last")
    for rule, breaches in broken.items():
        trial.book.judge(rule, len(sent), breaches)
    for end, wanted in due.items():
        firsts = list(dict.fromkeys(sent_ids[end]))
        rule = "RP-2 open" if end is None else "RP-2"
        breach = f"{name}: {difference(firsts, wanted)}"
        trial.book.must(rule, firsts == wanted, breach, len(wanted))
    _judge_reports(trial, replays, due)


def _judge_reports(
    trial: Trial, replays: Mapping[int, Due], due: Mapping[int | None, list[int]]
) -> None:
    """Judge that each replay was reported as running, then as completed with its events."""
    reports = trial.items(methods.REPLAY_STATUS, "send", by=trial.who)
    broken = [
        f"round {call.round}: {candid_text(report)}"
        for call, report in reports
        if report.replayId not in replays
    ]
    for number, replay in replays.items():
        states = [report.status for _, report in reports if report.replayId == number]
        steps = list(dict.fromkeys(map(candid_text, states)))
        count = len(due.get(replay.end, ()))
        wanted = (Variant("running", None), Variant("completed", count))
        if steps != [candid_text(state) for state in wanted]:
            broken.append(
                f"it reported {', '.join(steps) or 'nothing'}, due are running, completed {count}"
            )
    trial.book.judge("RP-5", len(reports), broken)
