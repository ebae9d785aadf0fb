"""Checked signatures are remembered, within a bound in bytes."""

from collections.abc import Iterator

import pytest

from pubsub_emulator.primitives import ed25519
from pubsub_emulator.primitives.signatures import (
    LENGTH,
    MOST_CACHED,
    Scheme,
    verify,
    verify_cached,
)
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.accounts.extrinsic import MAX_PLAIN_PAYLOAD

SEED = bytes(32)
ACCOUNT = AccountId(ed25519.public_key(SEED))


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    verify_cached.cache_clear()
    yield
    verify_cached.cache_clear()


def check(message: bytes) -> bool:
    return verify(Scheme.ED25519, ed25519.sign(SEED, message), message, ACCOUNT)


def test_a_short_message_is_checked_once() -> None:
    for _ in range(3):
        assert check(bytes(MOST_CACHED))
    assert (verify_cached.cache_info().misses, verify_cached.cache_info().hits) == (1, 2)


def test_a_long_message_is_checked_and_not_held() -> None:
    for length in (MOST_CACHED + 1, 1 << 20):
        assert check(bytes(length))
    assert verify_cached.cache_info().currsize == 0


def test_a_signature_of_a_wrong_length_is_not_held() -> None:
    for length in (0, LENGTH[Scheme.ED25519] + 1, 1 << 20):
        assert not verify(Scheme.ED25519, bytes(length), b"message", ACCOUNT)
    assert verify_cached.cache_info().currsize == 0


def test_every_message_that_an_extrinsic_signs_is_short_enough() -> None:
    assert MAX_PLAIN_PAYLOAD <= MOST_CACHED
