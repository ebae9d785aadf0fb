"""The attacks behind the table of guards.

Each attack passes as long as every check is made, and fails if its check is switched off. An attack
makes its own worlds unless its docstring names others, because a walk with a check switched off
must not leave anything behind.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from types import FrameType

import pytest
from support.collator.cheats import found, names, situations

from pubsub_emulator.collator.author import seal
from pubsub_emulator.collator.cheats import (
    STRATEGIES,
    Attempt,
    Situation,
    attempt,
    expected_of_proof,
    propose,
)
from pubsub_emulator.collator.cheats.steps import apply_to_proof
from pubsub_emulator.laboratory.cases import JudgingContext
from pubsub_emulator.laboratory.worlds import World
from pubsub_emulator.primitives.ed25519 import public_key, sign
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import (
    ENVIRONMENT_UPDATED,
    DigestItem,
    DigestKind,
    aura_seal,
    turn_of,
)
from pubsub_emulator.primitives.pubsub import derive_child_key, node_cost
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import (
    HashedMessage,
    InboundMessages,
    message_hash,
)
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import NodeCache
from pubsub_emulator.runtime.pallet_subscriber.cache.slots import MIN_KEYS, SlotCache
from pubsub_emulator.runtime.pallet_subscriber.config import (
    ROW_COST,
    CachePolicy,
    merge_subscriptions,
)
from pubsub_emulator.runtime.pallet_subscriber.meter import DisableReason, Meter
from pubsub_emulator.runtime.pallet_subscriber.plan import plan
from pubsub_emulator.runtime.pallet_subscriber.storage import DISABLED_PUBLISHERS
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.block import extrinsics_root
from pubsub_emulator.runtime.parachain.execute import execute_block
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.trie import BadNode, Trie, read_proof
from pubsub_emulator.trie.step import step

Attack = Callable[[], None]


# Strategies, whose blocks and due verdicts are made once, with every check in place


_RARE = {
    "no-seal",
    "forge-message",
    "beyond-the-share",
    "hold-back-downward",
    "hold-back-horizontal",
    "hash-before-full",
    "cut-descendants",
    "swap-descendants",
    "forge-descendant",
    "descendants-of-another-block",
    "another-offset",
}
"""Strategies that apply to few situations or take forms that draws rarely give."""


@cache
def _blocks(name: str) -> tuple[tuple[Situation, Attempt], ...]:
    """Return blocks of a strategy, at most 40.

    Each situation is tried once, or six times if the strategy is one of `_RARE`.
    """
    tried = (
        (now, attempt(now, (STRATEGIES[name],), b"%d/%d" % (draw, number)))
        for draw in range(6)
        for number, now in enumerate(situations())
        if number % 6 == draw or name in _RARE
    )
    made = [(now, attempted) for now, attempted in tried if attempted is not None]
    return tuple(made[:40])


@cache
def _proofs(name: str) -> tuple[tuple[Situation, tuple[bytes, ...], tuple[str, ...]], ...]:
    out = []
    for number, now in enumerate(situations(alone=True)):
        _, steps = propose(now, (STRATEGIES[name],), b"%d" % number)
        if steps:
            proof = apply_to_proof(now.canonical, steps)
            out.append((now, proof, names(expected_of_proof(now, proof))))
    return tuple(out)


def blocks_of(*strategies: str) -> Attack:
    """Check that every block of these strategies gets exactly the verdicts that it should."""
    for name in strategies:
        _blocks(name)

    def attack() -> None:
        for name in strategies:
            for now, attempted in _blocks(name):
                assert found(now, attempted) == names(attempted.expected), name

    return attack


def blocks_over_an_epoch_hold() -> None:
    """UP-12: check that honest blocks are valid if their relay headers begin an epoch."""
    honest = [now for now in situations() if len(now.authorities) == 2]
    assert honest
    for now in honest:
        assert JudgingContext.of(now).judge(now.honest) == ()


def proofs_of(*strategies: str) -> Attack:
    """Check that every proof of these strategies, judged alone, gets exactly its verdicts."""
    for name in strategies:
        _proofs(name)

    def attack() -> None:
        for name in strategies:
            for now, proof, due in _proofs(name):
                assert JudgingContext.of(now).judge_proof(now.view, proof) == due, name

    return attack


def digest_with_a_third_item() -> None:
    """PS-79: check that a header with a third digest item is refused."""
    now = situations()[0]
    header = now.honest.header
    more = replace(
        header, digest=(header.digest[0], DigestItem(DigestKind.CONSENSUS, b"more", b""))
    )
    sealed = aura_seal(sign(turn_of(now.slot, now.seeds), more.pre_hash()))
    candidate = replace(now.honest, header=replace(more, digest=(*more.digest, sealed)))
    assert JudgingContext.of(now).judge(candidate)[:1] == ("BadSeal",)


def digest_with_an_upgrade_that_is_none() -> None:
    """UP-18: check that a header must not claim new code that its block did not apply."""
    now = situations()[0]
    header = now.honest.header
    more = replace(header, digest=(header.digest[0], ENVIRONMENT_UPDATED))
    sealed = aura_seal(sign(turn_of(now.slot, now.seeds), more.pre_hash()))
    candidate = replace(now.honest, header=replace(more, digest=(*more.digest, sealed)))
    assert JudgingContext.of(now).judge(candidate) == ("StateRootMismatch",)


def _with_messages(now: Situation, messages: InboundMessages) -> tuple[str, ...]:
    """Judge the honest block with other messages, sealed anew."""
    inherent = replace(now.honest.inherent, messages=messages)
    header = replace(now.honest.header, extrinsics_root=extrinsics_root(inherent))
    candidate = replace(
        now.honest, header=seal(header, turn_of(now.slot, now.seeds)), inherent=inherent
    )
    return JudgingContext.of(now).judge(candidate)


def _small_world(name: bytes, *messages: tuple[int, int]) -> Situation:
    """Return a situation with waiting messages and a small share for them.

    Each message is given as the number of its sender, 0 for the relay chain, and its size in
    percent of the limit.
    """
    for number in range(400):
        world = World(b"%s %d" % (name, number), proofs_only=False)
        # Blocks with descendants of their relay parent do not have the newest messages yet.
        if world.tip is None and world.spec.reserve_minimum and len(world.senders) >= 2:
            break
    limit = world.spec.messages_limit
    for at, percent in messages:
        queue = 0 if at == 0 else world.senders[at - 1]
        world._send(queue, bytes(limit * percent // 100))
    world.number = RelayBlockNumber(world.number + 1)
    world._relay_block()
    return world.situation()


def too_many_horizontal_messages() -> None:
    """UP-9: check the limit of horizontal messages.

    They may use their own share and the rest of the downward one, but not more.
    """
    now = _small_world(b"wide", (1, 90), (2, 90), (1, 90))
    waiting = now.waiting
    assert waiting is not None
    assert now.messages.hashed_horizontal
    assert "MessagesMisreported" in _with_messages(now, waiting)


def hashed_before_full() -> None:
    """UP-10: check the order of hashed and full messages.

    A message must not be hashed if a later one of another sender is in full.
    """
    now = _small_world(b"order", (1, 5), (2, 5))
    waiting = now.waiting
    assert waiting is not None
    (first, sent), (second, later) = waiting.horizontal[:2]
    hashed = tuple(HashedMessage(each.sent_at, message_hash(each.data)) for each in sent)
    downward, kept = now.messages.downward, now.messages.hashed_downward
    other = InboundMessages(downward, ((second, later),), kept, ((first, hashed),))
    assert "MessagesMisreported" in _with_messages(now, other)


def parent_state_is_left_alone() -> None:
    """PS-53: check that judging does not change the parent's state, whatever the verdict is."""
    now = World(b"left alone", proofs_only=False).situation()
    before = list(now.parent.state.top_entries())
    for name in ("wrong-state-root", "drop-and-restore"):
        attempted = attempt(now, (STRATEGIES[name],), b"1")
        assert attempted is not None
        found(now, attempted)
        assert list(now.parent.state.top_entries()) == before


# The walk


def _worlds(
    policies: tuple[CachePolicy, ...],
    label: bytes,
    *,
    alone: bool,
    each: int = 2,
    requests: bool = True,
    tight: bool = False,
) -> list[World]:
    """Return a few worlds of each of these policies.

    Without `requests`, no world requests other keys. With `tight`, all of them have budgets that
    end most walks early.
    """
    out: list[World] = []
    number = 0
    while len(out) < each * len(policies):
        world = World(label + b" %d" % number, proofs_only=alone)
        wide = any(
            len(keys) >= MIN_KEYS for keys in world.spec.subscriptions.values()
        )  # slots begin here
        wanted = requests or not world.spec.extra_keys
        fits = world.spec.reserve_minimum or not tight
        if wide and wanted and fits and world.spec.cache is policies[len(out) % len(policies)]:
            out.append(world)
        number += 1
    return out


def _meter_above(frame: FrameType | None) -> Meter | None:
    """Return the meter of the cache or reader for which a row is read."""
    for _ in range(3):
        if frame is None:
            return None
        owner = frame.f_locals.get("self")
        if isinstance(owner, delivered.DeliveredReader):
            return owner._meter
        if isinstance(owner, NodeCache | SlotCache):
            return owner.meter
        frame = frame.f_back
    return None


class _WatchedRows(Storage):
    """Storage that sees how much was used when a row was read."""

    last_start = 0

    def get(self, key: bytes) -> bytes | None:
        frame = sys._getframe(1)
        meter = _meter_above(frame)
        if meter is not None:
            plain = type(frame.f_locals.get("self")) is delivered.DeliveredReader
            assert meter.used - (ROW_COST if plain else 0) <= self.last_start, (
                "a row was read beyond the stop"
            )
        return super().get(key)


class _WatchedNodes(dict[Hash, bytes]):
    """Nodes that see how much was used when they were taken."""

    last_start = 0
    free: frozenset[Hash] = frozenset()

    def get(self, key: Hash, default: object = None) -> bytes | None:  # type: ignore[override]  # all that a walk uses
        del default
        meter = sys._getframe(1).f_locals["self"]
        if key not in self.free:
            assert meter.used <= self.last_start, "a node was read beyond the stop"
        return super().get(key)


def stops_where_it_must(policy: CachePolicy) -> None:
    """PS-51: check that reading stops once the budget is almost used up, and not before."""
    stops = 0
    for world in _worlds((policy,), b"stop", alone=True):
        for _ in range(3):
            now = world.situation()
            spec = now.spec
            storage = _WatchedRows(now.parent.state.fork())
            nodes = _WatchedNodes(now.proof.nodes)
            nodes.free = frozenset(now.proof.static_nodes)
            whole = now.walk_as_if(budget=1 << 40).used
            for used in range(0, whole + 200, max(whole // 60, 1)):
                storage.last_start = nodes.last_start = used
                budget = used + spec.max_item_cost + ROW_COST
                out = plan(SubscriberView(storage, spec), now.relay.storage_root, nodes, budget)
                stops += out.cursor is not None
                assert (out.cursor is not None) == (out.used > used) or out.cursor is None
            world.advance()
    assert stops > 50


def charges_add_up() -> None:
    """PS-43 to PS-45: check the sum of the charges.

    It consists of the two maps, the taken nodes that are not static, and the rows, each counted
    once.
    """
    for world in _worlds((CachePolicy.NONE,), b"charges", alone=True):
        _add_a_twin(world)
        for _ in range(4):
            now = world.situation()
            if now.spec.cache is not CachePolicy.NONE:
                break  # a runtime upgrade
            out = now.walk_as_if(budget=1 << 40)
            taken = (
                sum(node_cost(len(node)) for node in out.taken.values()) - now.proof.static_bytes
            )
            if not now.spec.charge_extra_keys:
                taken -= out.requested_bytes
            rows = sum(
                ROW_COST * publisher.resolved
                for publisher in out.publishers.values()
                if not publisher.disabled
            )
            broken = [publisher for publisher in out.publishers.values() if publisher.disabled]
            rows += sum(publisher.row_charges for publisher in broken)
            assert out.used == out.map_charges + taken + rows
            world.advance()


def _add_a_twin(world: World) -> None:
    """Add a second publisher with the same nodes as the first."""
    one = world.publishers[0]
    twin = replace(one, para=ParaId(one.para + 7))
    keys = world.spec.subscriptions.get(one.para, tuple(one.pool))
    declared = [(para, list(keys)) for para, keys in world.spec.subscriptions.items()]
    spec = replace(
        world.spec, subscriptions=merge_subscriptions([*declared, (twin.para, list(keys))])
    )
    world.publishers.append(twin)
    world.head = genesis(spec, tuple(map(public_key, world.seeds)))
    world.number = RelayBlockNumber(world.number + 1)
    world._relay_block()


def delivers_everything_once(*policies: CachePolicy, tight: bool = False) -> None:
    """PS-61, PS-64: check that every item is delivered once.

    Every item of a settled publisher is known as it is, and only new items are delivered.
    """
    completed = 0
    # About one tight world in ten has a slot of which a block delivers a part.
    label = b"tight 9" if tight else b"deliveries 17"
    worlds = _worlds(policies, label, alone=False, each=10 if tight else 3, tight=tight)
    for world in worlds:
        for _ in range(8):
            now = world.situation()
            honest, after = now.honest, Storage(now.parent.state.fork())
            digest, number = honest.header.digest[:1], honest.header.number
            execute_block(
                after,
                now.spec,
                now.parent.header,
                number=number,
                digest=digest,
                inherent=honest.inherent,
                plan=now.walked,
            )
            before = now.storage
            # It is not the newest one where blocks show descendants of their relay parent.
            relay = next(each for each in world.relays if each.number == now.relay.number)
            for para, publisher in now.walked.publishers.items():
                if (
                    publisher.disabled
                    or not (publisher.unchanged or publisher.complete)
                    or now.messages.downward
                ):
                    continue
                completed += 1
                trie = relay.children.get(derive_child_key(para), Trie())
                for key in publisher.keys:
                    entry = trie.get(key)
                    row = delivered.get(after, now.spec, para, key)
                    assert (row and row.entry_hash) == (entry and blake2_256(entry)), (
                        "an item is not as it is"
                    )
            for change in now.walked.changes:
                known = delivered.get(before, now.spec, change.para, change.key)
                assert (change.entry and change.entry_hash) != (known and known.entry_hash), (
                    "delivered again"
                )
            world.advance()
    assert completed


def faults_disable(*faults: str) -> None:
    """PS-52, PS-68: check the effect of genuine data that is malformed.

    It disables its publisher, but does not make a block invalid.
    """
    for number, fault in enumerate(faults):
        world = World(b"fault 4", proofs_only=False)
        world.spec = replace(world.spec, max_trie_depth=None)
        publisher = world.publishers[0]
        publisher.fault = fault
        if fault == "no-entry":
            publisher.entries = dict.fromkeys(publisher.pool, b"\xff" * (40 if number % 2 else 5))
        assert publisher.entries
        world.number = RelayBlockNumber(world.number + 1)
        world._relay_block()
        now = world.situation()
        assert publisher.para in now.spec.subscriptions
        met = now.walked.publishers[publisher.para]
        assert met.disabled is DisableReason.UNDECODABLE, fault
        assert JudgingContext.of(now).judge(now.honest) == ()


def deep_paths_disable() -> None:
    """PS-68: check that no path longer than the limit is followed. Inline nodes count."""
    deepest = 0
    for inline in (False, True):
        world = World(b"deep", proofs_only=True)
        publisher = world.publishers[0]
        base = bytes(32)
        pool = [PubsubKey(base[:at] + b"\x10" + base[at + 1 :]) for at in range(32)] + [
            PubsubKey(base)
        ]
        publisher.pool, publisher.entries = sorted(pool), {}
        for key in pool:
            publisher.entries[key] = b"\x00" * 9 if inline else b"\x81\x00" + bytes(40)
        world._relay_block()
        now = world.situation()
        for limit in (1, 2, 5, 16):
            keys = merge_subscriptions([(publisher.para, pool)])
            spec = replace(now.spec, subscriptions=keys, max_trie_depth=limit)
            met = now.walk_as_if(spec=spec, budget=1 << 40).publishers[publisher.para]
            assert met.disabled is DisableReason.TRIE_DEPTH_EXCEEDED
            assert len(met.visited) <= limit
            deepest = max(deepest, len(met.visited))
    assert deepest == 16


def disabled_are_skipped() -> None:
    """PS-68: check that a disabled publisher is not read, not even its top path."""
    for world in _worlds((CachePolicy.NONE,), b"skipped", alone=True, requests=False):
        now = world.situation()
        # The publisher with the most nodes of its own, which no other path needs.
        para, _ = max(now.proof.unpruned, key=lambda entry: entry[1])
        out = now.walk_as_if(
            pretend=lambda s, p=para: DISABLED_PUBLISHERS.insert(s, p, DisableReason.UNDECODABLE)
        )
        assert para not in out.publishers
        assert len(out.taken) < len(now.walk_as_if(budget=1 << 40).taken)


def changed_key_sets_start_anew() -> None:
    """PS-63: check that a newly subscribed key is walked to.

    This also holds if the publisher's root is the one that was processed before.
    """
    for world in _worlds(tuple(CachePolicy), b"anew", alone=True):
        while True:
            now = world.situation()
            whole = now.walk_as_if(budget=1 << 40)
            settled = [para for para, met in whole.publishers.items() if met.unchanged]
            if settled:
                break
            world.advance()
        para = settled[0]
        fresh = PubsubKey(b"\x5a" * 32)
        declared = [
            (p, [*keys, *[fresh][: p == para]]) for p, keys in now.spec.subscriptions.items()
        ]
        spec = replace(now.spec, subscriptions=merge_subscriptions(declared))
        met = now.walk_as_if(spec=spec, budget=1 << 40).publishers[para]
        assert not met.unchanged
        assert met.disabled or met.complete
        assert met.cache.saved == 0, "nodes of the old key set's cache were believed"


# Proof reading

_HASH = bytes(32)
HOSTILE: Mapping[str, tuple[bytes, bytes]] = {
    "no bytes": (b"", b"\x00"),
    "reserved header {head:#04x}": (b"\x07\x00", b"\x00"),
    "truncated header": (b"\x7f", b"\x00"),
    "truncated partial key": (b"\x44\x00", bytes(4)),
    "padding of the partial key is not zero": (b"\x41\xf0\x00", b"\x00"),
    "truncated value hash": (b"\x20" + bytes(31), b""),
    "truncated bitmap": (b"\x80\x01", b"\x00"),
    "branch without children": (b"\x80\x00\x00", b"\x00"),
    "truncated child": (b"\x80\x01\x00\x80" + _HASH[:31], b"\x00"),
    "length exceeds u32": (b"\x40\x07\x00\x00\x00\x00\x00", b""),
    "length is not in its shortest form": (b"\x40\x01\x00", b""),
}
"""A node that has nothing wrong but this, and a key to read."""


def malformed_is_refused(reason: str) -> None:
    """PS-54: check that bytes that are not a node are never read as a node or as an absence."""
    node, key = HOSTILE[reason]
    with pytest.raises(BadNode) as refusal:
        step(node, key, 0)
    assert refusal.value.reason == reason.format(head=node[0] if node else 0), (
        "refused for another reason"
    )


def divergent_paths_are_absent() -> None:
    """Check that a leaf elsewhere or a branch without the child has no value and leads nowhere."""
    leaf = b"\x42\x12" + b"\x04\xaa"
    branch = b"\x80\x02\x00\x80" + _HASH
    assert step(leaf, b"\x12", 0) == (1, b"\xaa", 2)
    assert step(leaf, b"\x13", 0)[0] == 0
    assert step(branch, b"\x10", 0) == (3, _HASH, 1)
    assert step(branch, b"\x20", 0)[0] == 0
    below = b"\x80\x01\x00\x80" + blake2_256(branch)
    assert read_proof(blake2_256(below), [below, branch], [b"\x02"]) == {b"\x02": None}
