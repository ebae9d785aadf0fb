"""Blocks: hooks in order, weights, phases, and a header that commits to all of it."""

# ruff: noqa: ARG002  # hooks and calls take what they are given

import pytest

from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.header import AURA_ENGINE, DigestItem, DigestKind, Header
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.codecs import U32
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, Call, dispatchable
from pubsub_emulator.runtime.framework.events import ApplyExtrinsic, Finalization, Initialization
from pubsub_emulator.runtime.framework.executive import (
    BlockWeights,
    Executive,
    Extrinsic,
    InherentFailed,
)
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError, StateError
from pubsub_emulator.runtime.framework.origin import (
    Origin,
    Parachain,
    Root,
    Signed,
    Unsigned,
    encode_origin,
    ensure_root,
    ensure_unsigned,
)
from pubsub_emulator.runtime.framework.pallet import Pallet
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.framework.system import (
    BLOCK_HASH_COUNT,
    DispatchEventInfo,
    ExtrinsicFailed,
    ExtrinsicSuccess,
)
from pubsub_emulator.runtime.relay.paras import NewHeadNoted
from pubsub_emulator.trie import state_root

ALICE, BOB = AccountId(b"a" * 32), AccountId(b"b" * 32)
GENESIS = Hash(bytes(32))


class Probe(Hooks):
    """Writes down when it is called, and says so in events."""

    pallet = Pallet("Session", 9, "pallet_probe")

    def __init__(self, log: list[str], name: str = "Session", idle: Weight = WEIGHT_ZERO) -> None:
        self.pallet = Pallet(name, 9, "pallet_probe")  # type: ignore[misc]
        self.log = log
        self.idle = idle
        self.broken = ""

    def on_initialize(self, storage: Storage, now: int) -> Weight:
        self.log.append(f"{self.pallet} initialize {now}")
        events.deposit(storage, NewHeadNoted(ParaId(1)))
        return Weight(10, 1)

    def on_idle(self, storage: Storage, now: int, remaining: Weight) -> Weight:
        self.log.append(f"{self.pallet} idle {remaining.ref_time}")
        return self.idle

    def on_finalize(self, storage: Storage, now: int) -> None:
        self.log.append(f"{self.pallet} finalize")
        events.deposit(storage, NewHeadNoted(ParaId(3)))

    def integrity_test(self) -> None:
        if self.broken:
            raise IntegrityError(self.broken)

    def try_state(self, storage: Storage) -> None:
        if self.broken:
            raise StateError(f"{self.pallet}: {self.broken}")

    @dispatchable(0, weight=Weight(100, 1))
    def inherent(self, storage: Storage, origin: Origin, value: U32) -> None:
        ensure_unsigned(origin)
        self.log.append(f"{self.pallet} inherent {value}")
        if value == 13:
            raise BadOrigin

    @dispatchable(1, weight=Weight(300, 1))
    def governance(self, storage: Storage, origin: Origin, value: U32) -> Weight:
        ensure_root(origin)
        self.log.append(f"{self.pallet} governance {value}")
        return Weight(200, 1)


def _world(max_block: int = 1000, normal: int = 800) -> tuple[Storage, Executive, list[str]]:
    log: list[str] = []
    balances = Balances(10)
    weights = BlockWeights(Weight(max_block, 1000), Weight(normal, 1000))
    executive = Executive(
        [balances, Probe(log, "Session", Weight(50, 1)), Probe(log, "Paras", Weight(70, 1))],
        weights,
    )
    storage = Storage(State())
    balances.genesis(storage, {ALICE: 1000, BOB: 1000})
    storage.commit()
    return storage, executive, log


def _governance(value: int, origin: Origin | None = None) -> Extrinsic:
    return Extrinsic(Root() if origin is None else origin, Call("Session", "governance", (value,)))


def test_a_block_runs_hooks_in_order_and_rotates_idle_weight() -> None:
    storage, executive, log = _world()
    block = executive.build_block(
        storage,
        1,
        GENESIS,
        inherents=[Call("Session", "inherent", (5,))],
        extrinsics=[_governance(6)],
    )
    assert log == [
        "Session initialize 1",
        "Paras initialize 1",
        "Session inherent 5",
        "Session governance 6",
        "Session idle 680",  # 1000 - 10 - 10 - 100 - 200
        "Paras idle 630",
        "Session finalize",
        "Paras finalize",
    ]
    log.clear()
    executive.build_block(storage, 2, block.header.hash())
    assert [line for line in log if "idle" in line] == ["Paras idle 980", "Session idle 910"]


def test_events_carry_their_phase_and_are_in_the_committed_state() -> None:
    storage, executive, _ = _world()
    block = executive.build_block(
        storage,
        1,
        GENESIS,
        inherents=[Call("Session", "inherent", (5,))],
        extrinsics=[_governance(6), _governance(7, Signed(ALICE))],
    )
    phases = [(record.phase, type(record.event)) for record in block.events]
    assert phases == [
        (Initialization(), NewHeadNoted),
        (Initialization(), NewHeadNoted),
        (ApplyExtrinsic(0), ExtrinsicSuccess),
        (ApplyExtrinsic(1), ExtrinsicSuccess),
        (ApplyExtrinsic(2), ExtrinsicFailed),
        (Finalization(), NewHeadNoted),
        (Finalization(), NewHeadNoted),
    ]
    assert block.events[4].event == ExtrinsicFailed(BadOrigin(), DispatchEventInfo(Weight(300, 1)))
    assert RELAY.stored_events(storage) == list(block.events)
    assert system.EVENT_COUNT.get(storage) == 7
    assert system.EXECUTION_PHASE.get(storage) is None
    executive.build_block(storage, 2, block.header.hash())
    assert len(RELAY.stored_events(storage)) == 4


def test_the_header_commits_to_parent_state_extrinsics_and_digest() -> None:
    storage, executive, _ = _world()
    item = DigestItem(DigestKind.PRE_RUNTIME, AURA_ENGINE, bytes(8))
    block = executive.build_block(
        storage, 1, GENESIS, digest=[item], extrinsics=[_governance(6), _governance(7)]
    )
    header = block.header
    assert header.state_root == storage.state.root()
    assert header.digest == (item,)
    entries = [
        (encode_compact(index), extrinsic) for index, extrinsic in enumerate(block.extrinsics)
    ]
    assert header.extrinsics_root == state_root(entries, version=0)
    assert Header.decode(header.encode()) == header
    following = executive.build_block(storage, 2, header.hash())
    assert following.header.parent_hash == header.hash()
    assert system.BLOCK_HASH.get(storage, 1) == header.hash()
    assert system.PARENT_HASH.get(storage) == header.hash()
    assert system.NUMBER.get(storage) == 2


def test_an_extrinsics_bytes_say_who_called_what() -> None:
    _, executive, _ = _world()
    encoded = [
        executive.encode_extrinsic(_governance(6, origin))
        for origin in (Root(), Signed(ALICE), Unsigned())
    ]
    assert encoded[0].hex() == "2c051a030000090106000000"  # field by field
    assert encoded[2].hex() == "1c05090106000000"  # field by field
    assert len({*encoded}) == 3
    assert encode_origin(Parachain(ParaId(1000))).hex() == "3200e8030000"
    assert encode_origin(Unsigned()).hex() == "0002"


def test_extrinsics_that_do_not_fit_are_omitted_and_smaller_ones_included() -> None:
    storage, executive, log = _world(normal=700)
    block = executive.build_block(
        storage, 1, GENESIS, extrinsics=[_governance(value) for value in range(4)]
    )
    # 200 used and 300 charged fit into 700 thrice: 300, 500, 700; the fourth would need 900.
    assert len(block.extrinsics) == 3
    assert block.left_out == (_governance(3),)
    assert [line for line in log if "governance" in line] == [
        f"Session governance {value}" for value in range(3)
    ]
    assert system.BLOCK_WEIGHT.get(storage).normal == Weight(600, 3)


def test_an_inherent_that_fails_makes_the_block_impossible() -> None:
    storage, executive, _ = _world()
    root = storage.state.root()
    with pytest.raises(InherentFailed):
        executive.build_block(storage, 1, GENESIS, inherents=[Call("Session", "inherent", (13,))])
    assert storage.state.root() == root


def test_using_more_than_the_idle_weight_is_a_defect() -> None:
    storage = Storage(State())
    executive = Executive(
        [Probe([], "Session", Weight(2000, 1))], BlockWeights(Weight(1000, 9), Weight(1, 1))
    )
    with pytest.raises(DefensiveFailure, match="on_idle"):
        executive.build_block(storage, 1, GENESIS)


def test_nobody_idles_in_a_full_block() -> None:
    storage = Storage(State())
    log: list[str] = []
    executive = Executive(
        [Probe(log, "Session", Weight(1, 1))], BlockWeights(Weight(10, 9), Weight(1, 1))
    )
    executive.build_block(storage, 1, GENESIS)
    assert not any("idle" in line for line in log)


def test_integrity_and_state_are_asked_of_every_pallet() -> None:
    storage, executive, _ = _world()
    executive.integrity_test()
    executive.try_state(storage)
    for name in ("Session", "Paras"):
        executive.pallets[name].broken = f"broken {name}"  # type: ignore[attr-defined]
    with pytest.raises(IntegrityError, match=r"broken Session.*broken Paras"):
        executive.integrity_test()
    with pytest.raises(StateError, match=r"broken Session.*broken Paras"):
        executive.try_state(storage)
    with pytest.raises(DefensiveFailure):
        Executive([Balances(), Balances()])


def test_old_block_hashes_are_forgotten() -> None:
    storage = Storage(State())
    executive = Executive([Balances()])
    system.BLOCK_HASH.insert(storage, 1, GENESIS)
    system.BLOCK_HASH.insert(storage, 2, GENESIS)
    executive.build_block(storage, BLOCK_HASH_COUNT + 2, GENESIS)
    assert not system.BLOCK_HASH.contains(storage, 1)
    assert system.BLOCK_HASH.contains(storage, 2)
