"""The pallets of a parachain."""

from typing import Annotated, Final

from pubsub_emulator.primitives import scale
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
from pubsub_emulator.runtime.framework.codecs import U32, para_id
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, Other, dispatchable
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.calls import SubscriberCalls
from pubsub_emulator.runtime.pallet_subscriber.handler import CONSUMER
from pubsub_emulator.runtime.parachain.storage import AURA, PARACHAIN_INFO, PARACHAIN_SYSTEM

Horizontal = Annotated[
    dict[ParaId, list[chains.InboundHrmpMessage]],
    scale.sorted_map(para_id, scale.vec(chains.hrmp_message)),
]


MAX_MESSAGE: Final = 65_531
"""The maximum length of an upward message in bytes."""


class ParachainSystem(Hooks):
    """The calls of `ParachainSystem`.

    The inherent's call is in bodies of blocks and is never dispatched.
    """

    pallet = PARACHAIN_SYSTEM

    @dispatchable(0, weight=Weight(0, 0))
    def set_validation_data(  # noqa: PLR0917  # the inherent's own parts
        self,
        storage: Storage,
        origin: Origin,
        relay_parent_number: RelayBlockNumber,
        relay_parent_storage_root: Hash,
        relay_chain_state: list[bytes],
        downward_messages: Annotated[
            list[chains.InboundDownwardMessage], scale.vec(chains.downward_message)
        ],
        horizontal_messages: Horizontal,
        messages_used: U32,
        /,
    ) -> None:
        """The inherent: relay parent, its storage proof, and all messages since the parent's.

        Errors: `BadOrigin`.
        """
        del storage, origin, relay_parent_number, relay_parent_storage_root, relay_chain_state
        del downward_messages, horizontal_messages, messages_used
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
