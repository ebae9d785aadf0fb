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
from interchain_events.icrc72.conformance.stand import Stand, odd_notifications
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
    every = trial.answers(method, by=trial.system.orchestrator, to=trial.who)
    answers = [each for each in every if each.at.code != SYS_TRANSIENT]
    rounds: dict[str, list[int]] = {}
    for each in answers:
        if not is_ok(each.value):
            rounds.setdefault(candid_text(each.value), []).append(each.at.round)
    refused = [f"round {ranges(when)}: the answer was {words}" for words, when in rounds.items()]
    trial.book.judge("IC-32" if role == "subscription" else "IC-31", len(answers), refused)
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
    got: dict[Notified, int] = {}
    for at, each in notified:
        got.setdefault((at.sender, each.notificationId), at.round)
    confirmed = {
        (at.receiver, number): at.round for at, number in trial.items(CONFIRM, "send", by=trial.who)
    }
    # What has just arrived may be confirmed later than the trial ends.
    latest = trial.network.round - _CONFIRMING
    running = trial.network.running()
    due = [
        each
        for each, round_ in got.items()
        if each[0] != stranger and each[0] in running and round_ <= latest
    ]
    lacking = _by_broadcaster(got, [each for each in due if each not in confirmed])
    trial.book.judge("IC-44", len(due), [f"{each}: they were never confirmed" for each in lacking])
    invented = _by_broadcaster(confirmed, [each for each in confirmed if each not in got])
    trial.book.judge(
        "IC-44 own", len(confirmed), [f"{each}: it never sent these" for each in invented]
    )
    both = (methods.GET_VALID, methods.GET_VALID_ONE)
    trial.book.must(
        "IC-49b", any([*trial.seen(each, "send", by=trial.who)] for each in both), "it never asked"
    )
    to_stranger = trial.seen(CONFIRM, "send", by=trial.who, to=stranger)
    trial.book.judge("IC-49b strangers", 1, [f"round {each.at.round}" for each in to_stranger])
    trial.judge_messages()
    trial.judge_traps()


def _by_broadcaster(rounds: Mapping[Notified, int], notifications: list[Notified]) -> list[str]:
    """Return a text for each broadcaster of notifications: their rounds and numbers."""
    found: dict[Principal, list[Notified]] = {}
    for each in notifications:
        found.setdefault(each[0], []).append(each)
    return [
        f"round {ranges(rounds[each] for each in mine)}: notifications"
        f" {ranges(number for _, number in mine)} of {who.text}"
        for who, mine in found.items()
    ]


def try_subscriber(
    candidate: Candidate, seed: bytes = b"", refuse: int = 20, *, with_: tuple[str, ...] = ()
) -> Trial:
    """Try a subscriber.

    It meets refused and late messages, a stranger's notifications, an upgrade, and an exit that
    dies with queued events, which it has to ask for again. In the end it gets events with every
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

    def __init__(self, who: Principal) -> None:
        self._who = who
        self.number = 0
        """The number of the request, or 0."""

    def happened(self, happening: Happening) -> None:
        """Note an entry of the trace."""
        sent = (happening.kind, happening.method, happening.sender)
        if not self.number and sent == ("send", methods.REGISTER_REPLAY.name, self._who):
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
    runs again. Its first request for a replay is refused, so it has to ask again. Returns the first
    of their ids if no request for them was heard: the candidate can then handle neither them nor,
    in order, those that follow.
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
    requests = trial.items(methods.REGISTER_REPLAY, "send", by=trial.who)
    asked_for = [each.range for _, each in requests]
    heard = [each.range for at, each in requests if at.number != first.number]
    if asked_for:
        trial.book.claim("icrc77")
    asked = [
        f"from {shown(low)}" if high is None else f"{shown(low)} to below {shown(high)}"
        for low, high in dict.fromkeys(asked_for)
    ]
    covered = any(_covers(each, missing) for each in asked_for)
    trial.book.must(
        "RP-10",
        covered,
        f"events {ranges(missing)} are missing, it asked for {'; '.join(asked) or 'nothing'}",
    )
    again = any(_covers(each, missing) for each in heard)
    if covered:
        words = f"its request for events {ranges(missing)} was refused, and it did not ask again"
        trial.book.must("RP-10 again", again, words)
    return None if again else missing[0]


def _covers(asked: tuple[int, int | None], missing: range) -> bool:
    """Return whether the range of a replay has all missing events."""
    low, high = asked
    return low <= missing[0] and (high is None or high > missing[-1])


def _exit(trial: Trial) -> Principal | None:
    """Return the broadcaster that notified the candidate last, or `None` if none did."""
    senders = [each.at.sender for each in trial.seen(HANDLE, "execute", to=trial.who)]
    return next((each for each in reversed(senders) if each in trial.system.broadcasters), None)


def _judge_handled(trial: Trial, teller: Principal, lost: int | None) -> None:
    """Judge the events that the candidate has handled, if the trial can see them.

    Those that pass the filter and skip of its own subscription are due, but those from `lost` on
    are not.
    """
    got = trial.handled()
    if got is None:
        return
    events = trial.system.logs()[teller]
    records = trial.system.registry.state.subscriptions.values()
    widths = [
        Width(each.config.filter, each.config.skip)
        for each in records
        if each.subscriber == trial.who and not is_system(each.pattern)
    ]
    due = {
        number
        for (_, number), event in events.items()
        if (lost is None or number < lost) and any(lets_pass(width, event) for width in widths)
    }
    missing = due - set(got)
    strange = set(got) - {number for _, number in events}
    twice = {each for each, count in Counter(got).items() if count > 1}
    disorder = first_disorder(got)
    trial.book.must("I1", not missing, f"{ranges(missing)} were not handled", len(due))
    trial.book.must("I1 once", not twice, f"{ranges(twice)} were handled again", len(got))
    trial.book.must("I1 order", not disorder, f"it handled {disorder}", len(got))
    trial.book.must("IC-49b events", not strange, f"{ranges(strange)} were handled", 2)


def _judge_odd(trial: Trial, name: str, source: Principal) -> None:
    """Judge whether the candidate takes notifications with every kind of data, ids and fields.

    A stand takes the place of its exit and sends them, each in a call of its own. An event that is
    handled or confirmed is taken, if it did not make the candidate trap.
    """
    network = trial.network
    stand = _exit(trial)
    if stand is None or not trial.running() or network.status(stand) != RUNNING:
        return
    network.reinstall(stand, Stand())
    begun = len(trial.recorder.happenings)
    odd = list(odd_notifications(name, source, network.time(0)))
    arguments = {each: HANDLE.argument((each.notification,)) for each in odd}
    # As a broadcaster does, the stand repeats what is not confirmed: a subscriber may be busy.
    waiting = odd
    for _ in range(_REPEATS):
        for each in waiting:
            network.submit(ANONYMOUS, stand, SAY, encode((trial.who, HANDLE.name, arguments[each])))
        network.step(20)
        done = _confirmed_since(trial, stand, begun)
        trapped = {each.data for each in _trapped_since(trial, stand, begun)}
        waiting = [
            each
            for each in waiting
            if each.notification.notificationId not in done and arguments[each] not in trapped
        ]
        if not waiting:
            break
    trusted = fake(len(odd) + 1, name, source)
    trial.say(stand, trial.who, HANDLE_TRUSTED, (trusted,))
    # What comes before its turn is held back for some time.
    network.step(120)
    reasons_by_call = {
        each.number: each.data.decode(errors="replace")
        for each in trial.recorder.happenings[begun:]
        if each.kind == "trap"
    }
    traps = {
        HANDLE.value(each.data)[0].notificationId: reasons_by_call[each.number]
        for each in _trapped_since(trial, stand, begun)
    }
    confirmed = _confirmed_since(trial, stand, begun)
    handled = set(trial.handled() or ())
    broken: dict[str, dict[str, list[str]]] = {}
    for each in odd:
        note = each.notification
        why = traps.get(note.notificationId, "")
        if not why and note.notificationId not in confirmed and note.eventId not in handled:
            why = "neither confirmed nor handled"
        rule = broken.setdefault(each.rule, {})
        if why:
            rule.setdefault(why, []).append(each.about)
    for rule_name, reasons in broken.items():
        words = [f"{', '.join(about)}: {why}" for why, about in reasons.items()]
        trial.book.judge(rule_name, sum(each.rule == rule_name for each in odd), words)
    answers = trial.answers(HANDLE_TRUSTED, by=trial.who, to=stand)
    answer = answers[-1] if answers else None
    good = answer is not None and answer.value is not None and answer.value.tag == "Ok"
    words_ = "it did not answer" if answer is None else f"it answered {_answer_text(answer)}"
    trial.book.must("IC-46", good, words_)


def _trapped_since(trial: Trial, stand: Principal, begun: int) -> list[Happening]:
    """Return the executions of notifications from the stand that trapped, from an entry on."""
    happened = trial.recorder.happenings[begun:]
    trapped = {each.number for each in happened if each.kind == "trap"}
    return [
        each
        for each in happened
        if (each.kind, each.method, each.sender) == ("execute", HANDLE.name, stand)
        and each.number in trapped
    ]


def _confirmed_since(trial: Trial, stand: Principal, begun: int) -> set[int]:
    """Return the notifications that the candidate confirmed to the stand, from an entry on."""
    first = trial.recorder.happenings[begun].round
    return {
        number
        for at, number in trial.items(CONFIRM, "send", by=trial.who, to=stand)
        if at.round >= first
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

    It meets refused and late messages, a stranger's system event, an upgrade and a replay. `with_`
    are the extensions that it claims to support. With `further`, it is not alone in its namespace
    in another network, and its broadcaster dies there (`try_company`). Raises `Icrc72Error` if the
    candidate has no `publish`.
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
    publications = trial.system.registry.state.publications
    ids = [each for each, mine in publications.items() if trial.who in mine.publishers]
    trial.say(
        stranger,
        trial.who,
        HANDLE,
        (fake_alert(trial.who, trial.system.orchestrator, ids, stranger),),
    )
    trial.disturb(stranger, HANDLE.name)
    trial.upgrade()
    for number in range(12, 20):
        candidate.publish(network, trial.who, number)
        network.step()
    network.step(150)
    network.schedule = Schedule(seed)
    made = [each.eventId for each in _firsts(_sent(trial)) if each.namespace == names[0]]
    if len(made) > 6:
        for end in (made[6], None):
            request = ReplayRegistration(names[0], (made[2], end), ())
            trial.say(listener, trial.system.orchestrator, methods.REGISTER_REPLAY, (request,))
            network.step(_PATIENCE // 2)
    network.step(_PATIENCE // 2)
    _judge_inbox(trial, "publisher", stranger)
    live = _sent(trial)
    _judge_events(trial, live, names, stranger)
    _judge_ids(trial, live)
    _judge_sending(trial)
    _judge_taken(trial, listener, live)
    if len(made) > 6:
        _judge_replays(trial, names[0], {made[6]: made[2:6], None: made[2:]}, live)
    if further:
        try_company(candidate, trial.book, names[0], seed, refuse)
    return trial


def _sent(trial: Trial, *, replayed: bool = False) -> Sent:
    """Return all live or all replayed events that the candidate sent, with repetitions."""
    every = trial.items(PUBLISH, "send", by=trial.who)
    return [(at, each) for at, each in every if (read(each.headers).replay is not None) == replayed]


def _firsts(live: Sent) -> list[Event]:
    """Return the events without repetitions, each as it was first sent."""
    found: dict[tuple[str, int], Event] = {}
    for _, each in live:
        found.setdefault((each.namespace, each.eventId), each)
    return list(found.values())


def _told(trial: Trial) -> list[tuple[int, Principal, MemberAlert]]:
    """Return the system events that the candidate got, with the round and the sender."""
    found: list[tuple[int, Principal, MemberAlert]] = []
    for at, each in trial.items(HANDLE, "execute", to=trial.who):
        with suppress(ConfigError):
            if is_system(each.namespace):
                found.append((at.round, at.sender, MemberAlert.read(each.data)))
    return found


def _judge_events(trial: Trial, live: Sent, names: tuple[str, ...], stranger: Principal) -> None:
    """Judge the receivers and the fields of live events, each by itself."""
    given: list[tuple[int, Principal]] = []
    for told_at, by, alert in _told(trial):
        if by != stranger:
            members = chained.from_iterable(alert.entries().values())
            given += [(told_at, member) for member in members]
    begun = min((at for at, _ in given), default=None)
    entries = {who for _, who in given}

    def where(at: Happening, each: Event) -> str:
        if begun is None or at.round < begun:
            return f"{shown(each.eventId)} before it was told where"
        return "" if at.receiver in entries else f"{shown(each.eventId)} to {at.receiver.text}"

    def hashed(_at: Happening, each: Event) -> str:
        said = read(each.headers).hash
        return (
            "" if said is None or said == value_hash(each.data) else f"event {shown(each.eventId)}"
        )

    wrong: dict[str, Callable[[Happening, Event], str]] = {
        "IC-39 entry": where,
        "IC-22 source": lambda _, each: "" if each.source == trial.who else each.source.text,
        "IC-41 namespace": lambda _, each: (
            "" if each.namespace in names else f"in {each.namespace}"
        ),
        "IC-23": lambda _, each: candid_text(each.headers) if read(each.headers).planted else "",
        "IC-21": hashed,
    }
    for rule, judge in wrong.items():
        broken = [f"round {at.round}: {words}" for at, each in live if (words := judge(at, each))]
        trial.book.judge(rule, len(live), broken)


def _judge_ids(trial: Trial, live: Sent) -> None:
    """Judge the ids, predecessors and timestamps of live events in their order."""
    firsts = {(each.namespace, each.eventId): each for each in _firsts(live)}
    rounds: dict[tuple[str, int], int] = {}
    broken: dict[str, list[str]] = {
        rule: [] for rule in ("IC-48 repeats", "IC-25", "IC-42", "IC-22 time")
    }
    for at, each in live:
        first = rounds.setdefault((each.namespace, each.eventId), at.round)
        if firsts[each.namespace, each.eventId] != each:
            broken["IC-48 repeats"].append(
                f"round {at.round}: event {shown(each.eventId)} is another than in round {first}"
            )
    last: dict[str, int] = {}
    for (name, number), each in firsts.items():
        at_ = rounds[name, number]
        before = last.get(name)
        if before is not None and number <= before:
            broken["IC-25"].append(f"round {at_}: {shown(number)} after {shown(before)}")
        if each.prevEventId not in {None, before}:
            broken["IC-42"].append(
                f"round {at_}: {shown(number)} names {candid_text(each.prevEventId)},"
                f" the event before is {candid_text(before)}"
            )
        now = trial.network.genesis + at_ * 10**9
        if not now - 600 * 10**9 <= each.timestamp <= now:
            broken["IC-22 time"].append(
                f"round {at_}: {shown(each.timestamp)} of event {shown(number)} is not of now,"
                f" {now}"
            )
        last[name] = number
    for rule, words in broken.items():
        trial.book.judge(rule, len(live) if rule == "IC-48 repeats" else len(firsts), words)


def _judge_sending(trial: Trial) -> None:
    """Judge that batches are small enough, and that an entry gets one live batch at a time."""
    calls = list(trial.seen(PUBLISH, "send", by=trial.who))
    large = [
        f"round {each.at.round}: {len(each.value)} events"
        for each in calls
        if len(each.value) > 100
    ]
    trial.book.judge("IC-30a", len(calls), large)
    order = {id(each): at for at, each in enumerate(trial.recorder.happenings)}
    answered = [
        each
        for each in trial.recorder.happenings
        if (each.kind, each.method) == ("answer", PUBLISH.name)
    ]
    done = {each.number: order[id(each)] for each in answered}
    both: list[str] = []
    busy: dict[Principal, int] = {}
    for each in calls:
        if any(read(event.headers).replay is not None for event in each.value):
            continue
        begun = order[id(each.at)]
        if begun < busy.get(each.at.receiver, -1):
            both.append(f"round {each.at.round}: a batch while another is under way")
        busy[each.at.receiver] = done.get(each.at.number, begun)
    trial.book.judge("IC-48 batches", len(calls), both)


def _judge_taken(trial: Trial, listener: Principal, live: Sent) -> None:
    """Judge that all 20 events were published until they reached a listener."""
    app = trial.network.canister(listener)
    got = app.data if isinstance(app, Actor) else []
    sent = [each.eventId for each in _firsts(live)]
    lost = sorted(set(sent) - set(got))
    words = [f"{ranges(lost)} were not taken by its entry"] if lost else []
    if len(sent) < 20:
        words.append(f"20 events were made, {len(sent)} were published")
    trial.book.judge("IC-48", len(sent), words)


def _judge_replays(
    trial: Trial, name: str, due: Mapping[int | None, list[int]], live: Sent
) -> None:
    """Judge replays: their receivers, events, marks and reports.

    `due` has the events of each replay by the end of its range, which is `None` if it is open.
    """
    originals = {each.eventId: each for _, each in live}
    replays: dict[int, Due] = {}
    entries: set[Principal] = set()
    for _, _, alert in _told(trial):
        replays.update(alert.due())
        entries.update(each.entry for each in alert.due().values())
    trial.book.must("RP-6", replays, "the orchestrator told nothing", len(replays))
    broken: dict[str, list[str]] = {rule: [] for rule in ("RP-6 entry", "RP-7 marks", "RP-7")}
    sent = _sent(trial, replayed=True)
    came: dict[int | None, list[int]] = {end: [] for end in due}
    is_end_told = False
    for at, each in sent:
        headers = read(each.headers)
        what = f"round {at.round}: event {shown(each.eventId)}"
        if at.receiver not in entries:
            broken["RP-6 entry"].append(f"{what} to {at.receiver.text}")
        told = replays.get(headers.replay or 0)
        if told is None:
            broken["RP-7 marks"].append(
                f"{what} for replay {candid_text(headers.replay)}, which nobody asked for"
            )
        else:
            last = due.get(told.end, [0])[-1]
            came.setdefault(told.end, []).append(each.eventId)
            is_end_told = is_end_told or (told.end is None and headers.end is not None)
            if headers.end not in {None, last}:
                broken["RP-7 marks"].append(
                    f"{what} says that {candid_text(headers.end)} is the last, it is {last}"
                )
        before = originals.get(each.eventId)
        # All fields except the headers, which are the last one.
        if before is None or before[:6] != each[:6]:
            broken["RP-7"].append(f"{what} is not what it was")
    # Nobody else knows the last event of a range without an end.
    if came.get(None) and not is_end_told:
        broken["RP-7 marks"].append("no event of the range without an end says which is the last")
    for rule, words in broken.items():
        trial.book.judge(rule, len(sent), words)
    for end, wanted in due.items():
        firsts = list(dict.fromkeys(came[end]))
        rule = "RP-2 open" if end is None else "RP-2"
        trial.book.must(
            rule, firsts == wanted, f"{name}: {difference(firsts, wanted)}", len(wanted)
        )
    _judge_reports(trial, replays, due)


def _judge_reports(
    trial: Trial, replays: Mapping[int, Due], due: Mapping[int | None, list[int]]
) -> None:
    """Judge that each replay was reported as running, then as completed with its events."""
    states = trial.items(methods.REPLAY_STATUS, "send", by=trial.who)
    words = [
        f"round {at.round}: {candid_text(item)}"
        for at, item in states
        if item.replayId not in replays
    ]
    for number, replay in replays.items():
        mine = [item.status for _, item in states if item.replayId == number]
        steps = list(dict.fromkeys(map(candid_text, mine)))
        count = len(due.get(replay.end, ()))
        wanted = (Variant("running", None), Variant("completed", count))
        if steps != [candid_text(each) for each in wanted]:
            words.append(
                f"it reported {', '.join(steps) or 'nothing'}, due are running, completed {count}"
            )
    trial.book.judge("RP-5", len(states), words)
