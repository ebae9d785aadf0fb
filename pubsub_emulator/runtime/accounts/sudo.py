"""The `Sudo` pallet: one account may act as root."""

from typing import Final

from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.calls import CallTable, RuntimeCall
from pubsub_emulator.runtime.framework.codecs import account_id
from pubsub_emulator.runtime.framework.dispatch import Result, dispatchable, ensure
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.origin import Origin, Root, ensure_signed
from pubsub_emulator.runtime.framework.pallet import Event, Pallet, PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("Sudo", 255, "pallet_sudo")
KEY: Final = StorageValue(PALLET, "Key", "The `AccountId` of the sudo key.", account_id)
_BASE: Final = Weight(10_000_000, 0)


@event(PALLET, 0)
class Sudid(Event):
    """A call ran as root; `sudo_result` is its error, or `None`."""

    sudo_result: Result


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `pallet_sudo`."""

    RequireSudo = 0, "Only the account under `Key` may do this."


class Sudo(Hooks):
    """`pallet_sudo`; `calls` are all calls of the runtime."""

    pallet = PALLET
    calls: CallTable

    @dispatchable(0, weight=lambda pallet, call: _BASE + pallet.calls.weight(call))
    def sudo(self, storage: Storage, origin: Origin, call: RuntimeCall, /) -> Weight:
        """The account under `Key` runs a call as root.

        Errors: `BadOrigin`, `RequireSudo`. Emits `Sudid` with what became of the call.
        """
        ensure(ensure_signed(origin) == KEY.get(storage), Error.RequireSudo)
        outcome = self.calls.dispatch(storage, Root(), call)
        deposit(storage, Sudid(outcome.error))
        return _BASE + outcome.weight
