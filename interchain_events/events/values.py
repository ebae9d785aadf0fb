"""The values of an event's fields as JSON without floats, written in exactly one way.

- Bytes and hashes are hexadecimal text in lower case, `"0x…"`.
- Integers are JSON integers of any size.
- Text is unchanged, except that text with U+0000 or a lone surrogate, which databases cannot
  store, becomes the hexadecimal text of its bytes.
- `None` is `null`.
- A variant without fields is its name. Other variants are `{name: value}` or
  `{name: {field: value}}`.
- A struct is `{field: value}`, and a tuple or list is `[value, …]`. A wrapper of one unnamed value
  is that value.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from interchain_events.events.errors import SourceError

Value: TypeAlias = "bool | int | str | list[Value] | dict[str, Value] | None"
"""A value in this form."""

_encoder = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=False, allow_nan=False
)


def canonical(value: object) -> Value:
    """Return a value in the form that this module describes.

    Raises `SourceError` if there is no such form, for example for a float.
    """
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case str():
            return _text(value)
        case bytes() | bytearray():
            return "0x" + value.hex()
        case Mapping():
            return {_text(str(name)): canonical(item) for name, item in value.items()}
        case Sequence():
            return [canonical(item) for item in value]
        case _:
            raise SourceError(f"an event field cannot be a {type(value).__name__}")


def encode_fields(fields: Mapping[str, Value]) -> str:
    """Return canonical fields as JSON, in their order."""
    return _encoder.encode(fields)


def decode_fields(body: str) -> dict[str, Value]:
    """Return the fields in a text that `encode_fields` has written."""
    fields: dict[str, Value] = json.loads(body)
    return fields


def _text(text: str) -> str:
    """Return a text, or the hexadecimal text of its bytes if databases cannot store it."""
    # Almost every text passes this quick check. Printable text has no surrogates.
    if "\x00" not in text and text.isprintable():
        return text
    raw = text.encode("utf-8", "surrogatepass")
    return "0x" + raw.hex() if is_unstorable(text) else text


def is_unstorable(text: str) -> bool:
    """Return whether a text has U+0000 or a lone surrogate."""
    return "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text)
