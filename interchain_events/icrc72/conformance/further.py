"""Further trials, each in a network of its own: kinds of publications, changes, and company.

The first trial of a role has one publication without options. These trials have partitions, modes
and trust, two publishers in one namespace, subscriptions that are changed and deleted, a replay
with its own stream, and a publisher whose broadcaster dies.
"""

from typing import Final

from interchain_events.icrc72 import keys, methods
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.cheats.stage import Actor, Configs
from interchain_events.icrc72.conformance.probes import Book, Probes, identified
from interchain_events.icrc72.conformance.trial import ActorLine, Candidate, Trial
from interchain_events.icrc72.conformance.wording import candid_text, difference, ranges
from interchain_events.icrc72.deployment import PubSub, deploy
from interchain_events.icrc72.headers import read
from interchain_events.icrc72.ic.messaging import Schedule
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import Principal, canister_id
from interchain_events.icrc72.messages import EventNotification, ReplayRegistration
from interchain_events.icrc72.methods import HANDLE, HANDLE_TRUSTED, PUBLISH
from interchain_events.icrc72.namespaces import partition_of
from interchain_events.icrc72.role import RoleCanister
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import Value, boolean, of

_PARTS: Final = "trial.parts"
_RANKED: Final = "trial.ranked"
_LOOSE: Final = "trial.loose"
_TRUSTED: Final = "trial.trusted"
_SHARED: Final = "trial.shared"
_CHANGED: Final = "trial.changed"
_ALLOWED: Final = keys.list_key("publishers:allowed")
_SETTLED: Final = 150
"""The rounds in which registrations take effect."""
_DELIVERED: Final = 120
"""The rounds in which events are delivered."""


class Diary(Actor):
    """An actor that remembers the events as (namespace, source, id)."""

    def on_event(self, _ctx: object, event: EventNotification) -> None:
        """Remember an event."""
        self.data.append((event.namespace, event.source, event.eventId))


def _diary(trial: Trial, who: Principal, namespace: str) -> list[tuple[Principal, int]]:
    """Return the sources and ids of a namespace's events, as an actor has handled them."""
    app = trial.network.canister(who)
    events = app.data if isinstance(app, Diary) else []
    return [(source, number) for name, source, number in events if name == namespace]


def _published(trial: Trial, namespace: str) -> dict[Principal, list[int]]:
    """Return the ids in the logs of the emulated publishers of a namespace."""
    published: dict[Principal, list[int]] = {}
    for publisher, log in trial.system.logs().items():
        ids = [number for name, number in log if name == namespace]
        if ids:
            published[publisher] = ids
    return published


def _complete(
    trial: Trial, rule: str, who: Principal, namespace: str, *, chains: int = 1, sources: int = 1
) -> None:
    """Judge that an actor got every event of a namespace once, those of each chain in order.

    `chains` is the number of partitions of each source, or 0 if its events need no order. `sources`
    is the number of publishers of the namespace.
    """
    handled = _diary(trial, who, namespace)
    published = _published(trial, namespace)
    partitions = max(chains, 1)
    broken: list[str] = []
    if len(published) < sources:
        broken.append(f"{namespace}: {len(published)} of {sources} publishers could publish")
    for source, due in published.items():
        ids = [number for handled_source, number in handled if handled_source == source]
        if not chains:
            ids.sort()
        for partition in range(partitions):
            chain = [number for number in ids if partition_of(number, partitions) == partition]
            wanted = [number for number in due if partition_of(number, partitions) == partition]
            if chain != wanted:
                broken.append(f"{namespace}, from {source.text}: {difference(chain, wanted)}")
    trial.book.judge(rule, sum(map(len, published.values())), broken)


def try_kinds(candidate: Candidate, book: Book, seed: bytes, refuse: int) -> Trial:
    """Try a broadcaster with publications of every kind, changes, and a replay with its own stream.

    It is the only broadcaster. Verdicts go to `book`.
    """
    network = CanisterNetwork(1, seed=seed, schedule=Schedule(seed, 1, refuse))
    system = deploy(network, broadcasters=())
    trial = Trial(system, candidate, book)
    system.registry.add_broadcaster(network.next_id(0))
    trial.install(0)
    system.broadcasters.append(trial.who)
    network.step(40)
    names = (_PARTS, _RANKED, _LOOSE, _TRUSTED, _SHARED, _CHANGED)
    first = trial.actor(0, None, {name: {} for name in names}, Diary)
    second = trial.actor(0, None, {name: {} for name in names}, Diary)
    # The id of the second publisher, which is installed after the first one has named it.
    guest = canister_id(0, 5)
    kinds: Configs = {
        _PARTS: {keys.PARTITIONS: 3},
        _RANKED: {keys.MODE: "priority", keys.PRIORITIES: [[bytes(second), 9], [bytes(first), 1]]},
        _LOOSE: {keys.MODE: "unordered"},
        _TRUSTED: {keys.TRUSTED: True},
        _SHARED: {_ALLOWED: [bytes(guest)], keys.REPLAY: True},
        _CHANGED: {},
    }
    teller = trial.actor(0, kinds)
    network.step(_SETTLED)
    trial.actor(0, {_SHARED: {}})
    network.step(_SETTLED)
    for name in names:
        if name != _RANKED:
            trial.tell(teller, name, range(9))
    trial.tell(guest, _SHARED, range(9))
    network.schedule = Schedule(seed)
    network.step(_DELIVERED)
    # With 20 rounds after each event. Otherwise a subscriber that has not yet confirmed one gets
    # the next one later, whatever its priority.
    trial.tell(teller, _RANKED, range(9), 20)
    for subscriber in (first, second):
        _complete(trial, "IC-37 partitions", subscriber, _PARTS, chains=3)
        _complete(trial, "IC-43 modes", subscriber, _RANKED)
        _complete(trial, "IC-43 modes", subscriber, _LOOSE, chains=0)
        _complete(trial, "IC-46", subscriber, _TRUSTED)
        _complete(trial, "IC-41 two", subscriber, _SHARED, sources=2)
    _judge_priority(trial, first, second)
    _judge_trusted(trial)
    _judge_changes(trial, first, teller)
    _judge_isolated(trial, second, teller)
    return trial


def _judge_priority(trial: Trial, first: Principal, second: Principal) -> None:
    """Judge that in mode `priority` the subscriber with the higher priority is notified first.

    `second` has the higher priority.
    """
    positions: dict[tuple[Principal, int], int] = {}
    for position, (call, note) in enumerate(trial.items(HANDLE, "send", by=trial.who)):
        if note.namespace == _RANKED:
            positions.setdefault((call.receiver, note.eventId), position)
    events = sorted(number for subscriber, number in positions if subscriber == first)
    late = [
        number
        for number in events
        if positions.get((second, number), -1) > positions[first, number]
    ]
    broken = [f"{ranges(late)} went to the lower priority first"] if late else []
    trial.book.judge("IC-43 priority", len(events), broken)


def _judge_trusted(trial: Trial) -> None:
    """Judge that events of a trusted publication are sent by the method for trusted events."""
    trusted = trial.items(HANDLE_TRUSTED, "send", by=trial.who)
    plain = trial.items(HANDLE, "send", by=trial.who)
    right = {note.eventId for _, note in trusted if note.namespace == _TRUSTED}
    wrong = {note.eventId for _, note in plain if note.namespace == _TRUSTED}
    broken = [f"{ranges(wrong)} were not sent there"] if wrong else []
    trial.book.judge("IC-46 endpoint", len(right | wrong), broken)


def _judge_changes(trial: Trial, who: Principal, teller: Principal) -> None:
    """Judge that a subscription's changes and its deletion take effect."""
    network = trial.network
    orchestrator = trial.system.orchestrator
    target = identified(_CHANGED)

    def change(key: str, value: object) -> None:
        update = m.SubscriptionUpdate(target, (key, of(value)))
        trial.say(who, orchestrator, methods.UPDATE_SUBSCRIPTION, (update,))
        network.step(_SETTLED)

    def handled(numbers: range) -> list[int]:
        """Publish events with these numbers, and return the ids that reach the subscriber."""
        before = len(_diary(trial, who, _CHANGED))
        trial.tell(teller, _CHANGED, numbers)
        network.step(_DELIVERED)
        return [number for _, number in _diary(trial, who, _CHANGED)[before:]]

    # Nine events were published before, so the ids of these begin with 10.
    change(keys.FILTER, "n > 95")
    trial.book.same("IC-34 update", handled(range(91, 100)), [15, 16, 17, 18])
    change(keys.STOPPED, value=True)
    _nothing(trial, "IC-34 stopped", handled(range(96, 98)))
    change(keys.STOPPED, value=False)
    trial.book.same("IC-34 resumed", handled(range(96, 98)), [21, 22])
    deletion = m.SubscriptionDelete(target)
    trial.say(who, orchestrator, methods.DELETE_SUBSCRIPTION, (deletion,))
    network.step(_SETTLED)
    _nothing(trial, "IC-34 delete", handled(range(96, 98)))


def _nothing(trial: Trial, rule: str, handled: list[int]) -> None:
    """Judge that neither of two events was handled."""
    trial.book.must(rule, not handled, f"{ranges(handled)} came nevertheless", 2)


def _judge_isolated(trial: Trial, who: Principal, teller: Principal) -> None:
    """Judge a replay with its own stream, and the live events beside it."""
    network = trial.network
    subscriber = trial.system.app(who).subscriber
    if subscriber is not None:
        # The actor asks for the replay, and not its subscriber, which would drop the events.
        subscriber.state.ever_asked = True
    begun = len(trial.recorder.happenings)
    request = ReplayRegistration(_SHARED, (2, 7), ((keys.REPLAY_ISOLATED, boolean(True)),))
    trial.say(who, trial.system.orchestrator, methods.REGISTER_REPLAY, (request,))
    trial.tell(teller, _SHARED, range(4))
    network.step(2 * _SETTLED)
    replayed: list[int] = []
    live: list[int] = []
    for call in trial.recorder.happenings[begun:]:
        pair = (call.sender, call.receiver)
        if (call.kind, call.method) != ("send", HANDLE.name) or pair != (trial.who, who):
            continue
        for note in HANDLE.value(call.data):
            if note.namespace == _SHARED and note.source == teller:
                ids = live if read(note.headers).replay is None else replayed
                ids.append(note.eventId)
    trial.book.same("RP-9", list(dict.fromkeys(replayed)), [2, 3, 4, 5, 6])
    trial.book.same("RP-9 live", list(dict.fromkeys(live)), [10, 11, 12, 13])


def try_changes(candidate: Candidate, book: Book, seed: bytes, refuse: int) -> Trial:
    """Try an orchestrator: changes, deletions, a list of publishers, and two publishers.

    As in its first trial, the candidate is made with the principal of the only broadcaster.
    `refuse` is the percentage of requests that the network refuses while members register.
    """
    network = CanisterNetwork(1, seed=seed, schedule=Schedule(seed, 1, refuse))
    me = network.next_id(0)
    system = PubSub(network, "orchestrator", me, DEFAULTS)
    broadcaster = canister_id(0, 1)
    trial = Trial(system, Candidate(lambda _me: candidate.make(broadcaster)), book)
    trial.install(0)
    network.create(0, RoleCanister([Broadcaster(me, system.settings)]))
    network.step(40)
    first = trial.actor(0, None, {_SHARED: {}, _CHANGED: {}}, Diary)
    # The id of the second publisher, which is installed after the first one has named it.
    guest = canister_id(0, 4)
    teller = trial.actor(0, {_SHARED: {_ALLOWED: [bytes(guest)]}, _CHANGED: {}})
    network.step(_SETTLED)
    trial.actor(0, {_SHARED: {}})
    network.step(_SETTLED)
    network.schedule = Schedule(seed)
    for name in (_SHARED, _CHANGED):
        trial.tell(teller, name, range(6))
    trial.tell(guest, _SHARED, range(6))
    network.step(_DELIVERED)
    _complete(trial, "IC-33", first, _SHARED, sources=2)
    _judge_updates(trial, first, teller)
    _judge_deletions(trial, first, teller)
    return trial


def _judge_updates(trial: Trial, who: Principal, teller: Principal) -> None:
    """Judge that members may change what they have registered, and that this takes effect."""
    owner = Probes(trial.book, ActorLine(trial, teller))
    subscriber = Probes(trial.book, ActorLine(trial, who))
    _judge_lists(trial, owner)
    narrow = m.SubscriptionUpdate(identified(_CHANGED), (keys.FILTER, of("n > 95")))
    subscriber.expect("IC-34 own", subscriber.update(methods.UPDATE_SUBSCRIPTION, (narrow,)), "Ok")
    trial.network.step(_SETTLED)
    before = len(_diary(trial, who, _CHANGED))
    # Six events were published before. Of these four, the last two pass the filter.
    trial.tell(teller, _CHANGED, range(94, 98))
    trial.network.step(_DELIVERED)
    handled = [number for _, number in _diary(trial, who, _CHANGED)[before:]]
    trial.book.same("IC-34 update", handled, [9, 10])
    _judge_disallowed(trial, owner, who, teller)


def _judge_lists(trial: Trial, owner: Probes) -> None:
    """Judge that a list of a publication can be set, made longer and made shorter."""
    # A key that the draft names, with subscribers that are not there.
    key = keys.list_key("subscribers:disallowed")
    nine, ten = (bytes(canister_id(0, number)) for number in (9, 10))
    for ending, given, due in (
        ("", [nine], [nine]),
        (":add", [ten], [nine, ten]),
        (":remove", [nine], [ten]),
    ):
        change = m.PublicationUpdate(identified(_CHANGED), (key + ending, of(given)))
        owner.expect("IC-34 own", owner.update(methods.UPDATE_PUBLICATION, (change,)), "Ok")
        infos = owner.query(methods.GET_PUBLICATIONS, m.ByText(None, 100)) or ()
        listed: Value | None = None
        for info in infos:
            if info.namespace == _CHANGED:
                listed = dict(info.config).get(key)
                break
        words = f"{_CHANGED} is listed with {candid_text(listed)} under {key} after {key}{ending}"
        trial.book.must("IC-34 listed", listed == of(due), words)


def _judge_disallowed(trial: Trial, owner: Probes, who: Principal, teller: Principal) -> None:
    """Judge that a subscriber gets no events while a list disallows it."""
    key = keys.list_key("subscribers:disallowed")
    for ending, due in ((":add", []), (":remove", [13, 14])):
        change = m.PublicationUpdate(identified(_CHANGED), (key + ending, of([bytes(who)])))
        owner.expect("IC-34 own", owner.update(methods.UPDATE_PUBLICATION, (change,)), "Ok")
        trial.network.step(_SETTLED)
        before = len(_diary(trial, who, _CHANGED))
        trial.tell(teller, _CHANGED, range(96, 98))
        trial.network.step(_DELIVERED)
        handled = [number for _, number in _diary(trial, who, _CHANGED)[before:]]
        trial.book.same("IC-33 disallowed", handled, due)


def _judge_deletions(trial: Trial, who: Principal, teller: Principal) -> None:
    """Judge that a subscription and a publication can be deleted, and that this takes effect."""
    owner = Probes(trial.book, ActorLine(trial, teller))
    subscriber = Probes(trial.book, ActorLine(trial, who))
    deletion = m.SubscriptionDelete(identified(_SHARED))
    results = subscriber.update(methods.DELETE_SUBSCRIPTION, (deletion,))
    subscriber.expect("IC-34 own", results, "Ok")
    trial.network.step(_SETTLED)
    before = len(_diary(trial, who, _SHARED))
    trial.tell(teller, _SHARED, range(2))
    trial.network.step(_DELIVERED)
    handled = [number for _, number in _diary(trial, who, _SHARED)[before:]]
    _nothing(trial, "IC-34 delete", handled)
    removal = m.PublicationDelete(identified(_CHANGED))
    owner.expect("IC-34 own", owner.update(methods.DELETE_PUBLICATION, (removal,)), "Ok")
    names = owner.names()
    trial.book.must("IC-34 gone", _CHANGED not in names, f"{_CHANGED} is still listed")


def try_company(
    candidate: Candidate, book: Book, name: str, seed: bytes, refuse: int
) -> Trial | None:
    """Try a publisher beside another one in its namespace, and with a broadcaster that dies.

    `name` is the namespace in which it publishes. Another publisher creates it and lets the
    candidate join. Returns `None` if the candidate cannot be told to publish.
    """
    publish = candidate.publish
    if publish is None:
        return None
    network = CanisterNetwork(1, seed=seed, schedule=Schedule(seed, 1, refuse))
    system = deploy(network, broadcasters=(0, 0))
    trial = Trial(system, candidate, book)
    network.step(40)
    # The id of the candidate, which is installed after the creator has named it.
    guest = canister_id(0, 4)
    teller = trial.actor(0, {name: {_ALLOWED: [bytes(guest)]}})
    network.step(_SETTLED)
    trial.install(0)
    if candidate.register is not None:
        network.step(5)
        candidate.register(network, trial.who)
    listener = trial.actor(0, None, {name: {}}, Diary)
    network.step(300)
    if trial.who not in next(iter(system.registry.state.publications.values())).publishers:
        # It does not register this namespace, or with a configuration that only a creator may give.
        return trial
    for number in range(6):
        publish(network, trial.who, number)
        trial.tell(teller, name, [number])
    network.step(_DELIVERED)
    entries = system.registry.state.publications[1].entries.get(trial.who, ())
    if entries:
        network.uninstall(entries[0])
        network.step(2 * _SETTLED)
    for number in range(6, 12):
        publish(network, trial.who, number)
        network.step()
    network.step(300)
    _judge_company(trial, name, teller, listener)
    return trial


def _judge_company(trial: Trial, name: str, teller: Principal, listener: Principal) -> None:
    """Judge the ids of a publisher that has joined, and that its events find their way."""
    published = {
        event.eventId
        for _, event in trial.items(PUBLISH, "send", by=trial.who)
        if event.namespace == name
    }
    others = set(_published(trial, name).get(teller, []))
    broken: list[str] = []
    if published & others:
        broken.append(f"{ranges(sorted(published & others))} are ids of another publisher")
    trial.book.judge("IC-25 unique", len(published), broken)
    handled = {number for source, number in _diary(trial, listener, name) if source == trial.who}
    lost = sorted(published - handled)
    broken = []
    if lost:
        broken.append(f"{ranges(lost)} were lost with their broadcaster")
    if len(published) < 12:
        broken.append(f"12 events were made, {len(published)} were published")
    trial.book.judge("IC-39 moved", len(published), broken)
