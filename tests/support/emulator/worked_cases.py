"""The fixtures of `docs/fixtures.md`: seven valid blocks, and one for each verdict.

    python tests/support/emulator/worked_cases.py --write

makes the files of `tests/vectors/worked` anew, which is needed when blocks change their form.
Without `--write` it only checks that each case has the result that it should have. The page is made
of the files.

Parachain 3000 subscribes to keys of publisher 1000. A case is a block on a parachain's block and a
relay block that are both made here, so it has nothing that the case does not need.
"""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pubsub_emulator.collator.author import RelayBlock, author, seal
from pubsub_emulator.emulator.fixtures import Fixture, make_fixture, write_fixture
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.ed25519 import public_key
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.message_chains import (
    NO_MESSAGES,
    ZERO_HEAD,
    HashedMessage,
    InboundDownwardMessage,
    InboundMessages,
    linked_chain,
    message_hash,
)
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber.config import MIN_BUDGET, CachePolicy, RuntimeSpec
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, Inherent, Verdict
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.runtime.parachain.validate import Judged, RelayContext, judge_block

FOLDER: Final = Path(__file__).parents[2] / "vectors" / "worked"
PARA: Final = ParaId(3000)
PUBLISHER: Final = ParaId(1000)
SEEDS: Final = tuple(hashlib.sha256(b"collator %d" % at).digest() for at in range(2))
"""The seeds of the two collators."""
KEYS: Final = tuple(PubsubKey(bytes((16 * nibble,)) + bytes(31)) for nibble in range(1, 7))
"""Keys that part at their first nibble."""
FIRST, SECOND, THIRD = KEYS[:3]
"""Two keys that the parachain subscribes to, and one that it does not."""
FIRST_SLOT: Final = 10
"""The slot of each chain's first block."""
WRONG: Final = Hash(bytes(31) + b"\x01")
"""A hash of nothing."""
MESSAGE: Final = b"a downward message"

Entries = Mapping[PubsubKey, PublishedEntry]
"""The entries of the publisher."""


def entry(value: bytes, at: int = 1, ttl: int = 0) -> PublishedEntry:
    """Return an entry that was published in relay block `at`."""
    return PublishedEntry(value, ttl, RelayBlockNumber(at))


ENTRIES: Final[Entries] = {
    FIRST: entry(b"7.42"),
    SECOND: entry(b"a value of more than 32 bytes in its entry", ttl=100),
    THIRD: entry(b"nobody subscribes to this; it is detached too"),
}


def relay(number: int, entries: Entries, message: bytes | None = None) -> RelayBlock:
    """Return a relay block with two of the static keys, and with what the publisher has.

    If there is a `message`, it has been sent to the parachain in this block.
    """
    top = [
        (storage_keys.ACTIVE_CONFIG, b"config"),
        (storage_keys.CURRENT_SLOT, number.to_bytes(8, "little")),
    ]
    if message is not None:
        link = (RelayBlockNumber(number), message_hash(message))
        top.append((storage_keys.dmq_mqc_head(PARA), linked_chain(ZERO_HEAD, [link])))
    rows = [(key, value.encode()) for key, value in entries.items()]
    state = State.from_entries(top, {derive_child_key(PUBLISHER): rows})
    return RelayBlock(RelayBlockNumber(number), state)


def runtime(policy: CachePolicy, keys: tuple[PubsubKey, ...] = KEYS[:2]) -> RuntimeSpec:
    """Return the runtime of a subscriber to these keys."""
    return RuntimeSpec(PARA, {PUBLISHER: keys}, cache=policy)


def tight_runtime() -> RuntimeSpec:
    """Return a runtime whose walk begins to read only until some 10,000 bytes are used."""
    return replace(
        runtime(CachePolicy.NONE),
        max_pov_size=1_300_000,
        reserve_minimum=True,
        max_trie_depth=2,
        max_stored_keys=1,
        max_value_length=MIN_BUDGET - 11_600,
    )


@dataclass(frozen=True)
class Chain:
    """A parachain after its newest block."""

    head: ChainHead

    @classmethod
    def of(cls, spec: RuntimeSpec) -> "Chain":
        """Return the chain at its genesis."""
        return cls(genesis(spec, tuple(map(public_key, SEEDS))))

    def slot(self) -> Slot:
        """Return the slot of the next block."""
        return Slot((self.head.header.aura_slot() or FIRST_SLOT - 1) + 1)

    def seed(self, turn: int = 0) -> bytes:
        """Return the seed of the collator who is due for the next block, or `turn` turns later."""
        return SEEDS[(self.slot() + turn) % len(SEEDS)]

    def honest(self, on: RelayBlock) -> Candidate:
        """Return the honest block on a relay block, without messages."""
        return author(self.head, on, NO_MESSAGES, self.slot(), self.seed()).candidate

    def judged(self, candidate: Candidate, on: RelayBlock) -> Judged:
        """Return the outcome of a block, or its refusal."""
        return judge_block(
            self.head, candidate, RelayContext(on.number, on.storage_root, self.slot())
        )

    def advanced(self, on: RelayBlock) -> "Chain":
        """Return the chain after the honest block on a relay block."""
        candidate = self.honest(on)
        outcome, refusal = self.judged(candidate, on)
        if outcome is None:
            raise ValueError(f"the honest block is refused: {refusal}")
        return Chain(ChainHead(candidate.header, outcome.state))

    def sealed(
        self, header: Header, inherent: Inherent, extrinsics: tuple[bytes, ...] = ()
    ) -> Candidate:
        """Return a block with this body, sealed by the collator who is due."""
        block = Candidate(header, inherent, extrinsics)
        header = replace(header, extrinsics_root=block.extrinsics_root())
        return replace(block, header=seal(header, self.seed()))

    def executed(self, header: Header, inherent: Inherent, on: RelayBlock) -> Candidate:
        """Return a block with this inherent that claims the state root after its execution."""
        block = self.sealed(header, inherent)
        _, refusal = self.judged(block, on)
        for offence in () if refusal is None else refusal.evidence:
            if offence.verdict is Verdict.STATE_ROOT_MISMATCH:
                actual = Hash(offence.subject[1])
                return self.sealed(replace(header, state_root=actual), inherent)
        return block


@dataclass(frozen=True)
class Case:
    """One block, the chain and the relay block on which it is judged, and what it shows."""

    name: str
    about: str
    chain: Chain
    relay: RelayBlock
    candidate: Candidate

    def fixture(self) -> Fixture:
        """Return the case with its result as a fixture."""
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


def valid() -> list[Case]:
    """Return the cases of blocks that are valid."""
    chain = Chain.of(runtime(CachePolicy.NONE))
    first = relay(1, ENTRIES)
    later = chain.advanced(first)
    gone = relay(2, {key: value for key, value in ENTRIES.items() if key != SECOND})
    tight = Chain.of(tight_runtime())
    heavy = relay(1, {FIRST: entry(bytes(11_000)), SECOND: ENTRIES[SECOND]})
    nodes = Chain.of(runtime(CachePolicy.NODES)).advanced(first)
    changed = relay(2, {**ENTRIES, FIRST: entry(b"7.43", 2)})
    old = {
        key: entry(b"the price number %d of the first block" % at) for at, key in enumerate(KEYS)
    }
    slots = Chain.of(runtime(CachePolicy.SLOTS, KEYS)).advanced(relay(1, old))
    new = relay(2, {**old, KEYS[2]: entry(b"the price number 2 of the second block", 2)})
    made = [
        (
            "delivery",
            "The first block: one entry is in its leaf, the other detached; both are delivered.",
            chain,
            first,
        ),
        (
            "unchanged",
            "The relay chain went on, the child root did not: its path is proof enough.",
            later,
            relay(2, ENTRIES),
        ),
        (
            "removal",
            "A key is gone: the path to where it would be proves its absence.",
            later,
            gone,
        ),
        (
            "stop",
            "A long value uses up the budget: the walk stops before the second key's leaf.",
            tight,
            heavy,
        ),
        (
            "resume",
            "The next block, on the same relay block, goes on at the cursor and comes round.",
            tight.advanced(heavy),
            heavy,
        ),
        (
            "nodes",
            "Policy `nodes`: the leaf that did not change comes from the cache.",
            nodes,
            changed,
        ),
        (
            "slots",
            "Policy `slots`: five of six subtrees are as their slots say, and are not read.",
            slots,
            new,
        ),
    ]
    return [Case(name, about, on, block, on.honest(block)) for name, about, on, block in made]


def refused() -> dict[Verdict, Case]:
    """Return a case of each verdict. Each block has one fault."""
    chain = Chain.of(runtime(CachePolicy.NONE))
    first = relay(1, ENTRIES)
    honest = chain.honest(first)
    header, inherent, proof = honest.header, honest.inherent, honest.inherent.proof
    whole: dict[Hash, bytes] = {}
    first.prove((), {derive_child_key(PUBLISHER): [THIRD]}, whole)
    extra = next(node for node in whole.values() if node not in proof)
    detached = ENTRIES[SECOND].encode()
    cases: dict[Verdict, Case] = {}

    def case(verdict: Verdict, about: str, candidate: Candidate, on: RelayBlock = first) -> None:
        cases[verdict] = Case(_file_name(verdict), about, chain, on, candidate)

    def proving(verdict: Verdict, about: str, nodes: tuple[bytes, ...]) -> None:
        case(verdict, about, chain.sealed(header, replace(inherent, proof=nodes)))

    case(
        Verdict.BAD_SEAL,
        "The other collator sealed the block: it was not its turn.",
        replace(honest, header=seal(header, chain.seed(1))),
    )
    case(
        Verdict.BAD_PARENT,
        "The header names another parent.",
        chain.sealed(replace(header, parent_hash=WRONG), inherent),
    )
    at_five = chain.advanced(relay(5, ENTRIES))
    old = relay(4, ENTRIES)
    cases[Verdict.RELAY_PARENT_DECREASED] = Case(
        _file_name(Verdict.RELAY_PARENT_DECREASED),
        "The block before was on relay block 5, this one is on 4.",
        at_five,
        old,
        at_five.honest(old),
    )
    larger = replace(inherent, max_pov_size=inherent.max_pov_size + 1)
    case(
        Verdict.BAD_VALIDATION_DATA,
        "The inherent states a maximum proof size that is one byte larger.",
        chain.executed(header, larger, first),
    )
    relay_header = Header(WRONG, first.number, first.storage_root, WRONG)
    case(
        Verdict.BAD_DESCENDANTS,
        "The inherent has a relay header, and this chain takes none.",
        chain.executed(header, replace(inherent, descendants=(relay_header,)), first),
    )
    unsent = InboundMessages((InboundDownwardMessage(first.number, MESSAGE),))
    case(
        Verdict.MESSAGES_MISREPORTED,
        "The block has a downward message, and the relay chain sent none.",
        chain.executed(header, replace(inherent, messages=unsent), first),
    )
    sent = relay(1, ENTRIES, MESSAGE)
    hashed = InboundMessages(hashed_downward=(HashedMessage(sent.number, message_hash(MESSAGE)),))
    waiting = chain.honest(sent)
    case(
        Verdict.ADVANCEMENT_RULE,
        "The block has only the hash of a downward message for which there is room.",
        chain.executed(waiting.header, replace(waiting.inherent, messages=hashed), sent),
        sent,
    )
    proving(Verdict.DUPLICATE_NODE, "The last node is listed twice.", (*proof, proof[-1]))
    swapped = (proof[1], proof[0], *proof[2:])
    proving(Verdict.UNSORTED_PROOF, "The first two nodes change places.", swapped)
    case(
        Verdict.ROOT_MISMATCH,
        "The inherent states another relay root; the walk uses the right one.",
        chain.sealed(header, replace(inherent, relay_parent_storage_root=WRONG)),
    )
    proving(
        Verdict.OMITTED_BELOW_BUDGET,
        "The detached value of the second key is left out.",
        tuple(node for node in proof if node != detached),
    )
    proving(
        Verdict.UNUSED_NODES,
        "The leaf of a key that nobody subscribes to is added.",
        tuple(sorted((*proof, extra))),
    )
    case(
        Verdict.BAD_EXTRINSIC,
        "A second extrinsic, on a chain without accounts.",
        chain.sealed(header, inherent, (encode_bytes(b"\x84nothing"),)),
    )
    case(
        Verdict.STATE_ROOT_MISMATCH,
        "Another post-state root.",
        chain.sealed(replace(header, state_root=WRONG), inherent),
    )
    return cases


def _file_name(verdict: Verdict) -> str:
    """Return the name of a verdict's case, for example `bad-seal`."""
    return verdict.name.lower().replace("_", "-")


def fixtures() -> list[Fixture]:
    """Return all fixtures. Raises `ValueError` if one does not have the result that it should."""
    found: list[tuple[Fixture, list[str]]] = [(each.fixture(), []) for each in valid()]
    cases = refused()
    found += [(cases[each].fixture(), [each.value]) for each in Verdict]
    for fixture, due in found:
        verdicts = [each.verdict for each in fixture.expected.evidence]
        if verdicts != due:
            raise ValueError(f"{fixture.name}: offences {verdicts}, due {due}")
    return [fixture for fixture, _ in found]


def main() -> None:
    """Write the fixtures with `--write`, or only check them."""
    made = fixtures()
    if sys.argv[1:] == ["--write"]:
        for old in FOLDER.glob("*.json"):
            old.unlink()
        for fixture in made:
            write_fixture(fixture, FOLDER / f"{fixture.name}.json")


if __name__ == "__main__":
    main()
