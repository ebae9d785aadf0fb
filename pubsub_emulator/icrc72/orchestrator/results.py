"""Results of the orchestrator's methods."""

from typing import Any

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.messages import GenericError


def ok(value: Any) -> Variant:
    """A result that is Ok."""
    return Variant("Ok", value)


def err(tag: str, value: Any = None) -> Variant:
    """A result that is an error."""
    return Variant("Err", Variant(tag, value))


def generic(code: int) -> Variant:
    """A result with a code of `keys.CODES`."""
    return err("GenericError", GenericError(code, keys.CODES[code]))


def too_many(most: int) -> Variant:
    """The last result of a batch of more than `most` items (IC-30)."""
    return err("GenericBatchError", f"at most {most} items are answered")
