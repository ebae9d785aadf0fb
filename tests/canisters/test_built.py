"""The examples beside emulated roles: they publish, subscribe, replay, and survive upgrades and
traps.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from interchain_events.icrc72 import App, CanisterNetwork, Schedule, WasmCanister
from interchain_events.icrc72.conformance.servers import try_broadcaster, try_orchestrator
from interchain_events.icrc72.conformance.subscribers import try_subscriber
from interchain_events.icrc72.conformance.trial import Candidate, Trial
from interchain_events.icrc72.deployment import PubSub, deploy
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import CANISTER_ERROR
from interchain_events.icrc72.ic.messaging import Recorder
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.messages import EventNotification, PublicationRegistration
from interchain_events.icrc72.methods import HANDLE, REGISTER_SUBSCRIPTION
from interchain_events.icrc72.port.proxy import AFTER, FORWARD, FORWARDED, RECEIVED
from interchain_events.icrc72.services import Codec
from interchain_events.icrc72.values import nat

sys.path.insert(0, str(Path(__file__).parent))
from campaign import BUILT, IDS, NAT, ROLES, Play, built  # a program beside this file

NAMESPACE = "org.example.price"
RUST = pytest.mark.skipif(
    not (BUILT / "RustSubscriber.wasm").exists() and not os.environ.get("CI"),
    reason="it was not built",
)
SUBSCRIBERS = pytest.mark.parametrize(
    "name",
    [
        "Subscriber",
        pytest.param("RustSubscriber", marks=RUST),
    ],
)


class World:
    """An emulated system with a publisher and a subscriber that were built."""

    def __init__(self, schedule: Schedule | None = None, subscriber: str = "Subscriber") -> None:
        self.network = CanisterNetwork(2, schedule=schedule)
        self.recorder = Recorder()
        self.network.observers.append(self.recorder)
        self.system: PubSub = deploy(self.network, broadcasters=(0, 1, 1))
        self.publisher = self.network.create(0, self.made("Publisher"))
        self.network.step(100)
        self.subscriber = self.network.create(1, self.made(subscriber))
        self.network.step(200)

    def made(self, name: str) -> WasmCanister:
        return built(name, self.system.orchestrator)

    def publish(self, count: int) -> None:
        for number in range(count):
            self.network.submit(ANONYMOUS, self.publisher, "publish", NAT.encode(number))
            self.network.step()

    def had(self) -> list[int]:
        answer = self.network.query(ANONYMOUS, self.subscriber, "ids", b"DIDL\0\0")
        return list(cast("tuple[int, ...]", IDS.decode(answer.data)[0]))

    def lose(self, count: int) -> None:
        """Publish thrice so many; the subscriber's broadcaster dies with the second lot."""
        self.publish(count)
        self.network.step(20)
        far = [
            each.receiver
            for each in self.recorder.happenings
            if each.kind == "send"
            and each.method == "icrc72_confirm_notifications"
            and each.sender == self.subscriber
        ]
        exit_ = next(each for each in reversed(far) if each in self.system.broadcasters)
        self.network.stop(self.subscriber)
        self.publish(count)
        self.network.step(4)
        self.network.uninstall(exit_)
        self.network.start(self.subscriber)
        self.network.step(200)
        self.publish(count)
        self.network.step(400)

    def upgrade(self, who: Principal, name: str) -> None:
        self.network.stop(who)
        self.network.step(40)
        assert self.network.upgrade(who, self.made(name))
        self.network.start(who)


@SUBSCRIBERS
@pytest.mark.parametrize("seed", [1, 3])
def test_events_come_once_and_in_order_under_refusals_and_delays(seed: int, name: str) -> None:
    world = World(Schedule(b"motoko %d" % seed, seed % 4, 5 * seed), name)
    world.publish(60)
    world.network.step(300)
    assert world.had() == list(range(1, 61))


@SUBSCRIBERS
def test_both_go_on_after_an_upgrade_amid_events(name: str) -> None:
    world = World(subscriber=name)
    world.publish(10)
    world.upgrade(world.subscriber, name)
    world.publish(10)
    world.upgrade(world.publisher, "Publisher")
    world.publish(10)
    world.network.step(200)
    assert world.had() == list(range(1, 31))


@SUBSCRIBERS
def test_a_trap_changes_nothing(name: str) -> None:
    world = World(subscriber=name)
    world.publish(3)
    world.network.step(20)
    before = world.network.canister(world.subscriber).state_bytes()
    ticket = world.network.submit(
        ANONYMOUS, world.subscriber, "icrc72_handle_notification", b"no Candid"
    )
    world.network.step(5)
    assert ticket.answer is not None
    assert (ticket.answer.code, world.network.canister(world.subscriber).state_bytes()) == (
        CANISTER_ERROR,
        before,
    )
    world.publish(3)
    world.network.step(60)
    assert world.had() == list(range(1, 7))


@SUBSCRIBERS
def test_what_a_dead_broadcaster_lost_is_replayed(name: str) -> None:
    world = World(subscriber=name)
    world.lose(5)
    assert world.had() == list(range(1, 16))
    assert any(each.method == "icrc77_register_replay" for each in world.recorder.happenings)


def test_an_emulated_subscriber_and_an_emulated_publisher_understand_them() -> None:
    world = World()
    app = App(world.system.orchestrator, publications={}, subscriptions={NAMESPACE: {}})
    who = world.network.create(0, app)
    world.network.step(60)
    world.publish(8)
    world.network.step(60)
    subscriber = world.system.app(who).subscriber
    assert subscriber is not None
    assert max(max(chain.handled.last) for chain in subscriber.state.chains.values()) == 8


@pytest.mark.parametrize(
    ("name", "tries", "lacks"),
    [
        # It knows neither priorities nor the endpoint for trust, which the draft only recommends.
        ("Broadcaster", try_broadcaster, {"IC-43 priority", "IC-46 endpoint"}),
        ("Orchestrator", try_orchestrator, set()),
    ],
    ids=str,
)
def test_a_broadcaster_and_an_orchestrator_break_no_required_rule(
    name: str, tries: Callable[..., Trial], lacks: set[str]
) -> None:
    trial = tries(Candidate(lambda who: built(name, who)), b"motoko", 10)
    broken = [each for each in trial.book.verdicts if not each.holds]
    assert {each.rule for each in broken} == lacks
    assert all(each.level == "recommended" for each in broken)
    assert all(each.shown for each in trial.book.verdicts)


def test_a_story_with_a_canister_in_each_role_loses_and_doubles_nothing() -> None:
    assert Play(b"built", ROLES).tell() > 0


def test_one_seed_gives_one_trace() -> None:
    traces = []
    for _ in range(2):
        world = World(Schedule(b"again", 2, 20))
        world.publish(10)
        world.network.step(50)
        traces.append(world.recorder.happenings)
    assert traces[0] == traces[1]


@SUBSCRIBERS
def test_ic_25_a_subscriber_takes_any_id_also_0(name: str) -> None:
    def handled(network: CanisterNetwork, who: Principal) -> list[int]:
        answer = network.query(ANONYMOUS, who, "ids", b"DIDL\0\0")
        return list(cast("tuple[int, ...]", IDS.decode(answer.data)[0]))

    trial = try_subscriber(Candidate(lambda who: built(name, who), handled=handled), b"ids", 5)
    (ids,) = [each for each in trial.book.verdicts if each.rule == "IC-25 ids"]
    assert ids.shown
    assert not ids.broken


@pytest.mark.parametrize("everybody", [True, False])
def test_a_motoko_proxy_calls_for_users_and_stores_its_notifications(everybody: bool) -> None:
    network = CanisterNetwork(1)
    system = deploy(network, broadcasters=(0,))
    flag = Codec(parse_types("(bool)")).encode(everybody)
    module = (BUILT / "Proxy.wasm").read_bytes()
    proxy = network.create(0, WasmCanister(module, flag))
    network.step(30)
    item = PublicationRegistration("org.example.price", ())
    call = REGISTER_SUBSCRIPTION.argument((item,))
    sent = FORWARD.encode(system.orchestrator, REGISTER_SUBSCRIPTION.name, call)
    ticket = network.submit(ANONYMOUS, proxy, "forward", sent)
    network.step(20)
    assert ticket.answer is not None
    (result,) = cast("tuple[Variant[str, bytes]]", FORWARDED.decode(ticket.answer.data))
    assert (result.tag == "Ok") == everybody
    if everybody:
        assert REGISTER_SUBSCRIPTION.result(result.value)[0].tag == "Ok"  # type: ignore[union-attr]  # an answer
    note = EventNotification(
        1,
        0,
        None,
        timestamp=1,
        namespace="org.example.price",
        data=nat(7),
        headers=None,
        source=proxy,
        filter=None,
    )
    network.submit(ANONYMOUS, proxy, HANDLE.name, HANDLE.argument((note,)))
    network.step(5)
    answer = network.query(ANONYMOUS, proxy, "received", AFTER.encode(0))
    ((received,),) = cast(
        "tuple[tuple[tuple[Principal, str, bytes]]]", RECEIVED.decode(answer.data)
    )
    assert received[:2] == (ANONYMOUS, HANDLE.name)
    assert HANDLE.value(received[2]) == (note,)
    assert RECEIVED.decode(network.query(ANONYMOUS, proxy, "received", AFTER.encode(1)).data) == (
        (),
    )
