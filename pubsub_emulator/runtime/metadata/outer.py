"""The types that belong to a runtime as a whole: its call, event, error, origin and hold reason, and its extrinsic.

Their paths are those that clients know Polkadot's by; the pallets' own enums are at `<crate>::pallet::Call` and so on.
"""

from collections.abc import Iterable
from typing import Final

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.type_info import (
    ACCOUNT_ID,
    BYTES,
    H256,
    PARA_ID,
    U8,
    U32,
    U128,
    UNIT,
    ArrayOf,
    CompactOf,
    Composite,
    Field,
    Named,
    Parameter,
    TypeInfo,
    Variant,
    Variants,
    path,
)
from pubsub_emulator.runtime.framework.address import MULTI_ADDRESS
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition
from pubsub_emulator.runtime.framework.dispatch import calls_of
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.pallet import Pallet, described

CALL: Final = Named("RuntimeCall")
EVENT: Final = Named("RuntimeEvent")
ERROR: Final = Named("RuntimeError")
ORIGIN: Final = Named("OriginCaller")

_CALL_PARAMETER: Final = (Parameter("T"),)
_BOXED_CALL: Final = "Box<<T as Config>::RuntimeCall>"


def call_enum(pallet: Hooks) -> TypeInfo | None:
    """`pallet::Call`, `None` for a pallet without calls."""
    infos = calls_of(type(pallet))
    if not infos:
        return None
    variants = tuple(
        Variant(
            info.name,
            info.index,
            tuple(_field(described(codec), name) for name, codec in zip(info.arguments, info.codecs, strict=True)),
            type_info.docs(info.docs),
        )
        for info in infos
    )
    return Variants(path(f"{pallet.pallet.crate}::pallet::Call"), variants, _CALL_PARAMETER)


def _field(info: TypeInfo, name: str) -> Field:
    """A field with its type as text, which clients need: to subxt it says what would be infinitely large."""
    return Field(info, name, _BOXED_CALL if info == CALL else type_info.rust_name(info))


def event_enum(pallet: Pallet) -> TypeInfo | None:
    """`pallet::Event`, `None` for a pallet without events."""
    if not pallet.events:
        return None
    variants = tuple(
        Variant(
            event.__name__,
            event.VARIANT,
            tuple(_field(described(codec), name.rstrip("_")) for name, codec in event.CODECS),
            type_info.docs(event.__doc__),
        )
        for _, event in sorted(pallet.events.items())
    )
    return Variants(path(f"{pallet.crate}::pallet::Event"), variants, _CALL_PARAMETER)


def error_enum(pallet: Pallet) -> TypeInfo | None:
    """`pallet::Error`, `None` for a pallet without errors."""
    if pallet.errors is None:
        return None
    variants = tuple(Variant(error.name, int(error), docs=type_info.docs(error.doc)) for error in pallet.errors)
    return Variants(path(f"{pallet.crate}::pallet::Error"), variants, _CALL_PARAMETER)


def _outer(rust: str, inner: Iterable[tuple[Pallet, TypeInfo | None]]) -> Variants:
    found = tuple(Variant(pallet.name, pallet.index, (Field(info),)) for pallet, info in inner if info is not None)
    return Variants(path(rust), found)


def type_names(runtime: RuntimeDefinition) -> dict[str, TypeInfo]:
    """The types behind the `Named` types on this chain, except those of XCM."""
    crate, pallets = runtime.crate, tuple(each.pallet for each in runtime.pallets)
    return {
        "RuntimeCall": _outer(f"{crate}::RuntimeCall", ((each.pallet, call_enum(each)) for each in runtime.pallets)),
        "RuntimeEvent": _outer(f"{crate}::RuntimeEvent", ((each, event_enum(each)) for each in pallets)),
        "RuntimeError": _outer(f"{crate}::RuntimeError", ((each, error_enum(each)) for each in pallets)),
        "OriginCaller": _origin_caller(crate, parachains=runtime.parachain_origins),
        "RuntimeHoldReason": _outer(f"{crate}::RuntimeHoldReason", ((each, _hold_reasons(each)) for each in pallets)),
    }


def _hold_reasons(pallet: Pallet) -> TypeInfo | None:
    return type_info.enum(f"{pallet.crate}::pallet::HoldReason", *pallet.hold_reasons) if pallet.hold_reasons else None


def _origin_caller(crate: str, *, parachains: bool) -> TypeInfo:
    raw = Variants(
        path("frame_support::dispatch::RawOrigin"),
        (Variant("Root", 0), Variant("Signed", 1, (Field(ACCOUNT_ID),)), Variant("None", 2)),
        (Parameter("AccountId", ACCOUNT_ID),),
    )
    variants = [Variant("system", 0, (Field(raw),))]
    if parachains:
        origin = Variants(
            path("polkadot_runtime_parachains::origin::pallet::Origin"), (Variant("Parachain", 0, (Field(PARA_ID),)),)
        )
        variants.append(Variant("ParachainsOrigin", 50, (Field(origin),)))
    return Variants((crate, "OriginCaller"), tuple(variants))


# The extrinsic

SIGNATURE: Final = Variants(
    path("sp_runtime::MultiSignature"),
    (
        Variant("Ed25519", 0, (Field(ArrayOf(64, U8), type_name="ed25519::Signature"),)),
        Variant("Sr25519", 1, (Field(ArrayOf(64, U8), type_name="sr25519::Signature"),)),
        Variant("Ecdsa", 2, (Field(ArrayOf(65, U8), type_name="ecdsa::Signature"),)),
    ),
)
ERA: Final = Variants(
    path("sp_runtime::generic::era::Era"),
    (Variant("Immortal", 0), *(Variant(f"Mortal{first}", first, (Field(U8),)) for first in range(1, 256))),
)
_MODE: Final = type_info.enum("frame_metadata_hash_extension::Mode", "Disabled", "Enabled")


def _extension(name: str, *fields: Field) -> Composite:
    parts = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_")
    return Composite(path(f"frame_system::extensions::{parts}::{name}"), fields, (Parameter("T"),))


EXTENSIONS: Final[tuple[tuple[str, TypeInfo, TypeInfo], ...]] = (
    ("CheckNonZeroSender", _extension("CheckNonZeroSender"), UNIT),
    ("CheckSpecVersion", _extension("CheckSpecVersion"), U32),
    ("CheckTxVersion", _extension("CheckTxVersion"), U32),
    ("CheckGenesis", _extension("CheckGenesis"), H256),
    ("CheckMortality", _extension("CheckMortality", Field(ERA, type_name="Era")), H256),
    ("CheckNonce", _extension("CheckNonce", Field(CompactOf(U32), type_name="T::Nonce")), UNIT),
    ("CheckWeight", _extension("CheckWeight"), UNIT),
    (
        "ChargeTransactionPayment",
        Composite(
            path("pallet_transaction_payment::ChargeTransactionPayment"),
            (Field(CompactOf(U128), type_name="BalanceOf<T>"),),
            (Parameter("T"),),
        ),
        UNIT,
    ),
    (
        "CheckMetadataHash",
        Composite(
            path("frame_metadata_hash_extension::CheckMetadataHash"), (Field(_MODE, "mode", "Mode"),), (Parameter("T"),)
        ),
        type_info.option(ArrayOf(32, U8)),
    ),
)
"""Identifier, the part in the extrinsic, and the part that is only signed; in order."""

EXTRA: Final = type_info.TupleOf(tuple(info for _, info, _ in EXTENSIONS))
UNCHECKED_EXTRINSIC: Final = Composite(
    path("sp_runtime::generic::unchecked_extrinsic::UncheckedExtrinsic"),
    (Field(BYTES),),
    (
        Parameter("Address", MULTI_ADDRESS),
        Parameter("Call", CALL),
        Parameter("Signature", SIGNATURE),
        Parameter("Extra", EXTRA),
    ),
)
HASHING: Final = Composite(path("sp_runtime::traits::BlakeTwo256"))
