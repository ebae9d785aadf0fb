"""SCALE structs: the fields of a dataclass one after the other."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.scale import Codec, Reader

T = TypeVar("T")


def struct(cls: Callable[..., T], *codecs: Codec[Any]) -> Codec[T]:
    """The codec of a dataclass whose fields have these types, in order.

    Raises `DefensiveFailure` when fields and codecs differ in number.
    """
    names = tuple(field.name for field in fields(cls))  # type: ignore[arg-type]  # a dataclass, as the name says
    if len(names) != len(codecs):
        raise DefensiveFailure(f"{len(names)} fields and {len(codecs)} codecs")
    pairs = tuple(zip(names, codecs, strict=True))

    def encode(value: T) -> bytes:
        return b"".join([codec.encode(getattr(value, name)) for name, codec in pairs])

    def read(reader: Reader) -> T:
        return cls(*[codec.read(reader) for codec in codecs])

    return Codec(getattr(cls, "__name__", "struct"), encode, read)
