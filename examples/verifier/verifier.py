"""A subscriber's verifier in one file, explained by docs/verifier.md; shares no emulator code.

    python verifier.py                  cases on standard input, one answer per line, for
                                        `pubsub fuzz --verifier`
    python verifier.py FILE…            judge fixtures and compare with what each expects
    python verifier.py --explain FILE…  the same, with each step of the walk

Sections are in the page's order: SCALE, hashes and keys, tries, candidate, runtime, state, static
keys, relay headers, walk, caches, root calls, execution, checks.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from Crypto.Signature import eddsa

T = TypeVar("T")
Z = bytes(32)
EMPTY_ROOT = bytes.fromhex("03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314")
VERDICTS = (
    "BadSeal", "BadParent", "RelayParentDecreased", "BadValidationData", "BadDescendants",
    "MessagesMisreported", "AdvancementRule", "DuplicateNode", "UnsortedProof",
    "RootMismatch", "OmittedBelowBudget", "UnusedNodes", "BadExtrinsic", "StateRootMismatch",
)  # fmt: skip
ROW = 160
MINIMUM = 1_048_576
ALLOWANCE = 40_960
NODES, NONE, SLOTS = 0, 1, 2


# SCALE


class Undecodable(Exception):
    """The bytes cannot be decoded; says what they are and at which byte."""


class BadCase(Exception):
    """A case or fixture that lacks a field, or has something else in it; says which."""


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def compact(value: int) -> bytes:
    if value < 1 << 6:
        return bytes((value << 2,))
    if value < 1 << 14:
        return (value << 2 | 1).to_bytes(2, "little")
    if value < 1 << 30:
        return (value << 2 | 2).to_bytes(4, "little")
    size = max(4, (value.bit_length() + 7) // 8)
    return bytes(((size - 4) << 2 | 3,)) + value.to_bytes(size, "little")


def vec(data: bytes) -> bytes:
    return compact(len(data)) + data


def cost(length: int) -> int:
    """What a node or value of so many bytes costs."""
    return length + len(compact(length))


class Reader:
    """Strict decoding: raises `Undecodable` for bytes that do not decode."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        self.at = 0

    def wrong(self, what: str, at: int | None = None) -> Undecodable:
        return Undecodable(f"{self.name}, byte {self.at if at is None else at}: {what}")

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise self.wrong(f"{count} bytes are needed, {len(self.data) - self.at} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def uint(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def flag(self) -> bool:
        value = self.uint(1)
        if value > 1:
            raise self.wrong(f"a flag is {value}", self.at - 1)
        return value == 1

    def compact(self) -> int:
        start = self.at
        first = self.uint(1)
        mode = first & 3
        value = (
            self.uint((first >> 2) + 4)
            if mode == 3
            else (self.uint((0, 1, 3)[mode]) << 8 | first) >> 2
        )
        if compact(value) != self.data[start : self.at] or value >= 1 << 32:
            raise self.wrong("a compact integer is not in its shortest form, or too large", start)
        return value

    def count(self) -> int:
        start = self.at
        value = self.compact()
        if value > len(self.data) - self.at:
            raise self.wrong(
                f"{value} elements, but {len(self.data) - self.at} bytes are left", start
            )
        return value

    def bytes(self) -> bytes:
        return self.take(self.count())

    def end(self) -> None:
        if self.at != len(self.data):
            raise self.wrong(f"{len(self.data) - self.at} bytes are left over")

    def each(self, value: Callable[[], T]) -> list[T]:
        return [value() for _ in range(self.count())]

    def map(self, value: Callable[[], T]) -> dict[int, T]:
        out: dict[int, T] = {}
        last = -1
        for _ in range(self.count()):
            key = self.uint(4)
            if key <= last:
                raise self.wrong("map keys do not ascend", self.at - 4)
            out[key] = value()
            last = key
        return out


def decoded(name: str, data: bytes, read: Callable[[Reader], T]) -> T:
    reader = Reader(data, name)
    value = read(reader)
    reader.end()
    return value


# Hashes and storage keys


def hash32(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


_M = (1 << 64) - 1
_P = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def _rotl(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _M


def _round(lane: int, word: int) -> int:
    return _rotl((lane + word * _P[1]) & _M, 31) * _P[0] & _M


def xxh64(data: bytes, seed: int) -> int:
    at = 0
    if len(data) >= 32:
        lanes = [(seed + _P[0] + _P[1]) & _M, (seed + _P[1]) & _M, seed, (seed - _P[0]) & _M]
        while at + 32 <= len(data):
            for lane in range(4):
                word = data[at + 8 * lane : at + 8 * lane + 8]
                lanes[lane] = _round(lanes[lane], int.from_bytes(word, "little"))
            at += 32
        value = (
            sum(_rotl(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _M
        )
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P[0] + _P[3]) & _M
    else:
        value = (seed + _P[4]) & _M
    value = (value + len(data)) & _M
    while at + 8 <= len(data):
        value ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        value = (_rotl(value, 27) * _P[0] + _P[3]) & _M
        at += 8
    if at + 4 <= len(data):
        value ^= int.from_bytes(data[at : at + 4], "little") * _P[0] & _M
        value = (_rotl(value, 23) * _P[1] + _P[2]) & _M
        at += 4
    for byte in data[at:]:
        value = _rotl(value ^ byte * _P[4] & _M, 11) * _P[0] & _M
    value = (value ^ value >> 33) * _P[1] & _M
    value = (value ^ value >> 29) * _P[2] & _M
    return value ^ value >> 32


@lru_cache(maxsize=4096)
def twox64_concat(data: bytes) -> bytes:
    return xxh64(data, 0).to_bytes(8, "little") + data


def twox_128(text: str) -> bytes:
    return b"".join(xxh64(text.encode(), seed).to_bytes(8, "little") for seed in (0, 1))


@lru_cache(maxsize=256)
def item(pallet: str, name: str) -> bytes:
    return twox_128(pallet) + twox_128(name)


def sub(name: str, para: int | None = None) -> bytes:
    """A key, or prefix, of the pallet `Subscriber`."""
    return item("Subscriber", name) + (b"" if para is None else twox64_concat(u32(para)))


def generation_prefix(para: int, generation: int) -> bytes:
    pair = u32(para) + u32(generation)
    return sub("CachedTrieNodes") + blake2b(pair, digest_size=16).digest() + pair


def set_hash(keys: Sequence[bytes]) -> bytes:
    """The hash of a publisher's keys."""
    return hash32(compact(len(keys)) + b"".join(keys))


# Tries

ABSENT, VALUE, DETACHED, CHILD, INLINE = "absent", "value", "detached", "child", "inline"


class BadNode(Exception):
    """A node through which no path leads."""


class Node(NamedTuple):
    partial: str
    value: tuple[str, bytes] | None
    children: dict[int, bytes] | None


@lru_cache(maxsize=1 << 16)
def parse(data: bytes) -> Node | None:
    """The parts of a node; `None` for the empty trie's. Raises `BadNode`."""
    try:
        return _parse(Reader(data, "a node"))
    except Undecodable as why:
        raise BadNode(str(why)) from None


def _parse(reader: Reader) -> Node | None:
    head = reader.uint(1)
    if head == 0:
        return None
    low = next((bits for floor, bits in ((0x40, 6), (0x20, 5), (0x10, 4)) if head >= floor), 0)
    if not low:
        raise reader.wrong("a reserved header", 0)
    kind, count = head >> low << low, head & (1 << low) - 1
    if count == (1 << low) - 1:
        more = 255
        while more == 255:
            more = reader.uint(1)
            count += more
    digits = reader.take((count + 1) // 2).hex()
    if count & 1:
        if digits[0] != "0":
            raise reader.wrong("padding is not zero", reader.at - (count + 1) // 2)
        digits = digits[1:]
    if kind in (0x40, 0x20):
        return Node(
            digits, (VALUE, reader.bytes()) if kind == 0x40 else (DETACHED, reader.take(32)), None
        )
    bitmap = reader.uint(2)
    if not bitmap:
        raise reader.wrong("a branch without children", reader.at - 2)
    value = (
        (VALUE, reader.bytes())
        if kind == 0xC0
        else (DETACHED, reader.take(32))
        if kind == 0x10
        else None
    )
    return Node(
        digits, value, {nibble: reader.bytes() for nibble in range(16) if bitmap >> nibble & 1}
    )


def step(data: bytes, key: str, depth: int) -> tuple[str, bytes, int]:
    """Take one step: return what a node says about a key, and the depth after it.

    The first `depth` nibbles of the key led to the node.
    """
    node = parse(data)
    if node is None:
        return ABSENT, b"", depth
    rest = key[depth:]
    if not rest.startswith(node.partial):
        same = next(
            (at for at, (a, b) in enumerate(zip(rest, node.partial, strict=False)) if a != b),
            len(rest),
        )
        return ABSENT, b"", depth + same
    end = depth + len(node.partial)
    if end == len(key):
        return (ABSENT, b"", end) if node.value is None else (*node.value, end)
    child = None if node.children is None else node.children.get(int(key[end], 16))
    if child is None:
        return ABSENT, b"", end
    return (CHILD if len(child) == 32 else INLINE), child, end + 1


def head(kind: int, low: int, count: int) -> bytes:
    most = (1 << low) - 1
    if count < most:
        return bytes((kind | count,))
    more, last = divmod(count - most, 255)
    return bytes((kind | most,)) + b"\xff" * more + bytes((last,))


def packed(digits: str) -> bytes:
    return bytes.fromhex("0" * (len(digits) & 1) + digits)


def build(
    entries: dict[bytes, bytes], layout: int, nodes: dict[bytes, bytes] | None = None
) -> bytes:
    """The root of a trie; `nodes` gets its nodes and detached values by hash."""
    nodes = {} if nodes is None else nodes
    rows = sorted((key.hex(), value) for key, value in entries.items())
    root = _node(rows, 0, layout, nodes) if rows else b"\x00"
    nodes[hash32(root)] = root
    return hash32(root)


def _node(
    rows: list[tuple[str, bytes]], depth: int, layout: int, nodes: dict[bytes, bytes]
) -> bytes:
    first, last = rows[0][0], rows[-1][0]
    shared = depth
    while shared < len(first) and shared < len(last) and first[shared] == last[shared]:
        shared += 1
    partial = first[depth:shared]
    value, detached = None, False
    if len(first) == shared:
        value = rows[0][1]
        detached = layout == 1 and len(value) > 32
        if detached:
            nodes[hash32(value)] = value
        value = hash32(value) if detached else vec(value)
    if len(rows) == 1:
        kind = (0x20, 5) if detached else (0x40, 6)
        return head(*kind, len(partial)) + packed(partial) + (value or b"")
    kind = (0x80, 6) if value is None else (0x10, 4) if detached else (0xC0, 6)
    bitmap, references = 0, b""
    start = 0 if value is None else 1
    while start < len(rows):
        nibble = rows[start][0][shared]
        end = start
        while end < len(rows) and rows[end][0][shared] == nibble:
            end += 1
        child = _node(rows[start:end], shared + 1, layout, nodes)
        if len(child) >= 32:
            nodes[hash32(child)] = child
            child = hash32(child)
        bitmap |= 1 << int(nibble, 16)
        references += vec(child)
        start = end
    return (
        head(*kind, len(partial))
        + packed(partial)
        + bitmap.to_bytes(2, "little")
        + (value or b"")
        + references
    )


def follow(root: bytes, key: bytes, get: Callable[[bytes], bytes]) -> tuple[str, bytes, int]:
    """Steps from the root to a key; `get` gives the node of a hash."""
    node, depth, digits = get(root), 0, key.hex()
    while True:
        kind, payload, depth = step(node, digits, depth)
        if kind == CHILD:
            node = get(payload)
        elif kind == INLINE:
            node = payload
        else:
            return kind, payload, depth


def path(nodes: dict[bytes, bytes], root: bytes, key: bytes) -> list[bytes]:
    """The hashes of the nodes, and of the detached value, on the path of a key."""
    names: list[bytes] = []

    def get(name: bytes) -> bytes:
        names.append(name)
        return nodes[name]

    kind, payload, _ = follow(root, key, get)
    return [*names, payload] if kind == DETACHED else names


# Header, candidate, inherent


NEW_CODE = (8, b"", b"")
"""The digest item `RuntimeEnvironmentUpdated`, which has neither engine nor data."""


class Header(NamedTuple):
    parent_hash: bytes
    number: int
    state_root: bytes
    extrinsics_root: bytes
    digest: list[tuple[int, bytes, bytes]]

    def encode(self, *, sealed: bool = True) -> bytes:
        digest = encode_digest([entry for entry in self.digest if sealed or entry[0] != 5])
        return (
            self.parent_hash
            + compact(self.number)
            + self.state_root
            + self.extrinsics_root
            + digest
        )

    def slot(self) -> int | None:
        found = [data for kind, engine, data in self.digest if (kind, engine) == (6, b"aura")]
        return (
            int.from_bytes(found[0], "little") if len(found) == 1 and len(found[0]) == 8 else None
        )


def encode_digest(digest: list[tuple[int, bytes, bytes]]) -> bytes:
    return compact(len(digest)) + b"".join(
        bytes((kind,)) + (b"" if kind == 8 else engine + vec(data)) for kind, engine, data in digest
    )


def read_header(reader: Reader) -> Header:
    parent, number, state, extrinsics = (
        reader.take(32),
        reader.compact(),
        reader.take(32),
        reader.take(32),
    )
    start = reader.at
    count = reader.count()
    if count > 256:
        raise reader.wrong(f"{count} digest items, the most is 256", start)
    digest = []
    for _ in range(count):
        kind = reader.uint(1)
        if kind not in (0, 4, 5, 6, 8):
            raise reader.wrong(f"no digest item has kind {kind}", reader.at - 1)
        if kind == 8:
            digest.append(NEW_CODE)
        else:
            digest.append((kind, reader.take(4 if kind else 0), reader.bytes()))
    return Header(parent, number, state, extrinsics, digest)


Messages = list[tuple[int, bytes]]
"""Messages as (relay block that sent it, bytes), or as (relay block, hash)."""


class Candidate(NamedTuple):
    header: Header
    body: list[bytes]
    parent_head: bytes
    relay_number: int
    relay_root: bytes
    max_pov_size: int
    proof: list[bytes]
    descendants: list[Header]
    downward: Messages
    hashed_downward: Messages
    horizontal: list[tuple[int, int, bytes]]
    """(sender, relay block that sent it, bytes), in the order of the relay blocks, then senders."""
    hashed_horizontal: list[tuple[int, int, bytes]]
    weight: int

    def extrinsics_root(self) -> bytes:
        return build({compact(at): raw for at, raw in enumerate(self.body)}, layout=0)


def read_candidate(raw: bytes) -> Candidate:
    if len(raw) > 16_777_216:
        raise Undecodable(f"the candidate: {len(raw)} bytes, the most is 16777216")
    reader = Reader(raw, "the candidate")
    header = read_header(reader)
    body = reader.each(lambda: vec(reader.bytes()))
    reader.end()
    if not body:
        raise Undecodable("the candidate: no inherent")
    inherent = Reader(decoded("the first extrinsic", body[0], Reader.bytes), "the inherent")
    if inherent.data[:3] != b"\x05\x01\x00":
        raise inherent.wrong("no bare set_validation_data")
    inherent.at = 3
    parent_head = inherent.bytes()
    number, root, max_pov = inherent.uint(4), inherent.take(32), inherent.uint(4)
    start = inherent.at
    nodes = inherent.count()
    if nodes > 508_400:
        raise inherent.wrong(f"{nodes} nodes, the most is 508400", start)
    proof = [inherent.bytes() for _ in range(nodes)]
    start = inherent.at
    headers = inherent.count()
    if headers > 256:
        raise inherent.wrong(f"{headers} relay headers, the most is 256", start)
    descendants = [read_header(inherent) for _ in range(headers)]
    start = inherent.at
    if inherent.flag() and len(inherent.bytes()) > 64:
        raise inherent.wrong("the peer id is longer than 64 bytes", start)
    start = inherent.at
    downward = read_list(inherent, lambda: (inherent.uint(4), inherent.bytes()))
    hashed_downward = read_list(inherent, lambda: (inherent.uint(4), inherent.take(32)))
    full = read_list(inherent, lambda: (inherent.uint(4), inherent.uint(4), inherent.bytes()))
    hashed = read_list(inherent, lambda: (inherent.uint(4), inherent.uint(4), inherent.take(32)))
    for messages in (full, hashed):
        places = [(sent_at, sender) for sender, sent_at, _ in messages]
        if places != sorted(places):
            raise inherent.wrong("horizontal messages are not in order", start)
    weight = inherent.at - start
    inherent.end()
    return Candidate(
        header,
        body,
        parent_head,
        number,
        root,
        max_pov,
        proof,
        descendants,
        downward,
        hashed_downward,
        full,
        hashed,
        weight,
    )


def read_list(reader: Reader, each: Callable[[], T]) -> list[T]:
    start = reader.at
    count = reader.count()
    if count > 262_144:
        raise reader.wrong(f"{count} messages, the most is 262144", start)
    return [each() for _ in range(count)]


# RuntimeSpec


class Spec(NamedTuple):
    para: int
    version: int
    subscriptions: dict[int, tuple[bytes, ...]]
    max_pov_size: int
    reserve_minimum: bool
    cache: int
    metered: bool
    max_cache_bytes: int
    max_depth: int | None
    max_value_length: int
    max_stored_keys: int
    handler: str
    ref_time: int
    proof_size: int
    accounts: bool
    extra_keys: list[tuple[bytes | None, bytes]]
    """Requested relay keys: the storage key of a child trie, or none, and the key."""
    charge_extra_keys: bool
    relay_parent_offset: int

    def share(self) -> int:
        """The bytes of full messages of each kind."""
        return min(self.max_pov_size // 6, self.allowed() // 2)

    def allowed(self) -> int:
        """The bytes of a block that messages and pub-sub share."""
        share = self.max_pov_size * 85 // 100
        return max(share - MINIMUM, 0) if self.reserve_minimum else share

    def max_item(self) -> int:
        """The highest cost of one node, value or row."""
        value = self.max_value_length
        return max(600, cost(len(compact(value)) + value + 8), 640 if self.cache == SLOTS else 0)


@lru_cache(maxsize=256)
def read_spec(code: bytes) -> Spec:
    return decoded("the runtime", code, _read_spec)


def _read_spec(reader: Reader) -> Spec:
    para, version = reader.uint(4), reader.uint(4)
    subscriptions = reader.map(lambda: tuple(reader.each(lambda: reader.take(32))))
    max_pov, reserve, cache = reader.uint(4), reader.flag(), reader.uint(1)
    if cache > 2:
        raise reader.wrong(f"no cache policy has number {cache}", reader.at - 1)
    metered, max_cache = reader.flag(), reader.uint(4)
    depth = reader.uint(4) if reader.flag() else None
    value, keys, start = reader.uint(4), reader.uint(4), reader.at
    try:
        handler = reader.bytes().decode()
    except UnicodeDecodeError:
        raise reader.wrong("a name is not UTF-8", start) from None
    ref_time, proof_size = reader.uint(8), reader.uint(8)
    flags, extra = 0, []
    if reader.at < len(reader.data):
        flags = reader.uint(1)
        if not flags or flags & ~29:
            raise reader.wrong(f"the flags are {flags}", reader.at - 1)
    if flags & 4:
        extra = reader.each(lambda: read_relay_key(reader))
        if not extra:
            raise reader.wrong("no requested key", reader.at)
    offset = reader.uint(4) if flags & 16 else 0
    if flags & 16 and not offset:
        raise reader.wrong("no offset", reader.at - 4)
    return Spec(
        para, version, subscriptions, max_pov, reserve, cache, metered, max_cache, depth, value,
        keys, handler, ref_time, proof_size, bool(flags & 1), extra, bool(flags & 8),
        offset,
    )  # fmt: skip


def encode_flags(spec: Spec) -> bytes:
    """The flags after a runtime, if one is set, the requested keys, and the offset."""
    flags = spec.accounts | bool(spec.extra_keys) << 2 | spec.charge_extra_keys << 3
    flags |= bool(spec.relay_parent_offset) << 4
    if not flags:
        return b""
    keys = b"".join(
        b"\x00" + vec(key) if child is None else b"\x01" + vec(child) + vec(key)
        for child, key in spec.extra_keys
    )
    count = compact(len(spec.extra_keys)) if spec.extra_keys else b""
    offset = u32(spec.relay_parent_offset) if spec.relay_parent_offset else b""
    return bytes((flags,)) + count + keys + offset


def read_relay_key(reader: Reader) -> tuple[bytes | None, bytes]:
    kind = reader.uint(1)
    if kind > 1:
        raise reader.wrong(f"no relay key has kind {kind}", reader.at - 1)
    child = reader.bytes() if kind else None
    key = reader.bytes()
    if max(len(key), len(child or b"")) > 1024:
        raise reader.wrong("a storage key is longer than 1024 bytes", reader.at)
    return child, key


def possible(before: Spec, after: Spec) -> bool:
    """Whether a runtime may replace another."""
    if (after.para, after.accounts) != (before.para, before.accounts) or after.handler not in (
        "observe",
        "store",
    ):
        return False
    share = after.max_pov_size * 85 // 100
    headers = (after.relay_parent_offset + 1) * 1024 if after.relay_parent_offset else 0
    rest = after.max_pov_size - share - headers
    if after.relay_parent_offset > 255 or rest < 0:
        return False
    if share <= MINIMUM if after.reserve_minimum else rest < MINIMUM + 65_536:
        return False
    if not all(keys and list(keys) == sorted(set(keys)) for keys in after.subscriptions.values()):
        return False
    k = after.max_stored_keys
    structure = 33 * max(2 * k - 2, 0) + 70 * k + 8 * max(k - 1, 0)
    if after.cache == NODES and after.max_cache_bytes < structure:
        return False
    c = 160 if after.cache == NODES and after.metered else 0
    rows = -(-k // 16) * 800 + 72 * k if after.cache == SLOTS else 160 * k
    paths = (after.max_depth or 65) * (564 + c)
    maps = 2 * (165 + 36 * len(after.subscriptions))
    return (
        structure + (2 * k - 1) * c + rows + 16 * 564 + maps + paths + after.max_item() + 160
        <= MINIMUM
    )


# State


class State(dict[bytes, bytes]):
    """The parachain's entries: those before the block, and those that the block wrote."""

    def put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.pop(key, None)
        else:
            self[key] = value

    def under(self, prefix: bytes) -> list[bytes]:
        return sorted(key for key in self if key.startswith(prefix))


Row = tuple[bytes, int, int]
"""What was last delivered: entry hash, ttl, when_inserted."""


def read_roots(data: bytes | None) -> dict[int, bytes]:
    return (
        {}
        if data is None
        else decoded("the roots", data, lambda reader: reader.map(lambda: reader.take(32)))
    )


def encode_roots(roots: dict[int, bytes]) -> bytes:
    return compact(len(roots)) + b"".join(u32(para) + roots[para] for para in sorted(roots))


def read_info(data: bytes | None) -> tuple[int, int, int]:
    reader = Reader(data or bytes(12), "a cache's facts")
    return reader.uint(4), reader.uint(4), reader.uint(4)


def encode_info(info: tuple[int, int, int]) -> bytes:
    return b"".join(map(u32, info))


def read_stale(data: bytes | None) -> list[tuple[int, int]]:
    if data is None:
        return []
    return decoded(
        "the stale generations",
        data,
        lambda reader: reader.each(lambda: (reader.uint(4), reader.uint(4))),
    )


def encode_stale(waiting: list[tuple[int, int]]) -> bytes | None:
    if not waiting:
        return None
    return compact(len(waiting)) + b"".join(
        u32(para) + u32(generation) for para, generation in waiting
    )


def read_row(data: bytes | None) -> Row | None:
    if not data:
        return None
    reader = Reader(data, "a last delivery")
    return reader.take(32), reader.uint(4), reader.uint(4)


def encode_row(row: Row) -> bytes:
    return row[0] + u32(row[1]) + u32(row[2])


def pack_key(para: int, keys: tuple[bytes, ...], number: int) -> bytes:
    return sub("LastDeliveredPacked", para) + set_hash(keys)[:8] + u32(number)


def cell(row: bytes | None, at: int) -> Row | None:
    """The delivered row at one place of a packed row, which has sixteen places of 40 bytes."""
    part = (row or b"")[at % 16 * 40 :][:40]
    return read_row(part) if any(part) else None


def delivered_key(spec: Spec, para: int, key: bytes) -> bytes:
    """Where the delivered row of a key is, in the form of the policy."""
    if spec.cache != SLOTS:
        return sub("LastDelivered", para) + key
    keys = spec.subscriptions[para]
    return pack_key(para, keys, keys.index(key) // 16)


def get_delivered(state: State, spec: Spec, para: int, key: bytes) -> Row | None:
    row = state.get(delivered_key(spec, para, key))
    return read_row(row) if spec.cache != SLOTS else cell(row, spec.subscriptions[para].index(key))


def put_delivered(state: State, spec: Spec, para: int, key: bytes, row: Row | None) -> None:
    data = None if row is None else encode_row(row)
    if spec.cache != SLOTS:
        state.put(sub("LastDelivered", para) + key, data)
        return
    keys = spec.subscriptions[para]
    number, place = divmod(keys.index(key), 16)
    full = pack_key(para, keys, number)
    rows = bytearray(state.get(full) or bytes(40 * len(keys[16 * number : 16 * number + 16])))
    rows[40 * place : 40 * place + 40] = data or bytes(40)
    state.put(full, bytes(rows) if any(rows) else None)


def clear_delivered(state: State, para: int, keys: tuple[bytes, ...]) -> None:
    """Remove the delivered rows of keys, in both forms."""
    for key in keys:
        state.put(sub("LastDelivered", para) + key, None)
    for number in range(-(-len(keys) // 16)):
        state.put(pack_key(para, keys, number), None)


# Static keys


@dataclass
class Statics:
    dmq_head: bytes = Z
    hrmp_heads: dict[int, bytes] = field(default_factory=dict)
    largest: dict[int, int] = field(default_factory=dict)
    """The largest message that each channel allows."""
    authorities: dict[str, bytes | None] = field(default_factory=dict)
    """The items of the authorities that relay headers need."""
    complete: bool = False


def paras(data: bytes | None) -> list[int]:
    """Senders or recipients; none if they do not decode."""
    try:
        return (
            []
            if data is None
            else decoded("senders", data, lambda reader: reader.each(lambda: reader.uint(4)))
        )
    except Undecodable:
        return []


def channel_head(data: bytes | None) -> bytes:
    """The head in an `HrmpChannel`: after 20 bytes, before 32; zeros if it has none."""
    if data is None or len(data) <= 52:
        return Z
    try:
        return decoded(
            "a channel", data[20:-32], lambda reader: reader.take(32) if reader.flag() else Z
        )
    except Undecodable:
        return Z


def read_statics(
    para: int, read: Callable[[bytes], bytes | None], authorities: Sequence[str] = ()
) -> Statics:
    me = twox64_concat(u32(para))
    out = Statics()
    for name in ("AuthorVrfRandomness", "NextRandomness", "Randomness", "CurrentSlot"):
        read(item("Babe", name))
    read(item("Configuration", "ActiveConfig"))
    downward = read(item("Dmp", "DownwardMessageQueueHeads") + me)
    out.dmq_head = downward if downward is not None and len(downward) == 32 else Z
    read(item("Ump", "RelayDispatchQueueSize") + me)
    read(b":relay_dispatch_queue_remaining_capacity" + u32(para))
    senders = paras(read(item("Hrmp", "HrmpIngressChannelsIndex") + me))
    recipients = paras(read(item("Hrmp", "HrmpEgressChannelsIndex") + me))
    read(item("Paras", "UpgradeGoAheadSignal") + me)
    read(item("Paras", "UpgradeRestrictionSignal") + me)
    read(item("Paras", "Heads") + me)
    channels = item("Hrmp", "HrmpChannels")
    for sender in senders:
        channel = read(channels + twox64_concat(u32(sender) + u32(para)))
        out.hrmp_heads[sender] = channel_head(channel)
        out.largest[sender] = int.from_bytes((channel or b"")[8:12], "little")
    for recipient in recipients:
        read(channels + twox64_concat(u32(para) + u32(recipient)))
    for name in authorities:
        out.authorities[name] = read(item("Babe", name))
    out.complete = True
    return out


# Relay headers


P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
"""The prime of the curve's field, and the order of Ristretto255."""
EDWARDS_D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]
"""X, Y, Z, T with x = X / Z, y = Y / Z and x y = T / Z."""


def inverse_root(value: int) -> tuple[bool, int]:
    """Whether `value` is a square, and the even root of 1 / value, or else of i / value."""
    root = pow(value, 3, P) * pow(pow(value, 7, P), (P - 5) // 8, P) % P
    check = value * root * root % P
    if check in (P - 1, P - SQRT_M1):
        root = root * SQRT_M1 % P
    return check in (1, P - 1), even(root)


def even(value: int) -> int:
    """The value or its negative, whichever is even."""
    value %= P
    return P - value if value % 2 else value


def added(a: Point, b: Point) -> Point:
    one = (a[1] - a[0]) * (b[1] - b[0])
    two = (a[1] + a[0]) * (b[1] + b[0])
    three = 2 * EDWARDS_D * a[3] * b[3]
    four = 2 * a[2] * b[2]
    e, f, g, h = two - one, four - three, four + three, two + one
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(scalar: int, point: Point) -> Point:
    out: Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            out = added(out, point)
        point = added(point, point)
        scalar >>= 1
    return out


def ristretto(data: bytes) -> Point | None:
    """The point that 32 bytes encode."""
    s = int.from_bytes(data, "little")
    if s >= P or s % 2:
        return None
    u1, u2 = 1 - s * s, 1 + s * s
    v = (-EDWARDS_D * u1 * u1 - u2 * u2) % P
    square, root = inverse_root(v * u2 * u2 % P)
    x = even(2 * s * root * u2)
    y = u1 * root * root * u2 * v % P
    if not square or x * y % P % 2 or not y:
        return None
    return x, y, 1, x * y % P


def ristretto_bytes(point: Point) -> bytes:
    x, y, z, t = point
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    _, root = inverse_root(u1 * u2 * u2 % P)
    one, two = root * u1 % P, root * u2 % P
    z_inverse = one * two * t % P
    if t * z_inverse % P % 2:
        x, y = y * SQRT_M1 % P, x * SQRT_M1 % P
        two = one * inverse_root(-1 - EDWARDS_D)[1] % P
    if x * z_inverse % P % 2:
        y = -y
    return even(two * (z - y)).to_bytes(32, "little")


BASE_Y = 4 * pow(5, -1, P) % P
_ratio = (BASE_Y * BASE_Y - 1) * pow(EDWARDS_D * BASE_Y * BASE_Y + 1, -1, P) % P
BASE_X = even(_ratio * inverse_root(_ratio)[1])
BASE: Point = BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P


def keccak(state: bytearray) -> None:
    """The permutation Keccak-f[1600]."""
    a = [
        [int.from_bytes(state[8 * (x + 5 * y) :][:8], "little") for y in range(5)] for x in range(5)
    ]
    lfsr = 1
    for _ in range(24):
        c = [a[x][0] ^ a[x][1] ^ a[x][2] ^ a[x][3] ^ a[x][4] for x in range(5)]
        d = [c[(x + 4) % 5] ^ _rotl(c[(x + 1) % 5], 1) for x in range(5)]
        a = [[a[x][y] ^ d[x] for y in range(5)] for x in range(5)]
        x, y, current = 1, 0, a[1][0]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            current, a[x][y] = a[x][y], _rotl(current, (step + 1) * (step + 2) // 2 % 64)
        for y in range(5):
            row = [a[x][y] for x in range(5)]
            for x in range(5):
                a[x][y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5])
        for bit in range(7):
            if lfsr & 1:
                a[0][0] ^= 1 << ((1 << bit) - 1)
            lfsr = lfsr << 1 ^ (0x171 if lfsr & 0x80 else 0)
    for x in range(5):
        for y in range(5):
            state[8 * (x + 5 * y) : 8 * (x + 5 * y) + 8] = a[x][y].to_bytes(8, "little")


class Merlin:
    """A transcript over STROBE-128: `add` takes bytes in, `draw` takes them out."""

    def __init__(self) -> None:
        self.state = bytearray((b"\x01\xa8\x01\x00\x01\x60STROBEv1.0.2").ljust(200, b"\0"))
        keccak(self.state)
        self.at = self.begin = 0
        self.start(18, b"Merlin v1.0")

    def fill(self) -> None:
        for at, bits in ((self.at, self.begin), (self.at + 1, 4), (167, 128)):
            self.state[at] ^= bits
        keccak(self.state)
        self.at = self.begin = 0

    def put(self, data: bytes) -> None:
        for byte in data:
            self.state[self.at] ^= byte
            self.at += 1
            if self.at == 166:
                self.fill()

    def start(self, flags: int, data: bytes) -> None:
        begin, self.begin = self.begin, self.at + 1
        self.put(bytes((begin, flags)) + data)

    def add(self, label: bytes, message: bytes) -> None:
        self.start(18, label + u32(len(message)))
        self.start(2, message)

    def draw(self, label: bytes) -> bytes:
        """64 bytes, which are one block."""
        self.start(18, label + u32(64))
        self.start(7, b"")
        if self.at:
            self.fill()
        return bytes(self.state[:64])


@lru_cache(maxsize=4096)
def sr25519(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `s B = R + k A`, with the context `substrate`."""
    point, s = ristretto(key), int.from_bytes(signature[32:], "little") - (1 << 255)
    if point is None or not 0 <= s < L:
        return False
    merlin = Merlin()
    for label, part in (
        (b"dom-sep", b"SigningContext"), (b"", b"substrate"), (b"sign-bytes", message),
        (b"proto-name", b"Schnorr-sig"), (b"sign:pk", key), (b"sign:R", signature[:32]),
    ):  # fmt: skip
        merlin.add(label, part)
    k = int.from_bytes(merlin.draw(b"sign:c"), "little") % L
    return ristretto_bytes(added(times(s, BASE), times(L - k, point))) == signature[:32]


def babe_author(header: Header) -> int | None:
    """The index of the authority that claims the block."""
    sizes = {1: 109, 2: 13, 3: 109}
    claims = [data for kind, engine, data in header.digest if (kind, engine) == (6, b"BABE")]
    claims = [data for data in claims if data and len(data) >= sizes.get(data[0], 1 << 30)]
    return int.from_bytes(claims[-1][1:5], "little") if claims else None


def read_authorities(reader: Reader) -> list[bytes]:
    """The keys; a weight of 8 bytes follows each."""
    keys = []
    for _ in range(reader.count()):
        keys.append(reader.take(32))
        reader.take(8)
    return keys


def next_authorities(header: Header) -> list[bytes] | None:
    """The authorities that the header announces for the epoch after the one that it begins."""
    found = None
    for kind, engine, data in header.digest:
        if (kind, engine) == (4, b"BABE") and data[:1] == b"\x01":
            reader = Reader(data[1:], "an epoch")
            try:
                listed = read_authorities(reader)
                reader.take(32)
                found = listed
            except Undecodable:
                pass
    return found


def needed_authorities(spec: Spec, headers: Sequence[Header]) -> list[str]:
    """The further static keys."""
    if not spec.relay_parent_offset:
        return []
    more = any(next_authorities(header) is not None for header in headers[1:])
    return ["Authorities", "NextAuthorities"] if more else ["Authorities"]


def listed_authorities(data: bytes | None) -> list[bytes]:
    try:
        return [] if data is None else decoded("authorities", data, read_authorities)
    except Undecodable:
        return []


def sealed_chain(headers: Sequence[Header], relay_root: bytes, statics: Statics) -> bool:
    """Whether the headers are a chain from the relay parent on that its authorities sealed."""
    now = listed_authorities(statics.authorities.get("Authorities"))
    after = listed_authorities(statics.authorities.get("NextAuthorities"))
    if headers[0].state_root != relay_root:
        return False
    for at, header in enumerate(headers):
        if at and header.parent_hash != hash32(headers[at - 1].encode()):
            return False
        announced = next_authorities(header)
        if announced is not None and at:
            now, after = after, announced
        author = babe_author(header)
        if author is None or author >= len(now) or not header.digest:
            return False
        kind, engine, signature = header.digest[-1]
        if (kind, engine, len(signature)) != (5, b"BABE", 64):
            return False
        bare = header._replace(digest=header.digest[:-1])
        if not sr25519(now[author], hash32(bare.encode()), signature):
            return False
    return True


# The walk


class Stopped(Exception):
    """The stop rule fired."""


class Missing(Exception):
    """A needed node is not in the proof."""


class Disabled(Exception):
    """The publisher cannot be read."""


class Change(NamedTuple):
    para: int
    key: bytes
    entry_hash: bytes
    entry: tuple[bytes, int, int] | None


@dataclass
class Publisher:
    """A publisher that the walk met."""

    para: int
    keys: tuple[bytes, ...]
    trusted: bool
    root: bytes | None = None
    unchanged: bool = False
    disabled: int | None = None
    entered: bool = False
    resolved: int = 0
    walked: dict[bytes, bytes] = field(default_factory=dict)
    charges: int = 0
    high: int = 0
    packs: dict[int, bytes] = field(default_factory=dict)
    row_of: tuple[int, Row | None] = (-1, None)
    # policy nodes
    info: tuple[int, int, int] | None = None
    hits: set[bytes] = field(default_factory=set)
    gone: dict[bytes, bytes] | None = None
    # policy slots
    rows: dict[int, bytes] = field(default_factory=dict)
    seen: dict[int, bytes] = field(default_factory=dict)
    covered: dict[int, int] = field(default_factory=dict)
    done: list[int] = field(default_factory=list)

    def settled(self) -> bool:
        """Whether there is nothing to walk."""
        return self.unchanged or self.disabled is not None

    def complete(self) -> bool:
        """Whether all keys were resolved in this block."""
        return not self.settled() and self.resolved == len(self.keys)

    def exact(self) -> bool:
        """Whether `walked` has all nodes of the keys' paths."""
        return self.complete() or (not self.settled() and self.root == EMPTY_ROOT)


class Slot(NamedTuple):
    depth: int
    above: int
    row: int
    place: int
    low: int
    high: int


class Layout(NamedTuple):
    slots: list[Slot]
    rows: list[tuple[bytes, int]]
    paths: list[dict[int, int]]
    alone: list[int]


def same_nibbles(a: str, b: str) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))


@lru_cache(maxsize=256)
def layout_of(keys: tuple[bytes, ...]) -> Layout:
    """Return the slots of keys.

    Each range of six or more keys makes a row, with a slot for each nibble at which it parts.
    """
    texts = [key.hex() for key in keys]
    out = Layout([], [], [{} for _ in keys], [])
    for at, text in enumerate(texts):
        near = [texts[other] for other in (at - 1, at + 1) if 0 <= other < len(texts)]
        out.alone.append(max((same_nibbles(text, other) + 1 for other in near), default=0))
    ranges = [(0, len(keys))]
    while ranges:
        low, high = ranges.pop()
        if high - low < 6:
            continue
        split = same_nibbles(texts[low], texts[high - 1])
        above = max(out.paths[low].values(), default=-1)
        row, place, start = len(out.rows), 0, low
        while start < high:
            end = start
            while end < high and texts[end][split] == texts[start][split]:
                end += 1
            for at in range(start, end):
                out.paths[at][split + 1] = len(out.slots)
            out.slots.append(Slot(split + 1, above, row, place, start, end))
            ranges.append((start, end))
            place, start = place + 1, end
        shared = texts[low][:split]
        out.rows.append((bytes((split,)) + bytes.fromhex(shared + "0" * (split & 1)), place))
    return out


class Walk:
    """One walk over the relay state; after `run`, what it found."""

    def __init__(
        self,
        before: State,
        spec: Spec,
        relay_root: bytes,
        proof: list[bytes],
        weight: int,
        *,
        headers: Sequence[Header] = (),
    ) -> None:
        self.before = before
        self.spec = spec
        self.relay_root = relay_root
        self.source = {hash32(node): node for node in proof}
        self.taken: dict[bytes, bytes] = {}
        self.used = 0
        self.charged = 0
        self.budget = max(spec.allowed() - weight, MINIMUM)
        self.last_start = self.budget - spec.max_item() - ROW
        self.item: tuple[int, bytes] | None = None
        self.cursor: tuple[int, bytes] | None = None
        self.missing: tuple[bytes, bytes] | None = None
        self.authorities = needed_authorities(spec, headers)
        self.statics = Statics()
        self.requested: dict[tuple[bytes | None, bytes], bytes | None] = {}
        self.changed: list[int] = []
        self.stale: tuple[list[bytes], int] = ([], 0)
        self.calls_run = 0
        self.publishers: dict[int, Publisher] = {}
        self.changes: list[Change] = []
        self.steps: list[str] = []
        self._record: dict[bytes, bytes | None] = {}
        self._settled = 0
        self._own_nodes: dict[bytes, bytes] = {}
        self._own_root = build(before, 1, self._own_nodes)
        self._own: dict[bytes, int] = {}

    # Operations

    def check(self) -> None:
        """Stop before something new if more is used than `last_start`."""
        if self.used > self.last_start:
            self.note("stop: more is used than the last start")
            raise Stopped

    def room(self, more: int = 0) -> bool:
        """Whether so much more may be used."""
        return self.used + more <= self.last_start

    def take(self, name: bytes, key: bytes, what: str) -> bytes:
        """Return the bytes of a hash without a charge.

        They are those taken before, else those of the proof; else the walk ends for a missing node.
        """
        if name not in self.taken:
            if name not in self.source:
                self.missing = name, key
                self.note(f"missing {name.hex()}")
                raise Missing
            self.taken[name] = self.source[name]
            self.note(f"take {what} {name.hex()}, {len(self.taken[name])} bytes")
        return self.taken[name]

    def read(self, name: bytes, key: bytes, what: str) -> bytes:
        """As `take`; what is new is checked and charged."""
        if name not in self.taken:
            self.check()
            node = self.take(name, key, what)
            self.charge(cost(len(node)), what)
        return self.taken[name]

    def row(self, key: bytes) -> bytes | None:
        """A row of the state, whose key comes to the record."""
        value = self.before.get(key)
        self._record.setdefault(key, value)
        return value

    def charge(self, amount: int, what: str) -> None:
        self.used += amount
        self.note(f"charge {amount} for {what}: {self.used} used")

    def settle(self) -> None:
        """Charge for the record's paths in the state's trie, and never stop.

        Charged is what they cost beyond all charges so far and the allowance.
        """
        if not self.spec.metered or len(self._record) == self._settled:
            return
        for key in list(self._record)[self._settled :]:
            if key != b":code":
                for name in path(self._own_nodes, self._own_root, key):
                    self._own[name] = cost(len(self._own_nodes[name]))
        self._settled = len(self._record)
        beyond = sum(self._own.values()) - ALLOWANCE - self.charged
        if beyond > 0:
            self.charged += beyond
            self.charge(beyond, "own state")

    def note(self, text: str) -> None:
        self.steps.append(text)

    # Steps

    def run(self, messages: Messages) -> None:
        try:
            self.statics = read_statics(self.spec.para, self.static, self.authorities)
            self.requested_keys()
            self.pre_state(messages)
            for para, low, high in self.rotation():
                self.range(para, low, high)
        except Stopped:
            self.cursor = self.item
        except Missing:
            return

    def static(self, key: bytes, root: bytes | None = None) -> bytes | None:
        """A value of the relay state, or of its child trie with the given root; free of charge."""
        start = self.relay_root if root is None else root
        try:
            kind, payload, _ = follow(start, key, lambda name: self.take(name, key, "static node"))
        except BadNode:
            return None
        if kind == DETACHED:
            return self.take(payload, key, "static value")
        return payload if kind == VALUE else None

    def requested_keys(self) -> None:
        """The keys that the runtime requests besides its subscriptions."""
        before = set(self.taken)
        for child, key in self.spec.extra_keys:
            if child is None:
                value = self.static(key)
            else:
                root = self.static(b":child_storage:default:" + child)
                empty = root is None or len(root) != 32 or root == EMPTY_ROOT
                value = None if empty else self.static(key, root)
            self.requested[child, key] = value
        if self.spec.charge_extra_keys:
            nodes = (node for name, node in self.taken.items() if name not in before)
            self.charge(sum(cost(len(node)) for node in nodes), "the requested keys")

    def pre_state(self, messages: Messages) -> None:
        """Read the state that the walk needs first.

        It is the two maps, changed publishers, at most 100 rows of stale caches, and what root
        calls read.
        """
        roots, hashes = self.row(sub("ProcessedRoots")), self.row(sub("SubscriptionHash"))
        self.charge(len(roots or b"") + len(hashes or b"") + 2 * ROW, "the two maps")
        self.charged = self.used
        self.roots = read_roots(roots)
        known = read_roots(hashes)
        mine = {para: set_hash(keys) for para, keys in self.spec.subscriptions.items()}
        self.changed = [
            para for para in sorted({*known, *mine}) if known.get(para) != mine.get(para)
        ]
        keys: list[bytes] = []
        finished = 0
        for para, generation in read_stale(self.row(sub("StaleCaches"))):
            left = 100 - len(keys)
            found = self.before.under(generation_prefix(para, generation))[:left]
            for key in found:
                self.row(key)
            keys += found
            if len(found) == left:
                break
            self.row(sub("CacheInfo", para))
            finished += 1
        self.stale = keys, finished
        for para in self.changed:
            self.row(sub("CacheInfo", para))
        for rows, read in planned_calls(self.before, self.spec, messages):
            self.settle()
            if not self.room(rows * ROW):
                break
            known_rows = len(self._record)
            for key in read:
                self.row(key)
            more = sum(
                ROW + len(value or b"") for value in list(self._record.values())[known_rows:]
            )
            self.charge(more, "a root call")
            self.charged += more
            self.calls_run += 1

    def rotation(self) -> Iterator[tuple[int, int, int]]:
        """Ranges of keys (publisher, from, to), from the cursor around to the cursor."""
        enabled = [
            p for p in self.spec.subscriptions if self.row(sub("DisabledPublishers", p)) is None
        ]
        self.settle()
        stored = self.row(sub("ProcessingCursor"))
        para, key = (
            (0, b"") if stored is None else (int.from_bytes(stored[:4], "little"), stored[4:])
        )
        first = sum(each < para for each in enabled)
        keys = self.spec.subscriptions
        split = 0
        if first < len(enabled) and enabled[first] == para:
            split = sum(each < key for each in keys[para])
        order = enabled[first:] + enabled[:first]
        for at, each in enumerate(order):
            yield each, split if at == 0 and first < len(enabled) else 0, len(keys[each])
        if split:
            yield para, 0, split

    def range(self, para: int, low: int, high: int) -> None:
        """Walk a range; whatever ends it, foresee and settle."""
        if low == high:
            return
        keys = self.spec.subscriptions[para]
        self.item = para, keys[low]
        try:
            if para not in self.publishers:
                self.publishers[para] = Publisher(para, keys, para not in self.changed)
                self.top_path(self.publishers[para])
            publisher = self.publishers[para]
            if not publisher.settled():
                self.items(publisher, low, high)
        except BadNode:
            self.publishers[para].disabled = 1
        except Disabled as why:
            self.publishers[para].disabled = why.args[0]
        finally:
            publisher = self.publishers[para]
            if publisher.exact() and self.room():
                self.foresee(publisher)
            self.settle()

    def top_path(self, publisher: Publisher) -> None:
        """The way to the child root, each node of which is read."""
        key = b":child_storage:default:pubsub" + u32(publisher.para)
        kind, payload, _ = follow(
            self.relay_root, key, lambda name: self.read(name, key, "top path")
        )
        if kind == ABSENT:
            publisher.root = EMPTY_ROOT
        elif kind == VALUE and len(payload) == 32:
            publisher.root = payload
        else:
            raise Disabled(1)
        publisher.unchanged = publisher.trusted and self.roots.get(publisher.para) == publisher.root

    def items(self, publisher: Publisher, low: int, high: int) -> None:
        """Resolve the keys of a range in order.

        Charges for own rows and the cache count as charged.
        """
        publisher.high = high
        if self.spec.cache == NODES and self.room():
            self.row(sub("CacheInfo", publisher.para))
        before = publisher.charges
        try:
            if not publisher.entered:
                if publisher.root != EMPTY_ROOT:
                    self.fetch(publisher, low, publisher.root or Z, 0, 0, None)
                publisher.entered = True
            while low < high:
                self.item = publisher.para, publisher.keys[low]
                low += self.resolve(publisher, low)
        finally:
            self.charged += publisher.charges - before

    def resolve(self, publisher: Publisher, at: int) -> int:
        """The number of keys that this settles."""
        key, slots = publisher.keys[at], self.spec.cache == SLOTS
        digits = key.hex()
        rule = SlotRule(self, publisher, at) if slots else None
        node: bytes = (
            b"\x00" if publisher.root == EMPTY_ROOT else publisher.walked[publisher.root or Z]
        )
        depth, above = 0, 1
        while True:
            kind, payload, depth = step(node, digits, depth)
            if kind == INLINE:
                if self.spec.max_depth is not None and above >= self.spec.max_depth:
                    raise Disabled(0)
                if rule is not None and rule.covered(hash32(payload), depth):
                    break
                node = payload
            elif kind == CHILD:
                found = self.fetch(publisher, at, payload, depth, above, rule)
                if found is None:
                    break
                node = found
            else:
                break
            above += 1
        if rule is not None:
            if kind == ABSENT:
                rule.absent(depth)
            if rule.known:
                publisher.resolved += rule.known
                return rule.known
        self.compare(publisher, at, kind, payload)
        if slots:
            publisher.done.append(at)
        publisher.resolved += 1
        return 1

    def compare(self, publisher: Publisher, at: int, kind: str, payload: bytes) -> None:
        """Compare an entry with the last delivered one."""
        key = publisher.keys[at]
        row = self.delivered(publisher, at)
        if kind == ABSENT:
            if row is not None:
                self.changes.append(Change(publisher.para, key, row[0], None))
            return
        entry_hash = payload if kind == DETACHED else hash32(payload)
        if row is not None and row[0] == entry_hash:
            return
        data = payload if kind == VALUE else self.read(entry_hash, key, "value")
        try:
            entry = decoded(
                "an entry", data, lambda reader: (reader.bytes(), reader.uint(4), reader.uint(4))
            )
        except Undecodable:
            raise Disabled(1) from None
        self.changes.append(Change(publisher.para, key, entry_hash, entry))

    def fetch(  # noqa: PLR0917  # five inputs
        self,
        publisher: Publisher,
        at: int,
        name: bytes,
        depth: int,
        above: int,
        rule: "SlotRule | None",
    ) -> bytes | None:
        """The child node; `None` if nothing changed below it."""
        if self.spec.max_depth is not None and above >= self.spec.max_depth:
            raise Disabled(0)
        if rule is not None and (rule.covered(name, depth) or rule.alone(name, depth)):
            return None
        node = self.taken.get(name)
        if node is None and self.spec.cache == NODES:
            node = publisher.walked.get(name)
            if node is None:
                self.check()
                node = self.look_up(publisher, name)
        if node is None:
            node = self.read(name, publisher.keys[at], "child node")
        publisher.walked[name] = node
        return node

    def delivered(self, publisher: Publisher, at: int) -> Row | None:
        """The delivered row of a key, charged when it is first needed."""
        if publisher.row_of[0] == at:
            return publisher.row_of[1]
        if self.spec.cache == SLOTS:
            number = at // 16
            if number not in publisher.packs:
                self.check()
                stored = self.row(pack_key(publisher.para, publisher.keys, number)) or b""
                self.charge_rows(publisher, ROW + len(stored), "a packed row")
                publisher.packs[number] = stored
            row = cell(publisher.packs[number], at)
        else:
            self.check()
            self.charge_rows(publisher, ROW, "a delivered row")
            row = read_row(self.row(sub("LastDelivered", publisher.para) + publisher.keys[at]))
        publisher.row_of = at, row
        return row

    def charge_rows(self, publisher: Publisher, amount: int, what: str) -> None:
        publisher.charges += amount
        self.charge(amount, what)

    def charge_cache(self, publisher: Publisher, amount: int, what: str) -> None:
        if self.spec.metered:
            self.charge_rows(publisher, amount, what)

    # Policy nodes

    def look_up(self, publisher: Publisher, name: bytes) -> bytes | None:
        """A node of the cache. Each one found is a hit."""
        if not publisher.trusted:
            return None
        if publisher.info is None:
            publisher.info = read_info(self.row(sub("CacheInfo", publisher.para)))
            self.charge_cache(publisher, 12 + ROW, "the cache's count")
            self.check()
        if not publisher.info[1]:
            return None
        node = self.row(generation_prefix(publisher.para, publisher.info[0]) + name)
        if node is not None:
            self.charge_cache(publisher, cost(len(node)) + ROW, "a cached node")
            publisher.hits.add(name)
        return node

    def foresee(self, publisher: Publisher) -> None:
        """Find the cached nodes that left, if the cache has others than the hits."""
        if self.spec.cache != NODES:
            return
        info = read_info(self.row(sub("CacheInfo", publisher.para)))
        if publisher.trusted and info[1] != len(publisher.hits):
            publisher.gone = self.left(publisher, generation_prefix(publisher.para, info[0]))

    def left(self, publisher: Publisher, prefix: bytes) -> dict[bytes, bytes] | None:
        """The nodes that left the publisher's paths; `None` if that is not known."""
        most = len(publisher.walked) - len(publisher.hits) + 16
        found: dict[bytes, bytes] = {}
        root = self.roots.get(publisher.para)
        stack = [] if root is None else [(root, 0, 0, len(publisher.keys))]
        while stack:
            name, depth, low, high = stack.pop()
            if name in publisher.walked or name in found:
                continue
            if len(found) > most or not self.room():
                return None
            node = self.row(prefix + name)
            if node is None:
                continue
            found[name] = node
            last = None
            for at in range(low, high):
                kind, payload, end = step(node, publisher.keys[at].hex(), depth)
                child = (payload, end) if kind == CHILD else None
                if child is not None and child == last:
                    stack[-1] = (*child, stack[-1][2], at + 1)
                elif child is not None:
                    stack.append((*child, at, at + 1))
                last = child
        return found

    # Policy slots

    def covers(self, publisher: Publisher, at: int, index: int, name: bytes) -> int:
        """How many keys the slot settles: those from `at` to the range's end, if it has this hash.

        Notes it as seen.
        """
        slot = layout_of(publisher.keys).slots[index]
        if not publisher.trusted:
            publisher.seen[index] = name
            return 0
        if slot.row not in publisher.rows:
            suffix, width = layout_of(publisher.keys).rows[slot.row]
            self.check()
            stored = self.row(sub("CacheSlots", publisher.para) + suffix)
            self.charge_cache(publisher, ROW + len(stored or b""), "a row of slots")
            publisher.rows[slot.row] = stored or bytes(32 * width)
        publisher.seen[index] = name
        if publisher.rows[slot.row][32 * slot.place :][:32] != name:
            return 0
        count = min(slot.high, publisher.high) - at
        publisher.covered[slot.above] = publisher.covered.get(slot.above, 0) + count
        return count


class SlotRule:
    """The rule of policy `slots` for the current key."""

    def __init__(self, walk: Walk, publisher: Publisher, at: int) -> None:
        self.walk, self.publisher, self.at = walk, publisher, at
        self.places = layout_of(publisher.keys).paths[at]
        self.alone_from: int | None = layout_of(publisher.keys).alone[at]
        self.known = 0

    def covered(self, name: bytes, depth: int) -> int:
        """A slot of this depth: a hash that it has settles its keys."""
        if depth in self.places:
            self.known = self.walk.covers(self.publisher, self.at, self.places[depth], name)
        return self.known

    def alone(self, name: bytes, depth: int) -> int:
        """Below all slots: the hash of the leaf with the entry delivered last settles this key."""
        if self.alone_from is None or depth < self.alone_from:
            return 0
        row = self.walk.delivered(self.publisher, self.at)
        if row is None:
            self.alone_from = None
        elif hash32(leaf(self.publisher.keys[self.at].hex()[depth:], row[0])) == name:
            self.publisher.done.append(self.at)
            self.known = 1
        return self.known

    def absent(self, depth: int) -> None:
        """Handle an absent key: the slots below it are empty tries.

        The shallowest slot may have been an empty trie before.
        """
        below = sorted(deep for deep in self.places if deep > depth)
        for deep in below[1:]:
            self.publisher.seen[self.places[deep]] = EMPTY_ROOT
        if below:
            self.known = self.walk.covers(
                self.publisher, self.at, self.places[below[0]], EMPTY_ROOT
            )


def leaf(digits: str, entry_hash: bytes) -> bytes:
    return head(0x20, 5, len(digits)) + packed(digits) + entry_hash


# Root calls

_TRANSACT = bytes.fromhex("05082f0000060200")


def root_call(message: bytes) -> Spec | tuple[int, int] | None:
    """The runtime that a message brings, or the call and its publisher."""
    if not message.startswith(_TRANSACT):
        return None
    try:
        call = decoded("a message", message[len(_TRANSACT) :], Reader.bytes)
        if call[:2] == b"\x00\x02":
            return read_spec(decoded("a call", call[2:], Reader.bytes))
    except Undecodable:
        return None
    if len(call) == 6 and call[0] == 0x66 and call[1] < 3:
        return call[1], int.from_bytes(call[2:], "little")
    return None


def stays(before: Spec, after: Spec, para: int) -> bool:
    """Whether delivered rows keep their form."""
    if SLOTS not in (before.cache, after.cache):
        return True
    return before.cache == after.cache and before.subscriptions.get(
        para
    ) == after.subscriptions.get(para)


def carried(before: Spec, after: Spec) -> list[tuple[int, bytes]]:
    """The items subscribed before and after whose delivered rows change their form."""
    return [
        (para, key)
        for para, keys in before.subscriptions.items()
        if not stays(before, after, para)
        for key in keys
        if key in after.subscriptions.get(para, ())
    ]


def planned_calls(
    state: State, spec: Spec, messages: Messages
) -> Iterator[tuple[int, list[bytes]]]:
    """Of each root call: about how many rows it reads, and their keys."""
    for _, message in messages:
        found = root_call(message)
        if isinstance(found, Spec):
            rows = carried(spec, found)
            every = sorted({*spec.subscriptions, *found.subscriptions})
            different = spec.cache != found.cache
            gone = [
                p
                for p in every
                if different or spec.subscriptions.get(p) != found.subscriptions.get(p)
            ]
            keys = [delivered_key(spec, para, key) for para, key in rows]
            yield len(rows) + len(gone), [*keys, *(sub("CacheInfo", para) for para in gone)]
            spec = found if possible(spec, found) else spec
        elif found is not None:
            para = found[1]
            slots = state.under(sub("CacheSlots", para))[:1]
            yield 4, [sub("DisabledPublishers", para), sub("CacheInfo", para), *slots]


# Executing


def chain(head: bytes, links: Messages) -> bytes:
    """The head after some messages, given by their hashes."""
    for sent_at, hashed in links:
        head = hash32(head + u32(sent_at) + hashed)
    return head


class Heads(NamedTuple):
    kept: bytes
    """After the full messages; the chain remembers it."""
    end: bytes
    """After the hashed ones as well; the relay chain must have it."""


def leads_to(  # noqa: PLR0917  # a queue has this many parts
    before: bytes,
    full: Messages,
    hashed: Messages,
    target: bytes | None,
    last: int | None,
    relay_number: int,
) -> Heads:
    """Return a queue's heads.

    Those of a channel opened anew, with no message before the last relay parent, begin at zeros.
    """
    kept = chain(before, full)
    found = Heads(kept, chain(kept, hashed))
    if found.end == target or before == Z:
        return found
    fresh = (
        last is not None
        and relay_number > last
        and all(sent_at > last for sent_at, _ in [*full, *hashed])
    )
    kept = chain(Z, full)
    anew = Heads(kept, chain(kept, hashed))
    return anew if fresh and anew.end == target else found


def last_relay_parent(state: State) -> int | None:
    data = state.get(sub("LastRelayParent"))
    return None if data is None else int.from_bytes(data, "little")


def downward_heads(state: State, block: Candidate, statics: Statics) -> Heads:
    before = state.get(item("ParachainSystem", "LastDmqMqcHead")) or Z
    full = [(sent_at, hash32(vec(message))) for sent_at, message in block.downward]
    last = last_relay_parent(state)
    return leads_to(before, full, block.hashed_downward, statics.dmq_head, last, block.relay_number)


def horizontal_heads(state: State, block: Candidate, statics: Statics) -> dict[int, Heads]:
    before = read_roots(state.get(item("ParachainSystem", "LastHrmpMqcHeads")))
    full: dict[int, Messages] = {}
    hashed: dict[int, Messages] = {}
    for sender, sent_at, message in block.horizontal:
        full.setdefault(sender, []).append((sent_at, hash32(vec(message))))
    for sender, sent_at, each in block.hashed_horizontal:
        hashed.setdefault(sender, []).append((sent_at, each))
    out = {}
    last = last_relay_parent(state)
    for sender in {**before, **statics.hrmp_heads, **full, **hashed}:
        out[sender] = leads_to(
            before.get(sender, Z),
            full.get(sender, []),
            hashed.get(sender, []),
            statics.hrmp_heads.get(sender),
            last,
            block.relay_number,
        )
    return out


@dataclass
class Delivery:
    publisher: int
    key: bytes
    kind: str
    entry_hash: bytes
    ttl_state: bytes | None
    failed: bool


class Execution:
    """The writes of a block."""

    def __init__(
        self, state: State, spec: Spec, parent: Header, block: Candidate, walk: Walk
    ) -> None:
        self.state = state
        self.spec = spec
        self.parent = parent
        self.block = block
        self.walk = walk
        self.events: list[bytes] = []
        self.deliveries: list[Delivery] = []
        self.digest: list[tuple[int, bytes, bytes]] = []
        """The digest without the seal, as far as the block has come."""

    def run(self) -> bytes:
        """The post-state root."""
        self.system()
        self.messages()
        self.subscriber()
        calls = [
            found for _, message in self.block.downward if (found := root_call(message)) is not None
        ]
        for found in calls[: self.walk.calls_run]:
            if isinstance(found, Spec):
                self.set_code(found)
            else:
                self.call(*found)
        records = b"".join(b"\x00" + bytes(4) + b"\x66" + event + b"\x00" for event in self.events)
        self.state.put(item("System", "Events"), compact(len(self.events)) + records)
        self.state.put(item("System", "EventCount"), u32(len(self.events)))
        oldest = self.block.header.number - 4097
        if oldest > 0:
            self.state.put(item("System", "BlockHash") + twox64_concat(u32(oldest)), None)
        return build(self.state, 1)

    def system(self) -> None:
        header, parent = self.block.header, hash32(self.parent.encode())
        self.state.put(item("System", "Number"), u32(header.number))
        self.digest = [entry for entry in header.digest if entry[0] not in (5, 8)]
        self.state.put(item("System", "Digest"), encode_digest(self.digest))
        self.state.put(item("System", "ParentHash"), parent)
        if header.number > 0:
            self.state.put(
                item("System", "BlockHash") + twox64_concat(u32(header.number - 1)), parent
            )
        self.state.put(item("System", "BlockWeight"), None)

    def messages(self) -> None:
        state, statics = self.state, self.walk.statics
        key = item("ParachainSystem", "LastDmqMqcHead")
        found = downward_heads(state, self.block, statics).kept
        if found != (state.get(key) or Z):
            state.put(key, found)
        key = item("ParachainSystem", "LastHrmpMqcHeads")
        every = horizontal_heads(state, self.block, statics)
        heads = {
            sender: each.kept
            for sender, each in every.items()
            if sender in statics.hrmp_heads and each.kept != Z
        }
        if heads != read_roots(state.get(key)):
            state.put(key, encode_roots(heads))
        self.marks()

    def marks(self) -> None:
        """The last processed messages, and the block up to which horizontal ones are processed."""
        block = self.block
        if block.downward:
            last = block.downward[-1][0]
            behind = sum(sent_at == last for sent_at, _ in block.hashed_downward)
            key = item("ParachainSystem", "LastProcessedDownwardMessage")
            self.state.put(key, u32(last) + u32(behind))
        key = item("ParachainSystem", "HrmpWatermark")
        last, behind, mark = block.relay_number, 0, block.relay_number
        if block.horizontal:
            last = block.horizontal[-1][1]
            behind = sum(sent_at == last for _, sent_at, _ in block.hashed_horizontal)
            earlier = [sent_at for _, sent_at, _ in block.horizontal if sent_at < last]
            if not block.hashed_horizontal:
                mark = block.relay_number
            elif not behind:
                mark = last
            elif earlier:
                mark = earlier[-1]
            else:
                mark = int.from_bytes(self.state.get(key) or b"", "little")
        self.state.put(key, u32(mark))
        key = item("ParachainSystem", "LastProcessedHrmpMessage")
        self.state.put(key, u32(last) + u32(behind))

    def subscriber(self) -> None:
        state, walk = self.state, self.walk
        roots = read_roots(state.get(sub("ProcessedRoots")))
        for para in walk.changed:
            self.drop(para, self.spec.subscriptions.get(para, ()))
            roots.pop(para, None)
            if para not in self.spec.subscriptions:
                state.put(sub("DisabledPublishers", para), None)
        if walk.changed:
            hashes = {para: set_hash(keys) for para, keys in self.spec.subscriptions.items()}
            state.put(sub("SubscriptionHash"), encode_roots(hashes) if hashes else None)
        for publisher in walk.publishers.values():
            self.settle(publisher, roots)
        state.put(sub("LastRelayParent"), u32(self.block.relay_number))
        for change in walk.changes:
            if walk.publishers[change.para].disabled is None:
                self.deliver(change)
        if self.spec.handler == "store":
            self.store_requested()
        state.put(sub("ProcessedRoots"), encode_roots(roots) if roots else None)
        cursor = walk.cursor
        state.put(sub("ProcessingCursor"), None if cursor is None else u32(cursor[0]) + cursor[1])
        self.remove_stale()

    def store_requested(self) -> None:
        """The handler `store` keeps the values of the requested keys that are present."""
        prefix = item("Consumer", "Requested")
        changes: dict[bytes, bytes | None] = {}
        for (child, key), value in self.walk.requested.items():
            name = b"\x00" + vec(key) if child is None else b"\x01" + vec(child) + vec(key)
            row = prefix + blake2b(name, digest_size=16).digest() + name
            stored = None if value is None else vec(value)
            if stored != self.state.get(row):
                changes[row] = stored
        if len(changes) * 25_000_000 > self.spec.ref_time:
            self.events.append(b"\x07")
            return
        for row, stored in changes.items():
            self.state.put(row, stored)

    def settle(self, publisher: Publisher, roots: dict[int, bytes]) -> None:
        """Disable a publisher, or keep what its walk found and its root if that is complete."""
        para = publisher.para
        if publisher.disabled is not None:
            self.drop(para, publisher.keys)
            roots.pop(para, None)
            self.state.put(sub("DisabledPublishers", para), bytes((publisher.disabled,)))
            self.events.append(b"\x03" + u32(para) + bytes((publisher.disabled,)))
        elif publisher.root is not None and not publisher.unchanged:
            kept = self.keep(publisher)
            if publisher.complete() and kept:
                roots[para] = publisher.root
            else:
                roots.pop(para, None)

    def keep(self, publisher: Publisher) -> bool:
        if self.spec.cache == NODES:
            return self.keep_nodes(publisher)
        if self.spec.cache == SLOTS:
            self.keep_slots(publisher)
        return True

    def keep_nodes(self, publisher: Publisher) -> bool:
        """Remove the nodes that left, or abandon the generation; add those walked.

        Whether the bytes fit.
        """
        state, para = self.state, publisher.para
        stored = info = read_info(state.get(sub("CacheInfo", para)))
        hits = publisher.hits
        if publisher.exact() and info[1] != len(hits):
            gone = publisher.gone
            if gone is not None and info[1] - len(gone) == len(hits):
                for name in gone:
                    state.put(generation_prefix(para, info[0]) + name, None)
                info = (
                    info[0],
                    info[1] - len(gone),
                    info[2] - sum(cost(len(node)) for node in gone.values()),
                )
            else:
                info = self.abandon(para, info)
                hits = set()
        waiting = read_stale(state.get(sub("StaleCaches")))
        if sum(other == para for other, _ in waiting) < 2:
            for name, node in publisher.walked.items():
                if name not in hits:
                    state.put(generation_prefix(para, info[0]) + name, node)
                    info = info[0], info[1] + 1, info[2] + cost(len(node))
        if info != stored:
            state.put(sub("CacheInfo", para), encode_info(info))
        if info[2] > self.spec.max_cache_bytes:
            self.drop(para, publisher.keys)
            return False
        return True

    def keep_slots(self, publisher: Publisher) -> None:
        """Write the hash seen at each slot whose keys are all done.

        Other slots that were walked get zeros.
        """
        layout = layout_of(publisher.keys)
        done: dict[int, int] = {}
        counts = dict(publisher.covered)
        for at in publisher.done:
            deepest = max(layout.paths[at].values(), default=-1)
            counts[deepest] = counts.get(deepest, 0) + 1
        for deepest, count in counts.items():
            index = deepest
            while index >= 0:
                done[index] = done.get(index, 0) + count
                index = layout.slots[index].above
        rows: dict[int, bytearray] = {}
        for index, count in done.items():
            slot = layout.slots[index]
            width = layout.rows[slot.row][1]
            row = rows.setdefault(
                slot.row, bytearray(publisher.rows.get(slot.row, bytes(32 * width)))
            )
            seen = publisher.seen.get(index, Z) if count == slot.high - slot.low else Z
            row[32 * slot.place : 32 * slot.place + 32] = seen
        for number, row in rows.items():
            if bytes(row) != publisher.rows.get(number):
                key = sub("CacheSlots", publisher.para) + layout.rows[number][0]
                self.state.put(key, bytes(row) if any(row) else None)

    def abandon(self, para: int, info: tuple[int, int, int]) -> tuple[int, int, int]:
        """Leave a generation to be removed, 100 rows a block."""
        waiting = read_stale(self.state.get(sub("StaleCaches")))
        self.state.put(sub("StaleCaches"), encode_stale([*waiting, (para, info[0])]))
        return info[0] + 1, 0, 0

    def drop(self, para: int, keys: tuple[bytes, ...]) -> None:
        """Abandon a publisher's nodes and remove its rows of slots."""
        info = read_info(self.state.get(sub("CacheInfo", para)))
        if info[1]:
            self.state.put(sub("CacheInfo", para), encode_info(self.abandon(para, info)))
        for suffix, _ in layout_of(keys).rows:
            self.state.put(sub("CacheSlots", para) + suffix, None)

    def deliver(self, change: Change) -> None:
        para, key, entry = change.para, change.key, change.entry
        ttl_state = None
        if entry is None:
            put_delivered(self.state, self.spec, para, key, None)
        else:
            left = entry[2] + entry[1] - self.block.relay_number
            ttl_state = b"\x02" if left <= 0 else b"\x01" + u32(min(left, (1 << 32) - 1))
            ttl_state = b"\x00" if entry[1] == 0 else ttl_state
            put_delivered(self.state, self.spec, para, key, (change.entry_hash, entry[1], entry[2]))
        failed = self.spec.handler == "store" and self.spec.ref_time < 25_000_000
        if self.spec.handler == "store" and not failed:
            full = item("Consumer", "Values") + twox64_concat(u32(para)) + twox64_concat(key)
            self.state.put(full, None if entry is None else vec(entry[0]))
        if failed:
            self.events.append(b"\x02" + u32(para) + key)
        elif entry is None:
            self.events.append(b"\x01" + u32(para) + key)
        else:
            self.events.append(b"\x00" + u32(para) + key + u32(len(entry[0])))
        kind = "removed" if entry is None else "updated"
        self.deliveries.append(Delivery(para, key, kind, change.entry_hash, ttl_state, failed))

    def remove_stale(self) -> None:
        """Remove the rows that the walk read of abandoned generations."""
        keys, finished = self.walk.stale
        for key in keys:
            self.state.put(key, None)
        waiting = read_stale(self.state.get(sub("StaleCaches")))
        for _ in range(finished):
            (para, _), *waiting = waiting
            info = sub("CacheInfo", para)
            if (
                all(other != para for other, _ in waiting)
                and not read_info(self.state.get(info))[1]
            ):
                self.state.put(info, None)
        self.state.put(sub("StaleCaches"), encode_stale(waiting))

    # Root calls

    def forget(self, para: int, keys: tuple[bytes, ...]) -> None:
        """Drop a publisher's cache and its processed root."""
        roots = read_roots(self.state.get(sub("ProcessedRoots")))
        roots.pop(para, None)
        self.state.put(sub("ProcessedRoots"), encode_roots(roots) if roots else None)
        self.drop(para, keys)

    def call(self, index: int, para: int) -> None:
        """Run `clear_publisher_cache`, `redeliver` or `enable_publisher`.

        A call that has nothing to do has no event.
        """
        state = self.state
        keys = read_spec(state.get(b":code") or b"").subscriptions.get(para, ())
        if index == 2:
            if state.get(sub("DisabledPublishers", para)) is not None:
                state.put(sub("DisabledPublishers", para), None)
                self.events.append(b"\x04" + u32(para))
            return
        if index == 1:
            self.forget(para, keys)
            clear_delivered(state, para, keys)
            self.events.append(b"\x06" + u32(para))
            return
        cached = read_info(state.get(sub("CacheInfo", para)))[1] or state.under(
            sub("CacheSlots", para)
        )
        if cached or para in read_roots(state.get(sub("ProcessedRoots"))):
            self.forget(para, keys)
            self.events.append(b"\x05" + u32(para))

    def set_code(self, after: Spec) -> None:
        """Put another runtime: carry delivered rows over and drop outdated caches.

        A cache is outdated if its policy or its keys changed.
        """
        state = self.state
        before = read_spec(state.get(b":code") or b"")
        if not possible(before, after):
            return
        rows = [
            (para, key, get_delivered(state, before, para, key))
            for para, key in carried(before, after)
        ]
        for para, keys in before.subscriptions.items():
            if not stays(before, after, para):
                clear_delivered(state, para, keys)
            else:
                for key in keys:
                    if key not in after.subscriptions.get(para, ()):
                        state.put(sub("LastDelivered", para) + key, None)
        for para, key, row in rows:
            if row is not None:
                put_delivered(state, after, para, key, row)
        for para in sorted(
            {*read_roots(state.get(sub("SubscriptionHash"))), *before.subscriptions}
        ):
            keys = before.subscriptions.get(para, ())
            if before.cache != after.cache:
                self.drop(para, keys)
            if before.subscriptions.get(para) != after.subscriptions.get(para):
                self.forget(para, keys)
        state.put(b":code", encode_spec(after))
        if NEW_CODE not in self.digest:
            self.digest.append(NEW_CODE)
            state.put(item("System", "Digest"), encode_digest(self.digest))


def encode_spec(spec: Spec) -> bytes:
    listed = sorted(spec.subscriptions.items())
    rows = b"".join(u32(para) + compact(len(keys)) + b"".join(keys) for para, keys in listed)
    depth = b"\x00" if spec.max_depth is None else b"\x01" + u32(spec.max_depth)
    return b"".join(
        (
            u32(spec.para), u32(spec.version), compact(len(spec.subscriptions)), rows,
            u32(spec.max_pov_size), bytes((spec.reserve_minimum, spec.cache, spec.metered)),
            u32(spec.max_cache_bytes), depth, u32(spec.max_value_length), u32(spec.max_stored_keys),
            vec(spec.handler.encode()),
            spec.ref_time.to_bytes(8, "little"), spec.proof_size.to_bytes(8, "little"),
            encode_flags(spec),
        )
    )  # fmt: skip


# The checks


class Offence(NamedTuple):
    verdict: str
    subject: list[bytes]


@dataclass
class Outcome:
    """The judgement of a candidate that decodes."""

    offences: list[Offence]
    pre_state_root: bytes
    post_state_root: bytes | None
    deliveries: list[Delivery]
    walk: Walk | None


def signed(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        eddsa.new(eddsa.import_public_key(key), "rfc8032").verify(message, signature)
    except ValueError:
        return False
    return True


def seal_offences(
    authorities: list[bytes], parent: Header, block: Candidate, slot_now: int
) -> Iterator[Offence]:
    """The subject of a wrong signature is the first authority that did sign, else the signature."""
    header, slot = block.header, block.header.slot()
    others = [entry[:2] for entry in header.digest if entry != NEW_CODE]
    if slot is None or others != [(6, b"aura"), (5, b"aura")] or header.digest[-1] == NEW_CODE:
        yield Offence("BadSeal", [])
        return
    seal, message = header.digest[-1][2], hash32(header.encode(sealed=False))
    if not signed(authorities[slot % len(authorities)], message, seal):
        signer = next((key for key in authorities if signed(key, message, seal)), seal)
        yield Offence("BadSeal", [signer])
    before = parent.slot()
    if slot > slot_now or (before is not None and slot <= before):
        yield Offence("BadSeal", [])
    if header.extrinsics_root != block.extrinsics_root():
        yield Offence("BadSeal", [header.extrinsics_root])


def header_offences(
    state: State, spec: Spec, parent: Header, block: Candidate
) -> Iterator[Offence]:
    header, parent_hash = block.header, hash32(parent.encode())
    if header.parent_hash != parent_hash or header.number != parent.number + 1:
        yield Offence("BadParent", [header.parent_hash, parent_hash])
    last = last_relay_parent(state)
    if last is not None and block.relay_number < last:
        yield Offence("RelayParentDecreased", [])
    if block.parent_head != parent.encode():
        yield Offence("BadValidationData", [block.parent_head])
    if len(block.descendants) != spec.relay_parent_offset + bool(spec.relay_parent_offset):
        yield Offence("BadDescendants", [])
    if block.max_pov_size != spec.max_pov_size:
        yield Offence("BadValidationData", [])
    downward = sum(len(message) for _, message in block.downward)
    horizontal = sum(len(message) for _, _, message in block.horizontal)
    if downward > spec.share():
        yield Offence("MessagesMisreported", [])
    if horizontal > max(spec.share() - downward, 0) + spec.share():
        yield Offence("MessagesMisreported", [])
    if block.horizontal and block.hashed_horizontal:
        sender, sent_at, _ = block.horizontal[-1]
        first, first_at, _ = block.hashed_horizontal[0]
        if (first_at, first) < (sent_at, sender):
            yield Offence("MessagesMisreported", [])
    ordered = sorted(block.proof)
    twice = sorted({node for at, node in enumerate(ordered) if at and node == ordered[at - 1]})
    if twice:
        yield Offence("DuplicateNode", twice)
    smaller = [node for at, node in enumerate(block.proof) if at and node < block.proof[at - 1]]
    if smaller:
        yield Offence("UnsortedProof", smaller[:1])


def message_offences(
    state: State, block: Candidate, statics: Statics, share: int
) -> Iterator[Offence]:
    found = downward_heads(state, block, statics).end
    if found != statics.dmq_head:
        yield Offence("MessagesMisreported", [found, statics.dmq_head])
    heads = horizontal_heads(state, block, statics)
    senders = [sender for sender, _, _ in [*block.horizontal, *block.hashed_horizontal]]
    if any(sender not in statics.hrmp_heads for sender in senders):
        yield Offence("MessagesMisreported", [])
    for sender, target in statics.hrmp_heads.items():
        if heads[sender].end != target:
            yield Offence("MessagesMisreported", [heads[sender].end, target])
    if block.hashed_downward and not block.downward:
        yield Offence("AdvancementRule", [])
    if block.hashed_horizontal:
        size = sum(len(message) for _, _, message in block.horizontal)
        largest = statics.largest.get(block.hashed_horizontal[0][0], 0)
        if not block.horizontal or size + largest <= share:
            yield Offence("AdvancementRule", [])


def judge(
    parent: Header,
    entries: dict[bytes, bytes],
    block: Candidate,
    relay_root: bytes | None,
    slot_now: int,
) -> Outcome:
    """All offences of a candidate, in order, and what executing it gives."""
    state, before = State(entries), State(entries)
    keys = item("Aura", "Authorities")
    for what, key in ((":code", b":code"), ("Aura::Authorities", keys)):
        if key not in entries:
            raise BadCase(f"pre_state: {what} is missing")
    spec = read_spec(entries[b":code"])
    authorities = decoded(
        "the authorities", entries[keys], lambda reader: reader.each(lambda: reader.take(32))
    )
    offences = [
        *seal_offences(authorities, parent, block, slot_now),
        *header_offences(before, spec, parent, block),
    ]
    walk, execution, post = None, None, None
    if relay_root is None:
        offences.append(Offence("RootMismatch", []))
    else:
        if block.relay_root != relay_root:
            offences.append(Offence("RootMismatch", [block.relay_root, relay_root]))
        headers = block.descendants
        walk = Walk(before, spec, relay_root, block.proof, block.weight, headers=headers)
        walk.run(block.downward)
        if walk.statics.complete:
            right_number = len(headers) == spec.relay_parent_offset + 1 > 1
            if right_number and not sealed_chain(headers, relay_root, walk.statics):
                offences.append(Offence("BadDescendants", []))
            offences += message_offences(before, block, walk.statics, spec.share())
        if walk.missing is not None:
            name, key = walk.missing
            found = (
                ("RootMismatch", [name])
                if name == relay_root
                else ("OmittedBelowBudget", [name, key])
            )
            offences.append(Offence(*found))
        else:
            unused = [name for name in walk.source if name not in walk.taken]
            if unused:
                offences.append(Offence("UnusedNodes", unused))
            if len(block.body) > 1:
                offences.append(Offence("BadExtrinsic", [block.body[1]]))
            else:
                execution = Execution(state, spec, parent, block, walk)
                post = execution.run()
                if post != block.header.state_root:
                    offences.append(Offence("StateRootMismatch", [block.header.state_root, post]))
                if [entry for entry in block.header.digest if entry[0] != 5] != execution.digest:
                    offences.append(Offence("StateRootMismatch", []))
    offences.sort(key=lambda offence: VERDICTS.index(offence.verdict))
    deliveries = [] if execution is None else execution.deliveries
    return Outcome(offences, build(entries, 1), post, deliveries, walk)


# Cases and fixtures


def raw(place: str, text: object) -> bytes:
    """The bytes of `0x…`. Raises `BadCase`."""
    try:
        if isinstance(text, str) and text.startswith("0x"):
            return bytes.fromhex(text[2:])
    except ValueError:
        pass
    raise BadCase(f"{place}: not 0x and pairs of hexadecimal digits")


NAMES = {str: "string", int: "whole number", list: "list", dict: "object"}


def part(case: Any, place: str, kind: type) -> Any:
    """The field `place` of a case, as `relay.slot_now`, if it is of this kind. Raises `BadCase`."""
    for name in place.split("."):
        if not isinstance(case, dict) or name not in case:
            raise BadCase(f"{place}: missing")
        case = case[name]
    if type(case) is not kind:
        raise BadCase(f"{place}: not a JSON {NAMES[kind]}")
    return case


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


def parent_header(case: Any) -> Header:
    try:
        return decoded(
            "parent_header", raw("parent_header", part(case, "parent_header", str)), read_header
        )
    except Undecodable as why:
        raise BadCase(str(why)) from None


def judged(case: Any) -> Outcome:
    """The outcome of a case or fixture.

    Raises `Undecodable` for the candidate, `BadCase` for all else.
    """
    block = read_candidate(raw("candidate", part(case, "candidate", str)))
    parent = parent_header(case)
    entries = {}
    for at, pair in enumerate(part(case, "pre_state", list)):
        if not isinstance(pair, list) or len(pair) != 2:
            raise BadCase(f"pre_state[{at}]: not a key and a value")
        key, value = (raw(f"pre_state[{at}]", each) for each in pair)
        entries[key] = value
    slot = part(case, "relay.slot_now", int)
    root = part(case, "relay", dict).get("storage_root")
    try:
        return judge(
            parent, entries, block, None if root is None else raw("relay.storage_root", root), slot
        )
    except Undecodable as why:
        raise BadCase(f"pre_state: {why}") from None


def answer(case: Any) -> dict[str, Any]:
    """The line that `pubsub fuzz --verifier` reads. Raises `BadCase`."""
    name = part(case, "id", int)
    try:
        outcome = judged(case)
    except Undecodable as why:
        return {"id": name, "undecodable": str(why)}
    out = {
        "id": name,
        "judged": VERDICTS,
        "offences": [offence.verdict for offence in outcome.offences],
    }
    if not outcome.offences and outcome.post_state_root is not None:
        out["post_state_root"] = hexed(outcome.post_state_root)
    return out


def expected(outcome: Outcome) -> dict[str, Any]:
    """The field `expected` of a fixture."""
    refused = bool(outcome.offences)
    root = (
        outcome.pre_state_root
        if refused or outcome.post_state_root is None
        else outcome.post_state_root
    )
    walk = None if refused else outcome.walk
    cursor = None if walk is None else walk.cursor
    return {
        "verdict": outcome.offences[0].verdict if refused else None,
        "evidence": [
            {"verdict": each.verdict, "subject": list(map(hexed, each.subject))}
            for each in outcome.offences
        ],
        "post_state_root": hexed(root),
        "deliveries": [
            {
                **vars(each),
                "key": hexed(each.key),
                "entry_hash": hexed(each.entry_hash),
                "ttl_state": None if each.ttl_state is None else hexed(each.ttl_state),
            }
            for each in (() if refused else outcome.deliveries)
        ],
        "used": None if walk is None else walk.used,
        "cursor": None if cursor is None else [cursor[0], hexed(cursor[1])],
    }


def check_fixture(file: Path, *, explain: bool) -> bool:
    """Judge a fixture and print what differs.

    Raises `BadCase`, `Undecodable`, `OSError`, `ValueError` for no JSON.
    """
    fixture = json.loads(file.read_text(encoding="utf-8"))
    outcome = judged(fixture)
    wanted = part(fixture, "expected", dict)
    if explain and outcome.walk is not None:
        print(
            f"{part(fixture, 'name', str)}: budget {outcome.walk.budget}, last start"
            f" {outcome.walk.last_start}"
        )
        print("\n".join(f"  {line}" for line in outcome.walk.steps))
    found = expected(outcome)
    if outcome.pre_state_root != parent_header(fixture).state_root:
        found["post_state_root"] = "the pre-state is not the parent's"
    wrong = [name for name, value in wanted.items() if found.get(name) != value]
    for name in wrong:
        print(
            f"{file.name}: {name}: expected {wanted[name]}, found"
            f" {found.get(name, 'no such field')}"
        )
    return not wrong


def main() -> int:
    words = sys.argv[1:]
    explain = words[:1] == ["--explain"]
    files = words[explain:]
    place, good = "standard input", 0
    try:
        if not files:
            for number, line in enumerate(sys.stdin, 1):
                place = f"line {number}"
                print(json.dumps(answer(json.loads(line))), flush=True)
            return 0
        for place in files:
            good += check_fixture(Path(place), explain=explain)
    except (BadCase, Undecodable, OSError, ValueError, RecursionError) as why:
        print(f"{place}: {why}", file=sys.stderr)
        return 2
    print(f"{len(files)} judged, {len(files) - good} differ")
    return int(good < len(files))


if __name__ == "__main__":
    raise SystemExit(main())
