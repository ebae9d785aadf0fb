"""ND-20: what runtime APIs answer, checked against what then happens."""

from collections.abc import Callable

import pytest
from support.node.nodes import at
from support.runtime.accounts import (
    KEY,
    PUBLISHER,
    SUBSCRIBER,
    call,
    network,
    runtime_of,
    signed,
    signer,
    storage_of,
)

from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.node import api
from pubsub_emulator.node.at import WithoutAccounts, metadata, runtime_version
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.scale import Reader, encode_bytes
from pubsub_emulator.primitives.weights import read_weight
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.dispatch import Token, TokenError
from pubsub_emulator.runtime.framework.origin import Root, Signed, origin_caller
from pubsub_emulator.runtime.framework.validity import Invalidity
from pubsub_emulator.xcm import Parachain
from pubsub_emulator.xcm.location import Location
from pubsub_emulator.xcm.message import decode

ALICE, BOB = signer("Alice"), signer("Bob")
UNIT = 10**10
CHAINS = (None, PUBLISHER)


@pytest.fixture(scope="module")
def made() -> Network:
    net = network()
    net.give_turn(PUBLISHER)
    net.step(1)
    return net


@pytest.fixture
def net(made: Network) -> Network:
    return made.fork()


def transfer(net: Network, chain: int | None, amount: int = 5 * UNIT) -> bytes:
    return signed(
        net, chain, call(net, chain, "Balances", "transfer_keep_alive", BOB.account, amount), ALICE
    )


@pytest.mark.parametrize("chain", CHAINS)
def test_core_and_metadata_answer_what_the_runtime_says(net: Network, chain: int | None) -> None:
    here = at(net, chain)
    assert api.call(here, "Core_version", b"") == runtime_version(here).encode()
    assert api.call(here, "Metadata_metadata", b"") == encode_bytes(metadata(here, 14))
    for version in (14, 15, 16):
        answer = api.call(here, "Metadata_metadata_at_version", version.to_bytes(4, "little"))
        assert answer == b"\x01" + encode_bytes(metadata(here, version))
    assert api.call(here, "Metadata_metadata_at_version", (13).to_bytes(4, "little")) == b"\x00"
    versions = scale.vec(scale.u32).encode([14, 15, 16])
    assert api.call(here, "Metadata_metadata_versions", b"") == versions


@pytest.mark.parametrize("chain", CHAINS)
def test_validity_is_what_a_pool_would_hear(net: Network, chain: int | None) -> None:
    here = at(net, chain)
    name = "TaggedTransactionQueue_validate_transaction"
    ask: Callable[[bytes], bytes] = lambda raw: api.call(here, name, b"\x02" + raw + bytes(32))  # noqa: E731
    answer = ask(transfer(net, chain))
    assert answer[:9] == b"\x00" + (1).to_bytes(8, "little")
    assert answer.endswith((2**64 - 1).to_bytes(8, "little") + b"\x01")
    assert (
        ask(encode_bytes(b"\x04\x00\x00\x00")) == b"\x01" + Invalidity.NO_UNSIGNED_VALIDATOR.value
    )
    with pytest.raises(api.ApiFailed):
        ask(encode_bytes(b"\x84"))
    with pytest.raises(api.ApiFailed):
        api.call(here, name, b"\x03" + transfer(net, chain) + bytes(32))


@pytest.mark.parametrize("chain", CHAINS)
def test_the_fee_that_is_told_is_the_fee_that_is_paid(net: Network, chain: int | None) -> None:
    raw = transfer(net, chain)
    query = raw + len(raw).to_bytes(4, "little")
    info = Reader(api.call(at(net, chain), "TransactionPaymentApi_query_info", query))
    weight, kind, fee = read_weight(info), info.u8(), info.uint(16)
    details = api.call(at(net, chain), "TransactionPaymentApi_query_fee_details", query)
    parts = [int.from_bytes(details[1 + 16 * place :][:16], "little") for place in range(4)]
    assert (kind, sum(parts), parts[0], parts[1], parts[3]) == (0, fee, 10**7, 10**6 * len(raw), 0)
    assert parts[2] == (weight.ref_time - 10**8) // 10
    before = system.account(storage_of(net, chain), ALICE.account).data.free
    net.offer(chain, [raw])
    net.step(1)
    assert (
        before - system.account(storage_of(net, chain), ALICE.account).data.free == 5 * UNIT + fee
    )
    length = api.call(
        at(net, chain), "TransactionPaymentApi_query_length_to_fee", len(raw).to_bytes(4, "little")
    )
    assert length == scale.u128.encode(parts[1])


@pytest.mark.parametrize("chain", CHAINS)
def test_a_dry_run_says_what_then_happens_and_keeps_nothing(
    net: Network, chain: int | None
) -> None:
    root = at(net, chain).state.root()
    assert api.dry_run(at(net, chain), transfer(net, chain)) == b"\x00\x00"
    too_much = transfer(net, chain, 10**30)
    answer = Reader(api.dry_run(at(net, chain), too_much))
    assert answer.take(2) == b"\x00\x01"
    assert every_runtime().decode_error(answer.data[answer.pos :]) == Token(
        TokenError.FundsUnavailable
    )
    stale = signed(net, chain, call(net, chain, "System", "remark", b""), ALICE, nonce=5)
    assert api.dry_run(at(net, chain), stale) == b"\x01" + Invalidity.FUTURE.value
    assert at(net, chain).state.root() == root


def _dry_run(
    net: Network, chain: int | None, origin: Root | Signed, encoded: bytes, version: int = 5
) -> Reader:
    data = origin_caller.encode(origin) + encoded + version.to_bytes(4, "little")
    return Reader(api.call(at(net, chain), "DryRunApi_dry_run_call", data))


@pytest.mark.parametrize("chain", CHAINS)
def test_a_dry_run_of_a_call_tells_its_events(net: Network, chain: int | None) -> None:
    what = call(net, chain, "Balances", "transfer_keep_alive", BOB.account, UNIT)
    answer = _dry_run(net, chain, Signed(ALICE.account), what.encoded)
    assert answer.take(3) == b"\x00\x00\x01"
    read_weight(answer)
    assert answer.u8() == 0
    assert answer.compact() == 1
    assert answer.take(2) == b"\x05\x02"  # Balances::Transfer
    failed = _dry_run(net, chain, Root(), what.encoded)
    assert failed.take(2) == b"\x00\x01"
    assert _dry_run(net, chain, Root(), what.encoded, version=4).take(2) == b"\x01\x01"


def test_a_dry_run_forwards_what_would_be_sent(net: Network) -> None:
    message = decode(bytes.fromhex("05042f0000"))
    send = call(net, None, "XcmPallet", "send", Location(0, (Parachain(SUBSCRIBER),)), message)
    answer = _dry_run(net, None, Root(), send.encoded).data
    forwarded = (
        b"\x04\x05"
        + Location.codec.encode(Location(0, (Parachain(SUBSCRIBER),)))
        + b"\x04"
        + bytes.fromhex("05042f0000")
    )
    assert answer.endswith(b"\x00\x00" + forwarded)
    publish = call(net, PUBLISHER, "Publisher", "publish", [(KEY, b"value", 0)])
    answer = _dry_run(net, PUBLISHER, Signed(ALICE.account), publish.encoded).data
    assert answer.endswith(KEY + b"\x14value" + bytes(4))
    for sent, there in ((message_bytes := bytes.fromhex("05042f0000"), True), (b"no XCM", False)):
        upward = call(net, PUBLISHER, "ParachainSystem", "sudo_send_upward_message", sent)
        answer = _dry_run(net, PUBLISHER, Root(), upward.encoded).data
        assert answer.endswith(b"\x04" + message_bytes) is there
    assert not net.parachain(PUBLISHER).has_messages()


def test_other_functions_and_arguments_are_refused(net: Network) -> None:
    here = at(net, None)
    with pytest.raises(
        api.UnknownFunction, match="Exported method Core_execute_block is not found"
    ):
        api.call(here, "Core_execute_block", b"")
    for name, data in (("Core_version", b"\0"), ("AccountNonceApi_account_nonce", bytes(31))):
        with pytest.raises(api.ApiFailed, match=name):
            api.call(here, name, data)


def test_a_chain_without_accounts_has_no_runtime_to_ask(net: Network) -> None:
    plain = Network.of(publishers=[1000], subscribers={2000: {1000: [KEY]}})
    for chain in (None, 2000):
        with pytest.raises(WithoutAccounts):
            api.call(at(plain, chain), "Core_version", b"")
    assert runtime_of(net, None).definition.version.spec_name == "pubsub-relay"
