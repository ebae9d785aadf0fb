"""The conformance kit and the audit: honest roles break nothing, wrong ones are named: IC-50,
IC-51, RP-14.
"""

from collections.abc import Callable

import pytest
from support.icrc72.wrong_roles import NAME, WRONG, role

from interchain_events.icrc72 import CHEATS, CanisterNetwork, Schedule
from interchain_events.icrc72.cheats.stage import Cheat, run
from interchain_events.icrc72.conformance.publishers import try_publisher
from interchain_events.icrc72.conformance.servers import try_broadcaster, try_orchestrator
from interchain_events.icrc72.conformance.subscribers import try_subscriber
from interchain_events.icrc72.conformance.trial import Candidate, Trial
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal, canister_id


def handled(network: CanisterNetwork, who: Principal) -> list[int]:
    return list(network.canister(who).data)  # type: ignore[attr-defined]  # an `Actor`


def publish(network: CanisterNetwork, who: Principal, number: int) -> None:
    network.submit(ANONYMOUS, who, NAME, b"%d" % number)


TRIALS: dict[str, Callable[..., Trial]] = {
    "subscriber": lambda make, *drawn: try_subscriber(Candidate(make, handled=handled), *drawn),
    "publisher": lambda make, *drawn: try_publisher(Candidate(make, publish=publish), *drawn),
    "broadcaster": lambda make, *drawn: try_broadcaster(Candidate(make), *drawn),
    "orchestrator": lambda make, *drawn: try_orchestrator(Candidate(make), *drawn),
}


@pytest.mark.parametrize("seed", [0, 3, 7])
@pytest.mark.parametrize("name", TRIALS)
def test_rows_5_and_6_and_9_and_18_and_23_honest_roles_break_nothing(name: str, seed: int) -> None:
    trial = TRIALS[name](role(name), b"honest %d" % seed, 5 * seed)
    assert [each for each in trial.book.verdicts if not each.holds] == []
    assert all(each.shown for each in trial.book.verdicts)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_role_breaks_its_rules(name: str) -> None:
    make, *rules = WRONG[name]
    trial = TRIALS[name.partition(":")[0]](make)
    assert {*rules} <= {each.rule for each in trial.book.verdicts if not each.holds}


HONEST = {canister_id(0, 1), canister_id(1, 0)}
"""The broadcasters of the stage."""


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_rows_13_and_21_ic_50_rp_14_the_audit_names_the_cheat_with_evidence(cheat: Cheat) -> None:
    findings = run(cheat)
    mine = [each for each in findings if each.cheat == cheat.name]
    assert len({each.actor for each in mine}) == len(mine) >= 1
    assert all(each.evidence for each in mine)
    if cheat.role not in {"broadcaster", "relay"}:
        assert not {each.actor for each in findings} & HONEST


@pytest.mark.parametrize("refuse", [0, 30])
def test_ic_51_an_honest_stage_has_no_findings(refuse: int) -> None:
    assert run(schedule=Schedule(b"honest", refuse // 10, refuse)) == []


def test_ic_50_every_cheat_has_one_name() -> None:
    assert len({cheat.name for cheat in CHEATS}) == len(CHEATS)
