"""The rules about publishers: registration, entries, deletion and limits.

Each function tests the rule in its decorator, with the vocabulary of `Trial`.
"""

from pubsub_emulator.client.conform.trial import KEYS, Included, Trial, Untestable, expect, rule
from pubsub_emulator.primitives.hashing import twox_128
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import U32_MAX

# Registration


@rule("register_publisher", "Only the owner of a para can register it, and only once")
def _register(t: Trial) -> None:
    t.unregister()
    t.refuses(t.do("register_publisher", by=t.stranger), "NotAuthorized")
    t.did(
        t.do("register_publisher"), "PublisherRegistered", para_id=t.para, manager=t.manager.account
    )
    t.refuses(t.do("register_publisher"), "AlreadyRegistered")


@rule("PS-12", "A registration holds the deposit in the manager's balance until it ends")
def _deposit(t: Trial) -> None:
    t.unregister()
    deposit = t.number("PublisherDeposit")
    registered = t.do("register_publisher")
    expect((t.manager.account, deposit), t.info(registered.number), registered.number)
    t.released(registered.number, -deposit)
    t.released(t.do("deregister_publisher").number, deposit)


@rule("force_register_publisher", "Only root can register a para with any deposit, and only once")
def _force_register(t: Trial) -> None:
    t.unregister()
    manager = t.stranger.account

    def register(*, root: bool) -> Included:
        return t.do("force_register_publisher", root=root, manager=manager, deposit=5)

    t.refuses(register(root=False), "BadOrigin")
    registered = register(root=True)
    t.did(registered, "PublisherRegistered", para_id=t.para, manager=manager)
    expect((manager, 5), t.info(registered.number), registered.number)
    t.refuses(register(root=True), "AlreadyRegistered")


@rule(
    "deregister_publisher",
    "Only the manager can end a registration, which removes the data, rows and counters",
)
def _deregister(t: Trial) -> None:
    t.fresh((KEYS[0], b"a", 50), (KEYS[1], b"b", 0))
    t.refuses(t.do("deregister_publisher", by=t.stranger), "NotAuthorized")
    end = t.do("deregister_publisher")
    t.did(end, "PublisherDeregistered", para_id=t.para)
    t.nothing_left(end.number)
    t.refuses(t.do("deregister_publisher"), "NotRegistered")


@rule("force_deregister_publisher", "Only root can end any registration")
def _force_deregister(t: Trial) -> None:
    t.fresh((KEYS[0], b"a", 50))
    t.refuses(t.do("force_deregister_publisher"), "BadOrigin")
    end = t.do("force_deregister_publisher", root=True)
    t.did(end, "PublisherDeregistered", para_id=t.para)
    t.nothing_left(end.number)
    t.refuses(t.do("force_deregister_publisher", root=True), "NotRegistered")


# Entries


@rule("PS-7", "A system parachain can publish without registration, and other parachains cannot")
def _system(t: Trial) -> None:
    t.unregister()
    refused = t.publish(t.para, [(KEYS[0], b"a", 0)])
    root = t.root(refused.number, t.para)
    expect((True, None), (refused.error is not None, root), refused.number)
    done = t.publish(t.mapping.system, [(KEYS[0], b"a", 1)])
    event = t.event("DataPublished", publisher=t.mapping.system, key=KEYS[0], value_size=1)
    expect((None, True), (done.error, event in done.events), done.number)


@rule(
    "PS-1",
    "A publisher's entries are in its own child trie, as value, ttl and block of insertion",
)
def _entries(t: Trial) -> None:
    t.fresh()
    values = ((KEYS[0], b"one", 0), (KEYS[1], bytes(100), 70), (KEYS[2], b"", U32_MAX))
    published = t.published(*values)
    t.holds(
        published.number, {key: t.entry(value, ttl, published.number) for key, value, ttl in values}
    )


@rule("PS-2", "The child root is in the top trie and is removed with the last key")
def _root(t: Trial) -> None:
    published = t.fresh((KEYS[0], b"a", 0), (KEYS[1], b"b", 0))
    first = t.root(published.number, t.para)
    expect(True, first is not None, published.number)
    after_first = t.do("delete_keys", keys=[KEYS[0]]).number
    expect(True, t.root(after_first, t.para) not in {None, first}, after_first)
    after_last = t.do("delete_keys", keys=[KEYS[1]]).number
    expect(None, t.root(after_last, t.para), after_last)


@rule("PS-4", "Keys are 32 bytes, stored verbatim")
def _verbatim(t: Trial) -> None:
    keys = (bytes(32), bytes(range(32)), b"\xff" * 32)
    t.has(t.fresh(*((key, b"v", 0) for key in keys)).number, *keys)


@rule("PS-5", "Writes of one publisher never change another's root")
def _apart(t: Trial) -> None:
    root = t.root(t.fresh((KEYS[0], b"a", 0)).number, t.para)
    done = t.publish(t.mapping.system, [(KEYS[1], b"b", 1)])
    expect((None, root), (done.error, t.root(done.number, t.para)), done.number)


@rule("PS-6", "Beside the entry, a write changes as many rows and bytes whatever else is stored")
def _rows(t: Trial) -> None:
    t.fresh()
    few = _written(t, t.published((KEYS[0], b"v", 0)))
    t.many(min(8, t.number("MaxStoredKeys") - 2), 1)
    last = t.published((KEYS[1], b"v", 0))
    expect(few, _written(t, last), last.number)


def _written(t: Trial, block: Included) -> tuple[int, int]:
    """Return the number of the pallet's rows that a block changed, and their size after it."""
    before = _pallet_rows(t, block.number - 1)
    after = _pallet_rows(t, block.number)
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    return len(changed), sum(len(after.get(key, b"")) for key in changed)


def _pallet_rows(t: Trial, number: int) -> dict[bytes, bytes]:
    """Return all storage entries of the pallet after a relay block."""
    top = t.relay.state(number).top
    return {key: top.get(key) or b"" for key in top.keys(twox_128(t.mapping.pallet.encode()))}


@rule("Publish", "Each published key has an event with publisher, key and the value's length")
def _events(t: Trial) -> None:
    t.fresh()
    published = t.published((KEYS[0], b"four", 0), (KEYS[1], bytes(70), 9))
    sizes = ((KEYS[0], 4), (KEYS[1], 70))
    expected = tuple(
        t.event("DataPublished", publisher=t.para, key=key, value_size=size) for key, size in sizes
    )
    expect(
        expected,
        # The block can have events of other publishers as well.
        tuple(event for event in published.events if event[1].get("publisher", t.para) == t.para),
        published.number,
    )


@rule(
    "PS-9",
    "Publishing the same value again renews the block of insertion, so the root changes",
)
def _again(t: Trial) -> None:
    first = t.fresh((KEYS[0], b"same", 0))
    repeated = t.published((KEYS[0], b"same", 0))
    t.holds(repeated.number, {KEYS[0]: t.entry(b"same", 0, repeated.number)})
    expect(True, t.root(first.number, t.para) != t.root(repeated.number, t.para), repeated.number)


@rule("PS-10", "A refused call changes no state and deposits no event")
def _refused(t: Trial) -> None:
    t.fresh((KEYS[0], b"a", 0))
    t.refuses(t.do("delete_keys", keys=[KEYS[1]]), "NoKeysToDelete")
    t.refuses(t.do("register_publisher"), "AlreadyRegistered")


# Deletion


@rule(
    "delete_keys",
    "Only the manager can delete keys; absent keys are ignored, and deleted keys are counted once",
)
def _delete(t: Trial) -> None:
    t.fresh((KEYS[0], b"a", 50), (KEYS[1], b"bb", 0))
    keys = [KEYS[0], KEYS[0], KEYS[2]]
    t.refuses(t.do("delete_keys", by=t.stranger, keys=keys), "NotAuthorized")
    done = t.do("delete_keys", keys=keys)
    t.did(done, "KeysDeleted", publisher=t.para, count=1)
    t.has(done.number, KEYS[1])
    t.counts(done.number, 1, 34)
    expect(None, t.of_publisher(done.number, "TtlData", KEYS[0]), done.number)


@rule("force_delete_keys", "Only root can delete the keys of any publisher")
def _force_delete(t: Trial) -> None:
    t.fresh((KEYS[0], b"a", 0), (KEYS[1], b"b", 0))
    t.refuses(t.do("force_delete_keys", keys=[KEYS[0]]), "BadOrigin")
    done = t.do("force_delete_keys", root=True, keys=[KEYS[0]])
    t.did(done, "KeysForcedDeleted", publisher=t.para, count=1)
    t.has(done.number, KEYS[1])
    t.refuses(t.do("force_delete_keys", root=True, keys=[KEYS[0]]), "NoKeysToDelete")


# Limits


@rule(
    "PS-8",
    "A value has at most MaxValueLength bytes; each key counts 32 bytes plus the value's length",
)
def _value(t: Trial) -> None:
    t.fresh()
    longest = t.longest()
    t.counts(t.published((KEYS[0], bytes(longest), 0)).number, 1, 32 + longest)
    t.counts(t.published((KEYS[0], b"small", 0), (KEYS[1], b"", 0)).number, 2, 32 + 5 + 32)
    over = t.publish(t.para, [(KEYS[2], bytes(longest + 1), 0)])
    best = t.relay.best()
    keys, _ = t.counters(best)
    expect((True, 2), (over.error is not None, keys), best)


@rule("PS-8 keys", "At most MaxStoredKeys keys are stored, and at the limit updates still work")
def _keys(t: Trial) -> None:
    t.fresh()
    most = t.number("MaxStoredKeys")
    if t.number("MaxTotalStorageSize") < 33 * most:
        raise Untestable("the limit of the total size is reached before that of the keys")
    keys = t.many(most, 0)
    t.counts(t.relay.best(), most, 32 * most)
    over = t.publish(t.para, [(bytes(key_from_data(b"one too many")), b"", 0)])
    stored = len(t.child(over.number, t.para))
    expect((True, most), (over.error is not None, stored), over.number)
    t.counts(t.published((keys[0], b"v", 0)).number, most, 32 * most + 1)


@rule("PS-8 size", "At most MaxTotalStorageSize bytes are stored, and shorter values free room")
def _size(t: Trial) -> None:
    t.fresh()
    most = t.number("MaxTotalStorageSize")
    longest = t.longest()
    count, rest = divmod(most, 32 + longest)
    if count + 2 > t.number("MaxStoredKeys"):
        raise Untestable("the limit of the keys is reached before that of the total size")
    if rest < 33:
        raise Untestable(
            f"{most} bytes cannot be filled to the last with values of {longest} bytes"
        )
    keys = t.many(count, longest)
    last = bytes(key_from_data(b"the rest"))
    t.counts(t.published((last, bytes(rest - 32), 0)).number, count + 1, most)
    over = t.publish(t.para, [(last, bytes(rest - 31), 0)])
    _, size = t.counters(over.number)
    expect((True, most), (over.error is not None, size), over.number)
    # A byte less of one value makes room for a byte more of another.
    exchanged = t.published((keys[0], bytes(longest - 1), 0), (last, bytes(rest - 31), 0))
    t.counts(exchanged.number, count + 1, most)


@rule("PS-8 publishers", "At most MaxPublishers paras are registered")
def _publishers(t: Trial) -> None:
    """Register publishers up to the limit and one more, which must be refused.

    They are removed at the end, also after a failure.
    """
    t.unregister()
    registered = t.item(t.relay.best(), "CounterForRegisteredPublishers") or 0
    free = t.number("MaxPublishers") - registered
    if free > t.mapping.most_calls:
        raise Untestable(f"{free} more would have to be registered")
    # Ids that no parachain of a test network has.
    first = 3_000_000_000
    ids = range(first, first + free + 1)
    try:
        for para in ids[:-1]:
            outcome = t.do(
                "force_register_publisher",
                root=True,
                manager=t.manager.account,
                deposit=0,
                para=para,
            )
            expect(None, outcome.error, outcome.number)
        last = t.do(
            "force_register_publisher",
            root=True,
            manager=t.manager.account,
            deposit=0,
            para=ids[-1],
        )
        t.refuses(last, "TooManyPublishers")
    finally:
        for para in ids:
            t.do("force_deregister_publisher", root=True, para=para)


@rule("PS-3", "One function derives the child key")
def _derived(_trial: Trial) -> None:
    raise Untestable("it is a rule about the code; PS-1 and PS-31 test its results")
