"""The types that belong to a runtime as a whole.

They are its call, event, error, origin and hold reason, and its extrinsic. Their paths are those
under which clients know Polkadot's. The pallets' own enums are at `<crate>::pallet::Call` and so
on.
"""

from collections.abc import Iterable
from typing import Final

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.type_info import Field, Parameter, TypeInfo, Variant, path
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition
from pubsub_emulator.runtime.framework.dispatch import calls_of
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import MULTI_ADDRESS
from pubsub_emulator.runtime.framework.pallet import Pallet, described

CALL: Final = type_info.Named("RuntimeCall")
EVENT: Final = type_info.Named("RuntimeEvent")
ERROR: Final = type_info.Named("RuntimeError")
ORIGIN: Final = type_info.Named("OriginCaller")

_CALL_PARAMETER: Final = (Parameter("T"),)
_BOXED_CALL: Final = "Box<<T as Config>::RuntimeCall>"


def call_enum(pallet: Hooks) -> TypeInfo | None:
    """Return `pallet::Call`, or `None` for a pallet without calls."""
    infos = calls_of(type(pallet))
    if not infos:
        return None
    variants = []
    for info in infos:
        arguments = zip(info.arguments, info.codecs, strict=True)
        fields = tuple(_field(described(codec), name) for name, codec in arguments)
        variants.append(Variant(info.name, info.index, fields, type_info.docs(info.docs)))
    return type_info.Variants(
        path(f"{pallet.pallet.crate}::pallet::Call"), tuple(variants), _CALL_PARAMETER
    )


def _field(info: TypeInfo, name: str) -> Field:
    """Return a field with the name of its type.

    subxt needs the name `Box<…>` to store a call that contains calls, which would be infinitely
    large without the box.
    """
    return Field(info, name, _BOXED_CALL if info == CALL else type_info.rust_name(info))


def event_enum(pallet: Pallet) -> TypeInfo | None:
    """Return `pallet::Event`, or `None` for a pallet without events."""
    if not pallet.events:
        return None
    variants = []
    for _, event in sorted(pallet.events.items()):
        fields = tuple(_field(described(codec), name.rstrip("_")) for name, codec in event.CODECS)
        docs = type_info.docs(event.__doc__)
        variants.append(Variant(event.__name__, event.VARIANT, fields, docs))
    return type_info.Variants(
        path(f"{pallet.crate}::pallet::Event"), tuple(variants), _CALL_PARAMETER
    )


def error_enum(pallet: Pallet) -> TypeInfo | None:
    """Return `pallet::Error`, or `None` for a pallet without errors."""
    if pallet.errors is None:
        return None
    variants = tuple(
        Variant(error.name, int(error), docs=type_info.docs(error.doc)) for error in pallet.errors
    )
    return type_info.Variants(path(f"{pallet.crate}::pallet::Error"), variants, _CALL_PARAMETER)


def _outer(rust: str, inner: Iterable[tuple[Pallet, TypeInfo | None]]) -> type_info.Variants:
    variants = tuple(
        Variant(pallet.name, pallet.index, (Field(info),))
        for pallet, info in inner
        if info is not None
    )
    return type_info.Variants(path(rust), variants)


def type_names(runtime: RuntimeDefinition) -> dict[str, TypeInfo]:
    """Return the types behind the `Named` types on this chain, except those of XCM."""
    crate = runtime.crate
    pallets = tuple(hooks.pallet for hooks in runtime.pallets)
    return {
        "RuntimeCall": _outer(
            f"{crate}::RuntimeCall", ((hooks.pallet, call_enum(hooks)) for hooks in runtime.pallets)
        ),
        "RuntimeEvent": _outer(
            f"{crate}::RuntimeEvent", ((hooks, event_enum(hooks)) for hooks in pallets)
        ),
        "RuntimeError": _outer(
            f"{crate}::RuntimeError", ((hooks, error_enum(hooks)) for hooks in pallets)
        ),
        "OriginCaller": _origin_caller(crate, parachains=runtime.parachain_origins),
        "RuntimeHoldReason": _outer(
            f"{crate}::RuntimeHoldReason", ((hooks, _hold_reasons(hooks)) for hooks in pallets)
        ),
    }


def _hold_reasons(pallet: Pallet) -> TypeInfo | None:
    return (
        type_info.enum(f"{pallet.crate}::pallet::HoldReason", *pallet.hold_reasons)
        if pallet.hold_reasons
        else None
    )


def _origin_caller(crate: str, *, parachains: bool) -> TypeInfo:
    raw = type_info.variants(
        "frame_support::dispatch::RawOrigin",
        ("Root", 0),
        ("Signed", 1, type_info.ACCOUNT_ID),
        ("None", 2),
        params=(Parameter("AccountId", type_info.ACCOUNT_ID),),
    )
    para = type_info.variants(
        "polkadot_runtime_parachains::origin::pallet::Origin", ("Parachain", 0, type_info.PARA_ID)
    )
    more = [("ParachainsOrigin", 50, para)] if parachains else []
    return type_info.variants(f"{crate}::OriginCaller", ("system", 0, raw), *more)


SIGNATURE: Final = type_info.Variants(
    path("sp_runtime::MultiSignature"),
    (
        Variant(
            "Ed25519",
            0,
            (Field(type_info.ArrayOf(64, type_info.U8), type_name="ed25519::Signature"),),
        ),
        Variant(
            "Sr25519",
            1,
            (Field(type_info.ArrayOf(64, type_info.U8), type_name="sr25519::Signature"),),
        ),
        Variant(
            "Ecdsa", 2, (Field(type_info.ArrayOf(65, type_info.U8), type_name="ecdsa::Signature"),)
        ),
    ),
)
ERA: Final = type_info.Variants(
    path("sp_runtime::generic::era::Era"),
    (
        Variant("Immortal", 0),
        *(Variant(f"Mortal{first}", first, (Field(type_info.U8),)) for first in range(1, 256)),
    ),
)
_MODE: Final = type_info.enum("frame_metadata_hash_extension::Mode", "Disabled", "Enabled")


_NONCE: Final = Field(type_info.CompactOf(type_info.U32), type_name="T::Nonce")
_TIP: Final = Field(type_info.CompactOf(type_info.U128), type_name="BalanceOf<T>")
_METADATA_HASH: Final = type_info.option(type_info.ArrayOf(32, type_info.U8))


def _extension(rust: str, signed: TypeInfo, *fields: Field) -> tuple[str, TypeInfo, TypeInfo]:
    return (
        rust.rpartition("::")[2],
        type_info.Composite(path(rust), fields, (Parameter("T"),)),
        signed,
    )


_SYSTEM: Final = "frame_system::extensions"
EXTENSIONS: Final = (
    _extension(f"{_SYSTEM}::check_non_zero_sender::CheckNonZeroSender", type_info.UNIT),
    _extension(f"{_SYSTEM}::check_spec_version::CheckSpecVersion", type_info.U32),
    _extension(f"{_SYSTEM}::check_tx_version::CheckTxVersion", type_info.U32),
    _extension(f"{_SYSTEM}::check_genesis::CheckGenesis", type_info.H256),
    _extension(
        f"{_SYSTEM}::check_mortality::CheckMortality", type_info.H256, Field(ERA, type_name="Era")
    ),
    _extension(f"{_SYSTEM}::check_nonce::CheckNonce", type_info.UNIT, _NONCE),
    _extension(f"{_SYSTEM}::check_weight::CheckWeight", type_info.UNIT),
    _extension("pallet_transaction_payment::ChargeTransactionPayment", type_info.UNIT, _TIP),
    _extension(
        "frame_metadata_hash_extension::CheckMetadataHash",
        _METADATA_HASH,
        Field(_MODE, "mode", "Mode"),
    ),
)
"""The extensions of an extrinsic in order.

Each has its identifier, the type of its part in the extrinsic, and that of its part that is only
signed.
"""

EXTRA: Final = type_info.TupleOf(tuple(info for _, info, _ in EXTENSIONS))
_PARTS: Final[dict[str, TypeInfo]] = {
    "Address": MULTI_ADDRESS,
    "Call": CALL,
    "Signature": SIGNATURE,
    "Extra": EXTRA,
}
UNCHECKED_EXTRINSIC: Final = type_info.Composite(
    path("sp_runtime::generic::unchecked_extrinsic::UncheckedExtrinsic"),
    (Field(type_info.BYTES),),
    tuple(Parameter(name, info) for name, info in _PARTS.items()),
)
HASHING: Final = type_info.Composite(path("sp_runtime::traits::BlakeTwo256"))
