"""The time of a block in milliseconds since 1970, as the chain has it. No clock is read."""

from typing import Final

from pubsub_emulator.primitives.header import BABE_ENGINE, DigestKind, Header
from pubsub_emulator.primitives.storage_keys import item_prefix
from pubsub_emulator.runtime.framework.storage import State

SLOT_MS: Final = 6_000
"""The length of a relay slot in milliseconds."""
_NOW: Final = item_prefix("Timestamp", "Now")
_SLOT_AT: Final = 5
"""The offset of the slot in a BABE pre-runtime digest, after variant and authority index."""


def own_timestamp(state: State) -> int | None:
    """Return `Timestamp.Now` of a chain's state, or `None`."""
    now = state.top.get(_NOW)
    return None if now is None else int.from_bytes(now, "little")


def relay_time(header: Header, state: State) -> int:
    """Return a relay block's timestamp, or else the start of the slot in its digest, or else 0."""
    now = own_timestamp(state)
    if now is not None:
        return now
    for item in header.digest:
        if item.kind is DigestKind.PRE_RUNTIME and item.engine == BABE_ENGINE:
            return int.from_bytes(item.data[_SLOT_AT : _SLOT_AT + 8], "little") * SLOT_MS
    return 0
