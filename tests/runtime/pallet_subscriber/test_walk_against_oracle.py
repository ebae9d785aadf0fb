"""`plan` and `apply` against the slow model, over many blocks of whatever may happen (PS-40 to PS-69)."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.oracle import Model
from support.world import ME, PLENTY, Relay, Subscriber, each_policy, entry, make_spec

from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache.slots import layout_of

PARAS = (1000, 1001, 2000, 2001)

POOL = sorted(
    [bytes([n << 4 | (n * 7 % 16)]) + bytes([n]) * 31 for n in range(16)]  # apart at the first nibble
    + [b"\x33" * 3 + bytes([n << 4]) + b"\x55" * 28 for n in range(8)]  # a bushel below one prefix
    + [b"\x77" * 31 + bytes([n]) for n in range(4)]  # so near each other that their leaves stand inline
    + [b"\x78" * 20 + bytes([n << 6]) + b"\x00" * 11 for n in range(3)]
)
VALUES = (b"", b"s" * 20, b"v" * 23, b"w" * 24, b"x" * 60, b"y" * 200)
BAD_ENTRIES = (b"\x08ab", b"\x00" * 10, b"\x04a" + b"\x00" * 9)


def pack_slots(model: Model, para: int, keys: list[bytes]) -> dict[bytes, bytes]:
    """The model's slots as rows of storage."""
    out = {}
    nibbles_of = dict(layout_of(tuple(keys)).rows)  # type: ignore[arg-type]
    for prefix, row in model.slots.get(para, {}).items():
        suffix = bytes([len(prefix)]) + bytes.fromhex(prefix + "0" * (len(prefix) % 2))
        nibbles = sorted({key.hex()[len(prefix)] for key in keys if key.hex().startswith(prefix)})
        assert nibbles_of[suffix] == len(nibbles)
        out[suffix] = b"".join(row.get(nibble, bytes(32)) for nibble in nibbles)
    return out


@dataclass
class Bench:
    """The real pallet and the model side by side."""

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
        spec = make_spec(
            self.subs,
            cache=self.policy,
            max_cache_bytes=self.max_cache_bytes,
            max_value_length=self.max_value_length,
            max_trie_depth=self.max_depth,
            max_stored_keys=2,
        )
        self.real = Subscriber(spec)
        self.model = Model(
            self.policy,
            {para: sorted(set(keys)) for para, keys in self.subs.items() if keys},
            spec.max_item_cost,
            self.max_depth,
            self.max_cache_bytes,
        )

    # What may happen

    def publish(self, para: int, key: bytes, value: bytes, ttl: int) -> None:
        self.published.setdefault(para, {})[key] = entry(value, ttl, self.now % 3)

    def subscribe(self, subs: dict[int, list[bytes]]) -> None:
        self.real.upgrade(subscriptions=subs)
        self.model.upgrade(self.model.policy, {para: sorted(set(keys)) for para, keys in subs.items() if keys})

    def change_policy(self, policy: str) -> None:
        self.real.upgrade(cache=policy)
        self.model.upgrade(policy, self.model.subs)
        self.model.max_item_cost = self.real.spec.max_item_cost

    def call(self, name: str, para: int) -> None:
        ok = self.real.call(name, para).ok
        if name == "clear_publisher_cache":
            assert ok == (para in self.model.roots or para in self.model.cache or para in self.model.slots)
            self.model.forget(para)
        elif name == "redeliver":
            assert ok
            self.model.redeliver(para)
        else:
            assert ok == (self.model.disabled.pop(para, None) is not None)

    def block(self, budget: int, *, same_relay_parent: bool = False) -> None:
        if not same_relay_parent:
            self.now += 1
        relay = Relay(self.now, self.published, raw_roots=self.raw_roots, filler=0)
        got = self.real.plan(relay, budget)
        again = self.real.plan(relay, budget, got.taken)
        assert (again.taken, again.cursor, again.missing, again.used) == (got.taken, got.cursor, None, got.used)

        want = self.model.block(relay.nodes, relay.root, list(fixed_keys(ME)), budget)  # type: ignore[arg-type]
        assert {*got.taken} == want.taken
        assert got.used == want.used
        assert got.used <= max(budget, got.map_charges)
        assert got.cursor == want.cursor
        step = self.real.block(relay, budget)
        assert [(d.publisher, d.key, d.kind, d.value) for d in step.deliveries] == want.deliveries
        self.compare()

    def compare(self) -> None:
        real, model = self.real, self.model
        assert real.roots == model.roots
        assert real.cursor == model.cursor
        assert real.disabled == model.disabled
        assert {item: (r.entry_hash, r.ttl, r.when_inserted) for item, r in real.last().items()} == model.last
        assert set(items.SUBSCRIPTION_HASH.get(real.storage)) == set(model.known)
        for para in PARAS:
            cached = real.cached(para)
            assert cached == model.cache.get(para, {})
            info = items.CACHE_INFO.get(real.storage, ParaId(para))
            assert info.nodes == len(cached)
            assert real.slots(para) == pack_slots(model, para, model.subs.get(para, []))


paras = st.sampled_from(PARAS)
pool_keys = st.sampled_from(POOL)
key_sets = st.one_of(
    st.just(POOL), st.just(POOL[:12]), st.lists(pool_keys, max_size=6), st.lists(pool_keys, min_size=7, max_size=24)
)
subscriptions = st.dictionaries(paras, key_sets, max_size=4)
budgets = st.one_of(st.just(PLENTY), st.integers(0, 3000), st.integers(1000, 9000))
contents = st.dictionaries(pool_keys, st.tuples(st.sampled_from(VALUES), st.sampled_from((0, 5))), max_size=31)
changes = st.one_of(
    st.tuples(st.just("publish"), paras, pool_keys, st.sampled_from(VALUES), st.sampled_from((0, 1, 9))),
    st.tuples(st.just("publish"), paras, pool_keys, st.sampled_from(VALUES), st.sampled_from((0, 1, 9))),
    st.tuples(st.just("fill"), paras, contents),
    st.tuples(st.just("copy"), paras, paras),
    st.tuples(st.just("remove"), paras, pool_keys),
    st.tuples(st.just("vanish"), paras),
    st.tuples(st.just("save")),
    st.tuples(st.just("back"), st.integers(0, 5)),
    st.tuples(st.just("subscribe"), subscriptions),
    st.tuples(st.just("policy"), st.sampled_from(("nodes", "none", "slots"))),
    st.tuples(st.just("call"), st.sampled_from(("clear_publisher_cache", "redeliver", "enable_publisher")), paras),
    st.tuples(st.just("spoil"), paras, pool_keys, st.sampled_from(BAD_ENTRIES)),
    st.tuples(st.just("raw root"), paras, st.sampled_from((b"", b"short", b"r" * 33))),
)
blocks = st.tuples(st.lists(changes, max_size=4), budgets, st.booleans())


def happen(bench: Bench, change: tuple[Any, ...]) -> None:
    match change:
        case ("publish", para, key, value, ttl):
            bench.publish(para, key, value, ttl)
        case ("fill", para, entries):
            bench.published[para] = {key: entry(value, ttl, 1) for key, (value, ttl) in entries.items()}
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
            bench.subscribe(subs)
        case ("policy", policy):
            bench.change_policy(policy)
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
@settings(report_multiple_bugs=False, phases=[Phase.explicit, Phase.generate, Phase.shrink])
@given(story=stories)
def test_plan_and_apply_do_what_the_rules_say_item_by_item(policy: str, story: dict[str, Any]) -> None:
    """PS-40 to PS-69, PS-33: taken nodes, bytes used, cursor, deliveries and all state, block after block."""
    bench = Bench(policy, story["subs"], story["max_cache_bytes"], story["max_value_length"], story["max_depth"])
    for para, entries in story["start"].items():
        happen(bench, ("fill", para, entries))
    for happenings, budget, same_relay_parent in story["blocks"]:
        for change in () if same_relay_parent else happenings:
            happen(bench, change)
        bench.block(budget, same_relay_parent=same_relay_parent)


def test_slots_of_nested_rows_follow_every_single_change() -> None:
    """PS-69: rows within rows, one key changed, gone or new in each block, and stops at every point of such a walk."""
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
                want = deepcopy(bench.model).block(relay.nodes, relay.root, list(fixed_keys(ME)), budget)  # type: ignore[arg-type]
                got = bench.real.plan(relay, budget)
                assert ({*got.taken}, got.used, got.cursor) == (want.taken, want.used, want.cursor)
        bench.block(PLENTY if at % 5 else 3000)
