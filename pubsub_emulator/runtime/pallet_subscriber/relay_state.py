"""Handlers that read requested relay keys.

This module is never compiled, because mypyc does not support protocols that are checked at run
time.
"""

from typing import Protocol, runtime_checkable

from pubsub_emulator.runtime.pallet_subscriber.handler import HandlerContext


@runtime_checkable
class RelayStateHandler(Protocol):
    """A handler that also reads the relay keys that its runtime requests (UP-14)."""

    def on_relay_state(self, context: HandlerContext) -> None:
        """Handle a block whose proof has the requested keys, after the block's deliveries."""
