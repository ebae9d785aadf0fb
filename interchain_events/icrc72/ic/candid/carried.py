"""Messages that carry the values from which they were made.

Emulated roles that talk to each other would decode what was encoded a moment before. Such a message
is bytes like any other for everybody else: for observers, for modules of WebAssembly, for callers
from outside, and after an upgrade.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable


class Message(bytes):
    """An encoded message with its values."""

    made_by: "Hashable"
    """The codec that encoded it. Only the same one may take the values."""
    values: tuple[object, ...]
    """The values as they would be decoded. They are immutable, since receivers share them."""


def plain(data: bytes) -> bytes:
    """Return the bytes of a message without its values."""
    return data if type(data) is bytes else bytes(data)
