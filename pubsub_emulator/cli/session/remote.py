"""A node at a URL: JSON-RPC, and states that are read on demand and verified by their roots."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TypeVar

from pubsub_emulator.cli.screen.pages import words
from pubsub_emulator.cli.session.node_api import RELAY, Deposited, NodeApi
from pubsub_emulator.client.errors import BadAnswer, NodeUnavailable
from pubsub_emulator.client.live_state import state_of
from pubsub_emulator.client.node import SubstrateNode
from pubsub_emulator.client.rpc import Rpc, connect
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.shown import safe
from pubsub_emulator.runtime.framework.storage import State

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _ChainCalls:
    """One chain of the node, for reading its state."""

    node: "RemoteNode"
    chain: str

    @property
    def url(self) -> str:
        """The chain's address, for errors."""
        return self.node.url if self.chain == RELAY else f"{self.node.url}/{self.chain}"

    def ask(self, method: str, *params: object) -> object:
        """The answer of a method. Raises `ClientError`."""
        return self.node.ask(method, *params, chain=self.chain)


class RemoteNode(NodeApi):
    """The node at a ws:// or http:// URL. Every method raises `ClientError`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._runner = asyncio.Runner()
        self._open: dict[str, Rpc] = {}
        self._states: dict[str, tuple[bytes, State]] = {}

    def close(self) -> None:
        """Close every connection."""
        for rpc in self._open.values():
            self._run(rpc.__aexit__(None, None, None))
        self._runner.close()

    def ask(self, method: str, *params: object, chain: str = RELAY) -> object:
        """The answer of a method."""
        return self._run(self._rpc(chain).call(method, *params))

    def state(self, chain: str, block: bytes) -> State:
        """The state after a block; reading it may raise `StateUnavailable`. The newest one of each chain is cached."""
        held = self._states.get(chain)
        if held is None or held[0] != block:
            held = self._states[chain] = block, state_of(_ChainCalls(self, chain), hexed(block)).state
        return held[1]

    def events_by_metadata(self, block: bytes) -> list[Deposited]:
        """The events of a relay block."""
        found = self._run(SubstrateNode(self._rpc(RELAY)).events(block))
        return [
            Deposited(
                each.phase,
                each.pallet,
                each.name,
                f"{each.pallet}.{each.name}({', '.join(f'{name} {words(of)}' for name, of in each.fields.items())})",
            )
            for each in found
        ]

    def item_by_metadata(self, pallet: str, name: str, keys: tuple[bytes, ...]) -> object:
        """An item of the newest state of the relay chain."""
        node = SubstrateNode(self._rpc(RELAY))

        async def read() -> object:
            return await node.item(await node.best_head(), pallet, name, *keys)

        return self._run(read())

    def _run(self, work: Coroutine[object, None, T]) -> T:
        """The result of a coroutine; what an error says of an answer is made safe. Raises `ClientError`."""
        try:
            return self._runner.run(work)
        except NodeUnavailable as error:
            raise NodeUnavailable(safe(str(error)), error.after) from error
        except BadAnswer as error:
            raise BadAnswer(safe(str(error))) from error

    def _rpc(self, chain: str) -> Rpc:
        if chain not in self._open:
            rpc = connect(self.url if chain == RELAY else f"{self.url}/{chain}")
            self._run(rpc.__aenter__())
            self._open[chain] = rpc
        return self._open[chain]
