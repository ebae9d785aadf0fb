"""The honest author of blocks.

It proves everything that the subscriber may read, walks over the proof and keeps exactly the nodes
that the walk took. Then it executes and seals the block.

    relay state ──prove──► full proof ──plan──► nodes taken ──► inherent
    inherent ──execute──► post-state root ──► header, seal

The author runs the same `plan` and the same `execute_block` as the verifier, so an honest block is
valid by construction. The author has no choice: for one parent, relay parent, set of messages and
slot there is one block (PS-52, PS-90).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Protocol

from pubsub_emulator.primitives.ed25519 import sign
from pubsub_emulator.primitives.errors import DefensiveFailure, PubsubError
from pubsub_emulator.primitives.header import Header, aura_pre_digest, aura_seal
from pubsub_emulator.primitives.pubsub import nodes_cost
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.abridged import (
    Shares,
    abridged,
    advancement_faults,
    full_bytes,
)
from pubsub_emulator.runtime.framework.message_chains import InboundMessages
from pubsub_emulator.runtime.framework.relay_request import RelayProofRequest
from pubsub_emulator.runtime.framework.relay_state import read_requested
from pubsub_emulator.runtime.framework.static_keys import (
    StaticValues,
    fixed_keys,
    read_static_keys,
    static_value,
)
from pubsub_emulator.runtime.framework.storage import ChildKeys, State, Storage
from pubsub_emulator.runtime.framework.validity import InvalidTransaction
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS, SubscriptionHandler
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, plan
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, Inherent, extrinsics_root
from pubsub_emulator.runtime.parachain.descendants import authority_keys, count_fault
from pubsub_emulator.runtime.parachain.execute import BlockOutcome, execute_block
from pubsub_emulator.runtime.parachain.governance import root_calls
from pubsub_emulator.runtime.parachain.signed_body import OfferedBody
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.trie import MissingNode
from pubsub_emulator.trie.descent import Lookups


class RelayAccess(Protocol):
    """One relay block, read from a node that the collator trusts."""

    @property
    def number(self) -> RelayBlockNumber:
        """Return the block's height."""

    @property
    def storage_root(self) -> Hash:
        """Return the storage root of the relay block."""

    @property
    def headers(self) -> tuple[Header, ...]:
        """Return the sealed headers of the block and of those descendants that the collator knows.

        The tuple is empty if the relay chain does not seal its headers.
        """

    def prove(
        self, top_keys: Iterable[bytes], child_keys: ChildKeys, into: dict[Hash, bytes]
    ) -> None:
        """Add every node that reading these keys touches, as `State.prove` does."""


@dataclass(frozen=True, slots=True)
class RelayBlock:
    """`RelayAccess` over a relay state in memory."""

    number: RelayBlockNumber
    state: State
    headers: tuple[Header, ...] = ()

    @property
    def storage_root(self) -> Hash:
        """Return the storage root of the relay block."""
        return self.state.root()

    def prove(
        self, top_keys: Iterable[bytes], child_keys: ChildKeys, into: dict[Hash, bytes]
    ) -> None:
        """Add to `into` the nodes that prove these keys of the top trie and of child tries."""
        self.state.prove(top_keys, child_keys, into)


class CannotAuthor(PubsubError):
    """A valid block cannot be built on this relay parent now."""


@dataclass(frozen=True, slots=True)
class FullProof:
    """The proof of everything that a subscriber may read of one relay state, not yet pruned."""

    nodes: dict[Hash, bytes]
    statics: StaticValues
    static_nodes: tuple[Hash, ...]
    """The hashes of the nodes of the static keys."""
    static_bytes: int
    """The cost of the nodes of the static keys."""
    requested_bytes: int
    """The cost of the nodes that only the requested keys outside pub-sub need."""
    unpruned: tuple[tuple[ParaId, int], ...]
    """The cost of each publisher's nodes, by ascending publisher.

    A node counts only for the first that needs it. Together with `static_bytes` and
    `requested_bytes`, this is the cost of `nodes`.
    """


@dataclass(frozen=True, slots=True)
class Authored:
    """A sealed block and its outcome."""

    candidate: Candidate
    outcome: BlockOutcome
    unpruned: tuple[tuple[ParaId, int], ...]
    """The cost of the proof before it was pruned, by publisher."""
    parent: Header
    """The header of the block below."""
    parent_root: Hash
    """The root of the state that the block was built on."""
    refused: tuple[tuple[bytes, InvalidTransaction], ...] = ()
    """Signed extrinsics that were offered and cannot be part of the block."""


def full_proof(
    relay: RelayAccess,
    spec: RuntimeSpec,
    rules: Rules = SHIPPED,
    authorities: tuple[bytes, ...] = (),
) -> FullProof:
    """Prove the static keys and all requested keys, including values and absences.

    `rules` are those that the collator has for the chain. `authorities` are the keys that a block
    with relay headers needs. Raises `MissingNode` if the relay chain's node does not prove a key,
    and `RulesError` if the runtime names other rules.
    """
    nodes: dict[Hash, bytes] = {}
    fetched: dict[Hash, bytes] = {}
    root = relay.storage_root

    def take(node_hash: Hash, key: bytes, depth: int) -> bytes:
        # A channel's key is known only after a static value was read, so it is proven on demand.
        if node_hash not in fetched:
            relay.prove((key,), {}, fetched)
        if node_hash not in fetched:
            raise MissingNode(node_hash, root, key, depth)
        nodes[node_hash] = fetched[node_hash]
        return nodes[node_hash]

    rules = rules.named(spec.rules)
    extra = RelayProofRequest(spec.extra_keys)
    relay.prove((*fixed_keys(spec.para_id), *extra.top()), extra.children(), fetched)
    top = Lookups(root, nodes, take)
    statics = read_static_keys(spec.para_id, partial(static_value, top), authorities)
    static_nodes = tuple(nodes)
    static_bytes = nodes_cost(nodes.values())
    read_requested(spec.extra_keys, top, lambda child: Lookups(child, nodes, take), {})
    requested_bytes = nodes_cost(nodes.values()) - static_bytes
    unpruned = []
    for para, keys in spec.subscriptions.items():
        before = len(nodes)
        relay.prove((), dict((rules.placed(para, keys),)), nodes)
        unpruned.append((para, nodes_cost(islice(nodes.values(), before, None))))
    return FullProof(nodes, statics, static_nodes, static_bytes, requested_bytes, tuple(unpruned))


def author(  # noqa: PLR0917  # a block has this many parts
    parent: ChainHead,
    relay: RelayAccess,
    messages: InboundMessages,
    slot: Slot,
    seed: bytes,
    handlers: Mapping[str, SubscriptionHandler] = HANDLERS,
    extrinsics: tuple[bytes, ...] = (),
) -> Authored:
    """Return the one honest block on `parent` with these messages, sealed with `seed`.

    `seed` is an Ed25519 seed, which is not compared with the slot's author. The state of `parent`
    is not changed.

    `messages` must be all messages that the parent has not processed, since the verifier knows the
    queues' heads. Those beyond the share of a block are hashed (UP-9). Senders without messages are
    left out. Of the signed `extrinsics`, the block takes in order those that can be part of it.

    Raises `CannotAuthor`.
    """
    storage = Storage(parent.state.fork())
    spec = runtime_spec(storage)
    ensure_descendants(spec, relay)
    authorities = authority_keys(spec, descendants(spec, relay))
    proof = full_proof(relay, spec, parent.rules, authorities)
    shares = spec.shares(parent.rules.named(spec.rules))
    messages = abridged(messages.tidy(), shares)
    ensure_room(spec, messages, shares)
    ensure_advance(messages, shares, proof.statics)
    storage.start_recording()
    calls = root_calls(spec, messages)
    walked = plan(
        SubscriberView(storage, spec, parent.rules),
        relay.storage_root,
        proof.nodes,
        spec.budget(messages.weight),
        calls,
        authorities=authorities,
    )
    if walked.missing is not None:
        raise DefensiveFailure(f"the full proof lacks {walked.missing}")
    inherent = make_inherent(parent, spec, relay, walked, messages)
    body = OfferedBody(extrinsics)
    candidate, outcome = build(
        storage,
        spec,
        parent.header,
        inherent=inherent,
        walked=walked,
        slot=slot,
        seed=seed,
        handlers=handlers,
        body=body,
    )
    return Authored(
        candidate, outcome, proof.unpruned, parent.header, parent.state.root(), body.refused
    )


def make_inherent(
    parent: ChainHead,
    spec: RuntimeSpec,
    relay: RelayAccess,
    walked: Plan,
    messages: InboundMessages,
) -> Inherent:
    """Return the inherent of a block on `relay` with the nodes of `walked` and the messages."""
    return Inherent(
        relay.number,
        relay.storage_root,
        walked.proof(),
        parent_head=parent.header.encode(),
        max_pov_size=spec.max_pov_size,
        messages=messages,
        descendants=descendants(spec, relay),
    )


def descendants(spec: RuntimeSpec, relay: RelayAccess) -> tuple[Header, ...]:
    """Return the relay headers of a block on `relay` (UP-12).

    If the collator does not know as many as the runtime requires, it returns fewer.
    """
    offset = spec.relay_parent_offset
    return relay.headers[: offset + 1] if offset else ()


def ensure_descendants(spec: RuntimeSpec, relay: RelayAccess) -> None:
    """Raise `CannotAuthor` if the collator knows fewer relay headers than a block needs (UP-12)."""
    known = descendants(spec, relay)
    if count_fault(spec, known) is not None:
        raise CannotAuthor(
            f"relay block {relay.number} has {max(len(known) - 1, 0)} sealed descendants, and"
            f" relay_parent_offset is {spec.relay_parent_offset}"
        )


def ensure_room(spec: RuntimeSpec, messages: InboundMessages, shares: Shares) -> None:
    """Raise `CannotAuthor` unless a block may hold these abridged messages (PS-50, UP-10)."""
    limit = shares.limit
    if messages.hashed_downward and not messages.downward:
        raise CannotAuthor(
            f"the next downward message exceeds the share of {limit} bytes, so no block can take it"
        )
    if messages.hashed_horizontal and not messages.horizontal:
        room = shares.horizontal(full_bytes(messages)[0])
        raise CannotAuthor(
            f"the next horizontal message exceeds the share of {room} bytes, so no block can take"
            " it"
        )
    if messages.weight > spec.allowed_pov:
        raise CannotAuthor(
            f"{messages.weight} bytes of messages exceed the {spec.allowed_pov} that a block may"
            " hold"
        )


def ensure_advance(messages: InboundMessages, shares: Shares, statics: StaticValues) -> None:
    """Raise `CannotAuthor` unless the chain's rules allow these messages to be hashed (UP-10).

    The shipped rules always allow it. A rule from a file may require a full message that does not
    fit.
    """
    faults = advancement_faults(
        messages, shares, statics.largest_messages, statics.largest_downward
    )
    fault = next(faults, None)
    if fault is not None:
        raise CannotAuthor(f"no block can hold the next messages: {fault}")


def build(  # noqa: PLR0917  # as above
    storage: Storage,
    spec: RuntimeSpec,
    parent: Header,
    inherent: Inherent,
    walked: Plan,
    slot: Slot,
    seed: bytes,
    handlers: Mapping[str, SubscriptionHandler] = HANDLERS,
    body: OfferedBody | None = None,
) -> tuple[Candidate, BlockOutcome]:
    """Execute the block of `inherent` and `walked`, and seal it.

    `storage` has the parent's state and is written to.
    """
    body = OfferedBody() if body is None else body
    digest = (aura_pre_digest(slot),)
    number = ParaBlockNumber(parent.number + 1)
    outcome = execute_block(
        storage,
        spec,
        parent,
        number=number,
        digest=digest,
        inherent=inherent,
        plan=walked,
        handlers=handlers,
        extrinsics=body,
    )
    root = extrinsics_root(inherent, body.extrinsics)
    header = Header(parent.hash(), number, outcome.state_root, root, outcome.digest)
    return Candidate(seal(header, seed), inherent, body.extrinsics), outcome


def seal(header: Header, seed: bytes) -> Header:
    """Return the header with its author's seal.

    Another seal is replaced.
    """
    return replace(header, digest=(*header.unsealed(), aura_seal(sign(seed, header.pre_hash()))))
