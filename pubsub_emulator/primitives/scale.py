"""The SCALE codec: functions for the types of hot paths, combinators for all others.

Decoding is strict. `decode` refuses trailing bytes, compact integers that are not minimal, booleans
other than 0 and 1, and lengths that the remaining input cannot hold. So hostile input cannot make
it allocate more bytes than were sent.

    Compact<u*>   bits 0..1 of the first byte choose the form
                  00  six bits             value < 2**6
                  01  fourteen bits, LE    value < 2**14
                  10  thirty bits, LE      value < 2**30
                  11  (byte >> 2) + 4 bytes follow, LE
"""

from collections.abc import Callable, Iterable
from copy import copy
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar, cast

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.type_info import TypeInfo
from pubsub_emulator.primitives.words import counted

T = TypeVar("T")
S = TypeVar("S")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


MOST_KEPT_BYTES = 16_384
"""The length of the longest encoding that `Codec.kept` caches, in bytes.

It has room for the hashes of 455 publishers.
"""


def encode_compact(value: int) -> bytes:
    """Encode a non-negative integer below 2**536 as `Compact`.

    Raises `ScaleError` for other integers.
    """
    if value < 0:
        raise ScaleError(f"a compact integer cannot be negative: {value}")
    if value < 0x40:
        return bytes((value << 2,))
    if value < 0x4000:
        return (value << 2 | 1).to_bytes(2, "little")
    if value < 0x4000_0000:
        return (value << 2 | 2).to_bytes(4, "little")
    size = (value.bit_length() + 7) // 8
    if size > 67:
        raise ScaleError(f"a compact integer has at most 536 bits, not {value.bit_length()}")
    return bytes(((size - 4) << 2 | 3,)) + value.to_bytes(size, "little")


def compact_len(value: int) -> int:
    """Return the number of bytes that `encode_compact(value)` has."""
    if value < 0x40:
        return 1
    if value < 0x4000:
        return 2
    if value < 0x4000_0000:
        return 4
    return 1 + (value.bit_length() + 7) // 8


def encode_bytes(value: bytes) -> bytes:
    """Encode bytes as `Vec<u8>`: their compact length, then the bytes."""
    return encode_compact(len(value)) + value


class Reader:
    """A cursor over bytes.

    Each method takes one value or raises `ScaleError` with the offset.
    """

    __slots__ = ("data", "pos")

    def __init__(self, data: bytes, pos: int = 0) -> None:
        self.data = data
        self.pos = pos

    def remaining(self) -> int:
        """Return the number of bytes that are not taken yet."""
        return len(self.data) - self.pos

    def take(self, count: int) -> bytes:
        """Take the next `count` bytes."""
        end = self.pos + count
        if count < 0 or end > len(self.data):
            raise ScaleError(
                f"{counted(count, 'byte')} wanted at offset {self.pos}, {self.remaining()} left"
            )
        taken = self.data[self.pos : end]
        self.pos = end
        return taken

    def uint(self, size: int) -> int:
        """Take a little-endian unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def u8(self) -> int:
        """Take one byte."""
        pos = self.pos
        if pos >= len(self.data):
            raise ScaleError(f"1 byte wanted at offset {pos}, 0 left")
        self.pos = pos + 1
        return self.data[pos]

    def boolean(self) -> bool:
        """Take a boolean: one byte, 0 or 1."""
        value = self.u8()
        if value > 1:
            raise ScaleError(f"a bool is 0 or 1, not {value}, at offset {self.pos - 1}")
        return value == 1

    def compact(self, bits: int = 536) -> int:
        """Take a compact integer, which must be in its shortest form and fit into `bits` bits."""
        start = self.pos
        first = self.u8()
        mode = first & 3
        if mode == 0:
            if bits >= 6:
                return first >> 2
            value = first >> 2
            minimum = 0
        elif mode == 1:
            value = (self.u8() << 8 | first) >> 2
            minimum = 0x40
        elif mode == 2:
            value = (self.uint(3) << 8 | first) >> 2
            minimum = 0x4000
        else:
            size = (first >> 2) + 4
            value = self.uint(size)
            minimum = max(0x4000_0000, 1 << 8 * (size - 1))
        if value < minimum:
            raise ScaleError(
                f"compact integer {value} is not in its shortest form at offset {start}"
            )
        if value.bit_length() > bits:
            raise ScaleError(f"compact integer {value} exceeds {bits} bits at offset {start}")
        return value

    def length(self, least: int = 1) -> int:
        """Take a compact element count.

        Refuse it if the input cannot hold that many elements of `least` bytes each.
        """
        start = self.pos
        count = self.compact(32)
        if count * least > len(self.data) - self.pos:
            raise ScaleError(
                f"length {count} at offset {start} exceeds the"
                f" {counted(self.remaining(), 'byte')} left"
            )
        return count

    def bytes_(self) -> bytes:
        """Take a `Vec<u8>`."""
        return self.take(self.length())

    def end(self) -> None:
        """Raise `ScaleError` unless every byte was taken."""
        if self.pos != len(self.data):
            raise ScaleError(f"{counted(self.remaining(), 'trailing byte')} at offset {self.pos}")


class Codec(Generic[T]):
    """The codec of one type: a function that writes it and one that reads it.

    `info` describes the type in metadata. It is `None` for encodings that are not SCALE.
    """

    __slots__ = ("encode", "info", "name", "read")

    def __init__(
        self,
        name: str,
        encode: Callable[[T], bytes],
        read: Callable[[Reader], T],
        info: TypeInfo | None = None,
    ) -> None:
        self.name = name
        self.encode = encode
        self.read = read
        self.info = info

    def decode(self, data: bytes) -> T:
        """Return the value that all of `data` encodes.

        Raises `ScaleError`.
        """
        reader = Reader(data)
        value = self.read(reader)
        reader.end()
        return value

    def named(self, name: str, kind: Callable[[T], S], info: TypeInfo | None = None) -> "Codec[S]":
        """Return this codec for a NewType of `T`.

        Metadata describes the type by `info` if it is given.
        """
        del kind
        named: Any = copy(self)
        named.name = name
        if info is not None:
            named.info = info
        return cast("Codec[S]", named)

    def described(self, info: TypeInfo) -> "Codec[T]":
        """Return this codec with another description of the same bytes."""
        described = copy(self)
        described.info = info
        return described

    def kept(self, most: int = 64) -> "Codec[T]":
        """Return a codec whose `decode` caches the last `most` values by their bytes.

        Values of more than `MOST_KEPT_BYTES` are decoded anew each time. Callers share these
        values, so they must not be changed.
        """
        return _KeptCodec(self, most)

    def map(self, name: str, into: Callable[[T], S], back: Callable[[S], T]) -> "Codec[S]":
        """Return a codec of the same bytes for another Python type."""
        encode = self.encode
        read = self.read
        return Codec(
            name, lambda value: encode(back(value)), lambda reader: into(read(reader)), self.info
        )

    def __repr__(self) -> str:
        return f"Codec({self.name})"


AnyCodec: TypeAlias = Codec[Any]
"""A codec whose type of values is not known statically."""


class _KeptCodec(Codec[T]):
    """A codec that caches decoded values."""

    __slots__ = ("_decode",)

    def __init__(self, codec: Codec[T], most: int) -> None:
        super().__init__(codec.name, codec.encode, codec.read, codec.info)
        self._decode = lru_cache(most)(codec.decode)

    def decode(self, data: bytes) -> T:
        if len(data) > MOST_KEPT_BYTES:
            return super().decode(data)
        return self._decode(data)


class UintCodec(Codec[int]):
    """`u{8 * size}`, little-endian.

    `decode` avoids a `Reader`, because many storage values are a single counter.
    """

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        name = f"u{size * 8}"

        def encode(value: int) -> bytes:
            try:
                return value.to_bytes(size, "little")
            except OverflowError:
                raise ScaleError(f"{value} does not fit into {name}") from None

        def read(reader: Reader) -> int:
            return int.from_bytes(reader.take(size), "little")

        super().__init__(name, encode, read, type_info.Primitive(name))
        self.size = size

    def decode(self, data: bytes) -> int:
        """Return the integer that all of `data` encodes.

        Raises `ScaleError`.
        """
        if len(data) == self.size:
            return int.from_bytes(data, "little")
        # This raises the error that names the offset.
        return super().decode(data)


u8: Codec[int] = UintCodec(1)
u16: Codec[int] = UintCodec(2)
u32: Codec[int] = UintCodec(4)
u64: Codec[int] = UintCodec(8)
u128: Codec[int] = UintCodec(16)
boolean: Codec[bool] = Codec(
    "bool", lambda value: b"\x01" if value else b"\x00", Reader.boolean, type_info.BOOL
)
compact: Codec[int] = Codec("Compact", encode_compact, Reader.compact)
bytes_: Codec[bytes] = Codec("Vec<u8>", encode_bytes, Reader.bytes_, type_info.BYTES)
unit: Codec[None] = Codec("()", lambda _value: b"", lambda _reader: None, type_info.UNIT)


def _described(*codecs: AnyCodec) -> list[TypeInfo] | None:
    """Return the descriptions of all `codecs`, or `None` if one of them has none."""
    infos = [codec.info for codec in codecs if codec.info is not None]
    return infos if len(infos) == len(codecs) else None


def compact_of(bits: int) -> Codec[int]:
    """Return the codec of `Compact<u{bits}>`.

    Encoding and reading refuse larger values.
    """

    def encode(value: int) -> bytes:
        if value.bit_length() > bits:
            raise ScaleError(f"{value} does not fit into Compact<u{bits}>")
        return encode_compact(value)

    info = type_info.CompactOf(type_info.Primitive(f"u{bits}"))
    return Codec(f"Compact<u{bits}>", encode, lambda reader: reader.compact(bits), info)


class _FixedCodec(Codec[bytes]):
    """`[u8; size]`, whose `decode` avoids a `Reader`, because many storage values are a hash."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        def encode(value: bytes) -> bytes:
            if len(value) != size:
                raise ScaleError(f"{size} bytes wanted, not {len(value)}")
            return value

        info = type_info.ArrayOf(size, type_info.U8)
        super().__init__(f"[u8; {size}]", encode, lambda reader: reader.take(size), info)
        self.size = size

    def decode(self, data: bytes) -> bytes:
        if len(data) == self.size:
            return data
        # This raises the error that names the offset.
        return super().decode(data)


def fixed(size: int) -> Codec[bytes]:
    """Return the codec of `[u8; size]`, without a length prefix."""
    return _FixedCodec(size)


def vec(item: Codec[T], limit: int | None = None) -> Codec[list[T]]:
    """Return the codec of `Vec<T>`, or of `BoundedVec<T, limit>`."""

    def encode(values: Iterable[T]) -> bytes:
        parts = [item.encode(value) for value in values]
        if limit is not None and len(parts) > limit:
            raise ScaleError(f"at most {limit} elements of {item.name}, not {len(parts)}")
        return encode_compact(len(parts)) + b"".join(parts)

    def read(reader: Reader) -> list[T]:
        start = reader.pos
        count = reader.length(0 if item.name == "()" else 1)
        if limit is not None and count > limit:
            raise ScaleError(
                f"at most {limit} elements of {item.name}, not {count}, at offset {start}"
            )
        return [item.read(reader) for _ in range(count)]

    info = None if item.info is None else type_info.SequenceOf(item.info)
    return Codec(f"Vec<{item.name}>", encode, read, info)


def option(item: Codec[T]) -> Codec[T | None]:
    """Return the codec of `Option<T>`: 0x00, or 0x01 and the value."""

    def encode(value: T | None) -> bytes:
        return b"\x00" if value is None else b"\x01" + item.encode(value)

    def read(reader: Reader) -> T | None:
        return item.read(reader) if reader.boolean() else None

    return Codec(
        f"Option<{item.name}>",
        encode,
        read,
        None if item.info is None else type_info.option(item.info),
    )


def pair(first: Codec[A], second: Codec[B]) -> Codec[tuple[A, B]]:
    """Return the codec of a tuple of two."""
    infos = _described(first, second)
    return Codec(
        f"({first.name}, {second.name})",
        lambda value: first.encode(value[0]) + second.encode(value[1]),
        lambda reader: (first.read(reader), second.read(reader)),
        None if infos is None else type_info.TupleOf(tuple(infos)),
    )


def triple(first: Codec[A], second: Codec[B], third: Codec[C]) -> Codec[tuple[A, B, C]]:
    """Return the codec of a tuple of three."""
    infos = _described(first, second, third)
    return Codec(
        f"({first.name}, {second.name}, {third.name})",
        lambda value: first.encode(value[0]) + second.encode(value[1]) + third.encode(value[2]),
        lambda reader: (first.read(reader), second.read(reader), third.read(reader)),
        None if infos is None else type_info.TupleOf(tuple(infos)),
    )


def sorted_map(key: Codec[A], value: Codec[B]) -> Codec[dict[A, B]]:
    """Return the codec of `BTreeMap<K, V>`, whose keys must ascend.

    Python must order the keys as Rust does. This holds for integers and bytes.
    """

    def encode(entries: dict[A, B]) -> bytes:
        ordered = sorted(entries.items(), key=lambda entry: entry[0])  # type: ignore[arg-type,return-value]  # A is ordered, see above
        return encode_compact(len(ordered)) + b"".join(
            key.encode(k) + value.encode(v) for k, v in ordered
        )

    read_key = key.read
    read_value = value.read

    def read(reader: Reader) -> dict[A, B]:
        decoded: dict[A, B] = {}
        previous: A | None = None
        for _ in range(reader.length()):
            start = reader.pos
            k = read_key(reader)
            if previous is not None and not previous < k:  # type: ignore[operator]  # A is ordered, see above
                raise ScaleError(f"map keys do not ascend at offset {start}")
            decoded[k] = read_value(reader)
            previous = k
        return decoded

    infos = _described(key, value)
    info = None if infos is None else type_info.sorted_map(*infos)
    return Codec(f"BTreeMap<{key.name}, {value.name}>", encode, read, info)
