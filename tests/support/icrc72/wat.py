"""Small canisters in WebAssembly text. canister.wat has their common parts."""

from pathlib import Path

import wasmtime

from interchain_events.icrc72 import ANONYMOUS, CanisterNetwork
from interchain_events.icrc72.ic.canister import Answer
from interchain_events.icrc72.ic.principal import Principal

IMPORTS = Path(__file__).with_name("canister.wat").read_text(encoding="utf-8")


def method(kind: str, name: str, body: str) -> str:
    """Return a method, `update` or `query`, with this body."""
    return f'(func (export "canister_{kind} {name}") {body})'


def canister(*parts: str) -> bytes:
    """Return the module of a canister with these fields in addition to those of `IMPORTS`."""
    return bytes(wasmtime.wat2wasm(f"(module {IMPORTS} {' '.join(parts)})"))


def ask(
    network: CanisterNetwork, who: Principal, name: str, arg: bytes = b"", rounds: int = 12
) -> Answer:
    """Return a canister's answer to an anonymous user within this many rounds."""
    ticket = network.submit(ANONYMOUS, who, name, arg)
    network.step(rounds)
    assert ticket.answer is not None
    return ticket.answer
