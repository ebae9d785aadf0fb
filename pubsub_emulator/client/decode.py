"""Decodes SCALE into plain values by the types of metadata. `encode` is the inverse.

[u8; n], Vec<u8>      bytes
integers, bool        int, bool
Compact<T>            int, and `None` for Compact<()>
str, char             str
Option<T>             the value, or `None`;  {"Some": value} if T has values that become `None`
variant               its name if it has no fields, or else {name: its fields as in a struct}
struct                {field: value};  one unnamed field becomes its value, several become a
                      list, and no fields become `None`
tuple, Vec, array     a list; the empty tuple is `None`
BTreeMap              a list of pairs, as it is encoded
BitVec                "0b" and a digit for each bit in its order

Decoding is strict, so that each value has only one encoding: an integer in a Compact fits into its
type, a char is a Unicode scalar value, and the unused bits in the last word of a BitVec are 0.
"""

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Final

from pubsub_emulator.client import metadata as kinds
from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.client.metadata import Field, Metadata
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader

MAX_DEPTH: Final = 128
"""The maximum nesting of types."""
_BITS: Final = (8, 16, 32, 64, 128, 256)
UNSIGNED: Final = {f"u{bits}": bits // 8 for bits in _BITS}
"""The sizes of the unsigned integers in bytes."""
SIGNED: Final = {f"i{bits}": bits // 8 for bits in _BITS}
"""The sizes of the signed integers in bytes."""
_WORDS: Final = ("u8", "u16", "u32", "u64")
"""The types of words in which a `BitVec` can store its bits."""
MOST_BITS: Final = 1 << 24
"""The maximum number of bits in a `BitVec`."""
FREE_VALUES: Final = 10_000
"""The number of values that may be decoded from an input of any size."""
_VALUES_A_BYTE: Final = 16
"""The number of values that each byte of the input allows in addition."""


class Walk:
    """The state of decoding by untrusted metadata.

    Types can describe any number of values that take no bytes, such as arrays of empty tuples. The
    number of values is therefore limited to 10,000, plus 16 for each byte.
    """

    __slots__ = ("left", "metadata", "reader")

    def __init__(self, metadata: Metadata, data: bytes) -> None:
        self.metadata = metadata
        self.reader = Reader(data)
        self.left = FREE_VALUES + _VALUES_A_BYTE * len(data)
        """The number of values that may still be decoded."""

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
    """Decode the next value of `walk` as type number `kind`.

    `depth` is the number of types around this one. Raises `ScaleError` or `BadAnswer`.
    """
    walk.step()
    metadata = walk.metadata
    reader = walk.reader
    if depth > MAX_DEPTH:
        raise BadAnswer(f"a type is nested deeper than {MAX_DEPTH}")
    match metadata.types.get(kind):
        case kinds.Composite(fields):
            return _fields(walk, fields, depth)
        case kinds.Enum(variants):
            return _variant(walk, kind, variants, depth)
        case kinds.Sequence(item):
            if metadata.is_byte(item):
                return reader.bytes_()
            return _items(walk, item, reader.compact(32), depth)
        case kinds.Array(item, length):
            if metadata.is_byte(item):
                return reader.take(length)
            return _items(walk, item, length, depth)
        case kinds.Tuple(items):
            return [read(walk, item, depth + 1) for item in items] if items else None
        case kinds.Primitive(name):
            return _primitive(name, reader)
        case kinds.Compact(item):
            bits = compact_bits(metadata, item)
            return reader.compact(bits) if bits else None
        case kinds.Bits(store, order):
            return _bits(reader, *bit_layout(metadata, store, order))
        case _:
            raise BadAnswer(f"metadata has no type {kind}")


def _items(walk: Walk, item: int, count: int, depth: int) -> list[object]:
    """Decode the items of a list or array.

    The count is checked first: an array of items without bytes can have any length.
    """
    if count > walk.left:
        raise BadAnswer("the types describe far more values than there are bytes")
    return [read(walk, item, depth + 1) for _ in range(count)]


def _variant(walk: Walk, kind: int, variants: Mapping[int, kinds.Variant], depth: int) -> object:
    """Decode an enum or `Option` in the form that the module describes."""
    start = walk.reader.pos
    variant = variants.get(walk.reader.u8())
    if variant is None:
        raise ScaleError(f"no variant of {walk.metadata.name_of(kind)} at offset {start}")
    inner = walk.metadata.optional(kind)
    if inner is None:
        if not variant.fields:
            return variant.name
        return {variant.name: _fields(walk, variant.fields, depth)}
    if not variant.fields:
        return None
    value = read(walk, inner, depth + 1)
    # Without the dict, `Some(None)` and `None` would both become `None`.
    return {"Some": value} if walk.metadata.may_be_none(inner) else value


def _fields(walk: Walk, fields: tuple[Field, ...], depth: int) -> object:
    """Decode the fields of a struct or variant in the form that the module describes."""
    if len(fields) == 1 and fields[0].name is None:
        return read(walk, fields[0].type, depth + 1)
    if not fields:
        return None
    if all(field.name is not None for field in fields):
        return {str(field.name): read(walk, field.type, depth + 1) for field in fields}
    return [read(walk, field.type, depth + 1) for field in fields]


def _primitive(name: str, reader: Reader) -> object:
    """Decode a value of a primitive type. Raises `ScaleError`."""
    if name in UNSIGNED:
        return reader.uint(UNSIGNED[name])
    if name in SIGNED:
        return int.from_bytes(reader.take(SIGNED[name]), "little", signed=True)
    if name == "bool":
        return reader.boolean()
    start = reader.pos
    try:
        if name == "str":
            return reader.bytes_().decode()
        character = chr(reader.uint(4))
        # `chr` accepts surrogates, which are not characters. `encode` refuses them.
        character.encode()
    except (UnicodeError, ValueError, OverflowError):
        raise ScaleError(f"no {name} at offset {start}") from None
    return character


def compact_bits(metadata: Metadata, kind: int) -> int:
    """Return the number of bits of the integer in `Compact<T>`, or 0 for `Compact<()>`.

    T is an unsigned integer, or one in any number of structs or tuples with a single field. Raises
    `BadAnswer` for other types.
    """
    visited: set[int] = set()
    inner = kind
    while inner not in visited:
        visited.add(inner)
        match metadata.types.get(inner):
            case kinds.Composite((Field(_, wrapped),)) | kinds.Tuple((wrapped,)):
                inner = wrapped
            case kinds.Primitive(name) if name in UNSIGNED:
                return 8 * UNSIGNED[name]
            case kinds.Tuple(()) | kinds.Composite(()):
                return 0
            case _:
                break
    raise BadAnswer(f"the metadata has a Compact<{metadata.name_of(kind)}>")


def bit_layout(metadata: Metadata, store: int, order: int) -> tuple[int, bool]:
    """Return the size of a `BitVec`'s words in bytes, and whether their first bit is the highest.

    `store` and `order` are its two types. Raises `BadAnswer` unless the words are u8 to u64 and the
    order is `Lsb0` or `Msb0`.
    """
    word = metadata.types.get(store)
    name = metadata.paths.get(order, ())[-1:]
    if not isinstance(word, kinds.Primitive) or word.name not in _WORDS:
        raise BadAnswer(f"the metadata has a BitVec of {metadata.name_of(store)}")
    if name not in {("Lsb0",), ("Msb0",)}:
        raise BadAnswer(f"the metadata has a BitVec in the order {metadata.name_of(order)}")
    return UNSIGNED[word.name], name == ("Msb0",)


def _bits(reader: Reader, size: int, highest_first: bool) -> str:
    """Decode a `BitVec` with the layout of `bit_layout` as "0b" and its digits."""
    start = reader.pos
    count = reader.compact(32)
    if count > MOST_BITS:
        raise ScaleError(f"a BitVec of {count} bits")
    digits: list[str] = []
    for _ in range(-(-count // (8 * size))):
        word = f"{reader.uint(size):0{8 * size}b}"
        digits.append(word if highest_first else word[::-1])
    text = "".join(digits)
    if "1" in text[count:]:
        raise ScaleError(f"the BitVec at offset {start} has bits after its last one")
    return "0b" + text[:count]


def __getattr__(name: str) -> object:
    """Return a name that was moved to `client.encode`. Its old place works in this release only."""
    if name not in {"Encoded", "encode", "encode_call"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__}.{name} is now pubsub_emulator.client.encode.{name}"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    # `encode` imports this module, so it cannot be imported above.
    moved: object = getattr(import_module("pubsub_emulator.client.encode"), name)
    return moved
