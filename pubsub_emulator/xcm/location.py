"""`Location`, its junctions, networks and bodies, as in XCM v5."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Final

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.xcm import schema
from pubsub_emulator.xcm.errors import XcmDecodeError
from pubsub_emulator.xcm.schema import (
    U8,
    U64,
    Bytes4,
    Bytes20,
    Bytes32,
    CompactU32,
    CompactU64,
    CompactU128,
    RustEnum,
)

MAX_JUNCTIONS: Final = 8


class NetworkId(
    RustEnum,
    unnamed={
        0: ("ByGenesis", {"inner": Bytes32}),
        1: ("ByFork", {"block_number": U64, "block_hash": Bytes32}),
        2: ("Polkadot", {}),
        3: ("Kusama", {}),
        7: ("Ethereum", {"chain_id": CompactU64}),
        8: ("BitcoinCore", {}),
        9: ("BitcoinCash", {}),
        10: ("PolkadotBulletin", {}),
    },
):
    """A consensus system.

    Discriminants 4 to 6 were networks that no longer exist.
    """


class BodyId(
    RustEnum,
    unnamed={
        0: ("Unit", {}),
        1: ("Moniker", {"inner": Bytes4}),
        2: ("Index", {"inner": CompactU32}),
        3: ("Executive", {}),
        4: ("Technical", {}),
        5: ("Legislative", {}),
        6: ("Judicial", {}),
        7: ("Defense", {}),
        8: ("Administration", {}),
        9: ("Treasury", {}),
    },
):
    """A pluralistic body."""


class BodyPart(
    RustEnum,
    unnamed={
        0: ("Voice", {}),
        1: ("Members", {"count": CompactU32}),
        2: ("Fraction", {"nom": CompactU32, "denom": CompactU32}),
        3: ("AtLeastProportion", {"nom": CompactU32, "denom": CompactU32}),
        4: ("MoreThanProportion", {"nom": CompactU32, "denom": CompactU32}),
    },
):
    """The part of a body that speaks."""


class Junction(
    RustEnum,
    unnamed={
        2: ("AccountIndex64", {"network": NetworkId | None, "index": CompactU64}),
        3: ("AccountKey20", {"network": NetworkId | None, "key": Bytes20}),
        4: ("PalletInstance", {"inner": U8}),
        5: ("GeneralIndex", {"inner": CompactU128}),
        6: ("GeneralKey", {"length": U8, "data": Bytes32}),
        8: ("Plurality", {"id": BodyId, "part": BodyPart}),
        9: ("GlobalConsensus", {"inner": NetworkId}),
    },
):
    """One step downwards from a location."""

    __slots__ = ()


@schema.variant(0)
class Parachain(Junction):
    """A parachain, seen from its relay chain."""

    inner: CompactU32


@schema.variant(1)
class AccountId32(Junction):
    """An account of 32 bytes."""

    network: NetworkId | None
    id: Bytes32


@schema.variant(7)
class OnlyChild(Junction):
    """The only child of a location."""


def _encode_junctions(junctions: Sequence[Junction]) -> bytes:
    if len(junctions) > MAX_JUNCTIONS:
        raise ScaleError(f"at most {MAX_JUNCTIONS} junctions, not {len(junctions)}")
    return bytes((len(junctions),)) + b"".join(
        [Junction.codec.encode(junction) for junction in junctions]
    )


def _read_junctions(plain: Reader) -> tuple[Junction, ...]:
    reader = schema.as_xcm_reader(plain)
    count = reader.u8()
    if count == 0:
        return ()
    if count > MAX_JUNCTIONS:
        raise XcmDecodeError(f"Junctions has no variant {count}", reader.pos - 1)
    # In Rust, `Arc<[Junction; n]>` counts as a level.
    reader.descend()
    junctions = tuple([Junction.codec.read(reader) for _ in range(count)])
    reader.ascend()
    return junctions


_JUNCTIONS: Final = schema.Shape(schema.Kind.JUNCTIONS, MAX_JUNCTIONS, (Junction.codec,))
JUNCTIONS: Final = schema.XcmCodec("Junctions", _encode_junctions, _read_junctions, _JUNCTIONS)
"""`Junctions`: `Here` (0) or `X1` to `X8`; the discriminant is their number."""

InteriorLocation = Annotated[tuple[Junction, ...], JUNCTIONS]


@schema.struct
class Location(schema.Struct):
    """A relative path: `parents` levels up (u8), then down the junctions of `interior`."""

    parents: U8
    interior: InteriorLocation


HERE: Final = Location(0, ())
PARENT: Final = Location(1, ())


# The cache pays, because every message of a parachain calls this.
@lru_cache(maxsize=4096)
def parachain(para: ParaId) -> Location:
    """Return a parachain as its relay chain sees it: `(0, [Parachain(para)])`."""
    return Location(0, (Parachain(para),))


def sibling(para: ParaId) -> Location:
    """Return a parachain as another parachain sees it: `(1, [Parachain(para)])`."""
    return Location(1, (Parachain(para),))


def as_parachain(location: Location) -> ParaId | None:
    """Return the parachain at `location`, seen from the relay chain.

    Returns `None` if the location is anything else.
    """
    if location.parents or len(location.interior) != 1:
        return None
    (only,) = location.interior
    return ParaId(only.inner) if isinstance(only, Parachain) else None
