"""PS-70: where a block's bytes went; PS-79 and PS-90: what a block is, the same bytes whoever makes
it.
"""

from dataclasses import replace

import pytest
from support.runtime.page_verifier import INFO_ROW, cost
from support.runtime.world import (
    COLLATORS,
    Chain,
    Relay,
    each_policy,
    entry,
    filled,
    make_spec,
    numbered,
)

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import MAX_DIGEST_ITEMS
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import (
    MAX_MESSAGES,
    InboundDownwardMessage,
    InboundMessages,
)
from pubsub_emulator.runtime.pallet_subscriber.config import (
    CachePolicy,
    ImpossibleConfig,
    decode_spec,
)
from pubsub_emulator.runtime.parachain.block import MAX_CANDIDATE_BYTES, MAX_PROOF_NODES, Candidate
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.runtime.parachain.ledger import make_ledger, own_state_bytes

KEYS = numbered(100)


def publishers(number: int) -> dict[int, dict[bytes, object]]:
    return {
        1000: filled(KEYS) | {KEYS[5]: entry(b"%d" % number * 40, 0, number)},
        1001: filled(KEYS[:9]),
    }  # type: ignore[dict-item]


@each_policy
def test_every_byte_of_a_proof_is_accounted_for(policy: str) -> None:
    """PS-70: static, top paths, child nodes, values; and charges add up to what was used."""
    chain = Chain(make_spec({1000: KEYS, 1001: KEYS[:9]}, cache=policy))
    for number in (1, 2, 3):
        candidate = chain.author(relay := Relay(number, publishers(number)))  # type: ignore[arg-type]
        outcome = chain.judge(candidate, relay)
        chain.take(candidate, outcome)
        ledger = outcome.ledger
        shares = ledger.publishers
        in_proof = sum(s.top_path_bytes + s.child_node_bytes + s.value_bytes for s in shares)
        assert (
            ledger.proof_bytes
            == ledger.static_bytes + in_proof
            == sum(map(cost, candidate.inherent.proof))
        )
        assert ledger.proof_nodes == len(candidate.inherent.proof)
        charges = sum(s.cache_charges + s.row_charges for s in shares)
        assert ledger.used == ledger.map_charges + in_proof + charges
        assert ledger.unused == ledger.budget - ledger.used
        assert ledger.messages_bytes == 4
        assert [s.para for s in shares] == [1000, 1001]
        assert [s.unchanged for s in shares] == [False, number > 1]
        assert all(s.complete != s.unchanged for s in shares)


def test_the_cache_shows_what_it_saves_and_what_reading_it_really_costs() -> None:
    """PS-70: for one changed key among a hundred, reading the cached nodes costs more than it
    saves.
    """
    chain = Chain(make_spec({1000: KEYS, 1001: KEYS[:9]}, cache="nodes"))
    first = chain.step(Relay(1, publishers(1))).ledger  # type: ignore[arg-type]
    assert (first.cache_state_bytes, first.publishers[0].cached_bytes) == (0, 0)
    ledger = chain.step(Relay(2, publishers(2))).ledger  # type: ignore[arg-type]
    share = ledger.publishers[0]
    assert share.cached_bytes > 0
    assert share.cache_charges > share.cached_bytes + INFO_ROW
    assert 0 < ledger.cache_state_bytes < ledger.own_state_bytes
    assert ledger.cache_state_bytes > share.cached_bytes
    slots = Chain(make_spec({1000: KEYS, 1001: KEYS[:9]}, cache="slots"))
    slots.step(Relay(1, publishers(1)))  # type: ignore[arg-type]
    cheap = slots.step(Relay(2, publishers(2))).ledger  # type: ignore[arg-type]
    assert cheap.own_state_bytes < ledger.own_state_bytes / 4
    assert cheap.used < ledger.used / 4


def test_the_weight_of_a_block_has_both_dimensions() -> None:
    """PS-70: what a cached node saves in proof_size it costs in ref_time, row by row."""
    weights = {}
    for cache in ("none", "nodes"):
        chain = Chain(make_spec({1000: KEYS[:9]}, cache=cache))
        chain.step(Relay(1, publishers(1)))  # type: ignore[arg-type]
        outcome = chain.step(Relay(2, publishers(2)))  # type: ignore[arg-type]
        ledger, hashed = outcome.ledger, sum(map(len, outcome.plan.taken.values()))
        weights[cache] = ledger.weight
        assert ledger.weight.proof_size == ledger.proof_bytes + ledger.own_state_bytes
        assert ledger.ref_time % 1_000_000 == 2_000 * hashed % 1_000_000
    assert weights["nodes"].ref_time > weights["none"].ref_time + 2 * 25_000_000


def test_own_state_of_a_block_is_counted_from_its_walk_or_anew() -> None:
    """PS-70: a refused block has no outcome, so its ledger is counted from its walk alone."""
    chain = Chain(make_spec({1000: KEYS, 1001: KEYS[:9]}, cache="nodes"))
    chain.step(Relay(1, publishers(1)))  # type: ignore[arg-type]
    relay = Relay(2, publishers(2))  # type: ignore[arg-type]
    outcome = chain.judge(chain.author(relay), relay)
    walk = outcome.plan.own_state
    assert walk is not None
    keys = tuple(walk.keys())
    walked = own_state_bytes(chain.state, (), walk)
    assert own_state_bytes(chain.state, (), None) == (0, 0)
    assert own_state_bytes(chain.state, keys) == walked
    assert own_state_bytes(chain.state, (*keys, CODE), walk) == walked
    everything = dict(chain.state.top_entries())
    more = own_state_bytes(chain.state, everything, walk)
    assert more == own_state_bytes(chain.state, everything)
    assert more[0] > walked[0]
    assert own_state_bytes(chain.state, (), walk) == walked
    ledger = make_ledger(outcome.plan, outcome.ledger.messages_bytes, walked)
    assert ledger == replace(
        outcome.ledger, ref_time=0, own_state_bytes=walked[0], cache_state_bytes=walked[1]
    )


def test_a_candidate_reads_back_as_it_was_written_and_nothing_else_reads_ps79() -> None:
    chain = Chain(make_spec({1000: KEYS[:2]}))
    candidate = chain.author(Relay(1, publishers(1)))  # type: ignore[arg-type]
    data = candidate.encode()
    assert Candidate.decode(data) == candidate
    assert candidate.hash() == blake2_256(candidate.header.encode())
    for at in range(0, len(data), 7):
        with pytest.raises(ScaleError):
            Candidate.decode(data[:at])
    with pytest.raises(ScaleError):
        Candidate.decode(data + b"\x00")


def test_a_candidate_is_bounded_before_it_is_decoded() -> None:
    """PS-79: in bytes, in nodes, in messages and in digest items."""
    chain = Chain(make_spec({1000: KEYS[:2]}))
    candidate = chain.author(Relay(1, publishers(1)))  # type: ignore[arg-type]
    nodes = replace(
        candidate, inherent=replace(candidate.inherent, proof=(b"",) * (MAX_PROOF_NODES + 1))
    )
    messages = (InboundDownwardMessage(RelayBlockNumber(0), b""),) * (MAX_MESSAGES + 1)
    many = replace(
        candidate, inherent=replace(candidate.inherent, messages=InboundMessages(messages))
    )
    digest = replace(candidate.header, digest=candidate.header.digest * MAX_DIGEST_ITEMS)
    for data, reason in (
        (candidate.encode() + bytes(MAX_CANDIDATE_BYTES), "a candidate has at most 16777216"),
        (nodes.encode(), f"a proof of {MAX_PROOF_NODES + 1} nodes"),
        (many.encode(), f"{MAX_MESSAGES + 1} messages"),
        (replace(candidate, header=digest).encode(), "a header has at most 256"),
    ):
        with pytest.raises(ScaleError, match=reason):
            Candidate.decode(data)


def test_a_runtime_is_its_bytes() -> None:
    """PS-33: a state alone says how blocks on top of it are executed."""
    spec = make_spec(
        {1000: KEYS[:3], 7: KEYS[:1]},
        spec_version=9,
        cache="none",
        meter_cache_reads=False,
        max_trie_depth=None,
        max_stored_keys=11,
        handler="store",
    )
    assert decode_spec(spec.encode()) == spec
    for policy in CachePolicy:
        assert decode_spec(make_spec({}, cache=policy.value).encode()).cache is policy
    for at in range(len(spec.encode())):
        with pytest.raises(ScaleError):
            decode_spec(spec.encode()[:at])


def test_genesis_needs_collators_and_is_a_state_that_executes_ps50_ps80() -> None:
    with pytest.raises(ImpossibleConfig):
        genesis(make_spec(), ())
    head = genesis(make_spec({1000: KEYS}), COLLATORS)
    assert head.header.number == 0
    assert head.header.state_root == head.state.root()
    assert Chain(make_spec({1000: KEYS})).spec == make_spec({1000: KEYS})
    assert ParaId(1000) in make_spec({1000: KEYS}).subscriptions
