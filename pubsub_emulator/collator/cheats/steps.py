"""The changes that a cheat makes to an honest block, one concrete step at a time.

A step is complete in itself: it needs no random draws and no look-ups. So a sequence of steps makes
the same block when it is read from a file, and any part of it is a valid sequence too (`shrink`).
Any step can be applied to any draft. A step whose object is missing has no effect.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import ClassVar, Final

from pubsub_emulator.primitives.ed25519 import sign
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import (
    ENVIRONMENT_UPDATED,
    DigestItem,
    Header,
    aura_pre_digest,
    aura_seal,
    turn_of,
)
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import U32_MAX, U64_MAX, Hash, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.message_chains import (
    HashedMessage,
    InboundDownwardMessage,
    InboundHrmpMessage,
    InboundMessages,
    message_hash,
)
from pubsub_emulator.runtime.parachain.block import (
    MAX_CANDIDATE_BYTES,
    Candidate,
    Inherent,
    extrinsics_root,
)
from pubsub_emulator.runtime.parachain.execute import BlockOutcome

Message = tuple[int, bytes]
"""A message and the relay block that sent it."""


_hash = lru_cache(maxsize=1 << 14)(blake2_256)
"""The function `blake2_256` with a cache, since the same nodes are hashed many times."""


@dataclass(slots=True)
class Draft:
    """A block in the making."""

    parent_hash: Hash
    number: int
    slot: int
    state_root: Hash
    relay_parent_number: int
    relay_parent_storage_root: Hash
    proof: list[bytes]
    queues: list[tuple[int | None, list[Message]]]
    """The downward messages first, without a sender, and then the horizontal ones by sender."""
    parent_head: bytes = b""
    """The parent's header that the inherent states."""
    max_pov_size: int = 0
    hashed: dict[int | None, list[Message]] = field(default_factory=dict)
    """The hashed messages of each queue, as block number and hash."""
    descendants: list[bytes] = field(default_factory=list)
    """The encoded headers of the relay parent and its descendants."""
    collator_peer_id: bytes | None = None
    extrinsics_root: Hash | None = None
    """The claimed root of the body, or `None` for the honest one."""
    signer: bytes | None = None
    """The seed that signs, or `None` for that of the collator whose turn it is."""
    signature: bytes | None = None
    """A signature made elsewhere, or `None` for an honest one."""
    sealed: bool = True
    extrinsics: list[bytes] = field(default_factory=list)
    logs: tuple[DigestItem, ...] = ()
    """The digest items between the slot and the seal."""

    @staticmethod
    def of(candidate: Candidate) -> "Draft":
        """Return the draft of an existing block."""
        header = candidate.header
        inherent = candidate.inherent
        inbound = inherent.messages
        queues: list[tuple[int | None, list[Message]]] = [
            (sender, list(sent)) for sender, sent in inbound.queues()
        ]
        return Draft(
            header.parent_hash,
            header.number,
            header.aura_slot() or 0,
            state_root=header.state_root,
            relay_parent_number=inherent.relay_parent_number,
            relay_parent_storage_root=inherent.relay_parent_storage_root,
            proof=list(inherent.proof),
            queues=queues,
            parent_head=inherent.parent_head,
            max_pov_size=inherent.max_pov_size,
            hashed={sender: list(links.hashed) for sender, links in inbound.links.items()},
            descendants=[header.encode() for header in inherent.descendants],
            collator_peer_id=inherent.collator_peer_id,
            extrinsics=list(candidate.extrinsics),
            logs=header.unsealed()[1:],
        )

    def inherent(self) -> Inherent:
        """Return the inherent with the draft's values."""
        downward = tuple(
            InboundDownwardMessage(RelayBlockNumber(sent_at), msg)
            for sent_at, msg in self.queues[0][1]
        )
        horizontal = []
        for sender, queue in self.queues[1:]:
            full = tuple(
                InboundHrmpMessage(RelayBlockNumber(sent_at), data) for sent_at, data in queue
            )
            horizontal.append((ParaId(sender or 0), full))
        hashed = {}
        for sender, links in self.hashed.items():
            hashed[sender] = tuple(
                HashedMessage(RelayBlockNumber(sent_at), Hash(msg_hash))
                for sent_at, msg_hash in links
            )
        hashed_downward = hashed.pop(None, ())
        hashed_horizontal = [(ParaId(sender or 0), links) for sender, links in hashed.items()]
        messages = InboundMessages(
            downward, tuple(horizontal), hashed_downward, tuple(hashed_horizontal)
        ).tidy()
        return Inherent(
            RelayBlockNumber(self.relay_parent_number),
            self.relay_parent_storage_root,
            tuple(self.proof),
            parent_head=self.parent_head,
            max_pov_size=self.max_pov_size,
            messages=messages,
            descendants=tuple(map(Header.decode, self.descendants)),
            collator_peer_id=self.collator_peer_id,
        )

    def sealed_by(self, seeds: Sequence[bytes]) -> Candidate:
        """Return the block, sealed with the seed whose turn it is unless a step changed that."""
        inherent = self.inherent()
        signed = tuple(self.extrinsics)
        body = (
            extrinsics_root(inherent, signed)
            if self.extrinsics_root is None
            else self.extrinsics_root
        )
        digest = (aura_pre_digest(Slot(self.slot)), *self.logs)
        header = Header(self.parent_hash, self.number, self.state_root, body, digest)
        if self.sealed:
            signature = self.signature
            if signature is None:
                signer = turn_of(self.slot, seeds) if self.signer is None else self.signer
                signature = sign(signer, header.pre_hash())
            header = Header(
                self.parent_hash,
                self.number,
                self.state_root,
                body,
                (*digest, aura_seal(signature)),
            )
        return Candidate(header, inherent, signed)


@dataclass(frozen=True, slots=True)
class CheatStep:
    """One change to a draft."""

    on_proof: ClassVar[bool] = False
    """Whether the step changes only the list of nodes."""

    def apply(self, draft: Draft) -> None:
        """Make the change that the class describes."""


@dataclass(frozen=True, slots=True)
class Drop(CheatStep):
    """Remove the first node with this hash."""

    on_proof: ClassVar[bool] = True
    node_hash: bytes

    def apply(self, draft: Draft) -> None:
        index = next(
            (index for index, node in enumerate(draft.proof) if _hash(node) == self.node_hash), None
        )
        if index is not None:
            del draft.proof[index]


@dataclass(frozen=True, slots=True)
class Clear(CheatStep):
    """Remove all nodes."""

    on_proof: ClassVar[bool] = True

    def apply(self, draft: Draft) -> None:
        draft.proof.clear()


@dataclass(frozen=True, slots=True)
class Add(CheatStep):
    """Insert a node at its place in an ascending list."""

    on_proof: ClassVar[bool] = True
    node: bytes

    def apply(self, draft: Draft) -> None:
        insort(draft.proof, self.node)


@dataclass(frozen=True, slots=True)
class Insert(CheatStep):
    """Insert a node at an index of the list."""

    on_proof: ClassVar[bool] = True
    at: int
    node: bytes

    def apply(self, draft: Draft) -> None:
        # A step from a file may have any index.
        draft.proof.insert(min(self.at, len(draft.proof)), self.node)


@dataclass(frozen=True, slots=True)
class Swap(CheatStep):
    """Swap two nodes of the list."""

    on_proof: ClassVar[bool] = True
    one: int
    other: int

    def apply(self, draft: Draft) -> None:
        nodes = draft.proof
        if max(self.one, self.other) < len(nodes):
            nodes[self.one], nodes[self.other] = nodes[self.other], nodes[self.one]


CLAIMS: Final = ("parent_hash", "state_root", "extrinsics_root", "relay_parent_storage_root")
NUMBERS: Final = {
    "number": U32_MAX,
    "slot": U64_MAX,
    "relay_parent_number": U32_MAX,
    "max_pov_size": U32_MAX,
}


@dataclass(frozen=True, slots=True)
class Claim(CheatStep):
    """Claim another hash; `what` is one of `CLAIMS`."""

    what: str
    value: bytes

    def apply(self, draft: Draft) -> None:
        setattr(draft, self.what, Hash(self.value))


@dataclass(frozen=True, slots=True)
class Number(CheatStep):
    """Claim another number, reduced to the range of its type; `what` is one of `NUMBERS`."""

    what: str
    value: int

    def apply(self, draft: Draft) -> None:
        setattr(draft, self.what, min(max(self.value, 0), NUMBERS[self.what]))


@dataclass(frozen=True, slots=True)
class NewCode(CheatStep):
    """Say in the digest that the block applied new code, or, with 0, that it did not."""

    applies: int

    def apply(self, draft: Draft) -> None:
        draft.logs = (ENVIRONMENT_UPDATED,) if self.applies else ()


@dataclass(frozen=True, slots=True)
class DropMessage(CheatStep):
    """Remove a message of a queue, by its indices in `Draft.queues`."""

    queue: int
    at: int

    def apply(self, draft: Draft) -> None:
        if self.queue < len(draft.queues) and self.at < len(draft.queues[self.queue][1]):
            del draft.queues[self.queue][1][self.at]


@dataclass(frozen=True, slots=True)
class AddMessage(CheatStep):
    """Insert a message into a queue."""

    queue: int
    at: int
    sent_at: int
    data: bytes

    def apply(self, draft: Draft) -> None:
        if self.queue < len(draft.queues):
            draft.queues[self.queue][1].insert(self.at, (self.sent_at, self.data))


@dataclass(frozen=True, slots=True)
class Stuff(CheatStep):
    """Append a message of `size` zero bytes to the downward queue."""

    sent_at: int
    size: int

    def apply(self, draft: Draft) -> None:
        draft.queues[0][1].append((self.sent_at, bytes(self.size)))


@dataclass(frozen=True, slots=True)
class AddSender(CheatStep):
    """Insert an empty list of horizontal messages of a sender, for `AddMessage` and others."""

    sender: int

    def apply(self, draft: Draft) -> None:
        index = sum(
            1 for sender, _ in draft.queues[1:] if sender is not None and sender < self.sender
        )
        draft.queues.insert(1 + index, (self.sender, []))


@dataclass(frozen=True, slots=True)
class DropSender(CheatStep):
    """Remove all horizontal messages of a sender."""

    sender: int

    def apply(self, draft: Draft) -> None:
        draft.queues[1:] = [entry for entry in draft.queues[1:] if entry[0] != self.sender]
        draft.hashed.pop(self.sender, None)


@dataclass(frozen=True, slots=True)
class HashMessages(CheatStep):
    """Hash the full messages of a queue from index `at` on."""

    queue: int
    at: int

    def apply(self, draft: Draft) -> None:
        if self.queue < len(draft.queues):
            sender, messages = draft.queues[self.queue]
            moved = [(sent_at, message_hash(data)) for sent_at, data in messages[self.at :]]
            del messages[self.at :]
            draft.hashed[sender] = [*moved, *draft.hashed.get(sender, [])]


@dataclass(frozen=True, slots=True)
class AddHashed(CheatStep):
    """Insert the hash of a message into a queue's hashed messages."""

    queue: int
    at: int
    sent_at: int
    msg_hash: bytes

    def apply(self, draft: Draft) -> None:
        if self.queue < len(draft.queues):
            sender, _ = draft.queues[self.queue]
            draft.hashed.setdefault(sender, []).insert(self.at, (self.sent_at, self.msg_hash))


@dataclass(frozen=True, slots=True)
class DropHashed(CheatStep):
    """Remove one hashed message of a queue."""

    queue: int
    at: int

    def apply(self, draft: Draft) -> None:
        if self.queue < len(draft.queues):
            hashed = draft.hashed.get(draft.queues[self.queue][0], [])
            if self.at < len(hashed):
                del hashed[self.at]


@dataclass(frozen=True, slots=True)
class ParentHead(CheatStep):
    """State another parent's header in the inherent."""

    head: bytes

    def apply(self, draft: Draft) -> None:
        draft.parent_head = self.head


@dataclass(frozen=True, slots=True)
class DropDescendant(CheatStep):
    """Remove one of the relay headers."""

    at: int

    def apply(self, draft: Draft) -> None:
        if self.at < len(draft.descendants):
            del draft.descendants[self.at]


@dataclass(frozen=True, slots=True)
class AddDescendant(CheatStep):
    """Insert an encoded relay header."""

    at: int
    header: bytes

    def apply(self, draft: Draft) -> None:
        draft.descendants.insert(self.at, self.header)


@dataclass(frozen=True, slots=True)
class SignWith(CheatStep):
    """Sign with another secret seed."""

    seed: bytes

    def apply(self, draft: Draft) -> None:
        draft.signer = self.seed


@dataclass(frozen=True, slots=True)
class Seal(CheatStep):
    """Set a signature made elsewhere."""

    signature: bytes

    def apply(self, draft: Draft) -> None:
        draft.signature = self.signature


@dataclass(frozen=True, slots=True)
class Unseal(CheatStep):
    """Remove the seal."""

    def apply(self, draft: Draft) -> None:
        draft.sealed = False


@dataclass(frozen=True, slots=True)
class AddExtrinsic(CheatStep):
    """Insert a signed extrinsic into the body at index `at`."""

    at: int
    extrinsic: bytes

    def apply(self, draft: Draft) -> None:
        draft.extrinsics.insert(self.at, self.extrinsic)


_KINDS: Final[Mapping[str, type[CheatStep]]] = {
    kind.__name__: kind
    for kind in tuple(globals().values())
    if isinstance(kind, type) and issubclass(kind, CheatStep) and kind is not CheatStep
}


class BadStep(PubsubError):
    """The data does not describe a step."""


Json = list[str | int]


def to_json(step: CheatStep) -> Json:
    """Return the step as a list: its name, then its fields, bytes as hex after 0x."""
    values = [getattr(step, member.name) for member in fields(step)]
    return [
        type(step).__name__,
        *(hexed(value) if isinstance(value, bytes) else value for value in values),
    ]


def from_json(row: object) -> CheatStep:
    """Return the step that `to_json` converted to a list.

    Raises `BadStep`.
    """
    if not isinstance(row, list) or not row or not isinstance(row[0], str) or row[0] not in _KINDS:
        raise BadStep(f"not a step: {row!r}")
    kind = _KINDS[row[0]]
    values = row[1:]
    declared = fields(kind)
    if len(values) != len(declared):
        raise BadStep(f"{row[0]} has {len(declared)} fields, not {len(values)}")
    step = kind(*[_read(field.type, value) for field, value in zip(declared, values, strict=True)])
    _ensure_sizes(step)
    return step


def check_step(step: CheatStep) -> None:
    """Raise `BadStep` if the fields of a step cannot be applied to a block.

    Steps of a kind that is not defined here are not checked.
    """
    kind = type(step).__name__
    if _KINDS.get(kind) is not type(step):
        return
    for member in fields(step):
        value = getattr(step, member.name)
        if isinstance(member.type, type) and not isinstance(value, member.type):
            raise BadStep(
                f"{kind}: {member.name} is {value!r:.40}, of type {type(value).__name__}, not"
                f" {member.type.__name__}"
            )
    if isinstance(step, Claim | Number):
        names: Iterable[str] = CLAIMS if isinstance(step, Claim) else NUMBERS
        if step.what not in names:
            raise BadStep(f"{kind}: what is {step.what!r:.40}, not one of {', '.join(names)}")
    _ensure_sizes(step)


def _ensure_sizes(step: CheatStep) -> None:
    """Raise `BadStep` if a step cannot be applied, or only with much memory."""
    length = {
        Claim: "value",
        SignWith: "seed",
        Drop: "node_hash",
        AddHashed: "msg_hash",
    }.get(type(step))
    if length is not None and len(getattr(step, length)) != _WORD:
        size = len(getattr(step, length))
        raise BadStep(f"{type(step).__name__}: {length} must have {_WORD} bytes, not {size}")
    if isinstance(step, AddDescendant):
        try:
            Header.decode(step.header)
        except ScaleError as error:
            raise BadStep(f"AddDescendant: {error}") from None
    if isinstance(step, Stuff) and not 0 <= step.size <= MAX_CANDIDATE_BYTES:
        raise BadStep(f"Stuff: size {step.size} is not from 0 to {MAX_CANDIDATE_BYTES}")
    for name in ("sent_at", "sender"):
        if not 0 <= getattr(step, name, 0) <= U32_MAX:
            raise BadStep(f"{type(step).__name__}: {name} {getattr(step, name)} is not in a u32")


_WORD: Final = 32


def _read(kind: object, value: object) -> object:
    if kind is bytes and isinstance(value, str) and value.startswith("0x"):
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            raise BadStep(f"not hex: {value}") from None
    number = (
        kind is int
        and isinstance(value, int)
        and not isinstance(value, bool)
        and abs(value) <= U64_MAX
    )
    if not number and not (kind is str and value in (*CLAIMS, *NUMBERS)):
        raise BadStep(f"{value!r:.40} is not {_EXPECTED.get(kind, 'expected here')}")
    return value


_EXPECTED: Final[dict[object, str]] = {
    bytes: "bytes in hexadecimal digits after 0x",
    int: "a whole number of 64 bits",
    str: "the name of a claim or a number",
}


def difference(before: Mapping[Hash, bytes], after: Mapping[Hash, bytes]) -> tuple[CheatStep, ...]:
    """Return the steps from one set of nodes to another."""
    drops = [Drop(node_hash) for node_hash in before if node_hash not in after]
    return (*drops, *(Add(node) for node_hash, node in after.items() if node_hash not in before))


def claimed_results(honest: Header, outcome: BlockOutcome) -> tuple[CheatStep, ...]:
    """Return the steps that put the results of executing a block into the header `honest`."""
    root = Claim("state_root", outcome.state_root)
    applies = ENVIRONMENT_UPDATED in outcome.digest
    if applies == (ENVIRONMENT_UPDATED in honest.digest):
        return (root,)
    return root, NewCode(int(applies))


def apply_to_proof(proof: Iterable[bytes], steps: Iterable[CheatStep]) -> tuple[bytes, ...]:
    """Return the list of nodes after the steps that change only this list."""
    draft = Draft(
        Hash(b""),
        0,
        0,
        state_root=Hash(b""),
        relay_parent_number=0,
        relay_parent_storage_root=Hash(b""),
        proof=list(proof),
        queues=[(None, [])],
    )
    for step in steps:
        if step.on_proof:
            step.apply(draft)
    return tuple(draft.proof)


def shrink(
    steps: tuple[CheatStep, ...], still: Callable[[tuple[CheatStep, ...]], bool]
) -> tuple[CheatStep, ...]:
    """Return a short part of `steps` for which `still` holds. It must hold for `steps`.

    No single step can be removed from the result. At most about 2·n·log n sequences are tried, and
    then n² sequences without one step.
    """
    size = max(len(steps) // 2, 1)
    while steps:
        start = 0
        shorter = False
        while start < len(steps):
            rest = steps[:start] + steps[start + size :]
            if still(rest):
                steps = rest
                shorter = True
            else:
                start += size
        if size == 1 and not shorter:
            break
        size = max(size // 2, 1)
    return steps
