"""Values of an event's fields: JSON without floats, written in exactly one way.

bytes and hashes   "0x…", lower case
integers           JSON integers of any size
text               as it is; text with U+0000 or a lone surrogate as the hex of its bytes, since no database takes it
`None`             null
unit variant       its name;  other variants {name: value} or {name: {field: value}}
struct             {field: value};  tuple, list  [value, …];  a wrapper of one unnamed value is that value
"""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pubsub_emulator.events.errors import SourceError

Value: TypeAlias = "bool | int | str | list[Value] | dict[str, Value] | None"

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=False, allow_nan=False)


def canonical(value: object) -> Value:
    """`value` in the form of the module's table. Raises `SourceError` for what has none, a float for instance."""
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
            return {_text(str(name)): canonical(each) for name, each in value.items()}
        case Sequence():
            return [canonical(each) for each in value]
        case _:
            raise SourceError(f"an event field cannot be a {type(value).__name__}")


def encode_fields(fields: Mapping[str, Value]) -> str:
    """The one text of canonical fields, in their order."""
    return _encoder.encode(fields)


def decode_fields(body: str) -> dict[str, Value]:
    """The inverse of `encode_fields`."""
    fields: dict[str, Value] = json.loads(body)
    return fields


def _text(text: str) -> str:
    if "\x00" not in text and text.isprintable():
        return text
    raw = text.encode("utf-8", "surrogatepass")
    return "0x" + raw.hex() if is_unstorable(text) else text


def is_unstorable(text: str) -> bool:
    """Whether a text has U+0000 or a lone surrogate."""
    return "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text)
