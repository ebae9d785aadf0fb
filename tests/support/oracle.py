"""The rules of the walk and of what it changes, said a second time: slowly, item by item, from the child root.

Written from the words of PS-40 to PS-68 (and, for `slots`, of the six points that describe it), with decoded nodes, hex
strings for nibbles, plain sets and dicts, and no code shared with the runtime. Where the words leave something open,
the choice stands in a comment that begins with "Choice".
"""

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

ROW_COST = 160
INFO_ROW = 12 + ROW_COST
EMPTY = bytes.fromhex("03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314")


def h256(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def compact(n: int) -> bytes:
    if n < 1 << 6:
        return bytes([n << 2])
    if n < 1 << 14:
        return (n << 2 | 1).to_bytes(2, "little")
    return (n << 2 | 2).to_bytes(4, "little")


def cost(node: bytes) -> int:
    return len(compact(len(node))) + len(node)


# Nodes


class Malformed(Exception):
    pass


@dataclass
class Node:
    partial: str
    inline_value: bytes | None = None
    value_hash: bytes | None = None
    children: dict[str, bytes] = field(default_factory=dict)
    empty: bool = False


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, n: int) -> bytes:
        if len(self.data) < n:
            raise Malformed
        out, self.data = self.data[:n], self.data[n:]
        return out

    def compact(self) -> int:
        first = self.take(1)[0]
        if first & 3 == 0:
            return first >> 2
        if first & 3 == 1:
            return int.from_bytes(bytes([first]) + self.take(1), "little") >> 2
        if first & 3 == 2:
            return int.from_bytes(bytes([first]) + self.take(3), "little") >> 2
        raise Malformed


def decode(data: bytes) -> Node:
    rest = _Bytes(data)
    head = rest.take(1)[0]
    if head == 0:
        return Node("", empty=True)
    kinds = (
        (0b01, 6, True, "inline"),
        (0b10, 6, False, None),
        (0b11, 6, False, "inline"),
        (0b001, 5, True, "hash"),
        (0b0001, 4, False, "hash"),
    )
    kind = next((kind for kind in kinds if head >> kind[1] == kind[0]), None)
    if kind is None:
        raise Malformed
    _, bits, leaf, value = kind
    count = head & ((1 << bits) - 1)
    if count == (1 << bits) - 1:
        while (more := rest.take(1)[0]) == 255:
            count += 255
        count += more
    text = rest.take((count + 1) // 2).hex()
    if count % 2:
        if text[0] != "0":
            raise Malformed
        text = text[1:]
    node = Node(text)
    present = 0
    if not leaf:
        present = int.from_bytes(rest.take(2), "little")
        if not present:
            raise Malformed
    if value == "inline":
        node.inline_value = rest.take(rest.compact())
    elif value == "hash":
        node.value_hash = rest.take(32)
    for nibble in range(16):
        if present >> nibble & 1:
            node.children["0123456789abcdef"[nibble]] = rest.take(rest.compact())
    return node


def common(a: str, b: str) -> int:
    n = 0
    while n < len(a) and n < len(b) and a[n] == b[n]:
        n += 1
    return n


# The model


class Stop(Exception):
    pass


class Missing(Exception):
    pass


class Fault(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason


@dataclass
class Outcome:
    taken: set[bytes]
    used: int
    cursor: tuple[int, bytes] | None
    deliveries: list[tuple[int, bytes, str, bytes | None]]


Row = tuple[bytes, int, int]
"""Entry hash, ttl, when_inserted."""


@dataclass
class Found:
    """How an item's walk ended: value, absent, skip (a slot vouches), known (its leaf is the one delivered)."""

    what: str
    row: Row | None = None
    digest: bytes = b""
    data: bytes | None = None


def known_leaf(rest: str, entry_hash: bytes) -> bytes:
    """The hash of the leaf that has the nibbles `rest` left and names a detached entry."""
    head = bytes([0x20 + len(rest)]) if len(rest) < 31 else bytes([0x3F, len(rest) - 31])
    return h256(head + bytes.fromhex("0" * (len(rest) % 2) + rest) + entry_hash)


@dataclass
class Met:
    """What one walk learned of one publisher."""

    keys: list[bytes]
    trusted: bool
    root: bytes = b""
    known_root: bool = False
    unchanged: bool = False
    disabled: str | None = None
    resolved: set[bytes] = field(default_factory=set)
    walked: dict[bytes, bytes] = field(default_factory=dict)
    paid: set[bytes] = field(default_factory=set)
    info_charged: bool = False
    changes: list[tuple[int, bytes, bytes, bytes | None]] = field(default_factory=list)
    rows_read: set[str] = field(default_factory=set)
    skipped_at: dict[bytes, str] = field(default_factory=dict)
    seen: dict[str, bytes | None] = field(default_factory=dict)


@dataclass
class Model:
    policy: str
    subs: dict[int, list[bytes]]
    max_item_cost: int
    max_depth: int | None = 16
    max_cache_bytes: int = 4 << 20
    metered: bool = True
    known: dict[int, list[bytes]] = field(default_factory=dict)
    roots: dict[int, bytes] = field(default_factory=dict)
    cursor: tuple[int, bytes] | None = None
    last: dict[tuple[int, bytes], Row] = field(default_factory=dict)
    disabled: dict[int, str] = field(default_factory=dict)
    cache: dict[int, dict[bytes, bytes]] = field(default_factory=dict)
    slots: dict[int, dict[str, dict[str, bytes]]] = field(default_factory=dict)

    def block(self, nodes: dict[bytes, bytes], relay_root: bytes, static_keys: list[bytes], budget: int) -> Outcome:
        return _Block(self, nodes, relay_root, budget).run(static_keys)

    def forget(self, para: int) -> None:
        self.roots.pop(para, None)
        self.drop(para)

    def drop(self, para: int) -> None:
        self.cache.pop(para, None)
        self.slots.pop(para, None)

    def redeliver(self, para: int) -> None:
        self.forget(para)
        self.last = {item: row for item, row in self.last.items() if item[0] != para}

    def upgrade(self, policy: str, subs: dict[int, list[bytes]]) -> None:
        """PS-33 with PS-63: a changed key set is forgotten, a changed policy starts from nothing."""
        for para in {*self.subs, *subs}:
            if self.subs.get(para) != subs.get(para):
                self.forget(para)
        if "slots" in (policy, self.policy):
            # Choice: packed rows are carried over at once, so dropped keys are lost at once; else with the next block.
            kept = {para: set(self.subs.get(para, ())) & set(subs.get(para, ())) for para in subs}
            self.last = {item: row for item, row in self.last.items() if item[1] in kept.get(item[0], ())}
        if policy != self.policy:
            self.cache.clear()
            self.slots.clear()
        self.policy, self.subs = policy, subs


def slot_positions(keys: list[bytes]) -> dict[str, list[str]]:
    return _slot_positions(tuple(keys))


@lru_cache(maxsize=256)
def _slot_positions(keys: tuple[bytes, ...]) -> dict[str, list[str]]:
    """Point 1: row prefix -> nibbles with slots, wherever at least 6 subscribed keys branch."""
    texts = [key.hex() for key in keys]
    rows: dict[str, list[str]] = {}
    for depth in range(64):
        for prefix in {text[:depth] for text in texts}:
            below = [text for text in texts if text.startswith(prefix)]
            nibbles = sorted({text[depth] for text in below})
            if len(below) >= 6 and len(nibbles) > 1:
                rows[prefix] = nibbles
    return rows


class _Block:
    def __init__(self, model: Model, nodes: dict[bytes, bytes], relay_root: bytes, budget: int) -> None:
        self.m = model
        self.nodes = nodes
        self.relay_root = relay_root
        self.budget = budget
        self.used = 0
        self.taken: set[bytes] = set()
        self.met: dict[int, Met] = {}
        self.rows_read: set[tuple[int, object]] = set()
        self.order: list[tuple[int, bytes, bytes, bytes | None]] = []

    # Reading

    def stop_rule(self) -> None:
        """PS-51."""
        if max(self.budget - self.used, 0) < self.m.max_item_cost + ROW_COST:
            raise Stop

    def from_proof(self, node_hash: bytes, *, free: bool = False) -> bytes:
        if node_hash not in self.nodes:
            raise Missing
        node = self.nodes[node_hash]
        if node_hash not in self.taken:
            self.taken.add(node_hash)
            if not free:
                self.used += cost(node)
        return node

    def top_node(self, node_hash: bytes) -> bytes:
        if node_hash not in self.taken:
            self.stop_rule()
        return self.from_proof(node_hash)

    def static(self, key: bytes) -> None:
        """PS-44: the whole path, and the value, free."""
        text, at, ref = key.hex(), 0, self.relay_root
        data = self.from_proof(ref, free=True)
        while True:
            node = decode(data)
            if node.empty or not text[at:].startswith(node.partial):
                return
            at += len(node.partial)
            if at == len(text):
                if node.value_hash is not None:
                    self.from_proof(node.value_hash, free=True)
                return
            child = node.children.get(text[at])
            if child is None:
                return
            at += 1
            data = self.from_proof(child, free=True) if len(child) == 32 else child

    def top_lookup(self, key: bytes) -> bytes | None:
        """The child root of a publisher, None when proven absent (PS-42)."""
        text, at = key.hex(), 0
        data = self.top_node(self.relay_root)
        while True:
            try:
                node = decode(data)
            except Malformed:
                raise Fault("Undecodable") from None
            if node.empty or not text[at:].startswith(node.partial):
                return None
            at += len(node.partial)
            if at == len(text):
                if node.value_hash is not None:
                    raise Fault("Undecodable")
                if node.inline_value is not None and len(node.inline_value) != 32:
                    raise Fault("Undecodable")
                return node.inline_value
            child = node.children.get(text[at])
            if child is None:
                return None
            at += 1
            data = self.top_node(child) if len(child) == 32 else child

    def child_node(self, para: int, node_hash: bytes) -> bytes:
        """PS-43."""
        met = self.met[para]
        if node_hash in self.taken:
            node = self.nodes[node_hash]
        elif node_hash in met.paid:
            node = self.m.cache[para][node_hash]
        else:
            self.stop_rule()
            cached = None
            if self.m.policy == "nodes" and met.trusted:
                if not met.info_charged:
                    # Choice: the row that counts a publisher's cache is read, so it is charged, once, before the first
                    # look into the cache, and the stop rule is asked again before the node is read.
                    met.info_charged = True
                    if self.m.metered:
                        self.used += INFO_ROW
                        self.stop_rule()
                cached = self.m.cache.get(para, {}).get(node_hash)
            if cached is not None:
                if self.m.metered:
                    self.used += cost(cached) + ROW_COST
                met.paid.add(node_hash)
                node = cached
            else:
                node = self.from_proof(node_hash)
        met.walked[node_hash] = node
        return node

    def row(self, para: int, key: bytes) -> Row | None:
        """PS-45: `LastDelivered`, charged when first read in this block."""
        if self.m.policy == "slots":
            # Choice: under `slots` sixteen items, in key order, stand in one row, charged its stored length too.
            keys = self.met[para].keys
            at = keys.index(key) // 16
            together = keys[16 * at : 16 * at + 16]
            stored = 40 * len(together) if any((para, k) in self.m.last for k in together) else 0
            row: tuple[int, object] = (para, at)
        else:
            stored, row = 0, (para, key)
        if row not in self.rows_read:
            self.stop_rule()
            self.used += ROW_COST + stored
            self.rows_read.add(row)
        return self.m.last.get((para, key))

    def slot(self, para: int, position: str, reference: bytes) -> bool:
        """Points 2 and 3: whether the slot at `position` vouches for `reference`."""
        met, prefix = self.met[para], position[:-1]
        rows = self.m.slots.get(para, {}) if met.trusted else {}
        if prefix not in met.rows_read:
            if met.trusted:
                self.stop_rule()
                if self.m.metered:
                    width = len(slot_positions(met.keys)[prefix]) if prefix in rows else 0
                    self.used += ROW_COST + 32 * width
            met.rows_read.add(prefix)
        met.seen[position] = reference
        return rows.get(prefix, {}).get(position[-1]) == reference

    # The walk

    def run(self, static_keys: list[bytes]) -> Outcome:
        m = self.m
        for key in static_keys:
            self.static(key)
        for entries in (m.roots, m.known):
            # Choice: an absent map has no encoded length.
            self.used += ROW_COST + (len(compact(len(entries))) + 36 * len(entries) if entries else 0)
        changed = {p for p in {*m.known, *m.subs} if m.known.get(p) != m.subs.get(p)}
        everything = [(p, key) for p in sorted(m.subs) for key in sorted(m.subs[p])]
        start = [item for item in everything if m.cursor is None or item >= m.cursor]
        rotation = start + [item for item in everything if item not in start]
        cursor = None
        for para, key in rotation:
            try:
                self.item(para, key, changed)
            except Stop:
                cursor = (para, key)
                break
            except Fault as fault:
                self.met[para].disabled = fault.reason
        deliveries = self.apply(changed)
        m.cursor = cursor
        return Outcome(self.taken, self.used, cursor, deliveries)

    def item(self, para: int, key: bytes, changed: set[int]) -> None:
        m = self.m
        if para in m.disabled:
            return
        if para not in self.met:
            self.met[para] = Met(sorted(m.subs[para]), trusted=para not in changed)
            root = self.top_lookup(b":child_storage:default:pubsub" + para.to_bytes(4, "little"))
            met = self.met[para]
            met.root, met.known_root = root if root is not None else EMPTY, True
            met.unchanged = met.trusted and m.roots.get(para) == met.root
        met = self.met[para]
        if met.unchanged or met.disabled:
            return
        found = self.descend(para, key)
        if found.what == "absent" and found.row is not None:
            self.order.append((para, key, found.row[0], None))
        if found.what == "value" and (found.row is None or found.row[0] != found.digest):
            data = found.data
            if data is None:
                if found.digest not in self.taken:
                    self.stop_rule()
                data = self.from_proof(found.digest)
            parse_entry(data)
            self.order.append((para, key, found.digest, data))
        met.resolved.add(key)

    def descend(self, para: int, key: bytes) -> Found:
        """One item, always from the child root."""
        m, met, text = self.m, self.met[para], key.hex()
        slots = m.policy == "slots"
        rows = slot_positions(met.keys) if slots else {}
        mine = [prefix + text[len(prefix)] for prefix in sorted(rows, key=len) if text.startswith(prefix)]
        if met.root == EMPTY:
            return self.absent(para, key, 0, 0, mine)
        data, at, path = self.child_node(para, met.root), 0, 1
        while True:
            start = at
            try:
                node = decode(data)
            except Malformed:
                raise Fault("Undecodable") from None
            if node.empty or not text[at:].startswith(node.partial):
                return self.absent(para, key, start, at + common(text[at:], node.partial), mine)
            at += len(node.partial)
            if at == 64:
                for q in mine:
                    if len(q) > start:
                        met.seen[q] = None
                row = self.row(para, key)
                if node.value_hash is not None:
                    return Found("value", row, node.value_hash)
                if node.inline_value is not None:
                    return Found("value", row, h256(node.inline_value), node.inline_value)
                return Found("absent", row)
            child = node.children.get(text[at])
            if child is None:
                return self.absent(para, key, start, at, mine)
            at += 1
            path += 1
            if m.max_depth is not None and path > m.max_depth:
                raise Fault("TrieDepthExceeded")
            hashed = len(child) == 32
            for q in mine:
                if start < len(q) < at:
                    met.seen[q] = None
            here = next((q for q in mine if len(q) == at), None)
            if here is not None and self.slot(para, here, child if hashed else h256(child)):
                met.skipped_at[key] = here
                return Found("skip")
            if slots and hashed and not any(k != key and k.hex()[:at] == text[:at] for k in met.keys):
                # Point 4: the row first, then the leaf only when it is not the one that the row implies.
                row = self.row(para, key)
                if row is not None and known_leaf(text[at:], row[0]) == child:
                    return Found("known", row)
            data = self.child_node(para, child) if hashed else child

    def absent(self, para: int, key: bytes, start: int, at: int, mine: list[str]) -> Found:
        """Point 3, for an item that parts from the trie at nibble `at`, in a node that starts at `start`."""
        met = self.met[para]
        first = True
        for q in mine:
            if start < len(q) <= at:
                met.seen[q] = None
            elif len(q) > at:
                if first and self.slot(para, q, EMPTY):
                    met.skipped_at[key] = q
                    return Found("skip")
                met.seen[q] = EMPTY
                first = False
        return Found("absent", self.row(para, key))

    # What it changes

    def apply(self, changed: set[int]) -> list[tuple[int, bytes, str, bytes | None]]:
        m = self.m
        for para in sorted(changed):
            m.forget(para)
            keys = m.subs.get(para, [])
            m.last = {item: row for item, row in m.last.items() if item[0] != para or item[1] in keys}
            if not keys:
                # Choice: a publisher nobody subscribes to any more is not remembered as disabled either.
                m.disabled.pop(para, None)
        m.known = {para: sorted(keys) for para, keys in m.subs.items()}
        for para, met in self.met.items():
            if met.disabled:
                m.forget(para)
                m.disabled[para] = met.disabled
                continue
            if not met.known_root or met.unchanged:
                continue
            complete = met.resolved == set(met.keys)
            kept = True
            if m.policy == "nodes":
                if complete:
                    m.cache[para] = dict(met.walked)
                elif met.root == EMPTY:
                    m.cache.pop(para, None)
                else:
                    m.cache[para] = {**m.cache.get(para, {}), **met.walked}
                if sum(map(cost, m.cache.get(para, {}).values())) > m.max_cache_bytes:
                    m.cache.pop(para)
                    kept = False
                if not m.cache.get(para):
                    m.cache.pop(para, None)
            elif m.policy == "slots":
                self.write_slots(para, met)
            if complete and kept:
                m.roots[para] = met.root
            else:
                m.roots.pop(para, None)
        out = []
        for para, key, digest, data in self.order:
            if self.met[para].disabled:
                continue
            if data is None:
                m.last.pop((para, key))
                out.append((para, key, "removed", None))
            else:
                value, ttl, when = parse_entry(data)
                m.last[para, key] = (digest, ttl, when)
                out.append((para, key, "updated", value))
        return out

    def write_slots(self, para: int, met: Met) -> None:
        """Point 5."""
        rows = self.m.slots.get(para, {})
        for prefix, nibbles in slot_positions(met.keys).items():
            touched: dict[str, bytes | None] = {}
            for nibble in nibbles:
                q = prefix + nibble
                below = [key for key in met.keys if key.hex().startswith(q)]
                mine = [
                    key
                    for key in below
                    if key in met.resolved and (key not in met.skipped_at or len(met.skipped_at[key]) > len(q))
                ]
                if mine:
                    whole = all(key in met.resolved for key in below)
                    touched[nibble] = met.seen.get(q) if whole else None
            if not touched:
                continue
            # Choice: a row that was not read is not read for its upkeep either; what it held is given up.
            row = dict(rows.get(prefix, {})) if prefix in met.rows_read else {}
            for nibble, reference in touched.items():
                row.pop(nibble, None)
                if reference is not None:
                    row[nibble] = reference
            rows[prefix] = row
            if not row:
                del rows[prefix]
        if rows:
            self.m.slots[para] = rows
        else:
            self.m.slots.pop(para, None)


def parse_entry(data: bytes) -> tuple[bytes, int, int]:
    rest = _Bytes(data)
    try:
        value = rest.take(rest.compact())
        ttl, when = int.from_bytes(rest.take(4), "little"), int.from_bytes(rest.take(4), "little")
    except Malformed:
        raise Fault("Undecodable") from None
    if rest.data:
        raise Fault("Undecodable")
    return value, ttl, when
