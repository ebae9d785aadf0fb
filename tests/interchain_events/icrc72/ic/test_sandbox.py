"""Canisters that attack their host: they trap, are refused, or get an answer, and nothing stays."""

from dataclasses import replace
from typing import Final

import pytest
import wasmtime
from hypothesis import given, settings
from hypothesis import strategies as st
from support.icrc72.wat import IMPORTS, ask, canister, method
from support.plumbing.examples import scaled
from support.plumbing.processes import python

from interchain_events.fuzz.drawn_modules import Choices, drawn_module
from interchain_events.icrc72.ic.candid.encode import leb128
from interchain_events.icrc72.ic.canister import (
    CANISTER_ERROR,
    SECOND,
    SYS_TRANSIENT,
    Answer,
    Canister,
    Context,
)
from interchain_events.icrc72.ic.errors import CandidError, IcError, ModuleError
from interchain_events.icrc72.ic.messaging import MessageLimits, Recorder
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.wasm import compiler, module, scan
from interchain_events.icrc72.ic.wasm.canister import WasmCanister, WasmLimits
from interchain_events.icrc72.ic.wasm.module import CODE_BYTES, load
from interchain_events.icrc72.ic.wasm.stable_memory import PAGE, StableMemory
from interchain_events.icrc72.ic.wasm.system import CALL_COST, LINE_BYTES

MIB = 1 << 20
PERSISTENT = '(@custom "icp:private enhanced-orthogonal-persistence" "")'
ANSWER = "(call $answer (i32.const 0))"
NEW_CALL = f"(call $call_new {'(i32.const 0)' * 8})"


def built(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(f"(module {text})"))


def installed(*parts: str, limits: WasmLimits | None = None) -> tuple[CanisterNetwork, Principal]:
    network = CanisterNetwork(1)
    return network, network.create(0, WasmCanister(canister(*parts), limits=limits))


def number(answer: Answer) -> int:
    assert answer.ok, answer.message
    return int.from_bytes(answer.data, "little")


def held(network: CanisterNetwork, who: Principal, name: str) -> int:
    return number(network.query(ANONYMOUS, who, name, b""))


def upgraded(old: str, new: str) -> bool:
    network = CanisterNetwork(1)
    who = network.create(0, WasmCanister(built(old)))
    network.stop(who)
    return network.upgrade(who, WasmCanister(built(new)))


# Timers


class Hasty(Canister):
    """Sets its timer to a time in the past whenever it runs."""

    def __init__(self) -> None:
        self.runs = 0

    def init(self, ctx: Context) -> None:
        ctx.set_timer(1)

    def on_timer(self, ctx: Context) -> None:
        self.runs += 1
        ctx.set_timer(1)


def timers(network: CanisterNetwork) -> Recorder:
    recorder = Recorder()
    network.observers.append(recorder)
    network.step(5)
    return recorder


def test_a_timer_in_the_past_runs_once_a_round() -> None:
    network = CanisterNetwork(1)
    code = Hasty()
    network.create(0, code)
    recorder = timers(network)
    assert code.runs == 5
    assert [each.round for each in recorder.happenings if each.kind == "timer"] == [1, 2, 3, 4, 5]


def test_a_timer_of_a_module_in_the_past_runs_once_a_round() -> None:
    tick = "(drop (call $timer (i64.const 1)))"
    network, _ = installed(
        f'(func (export "canister_init") {tick})',
        f'(func (export "canister_global_timer") {tick} {tick})',
    )
    recorder = timers(network)
    assert [each.round for each in recorder.happenings if each.kind == "timer"] == [1, 2, 3, 4, 5]


class Restless(Canister):
    """Sets its timer to another time in the far future in each execution."""

    heartbeat = True

    def __init__(self) -> None:
        self.late = 0

    def on_heartbeat(self, ctx: Context) -> None:
        self.late += 1
        ctx.set_timer(ctx.time + 10**6 * SECOND - self.late)


def test_timers_that_are_set_again_and_again_take_no_more_memory() -> None:
    network = CanisterNetwork(1)
    for _ in range(3):
        network.create(0, Restless())
    network.step(500)
    assert len(network._subnets[0].timers) <= 80  # nothing else shows it


# Valid modules that ended the program


def test_globals_of_numbers_and_vectors_are_restored_bit_by_bit() -> None:
    parts = (
        "(global $i (mut i64) (i64.const -5)) (global $v (mut v128) (v128.const i64x2 -1 2))",
        "(global $n (mut f32) (f32.const nan:0x200001)) (global $d (mut f64) (f64.const -0))",
        method(
            "update",
            "spoil",
            "(global.set $i (i64.const 1)) (global.set $v (v128.const i64x2 7 7))"
            " (global.set $n (f32.const 1)) (global.set $d (f64.const 1)) unreachable",
        ),
        method(
            "query",
            "seen",
            "(v128.store (i32.const 500) (global.get $v)) (i64.store (i32.const 516)"
            " (global.get $i)) (f32.store (i32.const 524) (global.get $n))"
            " (f64.store (i32.const 528) (global.get $d)) (call $say (i32.const 500)"
            " (i32.const 36))",
        ),
    )
    network, who = installed(*parts)
    before = network.query(ANONYMOUS, who, "seen", b"").data
    assert before[24:28] == bytes.fromhex("0100a07f")
    assert "unreachable" in ask(network, who, "spoil").message
    assert network.query(ANONYMOUS, who, "seen", b"").data == before


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("(global (mut funcref) (ref.null func))", "global 0 has the type funcref"),
        ("(global (mut externref) (ref.null extern))", "global 0 has the type externref"),
        ("(global (mut anyref) (ref.null any))", "global 0 has the type anyref"),
        ("(type $t (func)) (global (mut (ref null $t)) (ref.null $t))", r"type \(ref null 0\)"),
        ("(type $a (array i8))", "type 0 is an array"),
        ("(type (func)) (type (struct))", "type 1 is a struct"),
        ("(table 1 externref)", "table 0 has the type externref"),
    ],
)
def test_types_that_cannot_be_saved_are_refused_with_their_name(fields: str, words: str) -> None:
    with pytest.raises(ModuleError, match=f"{words}.*cannot be saved"):
        WasmCanister(built(fields))


@pytest.mark.parametrize(
    "kind", ["(param f32)", "(param v128)", "(param funcref)", "(param i64)", "(result i32)", ""]
)
def test_a_callback_of_another_type_traps(kind: str) -> None:
    result = "(i32.const 1)" if "result" in kind else ""
    network, who = installed(
        f"(table 1 funcref) (elem (i32.const 0) $cb) (func $cb {kind} {result})",
        method(
            "update",
            "go",
            f"(call $call_new {'(i32.const 0)' * 8}) (drop (call $perform))",
        ),
    )
    recorder = Recorder()
    network.observers.append(recorder)
    answer = ask(network, who, "go")
    assert (answer.code, "bad signature" in answer.message) == (CANISTER_ERROR, True)


def test_a_callback_without_a_table_traps() -> None:
    network, who = installed(
        method("update", "go", f"(call $call_new {'(i32.const 0)' * 8}) (drop (call $perform))")
    )
    assert "no table of callbacks" in ask(network, who, "go").message


def test_a_method_that_returns_something_is_refused() -> None:
    with pytest.raises(ModuleError, match=r"go has the type \(\) -> \(v128\)"):
        WasmCanister(
            built('(func (export "canister_update go") (result v128) (v128.const i64x2 0 0))')
        )


def test_an_import_with_a_vector_is_refused() -> None:
    with pytest.raises(ModuleError, match=r"imported as \(v128\) -> \(\)"):
        WasmCanister(built('(import "ic0" "time" (func (param v128)))'))


@pytest.mark.parametrize(
    ("old", "new", "works"),
    [
        ("(memory 2)", "(memory 1 1)", False),
        ("(memory 2)", "(memory 1)", True),
        ("(memory 1)", "(memory 4)", True),
        ("(memory 1)", "", True),
        ("", "(memory 1)", True),
        ("(memory 1)", "(memory i64 1)", True),
    ],
)
def test_memory_is_kept_over_an_upgrade_to_any_other_size(
    old: str, new: str, *, works: bool
) -> None:
    assert upgraded(f"{PERSISTENT} {old}", f"{PERSISTENT} {new}") is works


def test_an_upgrade_whose_new_code_allows_less_stable_memory_traps() -> None:
    grow = '(func (export "canister_init") (drop (call $stable_grow (i64.const 3))))'
    network, who = installed(grow)
    network.stop(who)
    assert not network.upgrade(
        who, WasmCanister(canister(), limits=WasmLimits(stable_bytes=2 * PAGE))
    )


# Nothing survives a trap or a query


TABLE = (
    "(table $t 2 100 funcref) (func $f) (elem declare func $f)",
    "(func $s (table.set $t (i32.const 1) (ref.func $f))) (start $s)",
    method("query", "use", f"(call_indirect (i32.const 1)) {ANSWER}"),
    method("query", "size", "(call $answer (table.size $t))"),
    method(
        "update",
        "spoil",
        "(drop (memory.grow (i32.const 1))) (drop (table.grow $t (ref.null func) (i32.const 3)))"
        " (table.set $t (i32.const 1) (ref.null func)) unreachable",
    ),
    method(
        "update",
        "grow",
        f"(drop (table.grow $t (ref.func $f) (i32.const 1))) {ANSWER}",
    ),
    method("query", "last", f"(call_indirect (i32.const 2)) {ANSWER}"),
)


def test_tables_are_what_they_were_before_a_trap() -> None:
    network, who = installed(*TABLE)
    for _ in range(2):
        assert held(network, who, "use") == 0
        assert held(network, who, "size") == 2
        assert "unreachable" in ask(network, who, "spoil").message


def test_tables_keep_what_a_message_did_that_ended_well() -> None:
    network, who = installed(*TABLE)
    assert ask(network, who, "grow").ok
    assert not ask(network, who, "spoil").ok
    assert held(network, who, "size") == 3
    assert held(network, who, "last") == 0


@pytest.mark.parametrize("drop", ["data.drop $d", "elem.drop $e"])
def test_dropped_segments_are_there_again(drop: str) -> None:
    use = (
        "(memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))"
        " (table.init $e (i32.const 0) (i32.const 0) (i32.const 1))"
    )
    network, who = installed(
        '(data $d "x") (table 1 funcref) (func $f) (elem $e func $f)',
        method("query", "ask", f"{use} ({drop}) {ANSWER}"),
        method("update", "trap", f"{use} ({drop}) unreachable"),
        method("update", "go", f"{use} ({drop}) {ANSWER}"),
    )
    for _ in range(2):
        assert held(network, who, "ask") == 0
        assert "unreachable" in ask(network, who, "trap").message
        assert ask(network, who, "go").ok


def test_memory_that_a_trapped_message_grew_is_given_back() -> None:
    network, who = installed(
        method("update", "grow", "(drop (memory.grow (i32.const 5))) unreachable"),
        method("query", "size", "(call $answer (memory.size))"),
    )
    assert not ask(network, who, "grow").ok
    assert held(network, who, "size") == 1


@given(st.binary(max_size=300))
@settings(max_examples=scaled(100), deadline=None)
def test_the_scan_finds_every_instruction_that_changes_tables_or_drops(data: bytes) -> None:
    text = drawn_module(Choices(data))
    try:
        code = scan.scan_code(scan.sections_of(bytes(wasmtime.wat2wasm(text))))
    except (ModuleError, CandidError, wasmtime.WasmtimeError):
        return
    changes = ("table.set", "table.grow", "table.fill", "table.copy", "table.init")
    assert code.changes_tables == any(each in text for each in changes)
    assert code.drops_segments == any(each in text for each in ("data.drop", "elem.drop"))


# Time


def test_functions_of_the_system_cost_instructions() -> None:
    limits = WasmLimits(instructions=100 * CALL_COST)
    network, who = installed(
        method("update", "spin", "(loop $on (drop (call $time)) (br $on))"),
        method("update", "cost", "(call $answer (i32.wrap_i64 (call $counter (i32.const 0))))"),
        limits=limits,
    )
    assert "IC0522" in ask(network, who, "spin").message
    assert number(ask(network, who, "cost")) >= CALL_COST


@pytest.mark.parametrize(
    "body",
    [
        "(call $append (i32.const 0) (i32.const 1000000))",
        "(call $print (i32.const 0) (i32.const 30000))",
        "(call $stable_write (i64.const 0) (i64.const 0) (i64.const 1000000))",
        "(call $stable_read (i64.const 0) (i64.const 0) (i64.const 1000000))",
        "(memory.fill (i32.const 0) (i32.const 7) (i32.const 1000000))",
        "(memory.copy (i32.const 0) (i32.const 9) (i32.const 1000000))",
        NEW_CALL + " (call $call_append (i32.const 0) (i32.const 1000000))",
        "(table.fill (i32.const 0) (ref.null func) (i32.const 2000))",
    ],
)
def test_work_costs_as_many_instructions_as_it_moves_bytes(body: str) -> None:
    setup = "(drop (memory.grow (i32.const 39))) (drop (call $stable_grow (i64.const 20)))"
    network, who = installed(
        "(table 2000 funcref)",
        method("update", "go", f"{setup} {body * 2} {ANSWER}"),
        method("update", "bare", f"{setup} {ANSWER}"),
        limits=WasmLimits(instructions=10 * CALL_COST),
    )
    assert ask(network, who, "bare").ok
    many, who = installed(
        "(table 2000 funcref)",
        method("update", "go", f"{setup} (loop $on {body} (br $on))"),
        limits=WasmLimits(instructions=200 * CALL_COST),
    )
    assert not ask(many, who, "go").ok


# Memory, each resource in bytes


def grown(limits: WasmLimits, pages: int) -> int:
    grow = method("update", "go", f"(call $answer (memory.grow (i32.const {pages})))")
    return number(ask(*installed(grow, limits=limits), "go"))


def test_memory_has_a_limit_of_bytes() -> None:
    assert grown(WasmLimits(memory_bytes=10 * PAGE), 9) == 1
    assert grown(WasmLimits(memory_bytes=10 * PAGE), 10) == 2**32 - 1
    for text in ("(memory 1025)", "(memory 65536)", "(memory i64 1025)"):
        with pytest.raises(IcError, match="exceeds memory limits"):
            WasmCanister(built(text))


def test_tables_have_a_limit_of_bytes_together() -> None:
    limits = WasmLimits(table_bytes=1600, changing_table_bytes=800)
    WasmCanister(built("(table 100 funcref) (table 100 funcref)"), limits=limits)
    with pytest.raises(IcError, match="table"):
        WasmCanister(built("(table 100 funcref) (table 101 funcref)"), limits=limits)
    grow = "(call $answer (table.grow (ref.null func) (i32.const {})))"
    network, who = installed(
        "(table 1 funcref)",
        method("query", "fits", grow.format(99)),
        method("query", "more", grow.format(100)),
        limits=limits,
    )
    assert held(network, who, "fits") == 1
    assert held(network, who, "more") == 2**32 - 1


def test_printed_lines_have_a_limit_of_bytes() -> None:
    pages = 32 * PAGE
    network, who = installed(
        method(
            "update",
            "go",
            f"(drop (memory.grow (i32.const 39))) (loop $on (call $print (i32.const 0)"
            f" (i32.const {pages})) (br $on))",
        ),
    )
    assert "IC0522" in ask(network, who, "go").message
    code = network.canister(who)
    assert isinstance(code, WasmCanister)
    assert max(map(len, code.lines)) == LINE_BYTES
    assert sum(map(len, code.lines)) <= code.limits.printed_bytes


def test_the_text_of_a_trap_is_cut() -> None:
    network, who = installed(
        method(
            "update",
            "go",
            "(drop (memory.grow (i32.const 39))) (call $trap (i32.const 0) (i32.const 2000000))",
        ),
    )
    assert len(ask(network, who, "go").message) < 40_000


CALLS = (
    "(table 1 funcref) (elem (i32.const 0) $cb) (func $cb (param i32))",
    method(
        "update",
        "go",
        f"""(drop (memory.grow (i32.const 39)))
        (loop $on (call $call_new {"(i32.const 0)" * 8})
          (call $call_append (i32.const 0) (i32.const 1000000))
          (global.set $count (i32.add (global.get $count) (i32.const 1)))
          (br_if $on (i32.eqz (call $perform))))
        (call $answer (global.get $count))""",
    ),
)


def test_calls_of_one_execution_have_a_limit_of_bytes() -> None:
    network, who = installed(*CALLS, limits=WasmLimits(call_bytes=5 * MIB))
    recorder = Recorder()
    network.observers.append(recorder)
    assert number(ask(network, who, "go")) == 6
    sends = [each for each in recorder.happenings if each.kind == "send"]
    assert len(sends) == 5


class Sender(Canister):
    """Sends requests of a mebibyte to itself in each execution, and never answers."""

    def __init__(self) -> None:
        self.refused = 0
        self.executed = 0

    def update(self, ctx: Context, method: str, _arg: bytes) -> None:
        self.executed += 1
        if method == "send":
            for _ in range(10):
                ctx.call(ctx.me, "silent", bytes(MIB), self.count)

    def count(self, _ctx: Context, answer: Answer) -> None:
        self.refused += answer.code == SYS_TRANSIENT


def test_requests_under_way_have_a_limit_of_bytes() -> None:
    network = CanisterNetwork(1, limits=MessageLimits(under_way_bytes=4 * MIB + 5000))
    code = Sender()
    who = network.create(0, code)
    network.submit(ANONYMOUS, who, "send", b"")
    network.step(4)
    assert (code.refused, code.executed) == (6, 5)


def test_requests_that_were_answered_count_no_more() -> None:
    network = CanisterNetwork(1, limits=MessageLimits(under_way_bytes=10 * MIB + 15_000))
    code = Sender()
    who = network.create(0, code)
    for _ in range(3):
        network.submit(ANONYMOUS, who, "send", b"")
        network.step(4)
    assert (code.refused, code.executed) == (0, 33)
    assert [host.under_way_bytes for host in network.hosts()] == [0]


class Waiting(Canister):
    """Calls itself with a mebibyte, and answers no request before its own is answered."""

    def update(self, ctx: Context, _method: str, _arg: bytes) -> None:
        ctx.call(ctx.me, "on", bytes(MIB), lambda later, answer: later.reply(answer.data))


def test_a_request_that_waits_for_its_answer_counts_without_its_argument() -> None:
    network = CanisterNetwork(1, limits=MessageLimits(under_way_bytes=3 * MIB))
    who = network.create(0, Waiting())
    network.submit(ANONYMOUS, who, "on", b"")
    network.step(500)
    arguments = [len(call.arg) for call in network._pending.values()]  # as above
    assert (len(arguments), sum(arguments)) == (500, MIB)


class Echo(Canister):
    """Answers with a mebibyte."""

    def update(self, ctx: Context, _method: str, _arg: bytes) -> None:
        ctx.reply(bytes(MIB))


class Asking(Canister):
    """Asks another canister ten times in one execution, and counts the answers."""

    def __init__(self, other: Principal) -> None:
        self.other = other
        self.answers = 0

    def update(self, ctx: Context, _method: str, _arg: bytes) -> None:
        for _ in range(10):
            ctx.call(self.other, "go", b"", self.count)

    def count(self, _ctx: Context, _answer: Answer) -> None:
        self.answers += 1


def test_what_a_canister_sends_in_a_round_has_a_limit_of_bytes() -> None:
    network = CanisterNetwork(1, limits=MessageLimits(bytes_a_round=3 * MIB))
    code = Asking(network.create(0, Echo()))
    network.submit(ANONYMOUS, network.create(0, code), "go", b"")
    answers = []
    for _ in range(7):
        network.step()
        answers.append(code.answers)
    assert answers == [0, 0, 3, 6, 9, 10, 10]


def test_the_journal_of_stable_memory_is_no_larger_than_the_memory() -> None:
    memory = StableMemory(4 * PAGE)
    memory.grow(4)
    memory.commit()
    for turn in range(1, 50):
        memory.write(0, bytes([turn]) * 4 * PAGE)
    journal = memory._journal  # nothing else shows it
    assert sum(map(len, journal.values())) <= 4 * PAGE
    memory.undo()
    assert memory.data == bytes(4 * PAGE)


def test_zeros_of_stable_memory_take_no_memory() -> None:
    memory = StableMemory(64 * MIB)
    memory.grow(1024)
    memory.write(0, bytes(64 * MIB))
    assert not memory.blocks()


# Modules that are too large


VECTOR = "(global (mut v128) (v128.const i64x2 0 0))"
TIME = '(import "ic0" "time" (func (result i64)))'
LOCALS = module.LOCAL_COUNT // 10
"""The local variables of a function. wasmtime allows no more."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (VECTOR * (module.GLOBAL_WORDS // 2 + 1), "at most 1,000 words, not 1,002"),
        (
            "(func)"
            + "".join(f'(export "{at}" (func 0))' for at in range(module.EXPORT_COUNT + 1)),
            "1,000 exports, not 1,001",
        ),
        (TIME * (module.IMPORT_COUNT + 1), "1,000 imports, not 1,001"),
        ("(table 0 funcref)" * (module.TABLE_COUNT + 1), "10 tables, not 11"),
        ("(func)" * (module.FUNCTION_COUNT + 1), "50,000 functions, not 50,001"),
        (f"(func (local {'i64 ' * LOCALS}))" * 11, "500,000 local variables, not 550,000"),
        (
            f"(func (local {'i64 ' * 4000}) {'(block)' * (module.WORK // 4000)})",
            "16,000,000 local variables times blocks and branches",
        ),
    ],
)
def test_modules_have_limits(text: str, words: str) -> None:
    with pytest.raises(ModuleError, match=words):
        WasmCanister(built(text))


def test_nested_loops_weigh_more_than_loops_in_a_row() -> None:
    row = scan.scan_code(scan.sections_of(built(f"(func (local i64) {'(loop)' * 100})")))
    nested = scan.scan_code(
        scan.sections_of(built(f"(func (local i64) {'(loop ' * 100}{')' * 100})"))
    )
    assert row.work < 250
    assert nested.work > 5000


def test_functions_have_a_limit_of_bytes() -> None:
    size = CODE_BYTES
    body = b"\0" + b"\1" * size + b"\x0b"
    raw = bytearray(b"\0asm\1\0\0\0\1\4\1\x60\0\0\3\2\1\0\x0a")
    content = bytearray(b"\1")
    leb128(len(body), content)
    content += body
    leb128(len(content), raw)
    with pytest.raises(ModuleError, match="4,194,304 bytes of functions"):
        WasmCanister(bytes(raw + content))


def test_a_module_that_changes_tables_lists_no_more_functions_than_allowed() -> None:
    functions = "".join(f"(func $f{at})" for at in range(8193))
    names = " ".join(f"$f{at}" for at in range(8193))
    change = "(func (drop (table.grow (ref.null func) (i32.const 1))))"
    with pytest.raises(ModuleError, match="at most 8,192 functions in its element segments"):
        WasmCanister(built(f"(table 1 funcref) {functions} (elem declare func {names}) {change}"))


def large() -> str:
    """A module that another process compiles."""
    change = "(local.set 7 (i64.add (local.get 7) (local.get 9)))"
    loops = f"(loop {change} (br_if 0 (i32.const 1)) " * 250 + ")" * 250
    return f"(memory 1) (func (local {'i64 ' * 200}) {loops})"


def test_a_large_module_is_compiled_by_another_process() -> None:
    network = CanisterNetwork(1)
    go = f"{IMPORTS} {method('update', 'go', ANSWER)}"
    who = network.create(0, WasmCanister(built(f"{go} (func {'nop ' * 40_000})")))
    assert ask(network, who, "go").ok


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COMPILER_BYTES", MIB),
        ("COMPILER_SECONDS", 0),
    ],
)
def test_a_compiler_that_takes_too_much_is_ended(
    monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    monkeypatch.setattr(compiler, name, value)
    # With so little memory, the compiler's threads sometimes wait for one that did not start.
    monkeypatch.setattr(compiler, "_OTHER_LIMIT_SECONDS", 30)
    with pytest.raises(ModuleError, match="cannot be compiled with"):
        WasmCanister(built(large() + f"(func {'nop ' * (7 + len(name))})"))


def test_modules_that_are_kept_have_a_limit_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHED_BYTES", 1 << 20)
    for number in range(50):
        load(built(f'(memory 1) (data (i32.const 0) "a text that makes it longer {number}")'))
    assert 1 < len(module._CACHE) <= (1 << 20) // (96 << 10)  # nothing else shows it


_SMALL_MODULES: Final = """
import gc
from pathlib import Path

import wasmtime

from interchain_events.icrc72.ic.wasm import module, system

module._CACHED_BYTES = 1 << 40


def memory():
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


def load(numbers):
    for number in numbers:
        code = f'(memory 1) (func (export "canister_query f") (drop (i32.const {number})))'
        system.linker(module.load(bytes(wasmtime.wat2wasm(f"(module {code})"))))


load(range(100))
before = memory()
load(range(100, 500))
print(memory() - before, sum(size for size, _ in list(module._CACHE.values())[100:]))
"""


def test_a_kept_module_counts_with_the_memory_that_it_takes() -> None:
    run = python("-c", _SMALL_MODULES)
    assert run.returncode == 0, run.stderr
    taken, counted = map(int, run.stdout.split())
    assert taken <= counted, "strangers' small modules would take more than the limit"


def test_limits_that_are_changed_hold() -> None:
    limits = replace(WasmLimits(), instructions=1000)
    network, who = installed(method("update", "spin", "(loop $on (br $on))"), limits=limits)
    assert "more than 1000 instructions" in ask(network, who, "spin").message
