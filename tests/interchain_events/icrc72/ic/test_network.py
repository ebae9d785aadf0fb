"""The emulated Internet Computer and its management canister: IC-1 to IC-10, I6 to I8, I13."""

import gc
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.icrc72.wat import ask, canister, method

from interchain_events.icrc72.ic import canister as ic
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import EMPTY, RUNNING, STOPPED, STOPPING_STATUS
from interchain_events.icrc72.ic.errors import IcError, Trap
from interchain_events.icrc72.ic.messaging import MessageLimits, Recorder, Schedule
from interchain_events.icrc72.ic.network import CanisterNetwork, seldom_collected
from interchain_events.icrc72.ic.principal import ANONYMOUS, MANAGEMENT, Principal, canister_id
from interchain_events.icrc72.ic.wasm.canister import WasmCanister


class Scripted(ic.Canister):
    """Runs what the test tells it to; `seen` is its state."""

    def __init__(self, **methods: Callable[[Any, ic.Context, bytes], None]) -> None:
        self.methods = methods
        self.seen: list[Any] = []

    def update(self, ctx: ic.Context, method: str, arg: bytes) -> None:
        if method == "silent":  # waits for itself for ever
            ctx.call(ctx.me, "silent", b"")
            return
        if method in self.methods:
            self.methods[method](self, ctx, arg)
            return
        self.seen.append(arg)
        ctx.reply(b"ok " + arg)

    def on_timer(self, ctx: ic.Context) -> None:
        self.seen.append(("timer", ctx.time))

    def on_heartbeat(self, ctx: ic.Context) -> None:
        self.seen.append(("beat", ctx.time))

    def pre_upgrade(self) -> bytes:
        if b"no upgrade" in self.seen:
            raise Trap("no upgrade")
        return repr(self.seen).encode()

    def post_upgrade(self, ctx: ic.Context, kept: bytes) -> None:
        del ctx
        if kept == b"[b'bad']":
            raise Trap("bad")
        self.seen = [kept]


def caller_of(target: list[Principal], kind: str = ic.GUARANTEED) -> Scripted:
    def go(me: Any, ctx: ic.Context, arg: bytes) -> None:
        method, _, rest = arg.decode().partition(" ")
        ctx.call(
            target[0], method, rest.encode(), lambda _ctx, answer: me.seen.append(answer), kind=kind
        )
        ctx.reply(b"")

    return Scripted(go=go)


def pair(
    kind: str = ic.GUARANTEED, **settings: Any
) -> tuple[CanisterNetwork, Principal, Principal, Scripted, Scripted]:
    network = CanisterNetwork(2, **settings)
    target: list[Principal] = []
    a, b = caller_of(target, kind), Scripted()
    one, two = network.create(0, a), network.create(1, b)
    target.append(two)
    return network, one, two, a, b


def test_ic_1_time_is_genesis_rounds_and_skew() -> None:
    network = CanisterNetwork(2, genesis=5, skew=(0, 7))
    network.step(3)
    assert (network.time(0), network.time(1)) == (5 + 3 * ic.SECOND, 12 + 3 * ic.SECOND)


def test_ic_3_ids_are_handed_out_once_ascending_per_subnet() -> None:
    network = CanisterNetwork(2)
    ids = [network.create(at % 2, Scripted()) for at in range(4)]
    assert ids == [canister_id(0, 0), canister_id(1, 0), canister_id(0, 1), canister_id(1, 1)]
    assert network.user("a") == CanisterNetwork(1).user("a") != network.user("b")
    assert network.user("a").kind == "self-authenticating"


def test_ic_4_acceptance_2_a_trapping_callback_keeps_the_first_effect() -> None:
    def go(me: Any, ctx: ic.Context, _arg: bytes) -> None:
        me.seen.append("first")

        def then(_ctx: ic.Context, _answer: ic.Answer) -> None:
            me.seen.append("second")
            raise Trap("in the callback")

        ctx.call(ctx.me, "x", b"", then)

    network = CanisterNetwork()
    a = Scripted(go=go)
    one = network.create(0, a)
    assert ask(network, one, "go").code == ic.CANISTER_ERROR
    assert a.seen == ["first", b""]


def test_i8_a_trap_or_refusal_leaves_the_state_bytes_as_they_were() -> None:
    def go(me: Any, ctx: ic.Context, _arg: bytes) -> None:
        me.seen.append("half")
        ctx.call(ctx.me, "x", b"")
        ctx.set_timer(0)
        raise Trap("no")

    network = CanisterNetwork()
    a = Scripted(go=go)
    one = network.create(0, a)
    before = a.state_bytes()
    assert ask(network, one, "go").code == ic.CANISTER_ERROR
    assert a.state_bytes() == before


def test_ic_4_a_call_that_nothing_can_answer_is_rejected() -> None:
    network = CanisterNetwork()
    one = network.create(0, Scripted(nothing=lambda _me, _ctx, _arg: None))
    answer = ask(network, one, "nothing")
    assert (answer.code, "did not answer" in answer.message) == (ic.CANISTER_ERROR, True)


def test_ic_5_a_guaranteed_call_waits_and_a_bounded_one_times_out() -> None:
    for kind, expected in ((ic.GUARANTEED, []), (ic.BOUNDED, [ic.SYS_UNKNOWN])):
        network, one, _, a, _ = pair(kind)
        network.submit(ANONYMOUS, one, "go", b"silent x")
        network.step(40)
        assert [answer.code for answer in a.seen] == expected


def test_ic_5_a_bounded_callee_may_act_after_the_timeout() -> None:
    network, one, _, a, b = pair(ic.BOUNDED, limits=MessageLimits(across=12))
    network.submit(ANONYMOUS, one, "go", b"hello x")
    network.step(40)
    assert [answer.code for answer in a.seen] == [ic.SYS_UNKNOWN]
    assert b.seen == [b"x"]


def test_ic_5_the_system_stamps_the_caller_and_rejects_say_why() -> None:
    network, one, two, a, _ = pair()
    for change in (lambda _who: None, network.stop, network.uninstall):
        change(two)
        ask(network, one, "go", b"hello x")
    assert [answer.code for answer in a.seen] == [0, ic.CANISTER_ERROR, ic.CANISTER_ERROR]
    nobody = CanisterNetwork(1)
    lonely = caller_of([canister_id(0, 77)])
    alone = nobody.create(0, lonely)
    ask(nobody, alone, "go", b"hello x")
    assert [answer.code for answer in lonely.seen] == [ic.DESTINATION_INVALID]


@given(
    seed=st.binary(max_size=8),
    delay=st.integers(0, 5),
    refuse=st.integers(0, 60),
    count=st.integers(1, 30),
)
def test_ic_6_i7_acceptance_3_requests_of_a_pair_start_in_the_order_sent(
    seed: bytes, delay: int, refuse: int, count: int
) -> None:
    network = CanisterNetwork(2, schedule=Schedule(seed, delay, refuse))
    b = Scripted()
    targets = [canister_id(0, 1), canister_id(1, 0)]

    def go(me: Any, ctx: ic.Context, arg: bytes) -> None:
        for target in targets:
            ctx.call(target, "x", arg, lambda _ctx, answer: me.seen.append(answer.code))
        ctx.reply(b"")

    a = Scripted(go=go)
    one = network.create(0, a)
    near = Scripted()
    assert network.create(0, near) == targets[0]
    assert network.create(1, b) == targets[1]
    for at in range(count):
        network.submit(ANONYMOUS, one, "go", b"%03d" % at)
        network.step()
    network.step(40)
    assert b.seen == sorted(b.seen)
    assert near.seen == sorted(near.seen)
    assert len(a.seen) == 2 * count
    assert len(b.seen) + len(near.seen) == a.seen.count(0)
    assert set(a.seen) <= {0, ic.SYS_TRANSIENT}
    assert network.is_idle()


@given(
    seed=st.binary(max_size=8),
    kinds=st.lists(st.sampled_from([ic.GUARANTEED, ic.BOUNDED, ic.ONE_WAY]), max_size=20),
)
def test_i6_a_call_has_one_answer_a_one_way_call_none(seed: bytes, kinds: list[str]) -> None:
    network = CanisterNetwork(2, schedule=Schedule(seed, 6, 20))
    answers: dict[int, int] = {}

    def go(_me: Any, ctx: ic.Context, arg: bytes) -> None:
        at = int(arg)
        then = (
            None
            if kinds[at] == ic.ONE_WAY
            else lambda _ctx, _answer: answers.update({at: answers.get(at, 0) + 1})
        )
        ctx.call(canister_id(1, 0), ["x", "trap"][at % 2], b"", then, kind=kinds[at])

    def trap(_me: Any, _ctx: ic.Context, _arg: bytes) -> None:
        raise Trap("no")

    one = network.create(0, Scripted(go=go))
    network.create(1, Scripted(trap=trap))
    for at in range(len(kinds)):
        network.submit(ANONYMOUS, one, "go", b"%d" % at)
    network.step(60)
    assert answers == {at: 1 for at, kind in enumerate(kinds) if kind != ic.ONE_WAY}


def test_ic_7_limits_of_bytes_messages_under_way_and_executions() -> None:
    def flood(me: Any, ctx: ic.Context, _arg: bytes) -> None:
        for _ in range(7):
            ctx.call(canister_id(1, 0), "x", b"", lambda _ctx, answer: me.seen.append(answer.code))
        ctx.reply(b"")

    def big(_me: Any, ctx: ic.Context, _arg: bytes) -> None:
        ctx.reply(bytes(11))

    network = CanisterNetwork(
        2, limits=MessageLimits(message_bytes=10, under_way=4, messages_a_round=3)
    )
    a, b = Scripted(flood=flood, big=big), Scripted()
    one, _ = network.create(0, a), network.create(1, b)
    network.submit(ANONYMOUS, one, "flood", b"")
    ticket = network.submit(ANONYMOUS, one, "big", b"")
    network.step(3)
    assert len(b.seen) == 3
    network.step(4)
    assert len(b.seen) == 4
    assert sorted(a.seen) == [0, 0, 0, 0, ic.SYS_TRANSIENT, ic.SYS_TRANSIENT, ic.SYS_TRANSIENT]
    assert ticket.answer is not None
    assert ticket.answer.code == ic.CANISTER_ERROR


def test_ic_8_acceptance_4_a_silent_callee_keeps_the_caller_from_stopping() -> None:
    for kind, expected in ((ic.GUARANTEED, STOPPING_STATUS), (ic.ONE_WAY, STOPPED)):
        network, one, _, _, _ = pair(kind)
        network.submit(ANONYMOUS, one, "go", b"silent x")
        network.step(3)
        network.stop(one)
        assert network.status(one) == STOPPING_STATUS
        network.step(100)
        assert network.status(one) == expected


def test_ic_8_upgrades_keep_what_pre_upgrade_gives_and_nothing_else() -> None:
    network, one, two, _, b = pair()
    with pytest.raises(IcError, match="only a stopped canister"):
        network.upgrade(two, Scripted())
    network.submit(ANONYMOUS, one, "go", b"hello x")
    network.step(4)
    network.stop(two)
    fresh = Scripted()
    assert network.upgrade(two, fresh)
    assert fresh.seen == [repr(b.seen).encode()]
    assert network.status(two) == STOPPED
    network.start(two)
    assert network.status(two) == RUNNING


@pytest.mark.parametrize("word", [b"no upgrade", b"bad"])
def test_ic_8_an_upgrade_that_traps_has_not_happened(word: bytes) -> None:
    network = CanisterNetwork()
    old = Scripted()
    one = network.create(0, old)
    network.submit(ANONYMOUS, one, "x", word)
    network.step(2)
    network.stop(one)
    assert not network.upgrade(one, Scripted())
    assert network.canister(one) is old


def test_ic_8_death_rejects_open_calls() -> None:
    network, one, two, a, _ = pair()
    network.submit(ANONYMOUS, one, "go", b"silent x")
    network.step(4)
    network.uninstall(two)
    network.step(4)
    assert [answer.code for answer in a.seen] == [ic.CANISTER_REJECT]
    assert network.status(two) == EMPTY


def test_ic_9_heartbeats_run_each_round_and_a_timer_once_before_messages() -> None:
    def go(_me: Any, ctx: ic.Context, _arg: bytes) -> None:
        ctx.set_timer(ctx.time + 3 * ic.SECOND)
        ctx.reply(b"")

    network = CanisterNetwork(genesis=0)
    a = Scripted(go=go)
    a.heartbeat = True
    one = network.create(0, a)
    network.submit(ANONYMOUS, one, "go", b"")
    network.step(6)
    timers = [time for kind, time in a.seen if kind == "timer"]
    assert timers == [4 * ic.SECOND]
    assert [time // ic.SECOND for kind, time in a.seen if kind == "beat"] == [1, 2, 3, 4, 5, 6]
    network.stop(one)
    network.step(3)
    assert len(a.seen) == 7


def test_a_round_with_nothing_to_do_touches_no_canister() -> None:
    network = CanisterNetwork(2)
    for at in range(50):
        network.create(at % 2, Scripted())
    network.step(3)
    recorder = Recorder()
    network.observers.append(recorder)
    network.step(1000)
    assert recorder.happenings == []
    assert network.is_idle()


NAMED = Encoder(parse_types("(record { canister_id : principal })"))
INSTALL = Encoder(
    parse_types(
        "(record { mode : variant { install; reinstall; upgrade }; canister_id : principal;"
        " wasm_module : blob; arg : blob })"
    )
)


class Manager(ic.Canister):
    """Asks the management canister what it is told to; the last answer is kept."""

    def __init__(self) -> None:
        self.got: list[ic.Answer] = []

    def update(self, ctx: ic.Context, method: str, arg: bytes) -> None:
        ctx.call(MANAGEMENT, method, arg, lambda _ctx, answer: self.got.append(answer))
        ctx.reply(b"")


def told(network: CanisterNetwork, who: Principal, method: str, arg: bytes) -> ic.Answer:
    manager = network.canister(who)
    assert isinstance(manager, Manager)
    network.submit(ANONYMOUS, who, method, arg)
    network.step(4)
    return manager.got[-1]


def test_a_controller_stops_upgrades_and_starts_a_canister() -> None:
    network = CanisterNetwork(1, seed=b"m")
    network.make = WasmCanister
    manager, stranger = network.create(0, Manager()), network.create(0, Manager())

    def module(answer: int) -> bytes:
        return canister(method("query", "n", f"(call $answer (i32.const {answer}))"))

    who = network.create(0, WasmCanister(module(1)), controllers=[manager])

    def install(mode: str, wasm: bytes, by: Principal = manager) -> ic.Answer:
        return told(
            network, by, "install_code", INSTALL.encode((Variant(mode, None), who, wasm, b""))
        )

    assert told(network, stranger, "stop_canister", NAMED.encode((who,))).code == ic.CANISTER_REJECT
    assert "only a stopped canister" in install("upgrade", module(2)).message
    assert told(network, manager, "stop_canister", NAMED.encode((who,))).ok
    assert "does not control" in install("upgrade", module(2), stranger).message
    assert "WebAssembly" in install("upgrade", b"no").message
    assert install("upgrade", module(2)).ok
    assert told(network, manager, "canister_status", NAMED.encode((who,))).ok
    assert told(network, manager, "start_canister", NAMED.encode((who,))).ok
    assert network.query(ANONYMOUS, who, "n", b"").data[:1] == b"\2"
    assert "has code" in install("install", module(3)).message
    assert install("reinstall", module(3)).ok
    assert network.query(ANONYMOUS, who, "n", b"").data[:1] == b"\3"


def test_randomness_is_drawn_from_the_seed_and_differs_from_call_to_call() -> None:
    def drawn(seed: bytes) -> list[bytes]:
        network = CanisterNetwork(1, seed=seed)
        who = network.create(0, Manager())
        return [told(network, who, "raw_rand", b"DIDL\0\0").data for _ in range(2)]

    assert drawn(b"a") == drawn(b"a") != drawn(b"b")
    assert len({*drawn(b"a"), *drawn(b"b")}) == 4


def test_an_unknown_method_and_an_unknown_canister_are_rejected() -> None:
    network = CanisterNetwork(1)
    who = network.create(0, Manager())
    assert "no method" in told(network, who, "mint", b"").message
    assert (
        "there is no canister"
        in told(network, who, "canister_status", NAMED.encode((ANONYMOUS,))).message
    )


OTHER = Principal(b"other")


class Purse(ic.Canister):
    """Takes half of the cycles that come, or calls somebody with cycles."""

    def update(self, ctx: ic.Context, method: str, arg: bytes) -> None:
        if method == "take":
            assert ctx.accept(ctx.available // 2) == ctx.available
            ctx.reply(b"")
        elif method == "trap":
            ctx.accept(ctx.available)
            raise Trap("no")
        else:
            to = MANAGEMENT if method == "deposit_cycles" else Principal(arg)
            called = method.removeprefix("call ")
            ctx.call(
                to, called, arg, lambda ctx, answer: ctx.reply(answer.message.encode()), cycles=100
            )


def test_cycles_go_with_calls_and_what_is_not_accepted_comes_back() -> None:
    network = CanisterNetwork(2)
    payer, payee = network.create(0, Purse(), cycles=250), network.create(1, Purse(), cycles=0)

    def say(method: str, arg: bytes = payee) -> str:
        answer = ask(network, payer, method, arg)
        return answer.message or answer.data.decode()

    def owned() -> tuple[int, int]:
        return network.cycles(payer), network.cycles(payee)

    assert (say("call take"), owned()) == ("", (200, 50))
    assert ("IC0503" in say("call trap"), owned()) == (True, (200, 50))
    assert ("no such canister" in say("call take", OTHER), owned()) == (True, (200, 50))
    assert (say("deposit_cycles", NAMED.encode((payee,))), owned()) == ("", (100, 150))
    assert ("there is no canister" in say("deposit_cycles", NAMED.encode((OTHER,))), owned()) == (
        True,
        (100, 150),
    )
    assert (say("call take"), owned()) == ("", (50, 200))
    assert ("100 cycles cannot be sent" in say("call take"), owned()) == (True, (50, 200))


# What a round costs


@given(
    st.integers(1, 3),
    st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1, max_size=4),
)
def test_ic_6_ic_7_full_canisters_go_on_in_the_next_round_and_all_in_order(
    most: int, rounds: list[list[int]]
) -> None:
    network = CanisterNetwork(1, limits=MessageLimits(messages_a_round=most))
    recorder = Recorder()
    network.observers.append(recorder)
    who = [network.create(0, Scripted()) for _ in range(4)]
    waiting: dict[Principal, int] = dict.fromkeys(who, 0)
    for submitted in rounds:
        for at in submitted:
            network.submit(ANONYMOUS, who[at], "x", b"")
            waiting[who[at]] += 1
        network.step()
        ran = [each for each in recorder.happenings if each.kind == "execute"]
        recorder.happenings.clear()
        assert [each.number for each in ran] == sorted(each.number for each in ran)
        count: dict[Principal, int] = defaultdict(int)
        for each in ran:
            count[each.receiver] += 1
        for each in who:
            assert count[each] == min(most, waiting[each])
            waiting[each] -= count[each]
        assert network.is_idle() == (not any(waiting.values()))
    network.step(12 * len(rounds))
    assert network.is_idle()


def test_a_canister_without_messages_has_no_inbox_and_no_open_work() -> None:
    network, one, two, _, _ = pair()
    for _ in range(250):
        network.submit(ANONYMOUS, one, "go", b"x hello")
    network.step()
    assert set(network._inboxes) == {one}
    assert one in network._open
    network.step(2)
    assert network.host(one).under_way_bytes > 0
    network.step(10)
    assert network.is_idle()
    assert network.host(one).under_way_bytes == 0
    assert not network._inboxes
    assert not network._open
    assert network.status(two) == RUNNING


@pytest.mark.parametrize("enabled", [True, False])
def test_collections_of_garbage_pause_in_a_round_and_are_as_before_afterwards(
    *, enabled: bool
) -> None:
    seen: list[bool] = []

    def look(_me: Any, ctx: ic.Context, arg: bytes) -> None:
        seen.append(gc.isenabled())
        ctx.reply(b"")
        if arg:
            raise ValueError("a defect of a canister's code")

    network = CanisterNetwork(1)
    one = network.create(0, Scripted(look=look))
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        network.submit(ANONYMOUS, one, "look", b"")
        network.step()
        assert gc.isenabled() == enabled
        network.submit(ANONYMOUS, one, "look", b"defect")
        with pytest.raises(ValueError, match="defect"):
            network.step()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert seen == [False, False]


def test_a_large_network_is_seldom_collected_but_its_garbage_is_bounded() -> None:
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    class Cycle:
        def __init__(self) -> None:
            self.me = self
            alive.add(self)

    before = gc.get_threshold()
    enabled = gc.isenabled()
    gc.enable()
    try:
        with seldom_collected():
            for _ in range(300_000):
                Cycle()
    finally:
        (gc.enable if enabled else gc.disable)()
    assert gc.get_threshold() == before
    assert len(alive) <= 100_000
