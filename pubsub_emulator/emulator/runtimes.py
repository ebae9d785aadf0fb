"""The runtimes of the chains here, for inspecting states and decoding events."""

from typing import Final

from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.runtime.framework.pallet import AnyItem
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.parachain.pallets import PARACHAIN

EVERY: Final = Runtime({kind.pallet: kind for kind in (*RELAY.kinds, *PARACHAIN.kinds)}.values())
"""Relay chain and parachains together: their indices do not clash, so that one decoder reads the events of both."""


def runtime_of(*, relay: bool) -> Runtime:
    """The pallets of the relay chain, or those of a parachain."""
    return RELAY if relay else PARACHAIN


def decoded_key(key: bytes, *, relay: bool) -> tuple[AnyItem, tuple[object, ...]] | None:
    """The item and the keys of a full storage key; `None` if it is of no item or does not decode."""
    item = runtime_of(relay=relay).item_of(key)
    try:
        return None if item is None else (item, item.decode_keys(key))
    except (ScaleError, DefensiveFailure):
        return None
