"""Calls, their failures and events: rolled back together, and the bytes of sp_runtime and
frame_system (PS-10).
"""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.balances import Error as BalancesError
from pubsub_emulator.runtime.balances.types import Transfer
from pubsub_emulator.runtime.framework import dispatch as d
from pubsub_emulator.runtime.framework import events
from pubsub_emulator.runtime.framework.calls import encode_call
from pubsub_emulator.runtime.framework.codecs import U32, codec_of
from pubsub_emulator.runtime.framework.dispatch import (
    Call,
    DispatchError,
    ModuleError,
    dispatch_error,
    dispatchable,
)
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.origin import (
    Origin,
    Parachain,
    Root,
    Signed,
    Unsigned,
    ensure_root,
    ensure_signed,
    ensure_unsigned,
)
from pubsub_emulator.runtime.framework.pallet import Pallet, PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.framework.system import DispatchEventInfo, ExtrinsicFailed
from pubsub_emulator.runtime.parachain.pallets import PARACHAIN
from pubsub_emulator.runtime.relay.dmp import Error as DmpError
from pubsub_emulator.runtime.relay.paras import PALLET as PARAS
from pubsub_emulator.runtime.relay.paras import NewHeadNoted

PALLET = Pallet("Probe", 200, "pallet_probe")
COUNTER = StorageValue(PALLET, "Counter", "A row.", scale.u32, 0)
ALICE = AccountId(b"a" * 32)


class Odd(Exception):
    """Not a DispatchError."""


class Probe(Hooks):
    """A pallet with calls that count, report, and fail in the middle."""

    pallet = PALLET

    @dispatchable(0, weight=lambda _pallet, by: Weight(10 * by, 7))
    def count(self, storage: Storage, origin: Origin, by: U32) -> Weight | None:
        ensure_signed(origin)
        COUNTER.put(storage, COUNTER.get(storage) + by)
        events.deposit(storage, NewHeadNoted(ParaId(by)))
        if by == 3:
            raise ModuleError(BalancesError.DeltaZero)
        if by == 4:
            raise Odd
        return Weight(by, 100) if by == 2 else None

    @dispatchable(1, weight=Weight(1, 1))
    def count_twice(self, storage: Storage, origin: Origin) -> None:
        self.count(storage, origin, 1)
        with pytest.raises(ModuleError):
            self.count(storage, origin, 3)

    @dispatchable(2, weight=Weight(1, 1))
    def recurse(self, storage: Storage, origin: Origin) -> None:
        self.recurse(storage, origin)


def _run(name: str, *args: Any, origin: Origin | None = None) -> tuple[Storage, d.DispatchOutcome]:
    storage = Storage(State())
    outcome = d.dispatch(
        Probe(), storage, Signed(ALICE) if origin is None else origin, Call("Probe", name, args)
    )
    return storage, outcome


def test_ps10_a_failing_call_leaves_neither_state_nor_event() -> None:
    storage, outcome = _run("count", 3)
    assert outcome.error == ModuleError(BalancesError.DeltaZero)
    assert COUNTER.get(storage) == 0
    assert events.records(storage) == []


def test_ps10_a_failing_inner_call_takes_only_itself_back() -> None:
    storage, outcome = _run("count_twice")
    assert outcome.ok
    assert COUNTER.get(storage) == 1
    assert events.events(storage) == [NewHeadNoted(ParaId(1))]


def test_what_is_no_dispatch_error_rolls_back_and_flies() -> None:
    storage = Storage(State())
    with pytest.raises(Odd):
        d.dispatch(Probe(), storage, Signed(ALICE), Call("Probe", "count", (4,)))
    assert COUNTER.get(storage) == 0
    assert storage.depth == 0


def test_the_actual_weight_is_reported_and_never_exceeds_what_was_charged() -> None:
    assert _run("count", 1)[1].weight == Weight(10, 7)
    assert _run("count", 2)[1].weight == Weight(2, 7)
    assert _run("count", 3)[1].weight == Weight(30, 7)


def test_calls_nest_255_deep_and_no_deeper() -> None:
    storage, outcome = _run("recurse")
    assert outcome.error == d.Transactional(d.TransactionalError.LimitReached)
    assert storage.depth == 0


def test_a_call_encodes_as_pallet_index_call_index_arguments() -> None:
    assert encode_call(Probe(), Call("Probe", "count", (258,))).hex() == "c80002010000"
    with pytest.raises(DefensiveFailure):
        encode_call(Probe(), Call("Probe", "count", ()))
    with pytest.raises(DefensiveFailure):
        encode_call(Probe(), Call("Probe", "no_such_call"))


@pytest.mark.parametrize(
    ("error", "encoded"),
    [
        (d.Other("any words"), "00"),
        (d.CannotLookup(), "01"),
        (d.BadOrigin(), "02"),
        (ModuleError(BalancesError.InsufficientBalance), "030502000000"),
        (d.ConsumerRemaining(), "04"),
        (d.NoProviders(), "05"),
        (d.TooManyConsumers(), "06"),
        (d.Token(d.TokenError.FundsUnavailable), "0700"),
        (d.Token(d.TokenError.CannotCreateHold), "0707"),
        (d.Token(d.TokenError.Blocked), "0709"),
        (d.Arithmetic(d.ArithmeticError.Overflow), "0801"),
        (d.Transactional(d.TransactionalError.LimitReached), "0900"),
        (d.Exhausted(), "0a"),
        (d.Corruption(), "0b"),
        (d.Unavailable(), "0c"),
        (d.RootNotAllowed(), "0d"),
    ],
    ids=repr,
)
def test_dispatch_errors_have_the_bytes_of_sp_runtime(error: DispatchError, encoded: str) -> None:
    assert error.encode().hex() == encoded
    assert dispatch_error.encode(error).hex() == encoded
    assert RELAY.decode_error(error.encode()) == error
    assert type(RELAY.decode_error(error.encode())) is type(error)


@pytest.mark.parametrize(
    "data", ["", "0e", "03", "03fe00000000", "0305ff000000", "070a", "0803", "0200"]
)
def test_bytes_that_are_no_dispatch_error_are_refused(data: str) -> None:
    with pytest.raises(ScaleError):
        RELAY.decode_error(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("ensure", "taken"),
    [
        (ensure_root, Root()),
        (ensure_signed, Signed(ALICE)),
    ],
    ids=["root", "signed"],
)
def test_an_origin_is_taken_only_where_it_belongs(ensure: Any, taken: Origin) -> None:
    for origin in (Root(), Signed(ALICE), Parachain(ParaId(1)), Unsigned()):
        if origin == taken:
            ensure(origin)
        else:
            with pytest.raises(d.BadOrigin):
                ensure(origin)
    with pytest.raises(d.BadOrigin):
        ensure_unsigned(taken)


def test_an_event_record_has_the_bytes_of_frame_system() -> None:
    record = events.EventRecord(
        events.ApplyExtrinsic(2), Transfer(ALICE, AccountId(b"b" * 32), 5), (Hash(bytes(32)),)
    )
    assert record.encode().hex() == (
        "00020000000502" + "61" * 32 + "62" * 32 + "05" + "00" * 15 + "04" + "00" * 32
    )  # fmt: skip
    failed = events.EventRecord(
        events.Finalization(), ExtrinsicFailed(d.BadOrigin(), DispatchEventInfo(Weight(1, 2)))
    )
    assert failed.encode().hex() == "010001020408000000"  # field by field


@given(
    st.lists(
        st.builds(
            events.EventRecord,
            st.one_of(
                st.builds(events.ApplyExtrinsic, st.integers(0, 2**32 - 1)),
                st.just(events.Finalization()),
                st.just(events.Initialization()),
            ),
            st.builds(NewHeadNoted, st.integers(0, 2**32 - 1).map(ParaId)),
            st.lists(st.binary(min_size=32, max_size=32).map(Hash), max_size=2).map(tuple),
        )
    )
)
def test_event_records_read_back(records: list[events.EventRecord]) -> None:
    assert RELAY.decode_records(events.encode_records(records)) == records


@pytest.mark.parametrize("data", ["04", "0403", "04020fff00", "040256ff00"])
def test_bytes_that_are_no_event_records_are_refused(data: str) -> None:
    with pytest.raises(ScaleError):
        RELAY.decode_records(bytes.fromhex(data))


def test_an_annotation_names_the_codec_that_stands_outermost() -> None:
    inner = Annotated[int, scale.u8]
    assert codec_of(Annotated[inner, scale.u64]) is scale.u64
    assert codec_of(list[inner]).encode([1, 2]) == b"\x08\x01\x02"
    assert codec_of(ParaId).encode(ParaId(1)) == b"\1\0\0\0"
    with pytest.raises(DefensiveFailure, match="names no codec"):
        codec_of(int)


def test_a_pallet_declares_an_item_and_its_errors_once() -> None:
    with pytest.raises(DefensiveFailure, match="Probe::Counter is declared twice"):
        StorageValue(PALLET, "Counter", "A row.", scale.u8)
    with pytest.raises(DefensiveFailure, match="Paras has errors already"):

        @pallet_errors(PARAS)
        class Error(PalletError):
            Late = 3, "Too late."


def test_a_pallets_error_is_read_with_its_runtime_only() -> None:
    encoded = ModuleError(BalancesError.DeltaZero).encode()
    assert RELAY.decode_error(encoded) == ModuleError(BalancesError.DeltaZero)
    with pytest.raises(DefensiveFailure, match="without an ErrorReader"):
        dispatch_error.decode(encoded)
    with pytest.raises(ScaleError):
        PARACHAIN.decode_error(ModuleError(DmpError.QueueFull).encode())
