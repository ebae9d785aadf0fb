"""Encodes plain values by the types of metadata into SCALE: what `decode` gives, it takes."""

from collections.abc import Mapping, Sequence
from typing import Final

from pubsub_emulator.client import metadata as kinds
from pubsub_emulator.client.errors import ClientError
from pubsub_emulator.client.metadata import Metadata
from pubsub_emulator.primitives.scale import encode_compact


class Encoded(bytes):
    """Bytes that are SCALE already, of whatever type is asked for."""


_BYTE: Final = kinds.Primitive("u8")


def encode_call(metadata: Metadata, pallet: str, name: str, arguments: Mapping[str, object]) -> Encoded:
    """A call with its arguments by name. Raises `ClientError` if the chain has no such call or argument."""
    found = metadata.pallets.get(pallet)
    calls = None if found is None or found.calls is None else metadata.types.get(found.calls)
    if found is None or not isinstance(calls, kinds.Enum):
        raise ClientError(f"the chain has no calls of {pallet}")
    for index, variant in calls.variants.items():
        if variant.name == name:
            if {each.name for each in variant.fields} != set(arguments):
                said = ", ".join(str(each.name) for each in variant.fields)
                raise ClientError(f"{pallet}.{name} takes {said}, and not {', '.join(arguments)}")
            parts = (encode(metadata, each.type, arguments[str(each.name)]) for each in variant.fields)
            return Encoded(bytes((found.index, index)) + b"".join(parts))
    raise ClientError(f"the chain has no call {pallet}.{name}")


def encode(metadata: Metadata, kind: int, value: object) -> bytes:
    """The SCALE bytes of a value of type number `kind`. Raises `ClientError` for a value of another type."""
    if isinstance(value, Encoded):
        return bytes(value)
    match metadata.types.get(kind), value:
        case kinds.Composite(fields), _:
            return _fields(metadata, fields, value)
        case kinds.Enum(variants), str() | dict():
            name, body = (value, None) if isinstance(value, str) else next(iter(value.items()))
            for index, variant in variants.items():
                if variant.name == name:
                    return bytes((index,)) + _fields(metadata, variant.fields, body)
        case kinds.Array(_, length), bytes() if len(value) == length:
            return value
        case kinds.Sequence(item), bytes() if metadata.types.get(item) == _BYTE:
            return encode_compact(len(value)) + value
        case kinds.Sequence(item), list() | tuple():
            return encode_compact(len(value)) + b"".join(encode(metadata, item, each) for each in value)
        case kinds.Tuple(items), list() | tuple() if len(items) == len(value):
            return b"".join(encode(metadata, item, each) for item, each in zip(items, value, strict=True))
        case kinds.Compact(_), int():
            return encode_compact(value)
        case kinds.Primitive(name), int() if name[0] == "u":
            return value.to_bytes(int(name[1:]) // 8, "little")
    name = "::".join(metadata.paths.get(kind, ())) or kind
    raise ClientError(f"{value!r:.80} is no value of the chain's type {name}")


def _fields(metadata: Metadata, fields: Sequence[kinds.Field], value: object) -> bytes:
    if not fields:
        return b""
    if len(fields) == 1 and not (isinstance(value, dict) and fields[0].name in value):
        return encode(metadata, fields[0].type, value)
    if isinstance(value, dict):
        return b"".join(encode(metadata, each.type, value.get(each.name)) for each in fields)
    parts = value if isinstance(value, (list, tuple)) else ()
    if len(parts) != len(fields):
        raise ClientError(f"{value!r:.80}: {len(fields)} fields are expected")
    return b"".join(encode(metadata, each.type, part) for each, part in zip(fields, parts, strict=True))
