"""Trials of publishers (IC-39, IC-48, RP-2, RP-5 to RP-7)."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain as chained
from typing import NamedTuple

from interchain_events.icrc72 import methods
from interchain_events.icrc72.alerts import MemberAlert
from interchain_events.icrc72.cheats.stage import Actor
from interchain_events.icrc72.conformance.further import try_company
from interchain_events.icrc72.conformance.members import PATIENCE, begin, judge_inbox, registered
from interchain_events.icrc72.conformance.probes import fake_alert
from interchain_events.icrc72.conformance.trial import Candidate, Trial
from interchain_events.icrc72.conformance.wording import (
    candid_text,
    difference,
    ranges,
)
from interchain_events.icrc72.errors import ConfigError, Icrc72Error
from interchain_events.icrc72.facts import Due
from interchain_events.icrc72.headers import read
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.errors import CandidError, shown
from interchain_events.icrc72.ic.messaging import Happening, Schedule
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import Event, ReplayRegistration
from interchain_events.icrc72.methods import (
    HANDLE,
    PUBLISH,
)
from interchain_events.icrc72.namespaces import is_system
from interchain_events.icrc72.values import value_hash

Sent = list[tuple[Happening, Event]]
"""Events that the candidate sent, each with the entry of the trace."""


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
    trial = begin(candidate, "publication", seed, refuse, with_)
    network = trial.network
    names = registered(trial, "publication")
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
            network.step(PATIENCE // 2)
    network.step(PATIENCE // 2)
    judge_inbox(trial, "publisher", stranger)
    live = _sent(trial)
    _judge_events(trial, live, names, stranger)
    _judge_ids(trial, live)
    _judge_sending(trial)
    _judge_again(trial)
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


class _Arrival(NamedTuple):
    """An event at an entry."""

    entry: Principal
    namespace: str
    event: int


def _judge_again(trial: Trial) -> None:
    """Judge that a live event is not sent again to an entry that has accepted it.

    The publisher knows that it was accepted when it executes the answer.
    """
    sent = 0
    under_way: dict[int, list[_Arrival | None]] = {}
    """For each call, where its events arrive; `None` for an event of a replay."""
    accepted: set[_Arrival | None] = set()
    broken: list[str] = []
    for happening in trial.recorder.happenings:
        if happening.method != PUBLISH.name:
            continue
        with suppress(CandidError):
            if happening.kind == "send" and happening.sender == trial.who:
                batch: list[_Arrival | None] = []
                again: list[int] = []
                for event in PUBLISH.value(happening.data):
                    if read(event.headers).replay is not None:
                        batch.append(None)
                        continue
                    arrival = _Arrival(happening.receiver, event.namespace, event.eventId)
                    batch.append(arrival)
                    sent += 1
                    if arrival in accepted:
                        again.append(event.eventId)
                if again:
                    broken.append(f"round {happening.round}: {ranges(again)}")
                under_way[happening.number] = batch
            elif happening.kind == "answer" and not happening.code:
                batch = under_way.pop(happening.number, [])
                results = PUBLISH.result(happening.data)
                # A broadcaster may answer with fewer results than there are events.
                for arrival_or_replay, result in zip(batch, results, strict=False):
                    if result is not None and result.tag == "Ok":
                        accepted.add(arrival_or_replay)
    trial.book.judge("IC-48 again", sent, broken)


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
            # The last event that is due; 0 if nobody asked for this range.
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
