"""The relay chain's profile `accounts`: its additional pallets, its signed extrinsics, and its `:code`.

:code  Vec<u8> spec name, u32 spec version, blake2b-256 of the metadata, version 16
"""

from typing import Final

from pubsub_emulator.emulator.relay.xcm_pallet import XcmPallet
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes, u32
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber, Slot
from pubsub_emulator.runtime.accounts.apply import Signing, apply_signed
from pubsub_emulator.runtime.accounts.genesis import endow
from pubsub_emulator.runtime.accounts.sudo import Sudo
from pubsub_emulator.runtime.accounts.system_calls import SystemCalls
from pubsub_emulator.runtime.accounts.timestamp import Timestamp
from pubsub_emulator.runtime.accounts.utility import Utility
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.calls import CallTable
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition, RuntimeVersion
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome
from pubsub_emulator.runtime.framework.executive import BlockWeights, NormalRoom
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.validity import Room
from pubsub_emulator.runtime.metadata import metadata
from pubsub_emulator.runtime.metadata.apis import API_VERSIONS, APIS
from pubsub_emulator.runtime.relay.babe import Babe, current_slot
from pubsub_emulator.runtime.relay.dmp import Dmp
from pubsub_emulator.xcm.description import type_names

SPEC_NAME: Final = "pubsub-relay"
SPEC_VERSION: Final = 1
CRATE: Final = "pubsub_relay_runtime"


BLOCK_LENGTH: Final = 5 * 1024 * 1024
NORMAL_LENGTH: Final = BLOCK_LENGTH * 3 // 4
"""Bytes of signed extrinsics in one block."""
_VERSION: Final = RuntimeVersion(SPEC_NAME, SPEC_VERSION, API_VERSIONS)


class RelayAccounts:
    """The pallets of the profile, and the relay chain's signed extrinsics."""

    definition: RuntimeDefinition
    calls: CallTable
    signing: Signing

    def __init__(self, weights: BlockWeights, genesis_slot: Slot, balances: Balances, dmp: Dmp, babe: Babe) -> None:
        self._weights = weights
        self._genesis_slot = genesis_slot
        self._balances = balances
        self._babe = babe
        self._utility = Utility()
        self._sudo = Sudo()

        def send(storage: Storage, para: ParaId, message: bytes) -> None:
            dmp.queue_downward_message(storage, para, message, RelayBlockNumber(system.block_number(storage)))

        lengths = (NORMAL_LENGTH, BLOCK_LENGTH, BLOCK_LENGTH)
        calls = SystemCalls(_VERSION, (weights.max_block, weights.normal), lengths)
        self.made: tuple[Hooks, ...] = (calls, Timestamp(current_slot), self._utility, XcmPallet(send), self._sudo)

    def bind(self, pallets: tuple[Hooks, ...]) -> None:
        """Set all pallets of the chain, once, so that their calls can be decoded."""
        self.definition = RuntimeDefinition(CRATE, _VERSION, pallets, APIS, parachain_origins=True)
        self.calls = self._utility.calls = self._sudo.calls = CallTable(pallets)
        self.signing = Signing(self.calls, self._balances, SPEC_VERSION)

    def apply(self, storage: Storage, index: int, raw: bytes, room: Room) -> DispatchOutcome:
        """Run a signed extrinsic. Raises as `apply_signed`."""
        return apply_signed(self.signing, storage, index, raw, room)

    def room(self, storage: Storage) -> NormalRoom:
        """The room that is left in the block begun in `storage`."""
        return NormalRoom(storage, self._weights, NORMAL_LENGTH)

    def code(self) -> bytes:
        """The value of `:code`, which identifies this runtime to clients that compare its hash."""
        of_metadata = blake2_256(metadata(16, self.definition, type_names))
        return encode_bytes(SPEC_NAME.encode()) + u32.encode(SPEC_VERSION) + of_metadata

    def genesis(self, storage: Storage) -> None:
        """Write the profile's part of block 0."""
        storage.put(CODE, self.code())
        self._babe.genesis(storage, self._genesis_slot)
        endow(storage, self._balances)
