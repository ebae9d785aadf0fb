"""ND-9 to ND-15: what signed extrinsics do in blocks of both kinds of chains, and what they
cost.
"""

from dataclasses import replace
from typing import Any

import pytest
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
from support.runtime.world import Chain, make_spec

from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.emulator.network.arguments import BadRequest
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.storage_keys import CODE, CURRENT_SLOT
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.accounts.timestamp import NOW
from pubsub_emulator.runtime.balances import TOTAL_ISSUANCE
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.calls import EncodedCall
from pubsub_emulator.runtime.framework.dispatch import Other
from pubsub_emulator.runtime.framework.events import ApplyExtrinsic, EventRecord
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.validity import Invalidity
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished
from pubsub_emulator.runtime.pallet_subscriber.config import (
    ImpossibleConfig,
    RuntimeSpec,
    decode_spec,
    integrity_test,
)
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict
from pubsub_emulator.runtime.parachain.governance import set_code, transact
from pubsub_emulator.runtime.parachain.signed_body import OfferedBody, SignedBody, note_time
from pubsub_emulator.runtime.relay.message_queue.types import Processed, ProcessingFailed
from pubsub_emulator.xcm import Parachain
from pubsub_emulator.xcm.location import HERE, Location
from pubsub_emulator.xcm.message import decode

ALICE, BOB, EVE = signer("Alice"), signer("Bob"), signer("Eve")
each_chain = pytest.mark.parametrize("chain", [None, SUBSCRIBER])
UNIT = 10**10


@pytest.fixture
def net() -> Network:
    return fresh()


def fresh() -> Network:
    net = network()
    net.give_turn(PUBLISHER)
    net.step(1)
    return net


def built(step: Step, chain: int = SUBSCRIBER) -> Any:
    """The record of a parachain's block."""
    [record] = [record for record in step.records if record.chain == chain]
    return record


def run(net: Network, chain: int | None, *raws: bytes) -> tuple[Step, list[EventRecord]]:
    """Offer these to the next block; the events of all but its inherent."""
    net.offer(chain, raws)
    [step] = net.step()
    events = step.block.events if chain is None else built(step, chain).outcome.events
    return step, [record for record in events if record.phase != ApplyExtrinsic(0)]


def names(events: list[EventRecord]) -> list[str]:
    applied = [record.event for record in events if isinstance(record.phase, ApplyExtrinsic)]
    return [f"{event.PALLET}.{type(event).__name__}" for event in applied]


def as_root(net: Network, chain: int | None, what: EncodedCall) -> EncodedCall:
    return call(net, chain, "Sudo", "sudo", what)


def transfer(net: Network, chain: int | None, amount: int = 5 * UNIT) -> EncodedCall:
    return call(net, chain, "Balances", "transfer_keep_alive", BOB.account, amount)


@each_chain
def test_nd14_a_transfer_pays_by_the_formula_and_tells_so_in_order(
    net: Network, chain: int | None
) -> None:
    before = {who: system.account(storage_of(net, chain), who.account) for who in (ALICE, BOB)}
    issuance = TOTAL_ISSUANCE.get(storage_of(net, chain))
    raw = signed(net, chain, transfer(net, chain), ALICE, tip=7)
    _, events = run(net, chain, raw)
    fee = 10**7 + 10**6 * len(raw) + 60_000_000 // 10 + 7
    assert names(events) == [
        "Balances.Withdraw",
        "Balances.Transfer",
        "TransactionPayment.TransactionFeePaid",
        "System.ExtrinsicSuccess",
    ]
    after = {who: system.account(storage_of(net, chain), who.account) for who in (ALICE, BOB)}
    assert before[ALICE].data.free - after[ALICE].data.free == 5 * UNIT + fee
    assert after[BOB].data.free - before[BOB].data.free == 5 * UNIT
    assert after[ALICE].nonce == before[ALICE].nonce + 1
    assert issuance - TOTAL_ISSUANCE.get(storage_of(net, chain)) == fee


@each_chain
def test_nd14_a_call_that_fails_pays_and_changes_nothing_else(
    net: Network, chain: int | None
) -> None:
    before = system.account(storage_of(net, chain), BOB.account)
    broke = call(
        net, chain, "Utility", "batch_all", [transfer(net, chain), transfer(net, chain, 10**30)]
    )
    raw = signed(net, chain, broke, ALICE)
    _, events = run(net, chain, raw)
    assert names(events) == [
        "Balances.Withdraw",
        "TransactionPayment.TransactionFeePaid",
        "System.ExtrinsicFailed",
    ]
    assert system.account(storage_of(net, chain), BOB.account) == before


def test_nd14_what_a_call_did_not_use_is_given_back(net: Network) -> None:
    calls = [transfer(net, None), transfer(net, None, 10**30), transfer(net, None)]
    raw = signed(net, None, call(net, None, "Utility", "batch", calls), ALICE)
    free = system.account(storage_of(net, None), ALICE.account).data.free
    _, events = run(net, None, raw)
    assert names(events) == [
        "Balances.Withdraw",
        "Balances.Transfer",
        "Utility.ItemCompleted",
        "Utility.BatchInterrupted",
        "Balances.Deposit",
        "TransactionPayment.TransactionFeePaid",
        "System.ExtrinsicSuccess",
    ]
    paid, success = events[-2].event, events[-1].event
    used = success.dispatch_info.weight - Weight(100_000_000, 0)  # type: ignore[attr-defined]
    fee = 10**7 + 10**6 * len(raw) + used.ref_time // 10
    assert paid.actual_fee == fee  # type: ignore[attr-defined]
    assert free - system.account(storage_of(net, None), ALICE.account).data.free == fee + 5 * UNIT


def test_nd10_a_forced_batch_goes_on_after_a_failure(net: Network) -> None:
    calls = [transfer(net, None, 10**30), transfer(net, None)]
    _, events = run(
        net, None, signed(net, None, call(net, None, "Utility", "force_batch", calls), ALICE)
    )
    assert names(events)[1:5] == [
        "Utility.ItemFailed",
        "Balances.Transfer",
        "Utility.ItemCompleted",
        "Utility.BatchCompletedWithErrors",
    ]


@each_chain
def test_nd10_alice_alone_acts_as_root(net: Network, chain: int | None) -> None:
    mint = call(net, chain, "Balances", "force_set_balance", EVE.account, 3 * UNIT)
    sudo = as_root(net, chain, mint)
    _, events = run(
        net, chain, signed(net, chain, mint, BOB), signed(net, chain, sudo, BOB, nonce=1)
    )
    assert names(events).count("System.ExtrinsicFailed") == 2
    _, events = run(net, chain, signed(net, chain, sudo, ALICE))
    assert names(events)[1:3] == ["Balances.BalanceSet", "Sudo.Sudid"]
    assert system.account(storage_of(net, chain), EVE.account).data.free == 3 * UNIT


@each_chain
def test_nd10_root_dispatches_in_the_name_of_others_and_nobody_else_does(
    net: Network, chain: int | None
) -> None:
    as_eve = call(net, chain, "Utility", "dispatch_as", Signed(EVE.account), transfer(net, chain))
    _, events = run(net, chain, signed(net, chain, as_eve, BOB))
    assert names(events)[-1] == "System.ExtrinsicFailed"
    _, events = run(net, chain, signed(net, chain, as_root(net, chain, as_eve), ALICE))
    assert names(events)[1:4] == ["Balances.Transfer", "Utility.DispatchedAs", "Sudo.Sudid"]


@each_chain
def test_nd12_a_bare_call_of_a_client_is_part_of_no_block(net: Network, chain: int | None) -> None:
    root = call(net, chain, "Utility", "dispatch_as", Root(), transfer(net, chain))
    bare = [encode_bytes(bytes((version,)) + root.encoded) for version in (4, 5, 0x45)]
    step, _ = run(net, chain, *bare)
    if chain is None:
        assert [error.why for _, error in step.block.refused] == [
            Invalidity.NO_UNSIGNED_VALIDATOR
        ] * 3
        assert len(step.block.extrinsics) == 1
    else:
        assert built(step).candidate.extrinsics == ()


def test_nd13_a_call_that_raises_makes_its_extrinsic_invalid(net: Network) -> None:
    bobs = system.ACCOUNT.key_for(BOB.account)
    broken = as_root(net, None, call(net, None, "System", "set_storage", [(bobs, b"broken")]))
    run(net, None, signed(net, None, broken, ALICE))
    root = net.relay.state.root()
    step, events = run(net, None, signed(net, None, transfer(net, None), EVE))
    assert [error.why for _, error in step.block.refused] == [Invalidity.CALL]
    assert names(events) == []
    assert system.account(storage_of(net, None), EVE.account).nonce == 0
    assert net.relay.state.root() != root  # the block itself came to be


@each_chain
def test_nd10_root_writes_storage_but_neither_child_roots_nor_what_code_must_be(
    net: Network, chain: int | None
) -> None:
    code = storage_of(net, chain).get(CODE)
    for key in (b":child_storage:default:x", CODE):
        for name, row in (("set_storage", [(key, b"x")]), ("kill_storage", [key])):
            sudo = as_root(net, chain, call(net, chain, "System", name, row))
            _, events = run(net, chain, signed(net, chain, sudo, ALICE))
            assert [each for each in events if getattr(each.event, "sudo_result", None) is not None]
    assert storage_of(net, chain).get(CODE) == code
    free = as_root(net, chain, call(net, chain, "System", "set_storage", [(b"mine", b"1")]))
    run(net, chain, signed(net, chain, free, ALICE))
    assert storage_of(net, chain).get(b"mine") == b"1"


def test_nd10_writing_a_parachains_code_is_a_runtime_upgrade(net: Network) -> None:
    newer = replace(net.parachain(SUBSCRIBER).spec(), spec_version=2)
    write = call(net, SUBSCRIBER, "System", "set_storage", [(CODE, newer.encode())])
    _, events = run(
        net, SUBSCRIBER, signed(net, SUBSCRIBER, as_root(net, SUBSCRIBER, write), ALICE)
    )
    assert "System.CodeUpdated" in names(events)
    assert net.parachain(SUBSCRIBER).spec() == newer
    assert runtime_of(net, SUBSCRIBER).definition.version.spec_version == 2


def test_nd9_the_profile_is_a_specs_last_byte_and_upgrades_keep_it(
    net: Network,
) -> None:
    plain = RuntimeSpec(SUBSCRIBER, {})
    with_accounts = replace(plain, accounts=True)
    assert with_accounts.encode() == plain.encode() + b"\x01"
    assert decode_spec(with_accounts.encode()) == with_accounts
    for tail in (b"\x00", b"\x02", b"\x01\x01"):
        with pytest.raises(ScaleError):
            decode_spec(plain.encode() + tail)
    before = net.parachain(SUBSCRIBER).spec()
    net.upgrade(replace(before, accounts=False))
    net.step(3)
    assert net.parachain(SUBSCRIBER).spec() == before


def test_nd15_genesis_wants_room_for_extrinsics_beside_the_messages() -> None:
    tight = RuntimeSpec(SUBSCRIBER, {}, max_pov_size=15 * 512 * 1024)
    integrity_test(tight)
    with pytest.raises(ImpossibleConfig, match="extrinsics"):
        integrity_test(replace(tight, accounts=True))
    integrity_test(replace(tight, accounts=True, max_pov_size=8 * 1024 * 1024))


@each_chain
def test_nd10_the_time_of_a_block_follows_from_the_relay_slot(
    net: Network, chain: int | None
) -> None:
    net.give_turn(PUBLISHER)
    net.step(1)
    slot = 1_000_000 + net.number - (0 if chain is None else 1)
    assert NOW.get(storage_of(net, chain)) == slot * 6000


def test_nd11_what_is_published_with_a_signature_is_delivered_in_three_steps(net: Network) -> None:
    publish = call(net, PUBLISHER, "Publisher", "publish", [(KEY, b"value", 9)])
    net.offer(PUBLISHER, [signed(net, PUBLISHER, publish, EVE)])
    deliveries = [step.deliveries(SUBSCRIBER) for step in net.step(3)]
    assert [len(each) for each in deliveries] == [0, 0, 1]
    assert deliveries[-1][0].value == b"value"


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        ([], 0),
        ([(bytes(32), b"", 0)] * 65, 0),
        ([(bytes(32), bytes(2049), 0)], 1),
    ],
    ids=["none", "too many", "too long"],
)
def test_nd11_a_publish_of_none_too_many_or_too_long_fails(
    net: Network, entries: list[tuple[bytes, bytes, int]], error: int
) -> None:
    publish = call(net, PUBLISHER, "Publisher", "publish", entries)
    _, events = run(net, PUBLISHER, signed(net, PUBLISHER, publish, EVE))
    failed = events[-1].event
    assert failed.dispatch_error.encode() == bytes((3, 103, error, 0, 0, 0))  # type: ignore[attr-defined]
    assert not net.parachain(PUBLISHER).has_messages()


def _send(net: Network, para: int, encoded: bytes) -> EncodedCall:
    return call(
        net, None, "XcmPallet", "send", Location(0, (Parachain(para),)), decode(transact(encoded))
    )


def test_nd11_root_sends_a_parachain_any_call(net: Network) -> None:
    mint = call(net, SUBSCRIBER, "Balances", "force_set_balance", EVE.account, 3 * UNIT)
    sudo = as_root(net, None, _send(net, SUBSCRIBER, mint.encoded))
    run(net, None, signed(net, None, sudo, ALICE))
    net.step(2)
    assert system.account(storage_of(net, SUBSCRIBER), EVE.account).data.free == 3 * UNIT
    net.send_downward(SUBSCRIBER, transact(b"\xff\xff"))
    net.send_downward(
        SUBSCRIBER, transact(set_code(replace(net.parachain(SUBSCRIBER).spec(), spec_version=3)))
    )
    net.step(2)
    assert net.parachain(SUBSCRIBER).spec().spec_version == 3


def test_nd11_an_accounts_message_goes_behind_its_origin_and_transacts_nothing(
    net: Network,
) -> None:
    mint = call(net, SUBSCRIBER, "Balances", "force_set_balance", EVE.account, 3 * UNIT)
    run(net, None, signed(net, None, _send(net, SUBSCRIBER, mint.encoded), BOB))
    [waiting] = net.relay.runtime.dmp.contents(net.relay.storage(), SUBSCRIBER)
    assert waiting.msg.startswith(bytes.fromhex("050c0b010100") + BOB.account)
    net.step(2)
    assert system.account(storage_of(net, SUBSCRIBER), EVE.account).data.free > 3 * UNIT


def test_nd11_other_destinations_are_unreachable(net: Network) -> None:
    send = call(net, None, "XcmPallet", "send", HERE, decode(transact(b"")))
    _, events = run(net, None, signed(net, None, send, BOB))
    assert events[-1].event.dispatch_error.encode() == bytes((3, 99, 0, 0, 0, 0))  # type: ignore[attr-defined]


def test_nd11_a_queue_that_refuses_a_message_is_a_send_failure(
    net: Network,
) -> None:
    queue = net.relay.runtime.dmp
    for _ in range(
        40
    ):  # nobody takes from this queue: its parachain builds only when it has something to send
        waiting = queue.contents(net.relay.storage(), PUBLISHER)
        _, events = run(net, None, signed(net, None, _send(net, PUBLISHER, bytes(50_000)), BOB))
        if names(events)[-1] == "System.ExtrinsicFailed":
            break
    assert events[-1].event.dispatch_error.encode() == bytes((3, 99, 1, 0, 0, 0))  # type: ignore[attr-defined]
    assert queue.contents(net.relay.storage(), PUBLISHER) == waiting
    assert len(waiting) > 10
    too_long = _send(net, SUBSCRIBER, bytes(52_000))
    _, events = run(net, None, signed(net, None, too_long, BOB))
    assert events[-1].event.dispatch_error.encode() == bytes((3, 99, 1, 0, 0, 0))  # type: ignore[attr-defined]


def test_nd11_what_the_relay_chain_has_no_room_for_waits_in_order() -> None:
    config = network().config
    host = replace(config.relay.host, max_upward_message_num_per_candidate=1)
    net = Network(replace(config, relay=replace(config.relay, host=host)))
    net.give_turn(PUBLISHER)
    net.step(1)
    entries = [(bytes((at,)) * 32, bytes((at,)) * 2000, 0) for at in range(64)]
    publish = call(net, PUBLISHER, "Publisher", "publish", entries)
    net.offer(PUBLISHER, [signed(net, PUBLISHER, publish, EVE)])
    published: list[bytes] = []
    sent = []
    for _ in range(8):
        [step] = net.step()
        new = [event.key for event in step.events if isinstance(event, DataPublished)]
        published += new
        sent.append(len(new))
    assert published == [key for key, _, _ in entries]
    assert (
        len([count for count in sent if count]) > 1
    )  # one message a block, and a message holds some of them
    assert not net.parachain(PUBLISHER).has_messages()


def _send_upward(net: Network, message: bytes) -> EncodedCall:
    return call(net, PUBLISHER, "ParachainSystem", "sudo_send_upward_message", message)


def test_nd11_root_alone_sends_any_bytes_upward_behind_what_waits(net: Network) -> None:
    publish = call(net, PUBLISHER, "Publisher", "publish", [(KEY, b"value", 9)])
    message = b"no XCM"
    raws = [
        signed(net, PUBLISHER, as_root(net, PUBLISHER, publish), ALICE),
        signed(net, PUBLISHER, as_root(net, PUBLISHER, _send_upward(net, message)), ALICE, nonce=1),
        signed(net, PUBLISHER, _send_upward(net, message), BOB),
    ]
    _, events = run(net, PUBLISHER, *raws)
    assert names(events)[-1] == "System.ExtrinsicFailed"
    told = [
        event
        for step in net.step(2)
        for event in step.events
        if isinstance(event, Processed | ProcessingFailed)
    ]
    assert [type(event) for event in told] == [Processed, ProcessingFailed]
    assert told[1].id == blake2_256(message)


def test_nd11_a_message_longer_than_the_relay_chain_takes_is_not_sent(net: Network) -> None:
    long = as_root(net, PUBLISHER, _send_upward(net, bytes(65_532)))
    _, events = run(net, PUBLISHER, signed(net, PUBLISHER, long, ALICE))
    assert [each.event.sudo_result for each in events if hasattr(each.event, "sudo_result")] == [
        Other()
    ]
    assert not net.parachain(PUBLISHER).has_messages()


def test_nd14_the_emulators_own_calls_count_no_nonce_and_pay_nothing(net: Network) -> None:
    before = system.account(storage_of(net, None), ALICE.account)
    net.call(Signed(ALICE.account), "System", "remark", b"mine")
    net.offer(None, [signed(net, None, transfer(net, None), BOB)])
    [step] = net.step()
    assert len(step.block.extrinsics) == 3
    assert step.block.extrinsics[1].endswith(b"\x00\x00\x10mine")
    assert system.account(storage_of(net, None), ALICE.account) == before


def test_nd15_a_block_with_extrinsics_reads_back_and_costs_what_the_ledger_says(
    net: Network,
) -> None:
    raws = [signed(net, SUBSCRIBER, transfer(net, SUBSCRIBER), who) for who in (ALICE, EVE)]
    step, _ = run(net, SUBSCRIBER, *raws)
    record = built(step)
    assert record.candidate.extrinsics == tuple(raws)
    assert Candidate.decode(record.candidate.encode()) == record.candidate
    ledger = record.outcome.ledger
    assert ledger.extrinsics_bytes == sum(map(len, raws))
    assert ledger.extrinsics_state_bytes > 0
    plain = built(fresh().step()[0])
    assert plain.outcome.ledger.own_state_bytes == ledger.own_state_bytes
    assert (plain.outcome.ledger.extrinsics_bytes, plain.outcome.ledger.extrinsics_state_bytes) == (
        0,
        0,
    )


def test_nd15_offered_extrinsics_run_as_they_do_for_a_verifier(net: Network) -> None:
    """The verifier sees only those that the author took. Events and reads must be the same."""
    late = signed(net, SUBSCRIBER, transfer(net, SUBSCRIBER), BOB, nonce=9)
    alice, eve = (signed(net, SUBSCRIBER, transfer(net, SUBSCRIBER), who) for who in (ALICE, EVE))
    chain = net.parachain(SUBSCRIBER)

    def begun() -> Storage:
        storage = Storage(chain.state.fork())
        storage.start_recording()
        system.initialize(storage, chain.header.number + 1, chain.header.hash())
        system.note_extrinsic(storage, 0)
        return storage

    author, verifier = begun(), begun()
    offered = OfferedBody((late, alice, late, eve))
    outcomes = offered.run(author, chain.spec())
    assert offered.extrinsics == (alice, eve)
    assert [(raw, error.why) for raw, error in offered.refused] == [(late, Invalidity.FUTURE)] * 2
    assert offered.length == len(alice) + len(eve)
    assert SignedBody(offered.extrinsics).run(verifier, chain.spec()) == outcomes
    events = system.finalize(author)
    assert [record.phase for record in events if record.phase != ApplyExtrinsic(0)] == [
        *[ApplyExtrinsic(1)] * 4,
        *[ApplyExtrinsic(2)] * 4,
    ]
    assert events == system.finalize(verifier)
    assert {*(author.recorded or ())} == {*(verifier.recorded or ())}
    assert author.commit() == verifier.commit()


def test_nd15_a_block_takes_128_kib_of_extrinsics_and_leaves_the_rest(net: Network) -> None:
    long = call(net, SUBSCRIBER, "System", "remark", bytes(50_000))
    raws = [signed(net, SUBSCRIBER, long, signer(name)) for name in ("Alice", "Bob", "Eve")]
    step, _ = run(net, SUBSCRIBER, *raws)
    assert built(step).candidate.extrinsics == tuple(raws[:2])


@pytest.mark.parametrize("offered", [False, True])
def test_nd15_a_forged_extrinsic_is_a_bad_extrinsic_and_nothing_else(offered: bool) -> None:
    net = network(subscriber=((("forge-extrinsic",), 1_000_000), ((), 0)))
    net.step(1)
    refused = []
    for _ in range(12):
        if offered:
            net.offer(SUBSCRIBER, [signed(net, SUBSCRIBER, transfer(net, SUBSCRIBER), ALICE)])
        [step] = net.step()
        refused += step.refused
    assert refused
    for record in refused:
        assert record.refusal is not None
        assert [offence.verdict for offence in record.refusal.evidence] == [Verdict.BAD_EXTRINSIC]
        assert record.due == (Verdict.BAD_EXTRINSIC,)
    if offered:
        assert system.account(storage_of(net, SUBSCRIBER), ALICE.account).nonce > 0


@pytest.mark.parametrize("slot", [None, b"", bytes(7), bytes(9), b"\7" + bytes(7)])
def test_a_block_has_the_time_of_a_relay_slot_of_eight_bytes(slot: bytes | None) -> None:
    """A relay chain without a slot, or with bytes that are no slot, leaves the time as it is."""
    storage = Storage(Chain(make_spec()).state)
    NOW.put(storage, 5)
    note_time(storage, StaticValues({CURRENT_SLOT: slot}))
    assert NOW.get(storage) == (42_000 if slot is not None and len(slot) == 8 else 5)


def test_a_chain_without_accounts_is_offered_nothing() -> None:
    plain = Network.of(publishers=[1000], subscribers={2000: {1000: [KEY]}})
    for chain in (None, ParaId(2000)):
        with pytest.raises(BadRequest, match="no accounts"):
            plain.offer(chain, [])
