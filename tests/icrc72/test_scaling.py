"""What an orchestrator does for its members grows with their number and no faster; who is not answered backs off."""

from itertools import pairwise
from typing import Any

import pytest

from pubsub_emulator.icrc72.client import App, Context, EventNotification
from pubsub_emulator.icrc72.ic.trace import Happening
from pubsub_emulator.icrc72.orchestrator.messenger import Messenger
from pubsub_emulator.icrc72.orchestrator.planner import Planner
from pubsub_emulator.testing.canisters import Canisters

NAME = "org.example.many"


class Source(App):
    def on_call(self, ctx: Context, method: str, _arg: bytes) -> None:
        self.emit(ctx, method, 1)
        ctx.reply(b"")


class Sink(App):
    def start(self) -> Any:
        return 0

    def on_event(self, _ctx: Context, _event: EventNotification) -> None:
        self.data += 1


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
        lab.call(source, NAME)
        lab.step(60)
        assert [lab.app(each).data for each in readers] == [1] * count
    return looked


def test_ic_38_the_work_for_members_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = _work(monkeypatch, 40), _work(monkeypatch, 160)
    assert few < 25 * 40  # a member that waits is not looked at in every round
    assert many < 6 * few


def test_ic_38d_system_events_of_many_members_go_together() -> None:
    lab = Canisters(broadcasters=(0,))
    calls: list[int] = []

    class Watch:
        def happened(self, happening: Happening) -> None:
            if happening.kind == "send" and (happening.sender, happening.method) == (
                lab.orchestrator,
                "icrc72_publish",
            ):
                calls.append(happening.number)

    lab.network.observers.append(Watch())
    lab.install(Source, 0, publications={NAME: {}})
    for _ in range(100):
        lab.install(Sink, 0, subscriptions={NAME: {}})
    lab.step(200)
    assert 0 < len(calls) < 40


def test_ic_49a_an_orchestrator_that_does_not_answer_is_asked_ever_less() -> None:
    lab = Canisters()
    lab.step(20)
    lab.network.stop(lab.orchestrator)
    asked: list[int] = []

    class Watch:
        def happened(self, happening: Happening) -> None:
            if happening.kind == "send" and happening.method == "icrc72_get_valid_broadcasters":
                asked.append(happening.round)

    lab.network.observers.append(Watch())
    lab.install(Sink, 0, subscriptions={NAME: {}})
    lab.step(400)
    gaps = [after - before for before, after in pairwise(asked)]
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 64
