"""The runtimes of all chains, to inspect states and decode events."""

from functools import cache

from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.extension import attribute, extensions
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.pallet import AnyItem
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.parachain.pallets import PARACHAIN
from pubsub_emulator.runtime.relay.babe import Babe, SealedBabe


@cache
def relay_runtime() -> Runtime:
    """Return all pallets that a relay chain can have, including those of other distributions.

    `Babe` is the kind with the most storage items. Raises `BadExtension`.
    """
    added: list[type[Hooks]] = []
    for extension in extensions():
        if extension.relay_pallets:
            added += attribute(extension.relay_pallets, "PALLETS", tuple)
    own = (SealedBabe if kind is Babe else kind for kind in RELAY.kinds)
    return Runtime((*own, *added))


@cache
def every_runtime() -> Runtime:
    """Return the pallets of the relay chain and of parachains together.

    Their indices differ, so one decoder can read the events of both. Raises `BadExtension`.
    """
    kinds = {kind.pallet: kind for kind in (*relay_runtime().kinds, *PARACHAIN.kinds)}
    return Runtime(kinds.values())


def runtime_of(*, relay: bool) -> Runtime:
    """Return the pallets of the relay chain or of a parachain."""
    return relay_runtime() if relay else PARACHAIN


def decoded_key(key: bytes, *, relay: bool) -> tuple[AnyItem, tuple[object, ...]] | None:
    """Return the item of a full storage key and the keys in it.

    Returns `None` if the key does not belong to an item or cannot be decoded.
    """
    item = runtime_of(relay=relay).item_of(key)
    try:
        return None if item is None else (item, item.decode_keys(key))
    except (ScaleError, DefensiveFailure):
        return None
