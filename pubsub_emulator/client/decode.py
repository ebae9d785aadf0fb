"""Decodes SCALE into plain values by the types of metadata, and encodes such values.

[u8; n], Vec<u8>      bytes
integers, bool        int, bool
str, char             str
Option<T>             the value, or `None`
unit variant          its name;  other variants {name: value}, {name: {field: value}} or
                      {name: [value, …]}
struct                {field: value};  with one unnamed field its value;  with several a list
tuple, Vec, array     a list; the empty tuple is `None`
BTreeMap              a list of pairs, as it is encoded
BitVec                "0b" and a digit for each bit in its order
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pubsub_emulator.client import metadata as kinds
from pubsub_emulator.client.errors import BadAnswer, ClientError
from pubsub_emulator.client.metadata import Field, Metadata
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader, encode_compact

MAX_DEPTH: Final = 128
"""The maximum nesting of types."""
_SIZES: Final = {f"u{bits}": bits // 8 for bits in (8, 16, 32, 64, 128, 256)}
_SIGNED: Final = {f"i{bits}": bits // 8 for bits in (8, 16, 32, 64, 128, 256)}
_BIT_LIMIT: Final = 1 << 24
"""The maximum number of bits in a `BitVec`."""
FREE_VALUES: Final = 10_000
"""The number of values that may be decoded in any case."""
_VALUES_A_BYTE: Final = 16
"""The number of further values for each byte of input."""


class Walk:
    """The state of decoding by untrusted metadata.

    Types can describe any number of values that take no bytes, such as arrays of empty tuples. The
    number of values is therefore limited: to 10,000, and 16 more for each byte.
    """

    __slots__ = ("left", "metadata", "reader")

    def __init__(self, metadata: Metadata, data: bytes) -> None:
        self.metadata = metadata
        self.reader = Reader(data)
        self.left = FREE_VALUES + _VALUES_A_BYTE * len(data)

    def step(self) -> None:
        """Count one more value. Raises `BadAnswer` if there are too many."""
        self.left -= 1
        if self.left < 0:
            raise BadAnswer("the types describe far more values than there are bytes")


def decode(metadata: Metadata, kind: int, data: bytes) -> object:
    """Decode a value of type number `kind` from all bytes of `data`.

    Raises `ScaleError` or `BadAnswer`.
    """
    walk = Walk(metadata, data)
    value = read(walk, kind)
    walk.reader.end()
    return value


def read(walk: Walk, kind: int, depth: int = 0) -> object:
    """Decode the next value. Raises `ScaleError` or `BadAnswer`."""
    walk.step()
    metadata, reader = walk.metadata, walk.reader
    if depth > MAX_DEPTH:
        raise BadAnswer(f"a type is nested deeper than {MAX_DEPTH}")
    match metadata.types.get(kind):
        case kinds.Composite(fields):
            return _fields(walk, fields, depth)
        case kinds.Enum(variants):
            at = reader.pos
            variant = variants.get(reader.u8())
            if variant is None:
                raise ScaleError(f"no variant of {'::'.join(metadata.paths[kind])} at offset {at}")
            if metadata.paths[kind] == ("Option",):
                return None if not variant.fields else read(walk, variant.fields[0].type, depth + 1)
            return (
                {variant.name: _fields(walk, variant.fields, depth)}
                if variant.fields
                else variant.name
            )
        case kinds.Sequence(item):
            if _is_byte(metadata, item):
                return reader.bytes_()
            return [read(walk, item, depth + 1) for _ in range(reader.length())]
        case kinds.Array(item, length):
            if _is_byte(metadata, item):
                return reader.take(length)
            return [read(walk, item, depth + 1) for _ in range(length)]
        case kinds.Tuple(items):
            return [read(walk, item, depth + 1) for item in items] if items else None
        case kinds.Primitive(name):
            return _primitive(name, reader)
        case kinds.Compact(item):
            return None if metadata.types.get(item) == kinds.Tuple(()) else reader.compact()
        case kinds.Bits(store, order):
            return _bits(metadata, store, order, reader)
        case _:
            raise BadAnswer(f"metadata has no type {kind}")


def _fields(walk: Walk, fields: tuple[Field, ...], depth: int) -> object:
    """Decode the fields of a struct or variant in the form that the module describes."""
    if len(fields) == 1 and fields[0].name is None:
        return read(walk, fields[0].type, depth + 1)
    if fields and all(each.name is not None for each in fields):
        return {str(each.name): read(walk, each.type, depth + 1) for each in fields}
    return [read(walk, each.type, depth + 1) for each in fields] if fields else None


def _primitive(name: str, reader: Reader) -> object:
    """Decode a value of a primitive type. Raises `ScaleError`."""
    if name in _SIZES:
        return reader.uint(_SIZES[name])
    if name in _SIGNED:
        return int.from_bytes(reader.take(_SIGNED[name]), "little", signed=True)
    if name == "bool":
        return reader.boolean()
    at = reader.pos
    try:
        return reader.bytes_().decode() if name == "str" else chr(reader.uint(4))
    except (UnicodeDecodeError, ValueError, OverflowError):
        raise ScaleError(f"no {name} at offset {at}") from None


def _bits(metadata: Metadata, store: int, order: int, reader: Reader) -> str:
    """Decode a `BitVec`. `store` and `order` are the types of its words and its order of bits."""
    count = reader.compact(32)
    if count > _BIT_LIMIT:
        raise ScaleError(f"a BitVec of {count} bits")
    kind = metadata.types.get(store)
    size = _SIZES.get(kind.name, 1) if isinstance(kind, kinds.Primitive) else 1
    words = (f"{reader.uint(size):0{8 * size}b}" for _ in range(-(-count // (8 * size))))
    reverse = metadata.paths.get(order, ())[-1:] == ("Msb0",)
    return "0b" + "".join(word if reverse else word[::-1] for word in words)[:count]


def _is_byte(metadata: Metadata, kind: int) -> bool:
    return metadata.types.get(kind) == kinds.Primitive("u8")


# Encoding: the inverse of `decode`


class Encoded(bytes):
    """Bytes that are SCALE already. They are used as they are, for any type."""


def encode_call(
    metadata: Metadata, pallet: str, name: str, arguments: Mapping[str, object]
) -> Encoded:
    """Encode a call with its arguments by name.

    Raises `ClientError` if the chain has no such call or the arguments have other names.
    """
    found = metadata.pallets.get(pallet)
    calls = None if found is None or found.calls is None else metadata.types.get(found.calls)
    if found is None or not isinstance(calls, kinds.Enum):
        raise ClientError(f"the chain has no calls of {pallet}")
    for index, variant in calls.variants.items():
        if variant.name == name:
            if {each.name for each in variant.fields} != set(arguments):
                said = ", ".join(str(each.name) for each in variant.fields)
                raise ClientError(f"{pallet}.{name} takes {said}, and not {', '.join(arguments)}")
            parts = (
                encode(metadata, each.type, arguments[str(each.name)]) for each in variant.fields
            )
            return Encoded(bytes((found.index, index)) + b"".join(parts))
    raise ClientError(f"the chain has no call {pallet}.{name}")


def encode(metadata: Metadata, kind: int, value: object) -> bytes:
    """Encode a value of type number `kind`.

    Raises `ClientError` if the value does not have that type.
    """
    if isinstance(value, Encoded):
        return bytes(value)
    match metadata.types.get(kind), value:
        case kinds.Composite(fields), _:
            return _field_bytes(metadata, fields, value)
        case kinds.Enum(variants), str() | dict():
            name, body = (value, None) if isinstance(value, str) else next(iter(value.items()))
            for index, variant in variants.items():
                if variant.name == name:
                    return bytes((index,)) + _field_bytes(metadata, variant.fields, body)
        case kinds.Array(_, length), bytes() if len(value) == length:
            return value
        case kinds.Sequence(item), bytes() if _is_byte(metadata, item):
            return encode_compact(len(value)) + value
        case kinds.Sequence(item), list() | tuple():
            return encode_compact(len(value)) + b"".join(
                encode(metadata, item, each) for each in value
            )
        case kinds.Tuple(items), list() | tuple() if len(items) == len(value):
            return b"".join(
                encode(metadata, item, each) for item, each in zip(items, value, strict=True)
            )
        case kinds.Compact(_), int():
            return encode_compact(value)
        case kinds.Primitive(name), int() if name[0] == "u":
            return value.to_bytes(int(name[1:]) // 8, "little")
    name = "::".join(metadata.paths.get(kind, ())) or kind
    raise ClientError(f"{value!r:.80} is no value of the chain's type {name}")


def _field_bytes(metadata: Metadata, fields: Sequence[kinds.Field], value: object) -> bytes:
    """Encode the fields of a struct or variant."""
    if not fields:
        return b""
    if len(fields) == 1 and not (isinstance(value, dict) and fields[0].name in value):
        return encode(metadata, fields[0].type, value)
    if isinstance(value, dict):
        return b"".join(encode(metadata, each.type, value.get(each.name)) for each in fields)
    parts = value if isinstance(value, (list, tuple)) else ()
    if len(parts) != len(fields):
        raise ClientError(f"{value!r:.80}: {len(fields)} fields are expected")
    return b"".join(
        encode(metadata, each.type, part) for each, part in zip(fields, parts, strict=True)
    )
