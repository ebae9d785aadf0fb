"""`plan` and `apply` beside the verifier of docs/verifier.md, over blocks of whatever may happen
(PS-40 to PS-69).
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.runtime.page_verifier import SecondOpinion
from support.runtime.world import PLENTY, Relay, Subscriber, each_policy, entry, make_spec

from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber import storage as items

PARAS = (1000, 1001, 2000, 2001)

POOL = sorted(
    [
        bytes([n << 4 | (n * 7 % 16)]) + bytes([n]) * 31 for n in range(16)
    ]  # apart at the first nibble
    + [b"\x33" * 3 + bytes([n << 4]) + b"\x55" * 28 for n in range(8)]  # a bushel below one prefix
    + [
        b"\x77" * 31 + bytes([n]) for n in range(4)
    ]  # so near each other that their leaves stand inline
    + [b"\x78" * 20 + bytes([n << 6]) + b"\x00" * 11 for n in range(3)]
)
VALUES = (b"", b"s" * 20, b"v" * 23, b"w" * 24, b"x" * 60, b"y" * 200)
BAD_ENTRIES = (b"\x08ab", b"\x00" * 10, b"\x04a" + b"\x00" * 9)


@dataclass
class Bench:
    """The real pallet, whose every step the verifier takes too."""

    policy: str
    subs: dict[int, list[bytes]]
    max_cache_bytes: int = 4 << 20
    max_value_length: int = 256
    max_depth: int | None = 16
    published: dict[int, dict[bytes, PublishedEntry | bytes]] = field(default_factory=dict)
    saved: list[dict[int, dict[bytes, PublishedEntry | bytes]]] = field(default_factory=list)
    raw_roots: dict[int, bytes] = field(default_factory=dict)
    now: int = 1

    def __post_init__(self) -> None:
        self.real = Subscriber(
            make_spec(
                self.subs,
                cache=self.policy,
                max_cache_bytes=self.max_cache_bytes,
                max_value_length=self.max_value_length,
                max_trie_depth=self.max_depth,
                max_stored_keys=2,
            )
        )

    # What may happen

    def publish(self, para: int, key: bytes, value: bytes, ttl: int) -> None:
        self.published.setdefault(para, {})[key] = entry(value, ttl, self.now % 3)

    def upgrade(self, **changes: Any) -> None:
        other = SecondOpinion(self.real)
        self.real.upgrade(**changes)
        other.upgrade(self.real.spec)
        self.compare(other)

    def call(self, name: str, para: int) -> None:
        other = SecondOpinion(self.real)
        assert self.real.call(name, para).ok == other.call(name, para)
        self.compare(other)

    def block(self, budget: int, *, same_relay_parent: bool = False) -> None:
        if not same_relay_parent:
            self.now += 1
        relay = Relay(self.now, self.published, raw_roots=self.raw_roots, filler=0)
        got = self.real.plan(relay, budget)
        again = self.real.plan(relay, budget, got.taken)
        assert (again.taken, again.cursor, again.missing, again.used) == (
            got.taken,
            got.cursor,
            None,
            got.used,
        )

        other = SecondOpinion(self.real)
        want = other.walk(relay, budget)
        assert got.taken == want.taken
        assert got.used == want.used
        assert got.used <= max(budget, got.map_charges)
        assert got.cursor == want.cursor
        step = self.real.block(relay, budget)
        assert [(d.publisher, d.key, d.kind, d.value) for d in step.deliveries] == other.block(
            relay, want
        )
        self.compare(other)

    def compare(self, other: SecondOpinion) -> None:
        """All state is as the page has it, and the counts of the cache are those of its rows."""
        assert dict(self.real.storage.iter_prefix(b"")) == other.entries
        for para in PARAS:
            assert items.CACHE_INFO.get(self.real.storage, ParaId(para)).nodes == len(
                self.real.cached(para)
            )


paras = st.sampled_from(PARAS)
pool_keys = st.sampled_from(POOL)
key_sets = st.one_of(
    st.just(POOL),
    st.just(POOL[:12]),
    st.lists(pool_keys, max_size=6),
    st.lists(pool_keys, min_size=7, max_size=24),
)
subscriptions = st.dictionaries(paras, key_sets, max_size=4)
budgets = st.one_of(st.just(PLENTY), st.integers(0, 3000), st.integers(1000, 9000))
contents = st.dictionaries(
    pool_keys, st.tuples(st.sampled_from(VALUES), st.sampled_from((0, 5))), max_size=31
)
changes = st.one_of(
    st.tuples(
        st.just("publish"), paras, pool_keys, st.sampled_from(VALUES), st.sampled_from((0, 1, 9))
    ),
    st.tuples(
        st.just("publish"), paras, pool_keys, st.sampled_from(VALUES), st.sampled_from((0, 1, 9))
    ),
    st.tuples(st.just("fill"), paras, contents),
    st.tuples(st.just("copy"), paras, paras),
    st.tuples(st.just("remove"), paras, pool_keys),
    st.tuples(st.just("vanish"), paras),
    st.tuples(st.just("save")),
    st.tuples(st.just("back"), st.integers(0, 5)),
    st.tuples(st.just("subscribe"), subscriptions),
    st.tuples(st.just("policy"), st.sampled_from(("nodes", "none", "slots"))),
    st.tuples(
        st.just("call"),
        st.sampled_from(("clear_publisher_cache", "redeliver", "enable_publisher")),
        paras,
    ),
    st.tuples(st.just("spoil"), paras, pool_keys, st.sampled_from(BAD_ENTRIES)),
    st.tuples(st.just("raw root"), paras, st.sampled_from((b"", b"short", b"r" * 33))),
)
blocks = st.tuples(st.lists(changes, max_size=4), budgets, st.booleans())


def happen(bench: Bench, change: tuple[Any, ...]) -> None:
    match change:
        case ("publish", para, key, value, ttl):
            bench.publish(para, key, value, ttl)
        case ("fill", para, entries):
            bench.published[para] = {
                key: entry(value, ttl, 1) for key, (value, ttl) in entries.items()
            }
        case ("copy", para, other):
            bench.published[para] = dict(bench.published.get(other, {}))
        case ("remove", para, key):
            bench.published.get(para, {}).pop(key, None)
        case ("vanish", para):
            bench.published.pop(para, None)
            bench.raw_roots.pop(para, None)
        case ("save",):
            bench.saved.append({para: dict(entries) for para, entries in bench.published.items()})
        case ("back", at) if bench.saved:
            saved = bench.saved[at % len(bench.saved)]
            bench.published = {para: dict(entries) for para, entries in saved.items()}
        case ("subscribe", subs):
            bench.upgrade(subscriptions=subs)
        case ("policy", policy):
            bench.upgrade(cache=policy)
        case ("call", name, para):
            bench.call(name, para)
        case ("spoil", para, key, data):
            bench.published.setdefault(para, {})[key] = data
        case ("raw root", para, root):
            bench.raw_roots[para] = root


stories = st.fixed_dictionaries(
    {
        "subs": subscriptions,
        "start": st.dictionaries(paras, contents, max_size=4),
        "max_cache_bytes": st.sampled_from((4 << 20, 1500, 400)),
        "max_value_length": st.sampled_from((256, 2048)),
        "max_depth": st.sampled_from((16, 4, None)),
        "blocks": st.lists(blocks, min_size=1, max_size=12),
    }
)


@each_policy
@settings(
    report_multiple_bugs=False, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
)
@given(story=stories)
def test_plan_and_apply_do_what_the_rules_say_item_by_item(
    policy: str, story: dict[str, Any]
) -> None:
    """PS-40 to PS-69, PS-33: taken nodes, bytes used, cursor, deliveries and all state, block after
    block.
    """
    bench = Bench(
        policy,
        story["subs"],
        story["max_cache_bytes"],
        story["max_value_length"],
        story["max_depth"],
    )
    for para, entries in story["start"].items():
        happen(bench, ("fill", para, entries))
    for happenings, budget, same_relay_parent in story["blocks"]:
        for change in () if same_relay_parent else happenings:
            happen(bench, change)
        bench.block(budget, same_relay_parent=same_relay_parent)


def test_slots_of_nested_rows_follow_every_single_change() -> None:
    """PS-69: rows within rows, one key changed, gone or new in each block, and stops at every point
    of such a walk.
    """
    bench = Bench("slots", {1000: POOL, 1001: POOL[:20]})
    happen(bench, ("fill", 1000, dict.fromkeys(POOL, (b"x" * 60, 0))))
    happen(bench, ("fill", 1001, dict.fromkeys(POOL[::2], (b"y" * 60, 0))))
    bench.block(PLENTY)
    for at, key in enumerate(POOL):
        if at % 3 == 0:
            bench.publish(1000, key, b"z" * 60 + bytes([at]), 0)
        elif at % 3 == 1:
            happen(bench, ("remove", 1000, key))
        if at % 4 == 0:
            bench.publish(1001, POOL[at // 2], b"w" * 60 + bytes([at]), 0)
        relay = Relay(bench.now + 1, bench.published, filler=0)
        if at % 6 == 0:
            for budget in range(1000, 6000, 83):
                want = SecondOpinion(bench.real).walk(relay, budget)
                got = bench.real.plan(relay, budget)
                assert (got.taken, got.used, got.cursor) == (want.taken, want.used, want.cursor)
        bench.block(PLENTY if at % 5 else 3000)
