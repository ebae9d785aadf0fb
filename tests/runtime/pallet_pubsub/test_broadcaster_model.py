"""Whatever happens in whatever order, state equals a plain dictionary, under both TTL policies (PS-1 to PS-19)."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.pallet_pubsub.model import Model, Place
from support.pallet_pubsub.world import ALICE, BOB, MOCK, ROOT, World, numbered, parachain

from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import U32_MAX, AccountId, ParaId, RelayBlockNumber
from pubsub_emulator.primitives.weights import WEIGHT_MAX
from pubsub_emulator.runtime.framework.dispatch import DispatchError, ModuleError, Token
from pubsub_emulator.runtime.framework.origin import Origin, Signed
from pubsub_emulator.runtime.pallet_pubsub import TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.expiry import least_weight
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    CounterForRegisteredPublishers,
    RegisteredPublishers,
    TtlData,
    TtlScanCursor,
)
from pubsub_emulator.trie import state_root

PARAS = (7, 1000, 2000, 2001)
KEYS = numbered(6)
VISITS, SCANS = 4, 3
LAP = len(PARAS) * VISITS
PATIENCE = -(-3 * LAP // SCANS) + 1
"""Sweeps within which a due row of a publisher that does nothing is met: what is left of this lap, at worst one that
starts at a mark behind it, and one more."""

paras = st.sampled_from(PARAS)
keys = st.sampled_from(KEYS)
origins = st.sampled_from([ROOT, Signed(ALICE), Signed(BOB), *map(parachain, PARAS)])
ttls = st.one_of(st.sampled_from([0, 1, 2, 3, 5, 40, U32_MAX]), st.integers(0, 12))


class Rollback(Exception):
    """No error: what a failing call does to its layer."""


class Publishing(RuleBasedStateMachine):
    """The pallet beside its model; `POLICY` is set by the two classes that run."""

    POLICY: TtlPolicy

    @initialize()
    def start(self) -> None:
        self.world = World(
            MOCK,
            now=1,
            ttl_policy=self.POLICY,
            max_value_length=60,
            max_stored_keys=VISITS,
            max_total_storage_size=250,
            max_publishers=3,
            max_ttl_scans_per_idle=SCANS,
        )
        self.model = Model(self.world.config, dict(self.world.owners.owners))
        self.waiting: dict[Place, int] = {}

    def agree(self, wanted: str | None, action: Callable[..., object], *args: Any) -> None:
        """The pallet does what the model did, or refuses for the same reason, without a trace."""
        log = len(self.world.storage.log)
        try:
            action(*args)
        except DispatchError as refused:
            found = {ModuleError: lambda e: e.name, Token: lambda e: e.reason.name}.get(type(refused), repr)(refused)
            assert found.removesuffix("()") == wanted
            assert len(self.world.storage.log) == log
        else:
            assert wanted is None

    def touched(self, para: int) -> None:
        """A publisher that acts on its own rows waits anew."""
        self.waiting = {place: sweeps for place, sweeps in self.waiting.items() if place[0] != para}

    # What anyone may do

    @rule(para=paras, key=keys, size=st.integers(0, 61), fill=st.integers(0, 3), ttl=ttls)
    def publish(self, para: int, key: bytes, size: int, fill: int, ttl: int) -> None:
        value = bytes([fill]) * size
        self.agree(self.model.publish(self.world.now, para, key, value, ttl), self.world.publish, para, key, value, ttl)
        self.touched(para)

    @rule(para=paras, ttl=ttls)
    def publish_again(self, para: int, ttl: int) -> None:
        for key in self.model.keys(para):
            value = self.model.entries[para, key][0]
            self.agree(
                self.model.publish(self.world.now, para, key, value, ttl), self.world.publish, para, key, value, ttl
            )
        self.touched(para)

    @rule(para=paras, origin=origins)
    def register(self, para: int, origin: Origin) -> None:
        wanted = self.model.register(origin, para)
        if origin == parachain(para) and wanted == "NotAuthorized":
            wanted = "CannotCreateHold"  # it may, but its account does not exist
        self.agree(wanted, self.world.register, para, origin)

    @rule(para=paras, deposit=st.sampled_from([0, 1, 600, 1000]), manager=st.sampled_from([ALICE, BOB]), origin=origins)
    def force_register(self, para: int, deposit: int, manager: AccountId, origin: Origin) -> None:
        wanted = self.model.force_register(origin, manager, deposit, para)
        self.agree(wanted, self.world.force_register, para, deposit, manager, origin)

    @rule(para=paras, origin=origins)
    def deregister(self, para: int, origin: Origin) -> None:
        self.agree(self.model.deregister(origin, para), self.world.deregister, para, origin)

    @rule(para=paras)
    def force_deregister(self, para: int) -> None:
        self.agree(self.model.force_deregister(ROOT, para), self.world.force_deregister, para, ROOT)

    @rule(para=paras, some=st.lists(keys, max_size=4), origin=origins)
    def delete(self, para: int, some: list[bytes], origin: Origin) -> None:
        self.agree(self.model.delete(origin, para, some), self.world.delete, para, some, origin)
        self.touched(para)

    @rule(para=paras, some=st.lists(keys, max_size=4))
    def force_delete(self, para: int, some: list[bytes]) -> None:
        self.agree(self.model.force_delete(ROOT, para, some), self.world.force_delete, para, some, ROOT)
        self.touched(para)

    @rule(some=st.lists(paras, unique=True, max_size=2))
    def offboard(self, some: list[int]) -> None:
        self.world.pallet.on_offboard(self.world.storage, [ParaId(para) for para in some])
        for para in some:
            self.model.remove(para)

    @rule(para=paras, key=keys, ttl=ttls)
    def fail_in_a_layer(self, para: int, key: bytes, ttl: int) -> None:
        before = self.world.root()
        untouched, waiting = deepcopy(self.model), dict(self.waiting)
        with pytest.raises(Rollback):
            self.do_and_fail(para, key, ttl)
        self.model, self.waiting = untouched, waiting
        assert self.world.root() == before

    def do_and_fail(self, para: int, key: bytes, ttl: int) -> None:
        with self.world.storage.transaction():
            self.publish(para, key, 5, 9, ttl)
            self.force_deregister(1000)
            self.idle()
            raise Rollback

    # Time

    @rule(blocks=st.integers(1, 4))
    def time_passes(self, blocks: int) -> None:
        self.world.at(self.world.now + blocks)

    @rule()
    def idle(self) -> None:
        self.sweep(SCANS)
        late = self.model.due(self.world.now)
        self.waiting = {place: self.waiting.get(place, 0) + 1 for place in late}
        assert all(sweeps <= PATIENCE for sweeps in self.waiting.values()), self.waiting

    @rule(times=st.integers(1, 8))
    def block_after_block(self, times: int) -> None:
        for _ in range(times):
            self.world.at(self.world.now + 1)
            self.idle()

    @rule()
    def idle_with_weight_for_one(self) -> None:
        self.sweep(1, least_weight(self.world.config))

    @precondition(lambda self: self.POLICY is TtlPolicy.SCAN)
    @rule()
    def idle_with_room_for_all(self) -> None:
        config, self.world.pallet.config = self.world.pallet.config, MOCK
        self.sweep(MOCK.max_ttl_scans_per_idle)
        self.world.pallet.config = config
        assert self.model.due(self.world.now) == []

    def sweep(self, most: int, weight: Any = WEIGHT_MAX) -> None:
        """One sweep. What it says it expired was due, is gone, and was said once; the index misses nothing."""
        log = len(self.world.storage.log)
        due = self.model.due(self.world.now)
        used = self.world.idle(weight)
        assert used.all_lte(weight)
        met = [record.event for record in self.world.storage.log[log:]]
        expired = [(event.publisher, event.key) for event in met if isinstance(event, KeyExpired)]
        assert len(expired) == len(met) == len(set(expired)) <= most
        assert set(expired) <= set(due)
        if self.POLICY is TtlPolicy.EXPIRY_INDEX:
            assert len(expired) == min(len(due), most)
            finite = self.model.finite()
            assert [sum(finite[place]) for place in expired] == [sum(finite[place]) for place in due[: len(expired)]]
        for place in expired:
            del self.model.entries[place]

    @rule()
    def commit(self) -> None:
        self.world.root()

    # What must hold

    @invariant()
    def state_is_the_model(self) -> None:
        world, model = self.world, self.model
        for para in PARAS:
            stored = [
                (key, PublishedEntry(value, ttl, RelayBlockNumber(when)).encode())
                for (owner, key), (value, ttl, when) in sorted(model.entries.items())
                if owner == para
            ]
            assert world.child_root(para) == (state_root(stored) if stored else None)
            assert (world.keys(para), world.count(para)) == (model.keys(para), len(stored))
            assert world.size(para) == model.size(para)
        rows = {(para, key): lifetime for para, key, lifetime in TtlData.rows(world.storage)}
        assert rows == model.finite()
        registered = {para: (i.manager, i.deposit) for para, i in RegisteredPublishers.items(world.storage)}
        assert registered == model.registered
        assert CounterForRegisteredPublishers.get(world.storage) == len(registered)
        for who in (ALICE, BOB):
            assert (world.free(who), world.held(who)) == (model.free[who], model.held[who])

    @invariant()
    def state_is_sound(self) -> None:
        self.world.try_state()

    @invariant()
    def only_a_scan_has_a_cursor(self) -> None:
        if self.POLICY is TtlPolicy.EXPIRY_INDEX:
            assert not TtlScanCursor.exists(self.world.storage)


class PublishingByScan(Publishing):
    POLICY = TtlPolicy.SCAN


class PublishingByIndex(Publishing):
    POLICY = TtlPolicy.EXPIRY_INDEX


TestScan = PublishingByScan.TestCase
TestExpiryIndex = PublishingByIndex.TestCase
TestScan.settings = TestExpiryIndex.settings = settings(stateful_step_count=40)
