"""Canisters that are WebAssembly: what they may call, what a trap undoes, what an upgrade keeps."""

import gzip
from pathlib import Path

import pytest
import wasmtime
from hypothesis import given, settings
from hypothesis import strategies as st
from support.icrc72.wat import ask, canister, method
from support.plumbing.examples import scaled
from support.plumbing.processes import python

from interchain_events.icrc72.ic.canister import (
    CANISTER_ERROR,
    CANISTER_REJECT,
    SYS_UNKNOWN,
    Answer,
    Canister,
    Context,
)
from interchain_events.icrc72.ic.errors import IcError, ModuleError
from interchain_events.icrc72.ic.messaging import Recorder
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.wasm.canister import WasmCanister, WasmLimits
from interchain_events.icrc72.ic.wasm.module import MODULE_BYTES, load
from interchain_events.icrc72.ic.wasm.stable_memory import PAGE, StableMemory

COUNT = (
    method(
        "update",
        "set",
        "(call $both (i32.load8_u (call $first))) (call $answer (global.get $count))",
    ),
    method("query", "get", "(call $answer (i32.load (i32.const 200)))"),
    method("query", "global", "(call $answer (global.get $count))"),
    (
        "(func $first (result i32) (call $arg_copy (i32.const 300) (i32.const 0) (call $arg_size))"
        " (i32.const 300))"
    ),
    method(
        "update", "boom", "(call $both (i32.const 99)) (call $trap (i32.const 16) (i32.const 5))"
    ),
)


def number(answer: Answer) -> int:
    assert answer.ok, answer.message
    return int.from_bytes(answer.data, "little")


def held(network: CanisterNetwork, who: Principal, name: str) -> int:
    return number(network.query(ANONYMOUS, who, name, b""))


def installed(*parts: str, limits: WasmLimits | None = None) -> tuple[CanisterNetwork, Principal]:
    network = CanisterNetwork(1)
    return network, network.create(0, WasmCanister(canister(*parts), limits=limits))


class Peer(Canister):
    """Answers, rejects, takes cycles or says nothing, as its method says."""

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        if method == "take":
            ctx.accept(30)
            ctx.reply(arg)
        elif method == "nope":
            ctx.reject("no")
        else:
            ctx.call(ctx.me, "wait", b"")


def test_a_trap_undoes_memory_globals_and_growth() -> None:
    grow = method(
        "update",
        "grow",
        "(drop (memory.grow (i32.const 9))) (call $both (i32.const 7)) (i32.store"
        " (i32.const 500000) (i32.const 1)) unreachable",
    )
    network, who = installed(*COUNT, grow)
    assert number(ask(network, who, "set", b"\5")) == 5
    before = network.canister(who).state_bytes()
    for name, words in (("boom", "oh no"), ("grow", "IC0502: unreachable")):
        answer = ask(network, who, name)
        assert (answer.code, words in answer.message) == (CANISTER_ERROR, True)
        assert network.canister(who).state_bytes() == before
    assert (held(network, who, "get"), held(network, who, "global")) == (5, 5)


def test_a_trap_ends_no_process_whose_signals_somebody_else_takes(tmp_path: Path) -> None:
    (tmp_path / "boom.wasm").write_bytes(
        canister(method("update", "far", "(drop (i32.load (i32.const 90000000)))"))
    )
    script = (
        "import faulthandler, pathlib, sys\n"
        "from interchain_events.icrc72 import ANONYMOUS, CanisterNetwork, WasmCanister\n"
        "network = CanisterNetwork(1)\n"
        "who = network.create(0, WasmCanister(pathlib.Path(sys.argv[1]).read_bytes()))\n"
        "for _ in range(2):\n"
        "    ticket = network.submit(ANONYMOUS, who, 'far', b'')\n"
        "    network.step(12)\n"
        "    print(ticket.answer.message)\n"
        "    faulthandler.enable()\n"
    )
    done = python("-c", script, tmp_path / "boom.wasm")
    assert (done.returncode, done.stdout.count("IC0502")) == (0, 2), done.stderr


def test_a_query_changes_nothing_even_as_an_update() -> None:
    network, who = installed(
        *COUNT,
        method("query", "sly", "(call $both (i32.const 8)) (call $answer (global.get $count))"),
    )
    ask(network, who, "set", b"\3")
    assert held(network, who, "sly") == 8
    assert number(ask(network, who, "sly")) == 8
    assert held(network, who, "get") == 3


CALLER = (
    "(table funcref (elem $ok $bad $tidy))",
    """(func $begin (param $cycles i64)
      (call $arg_copy (i32.const 300) (i32.const 0) (call $arg_size))
      (call $call_new (i32.const 300) (i32.const 10)
        (i32.const 310) (i32.sub (call $arg_size) (i32.const 10))
        (i32.const 0) (i32.const 41) (i32.const 1) (i32.const 42))
      (call $call_append (i32.const 16) (i32.const 5))
      (call $call_cycles (i64.const 0) (local.get $cycles)))""",
    """(func $ok (param $env i32) (call $both (i32.add (local.get $env) (global.get $count)))
      (call $refunded (i32.const 400)) (call $append (i32.const 400) (i32.const 16))
      (call $caller_copy (i32.const 420) (i32.const 0) (call $caller_size))
      (call $append (i32.const 420) (call $caller_size)) (call $reply))""",
    "(func $bad (param $env i32) (call $both (local.get $env)) (call $answer (call $reject_code)))",
    "(func $tidy (param $env i32) (call $both (local.get $env)))",
    method(
        "update",
        "call",
        "(call $both (i32.const 1)) (call $begin (i64.const 100)) (drop (call $perform))",
    ),
    method(
        "update",
        "short",
        "(call $begin (i64.const 0)) (call $best_effort (i32.const 3)) (drop (call $perform))",
    ),
    method("update", "forget", "(call $begin (i64.const 50)) (call $answer (i32.const 0))"),
    *COUNT[1:3],
)


def test_callbacks_have_answer_refund_and_first_caller_and_earlier_changes_stay() -> None:
    network, who = installed(*CALLER)
    peer = network.create(0, Peer())
    before = network.cycles(who)
    answer = ask(network, who, "call", peer + b"take")
    assert (answer.data[:16], answer.data[16:]) == ((70).to_bytes(16, "little"), ANONYMOUS)
    assert network.cycles(who) == before - 30
    assert held(network, who, "get") == 42
    assert number(ask(network, who, "call", peer + b"nope")) == CANISTER_REJECT
    assert held(network, who, "global") == 42
    assert number(ask(network, who, "short", peer + b"wait")) == SYS_UNKNOWN


def test_cycles_of_a_call_that_is_not_performed_stay() -> None:
    network, who = installed(*CALLER)
    before = network.cycles(who)
    assert ask(network, who, "forget", bytes(10)).ok
    assert network.cycles(who) == before


def test_after_a_trapping_callback_the_cleanup_counts_and_the_call_is_rejected() -> None:
    trapping = (
        "(table funcref (elem $ok $tidy))",
        (
            "(func $ok (param $env i32) (call $both (i32.const 77)) (call $trap (i32.const 16)"
            " (i32.const 5)))"
        ),
        "(func $tidy (param $env i32) (call $both (i32.add (local.get $env) (global.get $count))))",
        method(
            "update",
            "call",
            """(call $both (i32.const 5))
            (call $arg_copy (i32.const 300) (i32.const 0) (call $arg_size))
            (call $call_new (i32.const 300) (i32.const 10) (i32.const 0) (i32.const 4)
              (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
            (call $on_cleanup (i32.const 1) (i32.const 10)) (drop (call $perform))""",
        ),
        *COUNT[1:3],
    )
    network, who = installed(*trapping)
    answer = ask(network, who, "call", network.create(0, Peer()))
    assert (answer.code, "oh no" in answer.message) == (CANISTER_ERROR, True)
    assert (held(network, who, "get"), held(network, who, "global")) == (15, 15)


def test_a_timer_runs_once_and_a_heartbeat_each_round() -> None:
    tick = (
        '(func (export "canister_global_timer") (call $both (i32.add (global.get $count) (i32.const'
        " 1))))"
    )
    arm = method(
        "update",
        "arm",
        "(drop (call $timer (i64.add (call $time) (i64.const 3000000000)))) (call $answer"
        " (i32.const 0))",
    )
    twice = method("update", "again", "(call $answer (i32.wrap_i64 (call $timer (i64.const 0))))")
    network, who = installed(tick, arm, twice, *COUNT[1:2])
    ask(network, who, "arm", rounds=3)
    assert held(network, who, "get") == 0
    network.step(8)
    assert held(network, who, "get") == 1
    assert number(ask(network, who, "again")) == 0
    beats, who = installed(tick.replace("global_timer", "heartbeat"), *COUNT[1:2])
    beats.step(4)
    assert held(beats, who, "get") == 4


STABLE = (
    method(
        "update",
        "put",
        "(drop (call $stable_grow (i64.const 1))) (call $stable_write (i64.const 9)"
        " (i64.const 16) (i64.const 5)) (call $answer (i32.const 0))",
    ),
    method(
        "update",
        "spoil",
        "(drop (call $stable_grow (i64.const 2))) (call $stable_write (i64.const 9)"
        " (i64.const 0) (i64.const 4)) unreachable",
    ),
    method(
        "query",
        "read",
        "(call $stable_read (i64.const 600) (i64.const 9) (i64.const 5)) (call $say (i32.const 600)"
        " (i32.const 5))",
    ),
    method("query", "pages", "(call $answer (i32.wrap_i64 (call $stable_size)))"),
    method("update", "more", "(call $answer (i32.wrap_i64 (call $stable_grow (i64.const 60))))"),
)


def test_stable_memory_outlives_an_upgrade_and_a_trap_undoes_what_was_written() -> None:
    post = '(func (export "canister_post_upgrade") (call $both (call $arg_size)))'
    network, who = installed(*STABLE, *COUNT)
    ask(network, who, "put")
    assert not ask(network, who, "spoil").ok
    assert network.query(ANONYMOUS, who, "read", b"").data == b"oh no"
    ask(network, who, "set", b"\4")
    network.stop(who)
    assert network.upgrade(who, WasmCanister(canister(*STABLE, *COUNT, post), b"123"))
    network.start(who)
    assert network.query(ANONYMOUS, who, "read", b"").data == b"oh no"
    assert held(network, who, "pages") == 1
    assert held(network, who, "get") == 3
    assert held(network, who, "global") == 3


@pytest.mark.parametrize("hook", ["pre", "post"])
def test_an_upgrade_that_traps_has_not_happened(hook: str) -> None:
    wrong = f'(func (export "canister_{hook}_upgrade") (call $both (i32.const 66)) unreachable)'
    network, who = installed(*STABLE, *COUNT, wrong)
    ask(network, who, "put")
    before = network.canister(who).state_bytes()
    network.stop(who)
    assert not network.upgrade(who, WasmCanister(canister(*STABLE, *COUNT, wrong)))
    assert network.canister(who).state_bytes() == before


def test_memory_is_kept_over_an_upgrade_only_where_both_modules_say_so() -> None:
    mark = '(@custom "icp:private enhanced-orthogonal-persistence" "")'
    for old, new, kept in ((mark, mark, 4), (mark, "", 0), ("", mark, 0)):
        network, who = installed(*COUNT, old)
        ask(network, who, "set", b"\4")
        network.stop(who)
        assert network.upgrade(who, WasmCanister(canister(*COUNT, new)))
        network.start(who)
        assert held(network, who, "get") == kept
        assert held(network, who, "global") == 0


def test_inspect_lets_in_whom_it_accepts() -> None:
    accept = "(if (i32.eq (call $name_size) (i32.const 3)) (then (call $let_in)))"
    check = f'(func (export "canister_inspect_message") (call $both (i32.const 1)) {accept})'
    network, who = installed(*COUNT, check)
    assert ask(network, who, "set", b"\1").ok
    assert ask(network, who, "boom").message == "IC0406: refused at inspect"
    assert held(network, who, "get") == 1


def test_limits_of_instructions_memory_and_stable_memory_hold() -> None:
    spin = method("update", "spin", "(loop $on (br $on))")
    eat = method("update", "eat", "(call $answer (memory.grow (i32.const 20)))")
    limits = WasmLimits(instructions=1_000_000, memory_bytes=10 * PAGE, stable_bytes=50 * PAGE)
    network, who = installed(spin, eat, *STABLE, limits=limits)
    assert "IC0522: more than 1000000 instructions" in ask(network, who, "spin").message
    assert ask(network, who, "eat").data == b"\xff" * 4
    assert ask(network, who, "more").data == b"\xff" * 4
    with pytest.raises(IcError, match="cannot be instantiated"):
        WasmCanister(canister(), limits=WasmLimits(memory_bytes=100))
    large = method(
        "update",
        "large",
        "(drop (memory.grow (i32.const 39))) (call $say (i32.const 0) (i32.const 2097153))",
    )
    network, who = installed(large)
    assert "at most 2097152 bytes" in ask(network, who, "large").message


@pytest.mark.parametrize(
    "body",
    [
        "(call $append (i32.const -8) (i32.const 16))",
        "(call $append (i32.const 65530) (i32.const 16))",
        "(call $arg_copy (i32.const 0) (i32.const 1) (call $arg_size))",
        "(call $reply) (call $reply)",
        "(call $let_in)",
        "(drop (call $perform))",
        "(call $call_append (i32.const 0) (i32.const 1))",
        "(call $refunded (i32.const 0))",
        "(call $stable_read (i64.const 0) (i64.const -1) (i64.const 1))",
        "(drop (call $controls (i32.const 0) (i32.const 30)))",
        f"(call $call_new (i32.const 0) (i32.const 30) {'(i32.const 0)' * 6})",
        "(drop (call $counter (i32.const 9)))",
    ],
)
def test_what_the_system_forbids_traps(body: str) -> None:
    network, who = installed(method("update", "wrong", body))
    assert ask(network, who, "wrong", b"x").code == CANISTER_ERROR


def test_an_installation_that_traps_is_an_error() -> None:
    with pytest.raises(IcError, match=r"the installation of .* trapped: oh no"):
        installed('(func (export "canister_init") (call $trap (i32.const 16) (i32.const 5)))')


def test_the_start_function_runs_at_installation_and_upgrade() -> None:
    network, who = installed(*COUNT, "(func $go (call $both (i32.const 12)))", "(start $go)")
    assert held(network, who, "get") == 12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('(module (import "env" "f" (func)))', "env.f, which is not a function of the system"),
        ('(module (import "ic0" "mint" (func)))', "ic0.mint, which is not offered"),
        (
            '(module (import "ic0" "time" (func (result i32))))',
            r"ic0.time is imported as \(\) -> \(i32\), it is \(\) -> \(i64\)",
        ),
        ('(module (import "ic0" "memory" (memory 1)))', "not a function of the system"),
        ("(module (memory 1 1 shared))", "threads"),
    ],
)
def test_modules_that_import_something_else_are_refused(text: str, words: str) -> None:
    with pytest.raises((ModuleError, wasmtime.WasmtimeError), match=words):
        WasmCanister(bytes(wasmtime.wat2wasm(text)))


@given(st.binary(max_size=80), st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=scaled(150))
def test_bytes_that_are_no_module_are_refused_with_words(tail: bytes, at: int, byte: int) -> None:
    good = bytearray(canister(*COUNT))
    good[at % len(good)] = byte
    for raw in (tail, b"\0asm\1\0\0\0" + tail, b"\x1f\x8b" + tail, bytes(good)):
        said = ""
        try:
            WasmCanister(raw)
        except IcError as error:
            said = str(error)
        assert said.isprintable()


def test_a_packed_module_is_unpacked_and_hashed_as_it_came() -> None:
    wasm = canister(*COUNT)
    packed = gzip.compress(wasm)
    assert load(packed).exports == load(wasm).exports
    assert load(packed).hash != load(wasm).hash


def test_a_module_of_more_than_sixteen_mebibytes_is_refused_packed_or_not() -> None:
    large = bytes(MODULE_BYTES + 1)
    for raw in (large, gzip.compress(large, 1)):
        with pytest.raises(ModuleError, match="at most 16777216 bytes"):
            WasmCanister(raw)


def test_printing_is_kept_and_controllers_are_known() -> None:
    own = method(
        "update",
        "own",
        "(call $print (i32.const 16) (i32.const 5)) (call $caller_copy (i32.const 300) (i32.const"
        " 0) (call $caller_size)) (call $answer (call $controls (i32.const 300) (call"
        " $caller_size)))",
    )
    network = CanisterNetwork(1)
    code = WasmCanister(canister(own))
    who = network.create(0, code, controllers=[ANONYMOUS])
    assert number(ask(network, who, "own")) == 1
    assert list(code.lines) == ["oh no"]


def test_i13_the_same_seed_gives_the_same_trace_of_a_module() -> None:
    traces = []
    for _ in range(2):
        network, who = installed(*CALLER, *STABLE)
        recorder = Recorder()
        network.observers.append(recorder)
        peer = network.create(0, Peer())
        for name, arg in (
            ("call", peer + b"take"),
            ("put", b""),
            ("spoil", b""),
            ("call", peer + b"nope"),
        ):
            ask(network, who, name, arg)
        traces.append((recorder.happenings, network.canister(who).state_bytes()))
    assert traces[0] == traces[1]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2 * PAGE), st.binary(max_size=20)), max_size=12
    )
)
def test_stable_memory_equals_its_slow_twin(steps: list[tuple[int, int, bytes]]) -> None:
    memory, twin = StableMemory(4 * PAGE), bytes(PAGE)
    memory.grow(1)
    memory.commit()
    kept = twin
    for kind, at, data in steps:
        if kind == 0 and len(twin) < 4 * PAGE:
            memory.grow(1)
            twin += bytes(PAGE)
        elif kind == 1 and at + len(data) <= len(twin):
            memory.write(at, data)
            twin = twin[:at] + data + twin[at + len(data) :]
        elif kind == 2:
            kept = twin
            memory.commit()
        elif kind == 3:
            memory.undo()
            twin = kept
        assert memory.data == twin
