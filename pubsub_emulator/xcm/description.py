"""Descriptions of XCM types for metadata.

They are derived from the shapes of the codecs and have the paths of Rust's crates.
"""

from functools import lru_cache
from typing import Any, Final

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.type_info import (
    ArrayOf,
    CompactOf,
    Field,
    SequenceOf,
    TypeInfo,
    Variant,
    Variants,
)
from pubsub_emulator.primitives.weights import weight_info
from pubsub_emulator.xcm.assets import Asset
from pubsub_emulator.xcm.instructions import XCM
from pubsub_emulator.xcm.location import Location
from pubsub_emulator.xcm.outcome import WEIGHT, XCM_ERROR, XcmErrorKind
from pubsub_emulator.xcm.schema import AnyXcm, Kind

_V5: Final = "staging_xcm::v5"
_RUST: Final = {
    "BodyId": "xcm::v3::junction::BodyId",
    "BodyPart": "xcm::v3::junction::BodyPart",
    "DoubleEncoded": "xcm::double_encoded::DoubleEncoded",
    "MaybeErrorCode": "xcm::v3::MaybeErrorCode",
    "OriginKind": "xcm::v3::OriginKind",
    "WeightLimit": "xcm::v3::WeightLimit",
    "WildFungibility": f"{_V5}::asset::WildFungibility",
    "Instruction": f"{_V5}::Instruction",
    "InstructionError": f"{_V5}::traits::InstructionError",
    "Outcome": f"{_V5}::traits::Outcome",
}
_MODULES: Final = {
    "assets": "asset::",
    "location": "location::",
    "response": "",
    "instructions": "",
    "outcome": "",
}
_XCM: Final = type_info.Named("Xcm")


def _path(kind: type[object]) -> tuple[str, ...]:
    name = kind.__name__
    known = _RUST.get(name)
    if known is not None:
        return type_info.path(known)
    module = kind.__module__.rsplit(".", 1)[-1]
    inner = "junction::" if name in {"Junction", "NetworkId"} else _MODULES[module]
    return type_info.path(f"{_V5}::{inner}{name}")


@lru_cache(maxsize=512)
def describe(codec: AnyXcm) -> TypeInfo:
    """Return the description of an XCM type.

    Raises `DefensiveFailure` for a shape that has none.
    """
    if codec is XCM:
        return _XCM
    if codec is WEIGHT:
        return weight_info
    if codec is XCM_ERROR:
        return _error()
    kind, size, parts, declared = codec.shape
    match kind:
        case Kind.UINT:
            return type_info.Primitive(f"u{size}")
        case Kind.COMPACT:
            return CompactOf(type_info.Primitive(f"u{size}"))
        case Kind.BOOL:
            return type_info.BOOL
        case Kind.FIXED if size is not None:
            return ArrayOf(size, type_info.U8)
        case Kind.BYTES:
            return type_info.BYTES if size is None else type_info.bounded(type_info.U8)
        case Kind.NAMES:
            return Variants(
                _path(declared), tuple(Variant(member.name, int(member)) for member in declared)
            )
        case Kind.OPTION:
            return type_info.option(describe(parts[0]))
        case Kind.SEQUENCE:
            return _sequence(parts[0], size)
        case Kind.JUNCTIONS:
            return _junctions(parts[0])
        case Kind.TUPLE:
            return type_info.TupleOf(tuple(describe(part) for part in parts))
        case Kind.STRUCT | Kind.VARIANTS:
            return _declared(declared)
    raise DefensiveFailure(f"no description of {codec.name}")


def _sequence(item: AnyXcm, size: int | None) -> TypeInfo:
    described = describe(item)
    if item is Asset.codec:
        return type_info.wrapper(f"{_V5}::asset::Assets", SequenceOf(described), "Vec<Asset>")
    return SequenceOf(described) if size is None else type_info.bounded(described)


def _fields(kind: Any) -> tuple[Field, ...]:
    return tuple(
        Field(describe(codec), None if name == "inner" else name.rstrip("_"))
        for name, codec in kind.FIELDS
    )


@lru_cache(maxsize=256)
def _declared(kind: Any) -> TypeInfo:
    variants = getattr(kind, "VARIANTS", None)
    if variants is None:
        return type_info.Composite(_path(kind), _fields(kind))
    return Variants(
        _path(kind),
        tuple(
            Variant(variants[index].__name__.rstrip("_"), index, _fields(variants[index]))
            for index in sorted(variants)
        ),
    )


def _junctions(junction: AnyXcm) -> TypeInfo:
    described = describe(junction)
    lengths = ((f"X{count}", count, ArrayOf(count, described)) for count in range(1, 9))
    return type_info.variants(f"{_V5}::junctions::Junctions", ("Here", 0), *lengths)


def _error() -> TypeInfo:
    fields = {
        XcmErrorKind.Trap: (Field(type_info.U64),),
        XcmErrorKind.WeightLimitReached: (Field(weight_info),),
    }
    kinds = tuple(Variant(kind.name, kind, fields.get(kind, ())) for kind in XcmErrorKind)
    return Variants(type_info.path("xcm::v5::traits::Error"), kinds)


@lru_cache(maxsize=1)
def type_names() -> dict[str, TypeInfo]:
    """Return the types that descriptions of XCM refer to by name.

    Versioned messages and locations are among them.
    """
    message = type_info.wrapper(
        f"{_V5}::Xcm", SequenceOf(describe(XCM.shape.parts[0])), "Vec<Instruction>"
    )
    return {
        "Xcm": message,
        "VersionedXcm": type_info.variants("xcm::VersionedXcm", ("V5", 5, _XCM)),
        "VersionedLocation": type_info.variants(
            "xcm::VersionedLocation", ("V5", 5, describe(Location.codec))
        ),
    }
