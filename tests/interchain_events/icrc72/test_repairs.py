"""How gaps are made whole where it is not simple (IC-47b, RP-10)."""

from dataclasses import replace
from typing import Any

import pytest
from support.icrc72.canister_apps import NAME, Lab, Sink, Source

from interchain_events.icrc72 import Schedule, keys
from interchain_events.icrc72.broadcaster.accept import Acceptance
from interchain_events.icrc72.client import FILTER, REPLAY, SKIP
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.settings import DEFAULTS


def after_a_suspension(
    *subscriptions: tuple[str, dict[str, Any]],
) -> tuple[Lab, Principal, Principal]:
    lab = Lab(settings=replace(DEFAULTS, queue_notifications=4))
    source = lab.install(Source, 0, publications={NAME: {REPLAY: True}})
    reader = lab.install(Sink, 1, subscriptions=dict(subscriptions))
    lab.step(80)
    lab.network.stop(reader)
    lab.emit(source, *range(1, 41))
    lab.network.start(reader)
    lab.step(1200)
    return lab, source, reader


def test_rp_10c_each_subscription_that_matches_asks_with_its_own_filter_and_skip() -> None:
    one, two, three = {FILTER: "n < 10"}, {FILTER: "n > 30"}, {SKIP: [10, 5]}
    lab, _, reader = after_a_suspension((NAME, one), ("org.**", two), ("org.example.*", three))
    assert sorted(lab.app(reader).data) == [*range(1, 10), 15, 25, *range(31, 41)]
    asked = {(each.filter, each.skip) for each in lab.system.registry.state.replays.values()}
    assert asked == {("n < 10", None), ("n > 30", None), (None, (10, 5))}


def test_row_19_ic_45_rp_10c_a_suspended_subscriber_resumes_and_asks_for_all_unfiltered() -> None:
    lab, source, reader = after_a_suspension((NAME, {FILTER: "n < 10"}), ("org.**", {}))
    assert sorted(lab.app(reader).data) == list(range(1, 41))
    assert {(each.filter, each.skip) for each in lab.system.registry.state.replays.values()} == {
        (None, None)
    }
    assert keys.SUSPENDED in [each.code for each in lab.app(reader).subscriber.state.errors]
    lab.emit(source, 41, 42, rounds=50)
    assert lab.app(reader).data[-2:] == [41, 42]


@pytest.mark.parametrize("most", [3, 1000])
def test_rp_10c_a_gap_is_asked_for_in_parts_where_the_publication_allows_less(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subscriber remembers its two newest replays only (I9)."""
    lab = Lab(settings=replace(DEFAULTS, gaps=2))
    source, reader = lab.source_and_sink(publication={REPLAY: True, keys.MAX_RANGE: most})
    exit_ = lab.system.broadcaster(lab.broadcasters[1])
    notify = Acceptance._notify

    def loses(self: Any, it: Any, *rest: Any, **named: Any) -> list[int]:
        lost = self is exit_.acceptance and 3 <= it.event.eventId <= 12
        return [] if lost else notify(self, it, *rest, **named)

    monkeypatch.setattr(Acceptance, "_notify", loses)
    lab.emit(source, *range(1, 15), then=1500)
    assert sorted(lab.app(reader).data) == list(range(1, 15))
    asked = list(lab.system.registry.state.replays)
    assert len(asked) == (4 if most == 3 else 1)
    assert {each.state for each in lab.system.registry.state.replays.values()} == {"completed"}
    assert list(lab.app(reader).subscriber.state.own) == asked[-2:]


@pytest.mark.parametrize("seed", [0, 3])
def test_ic_47b_a_publisher_moves_only_if_its_entry_was_set_after_closing(
    seed: int,
) -> None:
    lab = Lab(broadcasters=(0, 0, 1), schedule=Schedule(b"%d" % seed, 2, 30))
    source, reader = lab.source_and_sink(rounds=100)
    lab.emit(source, *range(1, 21))
    publication = lab.system.registry.state.publications[1]
    old = publication.entries[source]
    assert lab.system.registry.move_publisher(NAME, source)
    lab.emit(source, *range(21, 61), then=1500)
    assert lab.app(reader).data == list(range(1, 61))
    assert publication.entries[source] != old


def test_ic_47b_a_removed_publishers_queue_is_reported_for_a_hundred_rounds() -> None:
    lab = Lab(broadcasters=(0, 0))
    source, reader = lab.source_and_sink(at=0)
    (entry,) = lab.system.registry.state.publications[1].entries[source]
    exit_ = lab.system.registry.state.exits[reader]
    assert exit_ not in {None, entry}
    lab.network.stop(exit_)
    lab.emit(source, 1, 2, rounds=5)

    def told() -> list[int]:
        stats = lab.ask("icrc72_get_broadcaster_stats", to=entry)
        return [
            value.value for name, value in stats if name == f"icrc72:drain:{source.text}:queued"
        ]

    assert told() == []
    assert lab.system.registry.move_publisher(NAME, source)
    lab.step(30)
    assert told() == [2]
    lab.network.start(exit_)
    for _ in range(200):
        lab.step()
        if told() == [0]:
            break
    lab.step(99)
    assert told() == [0]
    lab.step(40)
    assert told() == []


def test_row_30_ic_47d_ic_49f_an_exit_wrongly_declared_dead_serves_again_without_loss(
    lab: Lab,
) -> None:
    source, reader = lab.source_and_sink(publication={REPLAY: True})
    exit_ = lab.broadcasters[1]
    lab.emit(source, 1, 2, 3, rounds=20)
    lab.network.stop(exit_)
    lab.step(80)
    assert lab.system.registry.state.brokers[exit_].dead
    lab.emit(source, *range(4, 9), rounds=20)
    lab.network.start(exit_)
    lab.step(900)  # and no further event shows what is missing
    assert lab.app(reader).data == list(range(1, 9))
    assert lab.app(reader).subscriber.state.exit == exit_
    broker = lab.system.registry.state.brokers[exit_]
    assert (broker.dead, broker.sick) == (False, False)
    lab.emit(source, 9, rounds=60)
    assert lab.app(reader).data[-1] == 9
