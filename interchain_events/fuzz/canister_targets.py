"""Candid, agents' requests, modules and stories as targets of `pubsub fuzz --target`."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pubsub_emulator.laboratory.mutation import target

if TYPE_CHECKING:
    from interchain_events.icrc72.stories import Plan


def _candid() -> Iterable[bytes]:
    from interchain_events.icrc72.ic.principal import canister_id
    from interchain_events.icrc72.messages import Event
    from interchain_events.icrc72.services import codec
    from interchain_events.icrc72.values import of

    source = canister_id(0, 7)
    for data in (
        7,
        -3,
        "text",
        b"bytes",
        [1, [2, {"a": None}]],
        {"map": {"of": [True, 1.5, source]}},
    ):
        yield codec("icrc72_publish").args.encode(
            (Event(2, 1, 1, "a.b", of(data), source, (("key", of(data)),)),)
        )


@target("candid", "a Candid message to a broadcaster", _candid, "icrc72.ic.candid")
def _read_candid(data: bytes) -> str:
    from interchain_events.icrc72.methods import PUBLISH

    return f"{min(len(PUBLISH.value(data)), 9)} events"


def _ingress() -> Iterable[bytes]:
    import cbor2

    content = {"request_type": "call", "sender": b"\4", "ingress_expiry": 10**9, "arg": b"DIDL\0\0"}
    yield cbor2.dumps({"content": {**content, "canister_id": b"\0\1", "method_name": "m"}})
    yield cbor2.dumps(
        {"content": {**content, "request_type": "read_state", "paths": [[b"time"], []]}}
    )
    delegation = {
        "delegation": {"pubkey": b"", "expiration": 2**63, "targets": [b"\0\1"]},
        "signature": b"",
    }
    yield cbor2.dumps(
        {
            "content": content,
            "sender_pubkey": b"",
            "sender_sig": b"",
            "sender_delegation": [delegation],
        }
    )


@target("ingress", "a request of an agent", _ingress, "icrc72.port")
def _read_ingress(data: bytes) -> str:
    from interchain_events.icrc72.port.envelope import read_request

    kind = "read_state" if b"read_state" in data else "call"
    return f"{min(len(read_request(data, kind, 1).paths), 9)} paths"


def _modules() -> Iterable[bytes]:
    import wasmtime

    stable = '(import "ic0" "stable64_grow" (func (param i64) (result i64)))'
    parts = (
        "(memory 1) (global (mut i32) (i32.const 7)) (global (mut f64) (f64.const 1)) (func $go)"
        " (start $go)"
    )
    yield bytes(wasmtime.wat2wasm(f'(module {stable} {parts} (func (export "canister_update f")))'))
    yield bytes(
        wasmtime.wat2wasm(
            '(module (table 2 funcref) (func (export "canister_init")) (elem (i32.const 0) 0))'
        )
    )


@target("canister-module", "the WebAssembly module of a canister", _modules, "icrc72.ic.wasm")
def _read_module(data: bytes) -> str:
    from interchain_events.icrc72.ic.wasm.canister import WasmCanister

    return f"{min(len(WasmCanister(data).module.exports), 9)} functions"


def _stories() -> Iterable[bytes]:
    from interchain_events.icrc72.campaign import written
    from interchain_events.icrc72.stories import drawn

    for number in range(8):
        yield json.dumps(
            {**written(drawn(b"fuzz %d" % number)), "rounds": 60, "cheat": -1}
        ).encode()
    yield json.dumps({**written(drawn(b"fuzz")), "rounds": 10, "cheat": 3}).encode()


def _story(data: bytes) -> "int | Plan":
    """Return the number of a cheat, or the plan of a story. Raises `Icrc72Error`."""
    from interchain_events.icrc72.campaign import read
    from interchain_events.icrc72.errors import Icrc72Error

    try:
        case = json.loads(data)
        cheat = case["cheat"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Icrc72Error(f"no case: {error}") from error
    if type(cheat) is int and 0 <= cheat < 1000:
        return cheat
    plan = read(case)
    return replace(
        plan, rounds=min(plan.rounds, 120), refuse=min(plan.refuse, 40), delay=min(plan.delay, 3)
    )


def _shrunk(data: bytes) -> bytes:
    from interchain_events.icrc72.campaign import shrink, written

    plan = _story(data)
    if isinstance(plan, int):
        return data
    smallest = shrink(plan)
    return (
        json.dumps({**written(smallest.plan), "cheat": -1}).encode() if smallest.surprise else data
    )


@target(
    "icrc",
    "a story of subnets and canisters, played and audited",
    _stories,
    "icrc72",
    text=True,
    shrink=_shrunk,
)
def _play(data: bytes) -> str:
    """Play and audit a story or a cheat. Raises `Surprise` if the audit is wrong."""
    from interchain_events.icrc72.campaign import play_cheat, play_plan
    from interchain_events.icrc72.stories import Surprise

    plan = _story(data)
    if isinstance(plan, int):
        missed = play_cheat(plan)
        if missed:
            raise Surprise(missed)
        return "found"
    outcome = play_plan(plan)
    if outcome.surprise:
        raise Surprise(outcome.surprise)
    # Inputs with the same result count as similar, so the rounds are rounded.
    return f"at rest after {outcome.rounds // 500 * 500} rounds or more"
