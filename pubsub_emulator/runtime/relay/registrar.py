"""The `Registrar` pallet: the owners of para ids."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import AccountId, ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.codecs import account_id
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, ModuleError, dispatchable, ensure
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.items import para_map
from pubsub_emulator.runtime.framework.origin import (
    Origin,
    Parachain,
    Root,
    Signed,
    ensure_root,
    ensure_signed,
)
from pubsub_emulator.runtime.framework.pallet import Event, Pallet, PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("Registrar", 70, "polkadot_runtime_common::paras_registrar")
WEIGHT: Final = Weight(150_000_000, 10_000)
LOWEST_PUBLIC_ID: Final = ParaId(2000)
"""`LOWEST_PUBLIC_ID` of `polkadot_parachain_primitives`."""


@dataclass(frozen=True, slots=True)
class ParaInfo:
    """The registration of a para.

    It has the manager, the deposit, and whether only the para itself may change its registration
    now.
    """

    manager: AccountId
    deposit: int = 0
    locked: bool | None = None


_INFO: Final = "polkadot_runtime_common::paras_registrar::ParaInfo"
_info: Final = struct(ParaInfo, account_id, scale.u128, scale.option(scale.boolean), rust=_INFO)
PARAS: Final = para_map(PALLET, "Paras", "Who registered a para, for how much.", _info)


@event(PALLET, 0)
class Registered(Event):
    """A para was registered; it comes with a session."""

    para_id: ParaId
    manager: AccountId


@event(PALLET, 1)
class Deregistered(Event):
    """A para was deregistered; it goes with a session."""

    para_id: ParaId


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `paras_registrar`."""

    NotRegistered = 0, "The id is not registered."
    AlreadyRegistered = 1, "The id is already registered."
    NotOwner = 2, "The caller is not the owner of this id."
    ParaLocked = 10, "The para is locked: only the para itself or root may change it."
    NotReserved = 11, "The id was not reserved before."


class ParaManager(Protocol):
    """The pallet that schedules on- and offboarding of paras."""

    def schedule_para_initialize(
        self, storage: Storage, para: ParaId, head: bytes, session: int
    ) -> None:
        """Schedule the onboarding of a parachain at the start of `session`."""

    def schedule_para_cleanup(self, storage: Storage, para: ParaId, session: int) -> None:
        """Schedule the offboarding of a parachain at the start of `session`."""


class Registrar(Hooks):
    """Registration without a deposit.

    `scheduled_session` returns the session at which a change takes effect. Only root registers ids
    below `lowest_public_id`: system parachains, which publish without a deposit (PS-7).
    """

    pallet = PALLET

    def __init__(
        self,
        paras: ParaManager,
        scheduled_session: Callable[[Storage], int],
        lowest_public_id: ParaId = LOWEST_PUBLIC_ID,
    ) -> None:
        self._paras = paras
        self._scheduled_session = scheduled_session
        self._lowest_public_id = lowest_public_id

    def genesis(self, storage: Storage, managers: dict[ParaId, AccountId]) -> None:
        """Store the managers of the paras of block 0."""
        for para, manager in managers.items():
            PARAS.insert(storage, para, ParaInfo(manager))

    @dispatchable(0, weight=WEIGHT)
    def register(self, storage: Storage, origin: Origin, para: ParaId, genesis_head: bytes) -> None:
        """Register a para, which the signing account then manages.

        Raises `AlreadyRegistered`, `NotReserved` below `lowest_public_id`. Emits `Registered`. The
        validation code is not part of the call here, and public ids need no reservation.
        """
        who = ensure_signed(origin)
        ensure(para >= self._lowest_public_id or PARAS.contains(storage, para), Error.NotReserved)
        self._register(storage, who, para, genesis_head)

    @dispatchable(1, weight=WEIGHT)
    def force_register(
        self, storage: Storage, origin: Origin, who: AccountId, para: ParaId, genesis_head: bytes
    ) -> None:
        """Root registers a para for an account. Raises `AlreadyRegistered`. Emits `Registered`."""
        ensure_root(origin)
        self._register(storage, who, para, genesis_head)

    @dispatchable(2, weight=WEIGHT)
    def deregister(self, storage: Storage, origin: Origin, para: ParaId) -> None:
        """Give a para up: by root, the para itself, or its manager unless it is locked.

        Raises `NotRegistered`, `NotOwner`, `ParaLocked`. Emits `Deregistered`.
        """
        info = PARAS.get(storage, para)
        if info is None:
            raise ModuleError(Error.NotRegistered)
        match origin:
            case Root():
                pass
            case Parachain(caller):
                ensure(caller == para, Error.NotOwner)
            case Signed(account):
                ensure(account == info.manager, Error.NotOwner)
                ensure(not info.locked, Error.ParaLocked)
            case _:
                raise BadOrigin
        PARAS.remove(storage, para)
        self._paras.schedule_para_cleanup(storage, para, self._scheduled_session(storage))
        deposit(storage, Deregistered(para))

    def owner_of(self, storage: Storage, para: ParaId) -> AccountId | None:
        """Return the account that manages a para, or `None` if it is not registered."""
        info = PARAS.get(storage, para)
        return None if info is None else info.manager

    def _register(self, storage: Storage, manager: AccountId, para: ParaId, head: bytes) -> None:
        ensure(not PARAS.contains(storage, para), Error.AlreadyRegistered)
        PARAS.insert(storage, para, ParaInfo(manager))
        self._paras.schedule_para_initialize(storage, para, head, self._scheduled_session(storage))
        deposit(storage, Registered(para, manager))
