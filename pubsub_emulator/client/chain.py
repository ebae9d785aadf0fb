"""One chain of a node, for code that is not asynchronous: reading and signed calls."""

import time
from collections.abc import Iterable
from typing import Any, Final

from pubsub_emulator.client.answers import BLOCK, read
from pubsub_emulator.client.encode import Encoded, encode_call
from pubsub_emulator.client.errors import BadAnswer, NodeUnavailable
from pubsub_emulator.client.extrinsics import Signer, signed_by
from pubsub_emulator.client.live_state import BlockingNode, state_of
from pubsub_emulator.client.metadata import Enum, Metadata
from pubsub_emulator.client.node import DecodedEvent, SubstrateNode
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.runtime.framework.calls import EncodedCall
from pubsub_emulator.runtime.framework.storage import State

_PAUSE: Final = 0.01
"""The first pause between two searches for an extrinsic, in seconds. Each pause is twice as long
as the one before it.
"""
_LONGEST_PAUSE: Final = 1.0
"""The longest pause, in seconds."""


class BlockingChain(BlockingNode):
    """One chain of a node. Methods raise `ClientError`.

    `patience` is the maximum time until an extrinsic is in a block, in seconds.
    """

    def __init__(self, url: str, patience: float = 60.0) -> None:
        super().__init__(url)
        self.node = SubstrateNode(self.rpc)
        self._patience = patience

    def best(self) -> int:
        """Return the number of the best block."""
        return self.run(self.node.header(self.run(self.node.best_head()))).number

    def block(self, number: int) -> bytes:
        """Return the hash of a block. Raises `BadAnswer` if there is no such block."""
        block = self.run(self.node.block_hash(number))
        if block is None:
            raise BadAnswer(f"{self.url}: the node has no block {number}")
        return block

    def metadata(self) -> Metadata:
        """Return the metadata of the best block."""
        return self.run(self.node.metadata(self.block(self.best())))

    def events(self, number: int) -> list[DecodedEvent]:
        """Return the events of a block."""
        return self.run(self.node.events(self.block(number)))

    def item(self, number: int, pallet: str, name: str, *keys: bytes) -> Any:
        """Return a decoded storage item after a block, or `None` if it has no value.

        `keys` are the SCALE bytes of the item's keys.
        """
        return self.run(self.node.item(self.block(number), pallet, name, *keys))

    def state(self, number: int) -> State:
        """Return the state after a block. It reads through verified proofs when it is used."""
        return state_of(self, str(number)).state

    def call(
        self, pallet: str, name: str, arguments: dict[str, object], *, root: bool = False
    ) -> Encoded:
        """Return a call, encoded by the chain's metadata. `root` wraps it in `Sudo.sudo`."""
        call = encode_call(self.metadata(), pallet, name, arguments)
        return self.call("Sudo", "sudo", {"call": call}) if root else call

    def submit(self, signer: Signer, call: Encoded) -> tuple[int, list[DecodedEvent]]:
        """Send a call and wait for its block.

        Returns the block's number and the events of the extrinsic. Raises `NodeUnavailable` if no
        block includes it in time.
        """
        raw = self.run(signed_by(self.node, signer, EncodedCall("", "", (), call)))
        searched = self.best()
        self.ask("author_submitExtrinsic", hexed(raw))
        end = time.monotonic() + self._patience
        pause = _PAUSE
        while time.monotonic() < end:
            while searched < self.best() and time.monotonic() < end:
                searched += 1
                answer = self.ask("chain_getBlock", hexed(self.block(searched)))
                body = read(BLOCK, answer, f"{self.url}: chain_getBlock").block.extrinsics
                if raw in body:
                    phase = f"extrinsic {body.index(raw)}"
                    return searched, [
                        event for event in self.events(searched) if event.phase == phase
                    ]
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise NodeUnavailable(f"{self.url}: an extrinsic is in no block after {self._patience} s")

    def failure(self, events: Iterable[DecodedEvent]) -> str | None:
        """Return the error of an extrinsic by its events, or `None` if it succeeded.

        An extrinsic also fails if the call that it makes through `Sudo` fails.
        """
        for event in events:
            if (event.pallet, event.name) == ("System", "ExtrinsicFailed"):
                return self._error(event.fields["dispatch_error"])
            result = event.fields.get("sudo_result")
            if (
                (event.pallet, event.name) == ("Sudo", "Sudid")
                and isinstance(result, dict)
                and "Err" in result
            ):
                return self._error(result["Err"])
        return None

    def _error(self, error: object) -> str:
        """Return a decoded `DispatchError` as text.

        An error of a pallet becomes `Pallet.Error` by the chain's metadata. Any other error becomes
        the name of its variant, such as `BadOrigin`, with its value if it has one.
        """
        if not isinstance(error, dict):
            return str(error)
        ((kind, body),) = error.items()
        if kind != "Module":
            return f"{kind}.{body}"
        metadata = self.metadata()
        for pallet in metadata.pallets.values():
            errors = None if pallet.errors is None else metadata.types.get(pallet.errors)
            if pallet.index == body["index"] and isinstance(errors, Enum):
                variant = errors.variants.get(body["error"][0])
                return f"{pallet.name}.{variant.name if variant else body['error'][0]}"
        return str(error)
