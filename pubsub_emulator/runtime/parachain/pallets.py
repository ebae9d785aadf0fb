"""The pallets of a parachain."""

from dataclasses import dataclass
from typing import Annotated, Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.type_info import Field, Parameter
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.accounts.publisher import Publisher, Sent
from pubsub_emulator.runtime.accounts.sudo import Sudo
from pubsub_emulator.runtime.accounts.system_calls import UpgradableSystem
from pubsub_emulator.runtime.accounts.timestamp import Timestamp
from pubsub_emulator.runtime.accounts.transaction_payment import TransactionPayment
from pubsub_emulator.runtime.accounts.utility import Utility
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework import message_chains as chains
from pubsub_emulator.runtime.framework.codecs import hash_codec, relay_number
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, Other, dispatchable
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import header_codec
from pubsub_emulator.runtime.pallet_subscriber.calls import SubscriberCalls
from pubsub_emulator.runtime.pallet_subscriber.handler import CONSUMER
from pubsub_emulator.runtime.parachain.storage import AURA, PARACHAIN_INFO, PARACHAIN_SYSTEM

_INHERENT: Final = "cumulus_pallet_parachain_system::parachain_inherent"


@dataclass(frozen=True, slots=True)
class PersistedValidationData:
    """The input of a block that the validators of the relay chain know."""

    parent_head: bytes
    relay_parent_number: RelayBlockNumber
    relay_parent_storage_root: Hash
    max_pov_size: int


@dataclass(frozen=True, slots=True)
class BasicParachainInherentData:
    """The first argument of the inherent: all but the messages."""

    validation_data: PersistedValidationData
    relay_chain_state: list[bytes]
    relay_parent_descendants: list[Header]
    collator_peer_id: bytes | None


@dataclass(frozen=True, slots=True)
class InboundMessagesData:
    """The second argument of the inherent: the messages."""

    downward_messages: chains.Abridged[chains.InboundDownwardMessage, chains.HashedMessage]
    horizontal_messages: chains.Abridged[
        tuple[ParaId, chains.InboundHrmpMessage], tuple[ParaId, chains.HashedMessage]
    ]


_HEAD: Final = scale.bytes_.described(
    type_info.wrapper(
        "polkadot_parachain_primitives::primitives::HeadData", type_info.BYTES, "Vec<u8>"
    )
)
_validation_data: Final[Codec[PersistedValidationData]] = struct(
    PersistedValidationData,
    _HEAD,
    relay_number,
    hash_codec,
    scale.u32,
    rust="polkadot_primitives::v8::PersistedValidationData",
    params=(Parameter("H", type_info.H256), Parameter("N", type_info.U32)),
)
_nodes: Final = scale.vec(scale.bytes_).described(
    type_info.struct(
        "sp_trie::storage_proof::StorageProof",
        trie_nodes=type_info.Composite(
            ("BTreeSet",),
            (Field(type_info.SequenceOf(type_info.BYTES)),),
            (Parameter("T", type_info.BYTES),),
        ),
    )
)
_peer: Final = scale.option(scale.bytes_.described(type_info.bounded(type_info.U8)))
basic_inherent_data: Final[Codec[BasicParachainInherentData]] = struct(
    BasicParachainInherentData,
    _validation_data,
    _nodes,
    scale.vec(header_codec),
    _peer,
    rust=f"{_INHERENT}::BasicParachainInherentData",
)
inbound_messages_data: Final[Codec[InboundMessagesData]] = struct(
    InboundMessagesData,
    chains.abridged_downward,
    chains.abridged_horizontal,
    rust=f"{_INHERENT}::InboundMessagesData",
)

MAX_MESSAGE: Final = 65_531
"""The maximum length of an upward message in bytes."""


class ParachainSystem(Hooks):
    """The calls of `ParachainSystem`.

    The inherent's call is part of each block's body, but it is never dispatched.
    """

    pallet = PARACHAIN_SYSTEM

    @dispatchable(0, weight=Weight(0, 0))
    def set_validation_data(
        self,
        storage: Storage,
        origin: Origin,
        data: Annotated[BasicParachainInherentData, basic_inherent_data],
        inbound_messages_data: Annotated[InboundMessagesData, inbound_messages_data],
        /,
    ) -> None:
        """The inherent: relay parent, its storage proof, and the messages since the parent's.

        Errors: `BadOrigin`.
        """
        del storage, origin, data, inbound_messages_data
        raise BadOrigin

    @dispatchable(1, weight=Weight(1_000_000_000, 0))
    def sudo_send_upward_message(self, storage: Storage, origin: Origin, message: bytes, /) -> None:
        """Send a message to the relay chain as it is.

        Errors: `BadOrigin` unless root; `Other` above 65,531 bytes.
        """
        ensure_root(origin)
        if len(message) > MAX_MESSAGE:
            raise Other
        storage.log.append(Sent(message))


class Aura(Hooks):
    """The pallet of the collators that take turns."""

    pallet = AURA


class Consumer(Hooks):
    """The pallet of the values that the handler `store` writes."""

    pallet = CONSUMER


class ParachainInfo(Hooks):
    """The pallet of the parachain's id."""

    pallet = PARACHAIN_INFO


PARACHAIN: Final = Runtime(
    (
        UpgradableSystem,
        ParachainSystem,
        Timestamp,
        Balances,
        Aura,
        Utility,
        TransactionPayment,
        SubscriberCalls,
        Publisher,
        Consumer,
        ParachainInfo,
        Sudo,
    )
)
"""All pallets of a parachain."""
