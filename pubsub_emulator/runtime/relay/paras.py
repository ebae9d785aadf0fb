"""The `Paras` pallet: the parachains, their heads, and the signals of code upgrades."""

from bisect import insort
from enum import IntEnum
from typing import Final, TypeVar

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.codecs import U32, para_id, relay_number
from pubsub_emulator.runtime.framework.dispatch import ModuleError, ensure
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hashers import Twox64Concat
from pubsub_emulator.runtime.framework.hooks import Hooks, StateError
from pubsub_emulator.runtime.framework.items import StorageMap, StorageValue, para_map
from pubsub_emulator.runtime.framework.pallet import Event, Pallet, PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.relay.host_configuration import active_config

PALLET: Final = Pallet("Paras", 56, "polkadot_runtime_parachains::paras")
E = TypeVar("E", bound=IntEnum)


class ParaLifecycle(IntEnum):
    """The lifecycle of a para; only `PARACHAIN` includes blocks."""

    ONBOARDING = 0
    PARATHREAD = 1
    PARACHAIN = 2
    UPGRADING_PARATHREAD = 3
    DOWNGRADING_PARACHAIN = 4
    OFFBOARDING_PARATHREAD = 5
    OFFBOARDING_PARACHAIN = 6


class UpgradeGoAhead(IntEnum):
    """The signal whether a parachain must enact or abort its announced code upgrade."""

    ABORT = 0
    GO_AHEAD = 1


class UpgradeRestriction(IntEnum):
    """The mark that a parachain may not announce new code now."""

    PRESENT = 0


def _rust_name(member: IntEnum) -> str:
    """Return the name of a member as Rust writes it, such as `UpgradingParathread`."""
    return "".join(word.capitalize() for word in member.name.split("_"))


def _enum(kind: type[E]) -> Codec[E]:
    def read(reader: Reader) -> E:
        start = reader.pos
        try:
            return kind(reader.u8())
        except ValueError:
            raise ScaleError(f"no {kind.__name__} at offset {start}") from None

    names = map(_rust_name, kind)
    info = type_info.enum(f"polkadot_runtime_parachains::paras::{kind.__name__}", *names)
    return Codec(kind.__name__, lambda value: bytes((value,)), read, info)


PARACHAINS: Final = StorageValue(
    PALLET, "Parachains", "All parachains, ascending.", scale.vec(para_id), []
)
LIFECYCLES: Final = para_map(
    PALLET, "ParaLifecycles", "The current lifecycle of all known para ids.", _enum(ParaLifecycle)
)
HEADS: Final = para_map(PALLET, "Heads", "The head-data of every registered para.", scale.bytes_)
MOST_RECENT_CONTEXT: Final = para_map(
    PALLET,
    "MostRecentContext",
    "The relay parent of the most recent included block of a para.",
    relay_number,
)
GO_AHEAD: Final = para_map(
    PALLET,
    "UpgradeGoAheadSignal",
    "Whether a para is to enact the code that it announced.",
    _enum(UpgradeGoAhead),
)
RESTRICTION: Final = para_map(
    PALLET,
    "UpgradeRestrictionSignal",
    "Whether a para may not announce new code now.",
    _enum(UpgradeRestriction),
)
ACTIONS: Final = StorageMap(
    PALLET,
    "ActionsQueue",
    "Paras that come or go, by session.",
    Twox64Concat,
    scale.u32,
    scale.vec(para_id),
    [],
)


@event(PALLET, 3)
class NewHeadNoted(Event):
    """A block of the parachain was included."""

    para: ParaId


@event(PALLET, 4)
class ActionQueued(Event):
    """The para comes or goes at the start of a session."""

    para: ParaId
    session: U32


@pallet_errors(PALLET)
class Error(PalletError):
    """Why a lifecycle change or a head was refused."""

    NotRegistered = 0, "The para is not registered."
    CannotOnboard = 1, "The para cannot be onboarded: it is known already."
    CannotOffboard = 2, "The para cannot be offboarded: it is no parachain."
    HeadDataTooLarge = 100, "The head data is longer than the configuration allows."
    NotParachain = 101, "The para includes no blocks."


class Paras(Hooks):
    """The pallet of lifecycles, heads and upgrade signals."""

    pallet = PALLET

    def genesis(self, storage: Storage, heads: dict[ParaId, bytes]) -> None:
        """Store the parachains of block 0 with their heads."""
        for para, head in heads.items():
            self._onboard(storage, para, head)

    def parachains(self, storage: Storage) -> list[ParaId]:
        """Return all paras that include blocks, ascending."""
        return PARACHAINS.get(storage)

    def head(self, storage: Storage, para: ParaId) -> bytes | None:
        """Return the newest included head."""
        return HEADS.get(storage, para)

    def is_parachain(self, storage: Storage, para: ParaId) -> bool:
        """Return whether a para includes blocks now.

        One that is about to leave still does.
        """
        return LIFECYCLES.get(storage, para) in {
            ParaLifecycle.PARACHAIN,
            ParaLifecycle.OFFBOARDING_PARACHAIN,
        }

    def is_offboarding(self, storage: Storage, para: ParaId) -> bool:
        """Return whether a parachain is about to leave."""
        return LIFECYCLES.get(storage, para) is ParaLifecycle.OFFBOARDING_PARACHAIN

    def schedule_para_initialize(
        self, storage: Storage, para: ParaId, head: bytes, session: int
    ) -> None:
        """Schedule an onboarding.

        Raises `CannotOnboard`, `HeadDataTooLarge`. Emits `ActionQueued`.
        """
        ensure(not LIFECYCLES.contains(storage, para), Error.CannotOnboard)
        self._check_head(storage, head)
        LIFECYCLES.insert(storage, para, ParaLifecycle.ONBOARDING)
        HEADS.insert(storage, para, head)
        self._queue(storage, para, session)

    def schedule_para_cleanup(self, storage: Storage, para: ParaId, session: int) -> None:
        """Schedule an offboarding.

        Raises `NotRegistered`, `CannotOffboard`. Emits `ActionQueued`.
        """
        lifecycle = LIFECYCLES.get(storage, para)
        if lifecycle is None:
            raise ModuleError(Error.NotRegistered)
        ensure(lifecycle is ParaLifecycle.PARACHAIN, Error.CannotOffboard)
        LIFECYCLES.insert(storage, para, ParaLifecycle.OFFBOARDING_PARACHAIN)
        self._queue(storage, para, session)

    def apply_actions(self, storage: Storage, session: int) -> list[ParaId]:
        """Onboard and offboard the paras scheduled for `session`.

        Returns those that left, ascending.
        """
        outgoing = []
        for para in ACTIONS.take(storage, session):
            lifecycle = LIFECYCLES.get(storage, para)
            if lifecycle is ParaLifecycle.ONBOARDING:
                self._onboard(storage, para, HEADS.get(storage, para) or b"")
            elif lifecycle is ParaLifecycle.OFFBOARDING_PARACHAIN:
                outgoing.append(para)
                for item in (LIFECYCLES, HEADS, MOST_RECENT_CONTEXT, GO_AHEAD, RESTRICTION):
                    item.remove(storage, para)
                PARACHAINS.put(
                    storage, [other for other in PARACHAINS.get(storage) if other != para]
                )
        return outgoing

    def note_new_head(
        self, storage: Storage, para: ParaId, head: bytes, relay_parent: RelayBlockNumber
    ) -> None:
        """Set the head of an included block.

        Raises `NotParachain`, `HeadDataTooLarge`. Emits `NewHeadNoted`.
        """
        ensure(self.is_parachain(storage, para), Error.NotParachain)
        self._check_head(storage, head)
        HEADS.insert(storage, para, head)
        MOST_RECENT_CONTEXT.insert(storage, para, relay_parent)
        deposit(storage, NewHeadNoted(para))

    def try_state(self, storage: Storage) -> None:
        """Raise `StateError` if the list of parachains is not sorted or differs from lifecycles.

        Each parachain must also have a head.
        """
        listed = PARACHAINS.get(storage)
        ensure(
            listed == sorted(dict.fromkeys(listed)),
            StateError("Paras: the list of parachains is not sorted"),
        )
        living = sorted(
            para for para, _ in LIFECYCLES.items(storage) if self.is_parachain(storage, para)
        )
        ensure(
            living == listed,
            StateError("Paras: the list of parachains is not that of their lifecycles"),
        )
        for para in listed:
            ensure(HEADS.contains(storage, para), StateError(f"Paras: {para} has no head"))

    def _onboard(self, storage: Storage, para: ParaId, head: bytes) -> None:
        LIFECYCLES.insert(storage, para, ParaLifecycle.PARACHAIN)
        HEADS.insert(storage, para, head)
        listed = PARACHAINS.get(storage)
        if para not in listed:
            insort(listed, para)
            PARACHAINS.put(storage, listed)

    def _queue(self, storage: Storage, para: ParaId, session: int) -> None:
        queued = ACTIONS.get(storage, session)
        insort(queued, para)
        ACTIONS.insert(storage, session, queued)
        deposit(storage, ActionQueued(para, session))

    def _check_head(self, storage: Storage, head: bytes) -> None:
        ensure(len(head) <= active_config(storage).max_head_data_size, Error.HeadDataTooLarge)
