"""The declaration of a pallet: its name and index, its storage items, events and errors.

A pallet's module makes one `Pallet`. Each storage item, event and error enum names that value and
so becomes part of it. `Hooks` names it as the pallet of the class with the calls. A `Runtime` finds
everything else from there.
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
"""The type of the default: either that of the value, or `None`."""


class Pallet:
    """One pallet: `index` is u8, `crate` the Rust module in the paths of its types.

    Pallets that exist on the Polkadot relay chain or in parachain templates have the same index as
    there. `hold_reasons` are the reasons for which the pallet holds balances, by variant.
    """

    def __init__(
        self, name: str, index: int, crate: str, docs: str = "", hold_reasons: tuple[str, ...] = ()
    ) -> None:
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
    """Base of values and maps.

    It has the prefix and reads stored values. `docs` is the item's description in metadata.
    """

    def __init__(
        self, pallet: Pallet, item: str, docs: str, codec: Codec[T], default: bytes | None
    ) -> None:
        """Declare an item of `pallet`; `default` is encoded.

        Raises `DefensiveFailure` if the pallet has an item of this name.
        """
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
        """Return the item as `Pallet.Item`."""
        return f"{self.pallet}.{self.item}"

    @property
    def key_parts(self) -> tuple[tuple[Hasher, AnyCodec], ...]:
        """Return the hasher and the codec of each key, in order; empty for a single value."""
        return ()

    def decode_keys(self, full: bytes) -> tuple[Any, ...]:
        """Return the keys in a full storage key.

        Raises `ScaleError`, and `DefensiveFailure` for a hasher that does not store keys.
        """
        reader = Reader(full, len(self.prefix))
        keys = tuple([hasher.read(reader, codec) for hasher, codec in self.key_parts])
        reader.end()
        return keys

    def entries(
        self, storage: Storage, prefix: bytes | None = None, after: bytes | None = None
    ) -> Iterator[tuple[tuple[Any, ...], T]]:
        """Yield the keys and the value of everything stored, in storage-key order.

        The entries begin strictly after the storage key `after`. Defaults are not stored.
        """
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
    """Base of all events, which the decorator `events.event` completes."""

    __slots__ = ()

    PALLET: ClassVar[Pallet]
    VARIANT: ClassVar[int]
    CODECS: ClassVar[tuple[tuple[str, AnyCodec], ...]]
    HEAD: ClassVar[bytes]
    ENCODERS: ClassVar[tuple[tuple[str, Callable[[Any], bytes]], ...]]

    def encode(self) -> bytes:
        """Return the SCALE bytes of the `RuntimeEvent`."""
        data = self.HEAD
        for name, encode in self.ENCODERS:
            data += encode(getattr(self, name))
        return data


class PalletError(IntEnum):
    """An error of a pallet, declared as its index and its description.

    Metadata shows the description to clients.
    """

    doc: str
    pallet: Pallet

    def __new__(cls, index: int, doc: str = "") -> Self:
        """Make a member with the value `index` and the description `doc`."""
        member = int.__new__(cls, index)
        member._value_ = index
        member.doc = doc
        return member


Errors = TypeVar("Errors", bound=PalletError)


def pallet_errors(pallet: Pallet) -> Callable[[type[Errors]], type[Errors]]:
    """Make an enum the errors of `pallet`.

    Raises `DefensiveFailure` if the pallet has errors already.
    """

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
    """Return the description of a codec.

    Raises `DefensiveFailure` if it has none.
    """
    if codec.info is None:
        raise DefensiveFailure(f"{codec.name} has no type description")
    return codec.info


def constant(name: str, codec: AnyCodec, value: object, docs: str) -> Constant:
    """Make a constant with the value and the type of a codec."""
    return Constant(name, described(codec), codec.encode(value), docs)
