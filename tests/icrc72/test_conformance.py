"""The conformance kit: nothing is said against honest roles, and each wrong one breaks the rule that it breaks."""

import pytest
from support.wrong_roles import NAME, PUBLISHERS, SUBSCRIBERS, broadcasters, orchestrators, publisher, subscriber

from pubsub_emulator.icrc72.broadcaster.core import Broadcaster
from pubsub_emulator.icrc72.conformance.members import try_publisher, try_subscriber
from pubsub_emulator.icrc72.conformance.servers import try_broadcaster, try_orchestrator
from pubsub_emulator.icrc72.conformance.trial import Candidate, Trial
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.orchestrator.core import Orchestrator
from pubsub_emulator.icrc72.role import RoleCanister


def handled(network: CanisterNetwork, who: Principal) -> list[int]:
    return list(network.canister(who).data)  # type: ignore[attr-defined]  # an `Actor`


def publish(network: CanisterNetwork, who: Principal, number: int) -> None:
    network.submit(ANONYMOUS, who, NAME, b"%d" % number)


def broken(trial: Trial) -> list[str]:
    return [each.rule for each in trial.book.verdicts if not each.holds]


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_rows_5_and_6_and_9_and_18_and_23_honest_roles_break_nothing(seed: int) -> None:
    drawn = b"honest %d" % seed
    for trial in (
        try_subscriber(Candidate(subscriber(), handled=handled), drawn, 5 * seed),
        try_publisher(Candidate(publisher(), publish=publish), drawn, 5 * seed),
        try_broadcaster(Candidate(lambda me: RoleCanister([Broadcaster(me)])), drawn, 5 * seed),
        try_orchestrator(Candidate(lambda broker: RoleCanister([Orchestrator([broker])])), drawn, 5 * seed),
    ):
        assert [each for each in trial.book.verdicts if not each.holds] == []
        assert all(each.shown for each in trial.book.verdicts)


@pytest.mark.parametrize("name", SUBSCRIBERS)
def test_a_wrong_subscriber_breaks_its_rule(name: str) -> None:
    wrong, rule = SUBSCRIBERS[name]
    assert rule in broken(try_subscriber(Candidate(subscriber(wrong), handled=handled)))


@pytest.mark.parametrize("name", PUBLISHERS)
def test_a_wrong_publisher_breaks_its_rule(name: str) -> None:
    wrong, rule = PUBLISHERS[name]
    assert rule in broken(try_publisher(Candidate(publisher(wrong), publish=publish)))


@pytest.mark.parametrize("name", broadcasters())
def test_a_wrong_broadcaster_breaks_its_rule(name: str) -> None:
    make, *rules = broadcasters()[name]
    assert {*rules} <= {*broken(try_broadcaster(Candidate(make)))}


@pytest.mark.parametrize("name", orchestrators())
def test_a_wrong_orchestrator_breaks_its_rule(name: str) -> None:
    make, *rules = orchestrators()[name]
    assert {*rules} <= {*broken(try_orchestrator(Candidate(make)))}
