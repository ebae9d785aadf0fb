"""A relay block of publishes, the walk, a subscriber's block, a fuzz case."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Final

from bench.measure import Race, Work, hashing
from bench.tries import update
from pubsub_emulator.collator.author import RelayBlock, author
from pubsub_emulator.collator.cheats import propose
from pubsub_emulator.collator.cheats.mutations import MUTATIONS
from pubsub_emulator.collator.cheats.steps import apply_to_proof
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.parachain import pack
from pubsub_emulator.emulator.network.records import BlockRecord, Observer
from pubsub_emulator.emulator.relay.runtime import RelayConfig, RelayRuntime
from pubsub_emulator.laboratory.cases import JudgingContext
from pubsub_emulator.laboratory.worlds import World
from pubsub_emulator.primitives import babe
from pubsub_emulator.primitives.ed25519 import public_key
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key, key_from_data
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber, Slot
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.executive import BlockWeights
from pubsub_emulator.runtime.framework.message_chains import NO_MESSAGES
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_pubsub import Config, GenesisPublisher, genesis_rows
from pubsub_emulator.runtime.pallet_subscriber.config import (
    CachePolicy,
    RuntimeSpec,
    merge_subscriptions,
)
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, plan
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block
from pubsub_emulator.spark_audit.simulate.population import Population
from pubsub_emulator.trie import Trie, read_child_proof
from pubsub_emulator.xcm import Publish

KEYS: Final = 100_000
PUBLISHES: Final = 100
ITEMS: Final = 1_000
FIRST: Final = 1_000
"""The id of the first publisher. It is that of a system parachain, so it needs no registration."""
SMALL: Final = 100
"""The number of blocks that are taken from a simulated network."""
SUBSCRIBER: Final = ParaId(3_000)
SEED: Final = bytes(range(32))
PLENTY: Final = Weight(1 << 60, 1 << 60)


def key_of(para: int, index: int) -> PubsubKey:
    """Return a publisher's key by its number."""
    return key_from_data(b"%d/%d" % (para, index))


@dataclass(frozen=True, slots=True)
class Relay:
    """A relay chain's runtime and a state of `publishers` with `KEYS` keys between them."""

    runtime: RelayRuntime
    state: State
    publishers: range

    @staticmethod
    def make(publishers: int, keys: int) -> "Relay":
        """Return a relay chain whose keys are spread evenly over its publishers."""
        per_publisher = keys // publishers
        paras = range(FIRST, FIRST + publishers)
        # Deregistering so many keys has to fit into a block.
        limits = Config(
            max_stored_keys=max(per_publisher, 1_024),
            max_total_storage_size=1 << 30,
            max_block_weight=PLENTY,
        )
        weights = BlockWeights(PLENTY, PLENTY)
        runtime = RelayRuntime(RelayConfig(pubsub=limits, weights=weights))
        storage = Storage(State())
        runtime.genesis(storage, {ParaId(para): bytes(32) for para in paras}, {}, (), ())
        storage.commit()

        def published(para: int, i: int) -> tuple[PubsubKey, PublishedEntry]:
            value = (para << 64 | i).to_bytes(64, "little")
            return key_of(para, i), PublishedEntry(value, 0, RelayBlockNumber(0))

        owners = {
            ParaId(para): GenesisPublisher([published(para, i) for i in range(per_publisher)])
            for para in paras
        }
        rows, children = genesis_rows(limits, owners)
        return Relay(
            runtime, State.from_entries([*storage.state.top_entries(), *rows], children), paras
        )

    def queue(self, count: int) -> tuple[State, list[tuple[int, PubsubKey]]]:
        """Return a state in which `count` publishes wait as XCM bytes, and their keys.

        The publishes update keys that exist. Each key is returned with its publisher.
        """
        rng = random.Random(164)
        per_publisher = sum(1 for _ in self.state.child_entries(derive_child_key(ParaId(FIRST))))
        chosen = [
            (self.publishers[i % len(self.publishers)], rng.randrange(per_publisher))
            for i in range(count)
        ]
        waiting: dict[int, list[Publish]] = {}
        for para, index in chosen:
            waiting.setdefault(para, []).append(Publish(key_of(para, index), rng.randbytes(64), 0))
        storage = Storage(self.state.fork())
        for para, publishes in waiting.items():
            self.runtime.message_queue.enqueue(storage, ParaId(para), pack(publishes))
        storage.commit()
        return storage.state, [(para, key_of(para, index)) for para, index in chosen]


def relay_blocks() -> Iterator[Race]:
    """Yield races of blocks with a hundred publishes, by one publisher and by a hundred."""
    return chain.from_iterable(map(_relay_block, (1, 100)))


def _relay_block(publishers: int) -> Iterator[Race]:
    relay = Relay.make(publishers, KEYS)
    waiting, places = relay.queue(PUBLISHES)
    digest = (babe.pre_digest(Slot(1)),)

    def block() -> Storage:
        storage = Storage(waiting.fork())
        relay.runtime.executive.build_block(storage, 1, Hash(bytes(32)), digest=digest)
        return storage

    storage = block()
    after = storage.state
    changed = [place for place in places if _entry(after, *place) != _entry(relay.state, *place)]
    if len(changed) != len(places):
        raise RuntimeError(f"{len(places) - len(changed)} of the publishes did not arrive")
    touched: dict[Hash, bytes] = {}
    before: dict[Hash, bytes] = {}
    by_para: dict[bytes, list[bytes]] = {}
    for para, key in places:
        by_para.setdefault(derive_child_key(ParaId(para)), []).append(key)
    after.prove((), by_para, touched)
    waiting.prove((), by_para, before)
    floor = hashing(node for name, node in touched.items() if name not in before)

    children = (waiting.child_entries(derive_child_key(ParaId(para))) for para in relay.publishers)
    trie = Trie.from_entries([*chain.from_iterable(children)])
    trie.root()
    updates = [(key, _entry(after, para, key) or b"") for para, key in places]
    name = (
        f"relay block of {PUBLISHES} publishes, {publishers}"
        f" publisher{'s' if publishers > 1 else ''}"
    )
    yield Race(name, block, "hashing", floor, 31)
    yield Race(name, block, "W2 on a fork", lambda: update(trie.fork(), updates), 31, 6.0)


def _entry(state: State, para: int, key: PubsubKey) -> bytes | None:
    trie = state.children.get(derive_child_key(ParaId(para)))
    return None if trie is None else trie.get(key)


def image(published: dict[PubsubKey, bytes]) -> State:
    """Return a relay state with one publisher and some hundreds of other rows."""
    top = [(b"row %d" % i, blake2_256(b"%d" % i)) for i in range(300)]
    return State.from_entries(top, {derive_child_key(ParaId(2_000)): published.items()})


def entry(key: PubsubKey, number: int) -> bytes:
    """Return the encoded entry of a key, published in block `number`, with a value of 64 bytes."""
    return PublishedEntry(
        2 * blake2_256(key + number.to_bytes(4, "little")), 0, RelayBlockNumber(number)
    ).encode()


def subscriber(
    policy: CachePolicy, keys: tuple[PubsubKey, ...]
) -> tuple[RuntimeSpec, Header, State]:
    """Return the runtime, header and state of a subscriber at its genesis."""
    spec = RuntimeSpec(SUBSCRIBER, merge_subscriptions([(ParaId(2_000), list(keys))]), cache=policy)
    head = genesis(spec, (public_key(SEED),))
    return spec, head.header, head.state


def walks() -> Iterator[Race]:
    """Yield races of `plan` over a proof of new items, by cache policy."""
    all_keys = [key_of(2_000, i) for i in range(KEYS)]
    relay = image({key: entry(key, 1) for key in all_keys})
    keys = tuple(sorted(all_keys[:ITEMS]))
    child = derive_child_key(ParaId(2_000))
    source: dict[Hash, bytes] = {}
    relay.prove(fixed_keys(SUBSCRIBER), {child: keys}, source)
    nodes = sorted(source.values())
    root = relay.root()

    def read() -> object:
        return read_child_proof(root, nodes, child, keys)

    for policy in (CachePolicy.NONE, CachePolicy.SLOTS):
        spec, _, state = subscriber(policy, keys)

        def walk(spec: RuntimeSpec = spec, state: State = state) -> Plan:
            return plan(SubscriberView(Storage(state.fork()), spec), root, source, spec.budget(0))

        if len(walk().changes) != ITEMS:
            raise RuntimeError("the walk did not deliver everything")
        name = f"plan of {ITEMS:,} items, {policy.value}"
        yield Race(name, walk, "W4 of the same proof", read, 51, 1.5)
        yield Race(name, walk, "hashing", hashing(nodes), 31)


def blocks() -> Iterator[Race]:
    """Measure all of `validate_block` on blocks of a simulated network.

    In the first block all items are new, in the second a tenth of them changed.
    """
    yield small_blocks()
    all_keys = [key_of(2_000, i) for i in range(10 * ITEMS)]
    published = {key: entry(key, 1) for key in all_keys}
    keys = tuple(sorted(all_keys[:ITEMS]))
    _, header, state = subscriber(CachePolicy.SLOTS, keys)
    for number, title in ((1, "all new"), (2, "a tenth changed")):
        if number > 1:
            for key in keys[::10]:
                published[key] = entry(key, number)
        relay = RelayBlock(RelayBlockNumber(number), image(published))
        authored = author(ChainHead(header, state), relay, NO_MESSAGES, Slot(number), SEED)
        context = RelayContext(relay.number, relay.storage_root, Slot(number))
        work = validating(header, state, authored.candidate.encode(), context)
        floor = hashing(authored.candidate.inherent.proof)
        yield Race(
            f"validate_block, {ITEMS:,} items, {title}", work, "hashing of its proof", floor, 31
        )
        header = authored.candidate.header
        state = authored.outcome.state


class _Judged(Observer):
    """An observer that records the judge's input for each candidate.

    It is the head of the parent, the candidate's bytes, and the relay chain's context.
    """

    def __init__(self, network: Network) -> None:
        self.heads = {para: chain.head for para, chain in network.parachains.items()}
        self.seen: list[tuple[ChainHead, bytes, RelayContext]] = []
        self.nodes: list[bytes] = []

    def candidate(self, record: BlockRecord) -> None:
        inherent = record.candidate.inherent
        context = RelayContext(
            inherent.relay_parent_number, record.relay_storage_root, record.slot_now
        )
        self.seen.append((self.heads[record.chain], record.candidate.encode(), context))
        self.nodes += inherent.proof
        if record.outcome is not None:
            self.heads[record.chain] = ChainHead(record.candidate.header, record.outcome.state)


def small_blocks() -> Race:
    """Return a race of `validate_block` on the first blocks of a simulated network.

    The network is one that `pubsub simulate` would make, without cheats.
    """
    population = Population("bench", 0, 0)
    network = population.network(unjudged=True)
    judged = _Judged(network)
    network.observe(judged)
    while len(judged.seen) < SMALL:
        population.feed(network)
        network.step()

    def judge() -> None:
        for head, encoded, context in judged.seen:
            validate_block(head, Candidate.decode(encoded), context)

    note = f"{len(judged.nodes) // len(judged.seen)} nodes each"
    name = f"validate_block, {len(judged.seen)} simulated blocks"
    return Race(name, judge, "hashing of their proofs", hashing(judged.nodes), 11, note=note)


def validating(header: Header, state: State, encoded: bytes, context: RelayContext) -> Work:
    """Return work that decodes and validates a block."""
    return lambda: validate_block(ChainHead(header, state), Candidate.decode(encoded), context)


def fuzz_cases() -> Iterator[Race]:
    """Yield a race of drawing, applying and judging mutations of a proof of about fifty nodes."""
    situations = (
        World(b"bench/%d" % number, proofs_only=True).situation() for number in range(400)
    )
    now = next(
        (
            situation
            for situation in situations
            if 45 <= len(situation.canonical) <= 55 and situation.budget is not None
        ),
        None,
    )
    if now is None:
        raise RuntimeError("no world has a proof of fifty nodes")
    bench = JudgingContext.of(now)
    turns = count(1)

    def cases() -> None:
        for turn in islice(turns, 100):
            names, steps = propose(
                now, (MUTATIONS[turn % len(MUTATIONS)],), blake2_256(turn.to_bytes(4, "little"))
            )
            if names:
                bench.judge_proof(now.view, apply_to_proof(now.canonical, steps))

    note = f"100 cases, {len(now.canonical)} nodes"
    floor = hashing([*now.canonical] * 100)
    yield Race("fuzz cases", cases, "hashing", floor, 21, note=note)
