"""A small world for subscriber tests: relay states from plain dicts, a parachain that steps, and
honest collators.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from pubsub_emulator.primitives import ed25519
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header, aura_pre_digest, aura_seal
from pubsub_emulator.primitives.pubsub import PublishedEntry, key_from_data, publisher_root_key
from pubsub_emulator.primitives.storage_keys import CODE, dmq_mqc_head
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.dispatch import Call
from pubsub_emulator.runtime.framework.dispatch import dispatch as dispatch_call
from pubsub_emulator.runtime.framework.events import events
from pubsub_emulator.runtime.framework.message_chains import (
    ZERO_HEAD,
    HorizontalMessages,
    InboundDownwardMessage,
    InboundMessages,
    message_chain,
)
from pubsub_emulator.runtime.framework.origin import Origin, Root
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery, apply
from pubsub_emulator.runtime.pallet_subscriber.calls import SubscriberCalls
from pubsub_emulator.runtime.pallet_subscriber.config import (
    CachePolicy,
    RuntimeSpec,
    merge_subscriptions,
    runtime_spec,
)
from pubsub_emulator.runtime.pallet_subscriber.handler import (
    HANDLERS,
    HandlerContext,
    SubscriptionHandler,
)
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, plan
from pubsub_emulator.runtime.pallet_subscriber.storage import LastDelivered
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain import governance
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, Inherent, extrinsics_root
from pubsub_emulator.runtime.parachain.execute import BlockOutcome, execute_block
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block
from pubsub_emulator.trie import Trie

ME = ParaId(3000)
"""The subscriber."""

PLENTY = 1 << 40
SEEDS = tuple(bytes((i,)) * 32 for i in (1, 2))
COLLATORS = tuple(map(ed25519.public_key, SEEDS))

Entries = Mapping[bytes, PublishedEntry | bytes]


def name(text: str) -> PubsubKey:
    return key_from_data(text.encode())


def numbered(count: int, first: int = 0) -> list[PubsubKey]:
    """Return distinct keys in ascending order."""
    return sorted(name(f"key {i}") for i in range(first, first + count))


def entry(value: bytes = b"v" * 40, ttl: int = 0, when: int = 1) -> PublishedEntry:
    return PublishedEntry(value, ttl, RelayBlockNumber(when))


class Relay:
    """A relay state at one block.

    `publishers` maps a para to its entries, given as such or as the bytes that stand in the trie.
    `raw_roots` puts any bytes where a child root belongs, `extra` are nodes that those may refer
    to.
    """

    def __init__(
        self,
        number: int,
        publishers: Mapping[int, Entries] | None = None,
        *,
        top: Mapping[bytes, bytes] | None = None,
        raw_roots: Mapping[int, bytes] | None = None,
        extra: Iterable[bytes] = (),
        filler: int = 20,
    ) -> None:
        self.number = RelayBlockNumber(number)
        self.nodes: dict[Hash, bytes] = {blake2_256(node): node for node in extra}
        self.child_roots: dict[int, bytes] = {}
        rows = {blake2_256(b"filler %d" % i): blake2_256(b"%d" % i) for i in range(filler)} | dict(
            top or {}
        )
        for para, entries in (publishers or {}).items():
            if not entries:
                continue
            plain = {key: e if isinstance(e, bytes) else e.encode() for key, e in entries.items()}
            trie = Trie.from_entries(plain.items())
            trie.prove(plain, self.nodes)
            self.child_roots[para] = trie.root()
        self.child_roots |= raw_roots or {}
        rows |= {publisher_root_key(ParaId(para)): root for para, root in self.child_roots.items()}
        trie = Trie.from_entries(rows.items())
        trie.prove([*rows, b""], self.nodes)
        self.root = Hash(trie.root())

    def context(self, slot_now: int = 1 << 32) -> RelayContext:
        return RelayContext(self.number, self.root, Slot(slot_now))


def make_spec(
    subscriptions: Mapping[int, Iterable[bytes]] | None = None, **changes: Any
) -> RuntimeSpec:
    """Return a runtime that subscribes to these keys. The policy may be given by its name."""
    declared = [
        (ParaId(p), [PubsubKey(key) for key in keys]) for p, keys in (subscriptions or {}).items()
    ]
    if "cache" in changes:
        changes["cache"] = CachePolicy(changes["cache"])
    return replace(RuntimeSpec(ME, merge_subscriptions(declared)), **changes)


each_policy = pytest.mark.parametrize("policy", ["nodes", "none", "slots"])


def filled(
    keys: Iterable[bytes], value: bytes = b"v" * 40, when: int = 1
) -> dict[bytes, PublishedEntry | bytes]:
    """Return similar entries under these keys.

    Each value ends with its key, so that no two keys share a node.
    """
    return {key: entry(value + key, 0, when) for key in keys}


def channel(head: Hash | None) -> bytes:
    """Return an encoded `HrmpChannel` whose queue has this chain head."""
    sizes = (64, 102_400, 102_400, 0, 0)
    limits = b"".join(size.to_bytes(4, "little") for size in sizes)
    return limits + (b"\x00" if head is None else b"\x01" + head) + bytes(32)


class Recorder:
    """A handler that records its calls and does what the test sets."""

    def __init__(
        self, act: Callable[[HandlerContext, ParaId, PubsubKey], object] = lambda *_: None
    ) -> None:
        self.act = act
        self.calls: list[tuple[int, bytes, bytes | None, Any]] = []

    def on_data_updated(
        self, context: Any, publisher: ParaId, key: PubsubKey, value: bytes, ttl_state: Any
    ) -> None:
        self.calls.append((publisher, key, value, ttl_state))
        self.act(context, publisher, key)

    def on_data_removed(self, context: Any, publisher: ParaId, key: PubsubKey) -> None:
        self.calls.append((publisher, key, None, None))
        self.act(context, publisher, key)


@dataclass
class Step:
    plan: Plan
    deliveries: tuple[Delivery, ...]
    events: list[Event]

    @property
    def keys(self) -> list[bytes]:
        return [delivery.key for delivery in self.deliveries]

    @property
    def items(self) -> list[tuple[int, bytes]]:
        return [(delivery.publisher, delivery.key) for delivery in self.deliveries]

    @property
    def cursor(self) -> tuple[ParaId, PubsubKey] | None:
        return self.plan.cursor


class Subscriber:
    """The pallet alone: `plan` and `apply` under any budget, without headers, seals and
    inherents.
    """

    def __init__(self, spec: RuntimeSpec) -> None:
        rows = [(b"other %d" % i, b"x" * 40) for i in range(3)]
        self.storage = Storage(State.from_entries([*rows, (CODE, spec.encode())]))
        self.calls = Recorder()

    @property
    def spec(self) -> RuntimeSpec:
        return runtime_spec(self.storage)

    def upgrade(self, **changes: Any) -> None:
        """Upgrade the runtime between two blocks. `subscriptions` is given as to `make_spec`."""
        if "subscriptions" in changes:
            changes["subscriptions"] = make_spec(changes["subscriptions"]).subscriptions
        if "cache" in changes:
            changes["cache"] = CachePolicy(changes["cache"])
        governance.upgrade(self.storage, replace(self.spec, **changes))
        self.storage.commit()

    def plan(
        self, relay: Relay, budget: int = PLENTY, nodes: Mapping[Hash, bytes] | None = None
    ) -> Plan:
        return plan(
            SubscriberView(self.storage, self.spec),
            relay.root,
            relay.nodes if nodes is None else nodes,
            budget,
        )

    def block(
        self, relay: Relay, budget: int = PLENTY, handler: SubscriptionHandler | None = None
    ) -> Step:
        walked = self.plan(relay, budget)
        assert walked.missing is None, walked.missing
        del self.storage.log[:]
        deliveries = apply(self.storage, self.spec, walked, relay.number, handler or self.calls)
        log = events(self.storage)
        self.storage.commit()
        return Step(walked, deliveries, log)

    def call(self, call: str, para: int, origin: Origin | None = None) -> Any:
        """Execute a root call and return its outcome."""
        pallet = SubscriberCalls()
        del self.storage.log[:]
        outcome = dispatch_call(
            pallet, self.storage, origin or Root(), Call(items.PALLET.name, call, (ParaId(para),))
        )
        self.storage.commit()
        return outcome

    # What the state says

    @property
    def roots(self) -> dict[int, bytes]:
        return dict(items.PROCESSED_ROOTS.get(self.storage))

    @property
    def cursor(self) -> tuple[ParaId, PubsubKey] | None:
        return items.PROCESSING_CURSOR.get(self.storage)

    @property
    def disabled(self) -> dict[int, str]:
        return {
            para: reason.value for para, reason in items.DISABLED_PUBLISHERS.items(self.storage)
        }

    def cached(self, para: int) -> dict[bytes, bytes]:
        """Return the live nodes of policy `nodes`, by hash."""
        info = items.CACHE_INFO.get(self.storage, ParaId(para))
        return dict(items.CACHED_TRIE_NODES.items(self.storage, (ParaId(para), info.generation)))

    def cache_rows(self) -> int:
        """Return the rows of `CachedTrieNodes`, including stale ones."""
        return sum(1 for _ in items.CACHED_TRIE_NODES.rows(self.storage))

    def slots(self, para: int) -> dict[bytes, bytes]:
        return dict(items.CACHE_SLOTS.items(self.storage, ParaId(para)))

    def last(self) -> dict[tuple[int, bytes], LastDelivered]:
        """Return the last delivered value of every subscribed item, in its stored form."""
        wanted = [(para, key) for para, keys in self.spec.subscriptions.items() for key in keys]
        found = {item: delivered.get(self.storage, self.spec, *item) for item in wanted}
        return {item: row for item, row in found.items() if row is not None}

    def entries(self) -> dict[bytes, bytes]:
        """Return the pallet's whole state."""
        return dict(self.storage.iter_prefix(items.LAST_RELAY_PARENT.key[:16]))


class Chain:
    """A parachain with a head and honest collators; `validate` alone decides whether it
    advances.
    """

    def __init__(
        self, spec: RuntimeSpec, handlers: Mapping[str, SubscriptionHandler] = HANDLERS
    ) -> None:
        self.head = genesis(spec, COLLATORS)
        self.handlers = handlers
        self.slot = 0

    @property
    def header(self) -> Header:
        return self.head.header

    @property
    def state(self) -> State:
        return self.head.state

    @property
    def spec(self) -> RuntimeSpec:
        return runtime_spec(Storage(self.state))

    def author(
        self,
        relay: Relay,
        downward: Sequence[InboundDownwardMessage] = (),
        horizontal: HorizontalMessages = (),
        **claims: Any,
    ) -> Candidate:
        """Return an honest candidate.

        `claims` overrides fields of its inherent, `state_root` and `slot`.
        """
        slot, state_root = claims.pop("slot", self.slot + 1), claims.pop("state_root", None)
        storage = Storage(self.state.fork())
        spec = runtime_spec(storage)
        messages = InboundMessages(tuple(downward), horizontal).tidy()
        weight = messages.weight
        storage.start_recording()
        calls = governance.root_calls(spec, messages)
        walked = plan(
            SubscriberView(storage, spec), relay.root, relay.nodes, spec.budget(weight), calls
        )
        inherent = Inherent(
            relay.number,
            relay.root,
            walked.proof(),
            self.header.encode(),
            spec.max_pov_size,
            messages,
        )
        inherent = replace(inherent, **claims)
        digest = (aura_pre_digest(Slot(slot)),)
        number = self.header.number + 1
        handlers: Any = self.handlers
        outcome = execute_block(
            storage,
            spec,
            self.header,
            number=number,
            digest=digest,
            inherent=inherent,
            plan=walked,
            handlers=handlers,
        )
        header = Header(
            self.header.hash(),
            number,
            state_root or outcome.state_root,
            extrinsics_root(inherent),
            outcome.digest,
        )
        return seal(Candidate(header, inherent))

    def judge(self, candidate: Candidate, relay: Relay, slot_now: int = 1 << 32) -> BlockOutcome:
        return validate_block(self.head, candidate, relay.context(slot_now), self.handlers)

    def take(self, candidate: Candidate, outcome: BlockOutcome) -> None:
        """Build on a valid block."""
        self.head = ChainHead(candidate.header, outcome.state)
        self.slot = candidate.header.aura_slot() or 0

    def step(
        self,
        relay: Relay,
        downward: Sequence[InboundDownwardMessage] = (),
        horizontal: HorizontalMessages = (),
    ) -> BlockOutcome:
        candidate = self.author(relay, downward, horizontal)
        outcome = self.judge(candidate, relay)
        self.take(candidate, outcome)
        return outcome


class Governed:
    """A chain that is sent downward messages, each block on a relay block of its own."""

    def __init__(self, spec: RuntimeSpec) -> None:
        self.chain = Chain(spec)
        self.head = ZERO_HEAD
        self.number = 0

    def block(self, publishers: Mapping[int, Entries], *messages: bytes) -> BlockOutcome:
        self.number += 1
        inbound = [
            InboundDownwardMessage(RelayBlockNumber(self.number), message) for message in messages
        ]
        self.head = message_chain(self.head, ((self.number, message) for message in messages))
        return self.chain.step(
            Relay(self.number, publishers, top={dmq_mqc_head(ME): self.head}), inbound
        )

    def call(self, publishers: Mapping[int, Entries], name: str, *paras: int) -> BlockOutcome:
        """Send root calls of the pallet, each in a message of its own."""
        return self.block(
            publishers,
            *(governance.transact(governance.subscriber_call(name, para)) for para in paras),
        )

    def upgrade(self, publishers: Mapping[int, Entries], spec: RuntimeSpec) -> BlockOutcome:
        return self.block(publishers, governance.transact(governance.set_code(spec)))


def seal(candidate: Candidate, seed: bytes | None = None) -> Candidate:
    """Sign a candidate as it stands, with the seed of whose turn it is."""
    header = candidate.header
    bare = replace(
        header,
        extrinsics_root=candidate.extrinsics_root(),
        digest=header.unsealed(),
    )
    signer = seed or SEEDS[(bare.aura_slot() or 0) % len(SEEDS)]
    return replace(
        candidate,
        header=replace(
            bare, digest=(*bare.digest, aura_seal(ed25519.sign(signer, bare.pre_hash())))
        ),
    )


def with_proof(candidate: Candidate, proof: Iterable[bytes]) -> Candidate:
    """Return the same block with another proof, sealed again."""
    return seal(replace(candidate, inherent=replace(candidate.inherent, proof=tuple(proof))))
