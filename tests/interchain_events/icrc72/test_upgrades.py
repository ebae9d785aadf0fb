"""Upgrades in the middle of everything: what is kept, and what new code brings (IC-8, IC-47a,
IC-48, IC-49).
"""

from dataclasses import replace

import pytest
from support.icrc72.canister_apps import NAME, Lab, Sink, Source

from interchain_events.icrc72 import FILTER, REPLAY, App, RoleCanister, Schedule
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.orchestrator.core import Orchestrator
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import plain

OTHER = "org.example.b"


def upgraded(lab: Lab, who: Principal, made: App) -> None:
    lab.network.stop(who)
    lab.step(20)
    assert lab.network.upgrade(who, made)
    lab.network.start(who)


def test_ic_8_what_only_the_new_code_publishes_and_wants_is_registered(lab: Lab) -> None:
    source, reader = lab.source_and_sink()
    both = {NAME: {}, OTHER: {}}
    upgraded(
        lab, source, Source(lab.orchestrator, lab.settings, publications=both, subscriptions={})
    )
    upgraded(lab, reader, Sink(lab.orchestrator, lab.settings, publications={}, subscriptions=both))
    lab.step(60)
    for number, name in enumerate((NAME, OTHER), 1):
        lab.call(source, name, b"%d" % number)
        lab.step(20)
    assert lab.app(reader).data == [1, 2]


def test_ic_8_an_upgrade_mends_a_configuration_that_was_refused(lab: Lab) -> None:
    source, reader = lab.source_and_sink(publication={"own": "x" * 20_000}, own="x" * 20_000)
    lab.emit(source, 1, rounds=20)
    assert "at most 16384 bytes" in lab.app(source).publisher.state.mine[NAME].error
    assert "ImproperConfig" in lab.app(reader).subscriber.state.wanted[NAME].error
    mended = {NAME: {FILTER: "n > 0"}}
    upgraded(
        lab, reader, Sink(lab.orchestrator, lab.settings, publications={}, subscriptions=mended)
    )
    lab.step(20)
    upgraded(
        lab,
        source,
        Source(lab.orchestrator, lab.settings, publications={NAME: {}}, subscriptions={}),
    )
    lab.step(60)
    assert lab.app(reader).data == [1]


@pytest.mark.parametrize("refuse", [0, 20])
def test_rows_16_and_24_ic_47_ic_49_rp_7_all_are_upgraded_in_turn_while_events_and_replays_flow(
    refuse: int,
) -> None:
    settings = replace(DEFAULTS, queue_notifications=6, replay_events=2)
    lab = Lab(settings=settings, schedule=Schedule(b"upgrades", 2 if refuse else 0, refuse))
    source, reader = lab.source_and_sink(publication={REPLAY: True}, rounds=80)
    lab.network.stop(reader)
    lab.emit(
        source, *range(1, 41)
    )  # more than its queue holds: it will be suspended, resume and replay
    lab.network.start(reader)
    codes = {
        source: lambda: Source(
            lab.orchestrator, settings, publications={NAME: {REPLAY: True}}, subscriptions={}
        ),
        reader: lambda: Sink(lab.orchestrator, settings, publications={}, subscriptions={NAME: {}}),
        lab.orchestrator: lambda: RoleCanister([Orchestrator([], settings)]),
        **{
            each: lambda: RoleCanister([Broadcaster(lab.orchestrator, settings)])
            for each in lab.broadcasters
        },
    }
    for turn in range(3):
        for who, made in codes.items():
            lab.network.stop(who)
            for _ in range(40):
                lab.step()
                if lab.network.status(who) == "stopped":
                    break
            assert lab.network.upgrade(who, made())
            lab.network.start(who)
            lab.call(source, NAME, b"%d" % (41 + turn))
            lab.step(7)
    lab.step(1500)
    made = [plain(row.event.data)["n"] for row in lab.app(source).publisher.state.log]
    assert sorted(lab.app(reader).data) == sorted(made)
    assert len(made) > 50
