"""The runtimes of all chains, to inspect states and decode events."""

from typing import Final

from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.runtime.framework.pallet import AnyItem
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.parachain.pallets import PARACHAIN

EVERY: Final = Runtime({kind.pallet: kind for kind in (*RELAY.kinds, *PARACHAIN.kinds)}.values())
"""The pallets of the relay chain and of parachains together. Their indices do not clash, so that
one decoder reads the events of both.
"""


def runtime_of(*, relay: bool) -> Runtime:
    """Return the pallets of the relay chain or of a parachain."""
    return RELAY if relay else PARACHAIN


def decoded_key(key: bytes, *, relay: bool) -> tuple[AnyItem, tuple[object, ...]] | None:
    """Return the item of a full storage key and the keys in it.

    Returns `None` if the key belongs to no item or cannot be decoded.
    """
    item = runtime_of(relay=relay).item_of(key)
    try:
        return None if item is None else (item, item.decode_keys(key))
    except (ScaleError, DefensiveFailure):
        return None
