"""Canisters of `.wasm` files, for scenarios and trials."""

from pathlib import Path

from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.errors import ModuleError
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.wasm.canister import NOTHING, WasmCanister
from interchain_events.icrc72.ic.wasm.module import load
from interchain_events.icrc72.scenario import Modules


def read_module(place: Path) -> bytes:
    """Return the bytes of a module's file.

    Raises `Icrc72Error` if it cannot be read or is not a module.
    """
    try:
        wasm = place.read_bytes()
        load(wasm)
    except OSError as error:
        raise Icrc72Error(f"{place}: cannot be read: {error.strerror}") from error
    except ModuleError as error:
        raise Icrc72Error(f"{place}: {error}") from None
    return wasm


def canister_of(wasm: bytes, who: Principal, *, bare: bool) -> WasmCanister:
    """Return a canister that is installed with a principal, or with `bare` without an argument."""
    return WasmCanister(wasm, NOTHING if bare else Encoder(parse_types("(principal)")).encode(who))


def modules_of(place: str) -> Modules:
    """Return a function that makes a scenario's canisters from modules.

    `place` is the scenario's file. The paths of modules are relative to its folder.
    """
    return lambda model, who: canister_of(
        read_module(Path(place).parent / model.wasm), who, bare=model.bare
    )
