"""The declaration of a pallet: its name and index, and the storage items, events and errors that belong to it.

A pallet's module makes one `Pallet`. Each storage item, event and error enum names that value, and so becomes part of
it; `Hooks` names it as the pallet of the class with the calls. A `Runtime` reads everything else from there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Generic, Self, TypeVar

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.scale import AnyCodec, Codec, Reader
from pubsub_emulator.primitives.storage_keys import item_prefix
from pubsub_emulator.primitives.type_info import TypeInfo
from pubsub_emulator.runtime.framework.hashers import Hasher
from pubsub_emulator.runtime.framework.storage import Storage

T = TypeVar("T")
D = TypeVar("D")
"""The type of the default: that of the value, or `None`."""


class Pallet:
    """One pallet: `index` is u8, `crate` the Rust module in the paths of its types.

    Pallets that exist on the Polkadot relay chain or in parachain templates have the index that they have there.
    `hold_reasons` are the reasons for which it holds balances, by variant.
    """

    def __init__(self, name: str, index: int, crate: str, docs: str = "", hold_reasons: tuple[str, ...] = ()) -> None:
        self.name = name
        self.index = index
        self.crate = crate
        self.docs = docs
        self.hold_reasons = hold_reasons
        self.items: dict[str, StorageItem[Any, Any]] = {}
        self.events: dict[int, type[Event]] = {}
        self.errors: type[PalletError] | None = None

    def __str__(self) -> str:
        return self.name


class StorageItem(Generic[T, D]):
    """Base of values and maps: the prefix, reading a stored value, and `docs`, the item's meaning for metadata."""

    def __init__(self, pallet: Pallet, item: str, docs: str, codec: Codec[T], default: bytes | None) -> None:
        """`default` is encoded. Raises `DefensiveFailure` if the pallet has an item of this name."""
        self.pallet = pallet
        self.item = item
        self.codec = codec
        self.docs = docs
        self.prefix = item_prefix(pallet.name, item)
        self.default = default
        if pallet.items.setdefault(item, self) is not self:
            raise DefensiveFailure(f"{self!r} is declared twice")

    @property
    def name(self) -> str:
        """The item as `Pallet.Item`."""
        return f"{self.pallet}.{self.item}"

    @property
    def key_parts(self) -> tuple[tuple[Hasher, AnyCodec], ...]:
        """The hasher and the codec of each key, in order; a single value has none."""
        return ()

    def decode_keys(self, full: bytes) -> tuple[Any, ...]:
        """The keys in a full storage key. Raises `ScaleError`, `DefensiveFailure` for a hasher that loses them."""
        reader = Reader(full, len(self.prefix))
        keys = tuple([hasher.read(reader, codec) for hasher, codec in self.key_parts])
        reader.end()
        return keys

    def entries(
        self, storage: Storage, prefix: bytes | None = None, after: bytes | None = None
    ) -> Iterator[tuple[tuple[Any, ...], T]]:
        """The keys and the value of everything stored, in storage-key order, strictly after `after`; no defaults."""
        for full, raw in storage.iter_prefix(self.prefix if prefix is None else prefix, after):
            yield self.decode_keys(full), self.codec.decode(raw)

    def _read(self, storage: Storage, key: bytes) -> T | D:
        raw = storage.get(key)
        if raw is None:
            raw = self.default
            if raw is None:
                return None  # type: ignore[return-value]  # without a default, D is None
        return self.codec.decode(raw)

    def __repr__(self) -> str:
        return f"{self.pallet}::{self.item}"


AnyItem = StorageItem[Any, Any]


class Event:
    """Base of all events; made by the decorator `events.event`."""

    __slots__ = ()

    PALLET: ClassVar[Pallet]
    VARIANT: ClassVar[int]
    CODECS: ClassVar[tuple[tuple[str, AnyCodec], ...]]
    HEAD: ClassVar[bytes]
    ENCODERS: ClassVar[tuple[tuple[str, Callable[[Any], bytes]], ...]]

    def encode(self) -> bytes:
        """SCALE bytes of the `RuntimeEvent`."""
        data = self.HEAD
        for name, encode in self.ENCODERS:
            data += encode(getattr(self, name))
        return data


class PalletError(IntEnum):
    """An error of a pallet, declared as its index and what it means, which metadata tells clients."""

    doc: str
    pallet: Pallet

    def __new__(cls, index: int, doc: str = "") -> Self:
        """A member with the value `index` and the description `doc`."""
        member = int.__new__(cls, index)
        member._value_ = index
        member.doc = doc
        return member


Errors = TypeVar("Errors", bound=PalletError)


def pallet_errors(pallet: Pallet) -> Callable[[type[Errors]], type[Errors]]:
    """Class decorator: an enum has the errors of `pallet`. Raises `DefensiveFailure` if the pallet has errors."""

    def declare(errors: type[Errors]) -> type[Errors]:
        if pallet.errors is not None:
            raise DefensiveFailure(f"{pallet} has errors already")
        pallet.errors = errors
        for error in errors:
            error.pallet = pallet
        return errors

    return declare


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a pallet: its SCALE value and its meaning."""

    name: str
    info: TypeInfo
    value: bytes
    docs: str = ""


def described(codec: AnyCodec) -> TypeInfo:
    """The description of a codec. Raises `DefensiveFailure` if it has none."""
    if codec.info is None:
        raise DefensiveFailure(f"{codec.name} has no type description")
    return codec.info


def constant(name: str, codec: AnyCodec, value: object, docs: str) -> Constant:
    """A constant with the value and the type of a codec."""
    return Constant(name, described(codec), codec.encode(value), docs)
