"""The whole relay chain, driven by upward messages and calls, equals plain dictionaries (PS-1 to
PS-23).

Every block's events, in order, and the outcome of every call are foretold by the model; every
pallet's state is checked after every block. `HYPOTHESIS_PROFILE=long` looks for longer.
"""

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.runtime.relay_chain import world
from support.runtime.relay_chain.model import Message, RelayModel
from support.runtime.relay_chain.world import (
    ALICE,
    BOB,
    MANAGERS,
    ROOT,
    SMALL,
    STRANGER,
    UNIT,
    para_origin,
)

from pubsub_emulator.emulator.relay.message_outcomes import Attempted
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import U32_MAX, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.dispatch import DispatchError, ModuleError, Token
from pubsub_emulator.runtime.framework.executive import Block
from pubsub_emulator.runtime.framework.origin import Origin, Signed
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.pallet_pubsub import TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub import events as told
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    CounterForRegisteredPublishers,
    RegisteredPublishers,
    TtlData,
    TtlScanCursor,
)
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused, UpwardMessagesReceived
from pubsub_emulator.runtime.relay.message_queue import (
    OverweightDropped,
    Processed,
    ProcessingFailed,
    ring,
)
from pubsub_emulator.runtime.relay.session import NewSession
from pubsub_emulator.trie import state_root
from pubsub_emulator.xcm import Incomplete, Publish
from pubsub_emulator.xcm.instructions import ClearOrigin, SetTopic

PARAS = (*MANAGERS, 3000)
KEYS = [world.key(number) for number in range(7)]
WATCHED = ("Broadcaster", "MessageQueue", "ParaInclusion", "Session", "XcmPallet")

paras = st.sampled_from(PARAS)
keys = st.sampled_from(KEYS)
ttls = st.sampled_from([0, 1, 2, 3, 5, 40, U32_MAX])
accounts = st.sampled_from([ALICE, BOB, MANAGERS[world.THIRD]])
origins = st.one_of(
    st.just(ROOT), accounts.map(Signed), st.just(Signed(STRANGER)), paras.map(para_origin)
)


# Upward messages: what they say, and that as bytes


def _publishing(publishes: list[tuple[bytes, bytes, int]], topic: bool) -> Message:
    instructions = [Publish(*publish) for publish in publishes]
    data = world.message(*instructions, *([SetTopic(b"\x70" * 32)] if topic else []))
    return Message(data, tuple(publishes), int(topic), None if publishes else "BadFormat")


def _mixed(publishes: list[tuple[bytes, bytes, int]]) -> Message:
    data = world.message(ClearOrigin(), *(Publish(*publish) for publish in publishes))
    return Message(data, tuple(publishes), 1, "BadFormat")


values = st.builds(lambda size, fill: bytes([fill]) * size, st.integers(0, 65), st.integers(0, 2))
publishes = st.tuples(keys, values, ttls)
publishing = st.builds(_publishing, st.lists(publishes, max_size=4), st.booleans())
broken = st.one_of(
    st.builds(
        lambda whole, more: Message(whole.data + more, refused="Corrupt"),
        publishing,
        st.binary(min_size=1),
    ),
    st.builds(
        lambda whole, cut: Message(whole.data[:-cut], refused="Corrupt"),
        publishing,
        st.integers(1, 2),
    ),
    st.builds(lambda rest: Message(b"\x04" + rest, refused="Unsupported"), st.binary(max_size=9)),
    st.just(Message(b"", refused="Corrupt")),
    st.just(Message(bytes(601), refused="Corrupt")),
)
messages = st.one_of(
    publishing, publishing, publishing, st.lists(publishes, max_size=2).map(_mixed), broken
)
candidates = st.tuples(paras, st.lists(messages, max_size=5))


# Calls: origin, pallet, name, arguments


def _call(
    pallet: str, name: str, *args: st.SearchStrategy[Any]
) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(origins, st.just(pallet), st.just(name), st.tuples(*args))


some_keys = st.lists(keys, max_size=4)
calls = st.one_of(
    _call("Broadcaster", "register_publisher", paras),
    _call("Broadcaster", "register_publisher", paras),
    _call(
        "Broadcaster",
        "force_register_publisher",
        accounts,
        st.sampled_from([0, 1, UNIT, 5 * UNIT]),
        paras,
    ),
    _call("Broadcaster", "deregister_publisher", paras),
    _call("Broadcaster", "force_deregister_publisher", paras),
    _call("Broadcaster", "delete_keys", paras, some_keys),
    _call("Broadcaster", "force_delete_keys", paras, some_keys),
    _call("Registrar", "register", paras, st.just(b"head")),
    _call("Registrar", "deregister", paras),
)


def _told(event: Event) -> tuple[object, ...] | None:
    """An event in the model's words."""
    match event:
        case Processed():
            return "Processed", event.origin, event.id, event.weight_used.ref_time, event.success
        case ProcessingFailed():
            return "ProcessingFailed", event.origin, event.id, event.error.kind.name
        case OverweightDropped():
            return "OverweightDropped", event.origin, event.id, event.weight.ref_time
        case Attempted(outcome=Incomplete(used=used, error=error)):
            return "Attempted", used.ref_time, error.index
        case CandidateRefused():
            return "CandidateRefused", event.para, _name(event.error)
        case UpwardMessagesReceived():
            return "UpwardMessagesReceived", event.from_, event.count
        case NewSession():
            return "NewSession", event.session_index
        case _ if event.PALLET.name == "Broadcaster":
            return type(event).__name__, *(getattr(event, name) for name, _ in event.CODECS)
    return None


def _name(error: DispatchError | None) -> str | None:
    match error:
        case None:
            return None
        case ModuleError():
            return error.name
        case Token():
            return error.reason.name
    return type(error).__name__


class Relaying(RuleBasedStateMachine):
    """The chain beside its model: A2, A3, A9, A10, A14, A16, A29, A37, defect 29.

    `POLICY` is set by who inherits.
    """

    POLICY: TtlPolicy

    @initialize()
    def start(self) -> None:
        config = world.small(SMALL, ttl_policy=self.POLICY)
        self.chain = world.start(config)
        self.model = RelayModel(config)

    @rule(sent=st.lists(candidates, max_size=3), asked=st.lists(calls, max_size=3))
    def a_block(self, sent: list[tuple[int, list[Message]]], asked: list[tuple[Any, ...]]) -> None:
        self.build(sent, asked)

    @rule(
        para=st.sampled_from([world.SYSTEM, world.PUBLIC]),
        more=st.lists(publishing, min_size=1, max_size=4),
    )
    def a_backlog(self, para: int, more: list[Message]) -> None:
        self.build([(para, more), (world.BOUNDARY, more[:2])], [])

    @rule(blocks=st.integers(1, 6))
    def quiet(self, blocks: int) -> None:
        for _ in range(blocks):
            self.build([], [])

    @rule(para=paras, root=st.booleans())
    def some_stored_keys_go(self, para: int, root: bool) -> None:
        stored = self.model.keys(para)[:2]
        call = (ROOT, "force_delete_keys") if root else (para_origin(para), "delete_keys")
        self.build([], [(call[0], "Broadcaster", call[1], (para, [*stored, *stored]))])

    @rule(para=paras, root=st.booleans())
    def a_para_leaves(self, para: int, root: bool) -> None:
        manager = Signed(self.model.owners.get(para, STRANGER))
        self.build([(para, [])], [(ROOT if root else manager, "Registrar", "deregister", (para,))])

    @rule(para=paras)
    def registered_by_root(self, para: int) -> None:
        self.build([], [(ROOT, "Broadcaster", "force_register_publisher", (ALICE, 0, para))])

    def build(self, sent: list[tuple[int, list[Message]]], asked: list[tuple[Any, ...]]) -> None:
        """One block of the chain and of the model; nothing differs in what they say of it."""
        built = self.chain.build(
            [
                world.candidate(self.chain, para, *(m.data for m in messages))
                for para, messages in sent
            ],
            [
                world.call(origin, name, *args, pallet=pallet)
                for origin, pallet, name, args in asked
            ],
        )
        assert not built.left_out
        self.model.begin()
        for para, messages in sent:
            self.model.include(para, messages)
        wanted = [self.model.call(*self.words(call)) for call in asked]
        assert [_name(error) for error in world.errors(built)] == wanted
        self.expire(built)
        found = [
            _told(event)
            for event in world.events(built, *WATCHED)
            if not isinstance(event, told.KeyExpired)
        ]
        assert found == [self.hashed(event) for event in self.model.told]
        world.check(self.chain)

    @staticmethod
    def words(call: tuple[Any, ...]) -> tuple[Origin, str, str, tuple[object, ...]]:
        origin, pallet, name, args = call
        return origin, pallet, name, args

    @staticmethod
    def hashed(event: tuple[object, ...]) -> tuple[object, ...]:
        """The model keeps messages whole, events name them by their hash."""
        if event[0] not in {"Processed", "ProcessingFailed", "OverweightDropped"}:
            return event
        data = event[2]
        assert isinstance(data, bytes)
        return *event[:2], blake2_256(data), *event[3:]

    def expire(self, built: Block) -> None:
        """What the sweep removed was due; under the index it was the first that came due (PS-15,
        PS-16, PS-19).
        """
        gone = world.events(built, "Broadcaster")
        expired = [
            (event.publisher, event.key) for event in gone if isinstance(event, told.KeyExpired)
        ]
        due = self.model.due()
        most = SMALL.pubsub.max_ttl_scans_per_idle
        assert len(set(expired)) == len(expired) <= most
        if self.POLICY is TtlPolicy.EXPIRY_INDEX:
            assert expired == due[:most]
        assert set(expired) <= set(due)
        self.model.finish(expired)

    @invariant()
    def published_state_is_the_model(self) -> None:
        storage, model = self.chain.storage(), self.model
        for para in PARAS:
            stored = [
                (key, PublishedEntry(value, ttl, RelayBlockNumber(when)).encode())
                for (owner, key), (value, ttl, when) in sorted(model.entries.items())
                if owner == para
            ]
            child = storage.child_root(derive_child_key(ParaId(para)))
            assert child == (state_root(stored) if stored else None)
            size = sum(
                32 + len(value)
                for (owner, _), (value, _, _) in model.entries.items()
                if owner == para
            )
            rows = sum(1 for owner, _ in model.finite() if owner == para)
            assert world.counted(self.chain, para) == (len(stored), size, rows)
        assert {(para, key): life for para, key, life in TtlData.rows(storage)} == model.finite()
        assert self.POLICY is TtlPolicy.SCAN or not TtlScanCursor.exists(storage)
        registered = {
            para: (i.manager, i.deposit) for para, i in RegisteredPublishers.items(storage)
        }
        assert registered == model.registered
        assert CounterForRegisteredPublishers.get(storage) == len(registered)
        for who, amount in model.held.items():
            assert (world.free(self.chain, who), world.held(self.chain, who)) == (
                model.free[who],
                amount,
            )

    @invariant()
    def queues_and_paras_are_the_model(self) -> None:
        storage, model, runtime = self.chain.storage(), self.model, self.chain.runtime
        for para in PARAS:
            assert world.waiting(self.chain, para) == [m.data for m in model.queues.get(para, [])]
            assert runtime.registrar.owner_of(storage, ParaId(para)) == model.owners.get(para)
        assert ring.members(storage) == model.turns
        living = sorted(para for para, at in model.lifecycle.items() if at != "Onboarding")
        assert runtime.paras.parachains(storage) == living
        assert runtime.session.current_index(storage) == model.session
        assert self.chain.number == model.now

    @invariant()
    def only_what_ran_is_an_execution(self) -> None:
        ran = [(e.para, e.id) for e in self.chain.executions]
        wanted = [self.hashed(event) for event in self.model.told if event[0] == "Processed"]
        assert ran == [(event[1], event[2]) for event in wanted]


class RelayingByScan(Relaying):
    POLICY = TtlPolicy.SCAN


class RelayingByIndex(Relaying):
    POLICY = TtlPolicy.EXPIRY_INDEX


TestRelayingByScan = RelayingByScan.TestCase
TestRelayingByIndex = RelayingByIndex.TestCase
TestRelayingByScan.settings = TestRelayingByIndex.settings = settings(
    max_examples=settings().max_examples // 3, stateful_step_count=25
)
