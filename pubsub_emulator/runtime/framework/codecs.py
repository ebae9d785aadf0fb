"""The codecs of the types that pallets share, and the codec that an annotation names.

Fields of events and arguments of calls are annotated with one of these types, a list of it, or
`Annotated[type, codec]`. Numbers are `U32`, `U64` and `U128`. So each type is written only once.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final, get_args, get_origin

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.scale import AnyCodec, Codec
from pubsub_emulator.primitives.types import (
    AccountId,
    Balance,
    Hash,
    ParaId,
    PubsubKey,
    RelayBlockNumber,
)
from pubsub_emulator.primitives.weights import Weight, weight_codec

account_id: Final[Codec[AccountId]] = scale.fixed(32).named(
    "AccountId", AccountId, type_info.ACCOUNT_ID
)
hash_codec: Final[Codec[Hash]] = scale.fixed(32).named("H256", Hash, type_info.H256)
para_id: Final[Codec[ParaId]] = scale.u32.named("ParaId", ParaId, type_info.PARA_ID)
relay_number: Final[Codec[RelayBlockNumber]] = scale.u32.named("BlockNumber", RelayBlockNumber)
balance: Final[Codec[Balance]] = scale.u128.named("Balance", Balance)
pubsub_key: Final[Codec[PubsubKey]] = scale.fixed(32).named("[u8; 32]", PubsubKey)


def _read_only(hashes: dict[ParaId, Hash]) -> Mapping[ParaId, Hash]:
    return MappingProxyType(hashes)


hash_by_para: Final = (
    scale.sorted_map(para_id, hash_codec).map("BTreeMap<ParaId, H256>", _read_only, dict).kept()
)

U32 = Annotated[int, scale.u32]
U64 = Annotated[int, scale.u64]
U128 = Annotated[int, scale.u128]
CompactU128 = Annotated[int, scale.compact_of(128)]

_CODECS: Final[Mapping[object, AnyCodec]] = {
    AccountId: account_id,
    Hash: hash_codec,
    ParaId: para_id,
    RelayBlockNumber: relay_number,
    Balance: balance,
    PubsubKey: pubsub_key,
    Weight: weight_codec,
    bool: scale.boolean,
    bytes: scale.bytes_,
}


def codec_of(annotation: object) -> AnyCodec:
    """Return the codec of an annotated field or argument.

    Raises `DefensiveFailure` if the annotation does not name one.
    """
    named = [argument for argument in get_args(annotation) if isinstance(argument, Codec)]
    if named:
        # With Annotated[Annotated[type, codec], codec], the outermost codec counts.
        return named[-1]
    if get_origin(annotation) in {list, Sequence}:
        return scale.vec(codec_of(get_args(annotation)[0]))
    codec = _CODECS.get(annotation)
    if codec is None:
        raise DefensiveFailure(f"{annotation} names no codec; write Annotated[type, codec]")
    return codec
