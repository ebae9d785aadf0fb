"""The storage items of `Aura`, `ParachainSystem` and `ParachainInfo`."""

from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.abridged import (
    InboundMessageId,
    Marks,
    Progress,
    inbound_message_id,
)
from pubsub_emulator.runtime.framework.codecs import (
    hash_by_para,
    hash_codec,
    para_id,
    relay_number,
)
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.pallet import Pallet
from pubsub_emulator.runtime.framework.storage import Storage

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
_processed: Final = "The last downward message that was processed."
LAST_PROCESSED_DOWNWARD: Final[StorageValue[InboundMessageId, None]] = StorageValue(
    PARACHAIN_SYSTEM, "LastProcessedDownwardMessage", _processed, inbound_message_id
)
_processed_hrmp: Final = "The last horizontal message that was processed."
LAST_PROCESSED_HRMP: Final[StorageValue[InboundMessageId, None]] = StorageValue(
    PARACHAIN_SYSTEM, "LastProcessedHrmpMessage", _processed_hrmp, inbound_message_id
)
_watermark: Final = "The relay block up to which horizontal messages are processed."
HRMP_WATERMARK: Final[StorageValue[RelayBlockNumber, RelayBlockNumber]] = StorageValue(
    PARACHAIN_SYSTEM, "HrmpWatermark", _watermark, relay_number, RelayBlockNumber(0)
)
PARACHAIN_ID: Final[StorageValue[ParaId, ParaId]] = StorageValue(
    PARACHAIN_INFO, "ParachainId", "The id of this parachain.", para_id, ParaId(100)
)


def queue_progress(storage: Storage, last_relay_parent: RelayBlockNumber | None) -> Progress:
    """Return the parachain's progress in its message queues (UP-8).

    If it has not processed a message yet, all messages up to its last relay parent count as
    processed, as in Cumulus. Relay block 0 does not send messages.
    """
    start = InboundMessageId(last_relay_parent or RelayBlockNumber(0), 0)
    downward = LAST_PROCESSED_DOWNWARD.get(storage)
    horizontal = LAST_PROCESSED_HRMP.get(storage)
    marks = Marks(
        start if downward is None else downward, start if horizontal is None else horizontal
    )
    return Progress(marks, HRMP_WATERMARK.get(storage))
