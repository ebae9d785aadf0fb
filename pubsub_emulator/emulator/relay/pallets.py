"""The pallets of a relay chain, including those of the profile `accounts`."""

from typing import Final

from pubsub_emulator.emulator.relay.xcm_pallet import XcmPallet
from pubsub_emulator.runtime.accounts.sudo import Sudo
from pubsub_emulator.runtime.accounts.system_calls import SystemCalls
from pubsub_emulator.runtime.accounts.timestamp import Timestamp
from pubsub_emulator.runtime.accounts.transaction_payment import TransactionPayment
from pubsub_emulator.runtime.accounts.utility import Utility
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.pallet_pubsub import Broadcaster
from pubsub_emulator.runtime.relay.babe import Babe
from pubsub_emulator.runtime.relay.dmp import Dmp
from pubsub_emulator.runtime.relay.host_configuration import Configuration
from pubsub_emulator.runtime.relay.hrmp import Hrmp
from pubsub_emulator.runtime.relay.inclusion import ParaInclusion
from pubsub_emulator.runtime.relay.message_queue import MessageQueue
from pubsub_emulator.runtime.relay.paras import Paras
from pubsub_emulator.runtime.relay.registrar import Registrar
from pubsub_emulator.runtime.relay.session import Session

ACCOUNTS: Final[tuple[type[Hooks], ...]] = (
    SystemCalls,
    Timestamp,
    Utility,
    TransactionPayment,
    XcmPallet,
    Sudo,
)
"""The pallets of the profile `accounts`."""

_CORE: Final[tuple[type[Hooks], ...]] = (
    Babe,
    Balances,
    Session,
    Configuration,
    ParaInclusion,
    Paras,
    Dmp,
    Hrmp,
)
RELAY: Final = Runtime((*_CORE, Registrar, MessageQueue, Broadcaster, *ACCOUNTS))
"""All pallets of a relay chain, except those that `RelayConfig.added` adds."""
