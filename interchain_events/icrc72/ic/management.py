"""The management canister, by which canisters and users control canisters.

It is not a real canister. The network serves calls to the empty principal here.
"""

from collections.abc import Callable
from typing import Final, Protocol, cast

from interchain_events.icrc72.ic.candid.decode import Decoder
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import (
    CANISTER_REJECT,
    DESTINATION_INVALID,
    STOPPED,
    Answer,
    Call,
    Canister,
    Host,
)
from interchain_events.icrc72.ic.errors import IcError
from interchain_events.icrc72.ic.principal import Principal
from pubsub_emulator.primitives.hashing import blake2_256

Make = Callable[[bytes, bytes], Canister]
"""Makes a canister from a WebAssembly module and the argument of `install_code`.

Raises `IcError` if the module cannot be used.
"""


class _Network(Protocol):
    """The part of a network that the management canister uses."""

    seed: bytes
    make: Make | None
    """Makes canisters from modules; `None` if modules cannot be installed in this network."""

    def host(self, identity: Principal) -> Host: ...
    def stop(self, identity: Principal) -> None: ...
    def start(self, identity: Principal) -> None: ...
    def upgrade(self, identity: Principal, code: Canister) -> bool: ...
    def reinstall(self, identity: Principal, code: Canister) -> None: ...


_NOTHING: Final = b"DIDL\0\0"
"""A message without values."""
_NAMED: Final = Decoder(parse_types("(record { canister_id : principal })"))
_INSTALL: Final = Decoder(
    parse_types(
        "(record { mode : variant { install; reinstall; upgrade : opt record { skip_pre_upgrade :"
        " opt bool; wasm_memory_persistence : opt variant { keep; replace } } }; canister_id :"
        " principal; wasm_module : blob; arg : blob })"
    )
)
_STATUS: Final = Encoder(
    parse_types(
        "(record { status : variant { running; stopping; stopped }; memory_size : nat; cycles :"
        " nat; settings : record { controllers : vec principal; compute_allocation : nat;"
        " memory_allocation : nat; freezing_threshold : nat }; module_hash : opt blob;"
        " idle_cycles_burned_per_day : nat })"
    )
)
_BLOB: Final = Encoder(parse_types("(blob)"))


def serve(network: _Network, call: Call) -> Answer | None:
    """Answer a call to the management canister.

    Returns `None` for `stop_canister` while the canister is stopping: the network answers the call
    when it has stopped. Errors are answered with a reject.
    """
    try:
        return _served(network, call)
    except IcError as error:
        return Answer(b"", CANISTER_REJECT, str(error))


def _served(network: _Network, call: Call) -> Answer | None:
    """Serve a call. Raises `IcError` if the caller may not make it or it is malformed."""
    match call.method:
        case "raw_rand":
            # Drawn from the seed and the call only, so that runs with the same seed are equal
            # (I13).
            drawn = blake2_256(b"raw_rand" + network.seed + call.number.to_bytes(8, "big"))
            return Answer(_BLOB.encode(drawn))
        case "deposit_cycles":
            host = _named(network, call, controlled=False)
            host.cycles += call.cycles
            call.cycles = 0
        case "canister_status":
            return Answer(_STATUS.encode(_status_of(_named(network, call))))
        case "stop_canister":
            host = _named(network, call)
            network.stop(host.id)
            if host.status != STOPPED:
                host.stopping = (*host.stopping, call)
                return None
        case "start_canister":
            network.start(_named(network, call).id)
        case "install_code":
            _install_code(network, call)
        case _:
            words = f"the management canister has no method {call.method[:80]!r}"
            return Answer(b"", DESTINATION_INVALID, words)
    return Answer(_NOTHING)


def _named(network: _Network, call: Call, *, controlled: bool = True) -> Host:
    """Return the canister in the argument. Raises `IcError` if the caller may not use it."""
    raw = cast("tuple[tuple[bytes]]", _NAMED.decode(call.arg))[0][0]
    host = network.host(Principal(raw))
    return _controlled(host, call) if controlled else host


def _controlled(host: Host, call: Call) -> Host:
    """Return the canister if the caller controls it or is it. Raises `IcError` otherwise."""
    if call.sender not in (*host.controllers, host.id):
        raise IcError(f"{call.sender.text} does not control {host.id.text}")
    return host


def _status_of(host: Host) -> tuple[object, ...]:
    """Return the record of `canister_status`. Settings that are not emulated are 0."""
    status: Variant[str, None] = Variant(host.status if host.code is not None else STOPPED, None)
    size = 0 if host.code is None else host.code.state_size()
    digest = None if host.code is None else host.code.module_hash
    return status, size, host.cycles, (host.controllers, 0, 0, 0), digest, 0


def _install_code(network: _Network, call: Call) -> None:
    """Install, reinstall or upgrade a module (`install_code`).

    An upgrade needs a stopped canister, unlike on the Internet Computer. Raises `IcError`.
    """
    mode, raw, wasm, arg = cast(
        "tuple[Variant[str, object], bytes, bytes, bytes]", _INSTALL.decode(call.arg)[0]
    )
    host = _controlled(network.host(Principal(raw)), call)
    if network.make is None:
        raise IcError("this network installs no modules")
    code = network.make(wasm, arg)
    if mode.tag == "upgrade":
        if not network.upgrade(host.id, code):
            raise IcError("the upgrade trapped")
    else:
        if mode.tag == "install" and host.code is not None:
            raise IcError(f"{host.id.text} has code")
        network.reinstall(host.id, code)


OF_USERS: Final = frozenset(["canister_status", "stop_canister", "start_canister", "install_code"])
"""The methods that users may call directly."""
