"""Relay headers in a block: offset, collator, static keys and check (UP-4, UP-12)."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.collator.cheats.steps import Draft
from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.network.arguments import BadRequest
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.emulator.runtimes import decoded_key
from pubsub_emulator.primitives import babe, schnorrkel, storage_keys
from pubsub_emulator.primitives.babe import NextEpoch
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.header import DigestItem, DigestKind, Header
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.static_keys import StaticValues, fixed_keys
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.config import (
    MAX_RELAY_PARENT_OFFSET,
    ImpossibleConfig,
    RuntimeSpec,
    decode_spec,
    integrity_test,
)
from pubsub_emulator.runtime.parachain.block import Inherent, Verdict
from pubsub_emulator.runtime.parachain.descendants import (
    announces_epoch,
    authority_keys,
    count_fault,
    descendant_fault,
)
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block
from pubsub_emulator.runtime.relay import babe as pallet

PARA = ParaId(2000)
SESSION: Final = 6


def network(offset: int, **settings: object) -> Network:
    spec = RuntimeSpec(PARA, {}, relay_parent_offset=offset)
    config = NetworkConfig((ParachainConfig(spec),), RelayConfig(session_length=SESSION))
    return Network(replace(config, **settings))  # type: ignore[arg-type]  # fields of a network


def inherents(net: Network, blocks: int) -> list[Inherent]:
    """The inherents of the next blocks, all of which must be valid."""
    out = []
    for step in net.step(blocks):
        for record in step.records:
            assert record.refusal is None
            out.append(record.candidate.inherent)
    return out


@pytest.mark.parametrize("offset", [1, 2, 5])
def test_blocks_show_the_relay_parent_and_its_descendants(offset: int) -> None:
    net = network(offset)
    shown = inherents(net, 2 * SESSION + offset)
    headers = {kept.header.number: kept.header for kept in net.relay.blocks}
    # The chain's first block has no seal, so the first relay parent is block 1.
    assert [each.relay_parent_number for each in shown] == list(range(1, 2 * SESSION))
    for each in shown:
        first = each.relay_parent_number
        assert each.descendants == tuple(headers[first + at] for at in range(offset + 1))
        assert each.descendants[0].state_root == each.relay_parent_storage_root
        assert Inherent.decode(each.encode()) == each


def test_a_block_proves_the_next_authorities_only_over_an_epoch_change() -> None:
    net = network(2)
    asked = []
    for number in range(1, 2 * SESSION):
        net.step()
        if number < 3:
            continue
        now = net.situation(PARA)
        keys = list(now.walked.statics.values)[len(fixed_keys(PARA)) :]
        changes = [at for at in range(now.relay.number + 1, now.relay.number + 3) if not at % 6]
        wanted = [storage_keys.AUTHORITIES]
        wanted += [storage_keys.NEXT_AUTHORITIES] if changes else []
        assert keys == wanted
        assert all(now.walked.statics.values[key] is not None for key in keys)
        asked.append(len(keys))
    assert set(asked) == {1, 2}


def test_relay_headers_are_sealed_by_the_authorities_of_their_epoch() -> None:
    net = network(1)
    net.step(3 * SESSION)
    sets = []
    for before, kept in zip(net.relay.blocks, net.relay.blocks[1:], strict=False):
        state = Storage(kept.state)
        listed = pallet.AUTHORITIES.get(state)
        index = babe.claimed_authority(kept.header)
        found = babe.sealed_by(kept.header)
        assert index is not None
        assert found is not None
        bare, signature = found
        assert schnorrkel.verify(listed[index][0], bare.hash(), signature)
        assert kept.header.parent_hash == before.header.hash()
        slot = Slot(net.config.relay.genesis_slot + kept.header.number)
        randomness = pallet.RANDOMNESS.get(state)
        assert index == babe.secondary_author(slot, len(listed), randomness)
        announced = babe.announced_epoch(kept.header)
        assert (announced is not None) == (kept.header.number % SESSION == 0)
        if announced is not None:
            assert list(announced.authorities) == pallet.NEXT_AUTHORITIES.get(state)
            assert announced.randomness == pallet.NEXT_RANDOMNESS.get(state)
            sets.append(tuple(listed))
    assert len(set(sets)) == len(sets) == 3


def test_the_state_of_a_sealed_relay_chain_can_be_decoded() -> None:
    found = decoded_key(storage_keys.NEXT_AUTHORITIES, relay=True)
    assert found is not None
    assert found[0].name == "Babe.NextAuthorities"


def test_a_network_without_an_offset_has_no_seals_and_no_authorities() -> None:
    net = network(0)
    assert all(not each.descendants for each in inherents(net, 3))
    assert not net.config.relay.validators
    for kept in net.relay.blocks:
        assert [item.kind for item in kept.header.digest] == [DigestKind.PRE_RUNTIME]
        assert kept.state.top.get(storage_keys.AUTHORITIES) is None


def test_the_same_network_builds_the_same_sealed_blocks() -> None:
    one = network(2)
    other = network(2)
    one.step(8)
    other.step(8)
    assert one.relay.header == other.relay.header


def test_an_author_waits_until_there_are_enough_descendants() -> None:
    net = network(3)
    reasons = [step.idle.get(PARA) for step in net.step(5)]
    assert reasons[-1] is None
    why = "relay block 0 has 0 sealed descendants, and relay_parent_offset is 3"
    assert reasons[:4] == [why] * 4


def test_lag_and_offset_add_up() -> None:
    net = network(2)
    net.parachains[PARA].pace = replace(net.parachains[PARA].pace, lag=3)
    shown = inherents(net, 10)
    assert shown[-1].relay_parent_number == net.number - 1 - 5
    assert len(shown[-1].descendants) == 3


def test_a_small_network_takes_an_offset() -> None:
    net = Network.of([1000], {2000: {}}, relay_parent_offset=1)
    net.step(3)
    assert net.parachain(2000).header.number == 1
    with pytest.raises(BadRequest):
        Network.of([1000], {2000: {}}, relay_parent_offset=-1)


# The runtime


@pytest.mark.parametrize("accounts", [False, True])
def test_a_runtime_with_an_offset_survives_being_written_down(*, accounts: bool) -> None:
    spec = RuntimeSpec(PARA, {}, relay_parent_offset=7, accounts=accounts)
    assert decode_spec(spec.encode()) == spec
    without = replace(spec, relay_parent_offset=0).encode()
    assert len(spec.encode()) - len(without) == (4 if accounts else 5)
    with pytest.raises(ScaleError, match="the relay parent offset is 0"):
        decode_spec(spec.encode()[:-4] + bytes(4))


@pytest.mark.parametrize(
    "offset",
    [
        pytest.param(
            -1,
            id="negative",
        ),
        pytest.param(
            MAX_RELAY_PARENT_OFFSET + 1,
            id="one too many",
        ),
        pytest.param(
            2**32 - 1,
            id="largest u32",
        ),
    ],
)
def test_an_offset_beyond_the_limit_is_refused(offset: int) -> None:
    with pytest.raises(ImpossibleConfig, match="relay_parent_offset"):
        integrity_test(RuntimeSpec(PARA, {}, relay_parent_offset=offset))


def test_a_block_must_have_room_for_the_relay_headers() -> None:
    spec = RuntimeSpec(PARA, {}, max_pov_size=1_300_000, reserve_minimum=True)
    integrity_test(replace(spec, max_stored_keys=8, relay_parent_offset=100, max_trie_depth=5))
    with pytest.raises(ImpossibleConfig, match="relay headers of relay_parent_offset 200"):
        integrity_test(replace(spec, max_stored_keys=8, relay_parent_offset=200))


# The check

KEYS = tuple(schnorrkel.pair(bytes([at]) * 32) for at in range(4))
NOW = tuple((each.public, 1) for each in KEYS[:2])
NEXT = tuple((each.public, 1) for each in KEYS[2:3])
LATER = tuple((each.public, 1) for each in KEYS[3:])
ROOT = Hash(b"\x11" * 32)
STATICS = StaticValues(
    {
        storage_keys.AUTHORITIES: babe.authorities.encode(list(NOW)),
        storage_keys.NEXT_AUTHORITIES: babe.authorities.encode(list(NEXT)),
    }
)


def sealed(header: Header, signer: int) -> Header:
    signature = schnorrkel.sign(KEYS[signer], header.hash())
    return replace(header, digest=(*header.digest, babe.seal(signature)))


def claimed(parent: Hash, number: int, index: int, *logs: DigestItem) -> Header:
    digest = (babe.pre_digest(Slot(number), index), *logs)
    return Header(parent, number, ROOT, Hash(bytes(32)), digest)


def announcing(*announced: tuple[bytes, int]) -> DigestItem:
    return babe.next_epoch_digest(NextEpoch(announced, bytes(32)))


def chain(*blocks: tuple[int, int, tuple[DigestItem, ...]]) -> tuple[Header, ...]:
    """Headers of (claimed index, signing key, further digest items)."""
    out: list[Header] = []
    for number, (index, signer, logs) in enumerate(blocks, start=9):
        parent = out[-1].hash() if out else Hash(bytes(32))
        out.append(sealed(claimed(parent, number, index, *logs), signer))
    return tuple(out)


def test_a_chain_over_two_epochs_holds() -> None:
    headers = chain(
        (1, 1, ()),
        (0, 2, (announcing(*LATER),)),
        (0, 2, ()),
        # The authorities that a header announces seal from the epoch after that.
        (0, 3, (announcing(*NOW),)),
        (0, 3, ()),
    )
    assert descendant_fault(headers, ROOT, STATICS) is None
    assert announces_epoch(headers)
    spec = RuntimeSpec(PARA, {}, relay_parent_offset=4)
    assert count_fault(spec, headers) is None
    assert len(authority_keys(spec, headers)) == 2
    assert len(authority_keys(spec, headers[:1])) == 1
    assert authority_keys(replace(spec, relay_parent_offset=0), headers) == ()


def test_an_epoch_that_the_relay_parent_announces_changes_nothing() -> None:
    headers = chain((0, 0, (announcing(*LATER),)), (1, 1, ()))
    assert not announces_epoch(headers)
    assert descendant_fault(headers, ROOT, STATICS) is None


def _without(key: bytes) -> StaticValues:
    values = dict(STATICS.values)
    values[key] = None
    return StaticValues(values)


@cache
def _refused() -> dict[str, Callable[[], str | None]]:
    good = chain((0, 0, ()), (1, 1, ()), (0, 0, ()))
    over = chain((0, 0, ()), (0, 2, (announcing(*LATER),)))
    unsealed = claimed(good[0].hash(), 10, 1)
    other = replace(sealed(unsealed, 1).digest[-1], engine=b"aura")
    short = replace(sealed(unsealed, 1).digest[-1], data=bytes(63))

    def fault(*headers: Header, statics: StaticValues = STATICS, root: Hash = ROOT) -> str | None:
        return descendant_fault(headers, root, statics)

    def resealed(*digest: DigestItem) -> Header:
        return sealed(replace(unsealed, digest=digest), 1)

    broken = DigestItem(DigestKind.PRE_RUNTIME, b"BABE", b"\2\0\0")
    return {
        "the first relay header has state root": lambda: fault(*good, root=Hash(b"\x22" * 32)),
        "the relay parent's state has no authorities": lambda: fault(
            *good, statics=_without(storage_keys.AUTHORITIES)
        ),
        "relay header 10 begins an epoch of unknown": lambda: fault(
            *over, statics=_without(storage_keys.NEXT_AUTHORITIES)
        ),
        "relay header 11 does not follow": lambda: fault(good[0], good[2]),
        "relay header 9 does not follow": lambda: fault(good[0], good[0]),
        "relay header 10 claims authority 2 of 2": lambda: fault(
            good[0], sealed(claimed(good[0].hash(), 10, 2), 1)
        ),
        "relay header 10 claims no authority": lambda: fault(good[0], resealed()),
        "relay header 10 claims no": lambda: fault(good[0], resealed(broken)),
        "relay header 10 has no seal of authority 1": lambda: fault(good[0], sealed(unsealed, 0)),
        "relay header 10 has no seal": lambda: fault(good[0], unsealed),
        "relay header 10 has no seal of": lambda: fault(
            good[0], replace(unsealed, digest=(*unsealed.digest, other))
        ),
        "relay header 10 has no seal of authority": lambda: fault(
            good[0], replace(unsealed, digest=(*unsealed.digest, short))
        ),
        # An authority of the old epoch cannot seal in the new one.
        "relay header 10 has no seal of authority 0": lambda: fault(
            *chain((0, 0, ()), (0, 0, (announcing(*LATER),)))
        ),
    }


@pytest.mark.parametrize("reason", _refused())
def test_every_fault_of_relay_headers_has_its_reason(reason: str) -> None:
    assert (_refused()[reason]() or "").startswith(reason)


def test_the_number_of_relay_headers_is_that_of_the_offset() -> None:
    spec = RuntimeSpec(PARA, {}, relay_parent_offset=2)
    good = chain((0, 0, ()), (1, 1, ()))
    assert count_fault(spec, good) == "2 relay headers, an offset of 2 wants 3"
    assert count_fault(spec, ()) == "0 relay headers, an offset of 2 wants 3"
    bare = replace(spec, relay_parent_offset=0)
    assert count_fault(bare, good) == "2 relay headers, this chain builds on the newest block"
    assert count_fault(bare, ()) is None


@given(st.binary(max_size=200), st.sampled_from(list(DigestKind)))
def test_any_bytes_in_a_digest_are_read_or_passed_over(data: bytes, kind: DigestKind) -> None:
    own = (babe.pre_digest(Slot(9), 1), babe.seal(bytes(64)))
    header = Header(ROOT, 1, ROOT, ROOT, (DigestItem(kind, b"BABE", data), *own))
    assert babe.claimed_authority(header) is not None
    babe.announced_epoch(header)
    assert babe.sealed_by(header) is not None


def test_claims_of_all_kinds_have_their_authority() -> None:
    for kind, size in ((1, 96), (2, 0), (3, 96)):
        data = bytes((kind,)) + (5).to_bytes(4, "little") + bytes(8 + size)
        item = DigestItem(DigestKind.PRE_RUNTIME, b"BABE", data)
        assert babe.claimed_authority(Header(ROOT, 1, ROOT, ROOT, (item,))) == 5
        cut = replace(item, data=data[:-1])
        assert babe.claimed_authority(Header(ROOT, 1, ROOT, ROOT, (cut,))) is None


def test_a_wrong_number_of_relay_headers_needs_no_relay_state() -> None:
    net = network(1)
    net.step(4)
    now = net.situation(PARA)
    draft = Draft.of(now.honest)
    draft.descendants.clear()
    draft.relay_parent_number = 999
    context = RelayContext(RelayBlockNumber(999), None, now.slot_now)
    _, refusal = judge_block(now.parent, draft.sealed_by(now.seeds), context)
    assert refusal is not None
    found = {each.verdict for each in refusal.evidence}
    assert {Verdict.BAD_DESCENDANTS, Verdict.ROOT_MISMATCH} <= found
