"""The management canister: randomness, status, stopping, modules."""

from support.wat import canister, method

from pubsub_emulator.icrc72.ic.candid.did import parse_types
from pubsub_emulator.icrc72.ic.candid.encode import Encoder
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.canister import CANISTER_REJECT, Answer, Canister, Context
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, MANAGEMENT, Principal
from pubsub_emulator.icrc72.ic.wasm.canister import WasmCanister

NAMED = Encoder(parse_types("(record { canister_id : principal })"))
INSTALL = Encoder(
    parse_types(
        "(record { mode : variant { install; reinstall; upgrade }; canister_id : principal; wasm_module : blob; "
        "arg : blob })"
    )
)


class Manager(Canister):
    """Asks the management canister what it is told to; the last answer is kept."""

    def __init__(self) -> None:
        self.got: list[Answer] = []

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        ctx.call(MANAGEMENT, method, arg, lambda _ctx, answer: self.got.append(answer))
        ctx.reply(b"")


def told(network: CanisterNetwork, who: Principal, method: str, arg: bytes) -> Answer:
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

    def install(mode: str, wasm: bytes, by: Principal = manager) -> Answer:
        return told(network, by, "install_code", INSTALL.encode((Variant(mode, None), who, wasm, b"")))

    assert told(network, stranger, "stop_canister", NAMED.encode((who,))).code == CANISTER_REJECT
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
    assert "there is no canister" in told(network, who, "canister_status", NAMED.encode((ANONYMOUS,))).message
