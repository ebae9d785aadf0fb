"""The types and items of metadata V14 that decoding needs. scalecodec reads the metadata.

Types refer to each other by their numbers in the metadata.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset

from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.primitives.hexadecimal import unhex


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
class Storage:
    """A storage item."""

    hashers: tuple[str, ...]
    """The names of the hashers of the keys."""
    key: int | None
    """The type of the key, a tuple if there are several, or `None` for an item without keys."""
    value: int
    """The type of the value."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a pallet."""

    type: int
    value: bytes
    """The SCALE bytes of the value."""


@dataclass(frozen=True, slots=True)
class Pallet:
    """A pallet."""

    name: str
    index: int
    events: int | None
    """The type of its enum of events, if it has one."""
    prefix: str
    """The name from which storage keys are derived."""
    storage: Mapping[str, Storage]
    calls: int | None = None
    """The type of its enum of calls, if it has one."""
    errors: int | None = None
    """The type of its enum of errors, if it has one."""
    constants: Mapping[str, Constant] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The parts of a chain's metadata that decode events, storage and calls."""

    types: Mapping[int, Type]
    """Types by number."""
    paths: Mapping[int, tuple[str, ...]]
    """The path of each type by number, such as `("Option",)`."""
    pallets: Mapping[str, Pallet]
    events: int
    """The type of `System.Events`."""


@lru_cache(maxsize=8)
def parse_metadata(data: bytes) -> Metadata:
    """Parse the answer of `state_getMetadata`.

    Raises `BadAnswer` for other versions than 14 and for damaged bytes.
    """
    if data[:4] != b"meta" or len(data) < 5:
        raise BadAnswer("metadata does not begin with its magic number")
    if data[4] != 14:
        raise BadAnswer(
            f"metadata version {data[4]} is not supported, only 14, which every node provides"
        )
    try:
        parsed = _read(data)
        types = {entry["id"]: _type(entry["type"]["def"]) for entry in parsed["types"]["types"]}
        paths = {entry["id"]: tuple(entry["type"]["path"]) for entry in parsed["types"]["types"]}
        pallets = {each["name"]: _pallet(each) for each in parsed["pallets"]}
        events = pallets["System"].storage["Events"].value
    except Exception as error:
        # scalecodec does not check its input and can raise any exception.
        raise BadAnswer(f"the metadata cannot be read: {type(error).__name__}: {error}") from error
    return Metadata(types, paths, pallets, events)


Table = dict[str, Any]
"""A part of metadata as scalecodec returns it, without types."""


class _Ending(bytearray):
    """A bytearray that raises when it is read past its end.

    scalecodec would silently return nothing, as often as a length in the metadata says.
    """

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice) and place.stop > len(self):
            raise BadAnswer(
                f"{place.stop - place.start} bytes are wanted at offset {place.start} of"
                f" {len(self)}"
            )
        return super().__getitem__(place)


def _read(data: bytes) -> Table:
    """Return the parsed metadata as scalecodec's document."""
    config = RuntimeConfigurationObject()
    core = load_type_registry_preset("core")
    constant = dict(core["types"]["PalletConstantMetadataV14"]["type_mapping"])
    # scalecodec returns `Bytes` as text if they happen to be UTF-8, and otherwise as digits.
    constant["value"] = "HexBytes"
    core["types"]["PalletConstantMetadataV14"]["type_mapping"] = list(map(list, constant.items()))
    config.update_type_registry(core)
    bounded = ScaleBytes(bytearray(data))
    bounded.data = _Ending(data)
    versioned = config.create_scale_object("MetadataVersioned", data=bounded)
    versioned.decode()
    parsed: Table = versioned.value[1]["V14"]
    return parsed


def _fields(listed: list[Table]) -> tuple[Field, ...]:
    return tuple(Field(each["name"], each["type"]) for each in listed)


def _type(definition: Table) -> Type:
    """Return the type of one definition."""
    ((kind, body),) = definition.items()
    match kind:
        case "composite":
            return Composite(_fields(body["fields"]))
        case "variant":
            return Enum(
                {
                    each["index"]: Variant(each["name"], _fields(each["fields"]))
                    for each in body["variants"]
                }
            )
        case "sequence":
            return Sequence(body["type"])
        case "array":
            return Array(body["type"], body["len"])
        case "tuple":
            return Tuple(tuple(body))
        case "primitive":
            return Primitive(str(body).lower())
        case "compact":
            return Compact(body["type"])
        case "bitsequence":
            return Bits(body["bit_store_type"], body["bit_order_type"])
        case _:
            raise BadAnswer(f"unknown kind of type {kind!r}")


def _pallet(each: Table) -> Pallet:
    storage = each["storage"] or {"prefix": each["name"], "entries": ()}
    entries = {item["name"]: _storage(item["type"]) for item in storage["entries"]}
    events, calls, errors = (
        each[part] and each[part]["ty"] for part in ("event", "calls", "error")
    )
    constants = {
        item["name"]: Constant(item["type"], unhex(item["value"])) for item in each["constants"]
    }
    return Pallet(
        each["name"], each["index"], events, storage["prefix"], entries, calls, errors, constants
    )


def _storage(definition: Table) -> Storage:
    ((kind, body),) = definition.items()
    return (
        Storage((), None, body)
        if kind == "Plain"
        else Storage(tuple(body["hashers"]), body["key"], body["value"])
    )
