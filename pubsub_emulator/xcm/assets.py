"""`Asset`, `Assets` and the filters over them, as in XCM v5."""

from collections.abc import Iterable
from enum import IntEnum
from itertools import pairwise
from typing import Annotated, Any, Final

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.xcm.errors import XcmDecodeError
from pubsub_emulator.xcm.location import Location
from pubsub_emulator.xcm.schema import (
    AnyXcm,
    Bytes4,
    Bytes8,
    Bytes16,
    Bytes32,
    CompactU32,
    CompactU128,
    Struct,
    Variants,
    XcmCodec,
    names,
    sequence,
    struct,
    variant,
)

MAX_ITEMS_IN_ASSETS: Final = 20

AssetId = Location
"""An asset class is identified by a location and encoded as one."""


class AssetInstance(Variants):
    """One instance of a non-fungible class."""

    __slots__ = ()


@variant(0)
class Undefined(AssetInstance):
    """The only instance there is."""


@variant(1)
class Index(AssetInstance):
    """An instance by its number."""

    inner: CompactU128


@variant(2)
class Array4(AssetInstance):
    """Four bytes."""

    inner: Bytes4


@variant(3)
class Array8(AssetInstance):
    """Eight bytes."""

    inner: Bytes8


@variant(4)
class Array16(AssetInstance):
    """Sixteen bytes."""

    inner: Bytes16


@variant(5)
class Array32(AssetInstance):
    """Thirty-two bytes."""

    inner: Bytes32


class Fungibility(Variants):
    """An amount, or an instance."""

    __slots__ = ()


@variant(0)
class Fungible(Fungibility):
    """An amount, never zero."""

    inner: CompactU128


@variant(1)
class NonFungible(Fungibility):
    """An instance."""

    inner: AssetInstance


def _without_zero(plain: AnyXcm) -> AnyXcm:
    zero = Fungible(0)

    def encode(value: Fungibility) -> bytes:
        if value == zero:
            raise ScaleError("a fungible asset of amount zero")
        return plain.encode(value)

    def read(reader: Reader) -> Fungibility:
        start = reader.pos
        value: Fungibility = plain.read(reader)
        if value == zero:
            raise XcmDecodeError("a fungible asset of amount zero", start)
        return value

    return XcmCodec(plain.name, encode, read, plain.shape)


Fungibility.codec = _without_zero(Fungibility.codec)


@struct
class Asset(Struct):
    """An amount or an instance of a class."""

    id: AssetId
    fun: Fungibility


def _rank(value: Any) -> Any:
    """A key that orders values as Rust's derived `Ord` does: discriminant, then fields; `None` before `Some`."""
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (len(value), *(_rank(item) for item in value))  # `Junctions`: X1 before X2, then by content
    if isinstance(value, Variants):
        return (1, value.INDEX, *(_rank(getattr(value, name)) for name, _ in value.FIELDS))
    if isinstance(value, Struct):
        return tuple(_rank(getattr(value, name)) for name, _ in value.FIELDS)
    return value


def _in_order(first: Asset, second: Asset) -> bool:
    """Whether `second` may follow `first` in `Assets`, as in `Assets::from_sorted_and_deduplicated`.

    Classes ascend. Within a class there is at most one amount, which comes before the instances; instances ascend.
    """
    if _rank(first.id) < _rank(second.id):
        return True
    if isinstance(first.fun, Fungible):
        return isinstance(second.fun, NonFungible)
    if isinstance(second.fun, Fungible):
        return False
    return bool((_rank(first.id), _rank(first.fun)) < (_rank(second.id), _rank(second.fun)))


_ASSETS: Final = sequence(Asset.codec, MAX_ITEMS_IN_ASSETS)


def _encode_assets(assets: tuple[Asset, ...]) -> bytes:
    if not all(_in_order(first, second) for first, second in pairwise(assets)):
        raise ScaleError("assets out of order, or one twice")
    return _ASSETS.encode(assets)


def _read_assets(reader: Reader) -> tuple[Asset, ...]:
    start = reader.pos
    assets: tuple[Asset, ...] = _ASSETS.read(reader)
    if not all(_in_order(first, second) for first, second in pairwise(assets)):
        raise XcmDecodeError("assets out of order, or one twice", start)
    return assets


ASSETS: Final[XcmCodec[tuple[Asset, ...]]] = XcmCodec("Assets", _encode_assets, _read_assets, _ASSETS.shape)
"""`Assets`: sorted, without duplicates, at most 20. Encoding and decoding refuse any other list."""

Assets = Annotated[tuple[Asset, ...], ASSETS]


def sorted_assets(assets: Iterable[Asset]) -> tuple[Asset, ...]:
    """The assets in the order that `Assets` requires. Duplicates are kept; encoding refuses them."""
    return tuple(sorted(assets, key=lambda asset: (asset.fun.INDEX, _rank(asset.id), _rank(asset.fun))))


class WildFungibility(IntEnum):
    """Either sort of asset."""

    Fungible = 0
    NonFungible = 1


WildFungibilityField = Annotated[WildFungibility, names(WildFungibility)]


class WildAsset(Variants):
    """A wildcard over holding."""

    __slots__ = ()


@variant(0)
class All(WildAsset):
    """Everything."""


@variant(1)
class AllOf(WildAsset):
    """Everything of a class."""

    id: AssetId
    fun: WildFungibilityField


@variant(2)
class AllCounted(WildAsset):
    """Everything, up to a count."""

    inner: CompactU32


@variant(3)
class AllOfCounted(WildAsset):
    """Everything of a class, up to a count."""

    id: AssetId
    fun: WildFungibilityField
    count: CompactU32


class AssetFilter(Variants):
    """Named assets or a wildcard."""

    __slots__ = ()


@variant(0)
class Definite(AssetFilter):
    """These assets."""

    inner: Assets


@variant(1)
class Wild(AssetFilter):
    """The assets that a wildcard matches."""

    inner: WildAsset


class AssetTransferFilter(Variants):
    """Which assets move, and how."""

    __slots__ = ()


@variant(0)
class Teleport(AssetTransferFilter):
    """Burnt here, minted there."""

    inner: AssetFilter


@variant(1)
class ReserveDeposit(AssetTransferFilter):
    """Kept here, derivatives there."""

    inner: AssetFilter


@variant(2)
class ReserveWithdraw(AssetTransferFilter):
    """Derivatives burnt here, withdrawn there."""

    inner: AssetFilter
