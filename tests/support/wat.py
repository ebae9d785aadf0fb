"""Small canisters in WebAssembly text: what they import, a memory with strings, and functions."""

import wasmtime

IMPORTS = """
(import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
(import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
(import "ic0" "msg_caller_size" (func $caller_size (result i32)))
(import "ic0" "msg_caller_copy" (func $caller_copy (param i32 i32 i32)))
(import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
(import "ic0" "msg_reply" (func $reply))
(import "ic0" "msg_reject" (func $reject (param i32 i32)))
(import "ic0" "msg_reject_code" (func $reject_code (result i32)))
(import "ic0" "msg_deadline" (func $deadline (result i64)))
(import "ic0" "msg_cycles_accept128" (func $accept_cycles (param i64 i64 i32)))
(import "ic0" "msg_cycles_refunded128" (func $refunded (param i32)))
(import "ic0" "canister_cycle_balance128" (func $balance (param i32)))
(import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
(import "ic0" "call_on_cleanup" (func $on_cleanup (param i32 i32)))
(import "ic0" "call_data_append" (func $call_append (param i32 i32)))
(import "ic0" "call_cycles_add128" (func $call_cycles (param i64 i64)))
(import "ic0" "call_with_best_effort_response" (func $best_effort (param i32)))
(import "ic0" "call_perform" (func $perform (result i32)))
(import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
(import "ic0" "stable64_size" (func $stable_size (result i64)))
(import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
(import "ic0" "stable64_read" (func $stable_read (param i64 i64 i64)))
(import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
(import "ic0" "time" (func $time (result i64)))
(import "ic0" "accept_message" (func $let_in))
(import "ic0" "msg_method_name_size" (func $name_size (result i32)))
(import "ic0" "is_controller" (func $controls (param i32 i32) (result i32)))
(import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
(import "ic0" "debug_print" (func $print (param i32 i32)))
(import "ic0" "trap" (func $trap (param i32 i32)))
(memory $memory 1 40)
(global $count (mut i32) (i32.const 0))
(data (i32.const 0) "take")
(data (i32.const 16) "oh no")
(func $say (param $at i32) (param $size i32)
  (call $append (local.get $at) (local.get $size)) (call $reply))
(func $answer (param $value i32)
  (i32.store (i32.const 100) (local.get $value)) (call $say (i32.const 100) (i32.const 4)))
(func $both (param $value i32)
  (global.set $count (local.get $value)) (i32.store (i32.const 200) (local.get $value)))
"""


def method(kind: str, name: str, body: str) -> str:
    """A method, `update` or `query`, with what it does."""
    return f'(func (export "canister_{kind} {name}") {body})'


def canister(*parts: str) -> bytes:
    """The module of a canister with these fields beside those of `IMPORTS`."""
    return bytes(wasmtime.wat2wasm(f"(module {IMPORTS} {' '.join(parts)})"))
