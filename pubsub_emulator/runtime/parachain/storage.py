"""The storage items of `Aura`, `ParachainSystem` and `ParachainInfo`."""

from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.pallet_subscriber.storage import hash_, para_id

AUTHORITIES: Final[StorageValue[list[bytes], list[bytes]]] = StorageValue(
    "Aura", "Authorities", scale.vec(scale.fixed(32)), []
)
"""Ed25519 keys of the collators, in turn order."""

LAST_DMQ_MQC_HEAD: Final[StorageValue[Hash, Hash]] = StorageValue(
    "ParachainSystem", "LastDmqMqcHead", hash_, Hash(bytes(32))
)
LAST_HRMP_MQC_HEADS: Final[StorageValue[dict[ParaId, Hash], dict[ParaId, Hash]]] = StorageValue(
    "ParachainSystem", "LastHrmpMqcHeads", scale.sorted_map(para_id, hash_), {}
)
PARACHAIN_ID: Final[StorageValue[ParaId, ParaId]] = StorageValue("ParachainInfo", "ParachainId", para_id, ParaId(100))
