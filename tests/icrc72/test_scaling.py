"""What an orchestrator does for its members grows with their number and no faster; who is not answered backs off."""

from itertools import pairwise
from typing import Any

import pytest
from support.canister_apps import NAME, Sink, Source, emit, happenings

from pubsub_emulator.icrc72.orchestrator.messenger import Messenger
from pubsub_emulator.icrc72.orchestrator.planner import Planner
from pubsub_emulator.testing.canisters import Canisters


def _work(monkeypatch: pytest.MonkeyPatch, count: int) -> int:
    """How often members were looked at and facts compared until everybody has handled an event."""
    looked = 0

    def counted(original: Any) -> Any:
        def run(*given: Any) -> Any:
            nonlocal looked
            looked += 1
            return original(*given)

        return run

    with monkeypatch.context() as patch:
        patch.setattr(Messenger, "_tell_member", counted(Messenger._tell_member))
        patch.setattr(Planner, "sure", counted(Planner.sure))
        lab = Canisters()
        source = lab.install(Source, 0, publications={NAME: {}})
        readers = [lab.install(Sink, at % 2, subscriptions={NAME: {}}) for at in range(count)]
        lab.step(200)
        emit(lab, source, 1, rounds=60)
        assert [lab.app(each).data for each in readers] == [[1]] * count
    return looked


def test_ic_38_the_work_for_members_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = _work(monkeypatch, 20), _work(monkeypatch, 80)
    assert few < 25 * 20  # a member that waits is not looked at in every round
    assert many < 6 * few


def test_ic_38d_system_events_of_many_members_go_together() -> None:
    lab = Canisters(broadcasters=(0,))
    happened = happenings(lab)
    lab.install(Source, 0, publications={NAME: {}})
    for _ in range(100):
        lab.install(Sink, 0, subscriptions={NAME: {}})
    lab.step(200)
    sent = [each.method for each in happened if each.kind == "send" and each.sender == lab.orchestrator]
    assert 0 < sent.count("icrc72_publish") < 40


def test_ic_49a_an_orchestrator_that_does_not_answer_is_asked_ever_less() -> None:
    lab = Canisters()
    lab.step(20)
    lab.network.stop(lab.orchestrator)
    happened = happenings(lab)
    lab.install(Sink, 0, subscriptions={NAME: {}})
    lab.step(400)
    asked = [each.round for each in happened if (each.kind, each.method) == ("send", "icrc72_get_valid_broadcasters")]
    gaps = [after - before for before, after in pairwise(asked)]
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 64
