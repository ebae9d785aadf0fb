"""Every cheat is named with its actor, nobody honest is: IC-50, IC-51, RP-14."""

import pytest

from pubsub_emulator.icrc72.cheats.catalogue import CHEATS
from pubsub_emulator.icrc72.cheats.stage import Cheat, run
from pubsub_emulator.icrc72.ic.principal import canister_id
from pubsub_emulator.icrc72.ic.schedule import Schedule

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
