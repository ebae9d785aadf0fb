"""Any value of a runtime in words: bytes in hex, records with their fields' names."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final

from pubsub_emulator.runtime.framework.pallet import Event

PREVIEW: Final = 32
"""The most bytes of a value in a table."""


def words(value: object, most: int | None = PREVIEW) -> str:
    """Return any value of the runtime in words.

    Bytes are in hex, at most `most` of them. Records have their fields' names.
    """
    if value is None:
        return "none"
    if isinstance(value, bytes | bytearray):
        cut = value if most is None or len(value) <= most else value[:most]
        return f"0x{cut.hex()}" + ("" if len(cut) == len(value) else f"… ({len(value):,} bytes)")
    if isinstance(value, Enum):
        return value.name if isinstance(value.value, int) else str(value.value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{words(key, most)}: {words(each, most)}" for key, each in value.items())
            + "}"
        )
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return ", ".join(
            f"{name} {words(each, most)}" for name, each in zip(value._fields, value, strict=True)
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(words(each, most) for each in value) + "]"
    if is_dataclass(value) and not isinstance(value, type):
        held = ((each.name.rstrip("_"), getattr(value, each.name)) for each in fields(value))
        inside = ", ".join(f"{name} {words(each, most)}" for name, each in held)
        name = f"{value.PALLET}.{type(value).__name__}" if isinstance(value, Event) else ""
        return f"{name}({inside})" if name else f"({inside})"
    return str(value)


def printable(value: bytes, most: int = PREVIEW) -> str:
    """Return a published value as text if it is printable, and otherwise in hex."""
    try:
        text = value.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable() and not text.startswith("0x"):
        return text if len(text) <= most else f"{text[:most]}… ({len(text):,} bytes)"
    return words(value, most) if value else "(empty)"
