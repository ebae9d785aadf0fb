"""PS-45, PS-62, PS-70: what reading its own state adds to a chain's proof is charged, whatever
happens in a block.

    bytes of the nodes read  <=  charges  +  OWN_STATE_BOUND

Nothing but the shape of one publisher's rows goes beyond the budget.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.plumbing.examples import scaled
from support.runtime.world import (
    ME,
    Chain,
    Entries,
    Governed,
    Relay,
    each_policy,
    entry,
    filled,
    make_spec,
    numbered,
)

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import STALE_ROWS_A_BLOCK
from pubsub_emulator.runtime.pallet_subscriber.own_state import (
    OWN_STATE_ALLOWANCE,
    OWN_STATE_BOUND,
    OwnState,
)
from pubsub_emulator.runtime.parachain import governance
from pubsub_emulator.runtime.parachain.execute import BlockOutcome

BEYOND_THE_BUDGET = 16_384
"""What the shape of one publisher's rows may add after the last look at the budget."""


class Payer(Governed):
    """A chain, each of whose blocks pays for what it reads."""

    most = 0
    """The most that any block read beyond what it was charged."""

    def block(self, publishers: Mapping[int, Entries], *messages: bytes) -> BlockOutcome:
        outcome = super().block(publishers, *messages)
        ledger = outcome.ledger
        charged = sum(share.cache_charges + share.row_charges for share in ledger.publishers)
        beyond = ledger.own_state_bytes - ledger.map_charges - charged
        assert beyond <= OWN_STATE_BOUND
        assert ledger.used <= ledger.budget + BEYOND_THE_BUDGET
        self.most = max(self.most, beyond)
        return outcome

    def until_done(self, publishers: Mapping[int, Entries]) -> None:
        while self.block(publishers).plan.cursor is not None:
            pass

    def resubscribe(
        self, publishers: Mapping[int, Entries], keys: dict[int, Iterable[bytes]], **changes: Any
    ) -> None:
        spec = make_spec(keys, **{"cache": self.chain.spec.cache, **changes})
        self.upgrade(publishers, spec)
        assert self.chain.spec == spec


def contents(count: int, keys: Iterable[bytes]) -> dict[int, Entries]:
    return {1000 + at: filled(keys, b"v%d" % at + b"x" * 40) for at in range(count)}


def deep(key: bytes) -> dict[bytes, Any]:
    """Entries that make the path of `key` deeper than the limit."""
    out = {}
    for depth in range(2, 20):
        other = bytearray(key)
        other[depth // 2] ^= 0x10 if depth % 2 == 0 else 0x01
        out[bytes(other)] = entry(b"d" * 40)
    return out


@each_policy
def test_large_publishers_to_which_everything_happens(policy: str) -> None:
    """Emptied, filled, replaced, delivered again, cleared, disabled, enabled, and kept under
    another policy.
    """
    keys = numbered(1000)
    before = contents(2, keys)
    payer = Payer(make_spec(dict.fromkeys(before, keys), cache=policy))
    payer.until_done({})
    payer.until_done(before)
    for left in (1, 0):
        payer.block({para: filled(keys[:left], b"new%d" % para * 8) for para in before})
    payer.until_done(before)
    for name in ("redeliver", "clear_publisher_cache"):
        payer.call(before, name, *before)
        assert bool(payer.block(before).deliveries) is (name == "redeliver")
        payer.until_done(before)
    outcome = payer.block({para: {**entries, **deep(keys[0])} for para, entries in before.items()})
    assert all(publisher.disabled for publisher in outcome.plan.publishers.values())
    payer.call(before, "enable_publisher", *before)
    payer.until_done(before)
    other = {"nodes": "slots", "slots": "none", "none": "nodes"}[policy]
    payer.resubscribe(before, dict.fromkeys(before, keys), cache=other)
    assert payer.block(before).deliveries == ()
    payer.until_done(before)


@pytest.mark.parametrize(
    ("policy", "count", "size"),
    [
        ("nodes", 420, 4),
        ("none", 100, 8),
        ("slots", 64, 200),
    ],
)
def test_one_changed_key_of_each_of_many_publishers(policy: str, count: int, size: int) -> None:
    """So many paths that charges by the row are too low, under `nodes` and `slots`."""
    keys = numbered(size)
    before = contents(count, keys)
    payer = Payer(make_spec(dict.fromkeys(before, keys), cache=policy))
    payer.until_done(before)
    payer.most = 0
    payer.until_done(
        {para: {**entries, keys[0]: entry(b"new%d" % para * 9)} for para, entries in before.items()}
    )
    assert (payer.most >= OWN_STATE_ALLOWANCE) is (policy != "none")


def test_an_upgrade_that_changes_ten_thousand_keys() -> None:
    keys = numbered(1020)
    before = contents(10, keys)
    payer = Payer(make_spec(dict.fromkeys(before, keys[:1000]), cache="slots"))
    payer.until_done(before)
    payer.resubscribe(before, dict.fromkeys(before, keys[20:]))
    payer.until_done(before)
    payer.resubscribe(before, {1000: keys[:3]})
    payer.until_done(before)


def test_a_thousand_publishers_that_are_disabled() -> None:
    """Each costs a row to be passed over, which adds up to more than is free."""
    (key,) = numbered(1)
    paras = range(1000, 2200)
    payer = Payer(make_spec({para: [key] for para in paras}))
    nonsense = {para: {key: b"no entry, and longer than a hash" + b"x"} for para in paras}
    payer.until_done(nonsense)
    assert len(list(items.DISABLED_PUBLISHERS.items(Storage(payer.chain.state)))) == len(paras)
    idle = payer.block(nonsense).ledger
    assert idle.own_state_bytes > OWN_STATE_ALLOWANCE
    assert idle.map_charges > idle.own_state_bytes - OWN_STATE_BOUND


def test_root_calls_that_a_block_has_no_room_for_are_not_run() -> None:
    """Their reads are charged before the walk; a block of the largest messages still runs what
    fits.
    """
    keys = numbered(550)
    before = contents(12, keys)
    small: dict[str, Any] = {"max_pov_size": 3_070_000, "reserve_minimum": True}
    payer = Payer(make_spec(dict.fromkeys(before, keys), cache="none", **small))
    payer.until_done(before)
    wanted = make_spec(dict.fromkeys(before, keys), cache="slots", spec_version=2, **small)
    spec = payer.chain.spec
    call = governance.transact(governance.set_code(wanted))
    padding = bytes(spec.messages_limit - len(call))
    outcome = payer.block(before, padding, call)
    assert outcome.plan.calls == 0
    assert payer.chain.spec == spec
    assert payer.block(before, call).plan.calls == 1
    assert payer.chain.spec == wanted


def test_the_walk_reads_rows_of_abandoned_caches_which_go_later_ps62() -> None:
    keys = numbered(250)
    before = contents(1, keys)
    payer = Payer(make_spec(dict.fromkeys(before, keys), cache="nodes"))
    payer.until_done(before)
    rows = len(list(items.CACHED_TRIE_NODES.rows(Storage(payer.chain.state))))
    payer.block({})
    assert len(list(items.CACHED_TRIE_NODES.rows(Storage(payer.chain.state)))) == rows
    payer.block({})
    assert (
        len(list(items.CACHED_TRIE_NODES.rows(Storage(payer.chain.state))))
        == rows - STALE_ROWS_A_BLOCK
    )


CHANGES = ("publish", "empty", "nonsense", "deep")
CALLS = ("redeliver", "clear_publisher_cache", "enable_publisher")
ACTIONS = (*CHANGES, "resubscribe", "policy", *CALLS)


@settings(max_examples=scaled(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_block_of_any_history_pays(data: st.DataObject) -> None:
    """All policies, all calls, publishers that come, go, break and change, under one rule."""
    paras = range(1000, 1000 + data.draw(st.sampled_from((2, 9, 50)), "publishers"))
    keys = numbered(data.draw(st.sampled_from((1, 7, 24)), "keys"))
    policy = data.draw(st.sampled_from(("nodes", "none", "slots")), "policy")
    payer = Payer(make_spec(dict.fromkeys(paras, keys), cache=policy))
    now: dict[int, dict[bytes, Any]] = {
        para: dict(filled(keys, b"%d" % para * 20)) for para in paras
    }
    subscribed: dict[int, Any] = dict.fromkeys(paras, keys)
    payer.block(now)
    for turn in range(data.draw(st.integers(1, 6), "turns")):
        some = [para for para in paras if data.draw(st.booleans(), "of it")][:20] or [1000]
        action = data.draw(st.sampled_from(ACTIONS), "action")
        for para in some if action in CHANGES else ():
            if action == "publish":
                now[para] = {
                    **now[para],
                    data.draw(st.sampled_from(keys)): entry(b"%d %d" % (para, turn) * 12),
                }
            elif action == "empty":
                now[para] = {}
            elif action == "nonsense":
                now[para] = {**now[para], keys[0]: b"no entry at all, and longer than a hash"}
            else:
                now[para] = {**now[para], **deep(keys[0])}
        if action == "resubscribe":
            subscribed = {para: keys[: 1 + turn % len(keys)] for para in some}
            payer.resubscribe(now, subscribed)
        elif action == "policy":
            payer.resubscribe(
                now, subscribed, cache=data.draw(st.sampled_from(("nodes", "none", "slots")), "to")
            )
        elif action in CALLS:
            payer.call(now, action, *some)
        else:
            payer.block(now)
    payer.block(now)


@each_policy
def test_the_ledger_counts_what_the_recorder_of_the_whole_block_counts(policy: str) -> None:
    """PS-70: the walk's own count and a new one over all that the block read come to the same."""
    keys = numbered(60)
    chain = Chain(make_spec({1000: keys, 1001: keys}, cache=policy))
    chain.step(Relay(1, contents(2, keys)))
    before = chain.state.fork()
    storage = Storage(before.fork())
    storage.start_recording()
    outcome = chain.step(Relay(2, {1000: filled(keys, b"other" * 9), 1001: filled(keys[3:])}))
    plan = outcome.plan
    assert plan.own_state is not None
    anew = OwnState(before)
    anew.add(plan.own_state.keys())
    assert (anew.total, anew.without_cache) == (plan.own_state.total, plan.own_state.without_cache)
    assert outcome.ledger.own_state_bytes >= anew.total
    assert OwnState(before).of(chain.state).total == 0


def test_the_bound_fits_beside_the_largest_block() -> None:
    """PS-50: budget, static keys and the bound stay within `max_pov_size`, also of the smallest
    runtime there is.
    """
    smallest = next(
        size for size in range(1_200_000, 1_400_000, 100) if size * 85 // 100 > 1_048_576
    )
    for spec in (make_spec(), make_spec(max_pov_size=smallest, reserve_minimum=True)):
        governance.check_runtime(spec)
        most_messages = spec.allowed_pov
        assert (
            most_messages + spec.budget(most_messages) + 65_536 + OWN_STATE_BOUND
            <= spec.max_pov_size
        )
        assert spec.budget(0) + 65_536 + OWN_STATE_BOUND <= spec.max_pov_size
    assert ParaId(ME) == 3000
