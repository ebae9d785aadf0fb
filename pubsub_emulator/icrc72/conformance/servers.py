"""Trials of broadcasters and orchestrators (IC-30 to IC-35, IC-41 to IC-47, IC-51; RP-3, RP-5, RP-8)."""

from typing import Final, Literal, TypeVar

from pubsub_emulator.icrc72 import messages as m
from pubsub_emulator.icrc72 import methods
from pubsub_emulator.icrc72.audit.core import Audit
from pubsub_emulator.icrc72.audit.record import error_of
from pubsub_emulator.icrc72.broadcaster.core import Broadcaster
from pubsub_emulator.icrc72.cheats.stage import Actor
from pubsub_emulator.icrc72.conformance.trial import Candidate, Seen, Trial
from pubsub_emulator.icrc72.deployment import PubSub, deploy
from pubsub_emulator.icrc72.headers import read
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.ic.schedule import Schedule
from pubsub_emulator.icrc72.keys import FILTER, REPLAY, SKIP
from pubsub_emulator.icrc72.methods import A, Method, R
from pubsub_emulator.icrc72.namespaces import system_namespace
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.settings import DEFAULTS
from pubsub_emulator.icrc72.values import Value, map_, nat, text

T = TypeVar("T")
NAME: Final = "trial.events"
_OTHER: Final = "trial.other"
_BATCH: Final = {"IC-30a": "the 101st item of a batch ends the answer"}
_BROADCASTER: Final = {
    **_BATCH,
    "IC-43": "a listener, also one that was away, gets every event in order",
    "IC-43 relay": "the listeners of another subnet get every event in order",
    "IC-43 relayed": "what another broadcaster relays is delivered in order",
    "IC-26": "a filter lets its events pass",
    "IC-27": "a skip lets its events pass",
    "IC-41": "who is not assigned to it publishes nothing",
    "IC-41 source": "nobody publishes in another's name",
    "IC-42b": "an event that it has is Ok again",
    "IC-44": "what was never sent cannot be confirmed",
    "RP-8": "a replay is delivered whole",
    "RP-8 others": "nobody else gets a replay",
    "IC-51": "the audit accuses it of nothing",
}
_ORCHESTRATOR: Final = {
    **_BATCH,
    "I1": "who subscribed gets every event of who registered",
    "IC-31": "a new publication is registered",
    "IC-31 system": "nobody publishes in a system namespace",
    "IC-31 creator": "who is not allowed does not join",
    "IC-30b": "a bad namespace is improper",
    "IC-30b keys": "an unknown key is improper",
    "IC-32": "a subscription that is registered has one id",
    "IC-32 system": "nobody subscribes to another's alerts",
    "IC-26": "a bad filter is improper",
    "IC-34": "only a controller changes a publication",
    "IC-34 unknown": "what is not there is not deleted",
    "IC-35b": "it lists what is registered",
    "IC-35a": "lists are in order",
    "IC-35a pages": "a page begins behind `prev`",
    "IC-35b broadcasters": "it lists its broadcasters",
    "RP-3 range": "an empty range is improper",
    "RP-3": "a publication that is not there",
    "RP-3 who": "who has no subscription",
    "RP-3 wide": "a range that is too large",
    "RP-2": "a replay is registered",
    "RP-5": "a replay ends as completed with its events",
    "RP-5 who": "only the publisher reports",
    "RP-11": "what is over cannot be canceled",
}


def _data(trial: Trial, who: Principal) -> list[int]:
    app = trial.network.canister(who)
    return list(app.data) if isinstance(app, Actor) else []


def _probe(trial: Trial, by: Principal, method: Method[A, R], value: A) -> R | None:
    """The candidate's answer to a call, if it gave one."""
    before = len(trial.answers(method, by=trial.who, to=by))
    for _ in range(4):  # requests may be refused
        trial.say(by, trial.who, method, value)
        found: list[Seen[R | None]] = trial.answers(method, by=trial.who, to=by)[before:]
        answered = [each.value for each in found if each.at.code != 2]
        if answered:
            return answered[-1]
    return None


def _expect(trial: Trial, rule: str, results: m.Results[T] | None, wanted: str, *, at: int = 0) -> None:
    """Judge the answer to one item: `Ok`, the name of its error, or the code of a generic one."""
    result = results[at] if results is not None and at < len(results) else None
    got = "nothing" if result is None else str(error_of(result) or "Ok")
    trial.must(rule, got == wanted, f"round {trial.network.round}: it answered {got}, due is {wanted}")


def try_broadcaster(candidate: Candidate, seed: bytes = b"", refuse: int = 10) -> Trial:
    """Try a broadcaster: as entry and exit, with a relay, filters, a listener that is away, strangers, an upgrade."""
    network = CanisterNetwork(2, seed=seed, schedule=Schedule(seed, 1, refuse))
    system = deploy(network, broadcasters=(1,))
    trial = Trial(system, candidate, _BROADCASTER)
    system.registry.add_broadcaster(network.next_id(0))
    trial.install(0)
    system.broadcasters.append(trial.who)
    audit = Audit(system.orchestrator, system.broadcasters)
    network.observers.append(audit)
    network.step(40)
    teller = trial.actor(0, {NAME: {REPLAY: True}})
    near, far = trial.actor(0, None, {NAME: {}}), trial.actor(1, None, {NAME: {}})
    picky, third = trial.actor(0, None, {NAME: {FILTER: "n < 5"}}), trial.actor(0, None, {NAME: {SKIP: [3, 0]}})
    stranger = trial.actor(1)
    abroad, guest = trial.actor(1, {_OTHER: {REPLAY: True}}), trial.actor(0, None, {_OTHER: {}})
    network.step(250)
    trial.tell(teller, NAME, range(10))
    trial.tell(abroad, _OTHER, range(10))
    network.step(40)
    network.stop(near)
    network.step(10)
    trial.tell(teller, NAME, range(6))
    network.step(60)
    network.start(near)
    trial.upgrade()
    trial.tell(teller, NAME, range(4))
    trial.disturb(stranger, methods.PUBLISH.name, methods.CONFIRM.name)
    network.schedule = Schedule(seed)
    network.step(500)
    every, numbers = list(range(1, 21)), [*range(10), *range(6), *range(4)]
    trial.same("IC-43", _data(trial, near), every)
    trial.same("IC-43 relay", _data(trial, far), every)
    trial.same("IC-43 relayed", _data(trial, guest), every[:10])
    trial.same("IC-26", _data(trial, picky), [at for at, n in enumerate(numbers, 1) if n < 5])
    trial.same("IC-27", _data(trial, third), [each for each in every if each % 3 == 0])
    _probe_broadcaster(trial, teller, stranger)
    _judge_replay(trial, near)
    trial.judge_stats("icrc72_get_broadcaster_stats")
    trial.judge_traps()
    found = [each for each in audit.finish(system.logs(), network.running()) if each.actor == trial.who]
    words = [f"round {each.round}: {each.cheat}: {each.evidence}" for each in found]
    trial.judge("IC-51", len(trial.recorder.happenings), words)
    return trial


def _probe_broadcaster(trial: Trial, teller: Principal, stranger: Principal) -> None:
    def published(by: Principal, *events: m.Event) -> m.Results[tuple[int, ...]] | None:
        return _probe(trial, by, methods.PUBLISH, events)

    _expect(trial, "IC-41", published(stranger, trial.event(stranger, 30, None, NAME)), "Unauthorized")
    _expect(trial, "IC-41 source", published(stranger, trial.event(teller, 31, None, NAME)), "Unauthorized")
    known = list(trial.system.logs()[teller].values())
    _expect(trial, "IC-42b", published(teller, *known[4:5]), "Ok")
    nothing = _probe(trial, stranger, methods.CONFIRM, (10**9,))
    _expect(trial, "IC-44", nothing.value if nothing is not None else None, "NotFound")
    many = [trial.event(stranger, 40 + each, None, NAME) for each in range(101)]
    _expect(trial, "IC-30a", published(stranger, *many), "GenericBatchError", at=100)


def _judge_replay(trial: Trial, near: Principal) -> None:
    """A replay goes to whoever asked for it, whole, and to nobody else."""
    trial.replay(near, NAME, 3, 8)
    trial.network.step(200)
    got: dict[Principal, list[int]] = {}
    for at, each in trial.items(methods.HANDLE, "send", by=trial.who):
        if read(each.headers).replay is not None:
            got.setdefault(at.receiver, []).append(each.eventId)
    trial.same("RP-8", list(dict.fromkeys(got.pop(near, []))), [3, 4, 5, 6, 7])
    trial.judge("RP-8 others", 5, [f"{each} to {who.text}" for who, each in got.items()])


# The orchestrator


def try_orchestrator(candidate: Candidate, seed: bytes = b"", refuse: int = 10) -> Trial:
    """Try an orchestrator, made with the principal of the only broadcaster: registrations, queries, a replay."""
    network = CanisterNetwork(1, seed=seed, schedule=Schedule(seed, 1, refuse))
    me = network.next_id(0)
    system = PubSub(network, "orchestrator", me, DEFAULTS)
    broadcaster = Principal((1).to_bytes(8, "big") + b"\1\1")
    trial = Trial(system, Candidate(lambda _me: candidate.make(broadcaster)), _ORCHESTRATOR)
    trial.install(0)
    network.create(0, RoleCanister([Broadcaster(me, system.settings)]))
    network.step(40)
    teller, listener, stranger = (
        trial.actor(0, {NAME: {REPLAY: True}}),
        trial.actor(0, None, {NAME: {}}),
        trial.actor(0),
    )
    network.step(200)
    trial.tell(teller, NAME, range(8))
    trial.disturb(stranger, methods.REGISTER_PUBLICATION.name, methods.REGISTER_REPLAY.name)
    trial.upgrade()
    trial.tell(teller, NAME, range(8))
    network.step(200)
    trial.same("I1", _data(trial, listener), list(range(1, 17)))
    _probe_registry(trial, listener, stranger)
    _probe_queries(trial, broadcaster)
    _probe_replays(trial, listener, stranger)
    trial.judge_traps()
    return trial


def _probe_registry(trial: Trial, listener: Principal, by: Principal) -> None:
    def publishes(rule: str, wanted: str, name: str, *config: tuple[str, Value]) -> None:
        item = m.PublicationRegistration(name, config)
        _expect(trial, rule, _probe(trial, by, methods.REGISTER_PUBLICATION, (item,)), wanted)

    def subscribed(name: str, *config: tuple[str, Value]) -> m.Results[int] | None:
        return _probe(trial, by, methods.REGISTER_SUBSCRIPTION, (m.SubscriptionRegistration(name, config),))

    publishes("IC-31", "Ok", "trial.new")
    publishes("IC-31 system", "Unauthorized", system_namespace("publisher", by))
    publishes("IC-31 creator", "UnauthorizedPublisher", NAME)
    publishes("IC-30b", "ImproperConfig", "no spaces")
    publishes("IC-30b keys", "ImproperConfig", "trial.keys", ("icrc72:nonsense", nat(1)))
    _expect(trial, "IC-32 system", subscribed(system_namespace("subscriber", listener)), "Unauthorized")
    _expect(trial, "IC-26", subscribed("trial.filter", (FILTER, text("((("))), "ImproperConfig")
    change = m.PublicationUpdate(_named(NAME), (REPLAY, map_({})))
    _expect(trial, "IC-34", _probe(trial, by, methods.UPDATE_PUBLICATION, (change,)), "Unauthorized")
    gone = m.PublicationDelete(_named("trial.none"))
    _expect(trial, "IC-34 unknown", _probe(trial, by, methods.DELETE_PUBLICATION, (gone,)), "1")
    first, again = subscribed("trial.twice"), subscribed("trial.twice")
    trial.must("IC-32", first is not None and first == again, f"{first}, then {again}", 2)
    many = (m.PublicationRegistration("no spaces", ()),) * 101
    _expect(trial, "IC-30a", _probe(trial, by, methods.REGISTER_PUBLICATION, many), "GenericBatchError", at=100)


def _named(namespace: str) -> Variant[Literal["namespace"], str]:
    return Variant("namespace", namespace)


def _ask(trial: Trial, method: Method[A, R], value: A) -> R | None:
    answer = trial.network.query(ANONYMOUS, trial.who, method.name, method.argument(value))
    return method.result(answer.data) if answer.ok else None


def _probe_queries(trial: Trial, broadcaster: Principal) -> None:
    listed = _ask(trial, methods.GET_PUBLICATIONS, m.ByText()) or ()
    names = [each.namespace for each in listed]
    trial.must("IC-35b", NAME in names, f"{names} without {NAME}")
    trial.must("IC-35a", names == sorted(names), f"{names}", len(names))
    first = names[0] if names else ""
    page = [each.namespace for each in _ask(trial, methods.GET_PUBLICATIONS, m.ByText(first, 1)) or ()]
    trial.must("IC-35a pages", page == names[1:2], f"{page} after {first!r}")
    brokers = [each.broadcaster for each in _ask(trial, methods.GET_BROADCASTERS, m.ByPrincipal()) or ()]
    trial.must("IC-35b broadcasters", brokers == [broadcaster], f"{[each.text for each in brokers]}")


def _probe_replays(trial: Trial, listener: Principal, stranger: Principal) -> None:
    cases: tuple[tuple[str, Principal, str, tuple[int, int], str], ...] = (
        ("RP-3 range", listener, NAME, (3, 3), "ImproperConfig"),
        ("RP-3", listener, "trial.no", (1, 2), "PublicationNotFound"),
        ("RP-3 who", stranger, NAME, (1, 2), "SubscriptionNotFound"),
        ("RP-3 wide", listener, NAME, (1, 10**6), "RangeTooLarge"),
        ("RP-2", listener, NAME, (2, 6), "Ok"),
    )
    number = 0
    for rule, by, name, range_, wanted in cases:
        answer = _probe(trial, by, methods.REGISTER_REPLAY, (m.ReplayRegistration(name, range_, ()),))
        _expect(trial, rule, answer, wanted)
        if answer is not None and answer[0] is not None and answer[0].tag == "Ok":
            number = answer[0].value
    report = (m.ReplayStatusUpdate(number, m.state_of("completed", 4, "")),)
    _expect(trial, "RP-5 who", _probe(trial, stranger, methods.REPLAY_STATUS, report), "Unauthorized")
    trial.network.step(200)
    states = [each.status for each in _ask(trial, methods.GET_REPLAYS, m.ByNat()) or () if each is not None]
    done = any(each.tag == "completed" and each.value == 4 for each in states)
    trial.must("RP-5", done, f"{states}")
    _expect(trial, "RP-11", _probe(trial, listener, methods.CANCEL_REPLAY, (number,)), "CannotCancel")
