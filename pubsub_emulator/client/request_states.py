"""Proofs of requested keys, fetched from a node for some blocks.

    states = ChainStates(node)
    for block in states.back_from(states.block(), 50):
        open_request(Hash(block.header.state_root), states.nodes(block, request), request)

One call fetches the proof of all top keys, and one those of a child trie. As in `live_state`, a
trie node is accepted only if the state root leads to it, and headers are accepted by their hashes:
each block is the parent of the one before it. A node can therefore refuse to answer, but it cannot
answer wrongly.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.client.answers import BYTES, HASH, HEAD, MAYBE_HASH, PROOF, Head, read
from pubsub_emulator.client.errors import BadAnswer, ClientError, NodeRefused, UnknownBlock
from pubsub_emulator.client.live_state import NodeCalls, no_state, references
from pubsub_emulator.client.metadata import Metadata, parse_metadata
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash, ParaId
from pubsub_emulator.runtime.framework.relay_request import (
    RelayProofRequest,
    RelayStorageKey,
    TopKey,
)
from pubsub_emulator.runtime.framework.request_proof import joined, open_request, static_request
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.trie.errors import BadNode, MissingNode
from pubsub_emulator.trie.lazy import StateUnavailable

KEYS_AT_ONCE: Final = 1_000
"""The maximum number of keys whose proof one call asks for."""
MOST_PROOF: Final = 64 * 1_048_576
"""The maximum size of the proofs of one block in bytes."""
KEYS_TO_PROVE: Final = "KeyToIncludeInRelayProof_keys_to_prove"
"""The runtime function by which a parachain says which relay keys it requests (UP-1)."""


@dataclass(frozen=True, slots=True)
class BlockAt:
    """A block of a chain."""

    hash: Hash
    header: Head


class ChainStates:
    """The states of one chain of a node. Methods raise `ClientError`."""

    def __init__(self, node: NodeCalls) -> None:
        self.node = node

    def block(self, at: str | None = None) -> BlockAt:
        """Return a block by its hash or number, by default the newest final one.

        Raises `UnknownBlock`.
        """
        if at is None:
            wanted = self._ask_hash()
        elif at.isascii() and at.isdecimal():
            place = f"{self.node.url}: chain_getBlockHash"
            found = read(MAYBE_HASH, self.node.ask("chain_getBlockHash", int(at)), place)
            if found is None:
                raise UnknownBlock(f"{self.node.url}: the node has no block {at}")
            wanted = found
        else:
            try:
                wanted = unhex(at)
            except ValueError:
                raise ClientError(f"{at[:80]!r} is not a block's number or hash") from None
        return self._by_hash(Hash(wanted))

    def back_from(self, newest: BlockAt, count: int) -> list[BlockAt]:
        """Return `count` successive blocks up to `newest`, oldest first.

        There are fewer at the beginning of the chain.
        """
        blocks = [newest]
        while len(blocks) < count and blocks[-1].header.number > 0:
            last = blocks[-1]
            before = self._by_hash(Hash(last.header.parent_hash))
            if before.header.number + 1 != last.header.number:
                raise BadAnswer(
                    f"{self.node.url}: block {last.header.number} follows block"
                    f" {before.header.number}"
                )
            blocks.append(before)
        return blocks[::-1]

    def nodes(
        self, block: BlockAt, request: RelayProofRequest, para: ParaId | None = None
    ) -> dict[Hash, bytes]:
        """Return the nodes of a block's state that prove a request, by hash.

        With `para`, those of the static keys of that parachain are among them. Raises
        `StateUnavailable` if the node does not provide the state.
        """
        nodes: dict[Hash, bytes] = {}
        if para is None:
            self._add(block, nodes, request)
            return nodes
        fixed = RelayProofRequest(tuple(TopKey(key) for key in fixed_keys(para)))
        self._add(block, nodes, joined(request, fixed))
        # Each channel of the parachain adds a key, which the fixed keys tell.
        static = static_request(para, lambda key: self._value(block, nodes, TopKey(key)))
        if set(static.keys) > set(fixed.keys):
            self._add(block, nodes, static)
        return nodes

    def _value(
        self, block: BlockAt, nodes: dict[Hash, bytes], asked: RelayStorageKey
    ) -> bytes | None:
        """Return a value in the fetched nodes. Raises `StateUnavailable` if one is missing."""
        root = Hash(block.header.state_root)
        try:
            (cost,) = open_request(root, nodes, RelayProofRequest((asked,))).keys
        except (MissingNode, BadNode) as error:
            raise StateUnavailable(
                f"{self.node.url}: the node's proof of block {block.header.number} is not whole:"
                f" {error}"
            ) from error
        return cost.value

    def _add(self, block: BlockAt, nodes: dict[Hash, bytes], request: RelayProofRequest) -> None:
        """Fetch the nodes that a request needs. Raises `StateUnavailable`."""
        children = request.children()
        top = [*request.top(), *map(child_root_key, children)]
        self._add_trie(Hash(block.header.state_root), block, nodes, None, top)
        for storage_key, keys in children.items():
            root = self._value(block, nodes, TopKey(child_root_key(storage_key)))
            if root is not None and len(root) == len(block.hash):
                self._add_trie(Hash(root), block, nodes, storage_key, keys)

    def metadata(self, block: BlockAt) -> Metadata:
        """Return the metadata of the runtime in the state after a block.

        The node's word for it is taken: metadata is not part of the state.
        """
        raw = self.node.ask("state_getMetadata", hexed(block.hash))
        return parse_metadata(read(BYTES, raw, f"{self.node.url}: state_getMetadata"))

    def keys_to_prove(self, block: BlockAt | None = None) -> RelayProofRequest:
        """Return the request of the parachain's runtime after a block, by default the best one.

        Raises `ClientError` if its runtime has no such function.
        """
        at = [] if block is None else [hexed(block.hash)]
        place = f"{self.node.url}: {KEYS_TO_PROVE}"
        try:
            raw = read(BYTES, self.node.ask("state_call", KEYS_TO_PROVE, "0x", *at), place)
        except NodeRefused as error:
            said = f"{place}: the runtime did not return its request: {error}"
            raise ClientError(said) from error
        try:
            return RelayProofRequest.decode(raw)
        except ScaleError as error:
            raise BadAnswer(f"{place}: not a RelayProofRequest: {error}") from error

    def _ask_hash(self) -> bytes:
        place = f"{self.node.url}: chain_getFinalizedHead"
        return read(HASH, self.node.ask("chain_getFinalizedHead"), place)

    def _by_hash(self, wanted: Hash) -> BlockAt:
        """Return a block by its hash. The hash of the node's header must be the wanted one."""
        found = self.node.ask("chain_getHeader", hexed(wanted))
        if found is None:
            raise UnknownBlock(f"{self.node.url}: the node has no block {hexed(wanted)}")
        header = read(HEAD, found, f"{self.node.url}: chain_getHeader")
        if header.hash() != wanted:
            raise BadAnswer(
                f"{self.node.url}: the node's header of block {hexed(wanted)} has another hash"
            )
        return BlockAt(wanted, header)

    def _add_trie(
        self,
        root: Hash,
        block: BlockAt,
        nodes: dict[Hash, bytes],
        storage_key: bytes | None,
        keys: Iterable[bytes],
    ) -> None:
        """Fetch the nodes of one trie that reading some keys needs."""
        listed = [hexed(key) for key in keys]
        child = [] if storage_key is None else [hexed(child_root_key(storage_key))]
        method = "state_getChildReadProof" if child else "state_getReadProof"
        for start in range(0, len(listed), KEYS_AT_ONCE):
            some = listed[start : start + KEYS_AT_ONCE]
            try:
                answer = self.node.ask(method, *child, some, hexed(block.hash))
            except NodeRefused as error:
                said = no_state(self.node.url, block.header.number, error)
                raise StateUnavailable(said) from error
            proof = read(PROOF, answer, f"{self.node.url}: {method}").proof
            self._keep(root, block, nodes, {blake2_256(node): node for node in proof})

    def _keep(
        self, root: Hash, block: BlockAt, nodes: dict[Hash, bytes], found: dict[Hash, bytes]
    ) -> None:
        """Keep the nodes of a proof to which the root leads. No others are part of the state."""
        if root not in found and root != EMPTY_TRIE_ROOT:
            raise BadAnswer(
                f"{self.node.url}: the node's proof of block {block.header.number} does not have"
                f" the root {hexed(root)}"
            )
        waiting: list[Hash] = [root]
        seen: set[Hash] = set()
        while waiting:
            name = waiting.pop()
            node = found.get(name)
            if node is None or name in seen:
                continue
            seen.add(name)
            nodes[name] = node
            waiting += map(Hash, references(node))
        if sum(map(len, nodes.values())) > MOST_PROOF:
            raise BadAnswer(
                f"{self.node.url}: proofs of more than {MOST_PROOF:,} bytes for block"
                f" {block.header.number}"
            )
