"""The tiny blocks of docs/worked-cases.md: made here, carried in tests/vectors/worked, and judged step by step.

`python tests/support/worked.py` writes them anew; the page is written when the site is built.
"""

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.heads import AtHead  # noqa: E402  # after the path

from pubsub_emulator.collator.author import RelayBlock, author, seal  # noqa: E402
from pubsub_emulator.emulator.fixtures import Fixture, make_fixture, write_fixture  # noqa: E402
from pubsub_emulator.emulator.network.records import BlockRecord  # noqa: E402
from pubsub_emulator.primitives import storage_keys  # noqa: E402
from pubsub_emulator.primitives.ed25519 import public_key  # noqa: E402
from pubsub_emulator.primitives.header import Header  # noqa: E402
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key  # noqa: E402
from pubsub_emulator.primitives.scale import encode_bytes  # noqa: E402
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber, Slot  # noqa: E402
from pubsub_emulator.runtime.framework.message_chains import NO_MESSAGES  # noqa: E402
from pubsub_emulator.runtime.framework.storage import State  # noqa: E402
from pubsub_emulator.runtime.pallet_subscriber.config import MIN_BUDGET, CachePolicy, RuntimeSpec  # noqa: E402
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, Inherent, InvalidBlock  # noqa: E402
from pubsub_emulator.runtime.parachain.execute import BlockOutcome  # noqa: E402
from pubsub_emulator.runtime.parachain.genesis import genesis  # noqa: E402
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block  # noqa: E402

FOLDER = ROOT / "tests" / "vectors" / "worked"
PARA = ParaId(3000)
PUBLISHER = ParaId(1000)
SEEDS = (hashlib.sha256(b"collator 0").digest(), hashlib.sha256(b"collator 1").digest())
FIRST, SECOND, THIRD = (PubsubKey(bytes((nibble,)) + bytes(31)) for nibble in (0x10, 0x20, 0x30))
Entries = Mapping[PubsubKey, PublishedEntry]


def entry(value: bytes, at: int, ttl: int = 0) -> PublishedEntry:
    return PublishedEntry(value, ttl, RelayBlockNumber(at))


SHORT = entry(b"7.42", 1)
LONG = entry(b"a value of more than 32 bytes in its entry", 1, ttl=100)
UNASKED = entry(b"nobody subscribes to this; it is detached too", 1)


def relay(number: int, entries: Entries) -> RelayBlock:
    """A relay block with two static keys, and what one publisher has."""
    top = [(storage_keys.ACTIVE_CONFIG, b"config"), (storage_keys.CURRENT_SLOT, number.to_bytes(8, "little"))]
    children = {derive_child_key(PUBLISHER): [(key, value.encode()) for key, value in entries.items()]}
    return RelayBlock(RelayBlockNumber(number), State.from_entries(top, children))


def runtime(policy: CachePolicy, keys: tuple[PubsubKey, ...] = (FIRST, SECOND)) -> RuntimeSpec:
    return RuntimeSpec(PARA, {PUBLISHER: keys}, cache=policy)


@dataclass
class Chain(AtHead):
    """A parachain from its genesis on."""

    head: ChainHead

    @classmethod
    def of(cls, spec: RuntimeSpec) -> "Chain":
        return cls(genesis(spec, tuple(map(public_key, SEEDS))))

    def slot(self) -> Slot:
        return Slot((self.header.aura_slot() or 9) + 1)

    def honest(self, parent: RelayBlock) -> Candidate:
        slot = self.slot()
        return author(self.head, parent, NO_MESSAGES, slot, SEEDS[slot % len(SEEDS)]).candidate

    def judged(self, candidate: Candidate, parent: RelayBlock) -> tuple[BlockOutcome | None, InvalidBlock | None]:
        context = RelayContext(parent.number, parent.storage_root, self.slot())
        try:
            return validate_block(self.head, candidate, context), None
        except InvalidBlock as refusal:
            return None, refusal

    def advanced(self, parent: RelayBlock) -> "Chain":
        candidate = self.honest(parent)
        outcome, _ = self.judged(candidate, parent)
        assert outcome is not None
        return Chain(ChainHead(candidate.header, outcome.state))


@dataclass(frozen=True)
class Case:
    """One block, where it is judged, and what it shows."""

    name: str
    about: str
    chain: Chain
    relay: RelayBlock
    candidate: Candidate

    def fixture(self) -> Fixture:
        outcome, refusal = self.chain.judged(self.candidate, self.relay)
        record = BlockRecord(
            chain=PARA,
            segment=0,
            candidate=self.candidate,
            included_at=self.relay.number,
            slot_now=self.chain.slot(),
            relay_storage_root=self.relay.storage_root,
            unpruned=(),
            outcome=outcome,
            refusal=refusal,
            strategy=None,
        )
        return make_fixture(self.name, self.about, self.chain.head, record)


BOTH: Entries = {FIRST: SHORT, SECOND: LONG, THIRD: UNASKED}
WITHOUT_SECOND: Entries = {FIRST: SHORT, THIRD: UNASKED}


def cases() -> list[Case]:
    return [*_valid(), *_cheats()]


def _valid() -> list[Case]:
    none = Chain.of(runtime(CachePolicy.NONE))
    first = relay(1, BOTH)
    later = none.advanced(first)
    same, gone = relay(2, BOTH), relay(2, WITHOUT_SECOND)
    tight = Chain.of(_tight())
    heavy = relay(1, {FIRST: entry(bytes(11_000), 1), SECOND: LONG})
    resumed = tight.advanced(heavy)
    nodes = Chain.of(runtime(CachePolicy.NODES)).advanced(first)
    changed = relay(2, {**BOTH, FIRST: entry(b"7.43", 2)})
    six = tuple(PubsubKey(bytes((16 * nibble,)) + bytes(31)) for nibble in range(1, 7))
    old = {key: entry(b"the price number %d of the first block" % at, 1) for at, key in enumerate(six)}
    slots = Chain.of(runtime(CachePolicy.SLOTS, six)).advanced(relay(1, old))
    new = relay(2, {**old, six[2]: entry(b"the price number 2 of the second block", 2)})
    made = [
        ("delivery", "The first block: one entry is in its leaf, the other detached; both are delivered.", none, first),
        ("unchanged", "The relay chain went on, the child root did not: its path is proof enough.", later, same),
        ("removal", "A key is gone: the path to where it would be proves its absence.", later, gone),
        ("stop", "A long value uses up the budget: the walk stops before the second key's leaf.", tight, heavy),
        ("resume", "The next block, on the same relay block, goes on at the cursor and comes round.", resumed, heavy),
        ("nodes", "Policy `nodes`: the leaf that did not change comes from the cache.", nodes, changed),
        ("slots", "Policy `slots`: five of six subtrees are as their slots say, and are not read.", slots, new),
    ]
    return [Case(name, about, chain, parent, chain.honest(parent)) for name, about, chain, parent in made]


def _tight() -> RuntimeSpec:
    """A runtime whose walk may begin to read until some 10,000 bytes are used."""
    return replace(
        runtime(CachePolicy.NONE),
        max_pov_size=1_300_000,
        reserve_minimum=True,
        max_trie_depth=2,
        max_stored_keys=1,
        max_value_length=MIN_BUDGET - 11_600,
    )


def _cheats() -> list[Case]:
    chain, first = Chain.of(runtime(CachePolicy.NONE)), relay(1, BOTH)
    honest = chain.honest(first)
    at_five = chain.advanced(relay(5, BOTH))
    proof = honest.inherent.proof
    whole: dict[Hash, bytes] = {}
    first.prove((), {derive_child_key(PUBLISHER): [THIRD]}, whole)
    extra = next(node for node in whole.values() if node not in proof)
    value = LONG.encode()
    swapped = (proof[1], proof[0], *proof[2:])

    def sealed(header: Header, inherent: Inherent, extrinsics: tuple[bytes, ...] = ()) -> Candidate:
        block = Candidate(header, inherent, extrinsics)
        header = replace(header, extrinsics_root=block.extrinsics_root())
        return replace(block, header=seal(header, SEEDS[chain.slot() % len(SEEDS)]))

    def proven(nodes: tuple[bytes, ...]) -> Candidate:
        return sealed(honest.header, replace(honest.inherent, proof=nodes))

    def claiming(change: Callable[[Header], Header]) -> Candidate:
        return sealed(change(honest.header), honest.inherent)

    wrong = Hash(bytes(31) + b"\x01")
    stranger = replace(honest, header=seal(honest.header, SEEDS[(chain.slot() + 1) % len(SEEDS)]))
    made = [
        ("bad-seal", "The other collator sealed the block: it was not its turn.", stranger),
        ("bad-parent", "The header names another parent.", claiming(lambda h: replace(h, parent_hash=wrong))),
        (
            "messages-misreported",
            "There are no messages, which weigh 2 bytes; the block states 3.",
            sealed(honest.header, replace(honest.inherent, messages_used=3)),
        ),
        ("duplicate-node", "The last node is listed twice.", proven((*proof, proof[-1]))),
        ("unsorted-proof", "The first two nodes change places.", proven(swapped)),
        (
            "root-mismatch",
            "The inherent states another relay root; the walk uses the right one.",
            sealed(honest.header, replace(honest.inherent, relay_parent_storage_root=wrong)),
        ),
        (
            "omitted-below-budget",
            "The detached value of the second key is left out.",
            proven(tuple(node for node in proof if node != value)),
        ),
        (
            "unused-nodes",
            "The leaf of a key that nobody subscribes to is added.",
            proven(tuple(sorted((*proof, extra)))),
        ),
        (
            "bad-extrinsic",
            "A second extrinsic, on a chain without accounts.",
            sealed(honest.header, honest.inherent, (encode_bytes(b"\x84nothing"),)),
        ),
        ("state-root-mismatch", "Another post-state root.", claiming(lambda h: replace(h, state_root=wrong))),
    ]
    old = relay(4, BOTH)
    backwards = Case(
        "relay-parent-decreased",
        "The block before was on relay block 5, this one is on 4.",
        at_five,
        old,
        at_five.honest(old),
    )
    found = [Case(name, about, chain, first, candidate) for name, about, candidate in made]
    return [*found[:2], backwards, *found[2:]]


def write() -> None:
    """Write the fixtures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for case in cases():
        write_fixture(case.fixture(), FOLDER / f"{case.name}.json")


if __name__ == "__main__":
    write()
