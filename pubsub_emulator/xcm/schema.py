"""Declarations of XCM types, whose annotated fields also define their codecs.

A field's annotation names its Python type and its SCALE codec together
(`U32 = Annotated[int, uint(32)]`). Classes that are declared with this module, and optional ones,
need no annotation.

`struct` makes a class of such fields a frozen dataclass with a codec. A Rust enum is a subclass of
`RustEnum`; `variant(n)` makes a subclass of that its variant with discriminant n. The field of a
tuple variant, which has no name in Rust, is called `inner`.

Every codec has a `Shape`, so code that walks values by type (rendering, generators of test data,
the index tables) needs no second declaration.

Input may be hostile. A reader counts how deep vectors and boxed junctions nest and how many
instructions the whole message holds, as `parity-scale-codec` and the `xcm` crate do. The limits are
`MAX_XCM_DECODE_DEPTH` and `MAX_INSTRUCTIONS_TO_DECODE`. Before it allocates anything, it refuses
input that nests deeper or announces more elements than it can hold.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum, IntEnum, auto
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    NamedTuple,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
)

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader, encode_compact
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.xcm.errors import XcmDecodeError

MAX_XCM_DECODE_DEPTH: Final = 8
"""The maximum nesting of vectors and boxed junctions.

The outermost list of instructions is level 1.
"""

MAX_INSTRUCTIONS_TO_DECODE: Final = 100
"""The maximum number of instructions in one message, including those of nested messages."""

T = TypeVar("T")
C = TypeVar("C")
E = TypeVar("E", bound=IntEnum)


class Kind(Enum):
    """The kind of value that a codec encodes."""

    UINT = auto()
    """`size` is the number of bits."""
    COMPACT = auto()
    """`size` is the number of bits."""
    BOOL = auto()
    FIXED = auto()
    """`size` is the number of bytes."""
    BYTES = auto()
    """`size` is the maximum length, or `None`."""
    NAMES = auto()
    """One byte. `type` is the `IntEnum`."""
    OPTION = auto()
    """`parts` is the value."""
    SEQUENCE = auto()
    """`size` is the maximum count, or `None`; `parts` is the element."""
    JUNCTIONS = auto()
    """`size` is the maximum count; `parts` is the element."""
    TUPLE = auto()
    """`parts` are the members."""
    STRUCT = auto()
    """`type` is the class."""
    VARIANTS = auto()
    """`type` is the base class of the variants."""


class Shape(NamedTuple):
    """The type of a codec's values, for code that walks values by type."""

    kind: Kind
    size: int | None = None
    parts: "tuple[AnyXcm, ...]" = ()
    type: Any = None


class XcmReader(Reader):
    """A `Reader` that counts its nesting levels and the instructions that it has read."""

    __slots__ = ("depth", "instructions")

    def __init__(self, data: bytes, pos: int = 0) -> None:
        self.data = data
        self.pos = pos
        self.depth = 0
        self.instructions = 0

    def descend(self) -> None:
        """Enter a vector or a boxed array.

        Raises `XcmDecodeError` at the limit.
        """
        if self.depth == MAX_XCM_DECODE_DEPTH:
            raise XcmDecodeError(f"nested deeper than {MAX_XCM_DECODE_DEPTH} levels", self.pos)
        self.depth += 1

    def ascend(self) -> None:
        """Leave the vector or array that `descend` entered."""
        self.depth -= 1

    def count(self, limit: int | None, name: str) -> int:
        """Take a vector's length.

        Raises `XcmDecodeError` if it exceeds `limit` or the elements that the input can hold, and
        `ScaleError` if it is not a compact u32.
        """
        start = self.pos
        count = self.compact(32)
        if limit is not None and count > limit:
            raise XcmDecodeError(f"{name} holds at most {limit} elements, not {count}", start)
        if count > self.remaining():
            raise XcmDecodeError(
                f"{name} announces {count} elements, {self.remaining()} bytes are left", start
            )
        return count


def as_xcm_reader(reader: Reader) -> XcmReader:
    """Return `reader`, which must be an `XcmReader`.

    Only a bounded reader may read types that nest.
    """
    if isinstance(reader, XcmReader):
        return reader
    raise DefensiveFailure("an XCM type was read without an XcmReader")


class XcmCodec(Codec[T]):
    """A `Codec` that knows its shape and reads within the limits."""

    __slots__ = ("shape",)

    def __init__(
        self, name: str, encode: Callable[[T], bytes], read: Callable[[Reader], T], shape: Shape
    ) -> None:
        super().__init__(name, encode, read)
        self.shape = shape

    def decode(self, data: bytes) -> T:
        """Return the value that all of `data` encodes.

        Raises `XcmDecodeError`.
        """
        reader = XcmReader(data)
        return read_to_end(reader, self.read)


AnyXcm = XcmCodec[Any]
"""A codec whose type of values is not known statically."""


def read_to_end(reader: XcmReader, read: Callable[[Reader], T]) -> T:
    """Return the value that `read` reads, which must use up the input.

    Raises `XcmDecodeError` with the offset.
    """
    try:
        value = read(reader)
        reader.end()
    except XcmDecodeError:
        raise
    except ScaleError as error:
        raise XcmDecodeError(str(error), reader.pos) from error
    return value


def _leaf(codec: Codec[T], shape: Shape) -> XcmCodec[T]:
    return XcmCodec(codec.name, codec.encode, codec.read, shape)


_UINTS = {8: scale.u8, 16: scale.u16, 32: scale.u32, 64: scale.u64, 128: scale.u128}


def uint(bits: int) -> XcmCodec[int]:
    """Return the codec of `u8` to `u128`, little-endian."""
    return _leaf(_UINTS[bits], Shape(Kind.UINT, bits))


def compact(bits: int) -> XcmCodec[int]:
    """Return the codec of `Compact<u{bits}>`."""
    return _leaf(scale.compact_of(bits), Shape(Kind.COMPACT, bits))


def fixed(size: int) -> XcmCodec[bytes]:
    """Return the codec of `[u8; size]`."""
    return _leaf(scale.fixed(size), Shape(Kind.FIXED, size))


def byte_vec(limit: int | None = None) -> XcmCodec[bytes]:
    """Return the codec of `Vec<u8>`, or of `BoundedVec<u8, limit>`."""
    name = "Vec<u8>" if limit is None else f"BoundedVec<u8, {limit}>"

    def encode(value: bytes) -> bytes:
        if limit is not None and len(value) > limit:
            raise ScaleError(f"{name} holds {len(value)} bytes")
        return encode_compact(len(value)) + value

    def read(reader: Reader) -> bytes:
        start = reader.pos
        value = reader.bytes_()
        if limit is not None and len(value) > limit:
            raise XcmDecodeError(f"{name} holds {len(value)} bytes", start)
        return value

    return XcmCodec(name, encode, read, Shape(Kind.BYTES, limit))


def names(enum: type[E]) -> XcmCodec[E]:
    """Return the codec of a Rust enum without data: one byte."""

    def read(reader: Reader) -> E:
        index = reader.u8()
        try:
            return enum(index)
        except ValueError:
            raise XcmDecodeError(
                f"{enum.__name__} has no variant {index}", reader.pos - 1
            ) from None

    return XcmCodec(
        enum.__name__, lambda value: bytes((enum(value),)), read, Shape(Kind.NAMES, type=enum)
    )


def optional(item: XcmCodec[T]) -> XcmCodec[T | None]:
    """Return the codec of `Option<T>`."""
    return _leaf(scale.option(item), Shape(Kind.OPTION, parts=(item,)))


def sequence(item: XcmCodec[T], limit: int | None = None) -> XcmCodec[tuple[T, ...]]:
    """Return the codec of `Vec<T>`, or of `BoundedVec<T, limit>`.

    Its elements are one nesting level deeper.
    """
    name = f"Vec<{item.name}>"

    def encode(values: Sequence[T]) -> bytes:
        if limit is not None and len(values) > limit:
            raise ScaleError(f"{name} holds at most {limit} elements, not {len(values)}")
        return encode_compact(len(values)) + b"".join([item.encode(value) for value in values])

    def read(plain: Reader) -> tuple[T, ...]:
        reader = as_xcm_reader(plain)
        count = reader.count(limit, name)
        reader.descend()
        values = tuple([item.read(reader) for _ in range(count)])
        reader.ascend()
        return values

    return XcmCodec(name, encode, read, Shape(Kind.SEQUENCE, limit, (item,)))


def pair(first: XcmCodec[T], second: XcmCodec[C]) -> XcmCodec[tuple[T, C]]:
    """Return the codec of a tuple of two."""
    return _leaf(scale.pair(first, second), Shape(Kind.TUPLE, parts=(first, second)))


SKIP: Final = object()
"""Mark of a field that is not encoded, as `#[codec(skip)]`; the field must have a default."""

Fields = tuple[tuple[str, AnyXcm], ...]
Unnamed = Mapping[int, tuple[str, Mapping[str, object]]]

BOOL: Final = _leaf(scale.boolean, Shape(Kind.BOOL))


def _codec_of(annotation: object) -> AnyXcm | None:
    """Return the codec of a field, or `None` if the field is skipped."""
    if get_origin(annotation) is Annotated:
        mark = get_args(annotation)[1]
        return None if mark is SKIP else cast("AnyXcm", mark)
    if annotation is bool:
        return BOOL
    if isinstance(annotation, type) and hasattr(annotation, "codec"):
        return cast("AnyXcm", annotation.codec)
    members = [member for member in get_args(annotation) if member is not type(None)]
    inner = _codec_of(members[0]) if len(members) == 1 else None
    if inner is None:
        raise DefensiveFailure(f"no codec is known for {annotation}")
    return optional(inner)


def _declare(cls: type[T]) -> tuple[type[T], Fields]:
    codecs = ((name, _codec_of(hint)) for name, hint in cls.__annotations__.items())
    fields: Fields = tuple((name, codec) for name, codec in codecs if codec is not None)
    declared: Any = value_type(cls)
    declared.FIELDS = fields
    return cast("type[T]", declared), fields


def _encode_fields(value: object, fields: Fields) -> Iterable[bytes]:
    return [codec.encode(getattr(value, name)) for name, codec in fields]


def _checked(name: str, expected: type, encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def encode_checked(value: object) -> bytes:
        if not isinstance(value, expected):
            raise ScaleError(f"{name} wanted, not {type(value).__name__}")
        return encode(value)

    return encode_checked


class Struct:
    """A Rust struct: its fields, one after the other."""

    __slots__ = ()
    FIELDS: ClassVar[Fields]
    codec: ClassVar[AnyXcm]


class RustEnum:
    """A Rust enum: a byte of discriminant, then fields.

    `unnamed` declares the variants that no code mentions by name: `{index: (name, fields)}`.
    """

    __slots__ = ()
    INDEX: ClassVar[int]
    FIELDS: ClassVar[Fields]
    VARIANTS: ClassVar[dict[int, type[Any]]]
    codec: ClassVar[AnyXcm]

    def __init_subclass__(cls, unnamed: Unnamed | None = None) -> None:
        if RustEnum in cls.__bases__:
            cls.VARIANTS = {}
            cls.codec = _variants_codec(cls)
            declare(cls, unnamed or {})


def _variants_codec(base: type[RustEnum]) -> AnyXcm:
    variants = base.VARIANTS
    name = base.__name__

    def encode(value: RustEnum) -> bytes:
        return bytes((value.INDEX,)) + b"".join(_encode_fields(value, value.FIELDS))

    def read(reader: Reader) -> Any:
        index = reader.u8()
        kind = variants.get(index)
        if kind is None:
            raise XcmDecodeError(f"{name} has no variant {index}", reader.pos - 1)
        return kind(*[codec.read(reader) for _, codec in kind.FIELDS])

    return XcmCodec(name, _checked(name, base, encode), read, Shape(Kind.VARIANTS, type=base))


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def struct(cls: type[T]) -> type[T]:
    """Declare a Rust struct: a frozen slotted dataclass whose fields are encoded in order."""
    declared: Any
    declared, fields = _declare(cls)

    def encode(value: object) -> bytes:
        return b"".join(_encode_fields(value, fields))

    def read(reader: Reader) -> Any:
        return declared(*[codec.read(reader) for _, codec in fields])

    declared.codec = XcmCodec(
        cls.__name__,
        _checked(cls.__name__, declared, encode),
        read,
        Shape(Kind.STRUCT, type=declared),
    )
    return cast("type[T]", declared)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def variant(index: int) -> Callable[[type[T]], type[T]]:
    """Declare the class as the variant with this discriminant of its base enum."""

    def declare(cls: type[T]) -> type[T]:
        declared: Any
        declared, _ = _declare(cls)
        if index in declared.VARIANTS:
            raise DefensiveFailure(
                f"{cls.__name__}: discriminant {index} is taken by"
                f" {declared.VARIANTS[index].__name__}"
            )
        declared.INDEX = index
        declared.VARIANTS[index] = declared
        return cast("type[T]", declared)

    return declare


def declare(base: type[RustEnum], variants: Unnamed) -> None:
    """Make the classes of those variants of `base` that no code refers to by name.

    Call this after `base` has its codec, because the fields may contain `base`.
    """
    for index, (name, fields) in variants.items():
        members = {"__module__": base.__module__, "__annotations__": dict(fields)}
        variant(index)(type(name, (base,), members))


U8 = Annotated[int, uint(8)]
U32 = Annotated[int, uint(32)]
U64 = Annotated[int, uint(64)]
CompactU32 = Annotated[int, compact(32)]
CompactU64 = Annotated[int, compact(64)]
CompactU128 = Annotated[int, compact(128)]
Bytes4 = Annotated[bytes, fixed(4)]
Bytes8 = Annotated[bytes, fixed(8)]
Bytes16 = Annotated[bytes, fixed(16)]
Bytes20 = Annotated[bytes, fixed(20)]
Bytes32 = Annotated[bytes, fixed(32)]
ByteVec = Annotated[bytes, byte_vec()]
