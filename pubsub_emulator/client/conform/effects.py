"""The rules about messages, expiry, subscribers, and parachains that leave.

Each function tests the rule in its decorator, with the vocabulary of `Trial`.
"""

import itertools
from pathlib import Path
from typing import Final

from pubsub_emulator.client.conform.trial import (
    KEYS,
    Broken,
    Included,
    Trial,
    Untestable,
    expect,
    rule,
)
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import U32_MAX

# Messages


@rule("PS-21", "A failing instruction undoes only itself, and not the instructions before it")
def _atomic(t: Trial) -> None:
    t.fresh()
    most = t.number("MaxStoredKeys")
    keys = t.many(most, 0)
    outcome = t.publish(
        t.para,
        [(keys[0], b"first", 0), (bytes(key_from_data(b"beyond")), b"", 0), (keys[1], b"x", 0)],
    )
    expect(True, outcome.error is not None, outcome.number)
    expect(
        t.entry(b"first", 0, outcome.number),
        t.child(outcome.number, t.para).get(keys[0]),
        outcome.number,
    )
    t.counts(outcome.number, most, 32 * most + 5)


@rule(
    "PS-20",
    "XCM v5 has Publish as an instruction, and bytes that are not a message of v5 are corrupt",
)
def _instruction(t: Trial) -> None:
    t.fresh()
    good = t.message([(KEYS[0], b"by hand", 0)])
    (outcome,) = t.send(t.para, good)
    expect(None, outcome.error, outcome.number)
    t.holds(outcome.number, {KEYS[0]: t.entry(b"by hand", 0, outcome.number)})
    unknown_version = b"\6" + good[1:]
    unknown_instruction = b"\5\4" + bytes((255,))
    for bad in (good + b"\0", good[:-1], unknown_version, unknown_instruction):
        _unprocessed(t, bad, "Corrupt")
    _unprocessed(t, _OTHERS, "BadFormat")


_OTHERS: Final = bytes.fromhex("05300a 14 1500 1600 17 1900 1b 1e00 24 2b00 2d 2f0000")
"""A message of XCM v5 with 12 instructions that are not `Publish`, from `ClearOrigin` on."""


@rule(
    "PS-22",
    "Only messages with nothing but a limited number of Publish are admitted; others are refused",
)
def _barrier(t: Trial) -> None:
    t.fresh()
    most = t.mapping.most_publishes
    entry = (KEYS[0], b"v", 0)
    first, last = t.send(t.para, t.message([entry] * most), t.message([entry]))
    expect((None, None), (first.error, last.error), last.number)
    # A message is the version, the number of instructions as Compact, and the instructions.
    publish = t.message([entry])[2:]
    clear_origin = b"\x0a"
    descend_origin = bytes.fromhex("0b 01 00 91 1f")
    set_topic = b"\x2c" + bytes(32)
    refused = (
        (),
        (publish, clear_origin),
        (descend_origin, publish),
        (publish, set_topic, set_topic),
    )
    for instructions in refused:
        message = b"\5" + encode_compact(len(instructions)) + b"".join(instructions)
        _unprocessed(t, message, "BadFormat")
    _unprocessed(t, t.message([entry] * (most + 1)), "StackLimitReached")


def _unprocessed(t: Trial, message: bytes, error: str) -> None:
    """Send a message and require that it is refused with this error and changes nothing."""
    (outcome,) = t.send(t.para, message)
    expected = (error, t.all(outcome.number - 1))
    expect(expected, (outcome.error, t.all(outcome.number)), outcome.number)


@rule(
    "PS-23",
    "A parachain's messages are executed in order, and one that fails does not stop the others",
)
def _queue(t: Trial) -> None:
    t.fresh()
    first = t.message([(KEYS[0], b"1", 0)])
    second = t.message([(KEYS[0], b"22", 0)])
    third = t.message([(KEYS[0], b"333", 0)])
    outcomes = t.send(t.para, first, second, _OTHERS, third)
    last = outcomes[-1].number
    expect([None, None, "BadFormat", None], [outcome.error for outcome in outcomes], last)
    t.holds(last, {KEYS[0]: t.entry(b"333", 0, last)})


# Expiry


@rule("PS-13", "An entry with a ttl expires exactly in block when_inserted + ttl")
def _expiry(t: Trial) -> None:
    end = t.fresh((KEYS[0], b"a", 4), (KEYS[1], b"b", 0), (KEYS[2], b"c", U32_MAX)).number + 4
    t.until(end + 1)
    t.has(end - 1, *KEYS[:3])
    t.has(end, KEYS[1], KEYS[2])


@rule("PS-14", "Publishing again restarts the lifetime, and only entries with a ttl have a row")
def _lifetime(t: Trial) -> None:
    first = t.fresh((KEYS[0], b"a", 40), (KEYS[1], b"b", 0))
    _rows(t, first, [40, first.number], None)
    then = t.published((KEYS[0], b"a", 40), (KEYS[1], b"b", 40))
    _rows(t, then, [40, then.number], [40, then.number])
    _rows(t, t.published((KEYS[0], b"a", 0)), None, [40, then.number])
    short = t.fresh((KEYS[0], b"a", 7))
    renewed = t.published((KEYS[0], b"a", 9))
    t.until(short.number + 8)
    t.holds(short.number + 7, {KEYS[0]: t.entry(b"a", 9, renewed.number)})


def _rows(t: Trial, block: Included, *rows: object) -> None:
    """Require that after a block the first keys have these rows in `TtlData`."""
    keys = KEYS[: len(rows)]
    actual = tuple(t.of_publisher(block.number, "TtlData", key) for key in keys)
    expect(rows, actual, block.number)


@rule("PS-16", "An expiry removes the entry, its row and its counts, and deposits an event")
def _swept(t: Trial) -> None:
    end = t.fresh((KEYS[0], b"a", 2), (KEYS[1], b"bb", 0)).number + 2
    t.until(end + 1)
    expect(1, t.events(end).count(t.event("KeyExpired", publisher=t.para, key=KEYS[0])), end)
    t.counts(end, 1, 34)
    expect(None, t.of_publisher(end, "TtlData", KEYS[0]), end)
    t.has(end, KEYS[1])


def _backlog(t: Trial) -> tuple[int, int, list[bytes]]:
    """Publish entries that expire in the same block, too many for one sweep.

    Returns the number of rows that a sweep examines, the block of expiry, and the keys.
    """
    scans = t.number("MaxTtlScansPerIdle")
    most = t.number("MaxStoredKeys")
    count = min(most, 64)
    if count < 4 * scans:
        raise Untestable(f"a sweep examines {scans} rows, and one call publishes {count} keys")
    keys = [bytes(key_from_data(b"due/%d" % index)) for index in range(count)]
    published = t.fresh(*((key, b"", 6) for key in keys))
    return scans, published.number + 6, keys


@rule("PS-15", "A sweep examines a bounded number of rows")
def _bounded(t: Trial) -> None:
    scans, end, keys = _backlog(t)
    t.until(end + 3)
    for number in range(end, end + 4):
        removed = len(keys) - len(t.child(number, t.para))
        most = scans * (number - end + 1)
        if removed > most:
            raise Broken(f"at most {most} entries gone", removed, number)


@rule(
    "PS-19",
    "The sweep reaches every row in turn, so due rows are removed after rows / MaxTtlScansPerIdle"
    " blocks",
)
def _lap(t: Trial) -> None:
    scans, end, keys = _backlog(t)
    # The number of sweeps is rounded up.
    last = end - 1 - len(keys) // -scans
    t.until(last)
    t.has(last)


@rule("PS-17", "Expired entries are counted and proven until they are swept, and can be renewed")
def _unswept(t: Trial) -> None:
    _, end, keys = _backlog(t)
    t.until(end)
    renewed = t.published(*((key, b"", 0) for key in keys))
    for number in range(end, renewed.number):
        remaining = len(t.child(number, t.para))
        t.counts(number, remaining, 32 * remaining)
    if not t.child(renewed.number - 1, t.para):
        raise Untestable("the sweep ended before the entries could be published again")
    last = t.step(2)
    t.holds(last, dict.fromkeys(keys, t.entry(b"", 0, renewed.number)))
    t.counts(last, len(keys), 32 * len(keys))


@rule(
    "PS-18",
    "Although rows are added and removed between sweeps, each expired row is removed exactly once",
)
def _moving(t: Trial) -> None:
    scans, end, keys = _backlog(t)
    t.until(end)
    chosen = sorted(t.child(end, t.para))[::3]
    deletion = t.do("delete_keys", keys=chosen)
    t.published((KEYS[0], b"new", 1))
    last = max(t.relay.best(), end) + len(keys) // scans + 2
    t.until(last)
    t.has(last)
    # Some of the chosen keys can have been swept before the deletion.
    deleted = set(chosen) & set(t.child(deletion.number - 1, t.para))
    key_expired = t.mapping.name("KeyExpired")
    key = t.mapping.name("key")
    publisher = t.mapping.name("publisher")
    events = itertools.chain.from_iterable(map(t.events, range(end, last + 1)))
    expired = [
        fields[key]
        for name, fields in events
        if name == key_expired and fields.get(publisher) == t.para
    ]
    expect(sorted({*keys, KEYS[0]} - deleted), sorted(expired), last)


# Subscribers


@rule("PS-31", "A subscriber has received the entries of the relay chain at its relay parent")
def _delivered(t: Trial) -> None:
    pallet = t.mapping.subscriber_pallet
    tested = 0
    for chain in t.paras.values():
        number = chain.best()
        if chain.item(number, pallet, "ProcessingCursor") is not None:
            # A delivery is not complete yet.
            continue
        parent = chain.item(number, pallet, "LastRelayParent")
        for publisher, root in chain.item(number, pallet, "ProcessedRoots") or ():
            tested += 1
            expect(t.root(parent, publisher), root, number)
            for key, entry in t.child(parent, publisher).items():
                row = chain.item(
                    number, pallet, "LastDelivered", publisher.to_bytes(4, "little"), key
                )
                if row is not None:
                    # The first field is the hash of the delivered entry.
                    values = list(row.values() if isinstance(row, dict) else row)
                    expect(blake2_256(entry), values[0] if values else None, number)
    if not tested:
        raise Untestable(
            f"none of the parachains {', '.join(map(str, t.paras))} has resolved a root"
        )


@rule("PS-32", "A block's relay parent is never older than its parent's relay parent")
def _parents(t: Trial) -> None:
    t.step(4)
    for chain in t.paras.values():
        best = chain.best()
        last_parent = 0
        for number in range(max(1, best - 8), best + 1):
            parent = chain.item(number, t.mapping.subscriber_pallet, "LastRelayParent") or 0
            expect(True, parent >= last_parent, number)
            last_parent = parent


@rule("PS-30", "A subscriber receives only the keys that it subscribes to")
def _subscribed(t: Trial) -> None:
    _handed(t, b"PS-30")


@rule("PS-33", "After a runtime upgrade, blocks are built and no delivery is lost")
def _upgraded(t: Trial) -> None:
    if not t.mapping.upgrade:
        raise Untestable("the mapping names no other runtime (upgrade)")
    try:
        code = Path(t.mapping.upgrade).read_bytes()
    except OSError as error:
        raise Untestable(f"{t.mapping.upgrade}: {error.strerror}") from error
    _handed(t, b"PS-33", code)
    _handed(t, b"PS-33 again")


def _handed(t: Trial, value: bytes, code: bytes = b"") -> None:
    """Publish a subscribed and another key, and require that only the first is delivered.

    If `code` is given, the subscriber's runtime is upgraded to it first.
    """
    mapping = t.mapping
    if not mapping.subscribed:
        raise Untestable("the mapping names no key that is subscribed to (subscribed)")
    key = unhex(mapping.subscribed[0])
    chain = t.paras[mapping.subscriber]
    since = chain.best()
    if code:
        chain.submit(t.manager, chain.call("System", "set_code", {"code": code}, root=True))
    outcome = t.publish(mapping.system, [(key, value, 0), (KEYS[3], value, 0)])
    expect(None, outcome.error, outcome.number)
    delivered: list[object] = []
    for _ in range(mapping.delay):
        events = itertools.chain.from_iterable(
            map(chain.events, range(since + 1, chain.best() + 1))
        )
        delivered = [
            event.fields.get(mapping.name("key"))
            for event in events
            if event.name == mapping.name("DataProcessed")
        ]
        if key in delivered:
            break
        t.step()
    expect((True, False), (key in delivered, KEYS[3] in delivered), chain.best())


# Leaving


@rule("PS-11", "When a para leaves, its data and registration are removed and its deposit returned")
def _offboard(t: Trial) -> None:
    """Deregister the parachain and wait until the pallet removes its publisher."""
    if not t.mapping.offboard_blocks:
        raise Untestable("offboard_blocks is 0: the test would remove the para from the chain")
    t.unregister()
    t.do("register_publisher")
    _, deposit = t.info(t.relay.best()) or (b"", 0)
    t.published((KEYS[0], b"a", 0), (KEYS[1], b"b", 1000))
    departure = t.relay_call("Registrar", "deregister", {"para": t.para}, root=True)
    expect(None, departure.error, departure.number)
    event = t.event("PublisherDeregistered", para_id=t.para)
    for number in range(departure.number, departure.number + t.mapping.offboard_blocks + 1):
        t.until(number)
        if event in t.events(number):
            t.nothing_left(number)
            return t.released(number, deposit)
    raise Broken(event, "no such event", number)
