"""The runtime APIs that can be called here, and their types."""

from typing import Final

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.hashing import blake2_64
from pubsub_emulator.primitives.type_info import (
    BYTES,
    U8,
    U32,
    U128,
    Parameter,
    SequenceOf,
    TypeInfo,
    option,
    result,
    struct,
)
from pubsub_emulator.primitives.weights import weight_info
from pubsub_emulator.runtime.framework.definitions import RUNTIME_VERSION, Api, ApiMethod
from pubsub_emulator.runtime.framework.dispatch import dispatch_error
from pubsub_emulator.runtime.framework.pallet import described
from pubsub_emulator.runtime.framework.relay_request import relay_proof_request
from pubsub_emulator.runtime.framework.validity import VALIDITY as _VALIDITY
from pubsub_emulator.runtime.framework.validity import valid_transaction
from pubsub_emulator.runtime.metadata.outer import CALL, EVENT, ORIGIN, UNCHECKED_EXTRINSIC

_OPAQUE: Final = type_info.wrapper("sp_core::OpaqueMetadata", BYTES, "Vec<u8>")
_CLASS: Final = type_info.enum(
    "frame_support::dispatch::DispatchClass", "Normal", "Operational", "Mandatory"
)
_PAYS: Final = type_info.enum("frame_support::dispatch::Pays", "Yes", "No")
_DISPATCH_ERROR: Final = described(dispatch_error)
_INVALID: Final = type_info.Variants(
    type_info.path(f"{_VALIDITY}::InvalidTransaction"),
    tuple(
        type_info.Variant(name, index, (type_info.Field(U8),) if name == "Custom" else ())
        for index, name in enumerate(
            (
                "Call",
                "Payment",
                "Future",
                "Stale",
                "BadProof",
                "AncientBirthBlock",
                "ExhaustsResources",
                "Custom",
                "BadMandatory",
                "MandatoryValidation",
                "BadSigner",
                "IndeterminateImplicit",
                "UnknownOrigin",
            )
        )
    ),
)
_UNKNOWN: Final = type_info.variants(
    f"{_VALIDITY}::UnknownTransaction",
    ("CannotLookup", 0),
    ("NoUnsignedValidator", 1),
    ("Custom", 2, U8),
)
VALIDITY_ERROR: Final = type_info.variants(
    f"{_VALIDITY}::TransactionValidityError", ("Invalid", 0, _INVALID), ("Unknown", 1, _UNKNOWN)
)
_SOURCE: Final = type_info.enum(f"{_VALIDITY}::TransactionSource", "InBlock", "Local", "External")
_PAYMENT: Final = "pallet_transaction_payment::types"
_BALANCE: Final = Parameter("Balance", U128)
_OF: Final = (_BALANCE, Parameter("Weight", weight_info))
_DISPATCH_INFO: Final = struct(
    f"{_PAYMENT}::RuntimeDispatchInfo", *_OF, weight=weight_info, class_=_CLASS, partial_fee=U128
)
_INCLUSION_FEE: Final = struct(
    f"{_PAYMENT}::InclusionFee", _BALANCE, base_fee=U128, len_fee=U128, adjusted_weight_fee=U128
)
_FEE_DETAILS: Final = struct(
    f"{_PAYMENT}::FeeDetails", _BALANCE, inclusion_fee=option(_INCLUSION_FEE), tip=U128
)
_POST: Final = struct(
    "frame_support::dispatch::PostDispatchInfo", actual_weight=option(weight_info), pays_fee=_PAYS
)
_WITH_POST_INFO: Final = struct(
    "sp_runtime::DispatchErrorWithPostInfo",
    Parameter("Info", _POST),
    post_info=_POST,
    error=_DISPATCH_ERROR,
)
_ACCOUNT: Final = type_info.ACCOUNT_ID
_MESSAGE: Final = type_info.Named("VersionedXcm")
_EFFECTS: Final = struct(
    "xcm_runtime_apis::dry_run::CallDryRunEffects",
    Parameter("Event", EVENT),
    execution_result=result(_POST, _WITH_POST_INFO),
    emitted_events=SequenceOf(EVENT),
    local_xcm=option(_MESSAGE),
    forwarded_xcms=SequenceOf(
        type_info.TupleOf((type_info.Named("VersionedLocation"), SequenceOf(_MESSAGE)))
    ),
)
_DRY_RUN_ERROR: Final = type_info.enum(
    "xcm_runtime_apis::dry_run::Error", "Unimplemented", "VersionedConversionFailed"
)


def _method(name: str, output: TypeInfo, docs: str, **inputs: TypeInfo) -> ApiMethod:
    return ApiMethod(
        name, tuple((key.rstrip("_"), info) for key, info in inputs.items()), output, docs
    )


_VERSION: Final = _method("version", RUNTIME_VERSION, "Returns the version of the runtime.")
_AT_VERSION: Final = (
    "Returns the metadata at a given version, `None` for one that is not supported."
)
_METADATA: Final = (
    _method("metadata", _OPAQUE, "Returns the metadata of a runtime, version 14."),
    _method("metadata_at_version", option(_OPAQUE), _AT_VERSION, version=U32),
    _method("metadata_versions", SequenceOf(U32), "Returns the supported metadata versions."),
)
_ARGUMENTS: Final[dict[str, TypeInfo]] = {
    "source": _SOURCE,
    "tx": UNCHECKED_EXTRINSIC,
    "block_hash": type_info.H256,
}
_VALID: Final = result(described(valid_transaction), VALIDITY_ERROR)
_VALIDATE: Final = _method(
    "validate_transaction", _VALID, "Validate the transaction.", **_ARGUMENTS
)
_NONCE: Final = _method(
    "account_nonce", U32, "Get current account nonce of given `AccountId`.", account=_ACCOUNT
)
_FEES: Final = (
    _method(
        "query_info", _DISPATCH_INFO, "Weight, class and fee.", uxt=UNCHECKED_EXTRINSIC, len=U32
    ),
    _method(
        "query_fee_details", _FEE_DETAILS, "The parts of the fee.", uxt=UNCHECKED_EXTRINSIC, len=U32
    ),
    _method("query_weight_to_fee", U128, "What a weight costs.", weight=weight_info),
    _method("query_length_to_fee", U128, "What a length costs.", length=U32),
)
_KEPT: Final = "Dry run a call: what it would do, with nothing kept."
_DRY_RUN: Final = _method(
    "dry_run_call",
    result(_EFFECTS, _DRY_RUN_ERROR),
    _KEPT,
    origin=ORIGIN,
    call=CALL,
    result_xcms_version=U32,
)
_QUEUE: Final = "The `TaggedTransactionQueue` api trait for interfering with the transaction queue."
APIS: Final = (
    Api(
        "Core",
        5,
        (_VERSION,),
        "The `Core` runtime api that every Substrate runtime needs to implement.",
    ),
    Api(
        "Metadata", 2, _METADATA, "The `Metadata` api trait that returns metadata for the runtime."
    ),
    Api("TaggedTransactionQueue", 3, (_VALIDATE,), _QUEUE),
    Api("AccountNonceApi", 1, (_NONCE,), "The API to query account nonce."),
    Api("TransactionPaymentApi", 4, _FEES),
    Api("DryRunApi", 2, (_DRY_RUN,), "API for dry-running calls to gauge their effects."),
)
"""The APIs of every chain."""
_TO_PROVE: Final = _method(
    "keys_to_prove",
    described(relay_proof_request),
    "Returns the relay chain storage keys that the collator must prove.",
)
PARACHAIN_APIS: Final = (
    *APIS,
    Api(
        "KeyToIncludeInRelayProof",
        1,
        (_TO_PROVE,),
        "API for the relay chain storage keys that a parachain's blocks must prove.",
    ),
)
"""The APIs of a parachain (UP-1)."""

_OFFSET: Final = _method(
    "relay_parent_offset",
    U32,
    "Returns the number of descendants of the relay parent that a block must show.",
)
OFFSET_APIS: Final = (
    *PARACHAIN_APIS,
    Api(
        "RelayParentOffsetApi",
        1,
        (_OFFSET,),
        "API to tell the node side how the relay parent should be chosen.",
    ),
)
"""The APIs of a parachain with a relay parent offset (UP-12).

Collators take a runtime without this API for one without an offset.
"""


def versions_of(apis: tuple[Api, ...]) -> tuple[tuple[bytes, int], ...]:
    """Return the versions of APIs in the form of `RuntimeVersion.apis`."""
    return tuple((blake2_64(api.name.encode()), api.version) for api in apis)


API_VERSIONS: Final = versions_of(APIS)
"""The versions of the APIs of every chain."""
