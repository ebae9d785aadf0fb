"""The drafts' own text against replays: ranges, alerts as they are written, payment, and the
archive as a log.
"""

from typing import Any

import pytest
from support.icrc72.canister_apps import NAME, Lab, Source

from interchain_events.icrc72 import keys
from interchain_events.icrc72.alerts import BrokerAlert, MemberAlert
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.client import FILTER, REPLAY, SKIP
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.facts import (
    EVERYBODY,
    WIDE,
    BegunFact,
    Delivering,
    DueFact,
    Fact,
    Forwarding,
    Handing,
    RelayFact,
    ReplayFact,
    ReplayRelayerFact,
    ReplayRelayFact,
    Width,
)
from interchain_events.icrc72.ic.network import CYCLES
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import ByNat
from interchain_events.icrc72.values import (
    Skip,
    Value,
    array,
    blob,
    class_,
    map_,
    nat,
    option,
    text,
)

ME, YOU, OTHER = Principal(b"me"), Principal(b"you"), Principal(b"other")


@pytest.mark.parametrize("order", [b"0 - 0", b"1 %d 0" % (1 << 250)], ids=["open", "bounded"])
def test_row_2_rp_2_s001_002_a_range_covers_the_events_of_every_publisher(
    order: bytes, lab: Lab
) -> None:
    other = lab.network.next_id(1)
    allowed = {REPLAY: True, keys.list_key("publishers:allowed"): [bytes(other)]}
    made = []
    for subnet, config in enumerate((allowed, {REPLAY: True})):
        made.append(lab.install(Source, subnet, publications={NAME: config}))
        lab.step(60)
    assert made[1] == other
    for number in range(1, 11):
        lab.emit(made[number % 2], number, then=40)
    reader = lab.asks(order, rounds=400)
    assert sorted(number for number, _, _ in lab.app(reader).data) == list(range(1, 11))
    assert [each.status for each in lab.ask("icrc77_get_replays", ByNat())] == [("completed", 10)]


@pytest.mark.parametrize(
    ("config", "came"),
    [
        pytest.param(
            {FILTER: "n == 3"},
            [(3, 1, 9)],
            id="filter",
        ),
        pytest.param(
            {SKIP: [3, 1]},
            [(1, 1, 9), (4, 1, 9), (7, 1, 9)],
            id="skip",
        ),
    ],
)
def test_row_9_rp_6_s001_013_034_the_first_notification_tells_the_end_whatever_filters_leave_out(
    config: dict[str, Any], came: list[tuple[int, int, int]], lab: Lab
) -> None:
    lab.published(9)
    reader = lab.asks(b"1 - 0", rounds=400, **config)
    assert lab.app(reader).data == came
    assert 1 in lab.app(reader).subscriber.state.over


def test_s001_026_who_confirms_nothing_gets_the_replay_once(lab: Lab) -> None:
    lab.published(19)
    probe = lab.probe(1)
    lab.subscribe(probe)
    lab.step(30)
    for isolated in (False, True):
        lab.replay(probe, 1, 20, (keys.REPLAY_ISOLATED, isolated))
        lab.step(200)
        came = [note.eventId for _, note in lab.probed(probe).notified if note.namespace == NAME]
        assert came == list(range(1, 20))
        lab.probed(probe).notified.clear()


# Alerts as the drafts write them

SHAPES: list[tuple[Fact, Any, str, Value]] = [
    (
        ReplayFact(7),
        Delivering(NAME, ME, YOU, "n == 1", Skip(5, 1), OTHER),
        keys.REPLAY_ADD,
        array(
            [
                nat(7),
                text(NAME),
                blob(ME),
                blob(YOU),
                text("n == 1"),
                array([nat(5), nat(1)]),
                blob(OTHER),
            ]
        ),
    ),
    (
        ReplayFact(7),
        Delivering(NAME, ME, YOU, None, None, None),
        keys.REPLAY_ADD,
        array([nat(7), text(NAME), blob(ME), blob(YOU), option(None), option(None), option(None)]),
    ),
    (
        ReplayRelayFact(7),
        Forwarding(NAME, ME, YOU, "n", Skip(2)),
        keys.REPLAY_RELAY_ADD,
        array([nat(7), text(NAME), blob(ME), blob(YOU), text("n"), array([nat(2), nat(0)])]),
    ),
    (
        ReplayRelayerFact(7),
        Handing(NAME, ME),
        keys.REPLAY_RELAYER_ADD,
        array([nat(7), text(NAME), blob(ME)]),
    ),
    (
        RelayFact(NAME, ME, YOU),
        Width("n", Skip(2)),
        keys.RELAY_ADD,
        array(
            [
                text(NAME),
                blob(ME),
                option(blob(YOU)),
                option(text("n")),
                option(array([nat(2), nat(0)])),
            ]
        ),
    ),
]


@pytest.mark.parametrize(("fact", "value", "key", "entry"), SHAPES)
def test_s001_042_043_alerts_are_written_as_the_drafts_write_them_and_read_back(
    fact: Fact, value: Any, key: str, entry: Value
) -> None:
    made = BrokerAlert({fact: value}, ())
    assert made.data() == map_({key: array([entry])})
    assert BrokerAlert.read(made.data()) == made


def test_s001_045_a_removal_is_nested_as_the_draft_has_it() -> None:
    replay = BrokerAlert({}, (ReplayFact(7),))
    assert replay.data() == map_({keys.REPLAY_REMOVE: array([array([nat(7)])])})
    relay = BrokerAlert({}, (ReplayRelayFact(7),))
    assert relay.data() == map_({keys.REPLAY_RELAY_REMOVE: array([nat(7)])})
    due = MemberAlert({}, (DueFact(7),))
    assert due.data("publisher") == map_({keys.PUBLISHER_REPLAY_REMOVE: array([nat(7)])})
    begun = MemberAlert({}, (BegunFact(7),))
    nested = map_({keys.SUBSCRIBER_REPLAY_REMOVE: array([array([nat(7)])])})
    assert begun.data("subscriber") == nested


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(
            nat(7),
            id="number",
        ),
        pytest.param(
            array([nat(7)]),
            id="array of a number",
        ),
        pytest.param(
            array([array([nat(7)])]),
            id="nested number",
        ),
        pytest.param(
            array([nat(7), text(NAME), blob(YOU), blob(ME)]),
            id="array of parts",
        ),
        pytest.param(
            array([array([nat(7), text(NAME), blob(YOU), blob(ME)])]),
            id="nested parts",
        ),
    ],
)
@pytest.mark.parametrize(
    ("key", "fact"),
    [
        (keys.REPLAY_REMOVE, ReplayFact(7)),
        (keys.REPLAY_RELAY_REMOVE, ReplayRelayFact(7)),
        (keys.REPLAY_RELAYER_REMOVE, ReplayRelayerFact(7)),
    ],
)
def test_s001_044_045_a_removal_is_read_in_every_nesting(
    key: str, fact: Fact, written: Value
) -> None:
    assert BrokerAlert.read(map_({key: written})) == BrokerAlert({}, (fact,))


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        pytest.param(
            array([nat(7), nat(8)]),
            [7, 8],
            id="two numbers",
        ),
        pytest.param(
            array([array([nat(7), nat(8)]), nat(9)]),
            [7, 8, 9],
            id="nested and plain",
        ),
    ],
)
def test_s001_045_several_ids_are_read_in_every_nesting(written: Value, ids: list[int]) -> None:
    alert = MemberAlert.read(map_({keys.SUBSCRIBER_REPLAY_REMOVE: written}))
    assert alert == MemberAlert({}, tuple(map(BegunFact, ids)))


@pytest.mark.parametrize("nested", [False, True])
def test_s000_151_s001_044_an_entry_may_stand_alone_and_without_what_is_optional(
    nested: bool,
) -> None:
    for key, parts, fact, value in (
        (
            keys.REPLAY_RELAYER_ADD,
            [nat(7), text(NAME), blob(ME)],
            ReplayRelayerFact(7),
            Handing(NAME, ME),
        ),
        (
            keys.REPLAY_ADD,
            [nat(7), text(NAME), blob(ME), blob(YOU), option(text("n")), option(None)],
            ReplayFact(7),
            Delivering(NAME, ME, YOU, "n", None, None),
        ),
        (keys.RELAY_ADD, [text(NAME), blob(ME)], RelayFact(NAME, ME, EVERYBODY), WIDE),
    ):
        entry: Value = array(parts)
        written = array([entry]) if nested else entry
        assert BrokerAlert.read(map_({key: written})) == BrokerAlert({fact: value}, ())


def test_an_alert_that_cannot_be_read_says_which_entry() -> None:
    with pytest.raises(ConfigError, match="replay_relayer:add has 3 parts, not 2"):
        BrokerAlert.read(map_({keys.REPLAY_RELAYER_ADD: array([array([nat(7), text(NAME)])])}))
    unknown = map_({"icrc99:unknown:add": array([nat(1)])})
    assert BrokerAlert.read(unknown) == BrokerAlert({}, ())
    assert MemberAlert.read(unknown) == MemberAlert({}, ())


# Payment


CYCLES_PRICE = class_(("perEvent", nat(5)), ("currency", text("cycles")))


def test_row_8_rp_4_r4_s001_069_a_ledger_with_a_fee_pays_everybody_less_the_fee(
    lab: Lab,
) -> None:
    ledger, _, price = lab.with_ledger(fee=10)
    source = lab.published(60, **{keys.PRICING: price})
    probe = lab.probe(1)
    lab.subscribe(probe)
    ledger.give(probe, 1000, 510)
    assert lab.replay(probe, 1, 101).tag == "Ok"
    lab.step(300)
    assert ledger.balances[source] == 300 - 10
    assert ledger.balances[probe] == 1000 - 510 + 200 - 10
    assert ledger.balances[lab.orchestrator] == 0
    assert ledger.total() == 1000


def test_s001_073_cycles_pay_a_replay_and_what_is_not_used_comes_back(lab: Lab) -> None:
    source = lab.published(6, **{keys.PRICING: CYCLES_PRICE})
    reader = lab.asks(b"1 101 700", rounds=400)
    cycles = [lab.network.cycles(each) - CYCLES for each in (source, reader, lab.orchestrator)]
    assert cycles == [30, -30, 0]


def test_s001_073_cycles_run_out(lab: Lab) -> None:
    lab.published(6, **{keys.PRICING: CYCLES_PRICE})
    reader = lab.asks(b"1 101 499", rounds=400)
    (refused,) = lab.app(reader).data
    assert refused == ("PaymentRequired", "perEvent=5;count=100;amount=500;currency=cycles")
    assert lab.network.cycles(reader) == CYCLES
    ticket = lab.call(reader, "ask", b"1 101 %d" % (CYCLES + 1))
    lab.step(5)
    assert ticket.answer is not None
    assert f"the canister has {CYCLES}" in ticket.answer.message


def test_s001_034_an_entry_without_our_figures_completes_a_replay_and_is_paid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Broadcaster._stats

    def terse(self: Broadcaster, caller: Principal, time: int) -> Any:
        return tuple(each for each in told(self, caller, time) if not each[0].startswith("icrc77:"))

    monkeypatch.setattr(Broadcaster, "_stats", terse)
    lab = Lab()
    source = lab.published(6, **{keys.PRICING: CYCLES_PRICE})
    reader = lab.asks(b"1 101 700", rounds=400)
    assert [each.status for each in lab.ask("icrc77_get_replays", ByNat())] == [("completed", 6)]
    assert [lab.network.cycles(each) - CYCLES for each in (source, reader, lab.orchestrator)] == [
        30,
        -30,
        0,
    ]


def test_rp_4_whoever_asks_pays_and_drains_no_orchestrator_and_no_broadcaster(lab: Lab) -> None:
    source = lab.published(6, **{keys.PRICING: CYCLES_PRICE})
    reader = lab.asks(b"1 101 700", rounds=400)
    before = {each: lab.network.cycles(each) for each in lab.network.running()}
    lab.network.stop(source)
    for _ in range(6):  # two are over the quota
        lab.call(reader, "ask", b"1 101 700")
    lab.step(100)
    for number in range(2, 6):
        lab.answer(
            reader_probe := lab.probe(1),
            lab.orchestrator,
            "icrc77_cancel_replay",
            (number, number, 999),
        )
        assert lab.network.cycles(reader_probe) == CYCLES
    lab.network.start(source)
    lab.step(1500)
    after = {each: lab.network.cycles(each) for each in before}
    kept = (lab.orchestrator, *lab.broadcasters)
    assert {each: after[each] for each in kept} == {each: before[each] for each in kept}
    assert after[source] - before[source] == before[reader] - after[reader] == 4 * 30
    assert len(lab.app(reader).data) == 6 + 2  # events, which are handled once, and refusals
