"""docs/worked-cases.md: the tiny blocks of `support.worked`, cut up, with every hash, cost and step of the walk."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Any

from support.worked import BOTH, FIRST, LONG, PARA, PUBLISHER, SECOND, SHORT, THIRD, UNASKED, Case, relay

from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header, turn_of
from pubsub_emulator.primitives.pubsub import PublishedEntry, encode_ttl_state, node_cost, publisher_root_key
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST, RuntimeSpec, key_set_hash, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, plan
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.block import Candidate
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES, PARACHAIN_ID
from pubsub_emulator.trie.codec import CHILDREN

Cut = list[tuple[str, bytes]]
LONGEST = 120
"""Bytes that are shown in full."""

NAMES = {
    item.prefix: f"{item.pallet}::{item.item}"
    for item in (
        system.NUMBER,
        system.PARENT_HASH,
        system.BLOCK_HASH,
        system.DIGEST,
        system.EVENT_COUNT,
        items.PROCESSED_ROOTS,
        items.PROCESSING_CURSOR,
        items.LAST_DELIVERED,
        items.LAST_DELIVERED_PACKED,
        items.SUBSCRIPTION_HASH,
        items.DISABLED_PUBLISHERS,
        items.LAST_RELAY_PARENT,
        items.CACHED_TRIE_NODES,
        items.CACHE_INFO,
        items.STALE_CACHES,
        items.CACHE_SLOTS,
        AUTHORITIES,
        PARACHAIN_ID,
    )
} | {system.EVENTS: "System::Events"}

STATIC = {
    storage_keys.ACTIVE_CONFIG: "Configuration::ActiveConfig",
    storage_keys.CURRENT_SLOT: "Babe::CurrentSlot",
    publisher_root_key(PUBLISHER): "child root of 1000",
    FIRST: "key `10…`",
    SECOND: "key `20…`",
    THIRD: "key `30…`",
}


def shown(data: bytes) -> str:
    """Bytes as the page has them; long ones are shortened in the middle."""
    if len(data) <= LONGEST:
        return f"`{data.hex()}`" if data else "nothing"
    return f"`{data[:24].hex()}…{data[-16:].hex()}` ({len(data):,} bytes)"


def name_of(key: bytes) -> str:
    """A storage key: its item, and what follows the prefix."""
    if key == storage_keys.CODE:
        return "`:code`"
    name = NAMES[key[:32]]
    return f"`{name}`" + (f" `{key[32:].hex()}`" if key[32:] else "")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A table's lines, and an empty one."""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"
    yield ""


# Bytes


def header_cut(header: Header) -> Cut:
    """The header's bytes, field by field."""
    out = [
        ("parent_hash", header.parent_hash),
        (f"number {header.number}", encode_compact(header.number)),
        ("state_root", header.state_root),
        ("extrinsics_root", header.extrinsics_root),
        (f"digest: {len(header.digest)} items", encode_compact(len(header.digest))),
    ]
    for item in header.digest:
        kind = {5: "seal", 6: "pre-runtime"}[item.kind]
        what = f"slot {int.from_bytes(item.data, 'little')}" if item.kind == 6 else "signature"
        out += [
            (f"{kind}, engine `aura`", bytes((item.kind,)) + item.engine),
            (f"{len(item.data)} bytes", encode_compact(len(item.data))),
            (what, item.data),
        ]
    return out


def candidate_cut(block: Candidate) -> Cut:
    """All bytes of a candidate, in order."""
    inherent = block.inherent
    length = len(inherent.encode()) + 3
    out = [
        *header_cut(block.header),
        (f"extrinsics: {1 + len(block.extrinsics)}", encode_compact(1 + len(block.extrinsics))),
        (f"{length} bytes", encode_compact(length)),
        ("bare `set_validation_data`", b"\x05\x01\x00"),
        (f"relay_parent_number {inherent.relay_parent_number}", inherent.relay_parent_number.to_bytes(4, "little")),
        ("relay_parent_storage_root", inherent.relay_parent_storage_root),
        (f"{len(inherent.proof)} nodes", encode_compact(len(inherent.proof))),
    ]
    out += [
        (f"node {at}: {len(node)} bytes, then the node", encode_bytes(node)) for at, node in enumerate(inherent.proof)
    ]
    out += [
        ("no downward messages", b"\x00"),
        ("no horizontal messages", b"\x00"),
        (f"messages_used {inherent.messages_used}", inherent.messages_used.to_bytes(4, "little")),
    ]
    out += [(f"extrinsic {at}", raw) for at, raw in enumerate(block.extrinsics, 1)]
    assert b"".join(data for _, data in out) == block.encode()
    return out


def spec_cut(spec: RuntimeSpec) -> Cut:
    """The bytes of a runtime, field by field."""
    weight = spec.handler_weight
    out = [
        (f"para_id {spec.para_id}", spec.para_id.to_bytes(4, "little")),
        (f"spec_version {spec.spec_version}", spec.spec_version.to_bytes(4, "little")),
        (f"publishers: {len(spec.subscriptions)}", encode_compact(len(spec.subscriptions))),
    ]
    for para, keys in spec.subscriptions.items():
        out += [(f"publisher {para}", para.to_bytes(4, "little")), (f"{len(keys)} keys", encode_compact(len(keys)))]
        out += [(f"key {at}", bytes(key)) for at, key in enumerate(keys)]
    depth = b"\x00" if spec.max_trie_depth is None else b"\x01" + spec.max_trie_depth.to_bytes(4, "little")
    policy = ("nodes", "none", "slots").index(spec.cache.value)
    out += [
        (f"max_pov_size {spec.max_pov_size:,}", spec.max_pov_size.to_bytes(4, "little")),
        (f"reserve_minimum {spec.reserve_minimum}".lower(), bytes((spec.reserve_minimum,))),
        (f"cache `{spec.cache.value}`", bytes((policy,))),
        (f"meter_cache_reads {spec.meter_cache_reads}".lower(), bytes((spec.meter_cache_reads,))),
        (f"max_cache_bytes {spec.max_cache_bytes:,}", spec.max_cache_bytes.to_bytes(4, "little")),
        (f"max_trie_depth {spec.max_trie_depth}", depth),
        (f"max_value_length {spec.max_value_length:,}", spec.max_value_length.to_bytes(4, "little")),
        (f"max_stored_keys {spec.max_stored_keys:,}", spec.max_stored_keys.to_bytes(4, "little")),
        (f"handler `{spec.handler}`", encode_bytes(spec.handler.encode())),
        (f"handler_weight.ref_time {weight.ref_time:,}", weight.ref_time.to_bytes(8, "little")),
        (f"handler_weight.proof_size {weight.proof_size:,}", weight.proof_size.to_bytes(8, "little")),
    ]
    assert b"".join(data for _, data in out) == spec.encode()
    return out


def node_cut(node: bytes) -> str:
    """What a node of these tries is, in words; `entry` or `value` for bytes that no node begins with here."""
    head, pos = node[0], 1
    kinds = {0x40: ("leaf", 63), 0x20: ("leaf, detached value", 31), 0x80: ("branch", 63)}
    kind = 0x80 if head >= 0x80 else 0x40 if head >= 0x40 else 0x20
    name, most = kinds[kind]
    count = head & most
    while count >= most:
        count += node[pos]
        pos += 1
        break
    digits = node[pos : pos + (count + 1) // 2].hex()[count & 1 :]
    pos += (count + 1) // 2
    said = f"{name}, {count} nibbles" + (f" `{digits}`" if count else "")
    if kind != 0x80:
        return f"{said}; {'hash' if kind == 0x20 else 'length and value'} `{node[pos:].hex()}`"
    bitmap = node[pos] | node[pos + 1] << 8
    pos += 2
    children = []
    for nibble in (nibble for nibble in range(16) if bitmap >> nibble & 1):
        length = node[pos] >> 2
        children.append(f"{nibble:x} `{node[pos + 1 : pos + 1 + length].hex()}`")
        pos += 1 + length
    assert pos == len(node)
    assert len(children) == CHILDREN[bitmap]
    return f"{said}; bitmap `{bitmap.to_bytes(2, 'little').hex()}`; children {', '.join(children)}"


# The walk


class Watched(Storage):
    """Storage that says which rows are read."""

    __slots__ = ("told",)
    told: list[tuple[str, bytes]]

    def get(self, key: bytes) -> bytes | None:
        if ("row", key) not in self.told:
            self.told.append(("row", key))
        return super().get(key)


class Source(dict[Hash, bytes]):
    """A proof that says which nodes are asked for."""

    told: list[tuple[str, bytes]]

    def get(self, key: Any, default: Any = None) -> Any:  # as a dict's
        self.told.append(("node", key))
        return super().get(key, default)


def walk_of(case: Case) -> tuple[Plan, list[tuple[str, int]]]:
    """The walk over a case's proof: what was read in order, with the charge of each, which add up to what was used."""
    told: list[tuple[str, bytes]] = []
    storage = Watched(case.chain.state.fork())
    storage.told = []
    spec = runtime_spec(storage)
    storage.told = told
    source = Source({blake2_256(node): node for node in case.candidate.inherent.proof})
    source.told = told
    found = plan(SubscriberView(storage, spec), case.relay.storage_root, source, spec.budget(2), ())
    steps: list[tuple[str, int]] = []
    static, looked = True, False
    hits = {name for each in found.publishers.values() for name in getattr(each.cache, "_hits", ())}
    for kind, name in told:
        if kind == "node":
            node = dict.get(source, name)
            if node is None:
                steps.append((f"needed, and not in the proof: `{name.hex()}`", 0))
                continue
            what = "take, free" if static else "read"
            steps.append((f"{what}: `{name.hex()}`", 0 if static else node_cost(len(node))))
            continue
        static = False
        value = case.chain.state.top.get(name)
        # What the cache foresees of its own rows is read last, and not charged.
        charge = (
            0 if name.startswith(items.CACHED_TRIE_NODES.prefix) and name[-32:] not in hits else row_charge(name, value)
        )
        if name.startswith(items.CACHED_TRIE_NODES.prefix) and not looked:
            steps.append(("first look into the cache: 12 + 160", 12 + ROW_COST))
            looked = True
        steps.append((f"row {name_of(name)}: {'absent' if value is None else shown(value)}", charge))
    assert sum(charge for _, charge in steps) == found.used, case.name
    return found, steps


def row_charge(key: bytes, value: bytes | None) -> int:
    """What reading a row is charged."""
    length = len(value or b"")
    if key in (items.PROCESSED_ROOTS.key, items.SUBSCRIPTION_HASH.key):
        return length + ROW_COST
    if key.startswith((items.LAST_DELIVERED_PACKED.prefix, items.CACHE_SLOTS.prefix)):
        return length + ROW_COST
    if key.startswith(items.LAST_DELIVERED.prefix):
        return ROW_COST
    if key.startswith(items.CACHED_TRIE_NODES.prefix) and value is not None:
        return node_cost(length) + ROW_COST
    return 0


# The page


def page(cases: Sequence[Case]) -> str:
    """The whole page."""
    honest = cases[0]
    lines = [*_INTRODUCTION.splitlines(), "", *_shared(honest)]
    known: dict[bytes, str] = {}
    for number, case in enumerate(cases, 1):
        lines += [f"## {number}. {case.name}", "", case.about, ""]
        if case.fixture().expected.verdict is None:
            lines += _valid(case, honest)
            lines += _proof(case, known, number)
            lines += _checks(case, honest)
            lines += _walk(case, honest)
            lines += _written(case)
        else:
            lines += _refused(case, honest)
    return "\n".join(lines).rstrip() + "\n"


_INTRODUCTION = """\
# Worked cases

Blocks small enough to be judged by hand: seven that are valid and one for each verdict, judged as [Write a
verifier](verifier.md) says. Their fixtures, with all bytes, are in `tests/vectors/worked/`. Bytes are hexadecimal,
and long ones are shortened. Case 1 is complete; the others show what differs from it. `python
tests/support/worked.py` makes fixtures and page."""


def _shared(honest: Case) -> Iterator[str]:
    storage = Storage(honest.chain.state.fork())
    spec = runtime_spec(storage)
    keys = spec.subscriptions[PUBLISHER]
    yield from ("## What the cases share", "")
    yield (
        f"Parachain {PARA} subscribes to two keys of publisher {PUBLISHER}. The relay state has two of the static keys "
        "and the publisher's child root; the publisher has three keys."
    )
    yield ""
    rows = []
    for key, value in BOTH.items():
        data = value.encode()
        rows.append((STATIC[key], shown(key), shown(data), f"`{blake2_256(data).hex()}`", node_cost(len(data))))
    yield from table(
        ("", "key", "entry: `Vec<u8>` value, u32 ttl, u32 when_inserted", "hash of the entry", "cost"), rows
    )
    assert tuple(BOTH.values()) == (SHORT, LONG, UNASKED)
    yield from table(
        ("figure", "value"),
        (
            ("authority 0", f"`{AUTHORITIES.get(storage)[0].hex()}`"),
            ("authority 1", f"`{AUTHORITIES.get(storage)[1].hex()}`"),
            ("key-set hash of the two keys", f"`{key_set_hash(keys).hex()}`"),
            (f"child root key of {PUBLISHER}", f"`{publisher_root_key(PUBLISHER).hex()}`"),
            *_figures(spec),
        ),
    )
    yield "The runtime, under `:code`:"
    yield ""
    yield from table(("bytes", "field"), ((shown(data), name) for name, data in spec_cut(spec)))
    yield "The state after the genesis:"
    yield ""
    yield from table(
        ("row", "value"), ((name_of(key), shown(value)) for key, value in honest.chain.state.top_entries())
    )


def _figures(spec: RuntimeSpec) -> Iterator[tuple[str, str]]:
    budget = spec.budget(2)
    last = budget - spec.max_item_cost - ROW_COST
    yield "`allowed`", f"{spec.allowed_pov:,}"
    yield "`budget`, messages weighing 2", f"{budget:,}"
    yield "`max_item`", f"{spec.max_item_cost:,}"
    yield "`last_start`", f"{budget:,} less {spec.max_item_cost:,} less {ROW_COST}: {last:,}"


def _valid(case: Case, honest: Case) -> Iterator[str]:
    spec = runtime_spec(Storage(case.chain.state.fork()))
    if (spec.cache.value, spec.max_pov_size) != ("none", RuntimeSpec(PARA, {}).max_pov_size):
        yield f"The runtime differs: policy `{spec.cache.value}`, max_pov_size {spec.max_pov_size:,}."
        yield ""
        yield from table(("figure", "value"), _figures(spec))
    fields = candidate_cut(case.candidate)
    if case is honest:
        yield "The candidate:"
    else:
        known = set(candidate_cut(honest.candidate))
        fields = [field for field in fields if field not in known and not field[0].startswith("node ")]
        yield "The candidate, but for its nodes, where it is not as in case 1:"
    yield ""
    yield from table(("bytes", "field"), ((shown(data), name) for name, data in fields))


def _proof(case: Case, known: dict[bytes, str], number: int) -> Iterator[str]:
    """The nodes of a proof. `known` says of the nodes of earlier cases where they are."""
    values = {blake2_256(value.encode()): key for key, value in _entries(case).items()}
    rows = []
    for at, node in enumerate(case.candidate.inherent.proof):
        name = blake2_256(node)
        said = f"the value of {STATIC.get(values[name], 'a key')}" if name in values else node_cut(node)
        rows.append((at, f"`{name.hex()}`", len(node), node_cost(len(node)), known.get(name, said)))
        known.setdefault(name, f"case {number}, node {at}")
    yield from ("The proof, whose nodes strictly ascend:", "")
    yield from table(("node", "hash", "bytes", "cost", "what it is"), rows)


def _entries(case: Case) -> dict[bytes, PublishedEntry]:
    [child] = case.relay.state.children
    return {key: PublishedEntry.decode(value) for key, value in case.relay.state.child_entries(child)}


def _checks(case: Case, honest: Case) -> Iterator[str]:
    rows = _check_rows(case)
    if case is honest:
        yield from ("The checks before the walk:", "")
    else:
        same = _check_rows(honest)
        rows = [row for row in rows if row not in same]
        if not rows:
            yield from ("The checks before the walk have the figures of case 1.", "")
            return
        yield from ("The checks before the walk, where they are not as in case 1:", "")
    yield from table(("figure", "value"), rows)


def _check_rows(case: Case) -> list[tuple[str, str]]:
    header, parent = case.candidate.header, case.chain.header
    slot = header.aura_slot() or 0
    authorities = tuple(AUTHORITIES.get(Storage(case.chain.state.fork())))
    proof = case.candidate.inherent.proof
    last = items.LAST_RELAY_PARENT.get(Storage(case.chain.state.fork()))
    turn = turn_of(slot, range(len(authorities)))
    return [
        ("turn", f"{slot} mod {len(authorities)} = {turn}: authority {turn}"),
        ("message that is signed", f"`{header.pre_hash().hex()}`"),
        ("slot", f"parent's {parent.aura_slot()}, newest {case.chain.slot()}, claimed {slot}".replace("None", "none")),
        ("extrinsics root of the body", f"`{case.candidate.extrinsics_root().hex()}`"),
        ("hash of the parent's header", f"`{parent.hash().hex()}`"),
        ("number", f"{parent.number} + 1 = {header.number}"),
        ("relay parent", f"last {last}, now {case.relay.number}".replace("None", "none")),
        ("relay root", f"`{case.relay.storage_root.hex()}`"),
        ("weight of messages", "2"),
        ("order of the proof", "strictly ascending" if all(a < b for a, b in pairwise(proof)) else "broken"),
    ]


def _walk(case: Case, honest: Case) -> Iterator[str]:
    found, steps = walk_of(case)
    same = 0
    if case is not honest:
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(steps, walk_of(honest)[1], strict=False)))
    rows, used = [], 0
    for at, (what, charge) in enumerate(steps, 1):
        used += charge
        rows.append((at, what, charge or "", f"{used:,}"))
    if same == len(rows):
        yield "The walk is that of case 1."
    else:
        yield f"The walk; steps 1 to {same} are those of case 1:" if same else "The walk:"
        yield ""
        yield from table(("", "step", "charged", "used"), rows[same:])
    if found.cursor is not None:
        spec = runtime_spec(Storage(case.chain.state.fork()))
        last = found.budget - spec.max_item_cost - ROW_COST
        para, key = found.cursor
        yield f"Before the next node, {used:,} > {last:,}: the walk stops. Cursor: {para}, `{key.hex()}`."
    elif found.missing is None:
        yield f"The walk ends after {used:,} bytes; cursor: none."
    else:
        yield f"The walk misses `{found.missing.node_hash.hex()}`, needed for `{found.missing.key.hex()}`."
    yield ""


def _written(case: Case) -> Iterator[str]:
    outcome, _ = case.chain.judged(case.candidate, case.relay)
    assert outcome is not None
    before, after = dict(case.chain.state.top_entries()), dict(outcome.state.top_entries())
    changed = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    rows = [(name_of(key), shown(after[key]) if key in after else "removed") for key in changed]
    yield from ("What executing it writes:", "")
    yield from table(("row", "value"), rows)
    for delivery in outcome.deliveries:
        state = "" if delivery.ttl_state is None else f", ttl_state `{encode_ttl_state(delivery.ttl_state).hex()}`"
        yield f"- {delivery.kind}: `{delivery.key.hex()}`, entry hash `{delivery.entry_hash.hex()}`{state}"
    if outcome.deliveries:
        yield ""
    yield f"Post-state root: `{outcome.state_root.hex()}`, as the header says. The block is valid."
    yield ""


def _refused(case: Case, honest: Case) -> Iterator[str]:
    known, nodes = set(candidate_cut(honest.candidate)), honest.candidate.inherent.proof
    kept = {encode_bytes(node) for node in nodes}
    fields = [
        (name, data)
        for name, data in candidate_cut(case.candidate)
        if (name, data) not in known and not (name.startswith("node ") and data in kept)
    ]
    yield "The candidate is that of case 1, but for"
    yield ""
    yield from table(("bytes", "field"), ((shown(data), name) for name, data in fields))
    if (mine := case.candidate.inherent.proof) != nodes:
        yield f"Its nodes, by number in case 1: {', '.join(_number(node, nodes) for node in mine)}."
        yield ""
    yield from _checks(case, honest)
    expected = case.fixture().expected
    if expected.verdict in ("OmittedBelowBudget", "UnusedNodes", "RootMismatch"):
        yield from _walk(case, honest)
    assert expected.verdict is not None
    for offence in expected.evidence:
        subject = ", ".join(shown(bytes.fromhex(part[2:])) for part in offence.subject) or "none"
        yield f"Verdict: `{offence.verdict}`. Subject: {subject}."
        yield ""


def _number(node: bytes, nodes: Sequence[bytes]) -> str:
    return str(nodes.index(node)) if node in nodes else "new"


__all__ = ["page", "relay", "walk_of"]
