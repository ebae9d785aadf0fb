"""The trie nodes that prove requested keys, fetched from a node block by block.

    states = ChainStates(node)
    for block in states.back_from(states.block(), 50):
        open_request(Hash(block.header.state_root), states.nodes(block, request), request)

One call fetches the proof of all top keys, and one more the proof of the keys of each child trie.
As in `live_state`, a trie node is accepted only if the state root leads to it, and a header only if
it has the wanted hash. Older blocks are found by the parent hashes in the headers. A node can
therefore refuse to answer, but it cannot answer wrongly.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.client.answers import BYTES, PROOF, Head, read
from pubsub_emulator.client.errors import BadAnswer, ClientError, NodeRefused
from pubsub_emulator.client.live_state import (
    NodeCalls,
    header_at,
    header_of,
    no_state,
    references,
)
from pubsub_emulator.client.metadata import Metadata, parse_metadata
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
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
"""The maximum number of keys that one call proves."""
MOST_PROOF: Final = 64 * 1_048_576
"""The maximum size of the proofs of one block in bytes."""
KEYS_TO_PROVE: Final = "KeyToIncludeInRelayProof_keys_to_prove"
"""The runtime function by which a parachain says which relay keys it requests (UP-1)."""


@dataclass(frozen=True, slots=True)
class BlockAt:
    """A block's hash and header, which match."""

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
        return BlockAt(*header_at(self.node, at))

    def back_from(self, newest: BlockAt, count: int) -> list[BlockAt]:
        """Return `count` successive blocks up to `newest`, oldest first.

        At the beginning of the chain, there are fewer. Raises `BadAnswer` if the node's heights are
        not successive.
        """
        blocks = [newest]
        while len(blocks) < count and blocks[-1].header.number > 0:
            child = blocks[-1]
            parent_hash = Hash(child.header.parent_hash)
            parent = header_of(self.node, parent_hash)
            if parent.number + 1 != child.header.number:
                raise BadAnswer(
                    f"{self.node.url}: block {child.header.number} follows block {parent.number}"
                )
            blocks.append(BlockAt(parent_hash, parent))
        return blocks[::-1]

    def nodes(
        self, block: BlockAt, request: RelayProofRequest, para: ParaId | None = None
    ) -> dict[Hash, bytes]:
        """Return the nodes of a block's state that prove a request, by hash.

        With `para`, the nodes that prove the static keys of that parachain are added. Raises
        `StateUnavailable` if the node does not provide the state.
        """
        nodes: dict[Hash, bytes] = {}
        if para is None:
            self._add(block, nodes, request)
            return nodes
        fixed = RelayProofRequest(tuple(TopKey(key) for key in fixed_keys(para)))
        self._add(block, nodes, joined(request, fixed))
        # Each channel of the parachain adds a static key. The values of the fixed keys list them.
        static = static_request(para, lambda key: self._value(block, nodes, TopKey(key)))
        if set(static.keys) > set(fixed.keys):
            self._add(block, nodes, static)
        return nodes

    def _value(
        self, block: BlockAt, nodes: dict[Hash, bytes], asked: RelayStorageKey
    ) -> bytes | None:
        """Read a value from the fetched nodes. Raises `StateUnavailable` if a node is missing."""
        root = Hash(block.header.state_root)
        try:
            (cost,) = open_request(root, nodes, RelayProofRequest((asked,))).keys
        except (MissingNode, BadNode) as error:
            raise StateUnavailable(
                f"{self.node.url}: the node's proof of block {block.header.number} is incomplete:"
                f" {error}"
            ) from error
        return cost.value

    def _add(self, block: BlockAt, nodes: dict[Hash, bytes], request: RelayProofRequest) -> None:
        """Fetch the nodes that prove a request into `nodes`. Raises `StateUnavailable`."""
        children = request.children()
        # The proof of a child trie's keys is verified by its root in the top trie.
        top = [*request.top(), *map(child_root_key, children)]
        self._add_trie(Hash(block.header.state_root), block, nodes, None, top)
        for storage_key, keys in children.items():
            root = self._value(block, nodes, TopKey(child_root_key(storage_key)))
            if root is not None and len(root) == len(block.hash):
                self._add_trie(Hash(root), block, nodes, storage_key, keys)

    def metadata(self, block: BlockAt) -> Metadata:
        """Return the metadata of the runtime in the state after a block.

        It cannot be verified, since metadata is not part of the state.
        """
        raw = self.node.ask("state_getMetadata", hexed(block.hash))
        return parse_metadata(read(BYTES, raw, f"{self.node.url}: state_getMetadata"))

    def keys_to_prove(self, block: BlockAt | None = None) -> RelayProofRequest:
        """Return the request of the parachain's runtime after a block, by default the best block.

        Raises `ClientError` if the runtime does not have the function `KEYS_TO_PROVE`.
        """
        at = [] if block is None else [hexed(block.hash)]
        place = f"{self.node.url}: {KEYS_TO_PROVE}"
        try:
            raw = read(BYTES, self.node.ask("state_call", KEYS_TO_PROVE, "0x", *at), place)
        except NodeRefused as error:
            message = f"{place}: the runtime did not return its request: {error}"
            raise ClientError(message) from error
        try:
            return RelayProofRequest.decode(raw)
        except ScaleError as error:
            raise BadAnswer(f"{place}: not a RelayProofRequest: {error}") from error

    def _add_trie(
        self,
        root: Hash,
        block: BlockAt,
        nodes: dict[Hash, bytes],
        storage_key: bytes | None,
        keys: Iterable[bytes],
    ) -> None:
        """Fetch the nodes that prove some keys of one trie into `nodes`.

        `root` is the root of the trie, and `storage_key` is `None` for the top trie. Raises
        `StateUnavailable`.
        """
        hex_keys = [hexed(key) for key in keys]
        child = [] if storage_key is None else [hexed(child_root_key(storage_key))]
        method = "state_getChildReadProof" if child else "state_getReadProof"
        for start in range(0, len(hex_keys), KEYS_AT_ONCE):
            batch = hex_keys[start : start + KEYS_AT_ONCE]
            try:
                answer = self.node.ask(method, *child, batch, hexed(block.hash))
            except NodeRefused as error:
                message = no_state(self.node.url, block.header.number, error)
                raise StateUnavailable(message) from error
            proof = read(PROOF, answer, f"{self.node.url}: {method}").proof
            self._keep(root, block, nodes, {blake2_256(node): node for node in proof})

    def _keep(
        self, root: Hash, block: BlockAt, nodes: dict[Hash, bytes], proof: dict[Hash, bytes]
    ) -> None:
        """Copy the nodes of a proof to which the root leads into `nodes`.

        The node could have added others, which are not part of the state. Raises `BadAnswer` if the
        root is missing, or the nodes of the block exceed `MOST_PROOF`.
        """
        if root not in proof and root != EMPTY_TRIE_ROOT:
            raise BadAnswer(
                f"{self.node.url}: the node's proof of block {block.header.number} does not have"
                f" the root {hexed(root)}"
            )
        waiting: list[Hash] = [root]
        seen: set[Hash] = set()
        while waiting:
            name = waiting.pop()
            node = proof.get(name)
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
