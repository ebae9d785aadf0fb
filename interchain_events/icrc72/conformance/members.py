"""The parts that the trials of publishers and subscribers share (IC-39, IC-44, IC-49).

Both kinds of members register at the orchestrator, and take and confirm notifications.
"""

from collections.abc import Mapping
from typing import Final

from interchain_events.icrc72 import methods
from interchain_events.icrc72.conformance.probes import Book
from interchain_events.icrc72.conformance.trial import Candidate, Trial
from interchain_events.icrc72.conformance.wording import (
    candid_text,
    ranges,
)
from interchain_events.icrc72.deployment import deploy
from interchain_events.icrc72.ic.canister import SYS_TRANSIENT
from interchain_events.icrc72.ic.messaging import Schedule
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.methods import (
    CONFIRM,
    HANDLE,
    is_ok,
)
from interchain_events.icrc72.namespaces import is_system, system_namespace

_CONFIRMING: Final = 20
"""The rounds in which a notification has to be confirmed. A canister may make calls before."""
PATIENCE: Final = 400
"""The rounds in which a candidate has to finish its last task."""
Notified = tuple[Principal, int]
"""A notification: the broadcaster that sent it, and its id there."""


def begin(
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


def registered(trial: Trial, role: str) -> tuple[str, ...]:
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


def judge_inbox(trial: Trial, role: str, stranger: Principal) -> None:
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
