"""Small random worlds to try cheats in.

A world is a relay chain that publishes, and a subscriber whose state was made by honest blocks. All
cases of the rules occur: entries of all kinds, roots that go A → B → A, deep paths, shared and
malformed nodes, messages, root calls, upgrades, all cache policies and limits. Walks can stop at
the budget after few steps: proofs that are judged without blocks have budgets of any size, and if
blocks are judged, `max_value_length` can be so large that the stop rule applies after a few
kilobytes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pubsub_emulator.collator.author import RelayAccess, build
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.laboratory.sealed_tip import SealedTip
from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.ed25519 import public_key
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header, turn_of
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.abridged import abridged
from pubsub_emulator.runtime.framework.message_chains import (
    ZERO_HEAD,
    InboundDownwardMessage,
    InboundHrmpMessage,
    InboundMessages,
    message_chain,
)
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayStorageKey, TopKey
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import config
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.runtime.parachain.governance import set_code, subscriber_call, transact
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.trie import Trie

PARA = ParaId(3000)
_PUBLISHERS = (1000, 1999, 2000, 2001, 2002, 70_000)
_SENDERS = (2100, 2101)

_LARGEST_MESSAGE: Final = 10_000
"""The largest horizontal message that a channel allows, in bytes."""
_CHANNEL_LIMITS: Final = b"".join(
    size.to_bytes(4, "little") for size in (64, 102_400, _LARGEST_MESSAGE, 0, 0)
)
"""The first fields of `HrmpChannel`: capacity, total size, largest message, and two counts."""


@dataclass(frozen=True, slots=True)
class RelayImage:
    """One relay block, genuine or forged, as the tries of its state."""

    number: RelayBlockNumber
    top: Trie
    children: Mapping[bytes, Trie]
    malformed_nodes: Mapping[bytes, tuple[bytes, ...]]
    """By child trie, byte strings that belong to its proof although they are not valid nodes."""
    headers: tuple[Header, ...] = ()
    """The sealed headers of the block and its descendants, if the relay chain seals them."""

    @property
    def storage_root(self) -> Hash:
        """Return the root of the state."""
        return self.top.root()

    def prove(
        self,
        top_keys: Iterable[bytes],
        child_keys: Mapping[bytes, Iterable[bytes]],
        into: dict[Hash, bytes],
    ) -> None:
        """Add to `into` the nodes that prove these keys of the top trie and of child tries.

        Malformed nodes of these child tries are added as well.
        """
        self.top.prove([*top_keys, *map(storage_keys.child_root_key, child_keys)], into)
        for child_key, keys in child_keys.items():
            if child_key in self.children:
                self.children[child_key].prove(keys, into)
            for node in self.malformed_nodes.get(child_key, ()):
                into.setdefault(blake2_256(node), node)


@dataclass(slots=True)
class _Publisher:
    """One publisher."""

    para: ParaId
    pool: list[PubsubKey]
    """The keys that it may use."""
    entries: dict[PubsubKey, bytes] = field(default_factory=dict)
    """Its present entries."""
    earlier: list[dict[PubsubKey, bytes]] = field(default_factory=list)
    """Its entries in the last relay blocks, which it can return to."""
    fault: str = ""
    """A defect of its child root or trie, if any."""


class World:
    """A relay chain and a subscriber.

    `situation()` is the next block to author, and `advance()` includes an honest one.
    """

    def __init__(self, seed: bytes, *, proofs_only: bool, rules: Rules = SHIPPED) -> None:
        """Draw a world from a seed.

        With `proofs_only`, proofs are judged without their blocks and under budgets of any size.
        """
        self.draws = Draws(seed, "world")
        self.rules = rules
        self.proofs_only = proofs_only
        self.seeds = tuple(self.draws.take(32) for _ in range(self.draws.between(1, 3)))
        self.stranger = self.draws.take(32)
        self.static = self._static_entries()
        self.publishers = [
            self._publisher(ParaId(para)) for para in self.draws.sample(_PUBLISHERS, self._count())
        ]
        if len(self.publishers) > 1 and self.draws.one_in(3):
            first, second = self.draws.sample(self.publishers, 2)
            second.pool = list(first.pool)
        self.spec = self._spec()
        self.tip = SealedTip.drawn(seed, proofs_only=proofs_only)
        if self.tip is not None:
            self.spec = replace(self.spec, relay_parent_offset=self.tip.offset)
        self.head = genesis(self.spec, tuple(map(public_key, self.seeds)), rules=rules)
        self.number = RelayBlockNumber(self.draws.between(1, 50))
        self.senders = self.draws.sample(_SENDERS, self.draws.below(3))
        self.queues: dict[int, list[tuple[int, bytes]]] = {}
        """Messages that wait, with their relay blocks, by sender. Sender 0 is the relay chain."""
        self.heads: dict[int, Hash] = {}
        """The heads of the message chains by sender."""
        self.relays: list[RelayImage] = []
        """All relay blocks, the newest last."""
        for publisher in self.publishers:
            self._publish(publisher, len(publisher.pool) * 3 // 4)
        self._relay_block()
        if self.tip is not None:
            # The relay parent is this many blocks behind the newest relay block.
            for _ in range(self.tip.offset):
                self.number = RelayBlockNumber(self.number + 1)
                self._relay_block()
        self._now: Situation | None = None

    # The parachain

    def _count(self) -> int:
        """Draw the number of publishers."""
        if not self.proofs_only and self.draws.one_in(2):
            return self.draws.between(3, 5)
        return self.draws.between(1, 4)

    def _spec(self) -> config.RuntimeSpec:
        """Draw the subscriber's runtime.

        Some runtimes have the tightest budget that passes the integrity test, so that walks stop
        early.
        """
        draws = self.draws
        spec = config.RuntimeSpec(
            PARA,
            self._subscriptions(),
            cache=draws.choice(tuple(config.CachePolicy)),
            meter_cache_reads=not draws.one_in(8),
            max_trie_depth=draws.choice((16, 16, 16, 3, 5, None)),
            handler=draws.choice(("observe", "store")),
            rules=self.rules.digest,
        )
        if draws.one_in(3):
            spec = replace(spec, extra_keys=self._extra_keys(), charge_extra_keys=draws.one_in(3))
        if draws.one_in(2):
            # 1,140 bytes hold the nodes of eight keys by the formula, and overflow with a few more.
            spec = replace(
                spec, max_stored_keys=8, max_cache_bytes=draws.choice((1140, 2000, 4_000_000))
            )
        if self.proofs_only or draws.one_in(4):
            return spec
        spec = replace(
            spec, max_stored_keys=8, reserve_minimum=True, max_pov_size=1_300_000, max_trie_depth=5
        )
        room = 16_000
        while True:
            tight = replace(spec, max_value_length=config.MIN_BUDGET - room)
            try:
                config.integrity_test(tight)
            except config.ImpossibleConfig:
                room += 1000
            else:
                return tight

    def _extra_keys(self) -> tuple[RelayStorageKey, ...]:
        """Draw requested keys: present and absent ones, of the top trie and of child tries."""
        draws = self.draws
        publisher = draws.choice(self.publishers)
        child = derive_child_key(publisher.para)
        keys: list[RelayStorageKey] = [
            TopKey(draws.choice(list(self.static))),
            TopKey(draws.take(32)),
            ChildKey(child, draws.choice(publisher.pool)),
            ChildKey(child, draws.take(32)),
            ChildKey(b"no trie", draws.take(8)),
        ]
        return tuple(dict.fromkeys(draws.sample(keys, draws.between(1, len(keys)))))

    def _subscriptions(self) -> dict[ParaId, tuple[PubsubKey, ...]]:
        """Draw subscriptions, including keys and publishers that do not exist."""
        declared = []
        for publisher in self.publishers:
            keys = self.draws.sample(publisher.pool, self.draws.between(1, len(publisher.pool)))
            if self.draws.one_in(4):
                keys.append(PubsubKey(self.draws.take(32)))
            declared.append((publisher.para, keys))
        if self.draws.one_in(4):
            declared.append(
                (ParaId(self.draws.choice(_PUBLISHERS)), [PubsubKey(self.draws.take(32))])
            )
        if self.draws.one_in(30):
            declared = []
        return dict(config.merge_subscriptions(declared))

    # The publishers

    def _publisher(self, para: ParaId) -> _Publisher:
        """Draw a publisher with its keys."""
        draws = self.draws
        count = draws.between(1, draws.choice((4, 8, 16)) if self.proofs_only else 14)
        pool = [PubsubKey(draws.take(32)) for _ in range(count)]
        if draws.one_in(3):
            for _ in range(draws.between(1, 6)):
                key = bytearray(pool[0])
                # Another nibble after a shared prefix makes the path deeper.
                key[draws.below(12) >> 1] ^= draws.between(1, 15)
                pool.append(PubsubKey(bytes(key)))
        return _Publisher(para, sorted(set(pool)))

    def _publish(self, publisher: _Publisher, count: int) -> None:
        """Draw new entries of at most `count` keys of a publisher."""
        for key in self.draws.sample(publisher.pool, count):
            publisher.entries[key] = self._entry(publisher, key)

    def _entry(self, publisher: _Publisher, key: PubsubKey) -> bytes:
        """Draw a stored entry: usually a valid one, and sometimes random bytes or a trie node."""
        draws = self.draws
        kind = draws.below(24)
        if kind == 0:
            # Random bytes are most likely not a valid entry.
            return draws.take(draws.between(0, 50))
        if kind == 1 and self.relays:
            nodes: dict[Hash, bytes] = {}
            other = draws.choice(self.publishers)
            child, keys = self.rules.placed(other.para, other.pool[:2])
            self.relays[-1].prove((), {child: keys}, nodes)
            return draws.choice(list(nodes.values()))
        if kind == 2:
            # Equal entries of two publishers share a node.
            twin = next(
                (
                    candidate
                    for candidate in self.publishers
                    if key in candidate.entries and candidate is not publisher
                ),
                None,
            )
            if twin is not None:
                return twin.entries[key]
        length = draws.choice((0, 3, 23, 24, 40, 100, 100, 300, 900))
        if self.spec.reserve_minimum and draws.one_in(2):
            # These are large enough for the stop rule of a runtime with a tight budget.
            length = draws.choice((1500, 3000, 6000))
        ttl = draws.choice((0, 0, 1, 5, 2**32 - 1))
        return self._stored(draws.take(min(length, 40)) + bytes(max(length - 40, 0)), ttl)

    def _stored(self, value: bytes, ttl: int) -> bytes:
        return self.rules.to_stored(PublishedEntry(value, ttl, self.number).encode())

    def _change(self, publisher: _Publisher) -> None:
        """Change a publisher's entries, or give it a defect."""
        draws = self.draws
        kind = draws.below(20)
        if kind == 0:
            publisher.entries = {}
        elif kind <= 2 and publisher.earlier:
            publisher.entries = dict(draws.choice(publisher.earlier))
        elif kind == 3:
            publisher.fault = draws.choice(
                ("short-root", "long-root", "no-node", "bad-child", "", "", "", "")
            )
        elif kind == 4:
            self._publish(publisher, len(publisher.pool))
        elif kind <= 7:
            for key in draws.sample(list(publisher.entries), draws.between(1, 3)):
                del publisher.entries[key]
        elif kind <= 15:
            self._publish(publisher, draws.between(1, 3))

    # The relay chain

    def _static_entries(self) -> dict[bytes, bytes]:
        """Draw the entries of the relay state that never change."""
        draws = self.draws
        count = draws.between(3, 40)
        filler = {
            draws.take(draws.between(1, 40)): draws.take(draws.between(0, 60)) for _ in range(count)
        }
        filler[storage_keys.ACTIVE_CONFIG] = draws.take(draws.between(20, 200))
        if draws.one_in(3):
            filler[storage_keys.upgrade_go_ahead_signal(PARA)] = b"\x01"
        return filler

    def _relay_block(self) -> None:
        """Add the relay block `self.number` with the present entries of all publishers."""
        self._send_messages()
        if self.tip is not None:
            self.tip.begin_block(self.number)
        self.relays.append(
            self._image(
                self.number, {publisher.para: publisher.entries for publisher in self.publishers}
            )
        )
        if self.tip is not None:
            self.tip.seal(self.number, self.relays[-1].storage_root)
        for publisher in self.publishers:
            publisher.earlier = [*publisher.earlier[-2:], dict(publisher.entries)]

    def _send_messages(self) -> None:
        """Queue random messages to the subscriber in the next relay block."""
        draws = self.draws
        for _ in range(draws.choice((0, 0, 0, 1, 2))):
            self._send(0, self._order() if draws.one_in(3) else draws.take(draws.between(0, 60)))
        for sender in self.senders:
            for _ in range(draws.choice((0, 0, 1, 2))):
                self._send(sender, draws.take(draws.between(0, 90)))
        if self.spec.reserve_minimum and draws.one_in(2):
            # A few of these exceed the share of a small block, so the last ones are hashed.
            for queue in draws.sample((0, *self.senders), draws.between(1, 1 + len(self.senders))):
                limit = _LARGEST_MESSAGE if queue else self.spec.messages_limit
                for _ in range(draws.between(1, 4)):
                    self._send(queue, draws.take(8) + bytes(draws.between(limit // 3, limit) - 8))

    def _send(self, queue: int, data: bytes) -> None:
        """Queue a message from the sender `queue`, and extend the head of its message chain.

        Sender 0 is the relay chain.
        """
        self.queues.setdefault(queue, []).append((self.number, data))
        head = self.heads.get(queue, ZERO_HEAD)
        self.heads[queue] = message_chain(head, ((self.number, data),))

    def _order(self) -> bytes:
        """Draw a call of governance: to the subscriber's pallet, nonsense, or an upgrade."""
        draws = self.draws
        para = draws.choice(self.publishers).para
        kind = draws.below(6)
        if kind < 3:
            return transact(
                subscriber_call(
                    ("clear_publisher_cache", "redeliver", "enable_publisher")[kind], para
                )
            )
        if kind == 3:
            return transact(draws.take(draws.between(0, 9)))
        self.spec = replace(
            self.spec, subscriptions=self._subscriptions(), spec_version=self.spec.spec_version + 1
        )
        if kind == 4:
            policy = draws.choice(tuple(config.CachePolicy))
            self.spec = replace(
                self.spec, cache=policy, max_cache_bytes=max(self.spec.max_cache_bytes, 1140)
            )
        return transact(set_code(self.spec))

    def _image(
        self, number: RelayBlockNumber, published: Mapping[ParaId, Mapping[PubsubKey, bytes]]
    ) -> RelayImage:
        """Return a relay block with these published entries."""
        entries = dict(self.static)
        entries[storage_keys.CURRENT_SLOT] = number.to_bytes(8, "little")
        if 0 in self.heads:
            entries[storage_keys.dmq_mqc_head(PARA)] = self.heads[0]
        if self.senders:
            index = b"".join(sender.to_bytes(4, "little") for sender in self.senders)
            entries[storage_keys.hrmp_ingress_channel_index(PARA)] = (
                encode_compact(len(self.senders)) + index
            )
        for sender in self.senders:
            head = self.heads.get(sender)
            channel = _CHANNEL_LIMITS + (b"\x00" if head is None else b"\x01" + head) + bytes(32)
            entries[storage_keys.hrmp_channel(ParaId(sender), PARA)] = channel
        if self.tip is not None:
            entries |= self.tip.entries()
        children: dict[bytes, Trie] = {}
        malformed_nodes: dict[bytes, tuple[bytes, ...]] = {}
        stored: dict[bytes, dict[bytes, bytes]] = {}
        faults: dict[bytes, str] = {}
        for publisher in self.publishers:
            rows = published[publisher.para]
            child, keys = self.rules.placed(publisher.para, rows)
            stored.setdefault(child, {}).update(zip(keys, rows.values(), strict=True))
            faults[child] = publisher.fault or faults.get(child, "")
        for child, placed in stored.items():
            trie = Trie.from_entries(placed.items())
            if not trie:
                continue
            children[child] = trie
            root: bytes = trie.root()
            fault = faults[child]
            if fault == "short-root":
                root = root[:31]
            elif fault == "long-root":
                root += b"\x00"
            elif fault == "no-node":
                malformed_nodes[child] = (b"\x07" + root,)
                root = blake2_256(b"\x07" + root)
            elif fault == "bad-child":
                root, malformed_nodes[child] = _with_bad_child(trie)
            entries[storage_keys.child_root_key(child)] = root
        return RelayImage(
            number, Trie.from_entries(entries.items()), children, malformed_nodes=malformed_nodes
        )

    # Stepping

    def situation(self) -> Situation:
        """Return the next block to author."""
        if self._now is None:
            self._now = self._situation()
        return self._now

    def _situation(self) -> Situation:
        """Return everything that the author of the next block knows."""
        draws = self.draws
        slot = (self.head.header.aura_slot() or 0) + draws.between(1, 2)
        relay, others = self._known()
        downward = tuple(
            InboundDownwardMessage(RelayBlockNumber(sent_at), data)
            for sent_at, data in self.queues.get(0, ())
        )
        horizontal = []
        for sender in sorted(self.queues):
            # The queue of the relay chain, 0, has the downward messages.
            if sender:
                messages = tuple(
                    InboundHrmpMessage(RelayBlockNumber(sent_at), data)
                    for sent_at, data in self.queues[sender]
                )
                horizontal.append((ParaId(sender), messages))
        waiting = InboundMessages(downward, tuple(horizontal)).until(relay.number)
        spec = config.runtime_spec(self.head.state.top)
        shares = spec.shares(self.head.rules.named(spec.rules))
        situation = Situation(
            parent=self.head,
            relay=relay,
            messages=abridged(waiting, shares),
            slot=Slot(slot),
            slot_now=Slot(slot + draws.choice((0, 0, 1, 5))),
            seeds=self.seeds,
            stranger=self.stranger,
            others=others,
            foreign=self._foreign(relay.number),
            waiting=waiting,
        )
        if not self.proofs_only:
            return situation
        # The runtime's own budget of at least a megabyte did not stop the walk, so its cost is that
        # of all items. Four of five of the drawn budgets may stop it, and the others are ample.
        used = situation.walked.used
        budget = situation.spec.max_item_cost
        if draws.below(5):
            budget += draws.below(used + 320)
        else:
            budget += used + 4000
        return replace(situation, budget=budget)

    def _known(self) -> tuple[RelayAccess, tuple[RelayAccess, ...]]:
        """Return the relay parent of the next block, and three older relay blocks."""
        if self.tip is None:
            return self.relays[-1], tuple(reversed(self.relays[-4:-1]))
        known = [
            replace(relay, headers=self.tip.headers_from(relay.number))
            for relay in self.relays[-4 - self.tip.offset :]
        ]
        parent_index = len(known) - 1 - self.tip.offset
        return known[parent_index], tuple(reversed(known[:parent_index]))

    def _foreign(self, number: RelayBlockNumber) -> RelayImage:
        """Return a forged state of relay block `number`.

        It is the newest relay state with a changed entry of each publisher.
        """
        published = {}
        for publisher in self.publishers:
            entries = dict(publisher.entries)
            key = self.draws.choice(publisher.pool)
            entries[key] = self._stored(b"forged" + self.draws.take(40), 0)
            published[publisher.para] = entries
        return self._image(number, published)

    def advance(self) -> None:
        """Include the honest block, and usually let the relay chain build further blocks."""
        situation = self.situation()
        inherent = situation.inherent(situation.relay, situation.walked, situation.messages)
        seed = turn_of(situation.slot, situation.seeds)
        storage = Storage(situation.parent.state.fork())
        candidate, outcome = build(
            storage,
            situation.spec,
            situation.parent.header,
            inherent,
            situation.walked,
            situation.slot,
            seed,
        )
        self.head = self.head.followed(candidate.header, outcome.state)
        # The block has read these messages. The relay chain, `None` here, has queue 0.
        for sender, messages in situation.messages.queues():
            del self.queues.get(sender or 0, [])[: len(messages)]
        self._now = None
        if self.draws.one_in(6):
            return
        for _ in range(self.draws.choice((1, 1, 2))):
            further = self.draws.choice((1, 1, 1, 3))
            # Relay headers must follow each other without a gap.
            further = further if self.tip is None else 1
            self.number = RelayBlockNumber(self.number + further)
            for publisher in self.publishers:
                if self.draws.below(5) < 3:
                    self._change(publisher)
            self._relay_block()


def _with_bad_child(trie: Trie) -> tuple[Hash, tuple[bytes, ...]]:
    """Return a root node with a child that is not a valid node, and the malformed nodes.

    If the trie's root has no child in a node of its own, only the root's hash is replaced.
    """
    root = trie.root()
    nodes: dict[Hash, bytes] = {}
    trie.prove([key for key, _ in trie.items()], nodes)
    bad = b"\x0f no node"
    node = nodes[root]
    child = next(
        (node_hash for node_hash in nodes if node_hash != root and node.find(node_hash) >= 0), None
    )
    forged = bad if child is None else node.replace(child, blake2_256(bad), 1)
    return blake2_256(forged), (forged, bad)


def fresh_state(state: State) -> State:
    """Return an equal state, built from its entries, without the cached nodes and hashes."""
    children = {
        child_key: list(state.child_entries(child_key)) for child_key in sorted(state.children)
    }
    prefix = storage_keys.CHILD_STORAGE_PREFIX
    return State.from_entries(
        ((key, value) for key, value in state.top_entries() if not key.startswith(prefix)), children
    )
