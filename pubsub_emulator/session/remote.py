"""A node at a URL: JSON-RPC, and states that are read on demand and verified by their roots."""

from collections.abc import Coroutine
from typing import TypeVar

from pubsub_emulator.client.chain import BlockingChain
from pubsub_emulator.client.errors import BadAnswer, NodeUnavailable
from pubsub_emulator.client.live_state import state_of
from pubsub_emulator.files.shown import safe
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.framework.words import words
from pubsub_emulator.session.node_api import RELAY, Deposited, NodeApi

T = TypeVar("T")


class RemoteNode(NodeApi):
    """The node at a ws:// or http:// URL. Every method raises `ClientError`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._chains: dict[str, BlockingChain] = {}
        self._states: dict[str, tuple[bytes, State]] = {}

    def close(self) -> None:
        """Close every connection."""
        for chain in self._chains.values():
            chain.close()

    def ask(self, method: str, *params: object, chain: str = RELAY) -> object:
        """Return the answer of a method."""
        target = self._chain(chain)
        return _run(target, target.rpc.call(method, *params))

    def state(self, chain: str, block: bytes) -> State:
        """Return the state after a block.

        The newest state of each chain is cached. Reading it may raise `StateUnavailable`.
        """
        if chain not in self._states or self._states[chain][0] != block:
            self._states[chain] = block, state_of(self._chain(chain), hexed(block)).state
        return self._states[chain][1]

    def events_by_metadata(self, block: bytes) -> list[Deposited]:
        """Return the events of a relay block, decoded by the chain's metadata."""
        relay = self._chain(RELAY)
        deposited = []
        for event in _run(relay, relay.node.events(block)):
            inside = ", ".join(f"{name} {words(value)}" for name, value in event.fields.items())
            deposited.append(
                Deposited(
                    event.phase, event.pallet, event.name, f"{event.pallet}.{event.name}({inside})"
                )
            )
        return deposited

    def item_by_metadata(self, pallet: str, name: str, keys: tuple[bytes, ...]) -> object:
        """Return an item of the newest relay state, decoded by the chain's metadata."""
        relay = self._chain(RELAY)
        newest = _run(relay, relay.node.best_head())
        return _run(relay, relay.node.item(newest, pallet, name, *keys))

    def _chain(self, name: str) -> BlockingChain:
        if name not in self._chains:
            self._chains[name] = BlockingChain(self.url if name == RELAY else f"{self.url}/{name}")
        return self._chains[name]


def _run(chain: BlockingChain, work: Coroutine[object, None, T]) -> T:
    """Return the result of a coroutine.

    Unprintable characters of an answer are removed from error messages. Raises `ClientError`.
    """
    try:
        return chain.run(work)
    except NodeUnavailable as error:
        raise NodeUnavailable(safe(str(error)), error.after) from error
    except BadAnswer as error:
        raise BadAnswer(safe(str(error))) from error
