"""Several publishers of one namespace: which of them replay, in which order, at which price, and
that every replay ends.
"""

from dataclasses import replace
from typing import Any

import pytest
from support.icrc72.canister_apps import NAME, Lab, Source, err

from interchain_events.icrc72 import keys
from interchain_events.icrc72.client import REPLAY
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import ByNat
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import class_, nat, text

ALLOWED = keys.list_key("publishers:allowed")


def status(lab: Lab, number: int = 1) -> Any:
    return next(
        each.status for each in lab.ask("icrc77_get_replays", ByNat()) if each.replayId == number
    )


def sources(lab: Lab, *configs: dict[str, Any]) -> list[Principal]:
    """Sources on subnet 0, of which the first creates the publication and the others join it."""
    first = lab.network.next_id(0)
    others = [
        bytes(Principal((int.from_bytes(first[:8], "big") + at).to_bytes(8, "big") + first[8:]))
        for at in range(1, len(configs))
    ]
    made: list[Principal] = []
    for config in configs:
        given = config if made else {ALLOWED: others, **config}
        made.append(lab.install(Source, 0, publications={NAME: given}))
        lab.step(60)
    return made


def test_s001_068_only_publishers_that_advertise_it_replay_and_the_creator_first() -> None:
    lab = Lab(subnets=2, broadcasters=(0, 1))
    made = sources(lab, {}, {REPLAY: True}, {}, {REPLAY: True})
    for number in range(1, 9):
        lab.emit(made[number % 4], number, then=20)
    reader = lab.asks(b"0 -", rounds=600)
    # The others send nothing and are not asked. Each sends its own in order.
    assert [number for number, _, _ in lab.app(reader).data] == [1, 5, 3, 7]
    assert status(lab) == ("completed", 4)


def test_rp_3_nobody_advertises_it(lab: Lab) -> None:
    lab.publish(lab.probe())
    assert err(lab.replay(lab.follower(), 1, 3)) == keys.NO_REPLAY


@pytest.mark.parametrize("knows", ["nothing", "its alerts"])
def test_rp_13_a_publisher_not_told_of_a_replay_is_silent_from_assignment(
    knows: str,
) -> None:
    lab = Lab(
        subnets=2, broadcasters=(0, 1), settings=replace(DEFAULTS, max_concurrent=1, live_replays=9)
    )
    # It registers for no alerts, or takes them and never replays.
    probe = lab.probe() if knows == "nothing" else lab.member("publisher")
    lab.publish(probe, (keys.CAPABLE, True))
    follower = lab.follower()
    assert [lab.replay(follower, 1, 5).tag for _ in range(2)] == ["Ok", "Ok"]
    lab.step(100)
    assert [status(lab, number).tag for number in (1, 2)] == ["pending", "pending"]
    lab.step(150)
    assert status(lab) == ("errored", "publisher silent")
    # Its slot is free, so the next one begins, and ends as well.
    assert lab.system.registry.state.replays[2].path is not None
    lab.step(300)
    assert status(lab, 2) == ("errored", "publisher silent")


def test_rp_13_a_replay_without_a_broadcaster_ends_and_a_waiting_one_continues() -> None:
    lab = Lab(subnets=2, broadcasters=(0, 1), settings=replace(DEFAULTS, max_concurrent=1))
    probe = lab.probe()
    lab.publish(probe, (REPLAY, True))
    follower = lab.follower()
    waits = lab.follower()
    lab.step(30)
    assert lab.replay(follower, 1, 5).tag == "Ok"
    lab.step(150)
    # While the first has the only slot, the second waits for longer than a publisher may be silent.
    lab.system.registry.state.replays[1].heard = lab.network.time(0)
    lab.system.registry.state.replays[1].alerted = lab.network.time(0)
    assert lab.replay(waits, 1, 5).tag == "Ok"
    lab.step(250)
    assert status(lab, 2).tag == "pending"
    # The only broadcaster of both members' subnets dies.
    for each in lab.broadcasters:
        lab.network.uninstall(each)
    lab.step(60)
    assert status(lab, 1) == ("errored", "broadcaster died")
    lab.step(400)
    assert status(lab, 2) == ("errored", "no broadcaster")


def test_ic_31_a_publisher_that_joins_says_how_it_replays_and_changes_nothing_else(
    lab: Lab,
) -> None:
    creator, joiner = lab.probe(), lab.probe()
    lab.publish(creator, (ALLOWED, [bytes(joiner)]), (keys.MODE, "priority"), (keys.TRUSTED, True))
    for config in ((keys.MODE, "fifo"), (ALLOWED, []), (keys.TRUSTED, False)):
        assert err(lab.publish(joiner, config)) == "ImproperConfig"
    record = lab.system.registry.state.publications[1]
    assert joiner not in record.publishers
    assert lab.publish(joiner, (keys.MODE, "priority"), ("mine", 1)) == ("Ok", 1)
    assert (record.replays(creator), record.replays(joiner)) == (False, False)
    assert err(lab.publish(joiner, (keys.MODE, "fifo"))) == "ImproperConfig"
    assert lab.publish(joiner, (keys.CAPABLE, True), (keys.MAX_RANGE, 7)) == ("Ok", 1)
    assert (record.replays(creator), record.replays(joiner)) == (False, True)
    assert (record.max_range(creator, 9), record.max_range(joiner, 9)) == (9, 7)
    assert lab.publish(joiner) == ("Ok", 1)
    assert record.replays(joiner)
    assert err(lab.replay(lab.follower(), 1, 9)) == "RangeTooLarge"


def test_rp_4_each_publisher_has_its_own_price() -> None:
    lab = Lab(subnets=2, broadcasters=(0, 1))
    ledger, token, price = lab.with_ledger()
    own = class_(("perEvent", nat(2)), ("currency", text(f"icrc2:{token.text}")))
    made = sources(
        lab, {REPLAY: True, keys.PRICING: price}, {REPLAY: True, keys.PRICING: own}, {REPLAY: True}
    )
    for number in range(1, 7):
        lab.emit(made[number % 3], number, then=20)
    probe = lab.follower()
    ledger.give(probe, 10**9, 10**9)
    before = ledger.total()
    assert lab.replay(probe, 0, None) == ("Ok", 1)
    for _ in range(60):
        lab.step(10)
        lab.confirm_all(probe)
    assert status(lab) == ("completed", 6)
    assert [ledger.balances[each] for each in made] == [
        2 * amount - ledger.fee for amount in (5, 2, 5)
    ]
    assert ledger.total() == before


def test_rp_4_publishers_with_prices_in_several_currencies_are_not_asked_together(
    lab: Lab,
) -> None:
    _, _, price = lab.with_ledger()
    cycles = class_(("perEvent", nat(2)), ("currency", text("cycles")))
    sources(lab, {REPLAY: True, keys.PRICING: price}, {REPLAY: True, keys.PRICING: cycles})
    answer = lab.replay(lab.follower(), 0, None)
    assert err(answer) == "ImproperConfig"
    assert "several currencies" in answer.value.value
