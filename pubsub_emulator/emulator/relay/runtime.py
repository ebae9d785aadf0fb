"""The relay chain's runtime: its configuration, its pallets in order, and its genesis."""

from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from pubsub_emulator.emulator.relay.pallets import ACCOUNTS, RELAY
from pubsub_emulator.emulator.relay.validators import Validators
from pubsub_emulator.emulator.relay.xcm_messages import XcmMessages
from pubsub_emulator.emulator.relay.xcm_pallet import XcmPallet
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes, u32
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import AccountId, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.runtime.accounts.apply import Signing, apply_signed
from pubsub_emulator.runtime.accounts.endowed import endow
from pubsub_emulator.runtime.accounts.sudo import Sudo
from pubsub_emulator.runtime.accounts.system_calls import SystemCalls
from pubsub_emulator.runtime.accounts.timestamp import Timestamp
from pubsub_emulator.runtime.accounts.utility import Utility
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.calls import CallTable
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition, RuntimeVersion
from pubsub_emulator.runtime.framework.dispatch import Call, DispatchOutcome, dispatch
from pubsub_emulator.runtime.framework.executive import BlockWeights, Executive, NormalRoom
from pubsub_emulator.runtime.framework.fork import BadFork
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.message_chains import MessageBounds
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.framework.runtime import Runtime
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.validity import Room
from pubsub_emulator.runtime.metadata import metadata
from pubsub_emulator.runtime.metadata.apis import API_VERSIONS, APIS
from pubsub_emulator.runtime.pallet_pubsub import Broadcaster
from pubsub_emulator.runtime.pallet_pubsub import Config as PubsubConfig
from pubsub_emulator.runtime.pallet_pubsub.storage import RegisteredPublishers
from pubsub_emulator.runtime.relay.babe import Babe, SealedBabe, current_slot
from pubsub_emulator.runtime.relay.dmp import Dmp
from pubsub_emulator.runtime.relay.host_configuration import Configuration, HostConfiguration
from pubsub_emulator.runtime.relay.hrmp import Hrmp
from pubsub_emulator.runtime.relay.inclusion import ParaInclusion
from pubsub_emulator.runtime.relay.message_queue import Config as QueueConfig
from pubsub_emulator.runtime.relay.message_queue import MessageQueue
from pubsub_emulator.runtime.relay.paras import Paras
from pubsub_emulator.runtime.relay.registrar import Registrar
from pubsub_emulator.runtime.relay.session import Session
from pubsub_emulator.xcm.description import type_names

SPEC_NAME: Final = "pubsub-relay"
SPEC_VERSION: Final = 1
CRATE: Final = "pubsub_relay_runtime"
"""The name of the runtime in metadata."""
BLOCK_LENGTH: Final = 5 * 1024 * 1024
"""The maximum size of a block's extrinsics in bytes."""
NORMAL_LENGTH: Final = BLOCK_LENGTH * 3 // 4
"""The maximum size of the signed extrinsics of a block in bytes."""
_VERSION: Final = RuntimeVersion(SPEC_NAME, SPEC_VERSION, API_VERSIONS)
GENESIS_SLOT: Final = 1_000_000
"""The default slot of the relay chain's block 0."""
CHANNEL_CAPACITY: Final = 64
"""The capacity of a channel opened at genesis, in messages."""


class AddedPallet(Protocol):
    """A pallet that a relay chain has beside those of `RELAY`. It must be possible to pickle it."""

    def make(self) -> Hooks:
        """Return the pallet."""

    def genesis(self, pallet: Any, storage: Storage) -> None:
        """Write the pallet's part of block 0. `pallet` is the result of `make`."""


@dataclass(frozen=True, slots=True)
class RelayConfig:
    """The configuration of a relay chain."""

    session_length: int = 50
    """Relay blocks per session."""
    session_delay: int = 2
    """Sessions until a scheduled change takes effect."""
    genesis_slot: int = GENESIS_SLOT
    """The slot of block 0."""
    pubsub: PubsubConfig = field(default_factory=PubsubConfig)
    """The constants of pallet `Broadcaster`."""
    host: HostConfiguration = field(default_factory=HostConfiguration)
    """The host configuration, such as limits of messages."""
    bounds: MessageBounds = field(default_factory=MessageBounds)
    """The maximum size of messages that wait for one parachain."""
    queue: QueueConfig = field(default_factory=QueueConfig)
    """The configuration of the message queue."""
    weights: BlockWeights = field(default_factory=BlockWeights)
    """The maximum weights of blocks."""
    accounts: bool = False
    """Whether the chain has accounts and accepts signed extrinsics."""
    added: tuple[AddedPallet, ...] = ()
    """Further pallets, such as those of other distributions."""
    validators: tuple[bytes, ...] = ()
    """The Sr25519 seeds of the validators that seal the headers of blocks (UP-12).

    Without validators, headers have no seals and the state has no authorities.
    """


class RelayAccounts:
    """The profile `accounts`: its additional pallets, signed extrinsics, and `:code`."""

    definition: RuntimeDefinition
    calls: CallTable
    signing: Signing

    def __init__(
        self, weights: BlockWeights, genesis_slot: Slot, balances: Balances, dmp: Dmp, babe: Babe
    ) -> None:
        self._weights = weights
        self._genesis_slot = genesis_slot
        self._balances = balances
        self._babe = babe
        self._utility = Utility()
        self._sudo = Sudo()

        def send(storage: Storage, para: ParaId, message: bytes) -> None:
            dmp.queue_downward_message(
                storage, para, message, RelayBlockNumber(system.block_number(storage))
            )

        lengths = (NORMAL_LENGTH, BLOCK_LENGTH, BLOCK_LENGTH)
        calls = SystemCalls(_VERSION, (weights.max_block, weights.normal), lengths)
        self.made: tuple[Hooks, ...] = (
            calls,
            Timestamp(current_slot),
            self._utility,
            XcmPallet(send),
            self._sudo,
        )

    def bind(self, pallets: tuple[Hooks, ...]) -> None:
        """Set all pallets of the chain, so that calls can be decoded.

        This is called once, after all pallets have been created, because calls of `Utility` and
        `Sudo` contain calls of any pallet.
        """
        self.definition = RuntimeDefinition(CRATE, _VERSION, pallets, APIS, parachain_origins=True)
        self.calls = CallTable(pallets)
        self._utility.calls = self.calls
        self._sudo.calls = self.calls
        self.signing = Signing(self.calls, self._balances, SPEC_VERSION)

    def apply(self, storage: Storage, index: int, raw: bytes, room: Room) -> DispatchOutcome:
        """Execute a signed extrinsic. Raises the errors of `apply_signed`."""
        return apply_signed(self.signing, storage, index, raw, room)

    def room(self, storage: Storage) -> NormalRoom:
        """Return the room that is left in the block begun in `storage`."""
        return NormalRoom(storage, self._weights, NORMAL_LENGTH)

    def code(self) -> bytes:
        """Return the value of `:code`.

        It has the spec name, the spec version as u32, and the BLAKE2-256 hash of metadata 16.
        Clients compare its hash to notice a new runtime.
        """
        of_metadata = blake2_256(metadata(16, self.definition, type_names))
        return encode_bytes(SPEC_NAME.encode()) + u32.encode(SPEC_VERSION) + of_metadata

    def genesis(self, storage: Storage) -> None:
        """Write the profile's part of block 0."""
        storage.put(CODE, self.code())
        self._babe.genesis(storage, self._genesis_slot)
        endow(storage, self._balances)


class RelayRuntime:
    """All pallets of the relay chain and the executive that runs them."""

    def __init__(self, config: RelayConfig) -> None:
        """Create the pallets. Raises `IntegrityError` if the configuration cannot work."""
        config = replace(config, pubsub=config.pubsub.ruled())
        self.config = config
        self.balances = Balances()
        self.validators = Validators(config.validators)
        self.babe: Babe = Babe(config.session_length)
        if config.validators:
            self.babe = SealedBabe(config.session_length, self.validators.keys)
        self.paras = Paras()
        self.dmp = Dmp(config.bounds)
        self.hrmp = Hrmp(config.bounds)
        self.configuration = Configuration(config.host)
        self.registrar = Registrar(
            self.paras, self._scheduled_session, config.pubsub.system_para_threshold
        )
        self.broadcaster = Broadcaster(config.pubsub, self.balances, self.registrar)
        queue = MessageQueue(XcmMessages(config.pubsub, self.broadcaster), config.queue)
        self.message_queue = queue
        self.added = tuple(added.make() for added in config.added)
        self.inclusion = ParaInclusion(self.paras, queue, self.dmp, self.hrmp, config.bounds)
        has_epochs = config.accounts or config.validators
        babe = (self.babe.on_new_session,) if has_epochs else ()
        self.session = Session(
            config.session_length,
            self.paras,
            # The queue must be first. A message that is executed after the parachain's data has
            # been removed would publish data again (PS-11).
            offboarding=(
                queue.on_offboard,
                self.broadcaster.on_offboard,
                self.dmp.on_offboard,
                self.hrmp.on_offboard,
            ),
            on_new_session=(self.configuration.on_new_session, *babe),
            delay=config.session_delay,
        )
        self.accounts = None
        if config.accounts:
            slot = Slot(config.genesis_slot)
            self.accounts = RelayAccounts(config.weights, slot, self.balances, self.dmp, self.babe)
        pallets = self._pallets()
        if self.accounts is not None:
            self.accounts.bind(pallets)
        self.executive = Executive(pallets, config.weights, self.accounts, NORMAL_LENGTH)
        self.executive.integrity_test()

    def _pallets(self) -> tuple[Hooks, ...]:
        """Return the chain's pallets in the order of their hooks.

        Each block calls `on_idle` of another pallet first, so the number of pallets matters, too.
        """
        config = self.config
        left_out = () if config.accounts else ACCOUNTS
        made = [attribute for attribute in vars(self).values() if isinstance(attribute, Hooks)]
        made += self.added
        if self.accounts is not None:
            made += self.accounts.made
        # The kind of `Babe` depends on the configuration.
        known = (type(self.babe) if kind is Babe else kind for kind in RELAY.kinds)
        kinds = (*known, *(type(added) for added in self.added))
        return Runtime(kinds).objects(made, left_out)

    def _scheduled_session(self, storage: Storage) -> int:
        return self.session.scheduled_session(storage)

    def take_over(self, storage: Storage, source: str) -> None:
        """Check and migrate the published entries of a fork's state.

        The state may come from a chain with another TTL policy. Raises `BadFork` if entries do not
        decode.
        """
        try:
            for _ in RegisteredPublishers.items(storage):
                # Iterating decodes every row.
                pass
            self.broadcaster.on_runtime_upgrade(storage)
        except ScaleError as error:
            raise BadFork(
                f"{source}: {self.broadcaster.pallet} does not have the storage items of this"
                f" program's pallet: {error}"
            ) from error

    def genesis(
        self,
        storage: Storage,
        heads: dict[ParaId, bytes],
        managers: dict[ParaId, AccountId],
        publishers: tuple[ParaId, ...],
        channels: tuple[tuple[ParaId, ParaId], ...],
    ) -> None:
        """Write block 0, with registered publishers and open channels.

        Raises `DispatchError` or `IntegrityError`.
        """
        self.configuration.genesis(storage)
        for added, pallet in zip(self.config.added, self.added, strict=True):
            added.genesis(pallet, storage)
        self.paras.genesis(storage, heads)
        self.registrar.genesis(storage, managers)
        if self.accounts is None:
            deposit = max(
                map(self.config.pubsub.deposit_of, publishers),
                default=self.config.pubsub.publisher_deposit,
            )
            endowment = 2 * deposit + 100 * self.balances.existential_deposit
            self.balances.genesis(storage, dict.fromkeys(managers.values(), endowment))
            if self.config.validators:
                self.babe.genesis(storage, Slot(self.config.genesis_slot))
        else:
            # An account of the profile manages all parachains, so no other account needs a balance.
            self.accounts.genesis(storage)
        self.inclusion.check_bounds(storage)
        for para in publishers:
            # A publisher in the fork's state keeps its manager and deposit.
            if RegisteredPublishers.contains(storage, para):
                continue
            call = Call(self.broadcaster.pallet.name, "register_publisher", (para,))
            outcome = dispatch(self.broadcaster, storage, Signed(managers[para]), call)
            if outcome.error is not None:
                raise outcome.error
        config = self.config.host
        capacity = min(config.hrmp_channel_max_capacity, CHANNEL_CAPACITY)
        for sender, recipient in channels:
            self.hrmp.open_channel(
                storage, sender, recipient, capacity, config.hrmp_channel_max_message_size
            )
