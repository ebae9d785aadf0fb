"""SCALE structs: the fields of a dataclass, one after the other."""

from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.scale import AnyCodec, Codec, Reader
from pubsub_emulator.primitives.type_info import Composite, Field, Parameter, path

T = TypeVar("T")


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

    name = getattr(cls, "__name__", "struct")
    infos = tuple(
        Field(codec.info, name.rstrip("_")) for name, codec in pairs if codec.info is not None
    )
    info = (
        Composite(path(rust or f"pubsub_runtime::{name}"), infos, params)
        if len(infos) == len(pairs)
        else None
    )
    return Codec(name, encode, read, info)
