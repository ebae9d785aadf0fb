"""PS-30, PS-31 and PS-63 to PS-68: what is delivered, to whom, and who is no longer listened to."""

from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import pytest
from support.runtime.page_verifier import cost
from support.runtime.world import (
    Recorder,
    Relay,
    Subscriber,
    each_policy,
    entry,
    filled,
    make_spec,
    name,
    numbered,
)

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import TimedOut, ValidFor, key_from_data, publisher_root_key
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, ModuleError
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.apply import current_ttl_state
from pubsub_emulator.runtime.pallet_subscriber.config import (
    ImpossibleConfig,
    RuntimeSpec,
    integrity_test,
    merge_subscriptions,
)
from pubsub_emulator.runtime.pallet_subscriber.events import (
    DataProcessed,
    DataRemoved,
    Error,
    HandlerFailed,
    PublisherDisabled,
)
from pubsub_emulator.runtime.pallet_subscriber.handler import (
    HANDLERS,
    VALUES,
    HandlerContext,
    HandlerError,
    HandlerTaken,
    Observe,
    register_handler,
)
from pubsub_emulator.runtime.pallet_subscriber.meter import DisableReason
from pubsub_emulator.runtime.pallet_subscriber.storage import LastDelivered
from pubsub_emulator.runtime.parachain.governance import check_runtime
from pubsub_emulator.trie.lazy import StateUnavailable

P = ParaId(1000)
KEY = numbered(1)[0]


def one(policy: str = "slots", keys: list[PubsubKey] | None = None, **changes: Any) -> Subscriber:
    return Subscriber(make_spec({1000: keys or [KEY]}, cache=policy, **changes))


def test_what_handlers_declare_is_merged_sorted_and_freed_of_empty_lists() -> None:
    """PS-30, B9, B10, B11, B12, B13, B14, D subscriptions_deduplicated, D
    subscriptions_combined_by_publisher.
    """
    a, b, c = sorted(map(name, "abc"))
    declared = [
        (ParaId(2000), [c, a]),
        (ParaId(1000), [b]),
        (ParaId(2000), [b, a]),
        (ParaId(5), []),
    ]
    merged = merge_subscriptions(declared)
    assert list(merged.items()) == [(1000, (b,)), (2000, (a, b, c))]
    assert merge_subscriptions([]) == {}


@each_policy
def test_a_key_set_with_another_hash_ignores_root_and_cache(policy: str) -> None:
    """PS-63: whatever way the state came to be, what was made for other keys vouches for none of
    these, met or not.
    """
    keys = numbered(20)
    spec = make_spec({1000: keys, 1001: keys}, cache=policy)
    relay = Relay(1, {1000: filled(keys), 1001: filled(keys)})
    subscriber, fresh = Subscriber(spec), Subscriber(spec).block(relay).plan
    subscriber.block(relay)
    hashes = items.SUBSCRIPTION_HASH.get(subscriber.storage)
    items.SUBSCRIPTION_HASH.put(subscriber.storage, {**hashes, P: blake2_256(b"other keys")})
    share = subscriber.plan(relay).publishers[P]
    assert not share.unchanged
    assert share.cache.charges == share.cache.saved == 0
    if (
        policy == "slots"
    ):  # the leaves are recognised by what was delivered, which is not the cache's
        assert 0 < share.child_node_bytes < fresh.publishers[P].child_node_bytes
    else:
        assert share.child_node_bytes == fresh.publishers[P].child_node_bytes
    items.PROCESSING_CURSOR.put(subscriber.storage, (ParaId(1001), keys[0]))
    step = subscriber.block(relay, budget=0)
    assert P not in step.plan.publishers
    assert set(subscriber.roots) == {1001}
    assert subscriber.cached(1000) == subscriber.slots(1000) == {}


def test_packed_rows_of_another_key_set_read_as_nothing_delivered() -> None:
    """PS-64, PS-69: positions in a row mean nothing under other keys; a second delivery is better
    than a hidden one.
    """
    keys = numbered(20)
    subscriber = one("slots", keys)
    subscriber.block(Relay(1, {1000: filled(keys)}))
    spec = replace(subscriber.spec, subscriptions={P: tuple(keys[1:])})
    assert [delivered.get(subscriber.storage, spec, P, key) for key in keys[1:]] == [None] * 19
    delivered.put(
        subscriber.storage,
        spec,
        P,
        keys[1],
        LastDelivered(blake2_256(b"e"), 0, RelayBlockNumber(1)),
    )
    assert delivered.get(subscriber.storage, spec, P, keys[1]) == LastDelivered(
        blake2_256(b"e"), 0, RelayBlockNumber(1)
    )
    assert delivered.get(subscriber.storage, spec, P, keys[2]) is None


@each_policy
def test_each_change_of_an_entry_calls_back_once_and_absence_never(policy: str) -> None:
    """PS-64, B1, B3, B17, B18, D publisher_rapid_changes: judged by the entry, whatever came in
    between.
    """
    a, b, c = numbered(3)
    subscriber = one(policy, [a, b, c])
    story = [
        ({a: entry(b"1")}, [(a, b"1")]),
        ({a: entry(b"1"), b: entry(b"2" * 40)}, [(b, b"2" * 40)]),
        ({b: entry(b"2" * 40), a: entry(b"1")}, []),
        (
            {a: entry(b"1", 0, 9), b: entry(b"2" * 40)},
            [(a, b"1")],
        ),  # the same value, published again (PS-9)
        ({b: entry(b"3")}, [(a, None), (b, b"3")]),
        ({b: entry(b"3")}, []),
        ({}, [(b, None)]),
        ({}, []),
        ({a: entry(b"1", 0, 9)}, [(a, b"1")]),
    ]
    for number, (contents, wanted) in enumerate(story, 1):
        subscriber.calls.calls.clear()
        subscriber.block(Relay(number, {1000: contents}))
        assert [(key, value) for _, key, value, _ in subscriber.calls.calls] == sorted(wanted)


@each_policy
def test_events_tell_of_each_delivery_with_the_values_length_ps64_b8(policy: str) -> None:
    a, b = numbered(2)
    subscriber = one(policy, [a, b])
    assert subscriber.block(Relay(1, {1000: {a: entry(b""), b: entry(b"x" * 300)}})).events == [
        DataProcessed(P, a, 0),
        DataProcessed(P, b, 300),
    ]
    assert subscriber.block(Relay(2)).events == [DataRemoved(P, a), DataRemoved(P, b)]


@each_policy
def test_time_alone_fires_nothing_and_freshness_can_be_asked_at_any_time(policy: str) -> None:
    """PS-65: an entry delivered as valid is timed out later though nothing was read again."""
    subscriber = one(policy)
    assert current_ttl_state(subscriber.storage, subscriber.spec, P, KEY) is None
    publishers = {1000: {KEY: entry(b"v" * 30, 3, 10)}}
    for now, state in (
        (10, ValidFor(3)),
        (11, ValidFor(2)),
        (12, ValidFor(1)),
        (13, TimedOut()),
        (99, TimedOut()),
    ):
        step = subscriber.block(Relay(now, publishers))
        assert len(step.deliveries) == (now == 10)
        assert current_ttl_state(subscriber.storage, subscriber.spec, P, KEY) == state
    subscriber.block(Relay(100))
    assert current_ttl_state(subscriber.storage, subscriber.spec, P, KEY) is None


@each_policy
def test_a_handler_is_told_an_entrys_freshness_as_of_this_relay_parent(
    policy: str,
) -> None:
    """PS-65: "at any time" includes the callback itself."""
    subscriber = one(policy)
    heard = []

    def ask(context: HandlerContext, publisher: ParaId, key: PubsubKey) -> None:
        heard.append(current_ttl_state(context.storage, subscriber.spec, publisher, key))

    asks = Recorder(ask)
    for number in (10, 20):
        subscriber.block(
            Relay(number, {1000: {KEY: entry(b"%d" % number, 5, number - 1)}}), handler=asks
        )
    assert heard == [told for _, _, _, told in asks.calls] == [ValidFor(4)] * 2


def writes(
    fault: BaseException | None = None,
    only: bytes | None = None,
    weight: Weight | None = None,
    *,
    hide: bool = False,
) -> Recorder:
    """Writes, then misbehaves with some keys."""

    def act(context: HandlerContext, _publisher: ParaId, key: PubsubKey) -> None:
        context.storage.put(b"written " + key, b"x")
        deposit(context.storage, DataRemoved(ParaId(9), key))
        if weight is not None:
            with suppress(HandlerError) if hide else nullcontext():
                context.consume(weight)
        if fault is not None and only in {None, key}:
            raise fault

    return Recorder(act)


@each_policy
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            ValueError("no"),
            id="ValueError",
        ),
        pytest.param(
            HandlerError("no"),
            id="HandlerError",
        ),
        pytest.param(
            RecursionError(),
            id="RecursionError",
        ),
        pytest.param(
            MemoryError(),
            id="MemoryError",
        ),
        pytest.param(
            KeyError(1),
            id="KeyError",
        ),
        pytest.param(
            DefensiveFailure("a handler can raise this as well as we"),
            id="DefensiveFailure",
        ),
        pytest.param(
            SystemExit(1),
            id="SystemExit",
        ),
        pytest.param(
            GeneratorExit(),
            id="GeneratorExit",
        ),
        pytest.param(
            BaseException("anything"),
            id="BaseException",
        ),
    ],
)
def test_a_raising_handler_loses_its_writes_and_its_entry_counts_as_delivered(
    policy: str, fault: BaseException
) -> None:
    """PS-66: the others of the same block keep theirs, events included."""
    a, b, c = numbered(3)
    subscriber = one(policy, [a, b, c])
    handler = writes(fault, only=b)
    publishers = {1000: filled([a, b, c])}
    step = subscriber.block(Relay(1, publishers), handler=handler)
    assert [d.failed for d in step.deliveries] == [False, True, False]
    assert [e for e in step.events if isinstance(e, HandlerFailed)] == [HandlerFailed(P, b)]
    assert DataRemoved(ParaId(9), b) not in step.events
    assert DataRemoved(ParaId(9), a) in step.events
    assert not any(isinstance(e, DataProcessed) and e.key == b for e in step.events)
    assert [key for key, _ in subscriber.storage.iter_prefix(b"written ")] == [
        b"written " + a,
        b"written " + c,
    ]
    assert set(subscriber.last()) == {(1000, a), (1000, b), (1000, c)}
    subscriber.calls.calls.clear()
    assert subscriber.block(Relay(2, publishers)).deliveries == ()
    gone = subscriber.block(Relay(3), handler=handler)
    assert [d.failed for d in gone.deliveries] == [False, True, False]
    assert subscriber.last() == {}


@pytest.mark.parametrize(
    ("ref_time", "proof_size", "fails"),
    [
        (10, 5, False),
        (11, 5, True),
        (10, 6, True),
    ],
)
@pytest.mark.parametrize("hide", [False, True])
def test_a_handler_that_exceeds_its_weight_fails_even_if_it_hides_it(
    ref_time: int, proof_size: int, fails: bool, hide: bool
) -> None:
    """PS-66, defect 21: each callback has a limit of its own, in both dimensions."""
    keys = numbered(2)
    subscriber = one("slots", keys, handler_weight=Weight(10, 5))
    handler = writes(weight=Weight(ref_time, proof_size), hide=hide)
    step = subscriber.block(Relay(1, {1000: filled(keys)}), handler=handler)
    assert [d.failed for d in step.deliveries] == [fails, fails]
    assert bool(list(subscriber.storage.iter_prefix(b"written "))) is not fails


def test_a_handler_without_the_methods_fails_like_any_other() -> None:
    """PS-66: the method is looked up within the call."""
    nothing: Any = object()
    step = one().block(Relay(1, {1000: {KEY: entry()}}), handler=nothing)
    assert [d.failed for d in step.deliveries] == [True]
    assert [e for e in step.events if isinstance(e, HandlerFailed)] == [HandlerFailed(P, KEY)]


def test_a_handler_overwriting_a_child_root_fails_in_a_valid_block() -> None:
    """PS-66: no handler can make a block that its own chain cannot build."""
    forges = Recorder(
        lambda context, para, _key: context.storage.put(publisher_root_key(para), bytes(32))
    )
    step = one().block(Relay(1, {1000: {KEY: entry()}}), handler=forges)
    assert [d.failed for d in step.deliveries] == [True]
    assert [e for e in step.events if isinstance(e, HandlerFailed)] == [HandlerFailed(P, KEY)]


def test_a_signal_from_outside_is_not_a_failure_of_its_handler() -> None:
    """PS-66: whoever interrupts the program means the program."""
    with pytest.raises(KeyboardInterrupt):
        one().block(Relay(1, {1000: {KEY: entry()}}), handler=writes(KeyboardInterrupt()))


def test_an_unreadable_state_is_not_a_failure_of_the_handler() -> None:
    """A fork whose node does not answer: the block is not built, instead of built with
    `HandlerFailed`.
    """
    with pytest.raises(StateUnavailable):
        one().block(
            Relay(1, {1000: {KEY: entry()}}), handler=writes(StateUnavailable("the node is away"))
        )


def test_a_layer_that_a_handler_leaves_open_ends_with_its_call() -> None:
    """PS-66: a block that ends with an open layer could not be committed."""

    def leave_open(context: HandlerContext, _publisher: ParaId, key: PubsubKey) -> None:
        context.storage.transaction().__enter__()
        context.storage.put(b"written " + key, b"x")

    keys = numbered(2)
    subscriber = one("slots", keys)
    step = subscriber.block(Relay(1, {1000: filled(keys)}), handler=Recorder(leave_open))
    assert [d.failed for d in step.deliveries] == [False, False]
    assert len(list(subscriber.storage.iter_prefix(b"written "))) == 2
    assert subscriber.storage.depth == 0


@each_policy
def test_there_is_nothing_to_clear_where_nothing_is_remembered_ps67_b7_defect_18(
    policy: str,
) -> None:
    subscriber = one(policy)
    before = subscriber.entries()
    assert subscriber.call("clear_publisher_cache", 1000).error == ModuleError(Error.NothingToClear)
    assert subscriber.entries() == before
    subscriber.block(Relay(1, {1000: {KEY: entry()}}))
    assert subscriber.call("clear_publisher_cache", 1000).ok
    assert subscriber.call("clear_publisher_cache", 1000).error == ModuleError(Error.NothingToClear)
    assert subscriber.call("clear_publisher_cache", 77).error == ModuleError(Error.NothingToClear)


@pytest.mark.parametrize("call", ["clear_publisher_cache", "redeliver", "enable_publisher"])
def test_root_alone_may_call_ps67_b24(call: str) -> None:
    subscriber = one("nodes")
    subscriber.block(Relay(1, {1000: {KEY: b"?"}}))
    before = subscriber.entries()
    assert subscriber.call(call, 1000, Signed(b"\xaa" * 32)).error == BadOrigin()  # type: ignore[arg-type]
    assert subscriber.entries() == before


def deep(length: int) -> list[bytes]:
    """Keys that make the path of the last one `length` nodes long, as a publisher may choose
    them.
    """
    assert length <= 65
    main = bytes(32)
    return [main] + [
        bytes.fromhex(main.hex()[:depth] + "1" + "0" * (63 - depth)) for depth in range(length - 1)
    ]


@each_policy
@pytest.mark.parametrize(
    ("length", "allowed"),
    [
        (15, True),
        (16, True),
        (17, False),
        (60, False),
    ],
)
def test_a_path_deeper_than_the_limit_disables_its_publisher(
    policy: str, length: int, allowed: bool
) -> None:
    """PS-68, D depth_within_limit, D depth_exceeds_limit, D depth_exceeded_disables_publisher."""
    keys = deep(length)
    subscriber = one(policy, sorted(keys))  # type: ignore[arg-type]
    step = subscriber.block(Relay(1, {1000: filled(keys)}))
    assert (subscriber.disabled == {}) is allowed
    assert (len(step.deliveries) == len(keys)) is allowed
    if not allowed:
        assert subscriber.disabled == {1000: "TrieDepthExceeded"}
        assert step.events == [PublisherDisabled(P, DisableReason.TRIE_DEPTH_EXCEEDED)]
        assert subscriber.roots == {}
        assert subscriber.last() == {}
        assert subscriber.cached(1000) == subscriber.slots(1000) == {}
        walked = step.plan.publishers[P].visited
        assert len(walked) == 16
        assert set(walked) <= set(step.plan.taken)
        assert step.plan.publishers[P].child_node_bytes == sum(map(cost, walked.values()))


MALFORMED = [
    b"\x01",  # a header that no kind of node has
    b"\x80\x00\x00",  # a branch without children
    b"\x80\x01\x00\x80" + b"h" * 31,  # a child that runs past the end
    b"\x41",  # a partial key that is not there
    b"\x41\xff\x04a",  # padding that is not zero
]


@each_policy
@pytest.mark.parametrize("node", MALFORMED)
def test_an_undecodable_node_disables_its_publisher_and_stays_in_the_proof(
    policy: str, node: bytes
) -> None:
    """PS-52, PS-54, PS-68, defect 6."""
    keys = numbered(3)
    subscriber = Subscriber(make_spec({1000: keys, 1001: keys}, cache=policy))
    relay = Relay(1, {1001: filled(keys)}, raw_roots={1000: blake2_256(node)}, extra=[node])
    step = subscriber.block(relay)
    assert subscriber.disabled == {1000: "Undecodable"}
    assert blake2_256(node) in step.plan.taken
    assert step.items == [(1001, key) for key in keys]


def test_genesis_refuses_subscriptions_that_are_no_keys_ps30() -> None:
    for wrong in ((b"short",), (b"b" * 32, b"a" * 32), (b"a" * 32, b"a" * 32), ()):
        with pytest.raises(ImpossibleConfig):
            integrity_test(replace(make_spec(), subscriptions={P: wrong}))  # type: ignore[dict-item]
    with pytest.raises(ImpossibleConfig):
        integrity_test(replace(make_spec(), subscriptions={ParaId(2): (KEY,), ParaId(1): (KEY,)}))


def test_the_handler_store_has_newest_values_and_forgets_removed_entries() -> None:
    keys = numbered(3)
    subscriber = Subscriber(make_spec({1000: keys}, handler="store"))

    def kept() -> dict[bytes, bytes]:
        return dict(VALUES.items(subscriber.storage, ParaId(1000)))

    subscriber.block(
        Relay(1, {1000: {key: entry(b"one") for key in keys}}), handler=HANDLERS["store"]
    )
    assert kept() == dict.fromkeys(keys, b"one")
    changed = {keys[0]: entry(b"one"), keys[1]: entry(b"two")}
    subscriber.block(Relay(2, {1000: changed}), handler=HANDLERS["store"])
    assert kept() == {keys[0]: b"one", keys[1]: b"two"}


def test_a_registered_handler_can_be_named_by_a_runtime() -> None:
    register_handler("tests/keeps-keys", Recorder())
    spec = RuntimeSpec(
        ParaId(3000), {ParaId(1000): (key_from_data(b"key"),)}, handler="tests/keeps-keys"
    )
    check_runtime(spec)
    known = HANDLERS["tests/keeps-keys"]
    register_handler("tests/keeps-keys", Recorder())
    assert HANDLERS["tests/keeps-keys"] is known


def test_a_name_never_means_another_handler() -> None:
    with pytest.raises(HandlerTaken, match="'observe' is the handler Observe, not Recorder"):
        register_handler("observe", Recorder())
    assert isinstance(HANDLERS["observe"], Observe)
