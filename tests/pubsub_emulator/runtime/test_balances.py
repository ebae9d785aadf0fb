"""Balances keep their invariants whatever is asked of them (PS-12), and accounts live as long as
something provides.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pubsub_emulator.primitives.types import U128_MAX, AccountId
from pubsub_emulator.runtime.balances import (
    HOLDS,
    TOTAL_ISSUANCE,
    Balances,
    Fortitude,
    HoldReason,
    Precision,
    Preservation,
)
from pubsub_emulator.runtime.balances import types as balances_types
from pubsub_emulator.runtime.balances.types import DustLost, Held, Released, Slashed
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.dispatch import (
    Arithmetic,
    ConsumerRemaining,
    DispatchError,
    NoProviders,
    Token,
    TokenError,
    TooManyConsumers,
    with_storage_layer,
)
from pubsub_emulator.runtime.framework.hooks import IntegrityError, StateError
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.framework.system import KilledAccount, NewAccount

ED = 10
ALICE, BOB, CAROL = (AccountId(name * 32) for name in (b"a", b"b", b"c"))
PUBLISHER = HoldReason(101, 0)
OTHER = HoldReason(70, 0)


def _world(**balances: int) -> tuple[Storage, Balances]:
    storage, pallet = Storage(State()), Balances(ED)
    names = {"alice": ALICE, "bob": BOB, "carol": CAROL}
    pallet.genesis(storage, {names[name]: free for name, free in balances.items()})
    storage.log.clear()
    return storage, pallet


class BalancesKeepTheirInvariants(RuleBasedStateMachine):
    """Any sequence of operations, each in a layer as calls are, leaves a state that sums up."""

    def __init__(self) -> None:
        super().__init__()
        self.storage, self.pallet = _world(alice=1000, bob=50, carol=ED)

    def attempt(self, action: object) -> None:
        before = (
            self.storage.state.fork().root(),
            dict(self.storage.iter_prefix(b"")),
            len(self.storage.log),
        )
        try:
            with_storage_layer(self.storage, action)  # type: ignore[arg-type]
        except DispatchError:
            assert (
                self.storage.state.root(),
                dict(self.storage.iter_prefix(b"")),
                len(self.storage.log),
            ) == before

    who = st.sampled_from([ALICE, BOB, CAROL, AccountId(b"d" * 32)])
    amount = st.one_of(st.integers(0, 60), st.integers(900, 1100), st.just(U128_MAX))
    reason = st.sampled_from([PUBLISHER, OTHER])
    precision = st.sampled_from(list(Precision))

    @rule(source=who, dest=who, amount=amount, keep=st.sampled_from(list(Preservation)))
    def transfer(self, source: AccountId, dest: AccountId, amount: int, keep: Preservation) -> None:
        self.attempt(lambda: self.pallet.transfer(self.storage, source, dest, amount, keep))

    @rule(reason=reason, who=who, amount=amount)
    def hold(self, reason: HoldReason, who: AccountId, amount: int) -> None:
        self.attempt(lambda: self.pallet.hold(self.storage, reason, who, amount))

    @rule(reason=reason, who=who, amount=amount, precision=precision)
    def release(
        self, reason: HoldReason, who: AccountId, amount: int, precision: Precision
    ) -> None:
        self.attempt(lambda: self.pallet.release(self.storage, reason, who, amount, precision))

    @rule(reason=reason, who=who, amount=amount)
    def slash(self, reason: HoldReason, who: AccountId, amount: int) -> None:
        self.attempt(lambda: self.pallet.slash_held(self.storage, reason, who, amount))

    @rule(who=who, amount=amount)
    def withdraw(self, who: AccountId, amount: int) -> None:
        self.attempt(lambda: self.pallet.withdraw_fee(self.storage, who, amount))

    @rule(who=who, amount=amount)
    def refund(self, who: AccountId, amount: int) -> None:
        if amount < U128_MAX:
            self.attempt(lambda: self.pallet.refund_fee(self.storage, who, amount))

    @rule(who=who, amount=amount)
    def set_balance(self, who: AccountId, amount: int) -> None:
        if amount < U128_MAX:
            self.attempt(lambda: self.pallet.force_set_balance(self.storage, Root(), who, amount))

    @invariant()
    def sums_up(self) -> None:
        self.pallet.try_state(self.storage)


TestBalancesKeepTheirInvariants = BalancesKeepTheirInvariants.TestCase
TestBalancesKeepTheirInvariants.settings = settings(stateful_step_count=25)


def test_ps12_a_hold_moves_from_free_to_reserved_with_its_reason() -> None:
    storage, pallet = _world(alice=100)
    pallet.hold(storage, PUBLISHER, ALICE, 40)
    pallet.hold(storage, OTHER, ALICE, 5)
    data = system.account(storage, ALICE).data
    assert (data.free, data.reserved) == (55, 45)
    assert system.account(storage, ALICE).consumers == 1
    assert pallet.balance_on_hold(storage, PUBLISHER, ALICE) == 40
    raw = storage.get(HOLDS.key_for(ALICE))
    assert raw is not None
    assert (
        raw.hex()
        == "086500" + (40).to_bytes(16, "little").hex() + "4600" + (5).to_bytes(16, "little").hex()
    )
    assert pallet.release(storage, PUBLISHER, ALICE, 40) == 40
    assert events.events(storage) == [
        Held(PUBLISHER, ALICE, 40),
        Held(OTHER, ALICE, 5),
        Released(PUBLISHER, ALICE, 40),
    ]


def test_an_account_encodes_as_in_frame_system() -> None:
    storage, pallet = _world(alice=100)
    pallet.hold(storage, PUBLISHER, ALICE, 40)
    raw = storage.get(system.ACCOUNT.key_for(ALICE))
    assert raw is not None
    numbers = [int.from_bytes(raw[at : at + 4], "little") for at in range(0, 16, 4)]
    balances = [int.from_bytes(raw[at : at + 16], "little") for at in range(16, 80, 16)]
    assert (len(raw), numbers, balances) == (80, [0, 1, 1, 0], [60, 40, 0, 1 << 127])


@pytest.mark.parametrize(
    ("who", "amount", "error"),
    [
        (ALICE, 91, TokenError.FundsUnavailable),  # the existential deposit has to stay free
        (ALICE, 101, TokenError.FundsUnavailable),
        (BOB, 1, TokenError.CannotCreateHold),  # no such account
    ],
)
def test_ps12_a_hold_that_cannot_be_is_a_token_error(
    who: AccountId, amount: int, error: TokenError
) -> None:
    storage, pallet = _world(alice=100)
    with pytest.raises(Token, match=error.name):
        pallet.hold(storage, PUBLISHER, who, amount)


def test_an_account_holds_for_a_bounded_number_of_reasons() -> None:
    storage, pallet = Storage(State()), Balances(ED, max_holds=1)
    pallet.genesis(storage, {ALICE: 100})
    pallet.hold(storage, PUBLISHER, ALICE, 1)
    pallet.hold(storage, PUBLISHER, ALICE, 1)
    with pytest.raises(Token, match="CannotCreateHold"):
        pallet.hold(storage, OTHER, ALICE, 1)


def test_a_hold_keeps_its_account_alive() -> None:
    storage, pallet = _world(alice=100, bob=100)
    pallet.hold(storage, PUBLISHER, ALICE, 50)
    with pytest.raises(Token, match="Frozen"):
        pallet.transfer(storage, ALICE, BOB, 45, Preservation.EXPENDABLE)
    assert pallet.reducible_balance(storage, ALICE, Preservation.EXPENDABLE, Fortitude.POLITE) == 40


def test_a_rest_below_the_existential_deposit_is_burnt_with_its_account() -> None:
    storage, pallet = _world(alice=100, bob=100)
    pallet.transfer_allow_death(storage, Signed(ALICE), BOB, 95)
    assert TOTAL_ISSUANCE.get(storage) == 195
    assert not system.ACCOUNT.contains(storage, ALICE)
    assert {type(event) for event in events.events(storage)} >= {DustLost, KilledAccount}
    pallet.try_state(storage)


def test_a_transfer_that_would_end_a_kept_alive_account_is_refused() -> None:
    storage, pallet = _world(alice=100, bob=100)
    with pytest.raises(Token, match="NotExpendable"):
        pallet.transfer_keep_alive(storage, Signed(ALICE), BOB, 91)
    pallet.transfer_keep_alive(storage, Signed(ALICE), BOB, 90)
    assert [system.account(storage, who).data.free for who in (ALICE, BOB)] == [10, 190]


def test_less_than_the_existential_deposit_makes_no_account() -> None:
    storage, pallet = _world(alice=100)
    with pytest.raises(Token, match="BelowMinimum"):
        pallet.transfer(storage, ALICE, BOB, ED - 1, Preservation.EXPENDABLE)


def test_the_issuance_does_not_overflow() -> None:
    storage, pallet = _world(alice=100)
    with pytest.raises(Arithmetic):
        pallet.force_set_balance(storage, Root(), BOB, U128_MAX)


def test_a_slash_burns_what_is_on_hold_and_no_more() -> None:
    storage, pallet = _world(alice=100)
    pallet.hold(storage, PUBLISHER, ALICE, 30)
    assert pallet.slash_held(storage, PUBLISHER, ALICE, 50) == 30
    assert TOTAL_ISSUANCE.get(storage) == 70
    assert events.events(storage)[-1] == Slashed(ALICE, 30)
    assert pallet.slash_held(storage, PUBLISHER, ALICE, 50) == 0
    pallet.try_state(storage)


def test_genesis_and_integrity_refuse_accounts_that_cost_nothing() -> None:
    with pytest.raises(IntegrityError):
        _world(alice=ED - 1)
    with pytest.raises(IntegrityError):
        Balances(0).integrity_test()
    Balances(1).integrity_test()


def test_try_state_finds_a_hold_that_nobody_reserved() -> None:
    storage, pallet = _world(alice=100)
    pallet.hold(storage, PUBLISHER, ALICE, 30)
    HOLDS.remove(storage, ALICE)
    with pytest.raises(StateError, match="sum up"):
        pallet.try_state(storage)


PALLET_BALANCES = """
Endowed DustLost Transfer BalanceSet Reserved Unreserved ReserveRepatriated Deposit Withdraw
Slashed Minted MintedCredit Burned BurnedDebt Suspended Restored Upgraded Issued Rescinded Locked
Unlocked Frozen Thawed TotalIssuanceForced Held BurnedHeld TransferOnHold TransferAndHold Released
Unexpected
"""
"""The variants of `pallet_balances::Event` in their order; none has an index of its own."""


def test_events_have_the_indices_of_pallet_balances() -> None:
    ours = [
        each
        for each in vars(balances_types).values()
        if isinstance(each, type) and each.__bases__ == (Event,)
    ]
    assert len(ours) == 12
    variants = PALLET_BALANCES.split()
    assert [variants[each.VARIANT] for each in ours] == [each.__name__ for each in ours]


def test_an_account_comes_with_its_first_provider_and_goes_with_its_last() -> None:
    storage = Storage(State())
    system.inc_providers(storage, ALICE)
    system.inc_providers(storage, ALICE)
    system.dec_providers(storage, ALICE)
    assert system.ACCOUNT.contains(storage, ALICE)
    system.dec_providers(storage, ALICE)
    assert not system.ACCOUNT.contains(storage, ALICE)
    assert events.events(storage) == [NewAccount(ALICE), KilledAccount(ALICE)]
    system.dec_providers(storage, ALICE)
    assert len(events.events(storage)) == 2


def test_the_last_provider_cannot_go_while_something_consumes() -> None:
    storage = Storage(State())
    with pytest.raises(NoProviders):
        system.inc_consumers(storage, ALICE)
    system.inc_providers(storage, ALICE)
    system.inc_consumers(storage, ALICE)
    assert not system.can_dec_provider(storage, ALICE)
    with pytest.raises(ConsumerRemaining):
        system.dec_providers(storage, ALICE)
    system.dec_consumers(storage, ALICE)
    assert system.can_dec_provider(storage, ALICE)
    system.dec_providers(storage, ALICE)


def test_an_account_has_a_bounded_number_of_consumers() -> None:
    storage = Storage(State())
    system.inc_providers(storage, ALICE)
    for _ in range(system.MAX_CONSUMERS):
        system.inc_consumers(storage, ALICE)
    with pytest.raises(TooManyConsumers):
        system.inc_consumers(storage, ALICE)


def test_a_hold_is_a_consumer_for_as_long_as_it_stands() -> None:
    storage, pallet, reason = Storage(State()), Balances(10), HoldReason(101, 0)
    pallet.genesis(storage, {ALICE: 100})
    pallet.hold(storage, reason, ALICE, 20)
    pallet.hold(storage, reason, ALICE, 20)
    assert system.account(storage, ALICE).consumers == 1
    pallet.release(storage, reason, ALICE, 40)
    assert system.account(storage, ALICE).consumers == 0
    pallet.transfer_allow_death(storage, Signed(ALICE), BOB, 100)
    assert not system.ACCOUNT.contains(storage, ALICE)


def test_only_accounts_that_exist_have_a_nonce() -> None:
    storage = Storage(State())
    system.inc_nonce(storage, ALICE)
    assert not system.ACCOUNT.contains(storage, ALICE)
    system.inc_providers(storage, ALICE)
    system.inc_nonce(storage, ALICE)
    system.inc_nonce(storage, ALICE)
    assert system.account(storage, ALICE).nonce == 2
