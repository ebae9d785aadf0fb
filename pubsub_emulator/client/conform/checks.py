"""The rules about publishers: registration, entries, deletion and limits.

What is expected is computed here from the rules, and never by the code of a runtime.
"""

from pubsub_emulator.client.conform.driver import Included
from pubsub_emulator.client.conform.story import KEYS, Story, Untestable, expect, many, nothing_left, rule
from pubsub_emulator.primitives.hashing import twox_128
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import U32_MAX

# Registration


@rule("register_publisher", "The owner of a para registers it, once, and nobody else does")
def _register(s: Story) -> None:
    s.gone()
    before = s.all(s.d.relay.best())
    s.refuses(s.d.do("register_publisher", by=s.d.stranger, para=s.para), s.error("NotAuthorized"), before)
    made = s.d.do("register_publisher", para=s.para)
    expect(None, made.error, made.number)
    expect((s.event("PublisherRegistered", para_id=s.para, manager=s.d.manager.account),), made.events, made.number)
    again = s.d.do("register_publisher", para=s.para)
    s.refuses(again, s.error("AlreadyRegistered"), s.all(made.number))


@rule("PS-12", "A registration holds the deposit of the manager's balance, and its end releases it")
def _deposit(s: Story) -> None:
    s.gone()
    deposit = s.number("PublisherDeposit")
    made = s.d.do("register_publisher", para=s.para)
    expect((s.d.manager.account, deposit), s.info(made.number), made.number)
    s.released(made.number, -deposit)
    s.released(s.d.do("deregister_publisher", para=s.para).number, deposit)


@rule("force_register_publisher", "Root alone registers a para with a deposit of any size, once")
def _force_register(s: Story) -> None:
    s.gone()
    manager, before = s.d.stranger.account, s.all(s.d.relay.best())

    def register(*, root: bool) -> Included:
        return s.d.do("force_register_publisher", root=root, manager=manager, deposit=5, para=s.para)

    s.refuses(register(root=False), "BadOrigin", before)
    made = register(root=True)
    expect((None, (manager, 5)), (made.error, s.info(made.number)), made.number)
    expect((s.event("PublisherRegistered", para_id=s.para, manager=manager),), made.events, made.number)
    again = register(root=True)
    s.refuses(again, s.error("AlreadyRegistered"), s.all(made.number))


@rule("deregister_publisher", "A manager alone ends a registration: data, rows and counters go with it")
def _deregister(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 50), (KEYS[1], b"b", 0))
    before = s.all(made.number)
    s.refuses(s.d.do("deregister_publisher", by=s.d.stranger, para=s.para), s.error("NotAuthorized"), before)
    end = s.d.do("deregister_publisher", para=s.para)
    expect((None, (s.event("PublisherDeregistered", para_id=s.para),)), (end.error, end.events), end.number)
    nothing_left(s, end.number)
    expect(s.error("NotRegistered"), s.d.do("deregister_publisher", para=s.para).error, s.d.relay.best())


@rule("force_deregister_publisher", "Root alone ends any registration")
def _force_deregister(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 50))
    s.refuses(s.d.do("force_deregister_publisher", para=s.para), "BadOrigin", s.all(made.number))
    end = s.d.do("force_deregister_publisher", root=True, para=s.para)
    expect((None, (s.event("PublisherDeregistered", para_id=s.para),)), (end.error, end.events), end.number)
    nothing_left(s, end.number)
    again = s.d.do("force_deregister_publisher", root=True, para=s.para)
    expect(s.error("NotRegistered"), again.error, again.number)


# Entries


@rule("PS-7", "A system parachain publishes without registration, and a public one does not")
def _system(s: Story) -> None:
    s.gone()
    made = s.d.publish(s.para, [(KEYS[0], b"a", 0)])
    expect((True, None), (made.error is not None, s.d.root(made.number, s.para)), made.number)
    done = s.d.publish(s.d.mapping.system, [(KEYS[0], b"a", 1)])
    wanted = s.event("DataPublished", publisher=s.d.mapping.system, key=KEYS[0], value_size=1)
    expect((None, True), (done.error, wanted in done.events), done.number)


@rule("PS-1", "A publisher's entries stand in a child trie of its own: value, ttl, block of insertion")
def _entries(s: Story) -> None:
    s.fresh()
    values = ((KEYS[0], b"one", 0), (KEYS[1], bytes(100), 70), (KEYS[2], b"", U32_MAX))
    made = s.published(*values)
    wanted = {key: s.entry(value, ttl, made.number) for key, value, ttl in values}
    expect(wanted, s.d.child(made.number, s.para), made.number)


@rule("PS-2", "The child root stands in the top trie and vanishes with the last key")
def _root(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 0), (KEYS[1], b"b", 0))
    first = s.d.root(made.number, s.para)
    expect(True, first is not None, made.number)
    one = s.d.do("delete_keys", para=s.para, keys=[KEYS[0]])
    expect((True, True), (s.d.root(one.number, s.para) is not None, s.d.root(one.number, s.para) != first), one.number)
    last = s.d.do("delete_keys", para=s.para, keys=[KEYS[1]])
    expect(None, s.d.root(last.number, s.para), last.number)


@rule("PS-4", "Keys are 32 bytes, stored verbatim")
def _verbatim(s: Story) -> None:
    keys = (bytes(32), bytes(range(32)), b"\xff" * 32)
    made = s.fresh(*((key, b"v", 0) for key in keys))
    expect(set(keys), set(s.d.child(made.number, s.para)), made.number)


@rule("PS-5", "Writes of one publisher never change another's root")
def _apart(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 0))
    root = s.d.root(made.number, s.para)
    done = s.d.publish(s.d.mapping.system, [(KEYS[1], b"b", 1)])
    expect((None, root), (done.error, s.d.root(done.number, s.para)), done.number)


@rule("PS-6", "A write changes as many rows and bytes beside the entry, whatever is stored")
def _rows(s: Story) -> None:
    s.fresh()
    few = _written(s, s.published((KEYS[0], b"v", 0)))
    many(s, min(8, s.number("MaxStoredKeys") - 2), 1)
    last = s.published((KEYS[1], b"v", 0))
    expect(few, _written(s, last), last.number)


def _written(s: Story, made: Included) -> tuple[int, int]:
    """The rows of the pallet that a block changed, and their bytes."""
    prefix = twox_128(s.d.mapping.pallet.encode())
    before, after = (
        {key: top.get(key) or b"" for key in top.keys(prefix)}
        for top in (s.d.relay.state(made.number + at).top for at in (-1, 0))
    )
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    return len(changed), sum(len(after.get(key, b"")) for key in changed)


@rule("Publish", "Each published key has its event with publisher, key and the value's length")
def _events(s: Story) -> None:
    s.fresh()
    made = s.published((KEYS[0], b"four", 0), (KEYS[1], bytes(70), 9))
    sizes = ((KEYS[0], 4), (KEYS[1], 70))
    wanted = tuple(s.event("DataPublished", publisher=s.para, key=key, value_size=size) for key, size in sizes)
    expect(wanted, tuple(each for each in made.events if each[1].get("publisher", s.para) == s.para), made.number)


@rule("PS-9", "The same value again is a write: it renews the block of insertion, so the root moves")
def _again(s: Story) -> None:
    made = s.fresh((KEYS[0], b"same", 0))
    then = s.published((KEYS[0], b"same", 0))
    expect({KEYS[0]: s.entry(b"same", 0, then.number)}, s.d.child(then.number, s.para), then.number)
    expect(True, s.d.root(made.number, s.para) != s.d.root(then.number, s.para), then.number)


@rule("PS-10", "A refused call leaves the state as it was, and no event")
def _refused(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 0))
    before = s.all(made.number)
    s.refuses(s.d.do("delete_keys", para=s.para, keys=[KEYS[1]]), s.error("NoKeysToDelete"), before)
    s.refuses(s.d.do("register_publisher", para=s.para), s.error("AlreadyRegistered"), before)


# Deletion


@rule("delete_keys", "A manager alone deletes keys: duplicates merge, absent ones are ignored, what went is counted")
def _delete(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 50), (KEYS[1], b"bb", 0))
    keys = [KEYS[0], KEYS[0], KEYS[2]]
    refused = s.d.do("delete_keys", by=s.d.stranger, para=s.para, keys=keys)
    s.refuses(refused, s.error("NotAuthorized"), s.all(made.number))
    done = s.d.do("delete_keys", para=s.para, keys=keys)
    expect((None, (s.event("KeysDeleted", publisher=s.para, count=1),)), (done.error, done.events), done.number)
    expect({KEYS[1]}, set(s.d.child(done.number, s.para)), done.number)
    expect((1, 34), s.counters(done.number), done.number)
    expect(None, s.ttl_row(done.number, KEYS[0]), done.number)


@rule("force_delete_keys", "Root alone deletes the keys of any publisher")
def _force_delete(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 0), (KEYS[1], b"b", 0))
    s.refuses(s.d.do("force_delete_keys", para=s.para, keys=[KEYS[0]]), "BadOrigin", s.all(made.number))
    done = s.d.do("force_delete_keys", root=True, para=s.para, keys=[KEYS[0]])
    wanted = (None, (s.event("KeysForcedDeleted", publisher=s.para, count=1),))
    expect(wanted, (done.error, done.events), done.number)
    expect({KEYS[1]}, set(s.d.child(done.number, s.para)), done.number)
    nothing = s.d.do("force_delete_keys", root=True, para=s.para, keys=[KEYS[0]])
    expect(s.error("NoKeysToDelete"), nothing.error, nothing.number)


# Limits


@rule("PS-8", "A value may have MaxValueLength bytes and no more; 32 + value are counted for each key")
def _value(s: Story) -> None:
    s.fresh()
    longest = s.longest()
    made = s.published((KEYS[0], bytes(longest), 0))
    expect((1, 32 + longest), s.counters(made.number), made.number)
    small = s.published((KEYS[0], b"small", 0), (KEYS[1], b"", 0))
    expect((2, 32 + 5 + 32), s.counters(small.number), small.number)
    over = s.d.publish(s.para, [(KEYS[2], bytes(longest + 1), 0)])
    expect((True, 2), (over.error is not None, s.counters(s.d.relay.best())[0]), s.d.relay.best())


@rule("PS-8 keys", "MaxStoredKeys keys are stored and no more; at the limit updates work")
def _keys(s: Story) -> None:
    s.fresh()
    most = s.number("MaxStoredKeys")
    if s.number("MaxTotalStorageSize") < 33 * most:
        raise Untestable("the total size is reached before the number of keys is")
    keys = many(s, most, 0)
    number = s.d.relay.best()
    expect((most, 32 * most), s.counters(number), number)
    over = s.d.publish(s.para, [(bytes(key_from_data(b"one too many")), b"", 0)])
    expect((True, most), (over.error is not None, len(s.d.child(over.number, s.para))), over.number)
    update = s.published((keys[0], b"v", 0))
    expect((most, 32 * most + 1), s.counters(update.number), update.number)


@rule("PS-8 size", "MaxTotalStorageSize bytes are stored and no more; what shrinks frees room")
def _size(s: Story) -> None:
    s.fresh()
    most, longest = s.number("MaxTotalStorageSize"), s.longest()
    count, rest = divmod(most, 32 + longest)
    if count + 2 > s.number("MaxStoredKeys"):
        raise Untestable("the number of keys is reached before the total size is")
    if rest < 33:
        raise Untestable(f"{most} bytes cannot be filled to the last with values of {longest} bytes")
    keys = many(s, count, longest)
    last = bytes(key_from_data(b"the rest"))
    made = s.published((last, bytes(rest - 32), 0))
    expect(most, s.counters(made.number)[1], made.number)
    over = s.d.publish(s.para, [(last, bytes(rest - 31), 0)])
    expect((True, most), (over.error is not None, s.counters(over.number)[1]), over.number)
    less = s.published((keys[0], bytes(longest - 1), 0), (last, bytes(rest - 31), 0))
    expect(most, s.counters(less.number)[1], less.number)


@rule("PS-8 publishers", "MaxPublishers paras are registered and no more")
def _publishers(s: Story) -> None:
    s.gone()
    most = s.number("MaxPublishers")
    there = s.d.item(s.d.relay.best(), "CounterForRegisteredPublishers") or 0
    if most - there > s.d.mapping.most_calls:
        raise Untestable(f"{most - there} more would have to be registered")
    manager, first = s.d.manager.account, 3_000_000_000
    ours = range(first, first + most - there + 1)
    try:
        for para in ours:
            made = s.d.do("force_register_publisher", root=True, manager=manager, deposit=0, para=para)
            full = para == ours[-1]
            expect(s.error("TooManyPublishers") if full else None, made.error, made.number)
    finally:
        for para in ours:
            s.d.do("force_deregister_publisher", root=True, para=para)


def _untestable(_story: Story) -> None:
    raise Untestable("it says how the code is written; PS-1 and PS-31 test what comes of it")


rule("PS-3", "One function derives the child key")(_untestable)
