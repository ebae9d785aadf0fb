"""The rules, one function for each: what is done, what must be seen then, and what was.

What is expected is computed here from the rules, and never by the code of a runtime.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Literal

from pubsub_emulator.client.conform.driver import Driver, Included
from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import U32_MAX
from pubsub_emulator.trie.errors import TrieError
from pubsub_emulator.trie.lazy import StateUnavailable

Verdict = Literal["holds", "broken", "not testable here"]
KEYS: Final = tuple(bytes(key_from_data(b"conform/%d" % at)) for at in range(4))
_SHOWN: Final = 200
_LARGEST: Final = 60_000
"""Bytes of values in one extrinsic."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one rule; `expected`, `seen` and `block` are those of the first thing that is broken."""

    rule: str
    sentence: str
    verdict: Verdict
    expected: str = ""
    seen: str = ""
    block: int | None = None
    reason: str = ""


class Broken(Exception):
    """A rule does not hold."""

    def __init__(self, expected: object, seen: object, block: int) -> None:
        super().__init__()
        (self.expected, self.seen), self.block = _said(expected, seen), block


class Untestable(Exception):
    """A rule cannot be tested on this chain."""


Check = Callable[["Story"], None]
RULES: Final[list[tuple[str, str, Check]]] = []
"""The rules in the order in which they are tested."""


def rule(name: str, sentence: str) -> Callable[[Check], Check]:
    """Decorator: a function tests a rule. It raises `Broken` or `Untestable`."""

    def keep(check: Check) -> Check:
        RULES.append((name, sentence, check))
        return check

    return keep


def conform(driver: Driver, only: Collection[str] = ()) -> list[Finding]:
    """Test all rules, or `only` some by name. Raises `ClientError` if the node fails or answers with other types."""
    story = Story(driver)
    return [_judged(story, *each) for each in RULES if not only or each[0] in only]


def _judged(story: "Story", name: str, sentence: str, check: Check) -> Finding:
    try:
        check(story)
    except Broken as broken:
        return Finding(name, sentence, "broken", broken.expected, broken.seen, broken.block)
    except Untestable as why:
        return Finding(name, sentence, "not testable here", reason=str(why))
    except (StateUnavailable, TrieError) as error:
        return Finding(name, sentence, "broken", "a state that its root proves", str(error), story.d.relay.best())
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        said = f"{name}: the chain's types are not those of the rules: {type(error).__name__}: {error}"
        raise BadAnswer(said) from error
    return Finding(name, sentence, "holds")


def expect(expected: object, seen: object, block: int) -> None:
    """Raise `Broken` unless what is seen is what is expected."""
    if expected != seen:
        raise Broken(expected, seen, block)


def _said(expected: object, seen: object) -> tuple[str, str]:
    """Both values as texts; of long ones the part in which they begin to differ."""
    texts = _text(expected), _text(seen)
    same = next((at for at, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), 0)
    start = max(0, same - _SHOWN // 2) if max(map(len, texts)) > _SHOWN else 0
    return _part(texts[0], start), _part(texts[1], start)


def _part(text: str, start: int) -> str:
    return ("…" if start else "") + text[start : start + _SHOWN] + ("…" if start + _SHOWN < len(text) else "")


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return hexed(value)
    if isinstance(value, set):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    return repr(value)


class Story:
    """Helpers of the rules around one driver."""

    def __init__(self, driver: Driver) -> None:
        self.d = driver
        self.para = driver.mapping.publisher
        self.encoded = self.para.to_bytes(4, "little")

    def entry(self, value: bytes, ttl: int, when: int) -> bytes:
        """The bytes of an entry."""
        parts = {
            "value": encode_compact(len(value)) + value,
            "ttl": ttl.to_bytes(4, "little"),
            "when_inserted": when.to_bytes(4, "little"),
        }
        return b"".join(parts[name] for name in self.d.mapping.entry)

    def at(self, number: int, key: bytes) -> bytes | None:
        """The publisher's entry under a key after a block."""
        return self.d.child(number, self.para).get(key)

    def error(self, name: str) -> str:
        """The name of an error of the pallet."""
        return f"{self.d.mapping.pallet}.{self.d.mapping.name(name)}"

    def event(self, name: str, **fields: object) -> tuple[str, dict[str, object]]:
        """An event of the pallet."""
        called = self.d.mapping.name
        return called(name), {called(key): value for key, value in fields.items()}

    def info(self, number: int, para: int | None = None) -> tuple[bytes, int] | None:
        """Manager and deposit of a registration after a block."""
        key = self.encoded if para is None else para.to_bytes(4, "little")
        found = self.d.item(number, "RegisteredPublishers", key)
        return None if found is None else tuple(found.values() if isinstance(found, dict) else found)

    def counters(self, number: int) -> tuple[int, int]:
        """Keys and bytes of the publisher, as the counters say."""
        keys, size = (self.d.item(number, name, self.encoded) or 0 for name in ("PublishedKeys", "TotalStorageSize"))
        return keys, size

    def ttl_row(self, number: int, key: bytes) -> object:
        """The row of `TtlData` of a key."""
        return self.d.item(number, "TtlData", self.encoded, key)

    def held(self, number: int) -> int:
        """The part of the manager's balance that is held."""
        return self.balance(number)[1]

    def balance(self, number: int, *, fees: bool = True) -> tuple[int, int]:
        """The manager's free balance, with the fees of that block unless told otherwise, and what is held."""
        found = self.d.relay.item(number, "System", "Account", self.d.manager.account)["data"]
        paid = (each.fields for each in self.d.relay.events(number) if each.name == "TransactionFeePaid")
        spent = sum(each["actual_fee"] for each in paid if each["who"] == self.d.manager.account)
        return found["free"] + (spent if fees else 0), found["reserved"]

    def released(self, number: int, deposit: int) -> None:
        """Require that a block gave the manager a deposit back."""
        free, held = self.balance(number - 1, fees=False)
        expect((free + deposit, held - deposit), self.balance(number), number)

    def gone(self) -> None:
        """Make the publisher unregistered and without data."""
        number = self.d.relay.best()
        if self.info(number) is not None or self.d.root(number, self.para) is not None:
            self.d.do("force_deregister_publisher", root=True, para=self.para)

    def fresh(self, *entries: tuple[bytes, bytes, int]) -> Included:
        """Register the publisher anew and let it publish some entries."""
        self.gone()
        manager = self.d.manager.account
        made = self.d.do("force_register_publisher", root=True, manager=manager, deposit=0, para=self.para)
        return self.d.publish(self.para, entries) if entries else made

    def published(self, *entries: tuple[bytes, bytes, int]) -> Included:
        """Publish what must be accepted."""
        made = self.d.publish(self.para, entries)
        expect(None, made.error, made.number)
        return made

    def number(self, name: str) -> int:
        """A constant. Raises `Untestable` if the chain has none of that name."""
        found = self.d.constant(name)
        if not isinstance(found, int):
            raise Untestable(f"the chain has no constant {self.d.mapping.name(name)}")
        return found

    def longest(self) -> int:
        """`MaxValueLength`. Raises `Untestable` if no extrinsic could carry such a value."""
        found = self.number("MaxValueLength")
        if found >= _LARGEST:
            raise Untestable(f"a value of {found:,} bytes fits no extrinsic")
        return found

    def refuses(self, made: Included, error: str, before: tuple[object, ...]) -> None:
        """Require that a call failed for one reason and changed nothing."""
        expect(error, made.error, made.number)
        expect((), made.events, made.number)
        expect(before, self.all(made.number), made.number)

    def all(self, number: int) -> tuple[object, ...]:
        """The chain's values of the publisher: root, registration, counters, the held balance."""
        return self.d.root(number, self.para), self.info(number), self.counters(number), self.held(number)


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
    _nothing_left(s, end.number)
    expect(s.error("NotRegistered"), s.d.do("deregister_publisher", para=s.para).error, s.d.relay.best())


@rule("force_deregister_publisher", "Root alone ends any registration")
def _force_deregister(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 50))
    s.refuses(s.d.do("force_deregister_publisher", para=s.para), "BadOrigin", s.all(made.number))
    end = s.d.do("force_deregister_publisher", root=True, para=s.para)
    expect((None, (s.event("PublisherDeregistered", para_id=s.para),)), (end.error, end.events), end.number)
    _nothing_left(s, end.number)
    again = s.d.do("force_deregister_publisher", root=True, para=s.para)
    expect(s.error("NotRegistered"), again.error, again.number)


def _nothing_left(s: Story, number: int) -> None:
    expect((None, None, (0, 0)), s.all(number)[:3], number)
    for key in KEYS:
        expect(None, s.ttl_row(number, key), number)


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
    keys = _many(s, most, 0)
    number = s.d.relay.best()
    expect((most, 32 * most), s.counters(number), number)
    over = s.d.publish(s.para, [(bytes(key_from_data(b"one too many")), b"", 0)])
    expect((True, most), (over.error is not None, len(s.d.child(over.number, s.para))), over.number)
    update = s.published((keys[0], b"v", 0))
    expect((most, 32 * most + 1), s.counters(update.number), update.number)


@rule("PS-21", "A failing instruction undoes itself alone: what a message did before it stays")
def _atomic(s: Story) -> None:
    s.fresh()
    most = s.number("MaxStoredKeys")
    keys = _many(s, most, 0)
    made = s.d.publish(s.para, [(keys[0], b"first", 0), (bytes(key_from_data(b"beyond")), b"", 0), (keys[1], b"x", 0)])
    expect((True, s.entry(b"first", 0, made.number)), (made.error is not None, s.at(made.number, keys[0])), made.number)
    expect((most, 32 * most + 5), s.counters(made.number), made.number)


@rule("PS-8 size", "MaxTotalStorageSize bytes are stored and no more; what shrinks frees room")
def _size(s: Story) -> None:
    s.fresh()
    most, longest = s.number("MaxTotalStorageSize"), s.longest()
    count, rest = divmod(most, 32 + longest)
    if count + 2 > s.number("MaxStoredKeys"):
        raise Untestable("the number of keys is reached before the total size is")
    if rest < 33:
        raise Untestable(f"{most} bytes cannot be filled to the last with values of {longest} bytes")
    keys = _many(s, count, longest)
    last = bytes(key_from_data(b"the rest"))
    made = s.published((last, bytes(rest - 32), 0))
    expect(most, s.counters(made.number)[1], made.number)
    over = s.d.publish(s.para, [(last, bytes(rest - 31), 0)])
    expect((True, most), (over.error is not None, s.counters(over.number)[1]), over.number)
    less = s.published((keys[0], bytes(longest - 1), 0), (last, bytes(rest - 31), 0))
    expect(most, s.counters(less.number)[1], less.number)


def _many(s: Story, count: int, length: int) -> list[bytes]:
    """Publish that many keys with values of one length."""
    at_once = max(1, min(64, _LARGEST // (length + 40)))
    if count > at_once * s.d.mapping.most_calls:
        raise Untestable(f"it takes {-(-count // at_once)} calls, and {s.d.mapping.most_calls} may be spent")
    keys = [bytes(key_from_data(b"many/%d" % at)) for at in range(count)]
    for start in range(0, count, at_once):
        s.published(*((key, bytes(length), 0) for key in keys[start : start + at_once]))
    return keys


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


# Expiry


@rule("PS-13", "An entry with a ttl is expired from block when_inserted + ttl on, and no earlier")
def _expiry(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 4), (KEYS[1], b"b", 0), (KEYS[2], b"c", U32_MAX))
    end = made.number + 4
    s.d.until(end + 1)
    expect(set(KEYS[:3]), set(s.d.child(end - 1, s.para)), end - 1)
    expect({KEYS[1], KEYS[2]}, set(s.d.child(end, s.para)), end)


@rule("PS-14", "Publishing again restarts the lifetime; exactly the finite entries have a row")
def _lifetime(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 40), (KEYS[1], b"b", 0))
    _rows(s, made, [40, made.number], None)
    then = s.published((KEYS[0], b"a", 40), (KEYS[1], b"b", 40))
    _rows(s, then, [40, then.number], [40, then.number])
    last = s.published((KEYS[0], b"a", 0))
    _rows(s, last, None, [40, then.number])
    short = s.fresh((KEYS[0], b"a", 7))
    renewed = s.published((KEYS[0], b"a", 9))
    s.d.until(short.number + 8)
    expect({KEYS[0]: s.entry(b"a", 9, renewed.number)}, s.d.child(short.number + 7, s.para), short.number + 7)


def _rows(s: Story, made: Included, *rows: object) -> None:
    expect(rows, tuple(s.ttl_row(made.number, key) for key in KEYS[: len(rows)]), made.number)


@rule("PS-16", "An expiry removes the entry from wherever it is counted, and has its event")
def _swept(s: Story) -> None:
    made = s.fresh((KEYS[0], b"a", 2), (KEYS[1], b"bb", 0))
    end = made.number + 2
    s.d.until(end + 1)
    wanted = s.event("KeyExpired", publisher=s.para, key=KEYS[0])
    expect(1, s.d.events(end).count(wanted), end)
    expect((1, 34), s.counters(end), end)
    expect(None, s.ttl_row(end, KEYS[0]), end)
    expect({KEYS[1]}, set(s.d.child(end, s.para)), end)


# Subscribers


@rule("PS-31", "What a subscriber was delivered is what the relay chain has at its relay parent")
def _delivered(s: Story) -> None:
    pallet, seen = s.d.mapping.subscriber_pallet, 0
    for chain in s.d.paras.values():
        number = chain.best()
        parent = chain.item(number, pallet, "LastRelayParent")
        resolved = chain.item(number, pallet, "ProcessedRoots") or ()
        for publisher, root in resolved if chain.item(number, pallet, "ProcessingCursor") is None else ():
            seen += 1
            expect(s.d.root(parent, publisher), root, number)
            for key, entry in s.d.child(parent, publisher).items():
                row = chain.item(number, pallet, "LastDelivered", publisher.to_bytes(4, "little"), key)
                if row is not None:
                    expect(blake2_256(entry), next(iter(row.values() if isinstance(row, dict) else row)), number)
    if not seen:
        raise Untestable(f"none of the parachains {', '.join(map(str, s.d.paras))} has resolved a root")


@rule("PS-32", "The relay parent of a block is never older than that of its parent")
def _parents(s: Story) -> None:
    for chain in s.d.paras.values():
        best, before = chain.best(), 0
        for number in range(max(1, best - 8), best + 1):
            parent = chain.item(number, s.d.mapping.subscriber_pallet, "LastRelayParent") or 0
            expect(True, parent >= before, number)
            before = parent


# Leaving


@rule("PS-11", "A para that leaves takes its data, its registration and its deposit with it")
def _offboard(s: Story) -> None:
    if not s.d.mapping.offboard_blocks:
        raise Untestable("offboard_blocks is 0: the para would be gone")
    s.gone()
    s.d.do("register_publisher", para=s.para)
    _, deposit = s.info(s.d.relay.best()) or (b"", 0)
    s.published((KEYS[0], b"a", 0), (KEYS[1], b"b", 1000))
    left = s.d.relay_call("Registrar", "deregister", {"para": s.para}, root=True)
    expect(None, left.error, left.number)
    wanted = s.event("PublisherDeregistered", para_id=s.para)
    for number in range(left.number, left.number + s.d.mapping.offboard_blocks + 1):
        s.d.until(number)
        if wanted in s.d.events(number):
            _nothing_left(s, number)
            return s.released(number, deposit)
    raise Broken(wanted, "no such event", number)


def _untestable(reason: str) -> Check:
    def check(_story: Story) -> None:
        raise Untestable(reason)

    return check


for _names, _why in (
    ("PS-3 PS-6 PS-15 PS-18", "it says how the chain comes to a state, and not which"),
    ("PS-17 PS-19", "entries that are expired and not swept take more rows than one sweep examines"),
    ("PS-20 PS-22 PS-23", "it takes a parachain that sends any upward message"),
    ("PS-30 PS-33", "it takes another runtime of the subscriber"),
):
    for _name in _names.split():
        rule(_name, "See the rules of the protocol")(_untestable(_why))
