"""Messages that carry the values from which they were made, and values that carry their encoding.

Emulated roles that talk to each other would decode what was encoded a moment before. Such a message
is bytes like any other for everybody else: for observers, for modules of WebAssembly, for callers
from outside, and after an upgrade.

A value that is sent on from one canister to the next would be encoded by each of them, and once
more where only its size is asked for. With its encoding, it is copied instead.
"""

from typing import TYPE_CHECKING, Any

from interchain_events.icrc72.ic.candid.types import Variant

if TYPE_CHECKING:
    from collections.abc import Hashable


class Message(bytes):
    """An encoded message with its values."""

    made_by: "Hashable"
    """The codec that encoded it. Only the same one may take the values."""
    values: tuple[object, ...]
    """The values as they would be decoded. They are immutable, since receivers share them."""


class EncodedVariant(Variant[Any, Any]):
    """A value of a variant type with its encoding. It equals a `Variant` without it."""

    table: bytes = b""
    """The header of a message with its type. Other types may write an equal value differently."""
    encoding: bytes = b""
    """The bytes that it takes in a message."""


def plain(data: bytes) -> bytes:
    """Return the bytes of a message without its values."""
    return data if type(data) is bytes else bytes(data)
