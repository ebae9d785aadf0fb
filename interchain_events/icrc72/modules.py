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
    """The bytes of a module's file. Raises `Icrc72Error`."""
    try:
        wasm = place.read_bytes()
        load(wasm)
    except OSError as error:
        raise Icrc72Error(f"{place}: cannot be read: {error.strerror}") from error
    except ModuleError as error:
        raise Icrc72Error(f"{place}: {error}") from None
    return wasm


def canister_of(wasm: bytes, who: Principal, *, bare: bool) -> WasmCanister:
    """A canister that is installed with a principal, or without an argument."""
    return WasmCanister(wasm, NOTHING if bare else Encoder(parse_types("(principal)")).encode(who))


def modules_of(place: str) -> Modules:
    """What makes the canisters of a scenario, whose files are named from its folder on."""
    return lambda model, who: canister_of(
        read_module(Path(place).parent / model.wasm), who, bare=model.bare
    )
