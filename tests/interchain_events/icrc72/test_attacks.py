"""What strangers try: floods, wide answers, memory, money (IC-7, IC-30, IC-41, IC-45, RP-4, I8,
I9).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from support.icrc72.canister_apps import NAME, Lab, Ledger, Sink

from interchain_events.icrc72 import Audit, keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.broadcaster.state import ServedSubscription
from interchain_events.icrc72.client import FILTER, REPLAY, App, Context, EventNotification
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import CANISTER_ERROR, ONE_WAY
from interchain_events.icrc72.ic.messaging import MessageLimits
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.services import codec
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import Value, blob, class_, map_, nat, of

SMALL = MessageLimits(message_bytes=20_000)
TIGHT = replace(DEFAULTS, batch_bytes=15_000, event_bytes=4_000)


@contextmanager
def without_traps(lab: Lab) -> Iterator[None]:
    """Nothing traps in what is done here: a role that traps has written half of what it meant
    to.
    """
    happened = lab.happenings()
    yield
    assert [(each.receiver.text, each.data) for each in happened if each.kind == "trap"] == []


def chain(teller: Principal, count: int, data: Callable[[int], Value] = nat) -> tuple[m.Event, ...]:
    """Events that follow one another."""
    return tuple(
        m.Event(at, at - 1 or None, 1, namespace=NAME, data=data(at), source=teller, headers=None)
        for at in range(1, count + 1)
    )


@pytest.mark.parametrize("place", ["orchestrator", "broadcaster"])
def test_ic_30_i8_a_flood_of_confirmations_is_answered_to_its_hundredth(place: str) -> None:
    lab = Lab(broadcasters=(0,))
    probe = lab.probe()
    to = lab.orchestrator if place == "orchestrator" else lab.broadcasters[0]
    with without_traps(lab):
        answer = lab.answer(probe, to, "icrc72_confirm_notifications", (7,) * 100_000)
    assert [each.value.tag for each in answer.value] == ["NotFound"] * 100 + ["GenericBatchError"]


def test_ic_44_what_is_confirmed_before_the_hundred_and_first_counts() -> None:
    lab = Lab(broadcasters=(0,), settings=replace(DEFAULTS, batch_items=2))
    teller, reader = lab.teller(), lab.follower(0)
    events = chain(teller, 2)
    lab.answer(teller, lab.broadcasters[0], "icrc72_publish", events)
    lab.step(5)
    numbers = [note.notificationId for _, note in lab.probed(reader).notified]
    answer = lab.answer(
        reader, lab.broadcasters[0], "icrc72_confirm_notifications", (*numbers, 999)
    )
    assert [each.tag for each in answer.value] == ["Ok", "Ok", "Err"]


def test_ic_41_i8_busy_from_where_the_ids_of_notifications_would_fill_the_answer() -> None:
    lab = Lab(broadcasters=(0,), limits=SMALL, settings=TIGHT)
    teller = lab.teller()
    core = lab.system.broadcaster(lab.broadcasters[0])
    crowd = {Principal(b"%d" % at): (ServedSubscription(at, None, None),) for at in range(3000)}
    core.state.subscribers[NAME] = crowd
    events = chain(teller, 5)
    with without_traps(lab):
        answer = lab.answer(teller, lab.broadcasters[0], "icrc72_publish", events)
    assert [len(each.value) if each.tag == "Ok" else each.value.tag for each in answer] == [
        3000,
        3000,
    ] + ["Busy"] * 3
    again = lab.answer(teller, lab.broadcasters[0], "icrc72_publish", events[2:])
    assert [each.tag for each in again[:2]] == ["Ok", "Ok"]


def test_ic_41_busy_holds_for_the_rest_of_the_chain() -> None:
    lab = Lab(broadcasters=(0,), settings=replace(DEFAULTS, store_bytes=450))
    teller = lab.teller()
    lab.follower(0)
    to = lab.broadcasters[0]
    events = chain(teller, 8, lambda _: blob(bytes(99)))
    assert lab.answer(teller, to, "icrc72_publish", events[:1])[0].tag == "Ok"
    answer = lab.answer(teller, to, "icrc72_publish", events[1:])
    assert [each.tag if each.tag == "Ok" else each.value.tag for each in answer] == [
        "Ok",
        *["Busy"] * 6,
    ]


class Echo(App):
    """Publishes two events for each that it gets, and one for each call."""

    def on_event(self, ctx: Context, _event: EventNotification) -> None:
        assert self.publisher is not None
        for name in [*self.publisher.state.mine] * 2:
            self.emit(ctx, name, {"n": 0})

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        self.emit(ctx, method, {"n": len(arg)})
        ctx.reply(b"")


def test_ic_45a_i9_a_circle_of_amplifying_canisters_leaves_room_for_others() -> None:
    settings = replace(DEFAULTS, queue_notifications=80, store_bytes=40_000)
    lab = Lab(broadcasters=(0,), settings=settings)
    names = [f"ring.n{at}" for at in range(6)]
    ring = [
        lab.install(Echo, publications={name: {}}, subscriptions={names[at - 1]: {}})
        for at, name in enumerate(names)
    ]
    source, reader = lab.source_and_sink(at=0, rounds=120)
    for name, who in zip(names, ring, strict=True):
        lab.call(who, name)
    state = lab.system.broadcaster(lab.broadcasters[0]).state
    for number in range(1, 4):
        lab.emit(source, number, rounds=10)
        assert lab.app(reader).data == list(range(1, number + 1))
        assert state.bytes_own == sum(state.bytes_by.values()) <= 40_000
        assert max(queue.live for queue in state.queues.values()) <= 80
    assert state.counts["busy"] > 30


def test_ic_38_i8_a_thousand_refusals_are_told_in_messages_that_fit() -> None:
    lab = Lab(broadcasters=(0,), limits=SMALL, settings=replace(TIGHT, alert_entries=40))
    victim = lab.member("subscriber")
    assert lab.subscribe(victim, name="**").tag == "Ok"
    lab.confirm_all(victim)
    long = ".".join("x" * 60 for _ in range(3))
    closed = ((keys.list_key("subscribers:allowed"), of([])),)
    with without_traps(lab):
        for at in range(8):
            if at == 4:
                lab.network.stop(lab.broadcasters[0])  # everything is told at once after this
            items = tuple(
                m.PublicationRegistration(f"{long}.n{at}n{each}", closed) for each in range(50)
            )
            lab.answer(lab.probe(), lab.orchestrator, "icrc72_register_publication", items)
        lab.network.start(lab.broadcasters[0])
        for _ in range(60):
            lab.step(2)
        lab.confirm_all(victim)
    assert not lab.system.registry.state.members["subscriber", victim].errors


def test_ic_7_an_answer_to_a_query_has_at_most_so_many_bytes() -> None:
    lab = Lab(limits=SMALL)
    owner = lab.probe()
    for at in range(4):
        lab.publish(owner, ("own", "x" * 9000), name=f"{NAME}{at}")
    arg = codec("icrc72_get_publications").args.encode
    assert lab.network.query(
        ANONYMOUS, lab.orchestrator, "icrc72_get_publications", arg(m.ByText(None, 1))
    ).ok
    whole = lab.network.query(
        ANONYMOUS, lab.orchestrator, "icrc72_get_publications", arg(m.ByText(None, 4))
    )
    assert whole.code == CANISTER_ERROR
    assert "20000 bytes" in whole.message


def test_i9_verdicts_about_strangers_are_forgotten() -> None:
    class Everybody(App):
        def update(self, ctx: Context, method: str, arg: bytes) -> None:
            (items,) = codec(method).args.decode(arg)
            ctx.reply(codec(method).rets.encode(tuple(False for _ in items)))

    lab = Lab()
    lists, owner = lab.install(Everybody), lab.probe()
    lab.publish(owner, (keys.icrc75_key("subscribers:allowed"), [bytes(lists), "friends"]))
    for stranger in [lab.probe() for _ in range(5)]:
        assert lab.subscribe(stranger).value.tag == "UnauthorizedSubscriber"
    publication = lab.system.registry.state.publications[1]
    assert len(publication.verdicts) > 1
    lab.step(20)
    assert publication.verdicts == publication.heard == {}


def priced(subnet: int) -> tuple[Lab, Ledger, Principal, Principal]:
    """A publisher's probe that sells replays at 5, and a subscriber's probe that has paid for a
    hundred.
    """
    lab = Lab()
    ledger, _, price = lab.with_ledger()
    teller, reader = lab.teller((REPLAY, True), (keys.PRICING, price)), lab.follower(subnet)
    ledger.give(reader, 1000, 500)
    lab.confirm_all(teller, reader)
    assert lab.replay(reader, 1, 101) == ("Ok", 1)
    lab.confirm_all(teller, reader)
    return lab, ledger, teller, reader


def report(lab: Lab, teller: Principal, tag: str, inside: Any = None) -> None:
    item = (m.ReplayStatusUpdate(1, Variant(tag, inside)),)
    assert lab.answer(teller, lab.orchestrator, "icrc77_replay_status", item) == (("Ok", 1),)


def replays(lab: Lab, teller: Principal, sent: int) -> None:
    """Let the publisher begin the replay and hand over so many events of it."""
    report(lab, teller, "running")
    headers = ((keys.REPLAYED, of(True)), (keys.REPLAY_ID, nat(1)))
    events = tuple(
        m.Event(
            at, None, 1, namespace=NAME, data=map_({"n": nat(at)}), source=teller, headers=headers
        )
        for at in range(1, sent + 1)
    )
    accepted = lab.answer(teller, lab.broadcasters[0], "icrc72_publish", events)
    assert [each.tag for each in accepted] == ["Ok"] * sent


@pytest.mark.parametrize(
    ("subnet", "end", "sent"),
    [
        (0, "completed", 3),
        (0, "canceled", 0),
        (1, "completed", 0),
        (1, "canceled", 3),
    ],
)
def test_rp_4_r4_nobody_is_paid_for_what_the_entry_did_not_accept(
    subnet: int, end: str, sent: int
) -> None:
    lab, ledger, teller, reader = priced(subnet)
    replays(lab, teller, sent)
    if end == "canceled":
        lab.answer(reader, lab.orchestrator, "icrc77_cancel_replay", (1,))
    report(lab, teller, end, 100)
    lab.confirm_all(teller, reader)
    lab.step(260)
    assert (ledger.balances[teller], ledger.total()) == (5 * sent, 1000)
    assert ledger.balances[reader] == 1000 - 5 * sent


def test_rp_4_the_report_counts_where_the_entry_is_dead() -> None:
    lab, ledger, teller, reader = priced(1)
    report(lab, teller, "running")
    lab.network.uninstall(lab.broadcasters[0])
    lab.answer(reader, lab.orchestrator, "icrc77_cancel_replay", (1,))
    report(lab, teller, "canceled", 7)
    lab.step(200)
    assert (ledger.balances[teller], ledger.total()) == (35, 1000)


def test_rp_4_r4_who_cancels_when_everything_was_sent_pays_for_it() -> None:
    lab, ledger, teller, reader = priced(1)
    replays(lab, teller, 3)
    lab.network.stop(lab.broadcasters[0])  # so that nobody can say that all is done
    report(lab, teller, "completed", 3)
    assert lab.answer(reader, lab.orchestrator, "icrc77_cancel_replay", (1,)) == (("Ok", 1),)
    lab.network.start(lab.broadcasters[0])
    lab.step(260)
    assert (ledger.balances[teller], ledger.balances[reader]) == (15, 985)


def test_rp_4_r4_nobody_is_paid_for_a_replay_that_never_began(lab: Lab) -> None:
    ledger, _, price = lab.with_ledger()
    teller, reader = (
        lab.teller((REPLAY, True), (keys.PRICING, price), (keys.MAX_CONCURRENT, 1)),
        lab.follower(0),
    )
    ledger.give(reader, 1000, 1000)
    lab.confirm_all(teller, reader)
    assert [lab.replay(reader, 1, 101) for _ in range(2)] == [("Ok", 1), ("Ok", 2)]
    assert lab.answer(reader, lab.orchestrator, "icrc77_cancel_replay", (2,)) == (("Ok", 2),)
    claim = (m.ReplayStatusUpdate(2, Variant("canceled", 100)),)
    assert lab.answer(teller, lab.orchestrator, "icrc77_replay_status", claim) == (("Ok", 2),)
    lab.step(60)
    assert (ledger.balances[teller], ledger.balances[reader]) == (0, 500)


def test_rp_13_replays_by_a_publisher_that_may_publish_no_more_are_canceled() -> None:
    lab, ledger, teller, reader = priced(1)
    publication = lab.system.registry.state.publications[1]
    publication.config = replace(publication.config, lists={"publishers:disallowed": (teller,)})
    lab.system.registry.publications.judge(publication)
    lab.step(260)
    assert lab.system.registry.state.replays[1].state == "canceled"
    assert ledger.balances[reader] == 1000


def test_ic_43_a_batch_is_measured_with_the_filter_that_each_notification_names() -> None:
    limits = MessageLimits(message_bytes=16_500)
    lab = Lab(broadcasters=(0,), limits=limits, settings=TIGHT)
    teller = lab.teller()
    reader = lab.install(
        Sink, subscriptions={NAME: {FILTER: " | ".join(f"n != {at}" for at in range(2, 62))}}
    )
    lab.step(60)
    lab.confirm_all(teller)
    lab.network.stop(reader)
    events = chain(teller, 89, lambda at: map_({"n": nat(at)}))
    with without_traps(lab):
        for at in range(0, 90, 30):
            lab.answer(teller, lab.broadcasters[0], "icrc72_publish", events[at : at + 30])
        lab.network.start(reader)
        lab.step(60)
    assert lab.app(reader).data == list(range(1, 90))


def test_i8_numbers_of_any_size_are_answered_and_trap_nobody(lab: Lab) -> None:
    """Candid's numbers have no bound, and Python writes none of more than 4,300 digits into a
    text.
    """
    huge = 1 << 20_000
    _, token, _ = lab.with_ledger()
    price = class_(("perEvent", of(huge)), ("currency", of(f"icrc2:{token.text}")))
    audit = Audit(lab.orchestrator, lab.broadcasters)
    lab.network.observers.append(audit)
    with without_traps(lab):
        teller, reader = lab.member("publisher"), lab.member("subscriber", 1)
        lab.publish(teller, (REPLAY, True), (keys.PRICING, price))
        assert lab.subscribe(reader, (keys.SKIP, [1, huge])).tag == "Ok"
        lab.confirm_all(teller, reader)
        for end in (huge, 11, None):
            assert lab.replay(reader, 1, end).value.tag == "PaymentRequired"
        for number, former in ((huge, None), (1, huge), (huge, huge - 1)):
            event = m.Event(
                number,
                former,
                0,
                namespace=NAME,
                data=map_({"n": nat(huge)}),
                source=teller,
                headers=(),
            )
            lab.answer(teller, lab.broadcasters[0], "icrc72_publish", (event,))
        lab.answer(reader, lab.broadcasters[1], "icrc72_confirm_notifications", (huge,))
        lab.answer(reader, lab.orchestrator, "icrc77_cancel_replay", (huge,))
        report = (m.ReplayStatusUpdate(huge, Variant("completed", huge)),)
        lab.answer(teller, lab.orchestrator, "icrc77_replay_status", report)
        lab.step(100)
        note = m.EventNotification(
            huge,
            huge,
            huge - 1,
            timestamp=0,
            namespace=NAME,
            data=map_({"n": nat(huge)}),
            headers=(),
            source=teller,
            filter=None,
        )
        arg = codec("icrc72_handle_notification").args.encode((note,))
        lab.probed(teller).todo.append((reader, "icrc72_handle_notification", arg, ONE_WAY, 0))
        lab.step(10)
    found = audit.finish({teller: {}}, lab.network.running())
    assert any("a number of 20,001 bits" in each.evidence for each in found)
