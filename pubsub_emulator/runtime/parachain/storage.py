"""The storage items of `Aura`, `ParachainSystem` and `ParachainInfo`."""

from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.codecs import hash_by_para, hash_codec, para_id
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.pallet import Pallet

PARACHAIN_SYSTEM: Final = Pallet("ParachainSystem", 1, "cumulus_pallet_parachain_system")
AURA: Final = Pallet("Aura", 23, "pallet_aura")
PARACHAIN_INFO: Final = Pallet("ParachainInfo", 105, "staging_parachain_info")

_keys: Final[Codec[tuple[bytes, ...]]] = (
    scale.vec(scale.fixed(32)).map("Vec<[u8; 32]>", tuple, list).kept()
)

_about: Final = "The current authority set: Ed25519 keys, in turn order."
AUTHORITIES: Final = StorageValue(AURA, "Authorities", _about, _keys, ())
_downward: Final = "The head of the hash chain of downward messages seen so far."
LAST_DMQ_MQC_HEAD: Final[StorageValue[Hash, Hash]] = StorageValue(
    PARACHAIN_SYSTEM, "LastDmqMqcHead", _downward, hash_codec, Hash(bytes(32))
)
_horizontal: Final = "The heads of the hash chains of horizontal messages, by sender."
LAST_HRMP_MQC_HEADS: Final = StorageValue(
    PARACHAIN_SYSTEM, "LastHrmpMqcHeads", _horizontal, hash_by_para, {}
)
PARACHAIN_ID: Final[StorageValue[ParaId, ParaId]] = StorageValue(
    PARACHAIN_INFO, "ParachainId", "The id of this parachain.", para_id, ParaId(100)
)
