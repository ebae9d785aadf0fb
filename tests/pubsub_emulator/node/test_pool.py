"""The pool as a structure: which extrinsics wait, in which order, and what becomes of them
(ND-16).
"""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.node.nodes import at as newest
from support.plumbing.examples import scaled
from support.runtime.accounts import Signer, call, network, signed, signer

from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.node.at import At
from pubsub_emulator.node.pool import Pool, Refused
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.signatures import Scheme
from pubsub_emulator.runtime.accounts.apply import CheckedExtrinsic
from pubsub_emulator.runtime.accounts.chain import NextBlock
from pubsub_emulator.runtime.accounts.extrinsic import Era
from pubsub_emulator.runtime.framework import system

ALICE, BOB, EVE = (signer(name, Scheme.ED25519) for name in ("Alice", "Bob", "Eve"))


def at(net: Network) -> At:
    return newest(net, None)


def remark(net: Network, who: Signer, nonce: int, *, tip: int = 0, text: bytes = b"") -> bytes:
    return signed(net, None, call(net, None, "System", "remark", text), who, nonce=nonce, tip=tip)


def kinds(pool: Pool) -> list[str]:
    return [change.kind for change in pool.take_changes()]


@pytest.fixture(scope="module")
def made() -> Network:
    net = network()
    net.step(1)
    return net


@pytest.fixture
def net(made: Network) -> Network:
    return made.fork()


def test_nd16_a_nonce_that_is_ahead_waits_until_those_before_it_are_there(net: Network) -> None:
    pool = Pool()
    pool.submit(at(net), remark(net, ALICE, 1))
    assert (pool.ready_count, pool.future_count, pool.next_index(at(net), ALICE.account)) == (
        0,
        1,
        0,
    )
    assert kinds(pool) == ["future"]
    pool.submit(at(net), remark(net, ALICE, 0))
    assert (pool.ready_count, pool.future_count, pool.next_index(at(net), ALICE.account)) == (
        2,
        0,
        2,
    )
    assert kinds(pool) == ["ready", "ready"]
    assert pool.ready() == (remark(net, ALICE, 0), remark(net, ALICE, 1))


def test_nd16_a_body_takes_by_priority_and_arrival_and_each_account_in_order(net: Network) -> None:
    pool = Pool()
    order = [(ALICE, 0, 1), (BOB, 0, 5), (ALICE, 1, 9), (EVE, 0, 1)]
    for who, nonce, tip in order:
        pool.submit(at(net), remark(net, who, nonce, tip=tip))
    expected = [(BOB, 0, 5), (ALICE, 0, 1), (ALICE, 1, 9), (EVE, 0, 1)]
    assert pool.ready() == tuple(remark(net, who, nonce, tip=tip) for who, nonce, tip in expected)


def test_nd16_of_one_account_and_nonce_the_higher_priority_wins(net: Network) -> None:
    pool = Pool()
    first = pool.submit(at(net), remark(net, ALICE, 0, tip=1))
    with pytest.raises(Refused) as refused:
        pool.submit(at(net), remark(net, ALICE, 0, tip=1, text=b"other"))
    assert (refused.value.code, refused.value.message) == (1014, "Priority is too low: (2 vs 2)")
    pool.take_changes()
    second = pool.submit(at(net), remark(net, ALICE, 0, tip=2))
    assert [(change.hash, change.kind, change.by) for change in pool.take_changes()] == [
        (first, "usurped", second),
        (second, "ready", None),
    ]
    assert pool.status_of(first) is None


def test_nd16_what_is_known_or_no_extrinsic_or_unsigned_is_refused(net: Network) -> None:
    pool = Pool()
    raw = remark(net, ALICE, 0)
    name = pool.submit(at(net), raw)
    assert name == blake2_256(raw)
    for data, code in (
        (raw, 1013),
        (b"\x04\x84", 1001),
        (raw[:-1], 1001),
        (b"\x10\x04\x00\x00\x00", 1011),
    ):
        with pytest.raises(Refused) as refused:
            pool.submit(at(net), data)
        assert refused.value.code == code
    assert pool.ready() == (raw,)


def test_nd16_a_full_pool_drops_the_lowest_priority_and_of_equals_the_newest(net: Network) -> None:
    pool = Pool(max_extrinsics=2)
    pool.submit(at(net), remark(net, ALICE, 0, tip=1))
    dropped = pool.submit(at(net), remark(net, BOB, 0))
    with pytest.raises(Refused) as refused:
        pool.submit(at(net), remark(net, EVE, 0))
    assert refused.value.code == 1016
    pool.take_changes()
    pool.submit(at(net), remark(net, EVE, 0, tip=3))
    first = pool.take_changes()[0]
    assert (first.hash, first.kind) == (dropped, "dropped")
    assert pool.ready() == (remark(net, EVE, 0, tip=3), remark(net, ALICE, 0, tip=1))


def test_nd16_a_full_pool_counts_bytes(net: Network) -> None:
    raw = remark(net, ALICE, 0, text=bytes(100))
    pool = Pool(max_bytes=len(raw))
    pool.submit(at(net), raw)
    with pytest.raises(Refused):
        pool.submit(at(net), remark(net, BOB, 0))
    pool.submit(at(net), remark(net, BOB, 0, tip=1))
    assert pool.ready() == (remark(net, BOB, 0, tip=1),)


def test_nd16_with_each_block_the_included_leave_and_the_others_are_checked_again(
    net: Network,
) -> None:
    pool = Pool()
    mine = [remark(net, ALICE, nonce) for nonce in range(3)]
    for raw in mine:
        pool.submit(at(net), raw)
    rival = remark(net, ALICE, 1, text=b"not the one that waits")
    pool.take_changes()
    net.offer(None, [mine[0], rival])
    [step] = net.step()
    pool.advance(at(net), step.block.extrinsics)
    assert [(change.hash, change.kind) for change in pool.take_changes()] == [
        (blake2_256(mine[1]), "invalid")
    ]
    assert pool.ready() == (mine[2],)


def test_nd16_only_what_something_changed_for_is_read_again(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account's row, a birth block's hash and the end of an era are what a check depends on as
    blocks go by.
    """
    net.step(9)
    pool = Pool()
    what = call(net, None, "System", "remark", b"")
    era = Era(64, net.relay.header.number % 64)
    mortal = signed(net, None, what, BOB, nonce=0, era=era)
    short = signed(net, None, what, BOB, nonce=1, era=Era(4, net.relay.header.number % 4))
    others = [remark(net, ALICE, 0), remark(net, EVE, 0)]
    for raw in (mortal, short, *others):
        pool.submit(at(net), raw)
    pool.take_changes()
    checked: list[bytes] = []
    check = NextBlock.check

    def counted(block: NextBlock, raw: bytes) -> CheckedExtrinsic:
        checked.append(raw)
        return check(block, raw)

    monkeypatch.setattr(NextBlock, "check", counted)
    net.step(2)
    pool.advance(at(net), ())
    assert not checked
    net.step(3)  # the short era is over
    pool.advance(at(net), ())
    assert checked == [short]
    assert kinds(pool) == ["invalid"]
    state = net.relay.state.fork()
    birth = system.BLOCK_HASH.key_for(era.birth(net.relay.header.number + 1))
    state.apply({system.ACCOUNT.key_for(EVE.account): None, birth: None}, {})
    checked.clear()
    pool.advance(replace(at(net), state=state), ())
    assert checked == [mortal, others[1]]
    assert kinds(pool) == ["invalid", "invalid"]
    assert pool.ready() == (others[0],)


def test_nd8_what_was_in_blocks_left_behind_waits_again_if_it_is_valid(net: Network) -> None:
    before = net.snapshot()
    pool = Pool()
    raw = remark(net, ALICE, 0)
    pool.submit(at(net), raw)
    net.offer(None, pool.ready())
    [step] = net.step()
    pool.advance(at(net), step.block.extrinsics)
    assert pool.ready() == ()
    net.restore(before)
    pool.take_changes()
    pool.retract(at(net), [raw, remark(net, BOB, 0)[:-1]])
    assert kinds(pool) == ["retracted", "ready", "retracted", "invalid"]
    assert pool.ready() == (raw,)


@settings(deadline=None, max_examples=scaled(20))
@given(
    st.lists(
        st.tuples(st.sampled_from((ALICE, BOB, EVE)), st.integers(0, 4), st.integers(0, 3)),
        min_size=1,
        max_size=14,
    )
)
def test_nd16_a_pool_never_offers_what_no_block_can_take(
    made: Network, rows: list[tuple[Signer, int, int]]
) -> None:
    net = made.fork()
    pool = Pool(max_extrinsics=6)
    for who, nonce, tip in rows:
        with suppress(Refused):
            pool.submit(at(net), remark(net, who, nonce, tip=tip))
    assert pool.ready_count + pool.future_count <= 6
    offered = pool.ready()
    net.offer(None, offered)
    [step] = net.step()
    assert step.block.refused == ()
    assert step.block.extrinsics[1:] == offered
    pool.advance(at(net), step.block.extrinsics)
    assert pool.ready() == ()
