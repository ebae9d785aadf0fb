"""Paras come, include blocks whole or not at all, and go at a change of session in the right order (PS-11, PS-23)."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pubsub_emulator.emulator.runtimes import EVERY
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.primitives.weights import WEIGHT_ZERO
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, Call, ModuleError
from pubsub_emulator.runtime.framework.executive import Executive, Extrinsic
from pubsub_emulator.runtime.framework.hooks import IntegrityError, StateError
from pubsub_emulator.runtime.framework.message_chains import MessageBounds, OutboundHrmpMessage
from pubsub_emulator.runtime.framework.origin import Parachain, Root, Signed, Unsigned
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.relay.babe import CURRENT_SLOT, Babe, babe_pre_digest, current_slot
from pubsub_emulator.runtime.relay.configuration import Configuration
from pubsub_emulator.runtime.relay.dmp import Dmp
from pubsub_emulator.runtime.relay.hrmp import Hrmp
from pubsub_emulator.runtime.relay.inclusion import (
    BackedCandidate,
    CandidateCommitments,
    CandidateRefused,
    ParaInclusion,
    UpwardMessagesReceived,
)
from pubsub_emulator.runtime.relay.message_queue import MessageQueue, MessageResult
from pubsub_emulator.runtime.relay.paras import (
    GO_AHEAD,
    HEADS,
    LIFECYCLES,
    PARACHAINS,
    NewHeadNoted,
    ParaLifecycle,
    Paras,
    UpgradeGoAhead,
)
from pubsub_emulator.runtime.relay.registrar import Registrar
from pubsub_emulator.runtime.relay.session import NewSession, Session

ALICE, BOB = AccountId(b"a" * 32), AccountId(b"b" * 32)
A, B = ParaId(1000), ParaId(2000)
HEAD = Header(Hash(bytes(32)), 1, Hash(bytes(32)), Hash(bytes(32))).encode()


class Processor:
    """Takes every message and does nothing."""

    weight = WEIGHT_ZERO

    def prepare(self, _message: bytes) -> "Processor":
        return self

    def process(self, _storage: Storage, _para: ParaId, _prepared: object, _id: bytes) -> MessageResult:
        return MessageResult(WEIGHT_ZERO)


@dataclass
class World:
    """A relay runtime with sessions of four blocks."""

    storage: Storage
    paras: Paras
    queue: MessageQueue
    dmp: Dmp
    hrmp: Hrmp
    inclusion: ParaInclusion
    session: Session
    registrar: Registrar
    executive: Executive
    offboarded: list[tuple[str, list[ParaId]]]
    parent: Hash = Hash(bytes(32))  # noqa: RUF009  # bytes

    def block(self, *calls: Extrinsic, include: Sequence[BackedCandidate] = ()) -> list[events.Event]:
        number = system.NUMBER.get(self.storage) + 1
        block = self.executive.build_block(
            self.storage,
            number,
            self.parent,
            digest=[babe_pre_digest(Slot(100 + number))],
            inherents=[Call("ParaInclusion", "enter", (list(include),))],
            extrinsics=calls,
        )
        self.parent = block.header.hash()
        self.executive.try_state(self.storage)
        return [record.event for record in block.events]


def _world() -> World:
    storage, paras, bounds = Storage(State()), Paras(), MessageBounds()
    queue, dmp, hrmp = MessageQueue(Processor()), Dmp(bounds), Hrmp(bounds)
    offboarded: list[tuple[str, list[ParaId]]] = []

    def publishers(store: Storage, outgoing: Sequence[ParaId]) -> None:
        assert all(queue.messages(store, para) == [] for para in outgoing), "the queue is emptied first"
        offboarded.append(("publishers", list(outgoing)))

    configuration = Configuration()
    session = Session(
        4,
        paras,
        offboarding=[
            lambda _store, outgoing: offboarded.append(("before", list(outgoing))),
            queue.on_offboard,
            publishers,
            dmp.on_offboard,
            hrmp.on_offboard,
        ],
        on_new_session=[configuration.on_new_session],
        delay=1,
    )
    registrar = Registrar(paras, session.scheduled_session)
    inclusion = ParaInclusion(paras, queue, dmp, hrmp, bounds)
    executive = Executive([Babe(50), configuration, session, paras, registrar, inclusion, dmp, hrmp, queue])
    executive.integrity_test()
    configuration.genesis(storage)
    paras.genesis(storage, {A: HEAD})
    registrar.genesis(storage, {A: ALICE})
    storage.commit()
    return World(storage, paras, queue, dmp, hrmp, inclusion, session, registrar, executive, offboarded)


def _commitments(
    watermark: int = 0,
    upward: Sequence[bytes] = (),
    across: Sequence[OutboundHrmpMessage] = (),
    downward: int = 0,
    head: bytes = b"head",
) -> CandidateCommitments:
    return CandidateCommitments(tuple(upward), tuple(across), head, downward, RelayBlockNumber(watermark))


def _candidate(para: ParaId, parent: int, commitments: CandidateCommitments) -> BackedCandidate:
    return BackedCandidate(para, RelayBlockNumber(parent), commitments)


def _call(name: str, *args: object, pallet: str = "Registrar", who: AccountId = BOB) -> Extrinsic:
    return Extrinsic(Signed(who), Call(pallet, name, args))


def test_a_registered_para_comes_with_a_session_and_goes_with_another() -> None:
    world = _world()
    world.block(_call("register", B, b"genesis"))
    assert world.registrar.owner_of(world.storage, B) == BOB
    assert LIFECYCLES.get(world.storage, B) is ParaLifecycle.ONBOARDING
    assert world.paras.parachains(world.storage) == [A]
    world.block()
    world.block()
    assert NewSession(1) in world.block()
    assert world.paras.parachains(world.storage) == [A, B]
    assert world.paras.head(world.storage, B) == b"genesis"
    world.block(_call("deregister", B))
    assert world.registrar.owner_of(world.storage, B) is None
    assert world.paras.is_parachain(world.storage, B)
    world.block()
    world.block()
    world.block()
    assert world.paras.parachains(world.storage) == [A]
    assert LIFECYCLES.get(world.storage, B) is None
    assert world.session.current_index(world.storage) == 2


def test_ps11_the_message_queue_is_emptied_before_published_data_goes() -> None:
    world = _world()
    world.block(_call("deregister", A, who=ALICE))
    world.queue.enqueue(world.storage, A, [b"late"])
    world.dmp.queue_downward_message(world.storage, A, b"m", RelayBlockNumber(1))
    world.session.rotate(world.storage)
    assert world.offboarded == [("before", [A]), ("publishers", [A])]
    assert world.dmp.contents(world.storage, A) == []
    assert world.paras.parachains(world.storage) == []


def test_nothing_is_offboarded_when_nobody_leaves() -> None:
    world = _world()
    for _ in range(4):
        world.block()
    assert world.session.current_index(world.storage) == 1
    assert world.offboarded == []


@pytest.mark.parametrize(
    ("call", "origin", "error"),
    [
        ("register", Signed(BOB), "AlreadyRegistered"),
        ("deregister", Signed(BOB), "NotOwner"),
        ("deregister", Parachain(B), "NotOwner"),
        ("deregister", Unsigned(), "BadOrigin"),
        ("deregister B", Root(), "NotRegistered"),
    ],
)
def test_only_the_owner_the_para_or_root_changes_a_registration(call: str, origin: object, error: str) -> None:
    world = _world()
    name, *other = call.split()
    args = (B if other else A, *((b"head",) if name == "register" else ()))
    with pytest.raises((ModuleError, BadOrigin)) as caught:
        getattr(world.registrar, name)(world.storage, origin, *args)
    assert getattr(caught.value, "name", type(caught.value).__name__) == error
    world.registrar.deregister(world.storage, Parachain(A), A)
    with pytest.raises(ModuleError):
        world.registrar.register(world.storage, Signed(BOB), A, b"")  # it is about to leave, not gone


def test_an_included_block_takes_its_messages_and_sends_its_own() -> None:
    world = _world()
    world.paras.genesis(world.storage, {A: HEAD, B: HEAD})
    world.hrmp.open_channel(world.storage, A, B, 8, 100)
    world.dmp.queue_downward_message(world.storage, A, b"down", RelayBlockNumber(0))
    world.block()
    seen = world.block(
        include=[
            _candidate(A, 1, _commitments(1, [b"up1", b"up2"], [OutboundHrmpMessage(B, b"hi")], 1, b"new head")),
        ]
    )
    assert UpwardMessagesReceived(A, 2) in seen
    assert NewHeadNoted(A) in seen
    assert world.paras.head(world.storage, A) == b"new head"
    assert world.storage.get(HEADS.key_for(A)) == b"\x20new head"
    assert world.dmp.contents(world.storage, A) == []
    assert [(m.sent_at, m.data) for m in world.hrmp.inbound(world.storage, B)[0][1]] == [(2, b"hi")]
    assert world.queue.messages(world.storage, A) == [b"up1", b"up2"]


@pytest.mark.parametrize(
    ("commitments", "error"),
    [
        (_commitments(1, [b"m"] * 17, downward=1), "MoreMessagesThanPermitted"),
        (_commitments(1, [b"m"], [OutboundHrmpMessage(B, b"")], downward=1), "NoSuchChannel"),
        (_commitments(1, [b"m"], downward=2), "Underflow"),
        (_commitments(1, [b"m"], downward=0), "AdvancementRule"),
        (_commitments(9, [b"m"], downward=1), "AheadRelayParent"),
        (_commitments(1, [b"m"], downward=1, head=bytes(20_481)), "HeadDataTooLarge"),
    ],
    ids=["upward", "horizontal", "underflow", "advancement", "watermark", "head"],
)
def test_ps23_a_block_that_does_not_fit_is_refused_whole_and_others_go_in(
    commitments: CandidateCommitments, error: str
) -> None:
    world = _world()
    world.paras.genesis(world.storage, {A: HEAD, B: HEAD})
    world.dmp.queue_downward_message(world.storage, A, b"down", RelayBlockNumber(0))
    world.block()
    before = {key: value for key, value in world.storage.iter_prefix() if not key.startswith(system.NUMBER.key[:16])}
    seen = world.block(include=[_candidate(A, 1, commitments)])
    after = {key: value for key, value in world.storage.iter_prefix() if not key.startswith(system.NUMBER.key[:16])}
    refusals = [event for event in seen if isinstance(event, CandidateRefused)]
    assert [(event.para, getattr(event.error, "name", "")) for event in refusals] == [(A, error)]
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert {key[:16] for key in changed} <= {CURRENT_SLOT.key[:16]}
    seen = world.block(include=[_candidate(A, 1, commitments), _candidate(B, 2, _commitments(2, [b"up"]))])
    assert UpwardMessagesReceived(B, 1) in seen
    assert [record.event for record in EVERY.stored_events(world.storage)] == seen


def test_what_may_wait_for_a_parachain_fits_its_block() -> None:
    world = _world()
    world.inclusion.check_bounds(world.storage)
    large = ParaInclusion(world.paras, world.queue, world.dmp, world.hrmp, MessageBounds(2**22, 2**23))
    with pytest.raises(IntegrityError):
        large.check_bounds(world.storage)


def test_upgrade_signals_stand_where_parachains_read_them() -> None:
    world = _world()
    world.paras.signal_go_ahead(world.storage, A, UpgradeGoAhead.GO_AHEAD)
    assert world.storage.get(GO_AHEAD.key_for(A)) == b"\x01"
    world.paras.signal_go_ahead(world.storage, A, UpgradeGoAhead.ABORT)
    assert world.storage.get(GO_AHEAD.key_for(A)) == b"\x00"
    world.paras.signal_go_ahead(world.storage, A, None)
    assert GO_AHEAD.get(world.storage, A) is None


def test_the_slot_comes_from_the_digest() -> None:
    world = _world()
    world.block()
    world.block()
    assert current_slot(world.storage) == 102


def test_sessions_without_blocks_or_changes_in_the_past_are_refused() -> None:
    for session in (Session(0, Paras()), Session(1, Paras(), delay=0)):
        with pytest.raises(IntegrityError):
            session.integrity_test()


def test_try_state_finds_a_para_that_nobody_listed() -> None:
    world = _world()
    PARACHAINS.put(world.storage, [])
    with pytest.raises(StateError):
        world.paras.try_state(world.storage)
