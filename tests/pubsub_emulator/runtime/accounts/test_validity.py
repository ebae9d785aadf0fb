"""ND-12, ND-13: which signed extrinsics a block may take, and the first reason against the
others.
"""

from dataclasses import replace
from typing import Any

import pytest
from support.runtime.accounts import (
    PUBLISHER,
    SUBSCRIBER,
    Signer,
    call,
    network,
    runtime_of,
    signed,
    signer,
    storage_of,
)

from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Reader, encode_bytes
from pubsub_emulator.primitives.signatures import Scheme
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.runtime.accounts.apply import check
from pubsub_emulator.runtime.accounts.chain import NextBlock, begin
from pubsub_emulator.runtime.accounts.endowed import ACCOUNTS, ECDSA, ENDOWMENT, NAMES
from pubsub_emulator.runtime.accounts.extrinsic import (
    Era,
    SignedExtrinsic,
    UndecodableExtrinsic,
    decode,
)
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.calls import MAX_CALL_DEPTH
from pubsub_emulator.runtime.framework.origin import OtherAddress, multi_address
from pubsub_emulator.runtime.framework.validity import Invalidity, InvalidTransaction

CHAINS = (None, SUBSCRIBER)
ALICE, BOB = signer("Alice"), signer("Bob")


@pytest.fixture(scope="module")
def net() -> Network:
    made = network()
    made.step(3)
    return made


def next_block(net: Network, chain: int | None) -> NextBlock:
    if chain is None:
        return NextBlock(runtime_of(net, None), net.relay.state, net.relay.header)
    para = net.parachain(chain)
    return NextBlock(runtime_of(net, chain), para.state, para.header)


def why(net: Network, raw: bytes, chain: int | None = None) -> Invalidity:
    with pytest.raises(InvalidTransaction) as refused:
        next_block(net, chain).validate(raw)
    assert refused.value.encode() == refused.value.why.value
    return refused.value.why


def remark(
    net: Network, who: Signer = ALICE, text: bytes = b"", chain: int | None = None, **changes: Any
) -> bytes:
    return signed(net, chain, call(net, chain, "System", "remark", text), who, **changes)


def test_nd14_the_development_accounts_are_those_of_every_substrate_tool() -> None:
    for name in NAMES:
        assert ACCOUNTS[f"sr25519/{name}"] == signer(name).account
        assert ACCOUNTS[f"ed25519/{name}"] == signer(name, Scheme.ED25519).account
        assert ACCOUNTS[f"ecdsa/{name}"] == signer(name, Scheme.ECDSA).account
    assert signer("Alice", Scheme.ECDSA).public == ECDSA[0]


@pytest.mark.parametrize("chain", [None, PUBLISHER, SUBSCRIBER])
def test_nd14_each_of_them_owns_a_million_on_every_chain_deposits_included(
    chain: int | None,
) -> None:
    storage = storage_of(network(), chain)
    for account in ACCOUNTS.values():
        data = system.account(storage, account).data
        assert data.free + data.reserved == ENDOWMENT


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("scheme", Scheme)
def test_nd12_each_scheme_signs_short_payloads_and_hashed_long_ones(
    net: Network, chain: int | None, scheme: Scheme
) -> None:
    for text in (b"", bytes(1000)):
        valid = next_block(net, chain).validate(remark(net, signer("Eve", scheme), text, chain))
        assert (valid.priority, valid.requires, valid.longevity) == (1, (), 2**64 - 1)


@pytest.mark.parametrize("scheme", Scheme)
def test_nd13_a_signature_over_anything_else_is_a_bad_proof(net: Network, scheme: Scheme) -> None:
    who = signer("Eve", scheme)
    what, other = (call(net, None, "System", "remark", text) for text in (b"this", b"that"))
    raw = signed(net, None, what, who)
    swapped = raw.replace(what.encoded, other.encoded)
    assert why(net, swapped) is Invalidity.BAD_PROOF
    assert why(net, remark(net, who, genesis=Hash(bytes(32)))) is Invalidity.BAD_PROOF
    assert why(net, remark(net, who, spec_version=2)) is Invalidity.BAD_PROOF
    assert why(net, remark(net, who), SUBSCRIBER) is Invalidity.BAD_PROOF


@pytest.mark.parametrize("scheme", Scheme)
@pytest.mark.parametrize("fill", [0x00, 0xFF, 0x7F])
def test_nd13_bytes_at_which_a_library_raises_are_a_bad_proof(
    net: Network, scheme: Scheme, fill: int
) -> None:
    extrinsic = decode(remark(net, signer("Eve", scheme)), runtime_of(net, None).calls)
    assert isinstance(extrinsic, SignedExtrinsic)
    broken = replace(extrinsic, signature=bytes((fill,)) * len(extrinsic.signature))
    assert why(net, broken.encode()) is Invalidity.BAD_PROOF


@pytest.mark.parametrize(
    "address",
    [
        OtherAddress(1, b""),
        OtherAddress(2, b"abc"),
        OtherAddress(3, bytes(32)),
        OtherAddress(4, bytes(20)),
    ],
    ids=["index", "raw", "address32", "address20"],
)
def test_nd12_other_addresses_decode_and_name_no_account(
    net: Network, address: OtherAddress
) -> None:
    extrinsic = decode(remark(net), runtime_of(net, None).calls)
    assert isinstance(extrinsic, SignedExtrinsic)
    assert why(net, replace(extrinsic, address=address).encode()) is Invalidity.CANNOT_LOOKUP
    assert multi_address.decode(multi_address.encode(address)) == address


def test_nd13_eras_end_and_births_are_forgotten(net: Network) -> None:
    number = net.relay.number
    short = Era(4, number % 4)
    raw = remark(net, era=short)
    assert next_block(net, None).validate(raw).longevity == 3
    later = network()
    later.step(3)
    later.step(4)
    assert why(later, raw) is Invalidity.BAD_PROOF  # the birth block is another one by now
    storage = begin(net.relay.state, net.relay.header)
    system.BLOCK_HASH.remove(storage, short.birth(number + 1))
    runtime = runtime_of(net, None)
    with pytest.raises(InvalidTransaction) as refused:
        check(runtime.signing, storage, raw, runtime.room(storage))
    assert refused.value.why is Invalidity.ANCIENT_BIRTH_BLOCK


@pytest.mark.parametrize("period", [4, 64, 4096, 8192, 65536])
def test_nd12_an_era_reads_back_and_lives_for_its_period(period: int) -> None:
    quantum = max(period >> 12, 1)
    for phase in (0, quantum, period - quantum):
        era = Era(period, phase)
        data = era.encode()
        assert len(data) == 2
        assert Era.read(Reader(data)) == era
        for now in (phase, phase + 1, phase + 5 * period - 1, phase + 5 * period):
            assert era.birth(now) <= now < era.death(now)
            assert era.birth(now) % period == phase % period


def test_nd13_metadata_mode_one_is_refused_as_by_a_runtime_without_the_hash(net: Network) -> None:
    assert why(net, remark(net, mode=1)) is Invalidity.CANNOT_LOOKUP


def test_nd13_the_order_of_reasons_is_that_of_the_checks(net: Network) -> None:
    poor = signer("Nobody")
    what = call(net, None, "System", "remark", b"")
    assert why(net, remark(net, poor)) is why(net, remark(net, tip=ENDOWMENT)) is Invalidity.PAYMENT
    assert why(net, remark(net, poor, bytes(4 << 20))) is Invalidity.EXHAUSTS_RESOURCES
    heavy = remark(net, ALICE, bytes(128 << 10), SUBSCRIBER)
    assert why(net, heavy, SUBSCRIBER) is Invalidity.EXHAUSTS_RESOURCES
    for version in (4, 5, 0x45):
        assert (
            why(net, encode_bytes(bytes((version,)) + what.encoded))
            is Invalidity.NO_UNSIGNED_VALIDATOR
        )


def test_nd13_an_account_of_zeros_signs_nothing(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = Signer(Scheme.ED25519, signer("Eve", Scheme.ED25519).secret, bytes(32))
    raw = remark(net, nobody)
    assert why(net, raw) is Invalidity.BAD_PROOF
    monkeypatch.setattr("pubsub_emulator.runtime.accounts.apply.verify", lambda *_: True)
    assert why(net, raw) is Invalidity.BAD_SIGNER


def test_nd13_nonces_behind_are_stale_and_those_ahead_wait() -> None:
    net = network()
    net.step(1)
    net.offer(None, [remark(net)])
    net.step(1)
    assert why(net, remark(net, nonce=0)) is Invalidity.STALE
    ahead = remark(net, nonce=3)
    valid = next_block(net, None).validate(ahead)
    assert valid.requires == (ALICE.account + (2).to_bytes(4, "little"),)
    assert valid.provides == (ALICE.account + (3).to_bytes(4, "little"),)
    net.offer(None, [ahead])
    [step] = net.step()
    assert [(raw, error.why) for raw, error in step.block.refused] == [(ahead, Invalidity.FUTURE)]


def test_nd13_what_does_not_decode_is_told_apart_from_what_is_invalid(net: Network) -> None:
    raw = remark(net)
    body = raw[2:]
    for data in (
        b"",
        raw[:-1],
        raw + b"\0",
        encode_bytes(b"\x83" + body[1:]),
        encode_bytes(body[:34] + b"\x03" + body[35:]),
        encode_bytes(body[:99] + b"\x00\x00\x00\x02" + body[103:]),
    ):
        with pytest.raises(UndecodableExtrinsic):
            next_block(net, None).validate(data)


def test_nd13_calls_nest_so_deep_and_no_deeper(net: Network) -> None:
    calls = runtime_of(net, None).calls
    nested = calls.encode("System", "remark", b"")
    for _ in range(MAX_CALL_DEPTH):
        nested = calls.encode("Utility", "batch", [nested])
    assert calls.decode(nested.encoded) == nested
    next_block(net, None).validate(signed(net, None, nested, BOB))
    too_deep = calls.encode("Utility", "batch", [nested])
    with pytest.raises(UndecodableExtrinsic, match="nest deeper than 32"):
        next_block(net, None).validate(signed(net, None, too_deep, BOB))


def test_the_account_of_an_ecdsa_key_is_its_hash() -> None:
    who = signer("Alice", Scheme.ECDSA)
    assert who.account == AccountId(blake2_256(who.public))
