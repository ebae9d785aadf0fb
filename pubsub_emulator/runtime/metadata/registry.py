"""The portable registry: every type that metadata refers to, numbered by its first use.

PortableRegistry  Vec<(Compact id, Type)>
Type              Vec<str> path, Vec<(str, Option<Compact>)> params, TypeDef, Vec<str> docs
TypeDef           00 Composite Vec<Field> | 01 Variant Vec<Variant> | 02 Sequence id
                  03 Array u32 id | 04 Tuple Vec<id> | 05 Primitive u8 | 06 Compact id
                  07 BitSequence store id, order id
Field             Option<str> name, id, Option<str> type name, Vec<str> docs
Variant           str name, Vec<Field>, u8 index, Vec<str> docs
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.primitives.type_info import Field, Parameter, TypeInfo, Variant

_BIT_ORDER: Final = type_info.Composite(("bitvec", "order", "Lsb0"))


class _Structures:
    """A numbering of types, in which equal types have equal numbers.

    Types are compared by the numbers of their parts, and not as a whole.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], int] = {}
        self._seen: dict[int, tuple[TypeInfo, int]] = {}

    def of(self, info: TypeInfo) -> int:
        """Return one number for all equal types."""
        known = self._seen.get(id(info))
        if known is not None:
            return known[1]
        number = self._known.setdefault(self._key(info), len(self._known))
        # The object is stored too, so that Python does not reuse its id.
        self._seen[id(info)] = (info, number)
        return number

    def _key(self, info: TypeInfo) -> tuple[object, ...]:
        """Return a key that is equal for equal types, with numbers in place of inner types."""
        match info:
            case type_info.Primitive(name) | type_info.Named(name):
                return type(info), name
            case type_info.CompactOf(inner) | type_info.SequenceOf(inner):
                return type(info), self.of(inner)
            case type_info.ArrayOf(length, item):
                return type_info.ArrayOf, length, self.of(item)
            case type_info.TupleOf(parts):
                return type_info.TupleOf, *map(self.of, parts)
            case type_info.BitSequence():
                return (type_info.BitSequence,)
            case type_info.Composite(path, fields, params, docs):
                return type_info.Composite, path, self._fields(fields), self._params(params), docs
            case type_info.Variants(path, variants, params, docs):
                listed = tuple(
                    (variant.name, variant.index, self._fields(variant.fields), variant.docs)
                    for variant in variants
                )
                return type_info.Variants, path, listed, self._params(params), docs

    def _fields(self, fields: tuple[Field, ...]) -> tuple[object, ...]:
        return tuple(
            (self.of(field.info), field.name, field.type_name, field.docs) for field in fields
        )

    def _params(self, params: tuple[Parameter, ...]) -> tuple[object, ...]:
        return tuple(
            (param.name, None if param.info is None else self.of(param.info)) for param in params
        )


class Registry:
    """A numbering of types, in which equal types have one number."""

    def __init__(self, names: Mapping[str, TypeInfo]) -> None:
        """Begin an empty registry; `names` has the types behind `type_info.Named` types."""
        self._names = names
        self._structures = _Structures()
        self._ids: dict[int, int] = {}
        self._types: list[bytes] = []

    def id_of(self, info: TypeInfo) -> int:
        """Return the number of a type, which is added if it is new.

        Raises `DefensiveFailure` for an unknown name.
        """
        structure = self._structures.of(info)
        number = self._ids.get(structure)
        if number is not None:
            return number
        if isinstance(info, type_info.Named):
            named = self._names.get(info.name)
            if named is None:
                raise DefensiveFailure(f"no type is called {info.name}")
            number = self._ids.get(self._structures.of(named))
            if number is not None:
                self._ids[structure] = number
                return number
            info = named
        number = len(self._types)
        # The number is noted before the type is encoded, because the type may contain itself.
        self._ids[structure] = self._ids[self._structures.of(info)] = number
        self._types.append(b"")
        self._types[number] = self._encode(info)
        return number

    def encode(self) -> bytes:
        """Return the SCALE bytes of the registry."""
        parts = [encode_compact(len(self._types))]
        for number, encoded in enumerate(self._types):
            parts += (encode_compact(number), encoded)
        return b"".join(parts)

    def compact(self, info: TypeInfo) -> bytes:
        """Return the number of a type, encoded as `Compact`."""
        return encode_compact(self.id_of(info))

    def _encode(self, info: TypeInfo) -> bytes:
        """Encode the definition of a type, and add the types that it contains."""
        match info:
            case type_info.Primitive(name):
                return _type((), b"\x00", bytes((5, type_info.PRIMITIVES.index(name))))
            case type_info.CompactOf(inner):
                return _type((), b"\x00", b"\x06" + self.compact(inner))
            case type_info.SequenceOf(item):
                return _type((), b"\x00", b"\x02" + self.compact(item))
            case type_info.ArrayOf(length, item):
                return _type(
                    (), b"\x00", b"\x03" + length.to_bytes(4, "little") + self.compact(item)
                )
            case type_info.TupleOf(parts):
                return _type((), b"\x00", b"\x04" + vector(self.compact(part) for part in parts))
            case type_info.BitSequence():
                return _type(
                    (), b"\x00", b"\x07" + self.compact(type_info.U8) + self.compact(_BIT_ORDER)
                )
            case type_info.Composite(path, fields, params, docs):
                return _type(path, self._params(params), b"\x00" + self._fields(fields), docs)
            case type_info.Variants(path, variants, params, docs):
                listed = vector(self._variant(variant) for variant in variants)
                return _type(path, self._params(params), b"\x01" + listed, docs)
            case type_info.Named(name):
                raise DefensiveFailure(f"{name} was not looked up")

    def _params(self, params: tuple[Parameter, ...]) -> bytes:
        return vector(
            text(param.name)
            + (b"\x00" if param.info is None else b"\x01" + self.compact(param.info))
            for param in params
        )

    def _fields(self, fields: tuple[Field, ...]) -> bytes:
        return vector(
            maybe_text(field.name)
            + self.compact(field.info)
            + maybe_text(field.type_name)
            + texts(field.docs)
            for field in fields
        )

    def _variant(self, variant: Variant) -> bytes:
        return (
            text(variant.name)
            + self._fields(variant.fields)
            + bytes((variant.index,))
            + texts(variant.docs)
        )


def _type(
    path: tuple[str, ...], params: bytes, definition: bytes, docs: tuple[str, ...] = ()
) -> bytes:
    return texts(path) + params + definition + texts(docs)


def vector(parts: Iterable[bytes]) -> bytes:
    """Encode a `Vec` of encoded items."""
    listed = list(parts)
    return encode_compact(len(listed)) + b"".join(listed)


def text(value: str) -> bytes:
    """Encode a `str`."""
    return encode_bytes(value.encode())


def maybe_text(value: str | None) -> bytes:
    """Encode an `Option<str>`."""
    return b"\x00" if value is None else b"\x01" + text(value)


def texts(values: Iterable[str]) -> bytes:
    """Encode a `Vec<str>`."""
    return vector(text(value) for value in values)
