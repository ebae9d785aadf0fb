"""The relay chain's profile `accounts`: its additional pallets, its signed extrinsics, and its `:code`.

:code  Vec<u8> spec name, u32 spec version, blake2b-256 of the metadata, version 16
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.emulator.relay import xcm_pallet
from pubsub_emulator.emulator.relay.xcm_pallet import XcmPallet
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes, u32
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber, Slot
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.accounts.apply import Signing, apply_signed
from pubsub_emulator.runtime.accounts.genesis import endow
from pubsub_emulator.runtime.accounts.sudo import Sudo
from pubsub_emulator.runtime.accounts.system_calls import SystemCalls
from pubsub_emulator.runtime.accounts.timestamp import Timestamp
from pubsub_emulator.runtime.accounts.transaction_payment import TransactionPayment
from pubsub_emulator.runtime.accounts.utility import Utility
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.calls import CallTable
from pubsub_emulator.runtime.framework.definitions import PalletDefinition, RuntimeDefinition, RuntimeVersion
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome
from pubsub_emulator.runtime.framework.executive import BlockWeights, NormalRoom
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.validity import Room
from pubsub_emulator.runtime.metadata import metadata
from pubsub_emulator.runtime.metadata.apis import API_VERSIONS, APIS
from pubsub_emulator.runtime.pallet_pubsub import Config as PubsubConfig
from pubsub_emulator.runtime.relay.babe import Babe, current_slot
from pubsub_emulator.runtime.relay.definitions import NORMAL_LENGTH, hold_reasons, relay_pallets
from pubsub_emulator.runtime.relay.dmp import Dmp
from pubsub_emulator.xcm.description import type_names

SPEC_NAME: Final = "pubsub-relay"
SPEC_VERSION: Final = 1
CRATE: Final = "pubsub_relay_runtime"


@dataclass(frozen=True, slots=True)
class RelayConstants:
    """Configuration of the relay chain for metadata; `weights` are those of a block and of its extrinsics.

    `further` are optional pallets.
    """

    session_length: int
    genesis_slot: Slot
    pubsub: PubsubConfig
    weights: tuple[Weight, Weight]
    further: tuple[PalletDefinition, ...] = ()


class RelayAccounts:
    """The pallets of the profile, and the relay chain's signed extrinsics."""

    def __init__(self, constants: RelayConstants, balances: Balances, dmp: Dmp, babe: Babe) -> None:
        self._constants = constants
        self._balances = balances
        self._babe = babe
        self.system = SystemCalls()
        self.timestamp = Timestamp(current_slot)
        self.utility = Utility()
        self.payment = TransactionPayment()
        self.sudo = Sudo()

        def send(storage: Storage, para: ParaId, message: bytes) -> None:
            dmp.queue_downward_message(storage, para, message, RelayBlockNumber(system.block_number(storage)))

        self.xcm = XcmPallet(send)
        version = RuntimeVersion(SPEC_NAME, SPEC_VERSION, API_VERSIONS)
        shared = relay_pallets(version, balances, constants.pubsub, constants.session_length, constants.weights)
        pallets = tuple(sorted((*shared, *constants.further, xcm_pallet.DEFINITION), key=lambda pallet: pallet.index))
        self.definition = RuntimeDefinition(
            CRATE, version, pallets, APIS, parachain_origins=True, hold_reasons=hold_reasons()
        )
        self.calls = CallTable(())
        self.signing = Signing(self.calls, balances, SPEC_VERSION)

    def bind(self, pallets: Mapping[str, Hooks]) -> None:
        """Set all pallets of the chain by name, once, so that their calls can be decoded."""
        owners = (
            (definition, pallets[definition.name]) for definition in self.definition.pallets if definition.call_infos()
        )
        self.calls = CallTable(owners)
        self.signing = Signing(self.calls, self._balances, SPEC_VERSION)
        self.utility.calls = self.calls
        self.sudo.calls = self.calls

    def apply(self, storage: Storage, index: int, raw: bytes, room: Room) -> DispatchOutcome:
        """Run a signed extrinsic. Raises as `apply_signed`."""
        return apply_signed(self.signing, storage, index, raw, room)

    def room(self, storage: Storage) -> NormalRoom:
        """The room that is left in the block begun in `storage`."""
        max_block, normal = self._constants.weights
        return NormalRoom(storage, BlockWeights(max_block, normal), NORMAL_LENGTH)

    def code(self) -> bytes:
        """The value of `:code`, which identifies this runtime to clients that compare its hash."""
        of_metadata = blake2_256(metadata(16, self.definition, type_names))
        return encode_bytes(SPEC_NAME.encode()) + u32.encode(SPEC_VERSION) + of_metadata

    def genesis(self, storage: Storage) -> None:
        """Write the profile's part of block 0."""
        storage.put(CODE, self.code())
        self._babe.genesis(storage, self._constants.genesis_slot)
        endow(storage, self._balances)
