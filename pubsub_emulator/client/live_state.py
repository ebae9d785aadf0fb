"""The state after one block of a node, read on demand and verified.

    with live_state("wss://…") as fork: Network.of(…, fork=fork)

The node is asked for read proofs of the keys that are read. Each trie node is accepted only if a
node above it, or the block's state root, contains its hash. A node can therefore refuse to answer,
but it cannot answer wrongly. The header's own hash is computed, too. That the block belongs to the
chain and is final is not verified.
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
"""How often a call is made if the node is unavailable."""

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
    """Return the state after a block of a node that is connected already.

    `at` and errors are those of `live_state`.
    """
    name, header = _header(node, at)
    state = lazy_state(Hash(header.state_root), StateProofs(node, name))
    return Fork(state, header.number, name, f"{node.url}, block {header.number}")


class NodeCalls(Protocol):
    """A node, or a peer that answers the same methods."""

    @property
    def url(self) -> str:
        """Return the node's address, for errors."""

    def ask(self, method: str, *params: object) -> object:
        """Call a method. Raises `ClientError`."""


class BlockingNode:
    """A node for code that is not asynchronous. A thread runs the event loop."""

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


def _header(node: NodeCalls, at: str | None) -> tuple[Hash, Head]:
    """Return the hash and header of the block to fork at. Raises `ClientError`.

    The header's hash is computed and compared with the requested one.
    """
    if at is None:
        wanted: bytes | None = read(
            HASH, node.ask("chain_getFinalizedHead"), f"{node.url}: chain_getFinalizedHead"
        )
    elif at.isdecimal():
        wanted = read(
            MAYBE_HASH, node.ask("chain_getBlockHash", int(at)), f"{node.url}: chain_getBlockHash"
        )
    else:
        try:
            wanted = unhex(at)
        except ValueError:
            raise ClientError(f"{at[:80]!r} is not a block's number or hash") from None
    name = at if wanted is None else hexed(wanted)
    found = None if wanted is None else node.ask("chain_getHeader", name)
    if wanted is None or found is None:
        raise UnknownBlock(f"{node.url}: the node has no block {name}")
    header = read(HEAD, found, f"{node.url}: chain_getHeader")
    if header.hash() != wanted:
        raise BadAnswer(f"{node.url}: the node's header of block {name} has another hash")
    return Hash(wanted), header


class StateProofs:
    """The tries of a block's state.

    The nodes of all tries are stored together by hash.
    """

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

        `place` is its place in the trie as nibbles. With `ahead`, keys that follow are fetched as
        well. Raises `StateUnavailable`.
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
        """Return some keys below `place`.

        The node's answer is not verified. It is only a hint which proofs to request.
        """
        prefix = hexed(unhex(place[: len(place) & ~1]))
        after = hexed(start) if start else None
        found = self._ask("state_getKeysPaged", "childstate_getKeysPaged", prefix, AHEAD, after)
        return read(KEYS, found, f"{self._source.node.url}: state_getKeysPaged")[:AHEAD]

    def _fetch(self, wanted: bytes, keys: list[bytes]) -> None:
        """Request the proof of some keys, and store the part below the node `wanted`."""
        answer = self._ask(
            "state_getReadProof", "state_getChildReadProof", [hexed(key) for key in keys]
        )
        proof = read(PROOF, answer, f"{self._source.node.url}: state_getReadProof").proof
        self._keep(wanted, {bytes(blake2_256(node)): node for node in proof})

    def _keep(self, wanted: bytes, proof: dict[bytes, bytes]) -> None:
        """Store the nodes and values that `wanted` refers to, at any depth, and no others.

        A node is verified by its hash in a node above it. Other nodes of the proof are not
        verified.
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
    """Return in words why a node refuses to prove the state of a block."""
    if error.code == METHOD_NOT_FOUND:
        return f"{url}: the node cannot prove states: {error}"
    return (
        f"{url}: the node does not provide the state of block {block}: {error}; nodes keep the"
        " states of a few hundred blocks, and archive nodes keep all"
    )


def references(node: bytes) -> list[bytes]:
    """Return the hashes referenced by a node and its inline children.

    A detached value references none. An inline child of more than 32 bytes is none either: the trie
    will refuse it, and a node could nest such children without end.
    """
    try:
        parts = DecodedNode(node)
    except BadNode:
        return []
    found = [bytes(parts.value_hash)] if parts.value_hash is not None else []
    for _, reference in parts.references:
        if len(reference) == 32:
            found.append(reference)
        elif len(reference) < 32:
            found += references(reference)
    return found
