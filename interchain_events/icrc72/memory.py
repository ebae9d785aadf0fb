"""Memory of states, which have many small dicts that are mostly empty."""

from collections.abc import Hashable, MutableMapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def take_out(known: MutableMapping[K, V], key: K) -> V | None:
    """Remove a key, and return its value or `None` if it was not there.

    A dict keeps its room after its last key was removed: 160 bytes or more. This gives the room
    back, for dicts of which every subscriber has one.
    """
    value = known.pop(key, None)
    if not known:
        known.clear()
    return value
