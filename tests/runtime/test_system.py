"""Accounts live as long as something provides for them and nothing consumes them."""

import pytest

from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.balances import Balances, HoldReason
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.dispatch import ConsumerRemaining, NoProviders, TooManyConsumers
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.framework.system import KilledAccount, NewAccount

ALICE, BOB = AccountId(b"a" * 32), AccountId(b"b" * 32)


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
