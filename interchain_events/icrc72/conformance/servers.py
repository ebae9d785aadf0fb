"""Trials of broadcasters and orchestrators.

They judge IC-30 to IC-35, IC-41 to IC-47, IC-51, RP-3, RP-5 and RP-8.
"""

from typing import Final

from interchain_events.icrc72 import methods
from interchain_events.icrc72.audit.core import Audit
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.cheats.stage import Actor
from interchain_events.icrc72.conformance.further import try_changes, try_kinds
from interchain_events.icrc72.conformance.probes import Book, Probes
from interchain_events.icrc72.conformance.trial import ActorLine, Candidate, Trial
from interchain_events.icrc72.conformance.wording import ranges
from interchain_events.icrc72.deployment import PubSub, deploy
from interchain_events.icrc72.headers import read
from interchain_events.icrc72.ic.messaging import Schedule
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import Principal, canister_id
from interchain_events.icrc72.keys import FILTER, REPLAY, SKIP
from interchain_events.icrc72.role import RoleCanister
from interchain_events.icrc72.settings import DEFAULTS

NAME: Final = "trial.events"
"""The namespace of the events of a trial."""
_OTHER: Final = "trial.other"
"""The namespace of events that another broadcaster relays to the candidate."""


def _data(trial: Trial, who: Principal) -> list[int]:
    """Return the ids of the events that an actor has handled."""
    app = trial.network.canister(who)
    return list(app.data) if isinstance(app, Actor) else []


def try_broadcaster(
    candidate: Candidate,
    seed: bytes = b"",
    refuse: int = 10,
    *,
    with_: tuple[str, ...] = (),
    further: bool = True,
) -> Trial:
    """Try a broadcaster.

    It is entry and exit for members of its subnet, and relays to and from another broadcaster. One
    of its subscribers has a filter, one has a skip, and one is stopped for a while. It is tried
    with strangers, an upgrade and a replay, and judged by the audit, too (IC-51). With `further`,
    there is a second network with other kinds of publications (`try_kinds`).
    """
    network = CanisterNetwork(2, seed=seed, schedule=Schedule(seed, 1, refuse))
    system = deploy(network, broadcasters=(1,))
    trial = Trial(system, candidate, Book("broadcaster", with_))
    system.registry.add_broadcaster(network.next_id(0))
    trial.install(0)
    system.broadcasters.append(trial.who)
    audit = Audit(system.orchestrator, system.broadcasters)
    network.observers.append(audit)
    network.step(40)
    teller = trial.actor(0, {NAME: {REPLAY: True}})
    near = trial.actor(0, None, {NAME: {}})
    far = trial.actor(1, None, {NAME: {}})
    picky = trial.actor(0, None, {NAME: {FILTER: "n < 5"}})
    third = trial.actor(0, None, {NAME: {SKIP: [3, 0]}})
    stranger = trial.actor(1)
    abroad = trial.actor(1, {_OTHER: {REPLAY: True}})
    guest = trial.actor(0, None, {_OTHER: {}})
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
    every = list(range(1, 21))
    numbers = [*range(10), *range(6), *range(4)]
    trial.book.same("IC-43", _data(trial, near), every)
    trial.book.same("IC-43 relay", _data(trial, far), every)
    trial.book.same("IC-43 relayed", _data(trial, guest), every[:10])
    small = [identifier for identifier, number in enumerate(numbers, 1) if number < 5]
    trial.book.same("IC-26", _data(trial, picky), small)
    trial.book.same("IC-27", _data(trial, third), every[2::3])
    probes = Probes(trial.book, ActorLine(trial, stranger))
    probes.publishing(teller, NAME, network.time(0))
    known = tuple(trial.system.logs()[teller].values())[4:5]
    again = Probes(trial.book, ActorLine(trial, teller))
    again.expect("IC-42b", again.update(methods.PUBLISH, known), "Ok")
    _judge_replay(trial, near)
    probes.stats("broadcaster")
    trial.judge_messages()
    trial.judge_traps()
    broken = [
        f"round {finding.round}: {finding.cheat}: {finding.evidence}"
        for finding in audit.finish(system.logs(), network.running())
        if finding.actor == trial.who
    ]
    trial.book.judge("IC-51", len(trial.recorder.happenings), broken)
    if further:
        try_kinds(candidate, trial.book, seed, refuse)
    return trial


def _judge_replay(trial: Trial, near: Principal) -> None:
    """Judge that a replay of the events 3 to 7 reaches the subscriber that asked, and only it."""
    trial.replay(near, NAME, 3, 8)
    trial.network.step(200)
    sent: dict[Principal, list[int]] = {}
    for call, note in trial.items(methods.HANDLE, "send", by=trial.who):
        if read(note.headers).replay is not None:
            sent.setdefault(call.receiver, []).append(note.eventId)
    trial.book.same("RP-8", list(dict.fromkeys(sent.pop(near, []))), [3, 4, 5, 6, 7])
    broken = [f"{ranges(ids)} to {receiver.text}" for receiver, ids in sent.items()]
    trial.book.judge("RP-8 others", 5, broken)


def try_orchestrator(
    candidate: Candidate,
    seed: bytes = b"",
    refuse: int = 10,
    *,
    with_: tuple[str, ...] = (),
    further: bool = True,
) -> Trial:
    """Try an orchestrator: registrations, assignments, queries, an upgrade and a replay.

    Unlike other candidates, it is made with the principal of the only broadcaster. With `further`,
    another network has changes and deletions (`try_changes`).
    """
    network = CanisterNetwork(1, seed=seed, schedule=Schedule(seed, 1, refuse))
    me = network.next_id(0)
    system = PubSub(network, "orchestrator", me, DEFAULTS)
    # The id of the canister that is created after the candidate.
    broadcaster = canister_id(0, 1)
    trial = Trial(
        system, Candidate(lambda _me: candidate.make(broadcaster)), Book("orchestrator", with_)
    )
    trial.install(0)
    network.create(0, RoleCanister([Broadcaster(me, system.settings)]))
    network.step(40)
    teller = trial.actor(0, {NAME: {REPLAY: True}})
    listener = trial.actor(0, None, {NAME: {}})
    stranger = trial.actor(0)
    network.step(200)
    trial.tell(teller, NAME, range(8))
    trial.disturb(stranger, methods.REGISTER_PUBLICATION.name, methods.REGISTER_REPLAY.name)
    trial.upgrade()
    trial.tell(teller, NAME, range(8))
    network.step(200)
    trial.book.same("I1", _data(trial, listener), list(range(1, 17)))
    probes = Probes(trial.book, ActorLine(trial, stranger))
    probes.registering("trial")
    probes.intruding(NAME)
    probes.listing(NAME, [broadcaster], every=True)
    probes.replaying(NAME, "trial", 4)
    trial.judge_messages()
    trial.judge_traps()
    if further:
        try_changes(candidate, trial.book, seed, refuse)
    return trial
