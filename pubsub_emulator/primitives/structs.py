"""SCALE structs: the fields of a dataclass, one after the other."""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from struct import Struct, error
from typing import Final, TypeAlias, TypeVar

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.scale import AnyCodec, Codec, Reader, UintCodec
from pubsub_emulator.primitives.type_info import Composite, Field, Parameter, path

T = TypeVar("T")

_Functions: TypeAlias = tuple[Callable[[T], bytes], Callable[[Reader], T]]
"""The functions that encode and read a value."""
_FORMATS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The letters for unsigned integers of so many bytes in a format of the module `struct`."""


def struct(
    cls: Callable[..., T], *codecs: AnyCodec, rust: str = "", params: tuple[Parameter, ...] = ()
) -> Codec[T]:
    """Return the codec of a dataclass, given the codecs of its fields in order.

    `rust` and `params` are the path and the parameters of the type in metadata. Raises
    `DefensiveFailure` if the numbers of fields and codecs differ.
    """
    names = tuple(field.name for field in fields(cls))  # type: ignore[arg-type]  # a dataclass, as the name says
    if len(names) != len(codecs):
        raise DefensiveFailure(f"{len(names)} fields and {len(codecs)} codecs")
    pairs = tuple(zip(names, codecs, strict=True))

    def encode(value: T) -> bytes:
        return b"".join([codec.encode(getattr(value, name)) for name, codec in pairs])

    def read(reader: Reader) -> T:
        return cls(*[codec.read(reader) for codec in codecs])

    layout = _layout(codecs)
    functions: _Functions[T] = (encode, read)
    if layout is not None:
        functions = _of_integers(cls, names, layout, encode=encode, read=read)
    name = getattr(cls, "__name__", "struct")
    infos = tuple(
        Field(codec.info, name.rstrip("_")) for name, codec in pairs if codec.info is not None
    )
    info = (
        Composite(path(rust or f"pubsub_runtime::{name}"), infos, params)
        if len(infos) == len(pairs)
        else None
    )
    return Codec(name, *functions, info)


def _layout(codecs: tuple[AnyCodec, ...]) -> Struct | None:
    """Return the layout of two and more integers of at most 8 bytes each, or `None`."""
    letters = [_FORMATS.get(codec.size, "") for codec in codecs if isinstance(codec, UintCodec)]
    if len(codecs) < 2 or len(letters) < len(codecs) or not all(letters):
        return None
    return Struct("<" + "".join(letters))


def _of_integers(
    cls: Callable[..., T],
    names: tuple[str, ...],
    layout: Struct,
    *,
    encode: Callable[[T], bytes],
    read: Callable[[Reader], T],
) -> _Functions[T]:
    """Return functions that encode and read all fields at once.

    Chains store many records of integers. Whatever does not fit is left to `encode` and `read`,
    which name the fault.
    """
    values = attrgetter(*names)
    size = layout.size

    def encode_at_once(value: T) -> bytes:
        try:
            return layout.pack(*values(value))
        except error:
            return encode(value)

    def read_at_once(reader: Reader) -> T:
        start = reader.pos
        end = start + size
        if end > len(reader.data):
            return read(reader)
        reader.pos = end
        return cls(*layout.unpack_from(reader.data, start))

    return encode_at_once, read_at_once
