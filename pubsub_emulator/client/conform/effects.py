"""The rules about what happens by itself: messages, expiry, subscribers, and leaving.

What is expected is computed here from the rules, and never by the code of a runtime.
"""

from pathlib import Path
from typing import Final

from pubsub_emulator.client.conform.driver import Included
from pubsub_emulator.client.conform.story import KEYS, Broken, Story, Untestable, expect, many, nothing_left, rule
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import U32_MAX

# Messages


@rule("PS-21", "A failing instruction undoes itself alone: what a message did before it stays")
def _atomic(s: Story) -> None:
    s.fresh()
    most = s.number("MaxStoredKeys")
    keys = many(s, most, 0)
    made = s.d.publish(s.para, [(keys[0], b"first", 0), (bytes(key_from_data(b"beyond")), b"", 0), (keys[1], b"x", 0)])
    expect((True, s.entry(b"first", 0, made.number)), (made.error is not None, s.at(made.number, keys[0])), made.number)
    expect((most, 32 * most + 5), s.counters(made.number), made.number)


@rule("PS-20", "Publish is an instruction of XCM v5 by its number; what is no message of v5 is corrupt")
def _instruction(s: Story) -> None:
    s.fresh()
    good = s.d.message([(KEYS[0], b"by hand", 0)])
    (made,) = s.d.send(s.para, good)
    expect((None, s.entry(b"by hand", 0, made.number)), (made.error, s.at(made.number, KEYS[0])), made.number)
    for bad in (good + b"\0", good[:-1], b"\6" + good[1:], b"\5\4" + bytes((255,))):
        _unprocessed(s, bad, "Corrupt")
    _unprocessed(s, _OTHERS, "BadFormat")


_OTHERS: Final = bytes.fromhex("05300a 14 1500 1600 17 1900 1b 1e00 24 2b00 2d 2f0000")
"""A message of twelve other instructions of v5, from `ClearOrigin` to `UnpaidExecution`."""


@rule("PS-22", "Messages of Publish alone are admitted, up to a number; each other one is refused for its reason")
def _barrier(s: Story) -> None:
    s.fresh()
    most = s.d.mapping.most_publishes
    entry = (KEYS[0], b"v", 0)
    made, last = s.d.send(s.para, s.d.message([entry] * most), s.d.message([entry]) + bytes(0))
    expect((None, None), (made.error, last.error), last.number)
    one = s.d.message([entry])[2:]
    topic = b"\x2c" + bytes(32)
    descend = bytes.fromhex("0b 01 00 91 1f")
    for bad in (b"\0", b"\x08" + one + b"\x0a", b"\x08" + descend + one, b"\x0c" + one + topic + topic):
        _unprocessed(s, b"\5" + bad, "BadFormat")
    _unprocessed(s, s.d.message([entry] * (most + 1)), "StackLimitReached")


def _unprocessed(s: Story, message: bytes, error: str) -> None:
    before = s.all(s.d.relay.best())
    (made,) = s.d.send(s.para, message)
    expect((error, before), (made.error, s.all(made.number)), made.number)


@rule("PS-23", "The messages of a parachain are executed in their order, and one that fails stops no other")
def _queue(s: Story) -> None:
    s.fresh()
    one, two, three = (s.d.message([(KEYS[0], value, 0)]) for value in (b"1", b"22", b"333"))
    made = s.d.send(s.para, one, two, _OTHERS, three)
    last = made[-1].number
    expect([None, None, "BadFormat", None], [each.error for each in made], last)
    expect(s.entry(b"333", 0, last), s.at(last, KEYS[0]), last)


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


def _backlog(s: Story) -> tuple[int, int, list[bytes]]:
    """Entries that expire at once and that one sweep cannot remove: its rows, the block, the keys."""
    scans, most = s.number("MaxTtlScansPerIdle"), s.number("MaxStoredKeys")
    count = min(most, 64)
    if count < 4 * scans:
        raise Untestable(f"a sweep examines {scans} rows, and one call publishes {count} keys")
    keys = [bytes(key_from_data(b"due/%d" % at)) for at in range(count)]
    return scans, s.fresh(*((key, b"", 6) for key in keys)).number + 6, keys


@rule("PS-15", "A sweep examines a bounded number of rows")
def _bounded(s: Story) -> None:
    scans, end, keys = _backlog(s)
    s.d.until(end + 3)
    for number in range(end, end + 4):
        gone = len(keys) - len(s.d.child(number, s.para))
        if gone > scans * (number - end + 1):
            raise Broken(f"at most {scans * (number - end + 1)} entries gone", gone, number)


@rule(
    "PS-19", "The sweep comes to every row in turn: rows that are due are gone after rows / MaxTtlScansPerIdle blocks"
)
def _lap(s: Story) -> None:
    scans, end, keys = _backlog(s)
    last = end - 1 - len(keys) // -scans
    s.d.until(last)
    expect({}, s.d.child(last, s.para), last)


@rule("PS-17", "What is expired and not swept is counted and proven, and a publish renews it")
def _unswept(s: Story) -> None:
    _, end, keys = _backlog(s)
    s.d.until(end)
    made = s.published(*((key, b"", 0) for key in keys))
    for number in range(end, made.number):
        left = s.d.child(number, s.para)
        expect((len(left), 32 * len(left)), s.counters(number), number)
    if not s.d.child(made.number - 1, s.para):
        raise Untestable("the sweep was done before a publish came")
    s.d.step(2)
    last = s.d.relay.best()
    expect(dict.fromkeys(keys, s.entry(b"", 0, made.number)), s.d.child(last, s.para), last)
    expect((len(keys), 32 * len(keys)), s.counters(last), last)


@rule("PS-18", "Rows that come and go between two sweeps make the sweep lose none and visit none twice")
def _moving(s: Story) -> None:
    scans, end, keys = _backlog(s)
    s.d.until(end)
    kept = sorted(s.d.child(end, s.para))
    gone = s.d.do("delete_keys", para=s.para, keys=kept[::3])
    s.published((KEYS[0], b"new", 1))
    last = max(s.d.relay.best(), end) + len(keys) // scans + 2
    s.d.until(last)
    expect({}, s.d.child(last, s.para), last)
    told = [key for number in range(end, last + 1) for key in _keys_expired(s, number)]
    deleted = set(kept[::3]) & set(s.d.child(gone.number - 1, s.para))
    expect(sorted({*keys, KEYS[0]} - deleted), sorted(told), last)


def _keys_expired(s: Story, number: int) -> list[bytes]:
    name, key, of = (s.d.mapping.name(each) for each in ("KeyExpired", "key", "publisher"))
    return [fields[key] for event, fields in s.d.events(number) if event == name and fields.get(of) == s.para]


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
    s.d.step(4)
    for chain in s.d.paras.values():
        best, before = chain.best(), 0
        for number in range(max(1, best - 8), best + 1):
            parent = chain.item(number, s.d.mapping.subscriber_pallet, "LastRelayParent") or 0
            expect(True, parent >= before, number)
            before = parent


@rule("PS-30", "A subscriber is handed the keys that it subscribes to, and no other")
def _subscribed(s: Story) -> None:
    _handed(s, b"PS-30")


@rule("PS-33", "A runtime upgrade loses no delivery, and blocks are built after it")
def _upgraded(s: Story) -> None:
    if not s.d.mapping.upgrade:
        raise Untestable("the mapping names no other runtime (upgrade)")
    try:
        code = Path(s.d.mapping.upgrade).read_bytes()
    except OSError as error:
        raise Untestable(f"{s.d.mapping.upgrade}: {error.strerror}") from error
    _handed(s, b"PS-33", code)
    _handed(s, b"PS-33 again")


def _handed(s: Story, value: bytes, code: bytes = b"") -> None:
    """Publish two keys, one of them subscribed to, with an upgrade between publish and delivery if there is one."""
    mapping = s.d.mapping
    if not mapping.subscribed:
        raise Untestable("the mapping names no key that is subscribed to (subscribed)")
    key, chain = unhex(mapping.subscribed[0]), s.d.paras[mapping.subscriber]
    since = chain.best()
    if code:
        chain.submit(s.d.manager, chain.by_root(chain.call("System", "set_code", {"code": code})))
    made = s.d.publish(mapping.system, [(key, value, 0), (KEYS[3], value, 0)])
    expect(None, made.error, made.number)
    seen: list[object] = []
    for _ in range(mapping.delay):
        events = (event for at in range(since + 1, chain.best() + 1) for event in chain.events(at))
        seen = [each.fields.get(mapping.name("key")) for each in events if each.name == mapping.name("DataProcessed")]
        if key in seen:
            break
        s.d.step()
    expect((True, False), (key in seen, KEYS[3] in seen), chain.best())


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
            nothing_left(s, number)
            return s.released(number, deposit)
    raise Broken(wanted, "no such event", number)
