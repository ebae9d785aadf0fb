"""Trials of those who publish and subscribe (IC-39, IC-44, IC-48, IC-49; RP-2, RP-5 to RP-7, RP-10)."""

from collections.abc import Iterator
from typing import Final, cast

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.alerts import MemberAlert, member_alert
from pubsub_emulator.icrc72.cheats.stage import Actor
from pubsub_emulator.icrc72.conformance.trial import Candidate, Seen, Trial, ensure
from pubsub_emulator.icrc72.deployment import deploy
from pubsub_emulator.icrc72.errors import ConfigError
from pubsub_emulator.icrc72.headers import read
from pubsub_emulator.icrc72.ic.canister import SYS_TRANSIENT
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.schedule import Schedule
from pubsub_emulator.icrc72.messages import Event, EventNotification, PublicationRegistration, ReplayRegistration
from pubsub_emulator.icrc72.methods import HANDLE, REGISTER_REPLAY
from pubsub_emulator.icrc72.namespaces import is_system, system_namespace
from pubsub_emulator.icrc72.results import is_ok
from pubsub_emulator.icrc72.value_hash import value_hash
from pubsub_emulator.icrc72.values import Value, as_nat, first, map_, nat

_CONFIRM: Final = "icrc72_confirm_notifications"
_HANDLE: Final = "icrc72_handle_notification"
_PATIENCE: Final = 400


def _begin(candidate: Candidate, subnet: int, brokers: tuple[int, ...], seed: bytes, refuse: int) -> Trial:
    network = CanisterNetwork(2, seed=seed, schedule=Schedule(seed, 2, refuse))
    trial = Trial(network, deploy(network, broadcasters=brokers), candidate)
    trial.install(subnet)
    network.step(300)  # who tries again once a minute has tried five times
    return trial


def _registered(trial: Trial, role: str) -> tuple[str, ...]:
    """The namespaces that the candidate registered, but for that of its system events, which is judged."""
    method = f"icrc72_register_{role}"
    calls = trial.seen(method, "send", by=trial.who)
    items = [each for seen in calls for each in cast("tuple[PublicationRegistration, ...]", seen.value)]
    every = trial.answers(method, by=trial.system.orchestrator, to=trial.who)
    answers = [each for each in every if each.at.code != SYS_TRANSIENT]
    refused = [each for each in answers if not is_ok(cast("tuple[None, ...] | None", each.value))]
    trial.judge(
        "IC-32" if role == "subscription" else "IC-31",
        "what it registers is accepted",
        len(answers),
        [f"round {each.at.round}: {each.value}" for each in refused],
    )
    names = tuple(dict.fromkeys(each.namespace for each in items if not is_system(each.namespace)))
    trial.judge(f"IC-39 {role}", f"it registers a {role}", len(calls), [] if names else [f"no {role} was registered"])
    return names


def _judge_inbox(trial: Trial, role: str, stranger: Principal) -> None:
    """What both publishers and subscribers owe to those who notify them."""
    own = system_namespace(role, trial.who)
    calls = trial.seen("icrc72_register_subscription", "send", by=trial.who)
    items = [each.namespace for seen in calls for each in cast("tuple[PublicationRegistration, ...]", seen.value)]
    trial.judge(
        "IC-39 alerts", "it subscribes to its own alerts", len(items), [] if own in items else [f"not to {own}"]
    )
    got: dict[tuple[Principal, int], int] = {}
    late: dict[tuple[Principal, int], int] = {}
    for seen in trial.seen(_HANDLE, "execute", to=trial.who):
        for each in cast("tuple[EventNotification, ...]", seen.value):
            got.setdefault((seen.at.sender, each.notificationId), seen.at.round)
            late[seen.at.sender, each.notificationId] = seen.at.round
    confirmed: dict[tuple[Principal, int], int] = {}
    invented: list[str] = []
    for seen in trial.seen(_CONFIRM, "send", by=trial.who):
        for number in cast("tuple[int, ...]", seen.value):
            confirmed.setdefault((seen.at.receiver, number), seen.at.round)
            if (seen.at.receiver, number) not in got:
                invented.append(f"round {seen.at.round}: {number} to {seen.at.receiver.text}, who never sent it")
    due = [each for each in got if each[0] != stranger and each[0] in trial.network.running()]
    trial.judge(
        "IC-44",
        "it confirms each notification to whoever sent it",
        len(due),
        [f"round {late[each]}: {each[1]} of {each[0].text} never" for each in due if each not in confirmed],
    )
    trial.judge("IC-44 own", "it confirms nothing that it was not notified of", len(confirmed), invented)
    trial.judge(
        "IC-49b",
        "it asks who is a valid broadcaster",
        1,
        []
        if trial.seen("icrc72_get_valid_broadcasters", "send", by=trial.who)
        or trial.seen("icrc72_get_valid_broadcaster", "send", by=trial.who)
        else ["it never asked"],
    )
    trial.judge(
        "IC-49b strangers",
        "it confirms nothing to a stranger",
        1,
        [f"round {each.at.round}" for each in trial.seen(_CONFIRM, "send", by=trial.who, to=stranger)],
    )
    trial.judge_traps()


def _fake(number: int, namespace: str, source: Principal, data: Value | None = None) -> EventNotification:
    value = map_({"n": nat(number)}) if data is None else data
    return EventNotification(number, number, None, 1, namespace, value, (), source, None)


# The subscriber


def try_subscriber(candidate: Candidate, seed: bytes = b"", refuse: int = 20) -> Trial:
    """Try a subscriber: refusals, delays, repeats, a stranger, an upgrade, an exit that dies with what it held."""
    trial = _begin(candidate, 1, (0, 1, 1), seed, refuse)
    network = trial.network
    patterns = _registered(trial, "subscription")
    if not patterns:
        return trial
    name = ".".join("any" if part in {"*", "**"} else part for part in patterns[0].split("."))
    teller, stranger = trial.teller(0, (name,)), trial.actor(1)
    network.step(120)
    trial.emit(teller, name, 20)
    network.step(60)
    for number in (901, 902):
        trial.say(stranger, trial.who, HANDLE, (_fake(number, name, teller),))
    trial.disturb(stranger, _HANDLE)
    trial.emit(teller, name, 4)
    trial.upgrade()
    trial.emit(teller, name, 20)
    network.step(120)
    _lose(trial, teller, name)
    _judge_inbox(trial, "subscriber", stranger)
    _judge_stats(trial)
    _judge_handled(trial, teller, name)
    return trial


def _lose(trial: Trial, teller: Principal, name: str) -> None:
    """Let the exit die with five events, and show that they are missing by five more."""
    network = trial.network
    network.schedule = Schedule(network.seed)
    exits = [each.at.sender for each in trial.seen(_HANDLE, "execute", to=trial.who)]
    last = next((each for each in reversed(exits) if each in trial.system.broadcasters), None)
    network.stop(trial.who)
    network.step(20)
    trial.emit(teller, name, 5)
    network.step(6)
    if last is not None:
        network.uninstall(last)
    network.start(trial.who)
    network.step(200)
    trial.emit(teller, name, 5)
    network.step(_PATIENCE)
    asked = trial.seen("icrc77_register_replay", "send", by=trial.who)
    ranges = [each.range for seen in asked for each in cast("tuple[ReplayRegistration, ...]", seen.value)]
    made = trial.system.app(teller).publisher
    end = 0 if made is None else max(row.event.eventId for row in made.state.log) - 5
    covered = any(low <= end - 4 and (high is None or high > end) for low, high in ranges)
    trial.judge(
        "RP-10",
        "it asks for what it misses",
        1,
        [] if covered else [f"events {end - 4} to {end} are missing, it asked for {ranges or 'nothing'}"],
    )


def _judge_stats(trial: Trial) -> None:
    answer = trial.network.query(Principal(b"\4"), trial.who, "icrc72_get_subscriber_stats", b"DIDL\0\0")
    trial.judge("IC-35d", "it tells its statistics", 1, [] if answer.ok else [answer.message])


def _judge_handled(trial: Trial, teller: Principal, name: str) -> None:
    """Each event once and in order; what was handled is known only by a query of the candidate's own."""
    publisher = trial.system.app(teller).publisher
    if trial.candidate.handled is None or publisher is None or not trial.running():
        return
    log = [row.event.eventId for row in publisher.state.log if row.event.namespace == name]
    got = trial.candidate.handled(trial.network, trial.who)
    lost = sorted(set(log) - set(got))
    trial.judge("I1", "it handles every event", len(log), [f"not {lost}"] if lost else [])
    twice = sorted({each for each in got if got.count(each) > 1})
    trial.judge("I1 once", "it handles no event twice", len(got), [f"{twice}"] if twice else [])
    trial.judge("I1 order", "it handles events in order", len(got), [] if got == sorted(got) else [f"{got}"])
    strange = sorted(set(got) - set(log))
    trial.judge("IC-49b events", "it handles no event of a stranger", 2, [f"{strange}"] if strange else [])


# The publisher


def try_publisher(candidate: Candidate, seed: bytes = b"", refuse: int = 20) -> Trial:
    """Try a publisher: refusals, delays, a stranger's alert, an upgrade, a replay for a subscriber."""
    ensure(candidate.publish, "a way to let the publisher make an event")
    trial = _begin(candidate, 0, (0, 1), seed, refuse)
    network = trial.network
    names = _registered(trial, "publication")
    if not names or candidate.publish is None:
        return trial
    listener, stranger = trial.actor(1, None, *names), trial.actor(1)
    network.step(150)
    for number in range(12):
        candidate.publish(network, trial.who, number)
        network.step()
    network.step(60)
    ids = _known(trial)
    claim = member_alert("publisher", {("bc", each): (stranger,) for each in ids}, (), ())
    alert = _fake(9_000, system_namespace("publisher", trial.who), trial.system.orchestrator, claim)
    trial.say(stranger, trial.who, HANDLE, (alert,))
    trial.disturb(stranger, _HANDLE)
    trial.upgrade()
    for number in range(12, 20):
        candidate.publish(network, trial.who, number)
        network.step()
    network.step(150)
    network.schedule = Schedule(seed)
    sent = _first_sends(trial)
    made = [number for each, number in sent if each == names[0]]
    if len(made) > 6:
        request = ReplayRegistration(names[0], (made[2], made[6]), ())
        trial.say(listener, trial.system.orchestrator, REGISTER_REPLAY, (request,))
    network.step(_PATIENCE)
    _judge_inbox(trial, "publisher", stranger)
    _judge_events(trial, names, stranger)
    _judge_taken(trial, listener)
    if len(made) > 6:
        _judge_replay(trial, names[0], made[2:6])
    return trial


def _known(trial: Trial) -> list[int]:
    """The ids of the candidate's publications."""
    return [each for each, mine in trial.system.registry.state.publications.items() if trial.who in mine.publishers]


def _publishes(trial: Trial) -> list[tuple[Seen, tuple[Event, ...]]]:
    calls = trial.seen("icrc72_publish", "send", by=trial.who)
    return [(each, cast("tuple[Event, ...]", each.value)) for each in calls]


def _first_sends(trial: Trial) -> list[tuple[str, int]]:
    """Namespace and id of each event that is no replay, in the order of first sending."""
    every = [each for _, events in _publishes(trial) for each in events if read(each.headers).replay is None]
    return list(dict.fromkeys((each.namespace, each.eventId) for each in every))


def _told(trial: Trial) -> list[tuple[int, Principal, MemberAlert]]:
    found: list[tuple[int, Principal, MemberAlert]] = []
    for seen in trial.seen(_HANDLE, "execute", to=trial.who):
        for each in cast("tuple[EventNotification, ...]", seen.value):
            try:
                if is_system(each.namespace):
                    found.append((seen.at.round, seen.at.sender, MemberAlert(each.data)))
            except ConfigError:
                continue
    return found


def _judge_events(trial: Trial, names: tuple[str, ...], stranger: Principal) -> None:
    calls = _publishes(trial)
    live = [(seen, each) for seen, events in calls for each in events if read(each.headers).replay is None]
    count = len(live)
    told = [(at, who) for at, by, alert in _told(trial) if by != stranger for x in alert.entries.values() for who in x]
    begun = min((at for at, _ in told), default=None)
    entries = {who for _, who in told}

    def where() -> Iterator[str]:
        for seen, each in live:
            if begun is None or seen.at.round < begun:
                yield f"round {seen.at.round}: {each.eventId} before it was told where"
            elif seen.at.receiver not in entries:
                yield f"round {seen.at.round}: {each.eventId} to {seen.at.receiver.text}"

    trial.judge("IC-39 entry", "it publishes where it was told to, and not before", count, where())
    wrong = [f"round {seen.at.round}: {each.source.text}" for seen, each in live if each.source != trial.who]
    trial.judge("IC-22 source", "the source of its events is itself", count, wrong)
    other = [f"round {seen.at.round}: {each.namespace}" for seen, each in live if each.namespace not in names]
    trial.judge("IC-41 namespace", "it publishes under what it registered", count, other)
    planted = [f"round {seen.at.round}: {each.headers}" for seen, each in live if read(each.headers).planted]
    trial.judge("IC-23", "its events have no headers that broadcasters append", count, planted)
    hashes = [(seen, each, read(each.headers).hash) for seen, each in live]
    bad = [f"round {s.at.round}: event {e.eventId}" for s, e, h in hashes if h is not None and h != value_hash(e.data)]
    trial.judge("IC-21", "a hash in a header is that of the data", count, bad)
    _judge_ids(trial, live)
    _judge_sending(trial, calls)


def _judge_ids(trial: Trial, live: list[tuple[Seen, Event]]) -> None:
    firsts: dict[tuple[str, int], Event] = {}
    rounds: dict[tuple[str, int], int] = {}
    changed: list[str] = []
    for seen, each in live:
        key = (each.namespace, each.eventId)
        if firsts.setdefault(key, each) != each:
            changed.append(f"round {seen.at.round}: event {each.eventId} is another than in round {rounds[key]}")
        rounds.setdefault(key, seen.at.round)
    trial.judge("IC-48 repeats", "an event that is sent again is the same", len(live), changed)
    last: dict[str, int] = {}
    unordered: list[str] = []
    unchained: list[str] = []
    timed: list[str] = []
    for (name, number), each in firsts.items():
        at = rounds[name, number]
        before = last.get(name)
        if before is not None and number <= before:
            unordered.append(f"round {at}: {number} after {before}")
        if each.prevEventId not in {None, before}:
            unchained.append(f"round {at}: {number} names {each.prevEventId}, the event before is {before}")
        now = trial.network.genesis + at * 10**9
        if not now - 600 * 10**9 <= each.timestamp <= now:
            timed.append(f"round {at}: {each.timestamp} of event {number} is not of now, {now}")
        last[name] = number
    trial.judge("IC-25", "its ids ascend", len(firsts), unordered)
    trial.judge("IC-42", "prevEventId is null or the event before", len(firsts), unchained)
    trial.judge("IC-22 time", "the timestamp of an event is when it was made", len(firsts), timed)


def _judge_sending(trial: Trial, calls: list[tuple[Seen, tuple[Event, ...]]]) -> None:
    large = [f"round {seen.at.round}: {len(events)} events" for seen, events in calls if len(events) > 100]
    trial.judge("IC-30a", "it sends at most 100 events in one call", len(calls), large)
    done: dict[int, int] = {}
    for at, each in enumerate(trial.recorder.happenings):
        if each.kind == "answer" and each.method == "icrc72_publish":
            done[each.number] = at
    order = {id(each): at for at, each in enumerate(trial.recorder.happenings)}
    both: list[str] = []
    busy: dict[Principal, int] = {}
    for seen, events in calls:
        if any(read(each.headers).replay is not None for each in events):
            continue
        begun = order[id(seen.at)]
        if begun < busy.get(seen.at.receiver, -1):
            both.append(f"round {seen.at.round}: a batch while another is under way")
        busy[seen.at.receiver] = done.get(seen.at.number, begun)
    trial.judge("IC-48 batches", "one batch at a time is under way to an entry", len(calls), both)


def _judge_taken(trial: Trial, listener: Principal) -> None:
    app = trial.network.canister(listener)
    got = app.data if isinstance(app, Actor) else []
    sent = [number for _, number in _first_sends(trial)]
    lost = sorted(set(sent) - set(got))
    words = [f"{lost} were not taken by its entry"] if lost else []
    if len(sent) < 20:
        words.append(f"20 events were made, {len(sent)} were published")
    trial.judge("IC-48", "every event is published until it is accepted", len(sent), words)


def _judge_replay(trial: Trial, name: str, due: list[int]) -> None:
    originals = {
        each.eventId: each for _, events in _publishes(trial) for each in events if not read(each.headers).replay
    }
    asked = [(at, each) for at, _, alert in _told(trial) for each in alert.replays]
    trial.judge("RP-6", "it is told of the replay", len(asked), [] if asked else ["the orchestrator told nothing"])
    ids = {each[0] for _, each in asked}
    entries = {each[4] for _, each in asked}
    sent: list[int] = []
    where: list[str] = []
    marked: list[str] = []
    altered: list[str] = []
    for seen, events in _publishes(trial):
        for each in events:
            header = read(each.headers)
            if header.replay is None:
                continue
            sent.append(each.eventId)
            at = f"round {seen.at.round}: event {each.eventId}"
            if seen.at.receiver not in entries:
                where.append(f"{at} to {seen.at.receiver.text}")
            if header.replay not in ids:
                marked.append(f"{at} for replay {header.replay}, which nobody asked for")
            end = as_nat(first(each.headers or (), keys.REPLAY_END))
            if end is not None and end != due[-1]:
                marked.append(f"{at} says that {end} is the last, it is {due[-1]}")
            before = originals.get(each.eventId)
            if before is None or before[:6] != each[:6]:
                altered.append(f"{at} is not what it was")
    trial.judge("RP-6 entry", "it replays to the broadcaster that it was told", len(sent), where)
    trial.judge("RP-7 marks", "replayed events say which replay, and its last event", len(sent), marked)
    trial.judge("RP-7", "a replayed event is as it was", len(sent), altered)
    firsts = list(dict.fromkeys(sent))
    range_ = [] if firsts == due else [f"{firsts} of {name} instead of {due}"]
    trial.judge("RP-2", "it replays the range, in order, and nothing else", len(due), range_)
    states = [
        (each.at.round, cast("tuple[int, object]", item))
        for each in trial.seen("icrc77_replay_status", "send", by=trial.who)
        for item in cast("tuple[object, ...]", each.value)
    ]
    words = [f"round {at}: {item}" for at, item in states if item[0] not in ids]
    steps = list(dict.fromkeys(_state(item[1]) for _, item in states))
    if steps != ["running None", f"completed {len(due)}"]:
        words.append(f"it reported {', '.join(steps) or 'nothing'}, due are running, completed {len(due)}")
    trial.judge("RP-5", "it reports running, then completed with the number of events", len(states), words)


def _state(state: object) -> str:
    tag, value = cast("tuple[str, object]", state)
    return f"{tag} {value}"
