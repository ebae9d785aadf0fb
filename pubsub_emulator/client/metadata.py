"""The types and items of metadata V14 that clients need, and their reader.

Types refer to each other by their numbers in the metadata. Documentation, default values of storage
items and the types of extrinsics are skipped. docs/decisions/libraries.md says why no library is
used for this.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeVar

from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.type_info import PRIMITIVES

T = TypeVar("T")

VERSION: Final = 14
"""The only version that is read. Every node still provides it beside newer ones."""
_HASHERS: Final = (
    "Blake2_128",
    "Blake2_256",
    "Blake2_128Concat",
    "Twox128",
    "Twox256",
    "Twox64Concat",
    "Identity",
)
"""The names of the hashers in the order of `StorageHasher`."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct or variant."""

    name: str | None
    """The name, or `None` in a tuple-like struct or variant."""
    type: int


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of an enum."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Composite:
    """A struct."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum, with its variants by discriminant."""

    variants: Mapping[int, Variant]


@dataclass(frozen=True, slots=True)
class Sequence:
    """`Vec<T>`."""

    item: int


@dataclass(frozen=True, slots=True)
class Array:
    """`[T; length]`."""

    item: int
    length: int


@dataclass(frozen=True, slots=True)
class Tuple:
    """`(A, B, …)`."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Primitive:
    """`bool`, `char`, `str`, `u8` … `u256`, `i8` … `i256`."""

    name: str


@dataclass(frozen=True, slots=True)
class Compact:
    """`Compact<T>`."""

    item: int


@dataclass(frozen=True, slots=True)
class Bits:
    """`BitVec<store, order>`."""

    store: int
    order: int


Type = Composite | Enum | Sequence | Array | Tuple | Primitive | Compact | Bits


@dataclass(frozen=True, slots=True)
class StorageEntryMetadata:
    """A storage item."""

    hashers: tuple[str, ...]
    """The names of the hashers of the keys."""
    key: int | None
    """The type of the key, or `None` for an item without keys. Several keys are one tuple."""
    value: int
    """The type of the value."""


@dataclass(frozen=True, slots=True)
class PalletConstantMetadata:
    """A constant of a pallet."""

    type: int
    value: bytes
    """The SCALE bytes of the value."""


@dataclass(frozen=True, slots=True)
class PalletMetadata:
    """A pallet."""

    name: str
    index: int
    events: int | None
    """The type of its enum of events, if it has one."""
    prefix: str
    """The name from which storage keys are derived. It can differ from `name`."""
    storage: Mapping[str, StorageEntryMetadata]
    calls: int | None = None
    """The type of its enum of calls, if it has one."""
    errors: int | None = None
    """The type of its enum of errors, if it has one."""
    constants: Mapping[str, PalletConstantMetadata] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The parts of a chain's metadata that describe events, storage and calls."""

    types: Mapping[int, Type]
    """Types by number."""
    paths: Mapping[int, tuple[str, ...]]
    """The path of each type by number, such as `("Option",)`."""
    pallets: Mapping[str, PalletMetadata]
    events: int
    """The type of `System.Events`."""

    def name_of(self, kind: int) -> str:
        """Return a type's name for errors: its path, or its Rust form if it has no path."""
        path = self.paths.get(kind)
        if path:
            return "::".join(path)
        match self.types.get(kind):
            case Primitive(name):
                return name
            case Sequence(item):
                return f"Vec<{self._short_name(item)}>"
            case Array(item, length):
                return f"[{self._short_name(item)}; {length}]"
            case Compact(item):
                return f"Compact<{self._short_name(item)}>"
            case Tuple(items):
                return f"({', '.join(map(self._short_name, items))})"
            case Bits():
                return "BitVec"
        return f"type {kind}"

    def _short_name(self, kind: int) -> str:
        """Return the name of a type within that of another one.

        It does not name the types inside, since types can contain themselves.
        """
        path = self.paths.get(kind)
        if path:
            return "::".join(path)
        definition = self.types.get(kind)
        return definition.name if isinstance(definition, Primitive) else f"type {kind}"

    def is_byte(self, kind: int) -> bool:
        """Return whether a type is `u8`. Lists of it are decoded as bytes."""
        return self.types.get(kind) == Primitive("u8")

    def optional(self, kind: int) -> int | None:
        """Return the type in an `Option`, or `None` if the type is not an `Option`."""
        definition = self.types.get(kind)
        if not isinstance(definition, Enum) or self.paths.get(kind) != ("Option",):
            return None
        none = definition.variants.get(0)
        some = definition.variants.get(1)
        if none != Variant("None", ()) or some is None or len(definition.variants) != 2:
            return None
        return some.fields[0].type if some.name == "Some" and len(some.fields) == 1 else None

    def may_be_none(self, kind: int) -> bool:
        """Return whether a type has values that are decoded as `None`.

        In an `Option` of such a type, `Some` needs a form of its own, because `Some(None)` and
        `None` would otherwise look alike.
        """
        visited: set[int] = set()
        while kind not in visited:
            visited.add(kind)
            match self.types.get(kind):
                case Composite(()) | Tuple(()):
                    return True
                case Composite((Field(None, inner),)) | Compact(inner):
                    kind = inner
                case Enum():
                    return self.optional(kind) is not None
                case _:
                    return False
        return False


@lru_cache(maxsize=8)
def parse_metadata(data: bytes) -> Metadata:
    """Parse the bytes that `state_getMetadata` returns.

    Raises `BadAnswer` for other versions than 14, for damaged bytes, and if there are no events.
    """
    if data[:4] != b"meta" or len(data) < 5:
        raise BadAnswer("metadata does not begin with its magic number")
    if data[4] != VERSION:
        raise BadAnswer(
            f"metadata version {data[4]} is not supported, only 14, which every node provides"
        )
    reader = Reader(data)
    reader.take(5)
    try:
        types, paths = _types(reader)
        pallets = _unique("pallet", ((pallet.name, pallet) for pallet in _vec(reader, _pallet)))
        _skip_extrinsic(reader)
        reader.end()
    except ScaleError as error:
        raise BadAnswer(f"the metadata cannot be read: {error}") from error
    system = pallets.get("System")
    events = None if system is None else system.storage.get("Events")
    if events is None:
        raise BadAnswer("the metadata has no storage System.Events")
    return Metadata(types, paths, pallets, events.value)


def _vec(reader: Reader, item: Callable[[Reader], T]) -> list[T]:
    """Read a `Vec`, whose items have at least one byte each."""
    return [item(reader) for _ in range(reader.length())]


def _option(reader: Reader, item: Callable[[Reader], T]) -> T | None:
    """Read an `Option`."""
    return item(reader) if reader.boolean() else None


def _unique(kind: str, named: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return named things by name. Raises `BadAnswer` if two have the same name.

    `kind` is the word for such a thing in the error.
    """
    by_name: dict[str, T] = {}
    for name, thing in named:
        if name in by_name:
            raise BadAnswer(f"the metadata has two {kind}s of the name {name[:80]!r}")
        by_name[name] = thing
    return by_name


def _text(reader: Reader) -> str:
    start = reader.pos
    try:
        return reader.bytes_().decode()
    except UnicodeDecodeError:
        raise ScaleError(f"a text at offset {start} is not UTF-8") from None


def _number(reader: Reader) -> int:
    """Read the number of a type: `Compact<u32>`."""
    return reader.compact(32)


def _skip_texts(reader: Reader) -> None:
    """Skip documentation."""
    for _ in range(reader.length()):
        reader.bytes_()


def _types(reader: Reader) -> tuple[dict[int, Type], dict[int, tuple[str, ...]]]:
    """Read the registry: types and their paths by number."""
    types: dict[int, Type] = {}
    paths: dict[int, tuple[str, ...]] = {}
    for _ in range(reader.length()):
        kind = _number(reader)
        if kind in types:
            raise BadAnswer(f"the metadata has two types of the number {kind}")
        paths[kind] = tuple(_vec(reader, _text))
        for _ in range(reader.length()):
            # A type parameter is skipped. It has a name, and a type if it is not phantom.
            reader.bytes_()
            _option(reader, _number)
        types[kind] = _definition(reader)
        _skip_texts(reader)
    return types, paths


def _definition(reader: Reader) -> Type:
    """Read one `TypeDef`. Raises `ScaleError` if its kind is unknown."""
    start = reader.pos
    match reader.u8():
        case 0:
            return Composite(_fields(reader))
        case 1:
            return _enum(reader)
        case 2:
            return Sequence(_number(reader))
        case 3:
            length = reader.uint(4)
            return Array(_number(reader), length)
        case 4:
            return Tuple(tuple(_vec(reader, _number)))
        case 5:
            name = reader.u8()
            if name < len(PRIMITIVES):
                return Primitive(PRIMITIVES[name])
        case 6:
            return Compact(_number(reader))
        case 7:
            store = _number(reader)
            return Bits(store, _number(reader))
    raise ScaleError(f"an unknown kind of type at offset {start}")


def _fields(reader: Reader) -> tuple[Field, ...]:
    """Read the fields of a struct or variant. Raises `BadAnswer` if two have one name."""
    fields = tuple(_vec(reader, _field))
    _unique("field", ((field.name, field) for field in fields if field.name is not None))
    return fields


def _field(reader: Reader) -> Field:
    """Read a field. The name of its type in the source and its documentation are skipped."""
    name = _option(reader, _text)
    kind = _number(reader)
    _option(reader, Reader.bytes_)
    _skip_texts(reader)
    return Field(name, kind)


def _enum(reader: Reader) -> Enum:
    """Read the variants of an enum. Raises `BadAnswer` if two have one name or discriminant."""
    variants: dict[int, Variant] = {}
    for _ in range(reader.length()):
        name = _text(reader)
        fields = _fields(reader)
        index = reader.u8()
        _skip_texts(reader)
        if index in variants:
            raise BadAnswer(f"the metadata has two variants of the index {index} in one enum")
        variants[index] = Variant(name, fields)
    _unique("variant", ((variant.name, variant) for variant in variants.values()))
    return Enum(variants)


def _pallet(reader: Reader) -> PalletMetadata:
    """Read a pallet. Its parts are in the order of metadata V14, the index at the end."""
    name = _text(reader)
    storage = _option(reader, _pallet_storage)
    calls = _option(reader, _number)
    events = _option(reader, _number)
    constants = _unique("constant", _vec(reader, _constant))
    errors = _option(reader, _number)
    prefix, items = storage or (name, {})
    return PalletMetadata(
        name=name,
        index=reader.u8(),
        events=events,
        prefix=prefix,
        storage=items,
        calls=calls,
        errors=errors,
        constants=constants,
    )


def _pallet_storage(reader: Reader) -> tuple[str, dict[str, StorageEntryMetadata]]:
    """Read the prefix of a pallet's storage keys, and its items by name."""
    prefix = _text(reader)
    return prefix, _unique("storage item", _vec(reader, _storage))


def _storage(reader: Reader) -> tuple[str, StorageEntryMetadata]:
    """Read a storage item and its name."""
    name = _text(reader)
    # The modifier (`Optional` or `Default`) is skipped.
    reader.u8()
    start = reader.pos
    kind = reader.u8()
    if kind == 0:
        storage = StorageEntryMetadata((), None, _number(reader))
    elif kind == 1:
        hashers = tuple(_vec(reader, _hasher))
        key = _number(reader)
        storage = StorageEntryMetadata(hashers, key, _number(reader))
    else:
        raise ScaleError(f"an unknown kind of storage item at offset {start}")
    # The default value is skipped.
    reader.bytes_()
    _skip_texts(reader)
    return name, storage


def _hasher(reader: Reader) -> str:
    """Read the name of a hasher. Raises `ScaleError` if its number is unknown."""
    start = reader.pos
    number = reader.u8()
    if number >= len(_HASHERS):
        raise ScaleError(f"an unknown hasher at offset {start}")
    return _HASHERS[number]


def _constant(reader: Reader) -> tuple[str, PalletConstantMetadata]:
    """Read a constant and its name. Its documentation is skipped."""
    name = _text(reader)
    kind = _number(reader)
    constant = PalletConstantMetadata(kind, reader.bytes_())
    _skip_texts(reader)
    return name, constant


def _skip_extrinsic(reader: Reader) -> None:
    """Skip the extrinsic's type, version and signed extensions, and the runtime's type."""
    _number(reader)
    reader.u8()
    for _ in range(reader.length()):
        reader.bytes_()
        _number(reader)
        _number(reader)
    _number(reader)
