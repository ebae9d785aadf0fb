"""The state after one block of a node, read on demand and verified.

    with live_state("wss://…") as fork: Network.of(…, fork=fork)

When a key is read, the node is asked for its read proof. A trie node is accepted only if its hash
is the block's state root or is in an accepted node above it. A node can therefore refuse to answer,
but it cannot answer wrongly. The header is accepted only if it has the block's hash. It is not
verified that the block belongs to the chain and is final.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol, TypeVar

from pubsub_emulator.client.answers import HASH, HEAD, KEYS, MAYBE_HASH, PROOF, Head, read
from pubsub_emulator.client.errors import (
    METHOD_NOT_FOUND,
    BadAnswer,
    ClientError,
    NodeRefused,
    NodeUnavailable,
    UnknownBlock,
)
from pubsub_emulator.client.rpc import ANSWER_SECONDS, Rpc, connect
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.fork import Fork
from pubsub_emulator.runtime.framework.lazy_state import lazy_state
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.errors import BadNode
from pubsub_emulator.trie.lazy import StateUnavailable

AHEAD: Final = 64
"""The number of further keys to fetch if they will probably be read next."""
MOST_NODES: Final = 512 * 1_048_576
"""The maximum size of the stored nodes of one state in bytes."""
_ATTEMPTS: Final = 3
"""The maximum number of times that a call is made while the node is unavailable."""

T = TypeVar("T")


@contextmanager
def live_state(url: str, at: str | None = None) -> Iterator[Fork]:
    """Yield the state of the chain at a ws:// or http:// URL while the context lasts.

    `at` is a block's hash or number, by default the newest final block. Raises `ClientError`.
    Reading the state later can raise `StateUnavailable`.
    """
    node = BlockingNode(url)
    try:
        yield state_of(node, at)
    finally:
        node.close()


def state_of(node: "NodeCalls", at: str | None = None) -> Fork:
    """Return the state after a block of a node that is already connected.

    `at` and the errors are as in `live_state`.
    """
    block, header = header_at(node, at)
    state = lazy_state(Hash(header.state_root), StateProofs(node, block))
    return Fork(state, header.number, block, f"{node.url}, block {header.number}")


class NodeCalls(Protocol):
    """A node, or a peer that answers the same methods."""

    @property
    def url(self) -> str:
        """Return the node's address, for errors."""

    def ask(self, method: str, *params: object) -> object:
        """Call a method. Raises `ClientError`."""


class BlockingNode:
    """A node for code that is not asynchronous. Its event loop runs in a thread of its own."""

    def __init__(self, url: str, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.url = url
        self.rpc: Rpc = connect(url, answer_seconds=answer_seconds)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"fork of {url}", daemon=True
        )
        self._thread.start()
        self.run(self.rpc.__aenter__())

    def close(self) -> None:
        """Close the connection and end the thread."""
        self.run(self.rpc.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def ask(self, method: str, *params: object) -> object:
        """Call a method, reconnecting if the connection was lost. Raises `ClientError`."""
        for _ in range(_ATTEMPTS - 1):
            with suppress(NodeUnavailable):
                return self.run(self.rpc.call(method, *params))
        return self.run(self.rpc.call(method, *params))

    def run(self, work: Coroutine[object, None, T]) -> T:
        """Run a coroutine in the thread's event loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def header_at(node: NodeCalls, at: str | None) -> tuple[Hash, Head]:
    """Return the hash and header of a block.

    `at` is its hash or number, or `None` for the newest final block. Raises `UnknownBlock`,
    `BadAnswer` if the node's header has another hash, or another `ClientError`.
    """
    if at is None:
        answer = node.ask("chain_getFinalizedHead")
        block = read(HASH, answer, f"{node.url}: chain_getFinalizedHead")
    elif at.isascii() and at.isdecimal():
        answer = node.ask("chain_getBlockHash", int(at))
        by_number = read(MAYBE_HASH, answer, f"{node.url}: chain_getBlockHash")
        if by_number is None:
            raise UnknownBlock(f"{node.url}: the node has no block {at}")
        block = by_number
    else:
        try:
            block = unhex(at)
        except ValueError:
            raise ClientError(f"{at[:80]!r} is not a block's number or hash") from None
    return Hash(block), header_of(node, Hash(block))


def header_of(node: NodeCalls, block: Hash) -> Head:
    """Return the header of a block by its hash.

    Raises `UnknownBlock`, `BadAnswer` if the node's header has another hash, or another
    `ClientError`.
    """
    answer = node.ask("chain_getHeader", hexed(block))
    if answer is None:
        raise UnknownBlock(f"{node.url}: the node has no block {hexed(block)}")
    header = read(HEAD, answer, f"{node.url}: chain_getHeader")
    if header.hash() != block:
        raise BadAnswer(f"{node.url}: the node's header of block {hexed(block)} has another hash")
    return header


class StateProofs:
    """The tries of a block's state. Their fetched nodes are stored together, by hash."""

    def __init__(self, node: NodeCalls, block: Hash) -> None:
        self.node = node
        self.block = block
        self.nodes: dict[bytes, bytes] = {}
        self.size = 0
        """The size of `nodes` in bytes."""

    def trie(self, child_key: bytes | None) -> "TrieSource":
        """Return the top trie, or a child trie."""
        return TrieSource(self, None if child_key is None else child_root_key(child_key))


class TrieSource:
    """The nodes of one trie."""

    def __init__(self, source: StateProofs, child: bytes | None) -> None:
        self._source = source
        self._child = child

    def node(self, wanted: bytes, place: str, *, ahead: bool) -> bytes:
        """Return the node or value with the hash `wanted`, fetching it if needed.

        `place` is the path to it in the trie, one hexadecimal digit for each nibble. With `ahead`,
        keys below it are fetched as well. Raises `StateUnavailable`.
        """
        nodes = self._source.nodes
        if wanted not in nodes:
            url = self._source.node.url
            block = hexed(self._source.block)
            # The proof of any key below `place` contains the node, whether or not the key exists.
            key = unhex(place + "0" * (len(place) % 2))
            try:
                self._fetch(wanted, [key, *(self._following(place, key) if ahead else ())])
            except NodeRefused as error:
                raise StateUnavailable(no_state(url, block, error)) from error
            except ClientError as error:
                raise StateUnavailable(str(error)) from error
            if wanted not in nodes:
                raise StateUnavailable(
                    f"{url}: the read proof lacks node {hexed(wanted)} of block {block}"
                )
        return nodes[wanted]

    def _following(self, place: str, start: bytes) -> list[bytes]:
        """Return some keys below `place`, after the key `start`.

        The node's answer is not verified, since it only decides which proofs are requested.
        """
        # A prefix consists of whole bytes, so an odd last nibble is left out.
        whole_bytes = place[: len(place) - len(place) % 2]
        prefix = hexed(unhex(whole_bytes))
        after = hexed(start) if start else None
        keys = self._ask("state_getKeysPaged", "childstate_getKeysPaged", prefix, AHEAD, after)
        return read(KEYS, keys, f"{self._source.node.url}: state_getKeysPaged")[:AHEAD]

    def _fetch(self, wanted: bytes, keys: list[bytes]) -> None:
        """Request the proof of some keys, and store its nodes from `wanted` downwards."""
        answer = self._ask(
            "state_getReadProof", "state_getChildReadProof", [hexed(key) for key in keys]
        )
        proof = read(PROOF, answer, f"{self._source.node.url}: state_getReadProof").proof
        self._keep(wanted, {bytes(blake2_256(node)): node for node in proof})

    def _keep(self, wanted: bytes, proof: dict[bytes, bytes]) -> None:
        """Store `wanted` and the nodes and values below it, at any depth.

        Their hashes are in the nodes above them, which verifies them. The other nodes of the proof
        are unverified and are dropped.
        """
        nodes = self._source.nodes
        waiting = [wanted]
        while waiting:
            name = waiting.pop()
            node = proof.get(name)
            if node is not None and name not in nodes:
                nodes[name] = node
                self._source.size += len(node)
                if self._source.size > MOST_NODES:
                    raise BadAnswer(
                        f"{self._source.node.url}: a state of more than {MOST_NODES:,} bytes of"
                        " nodes"
                    )
                waiting += references(node)

    def _ask(self, of_top: str, of_child: str, *params: object) -> object:
        """Call the method for the top trie or the one for child tries."""
        call = (of_top,) if self._child is None else (of_child, hexed(self._child))
        return self._source.node.ask(*call, *params, hexed(self._source.block))


def no_state(url: str, block: str | int, error: NodeRefused) -> str:
    """Return the text of the error for a node that refuses to prove the state of a block."""
    if error.code == METHOD_NOT_FOUND:
        return f"{url}: the node cannot prove states: {error}"
    return (
        f"{url}: the node does not provide the state of block {block}: {error}; nodes keep the"
        " states of a few hundred blocks, and archive nodes keep all"
    )


def references(node: bytes) -> list[bytes]:
    """Return the hashes referenced by a node and its inline children.

    Bytes that are not a node, such as a detached value, reference none. An inline child of more
    than 32 bytes is skipped: the trie refuses it later, and a node could nest such children without
    end.
    """
    try:
        parts = DecodedNode(node)
    except BadNode:
        return []
    hashes = [bytes(parts.value_hash)] if parts.value_hash is not None else []
    for _, reference in parts.references:
        if len(reference) == 32:
            hashes.append(reference)
        elif len(reference) < 32:
            hashes += references(reference)
    return hashes
