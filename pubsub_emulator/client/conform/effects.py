"""The rules about everything that happens by itself: messages, expiry, subscribers, and leaving.

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
from pubsub_emulator.primitives.types import U32_MAX

# Messages


@rule("PS-21", "A failing instruction undoes itself alone: what a message did before it stays")
def _atomic(t: Trial) -> None:
    t.fresh()
    most = t.number("MaxStoredKeys")
    keys = t.many(most, 0)
    made = t.publish(
        t.para,
        [(keys[0], b"first", 0), (bytes(key_from_data(b"beyond")), b"", 0), (keys[1], b"x", 0)],
    )
    expect(True, made.error is not None, made.number)
    expect(
        t.entry(b"first", 0, made.number), t.child(made.number, t.para).get(keys[0]), made.number
    )
    t.counts(made.number, most, 32 * most + 5)


@rule(
    "PS-20",
    "Publish is an instruction of XCM v5 by its number; what is no message of v5 is corrupt",
)
def _instruction(t: Trial) -> None:
    t.fresh()
    good = t.message([(KEYS[0], b"by hand", 0)])
    (made,) = t.send(t.para, good)
    expect(None, made.error, made.number)
    t.holds(made.number, {KEYS[0]: t.entry(b"by hand", 0, made.number)})
    for bad in (good + b"\0", good[:-1], b"\6" + good[1:], b"\5\4" + bytes((255,))):
        _unprocessed(t, bad, "Corrupt")
    _unprocessed(t, _OTHERS, "BadFormat")


_OTHERS: Final = bytes.fromhex("05300a 14 1500 1600 17 1900 1b 1e00 24 2b00 2d 2f0000")
"""A message of other instructions of v5, from `ClearOrigin` to `UnpaidExecution`."""


@rule(
    "PS-22",
    "Messages of Publish alone are admitted, up to a number; every other message is refused, with"
    " its reason",
)
def _barrier(t: Trial) -> None:
    t.fresh()
    most = t.mapping.most_publishes
    entry = (KEYS[0], b"v", 0)
    made, last = t.send(t.para, t.message([entry] * most), t.message([entry]) + bytes(0))
    expect((None, None), (made.error, last.error), last.number)
    one = t.message([entry])[2:]
    topic = b"\x2c" + bytes(32)
    descend = bytes.fromhex("0b 01 00 91 1f")
    for bad in (
        b"\0",
        b"\x08" + one + b"\x0a",
        b"\x08" + descend + one,
        b"\x0c" + one + topic + topic,
    ):
        _unprocessed(t, b"\5" + bad, "BadFormat")
    _unprocessed(t, t.message([entry] * (most + 1)), "StackLimitReached")


def _unprocessed(t: Trial, message: bytes, error: str) -> None:
    """Send a message and require that it is refused with this error and changes nothing."""
    (made,) = t.send(t.para, message)
    expect((error, t.all(made.number - 1)), (made.error, t.all(made.number)), made.number)


@rule(
    "PS-23",
    "The messages of a parachain are executed in their order, and one that fails stops no other",
)
def _queue(t: Trial) -> None:
    t.fresh()
    one, two, three = (t.message([(KEYS[0], value, 0)]) for value in (b"1", b"22", b"333"))
    made = t.send(t.para, one, two, _OTHERS, three)
    last = made[-1].number
    expect([None, None, "BadFormat", None], [each.error for each in made], last)
    t.holds(last, {KEYS[0]: t.entry(b"333", 0, last)})


# Expiry


@rule("PS-13", "An entry with a ttl is expired from block when_inserted + ttl on, and no earlier")
def _expiry(t: Trial) -> None:
    end = t.fresh((KEYS[0], b"a", 4), (KEYS[1], b"b", 0), (KEYS[2], b"c", U32_MAX)).number + 4
    t.until(end + 1)
    t.has(end - 1, *KEYS[:3])
    t.has(end, KEYS[1], KEYS[2])


@rule("PS-14", "Publishing again restarts the lifetime; exactly the finite entries have a row")
def _lifetime(t: Trial) -> None:
    made = t.fresh((KEYS[0], b"a", 40), (KEYS[1], b"b", 0))
    _rows(t, made, [40, made.number], None)
    then = t.published((KEYS[0], b"a", 40), (KEYS[1], b"b", 40))
    _rows(t, then, [40, then.number], [40, then.number])
    _rows(t, t.published((KEYS[0], b"a", 0)), None, [40, then.number])
    short = t.fresh((KEYS[0], b"a", 7))
    renewed = t.published((KEYS[0], b"a", 9))
    t.until(short.number + 8)
    t.holds(short.number + 7, {KEYS[0]: t.entry(b"a", 9, renewed.number)})


def _rows(t: Trial, made: Included, *rows: object) -> None:
    """Require the rows of `TtlData` of the first keys after a block."""
    expect(
        rows,
        tuple(t.of_publisher(made.number, "TtlData", key) for key in KEYS[: len(rows)]),
        made.number,
    )


@rule("PS-16", "An expiry removes the entry from wherever it is counted, and has its event")
def _swept(t: Trial) -> None:
    end = t.fresh((KEYS[0], b"a", 2), (KEYS[1], b"bb", 0)).number + 2
    t.until(end + 1)
    expect(1, t.events(end).count(t.event("KeyExpired", publisher=t.para, key=KEYS[0])), end)
    t.counts(end, 1, 34)
    expect(None, t.of_publisher(end, "TtlData", KEYS[0]), end)
    t.has(end, KEYS[1])


def _backlog(t: Trial) -> tuple[int, int, list[bytes]]:
    """Publish entries that expire at once, too many for one sweep.

    Returns how many rows a sweep examines, the block of expiry, and the keys.
    """
    scans = t.number("MaxTtlScansPerIdle")
    most = t.number("MaxStoredKeys")
    count = min(most, 64)
    if count < 4 * scans:
        raise Untestable(f"a sweep examines {scans} rows, and one call publishes {count} keys")
    keys = [bytes(key_from_data(b"due/%d" % at)) for at in range(count)]
    return scans, t.fresh(*((key, b"", 6) for key in keys)).number + 6, keys


@rule("PS-15", "A sweep examines a bounded number of rows")
def _bounded(t: Trial) -> None:
    scans, end, keys = _backlog(t)
    t.until(end + 3)
    for number in range(end, end + 4):
        gone = len(keys) - len(t.child(number, t.para))
        most = scans * (number - end + 1)
        if gone > most:
            raise Broken(f"at most {most} entries gone", gone, number)


@rule(
    "PS-19",
    "The sweep comes to every row in turn: rows that are due are gone after rows /"
    " MaxTtlScansPerIdle blocks",
)
def _lap(t: Trial) -> None:
    scans, end, keys = _backlog(t)
    last = end - 1 - len(keys) // -scans
    t.until(last)
    t.has(last)


@rule("PS-17", "What is expired and not swept is counted and proven, and a publish renews it")
def _unswept(t: Trial) -> None:
    _, end, keys = _backlog(t)
    t.until(end)
    made = t.published(*((key, b"", 0) for key in keys))
    for number in range(end, made.number):
        left = len(t.child(number, t.para))
        t.counts(number, left, 32 * left)
    if not t.child(made.number - 1, t.para):
        raise Untestable("the sweep was done before a publish came")
    last = t.step(2)
    t.holds(last, dict.fromkeys(keys, t.entry(b"", 0, made.number)))
    t.counts(last, len(keys), 32 * len(keys))


@rule(
    "PS-18",
    "Rows that come and go between two sweeps make the sweep lose none and visit none twice",
)
def _moving(t: Trial) -> None:
    scans, end, keys = _backlog(t)
    t.until(end)
    kept = sorted(t.child(end, t.para))
    gone = t.do("delete_keys", keys=kept[::3])
    t.published((KEYS[0], b"new", 1))
    last = max(t.relay.best(), end) + len(keys) // scans + 2
    t.until(last)
    t.has(last)
    deleted = set(kept[::3]) & set(t.child(gone.number - 1, t.para))
    name, key, of = (t.mapping.name(each) for each in ("KeyExpired", "key", "publisher"))
    events = itertools.chain.from_iterable(map(t.events, range(end, last + 1)))
    expired = [
        fields[key] for event, fields in events if event == name and fields.get(of) == t.para
    ]
    expect(sorted({*keys, KEYS[0]} - deleted), sorted(expired), last)


# Subscribers


@rule("PS-31", "What a subscriber was delivered is what the relay chain has at its relay parent")
def _delivered(t: Trial) -> None:
    pallet, seen = t.mapping.subscriber_pallet, 0
    for chain in t.paras.values():
        number = chain.best()
        parent = chain.item(number, pallet, "LastRelayParent")
        resolved = chain.item(number, pallet, "ProcessedRoots") or ()
        for publisher, root in (
            resolved if chain.item(number, pallet, "ProcessingCursor") is None else ()
        ):
            seen += 1
            expect(t.root(parent, publisher), root, number)
            for key, entry in t.child(parent, publisher).items():
                row = chain.item(
                    number, pallet, "LastDelivered", publisher.to_bytes(4, "little"), key
                )
                if row is not None:
                    values = list(row.values() if isinstance(row, dict) else row)
                    expect(blake2_256(entry), values[0] if values else None, number)
    if not seen:
        raise Untestable(
            f"none of the parachains {', '.join(map(str, t.paras))} has resolved a root"
        )


@rule("PS-32", "The relay parent of a block is never older than that of its parent")
def _parents(t: Trial) -> None:
    t.step(4)
    for chain in t.paras.values():
        best = chain.best()
        before = 0
        for number in range(max(1, best - 8), best + 1):
            parent = chain.item(number, t.mapping.subscriber_pallet, "LastRelayParent") or 0
            expect(True, parent >= before, number)
            before = parent


@rule("PS-30", "A subscriber is handed the keys that it subscribes to, and no other")
def _subscribed(t: Trial) -> None:
    _handed(t, b"PS-30")


@rule("PS-33", "A runtime upgrade loses no delivery, and blocks are built after it")
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
    """Publish two keys, one of them subscribed to, and require that only this one is delivered.

    If `code` is given, the subscriber is upgraded to it before the publication.
    """
    mapping = t.mapping
    if not mapping.subscribed:
        raise Untestable("the mapping names no key that is subscribed to (subscribed)")
    key = unhex(mapping.subscribed[0])
    chain = t.paras[mapping.subscriber]
    since = chain.best()
    if code:
        chain.submit(t.manager, chain.call("System", "set_code", {"code": code}, root=True))
    made = t.publish(mapping.system, [(key, value, 0), (KEYS[3], value, 0)])
    expect(None, made.error, made.number)
    seen: list[object] = []
    for _ in range(mapping.delay):
        events = itertools.chain.from_iterable(
            map(chain.events, range(since + 1, chain.best() + 1))
        )
        seen = [
            each.fields.get(mapping.name("key"))
            for each in events
            if each.name == mapping.name("DataProcessed")
        ]
        if key in seen:
            break
        t.step()
    expect((True, False), (key in seen, KEYS[3] in seen), chain.best())


# Leaving


@rule("PS-11", "A para that leaves takes its data, its registration and its deposit with it")
def _offboard(t: Trial) -> None:
    """Deregister the parachain and wait until the pallet removes its publisher."""
    if not t.mapping.offboard_blocks:
        raise Untestable("offboard_blocks is 0: the para would be gone")
    t.gone()
    t.do("register_publisher")
    _, deposit = t.info(t.relay.best()) or (b"", 0)
    t.published((KEYS[0], b"a", 0), (KEYS[1], b"b", 1000))
    left = t.relay_call("Registrar", "deregister", {"para": t.para}, root=True)
    expect(None, left.error, left.number)
    wanted = t.event("PublisherDeregistered", para_id=t.para)
    for number in range(left.number, left.number + t.mapping.offboard_blocks + 1):
        t.until(number)
        if wanted in t.events(number):
            t.nothing_left(number)
            return t.released(number, deposit)
    raise Broken(wanted, "no such event", number)
