"""Trials of broadcasters and orchestrators (IC-30 to IC-35, IC-41 to IC-47, IC-51; RP-3, RP-5, RP-8)."""

from collections.abc import Callable
from typing import Final, Literal, cast

from pubsub_emulator.icrc72 import messages as m
from pubsub_emulator.icrc72 import methods
from pubsub_emulator.icrc72.audit.core import Audit
from pubsub_emulator.icrc72.broadcaster.core import Broadcaster
from pubsub_emulator.icrc72.cheats.stage import Actor, Stage, judged
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

NAME: Final = "trial.events"
_OTHER: Final = "trial.other"
_HANDLE: Final = "icrc72_handle_notification"


def _data(trial: Trial, who: Principal) -> list[int]:
    app = trial.network.canister(who)
    return list(app.data) if isinstance(app, Actor) else []


def _probe(trial: Trial, by: Principal, method: Method[A, R], value: A) -> Seen | None:
    """The candidate's answer to a call, if it gave one."""
    before = len(trial.answers(method.name, by=trial.who, to=by))
    for _ in range(4):  # requests may be refused
        trial.say(by, trial.who, method, value)
        found = [each for each in trial.answers(method.name, by=trial.who, to=by)[before:] if each.at.code != 2]
        if found:
            return found[-1]
    return None


def _item(seen: Seen | None, at: int = 0) -> str:
    """The answer to one item as `Ok`, or as the name of its error; a GenericError with its code."""
    if seen is None or not isinstance(seen.value, tuple) or len(seen.value) <= at or seen.value[at] is None:
        return "nothing"
    answer = cast("Variant[str, object]", seen.value[at])
    if answer.tag == "Ok" or not isinstance(answer.value, Variant):
        return answer.tag
    error = answer.value
    return f"code {error.value.error_code}" if isinstance(error.value, m.GenericError) else error.tag


def _expect(trial: Trial, rule: str, about: str, seen: Seen | None, wanted: str, *, at: int = 0) -> None:
    got = _item(seen, at)
    words = [] if got == wanted else [f"round {trial.network.round}: it answered {got}, due is {wanted}"]
    trial.judge(rule, about, 1, words)


def _asks(trial: Trial, method: str, rule: str) -> None:
    answer = trial.network.query(ANONYMOUS, trial.who, method, b"DIDL\0\0")
    trial.judge(rule, "it tells its statistics", 1, [] if answer.ok else [answer.message])


def _delivered(trial: Trial, rule: str, who: Principal, due: list[int], about: str) -> None:
    got = _data(trial, who)
    trial.judge(rule, about, len(due), [] if got == due else [f"{got} instead of {due}"])


def try_broadcaster(candidate: Candidate, seed: bytes = b"", refuse: int = 10) -> Trial:
    """Try a broadcaster: as entry and exit, with a relay, filters, a listener that is away, strangers, an upgrade."""
    network = CanisterNetwork(2, seed=seed, schedule=Schedule(seed, 1, refuse))
    system = deploy(network, broadcasters=(1,))
    trial = Trial(network, system, candidate)
    system.registry.add_broadcaster(network.next_id(0))
    trial.install(0)
    system.broadcasters.append(trial.who)
    audit = Audit(system.orchestrator, system.broadcasters)
    network.observers.append(audit)
    network.step(40)

    def follower(subnet: int, config: dict[str, object]) -> Principal:
        app = Actor(system.orchestrator, DEFAULTS, publications={}, subscriptions={NAME: config})
        return network.create(subnet, app)

    teller = trial.teller(0, (NAME,))
    near, far, picky, third = (
        follower(0, {}),
        follower(1, {}),
        follower(0, {FILTER: "n < 5"}),
        follower(0, {SKIP: [3, 0]}),
    )
    stranger = trial.actor(1)
    abroad, guest = trial.teller(1, (_OTHER,)), trial.actor(0, None, _OTHER)
    network.step(250)
    trial.emit(teller, NAME, 10)
    trial.emit(abroad, _OTHER, 10)
    network.step(40)
    network.stop(near)
    network.step(10)
    trial.emit(teller, NAME, 6)
    network.step(60)
    network.start(near)
    trial.upgrade()
    trial.emit(teller, NAME, 4)
    trial.disturb(stranger, "icrc72_publish", "icrc72_confirm_notifications")
    network.schedule = Schedule(seed)
    network.step(500)
    every = list(range(1, 21))
    _delivered(trial, "IC-43", near, every, "a listener, also one that was away, gets every event in order")
    _delivered(trial, "IC-43 relay", far, every, "the listeners of another subnet get every event in order")
    _delivered(trial, "IC-43 relayed", guest, every[:10], "what another broadcaster relays is delivered in order")
    numbers = [*range(10), *range(6), *range(4)]
    _delivered(trial, "IC-26", picky, [at for at, n in enumerate(numbers, 1) if n < 5], "a filter lets its events pass")
    _delivered(trial, "IC-27", third, [each for each in every if each % 3 == 0], "a skip lets its events pass")
    _probe_broadcaster(trial, teller, stranger)
    _judge_replay(trial, near)
    _asks(trial, "icrc72_get_broadcaster_stats", "IC-35d")
    trial.judge_traps()
    stage = Stage(system, audit, teller, near, far, stranger)
    found = [each for each in judged(stage) if each.actor == trial.who]
    words = [f"round {each.round}: {each.cheat}: {each.evidence}" for each in found]
    trial.judge("IC-51", "the audit accuses it of nothing", len(trial.recorder.happenings), words)
    return trial


def _event(trial: Trial, number: int, source: Principal, namespace: str = NAME) -> m.Event:
    return m.Event(number, None, trial.network.time(0), namespace, map_({"n": nat(number)}), source, ())


def _probe_broadcaster(trial: Trial, teller: Principal, stranger: Principal) -> None:
    forged = _probe(trial, stranger, methods.PUBLISH, (_event(trial, 30, stranger),))
    _expect(trial, "IC-41", "who is not assigned to it publishes nothing", forged, "Unauthorized")
    planted = _probe(trial, stranger, methods.PUBLISH, (_event(trial, 31, teller),))
    _expect(trial, "IC-41 source", "nobody publishes in another's name", planted, "Unauthorized")
    publisher = trial.system.app(teller).publisher
    known = () if publisher is None else (publisher.state.log[4].event,)
    again = _probe(trial, teller, methods.PUBLISH, known)
    _expect(trial, "IC-42b", "an event that it has is Ok again", again, "Ok")
    nothing = _probe(trial, stranger, methods.CONFIRM, (10**9,))
    value = None if nothing is None else cast("Variant[str, object]", nothing.value)
    results = value.value if value is not None and value.tag == "itemized" else None
    _expect(
        trial,
        "IC-44",
        "what was never sent cannot be confirmed",
        None if nothing is None else Seen(nothing.at, results),
        "NotFound",
    )
    many = tuple(_event(trial, 40 + each, stranger) for each in range(101))
    batch = _probe(trial, stranger, methods.PUBLISH, many)
    _expect(trial, "IC-30a", "the 101st item of a batch ends the answer", batch, "GenericBatchError", at=100)


def _judge_replay(trial: Trial, near: Principal) -> None:
    """A replay goes to whoever asked for it, whole, and to nobody else."""
    app = trial.system.app(near)
    if app.subscriber is not None:
        app.subscriber.state.ever_asked = True
    asked = m.ReplayRegistration(NAME, (3, 8), ())
    trial.say(near, trial.system.orchestrator, methods.REGISTER_REPLAY, (asked,))
    trial.network.step(200)
    got: dict[Principal, list[int]] = {}
    for seen in trial.seen(_HANDLE, "send", by=trial.who):
        for each in cast("tuple[m.EventNotification, ...]", seen.value):
            if read(each.headers).replay is not None:
                got.setdefault(seen.at.receiver, []).append(each.eventId)
    mine = list(dict.fromkeys(got.pop(near, [])))
    trial.judge("RP-8", "a replay is delivered whole", 5, [] if mine == [3, 4, 5, 6, 7] else [f"{mine}, not 3 to 7"])
    others = [f"{each} to {who.text}" for who, each in got.items()]
    trial.judge("RP-8 others", "nobody else gets a replay", 5, others)


# The orchestrator


def try_orchestrator(candidate: Candidate, seed: bytes = b"", refuse: int = 10) -> Trial:
    """Try an orchestrator, made with the principal of the only broadcaster: registrations, queries, a replay."""
    network = CanisterNetwork(1, seed=seed, schedule=Schedule(seed, 1, refuse))
    me = network.next_id(0)
    spare = deploy(CanisterNetwork(1), broadcasters=())
    system = PubSub(network, "orchestrator", me, spare.settings)
    trial = Trial(network, system, candidate)
    broadcaster = Principal((1).to_bytes(8, "big") + b"\1\1")
    trial.who = network.create(0, candidate.make(broadcaster))
    network.create(0, RoleCanister([Broadcaster(me, system.settings)]))
    network.step(40)
    teller, listener, stranger = trial.teller(0, (NAME,)), trial.actor(0, None, NAME), trial.actor(0)
    network.step(200)
    trial.emit(teller, NAME, 8)
    trial.disturb(stranger, "icrc72_register_publication", "icrc77_register_replay")
    _upgrade_orchestrator(trial, broadcaster)
    trial.emit(teller, NAME, 8)
    network.step(200)
    _delivered(trial, "I1", listener, list(range(1, 17)), "who subscribed gets every event of who registered")
    _probe_registry(trial, listener, stranger)
    _probe_queries(trial, broadcaster)
    _probe_replays(trial, listener, stranger)
    trial.judge_traps()
    return trial


def _upgrade_orchestrator(trial: Trial, broadcaster: Principal) -> None:
    honest = trial.candidate
    trial.candidate = Candidate(lambda _me: honest.make(broadcaster))
    trial.upgrade()
    trial.candidate = honest


def _probe_registry(trial: Trial, listener: Principal, stranger: Principal) -> None:
    def publication(by: Principal, name: str, *config: tuple[str, Value]) -> Seen | None:
        return _probe(trial, by, methods.REGISTER_PUBLICATION, (m.PublicationRegistration(name, config),))

    def subscription(by: Principal, name: str, *config: tuple[str, Value]) -> Seen | None:
        return _probe(trial, by, methods.REGISTER_SUBSCRIPTION, (m.SubscriptionRegistration(name, config),))

    cases: list[tuple[str, str, Callable[[], Seen | None], str]] = [
        ("IC-31", "a new publication is registered", lambda: publication(stranger, "trial.new"), "Ok"),
        (
            "IC-31 system",
            "nobody publishes in a system namespace",
            lambda: publication(stranger, system_namespace("publisher", stranger)),
            "Unauthorized",
        ),
        (
            "IC-31 creator",
            "who is not allowed does not join",
            lambda: publication(stranger, NAME),
            "UnauthorizedPublisher",
        ),
        ("IC-30b", "a bad namespace is improper", lambda: publication(stranger, "no spaces"), "ImproperConfig"),
        (
            "IC-30b keys",
            "an unknown key is improper",
            lambda: publication(stranger, "trial.keys", ("icrc72:nonsense", nat(1))),
            "ImproperConfig",
        ),
        (
            "IC-32 system",
            "nobody subscribes to another's alerts",
            lambda: subscription(stranger, system_namespace("subscriber", listener)),
            "Unauthorized",
        ),
        (
            "IC-26",
            "a bad filter is improper",
            lambda: subscription(stranger, "trial.filter", (FILTER, text("((("))),
            "ImproperConfig",
        ),
        (
            "IC-34",
            "only a controller changes a publication",
            lambda: _probe(
                trial,
                stranger,
                methods.UPDATE_PUBLICATION,
                (m.PublicationUpdate(_named(NAME), (REPLAY, map_({}))),),
            ),
            "Unauthorized",
        ),
        (
            "IC-34 unknown",
            "what is not there is not deleted",
            lambda: _probe(trial, stranger, methods.DELETE_PUBLICATION, (m.PublicationDelete(_named("trial.none")),)),
            "code 1",
        ),
    ]
    for rule, about, run, wanted in cases:
        _expect(trial, rule, about, run(), wanted)
    first, again = subscription(stranger, "trial.twice"), subscription(stranger, "trial.twice")
    same = first is not None and again is not None and first.value == again.value
    trial.judge("IC-32", "a subscription that is registered has one id", 2, [] if same else [f"{first}, then {again}"])
    many = tuple(m.PublicationRegistration("no spaces", ()) for _ in range(101))
    batch = _probe(trial, stranger, methods.REGISTER_PUBLICATION, many)
    _expect(trial, "IC-30a", "the 101st item of a batch ends the answer", batch, "GenericBatchError", at=100)


def _named(namespace: str) -> Variant[Literal["namespace"], str]:
    return Variant("namespace", namespace)


def _ask(trial: Trial, method: Method[A, R], value: A) -> R | None:
    answer = trial.network.query(ANONYMOUS, trial.who, method.name, method.argument(value))
    return method.result(answer.data) if answer.ok else None


def _probe_queries(trial: Trial, broadcaster: Principal) -> None:
    listed = _ask(trial, methods.GET_PUBLICATIONS, m.ByText(None, None, None)) or ()
    names = [each.namespace for each in listed]
    trial.judge("IC-35b", "it lists what is registered", 1, [] if NAME in names else [f"{names} without {NAME}"])
    trial.judge("IC-35a", "lists are in order", len(names), [] if names == sorted(names) else [f"{names}"])
    first = names[0] if names else ""
    page = [each.namespace for each in _ask(trial, methods.GET_PUBLICATIONS, m.ByText(first, 1, None)) or ()]
    trial.judge(
        "IC-35a pages", "a page begins behind `prev`", 1, [] if page == names[1:2] else [f"{page} after {first!r}"]
    )
    brokers = [
        each.broadcaster for each in _ask(trial, methods.GET_BROADCASTERS, m.ByPrincipal(None, None, None)) or ()
    ]
    words = [] if brokers == [broadcaster] else [f"{[each.text for each in brokers]}"]
    trial.judge("IC-35b broadcasters", "it lists its broadcasters", 1, words)


def _probe_replays(trial: Trial, listener: Principal, stranger: Principal) -> None:
    def replay(by: Principal, name: str, start: int, end: int | None) -> Seen | None:
        return _probe(trial, by, methods.REGISTER_REPLAY, (m.ReplayRegistration(name, (start, end), ()),))

    _expect(trial, "RP-3 range", "an empty range is improper", replay(listener, NAME, 3, 3), "ImproperConfig")
    _expect(trial, "RP-3", "a publication that is not there", replay(listener, "trial.no", 1, 2), "PublicationNotFound")
    _expect(trial, "RP-3 who", "who has no subscription", replay(stranger, NAME, 1, 2), "SubscriptionNotFound")
    _expect(trial, "RP-3 wide", "a range that is too large", replay(listener, NAME, 1, 10**6), "RangeTooLarge")
    _expect(trial, "RP-2", "a replay is registered", replay(listener, NAME, 2, 6), "Ok")
    report = (m.ReplayStatusUpdate(1, m.state_of("completed", 4, "")),)
    told = _probe(trial, stranger, methods.REPLAY_STATUS, report)
    _expect(trial, "RP-5 who", "only the publisher reports", told, "Unauthorized")
    trial.network.step(200)
    listed = _ask(trial, methods.GET_REPLAYS, m.ByNat(None, None, None)) or ()
    states = [each.status for each in listed if each is not None]
    done = any(each.tag == "completed" and each.value == 4 for each in states)
    trial.judge("RP-5", "a replay ends as completed with its events", 1, [] if done else [f"{states}"])
    canceled = _probe(trial, listener, methods.CANCEL_REPLAY, (1,))
    _expect(trial, "RP-11", "what is over cannot be canceled", canceled, "CannotCancel")
