"""The relay-side pallet of pub-sub.

Parachains publish entries, and subscribers read them through proofs. The FRAME pallet is called
`Broadcaster`, and its storage prefix, calls and events have this name.

Read in this order: `config`, `storage`, `events` and `pallet`, then the logic that these call
(`registry`, `publish`, `expiry`, `scan`), and last `try_state` and `genesis`.
"""

from pubsub_emulator.runtime.pallet_pubsub.config import Config as Config
from pubsub_emulator.runtime.pallet_pubsub.config import ForcedDeposit as ForcedDeposit
from pubsub_emulator.runtime.pallet_pubsub.config import Registrar as Registrar
from pubsub_emulator.runtime.pallet_pubsub.config import TtlPolicy as TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.events import Error as Error
from pubsub_emulator.runtime.pallet_pubsub.genesis import GenesisPublisher as GenesisPublisher
from pubsub_emulator.runtime.pallet_pubsub.genesis import genesis_rows as genesis_rows
from pubsub_emulator.runtime.pallet_pubsub.pallet import Broadcaster as Broadcaster
