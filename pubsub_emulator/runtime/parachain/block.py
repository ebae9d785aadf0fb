"""A candidate block of a collator, and the reasons for which it can be invalid.

A candidate is a sealed header, one inherent, and signed extrinsics. None of it is trusted. The
header's extrinsics root commits to the body and the seal commits to the header, so any fault of the
block identifies its author (PS-79, PS-80).

The inherent is `set_validation_data(data, inbound_messages_data)` as a chain of 2026 has it (UP-7):

    data        Vec<u8>                     the parent's header: parent_head
                u32, [u8; 32], u32          relay parent number and storage root, max_pov_size
                BTreeSet<Vec<u8>>           proof nodes, strictly ascending
                Vec<Header>                 the relay parent and its descendants, or none
                Option<BoundedVec<u8, 64>>  the collator's peer id, which nothing checks
    inbound_messages_data                   `InboundMessages`
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pubsub_emulator.primitives.byte_lists import encode_bytes_list, read_byte_strings
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.scale import Reader, encode_bytes, encode_compact
from pubsub_emulator.primitives.types import Hash, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import (
    NO_MESSAGES,
    ZERO_HEAD,
    InboundMessages,
    QueueLinks,
    linked_chain,
)
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.framework.system import encode_extrinsic
from pubsub_emulator.runtime.parachain.storage import PARACHAIN_SYSTEM
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.trie import ordered_root


@dataclass(frozen=True, slots=True)
class Inherent:
    """The arguments of `set_validation_data`: all input of a block from the relay chain."""

    relay_parent_number: RelayBlockNumber
    relay_parent_storage_root: Hash
    proof: tuple[bytes, ...]
    parent_head: bytes
    """The parent's header, encoded."""
    max_pov_size: int
    messages: InboundMessages = NO_MESSAGES
    descendants: tuple[Header, ...] = ()
    """The headers of the relay parent and its descendants, or an empty tuple."""
    collator_peer_id: bytes | None = None
    _encoded: bytes = field(default=b"", init=False, repr=False, compare=False)
    """The encoding, once it is known. A copy with altered fields starts without it."""

    @property
    def messages_used(self) -> int:
        """Return the bytes that the messages take, full and hashed (UP-11)."""
        return self.messages.weight

    def encode(self) -> bytes:
        """Return the SCALE bytes, as in the module's table."""
        if not self._encoded:
            peer = self.collator_peer_id
            headers = b"".join([header.encode() for header in self.descendants])
            parts = (
                encode_bytes(self.parent_head),
                self.relay_parent_number.to_bytes(4, "little"),
                self.relay_parent_storage_root,
                self.max_pov_size.to_bytes(4, "little"),
                encode_bytes_list(self.proof),
                encode_compact(len(self.descendants)) + headers,
                b"\x00" if peer is None else b"\x01" + encode_bytes(peer),
                self.messages.encoded,
            )
            object.__setattr__(self, "_encoded", b"".join(parts))
        return self._encoded

    @staticmethod
    def decode(data: bytes) -> "Inherent":
        """Decode an inherent from all bytes of `data`.

        Raises `ScaleError`, also for more than `MAX_CANDIDATE_BYTES`.
        """
        _ensure_size(data)
        reader = Reader(data)
        parent_head = reader.bytes_()
        number = RelayBlockNumber(reader.uint(4))
        root = Hash(reader.take(32))
        max_pov_size = reader.uint(4)
        nodes = reader.length()
        if nodes > MAX_PROOF_NODES:
            raise ScaleError(f"a proof of {nodes} nodes; it has at most {MAX_PROOF_NODES}")
        proof = tuple(read_byte_strings(reader, nodes))
        count = reader.length()
        if count > MAX_DESCENDANTS:
            raise ScaleError(f"{count} relay headers; a block has at most {MAX_DESCENDANTS}")
        descendants = tuple(Header.read(reader) for _ in range(count))
        peer = reader.bytes_() if reader.boolean() else None
        if peer is not None and len(peer) > MAX_PEER_ID:
            raise ScaleError(f"a peer id of {len(peer)} bytes; it has at most {MAX_PEER_ID}")
        messages = InboundMessages.read(reader)
        reader.end()
        inherent = Inherent(
            number,
            root,
            proof,
            parent_head=parent_head,
            max_pov_size=max_pov_size,
            messages=messages,
            descendants=descendants,
            collator_peer_id=peer,
        )
        object.__setattr__(inherent, "_encoded", data)
        return inherent

    def extrinsic(self) -> bytes:
        """Return the bare extrinsic `set_validation_data` with its length prefix."""
        return encode_extrinsic(_CALL + self.encode())


MAX_CANDIDATE_BYTES: Final = 16 * 1_048_576
"""The maximum size of a candidate in bytes, which is the relay chain's `MAX_POV_SIZE`."""
MAX_PROOF_NODES: Final = MAX_CANDIDATE_BYTES // 33
"""The maximum number of nodes in a proof.

All nodes except the root have at least 32 bytes, and their length takes one more.
"""
MAX_DESCENDANTS: Final = 256
"""The maximum number of relay headers in a block: the relay parent and its descendants."""
MAX_PEER_ID: Final = 64
"""The maximum length of a collator's peer id in bytes."""
_CALL: Final = bytes((PARACHAIN_SYSTEM.index, 0))
"""The indices of the call `set_validation_data`."""
_BARE_CALL: Final = b"\x05" + _CALL
"""The start of an unsigned extrinsic in format version 5 with this call."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block as its author claims it: a sealed header, an inherent, and signed extrinsics.

    The extrinsics have their length prefixes.
    """

    header: Header
    inherent: Inherent
    extrinsics: tuple[bytes, ...] = ()

    def encode(self) -> bytes:
        """Return the SCALE bytes: the header, then `Vec<extrinsic>` with the inherent first."""
        body = self.body()
        return self.header.encode() + encode_compact(len(body)) + b"".join(body)

    def body(self) -> tuple[bytes, ...]:
        """Return the block's encoded extrinsics in order, each with its length prefix."""
        return (self.inherent.extrinsic(), *self.extrinsics)

    def extrinsics_root(self) -> Hash:
        """Return the root that the header must have for this body."""
        return extrinsics_root(self.inherent, self.extrinsics)

    @staticmethod
    def decode(data: bytes) -> "Candidate":
        """Decode a candidate from all bytes of `data`.

        Raises `ScaleError`, also for more than `MAX_CANDIDATE_BYTES`.
        """
        _ensure_size(data)
        reader = Reader(data)
        header = Header.read(reader)
        count = reader.length()
        if count < 1:
            raise ScaleError("a candidate has no inherent")
        extrinsic = reader.bytes_()
        if not extrinsic.startswith(_BARE_CALL):
            raise ScaleError("the first extrinsic is not a bare set_validation_data call")
        signed = []
        for _ in range(count - 1):
            start = reader.pos
            reader.bytes_()
            # The stored bytes begin with their length prefix.
            signed.append(data[start : reader.pos])
        reader.end()
        return Candidate(header, Inherent.decode(extrinsic[len(_BARE_CALL) :]), tuple(signed))

    def hash(self) -> Hash:
        """Return the header's hash, which the next block has as its parent hash."""
        return self.header.hash()


def extrinsics_root(inherent: Inherent, signed: tuple[bytes, ...] = ()) -> Hash:
    """Return the root of the ordered trie (layout V0) over a block's body.

    The body is the inherent, then the signed extrinsics.
    """
    return ordered_root((inherent.extrinsic(), *signed))


@dataclass(frozen=True, slots=True)
class ChainHead:
    """A parachain's newest block: its header, and the state after it."""

    header: Header
    state: State
    rules: Rules = SHIPPED
    """The rules that this process has for the chain.

    The runtime in the state must name them or the shipped rules, and uses those that it names.
    """

    def followed(self, header: Header, state: State) -> "ChainHead":
        """Return the head after a block on this one."""
        return ChainHead(header, state, self.rules)

    def fork(self) -> "ChainHead":
        """Return the same block with a fork of its state."""
        return ChainHead(self.header, self.state.fork(), self.rules)


def _ensure_size(data: bytes) -> None:
    if len(data) > MAX_CANDIDATE_BYTES:
        raise ScaleError(f"{len(data)} bytes; a candidate has at most {MAX_CANDIDATE_BYTES}")


class Verdict(Enum):
    """The reasons for which a block is invalid. The first one of a block's decides (PS-52)."""

    BAD_SEAL = "BadSeal"
    BAD_PARENT = "BadParent"
    RELAY_PARENT_DECREASED = "RelayParentDecreased"
    BAD_VALIDATION_DATA = "BadValidationData"
    BAD_DESCENDANTS = "BadDescendants"
    MESSAGES_MISREPORTED = "MessagesMisreported"
    ADVANCEMENT_RULE = "AdvancementRule"
    DUPLICATE_NODE = "DuplicateNode"
    UNSORTED_PROOF = "UnsortedProof"
    ROOT_MISMATCH = "RootMismatch"
    OMITTED_BELOW_BUDGET = "OmittedBelowBudget"
    UNUSED_NODES = "UnusedNodes"
    BAD_EXTRINSIC = "BadExtrinsic"
    STATE_ROOT_MISMATCH = "StateRootMismatch"


_RANK: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True)
class Offence:
    """One failed check."""

    verdict: Verdict
    detail: str
    subject: tuple[bytes, ...] = field(default=())
    """The bytes that the offence is about: nodes, hashes or keys."""


class InvalidBlock(PubsubError):
    """An invalid block (PS-53).

    `verdict` is that of the first offence, and `evidence` has all offences.
    """

    def __init__(self, offences: list[Offence]) -> None:
        self.evidence = tuple(sorted(offences, key=lambda offence: _RANK[offence.verdict]))
        self.verdict = self.evidence[0].verdict
        super().__init__(
            "; ".join(f"{offence.verdict.value}: {offence.detail}" for offence in self.evidence)
        )


@dataclass(frozen=True, slots=True)
class QueueHeads:
    """The heads of the hash chain of a message queue after a block."""

    kept: Hash
    """The head after the full messages, which the parachain stores."""
    end: Hash
    """The head after the full and the hashed messages, which must be that of the relay chain."""


def _extended(before: Hash, links: QueueLinks) -> QueueHeads:
    """Return the heads after adding messages to a chain with the head `before`."""
    kept = linked_chain(before, links.full)
    return QueueHeads(kept, linked_chain(kept, links.hashed))


def queue_heads(
    before: Hash,
    links: QueueLinks,
    target: Hash,
    last: Callable[[], RelayBlockNumber | None],
    relay_parent: RelayBlockNumber,
) -> QueueHeads:
    """Return the heads of a queue after a block, for a parachain that saw the head `before`.

    If the queue was removed and created again since the block's parent (a channel was closed and
    reopened, or a parachain left and came back), its chain starts from the zero head again. The
    messages are added to the zero head if that leads to `target`, the head at `relay_parent`, and
    all of them were sent after `last`, the parent's relay parent. If the queue was not removed, a
    chain from the zero head would include messages that the parachain has already received.
    """
    heads = _extended(before, links)
    if heads.end == target or before == ZERO_HEAD:
        return heads
    restarted = _extended(ZERO_HEAD, links)
    since = last() if restarted.end == target else None
    if since is None or relay_parent <= since:
        return heads
    sent = (sent_at for sent_at, _ in (*links.full, *links.hashed))
    return heads if any(sent_at <= since for sent_at in sent) else restarted
