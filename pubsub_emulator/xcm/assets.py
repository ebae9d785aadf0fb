"""`Asset`, `Assets` and the filters over them, as in XCM v5."""

from collections.abc import Iterable
from enum import IntEnum
from itertools import pairwise
from typing import Annotated, Any, Final

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.xcm import schema
from pubsub_emulator.xcm.errors import XcmDecodeError
from pubsub_emulator.xcm.location import Location
from pubsub_emulator.xcm.schema import (
    Bytes4,
    Bytes8,
    Bytes16,
    Bytes32,
    CompactU32,
    CompactU128,
    RustEnum,
    Struct,
)

MAX_ITEMS_IN_ASSETS: Final = 20

AssetId = Location
"""An asset class is identified by a location and encoded as one."""


class AssetInstance(
    RustEnum,
    unnamed={
        0: ("Undefined", {}),
        1: ("Index", {"inner": CompactU128}),
        2: ("Array4", {"inner": Bytes4}),
        3: ("Array8", {"inner": Bytes8}),
        4: ("Array16", {"inner": Bytes16}),
        5: ("Array32", {"inner": Bytes32}),
    },
):
    """One instance of a non-fungible class."""


class Fungibility(RustEnum):
    """An amount, or an instance."""


@schema.variant(0)
class Fungible(Fungibility):
    """An amount, never zero."""

    inner: CompactU128


@schema.variant(1)
class NonFungible(Fungibility):
    """An instance."""

    inner: AssetInstance


def _without_zero(plain: schema.AnyXcm) -> schema.AnyXcm:
    """Return a codec of `Fungibility` that refuses an amount of zero, as upstream does."""
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

    return schema.XcmCodec(plain.name, encode, read, plain.shape)


Fungibility.codec = _without_zero(Fungibility.codec)


@schema.struct
class Asset(Struct):
    """An amount or an instance of a class."""

    id: AssetId
    fun: Fungibility


def _rank(value: Any) -> Any:
    """Return a key that orders values as Rust's derived `Ord` does.

    This is the order by discriminant, then by fields, and `None` before `Some`.
    """
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        # This is the order of `Junctions`: X1 before X2, then by content.
        return (len(value), *(_rank(item) for item in value))
    if isinstance(value, RustEnum):
        return (1, value.INDEX, *(_rank(getattr(value, name)) for name, _ in value.FIELDS))
    if isinstance(value, Struct):
        return tuple(_rank(getattr(value, name)) for name, _ in value.FIELDS)
    return value


def _in_order(first: Asset, second: Asset) -> bool:
    """Return whether `second` may follow `first` in `Assets`.

    Classes ascend. In a class, an amount comes before the instances, and these ascend.
    """
    if _rank(first.id) < _rank(second.id):
        return True
    if isinstance(first.fun, Fungible):
        return isinstance(second.fun, NonFungible)
    if isinstance(second.fun, Fungible):
        return False
    return bool((_rank(first.id), _rank(first.fun)) < (_rank(second.id), _rank(second.fun)))


_ASSETS: Final = schema.sequence(Asset.codec, MAX_ITEMS_IN_ASSETS)


def _encode_assets(assets: tuple[Asset, ...]) -> bytes:
    if not all(_in_order(first, second) for first, second in pairwise(assets)):
        raise ScaleError("assets are out of order or repeated")
    return _ASSETS.encode(assets)


def _read_assets(reader: Reader) -> tuple[Asset, ...]:
    start = reader.pos
    assets: tuple[Asset, ...] = _ASSETS.read(reader)
    if not all(_in_order(first, second) for first, second in pairwise(assets)):
        raise XcmDecodeError("assets are out of order or repeated", start)
    return assets


ASSETS: Final = schema.XcmCodec("Assets", _encode_assets, _read_assets, _ASSETS.shape)
"""`Assets`: sorted, without duplicates, at most 20. Encoding and decoding refuse any other list."""

Assets = Annotated[tuple[Asset, ...], ASSETS]


def sorted_assets(assets: Iterable[Asset]) -> tuple[Asset, ...]:
    """Return the assets in the order that `Assets` requires.

    Duplicates remain, and encoding refuses them.
    """
    return tuple(
        sorted(assets, key=lambda asset: (asset.fun.INDEX, _rank(asset.id), _rank(asset.fun)))
    )


class WildFungibility(IntEnum):
    """The sort of asset that a wildcard selects."""

    Fungible = 0
    NonFungible = 1


WildFungibilityField = Annotated[WildFungibility, schema.names(WildFungibility)]


class WildAsset(
    RustEnum,
    unnamed={
        0: ("All", {}),
        1: ("AllOf", {"id": AssetId, "fun": WildFungibilityField}),
        2: ("AllCounted", {"inner": CompactU32}),
        3: ("AllOfCounted", {"id": AssetId, "fun": WildFungibilityField, "count": CompactU32}),
    },
):
    """A wildcard over holding."""


class AssetFilter(
    RustEnum, unnamed={0: ("Definite", {"inner": Assets}), 1: ("Wild", {"inner": WildAsset})}
):
    """Named assets or a wildcard."""


class AssetTransferFilter(
    RustEnum,
    unnamed={
        0: ("Teleport", {"inner": AssetFilter}),
        1: ("ReserveDeposit", {"inner": AssetFilter}),
        2: ("ReserveWithdraw", {"inner": AssetFilter}),
    },
):
    """The assets that move, and the way in which they move."""
