"""Descriptions of SCALE types.

Codecs carry them, and a runtime's metadata consists of them. A description says how a value is laid
out and how Rust names its type.

A type that depends on the whole runtime, or that contains itself, is a `Named`. The reader of a
description supplies a table with the meaning of these names.
"""

from dataclasses import dataclass
from typing import Final

PRIMITIVES: Final = (
    "bool",
    "char",
    "str",
    *(f"u{8 << size}" for size in range(6)),
    *(f"i{8 << size}" for size in range(6)),
)
"""The names in the order of `TypeDefPrimitive`; the integers are u8 to u256, then i8 to i256."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """One of `PRIMITIVES`."""

    name: str


@dataclass(frozen=True, slots=True)
class CompactOf:
    """`Compact<T>`."""

    inner: "TypeInfo"


@dataclass(frozen=True, slots=True)
class SequenceOf:
    """`Vec<T>`, and every type that is encoded like it."""

    item: "TypeInfo"


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """`[T; length]`."""

    length: int
    item: "TypeInfo"


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple; `()` if it has no parts."""

    parts: "tuple[TypeInfo, ...]" = ()


@dataclass(frozen=True, slots=True)
class BitSequence:
    """`BitVec<u8, Lsb0>`."""


@dataclass(frozen=True, slots=True)
class Named:
    """A type that the reader's own table describes: `RuntimeCall`, for instance."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct or of a variant; in a tuple it has no name."""

    info: "TypeInfo"
    name: str | None = None
    type_name: str | None = None
    docs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of an enum."""

    name: str
    index: int
    fields: tuple[Field, ...] = ()
    docs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A type parameter, without a type where Rust skips it."""

    name: str
    info: "TypeInfo | None" = None


@dataclass(frozen=True, slots=True)
class Composite:
    """A struct."""

    path: tuple[str, ...]
    fields: tuple[Field, ...] = ()
    params: tuple[Parameter, ...] = ()
    docs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variants:
    """An enum."""

    path: tuple[str, ...]
    variants: tuple[Variant, ...] = ()
    params: tuple[Parameter, ...] = ()
    docs: tuple[str, ...] = ()


TypeInfo = (
    Primitive
    | CompactOf
    | SequenceOf
    | ArrayOf
    | TupleOf
    | BitSequence
    | Named
    | Composite
    | Variants
)

BOOL: Final = Primitive("bool")
STR: Final = Primitive("str")
U8: Final = Primitive("u8")
U32: Final = Primitive("u32")
U64: Final = Primitive("u64")
U128: Final = Primitive("u128")
BYTES: Final = SequenceOf(U8)
UNIT: Final = TupleOf()


def path(rust: str) -> tuple[str, ...]:
    """Return the segments of a Rust path."""
    return tuple(rust.split("::"))


def wrapper(rust: str, inner: TypeInfo, type_name: str | None = None) -> Composite:
    """Describe a struct of one field without a name."""
    return Composite(path(rust), (Field(inner, type_name=type_name),))


def struct(rust: str, *params: Parameter, **fields: TypeInfo) -> Composite:
    """Describe a struct of named fields, in order.

    A trailing underscore, as after a Python keyword, is dropped.
    """
    return Composite(
        path(rust), tuple(Field(info, name.rstrip("_")) for name, info in fields.items()), params
    )


def enum(rust: str, *names: str) -> Variants:
    """Describe an enum without data, with its variants numbered from 0."""
    return Variants(path(rust), tuple(Variant(name, index) for index, name in enumerate(names)))


def variants(
    rust: str, *listed: "tuple[str, int, *tuple[TypeInfo, ...]]", params: tuple[Parameter, ...] = ()
) -> Variants:
    """Describe an enum.

    Each variant is its name, its index, and the types of its fields, which have no names.
    """
    described = (Variant(name, index, tuple(map(Field, infos))) for name, index, *infos in listed)
    return Variants(path(rust), tuple(described), params)


def option(inner: TypeInfo) -> Variants:
    """Describe `Option<T>`."""
    return variants("Option", ("None", 0), ("Some", 1, inner), params=(Parameter("T", inner),))


def result(ok: TypeInfo, error: TypeInfo) -> Variants:
    """Describe `Result<T, E>`."""
    params = (Parameter("T", ok), Parameter("E", error))
    return variants("Result", ("Ok", 0, ok), ("Err", 1, error), params=params)


def sorted_map(key: TypeInfo, value: TypeInfo) -> Composite:
    """Describe `BTreeMap<K, V>`."""
    entries = SequenceOf(TupleOf((key, value)))
    return Composite(("BTreeMap",), (Field(entries),), (Parameter("K", key), Parameter("V", value)))


def bounded(item: TypeInfo) -> Composite:
    """Describe `BoundedVec<T, S>`."""
    params = (Parameter("T", item), Parameter("S"))
    return Composite(
        path("bounded_collections::bounded_vec::BoundedVec"), (Field(SequenceOf(item)),), params
    )


def docs(text: str | None) -> tuple[str, ...]:
    """Return the lines of a docstring, without indentation."""
    return tuple(line.strip() for line in text.strip().splitlines()) if text else ()


def rust_name(info: TypeInfo) -> str:
    """Return the name of a type in Rust source, without the path."""
    match info:
        case Primitive(name) | Named(name):
            return name
        case CompactOf(inner):
            return f"Compact<{rust_name(inner)}>"
        case SequenceOf(item):
            return f"Vec<{rust_name(item)}>"
        case ArrayOf(length, item):
            return f"[{rust_name(item)}; {length}]"
        case TupleOf(parts):
            return f"({', '.join(map(rust_name, parts))})"
        case BitSequence():
            return "BitVec<u8, Lsb0>"
        case Composite() | Variants():
            params = ", ".join(
                rust_name(param.info) for param in info.params if param.info is not None
            )
            return f"{info.path[-1]}<{params}>" if params else info.path[-1]


H256: Final = wrapper("primitive_types::H256", ArrayOf(32, U8), "[u8; 32]")
ACCOUNT_ID: Final = wrapper("sp_core::crypto::AccountId32", ArrayOf(32, U8), "[u8; 32]")
PARA_ID: Final = wrapper("polkadot_parachain_primitives::primitives::Id", U32, "u32")
