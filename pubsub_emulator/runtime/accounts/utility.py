"""The `Utility` pallet: batches of calls, and calls that root makes with another origin."""

from collections.abc import Sequence
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.calls import CallTable, RuntimeCall
from pubsub_emulator.runtime.framework.codecs import U32
from pubsub_emulator.runtime.framework.dispatch import Call, Failure, Result, dispatchable, ensure
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import (
    Origin,
    OriginCaller,
    ensure_root,
    ensure_signed_or_root,
)
from pubsub_emulator.runtime.framework.pallet import (
    Constant,
    Event,
    Pallet,
    PalletError,
    constant,
    pallet_errors,
)
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("Utility", 26, "pallet_utility")
BATCHED_CALLS_LIMIT: Final = 10_922
"""The maximum number of calls in a batch, as on Polkadot."""
_BASE: Final = Weight(5_000_000, 0)
_PER_CALL: Final = Weight(3_000_000, 0)


@event(PALLET, 0)
class BatchInterrupted(Event):
    """A call of a batch failed, `index` in all; those after it did not run."""

    index: U32
    error: Failure


@event(PALLET, 1)
class BatchCompleted(Event):
    """All calls of a batch succeeded."""


@event(PALLET, 2)
class BatchCompletedWithErrors(Event):
    """All calls of a batch ran; some failed."""


@event(PALLET, 3)
class ItemCompleted(Event):
    """A call of a batch succeeded."""


@event(PALLET, 4)
class ItemFailed(Event):
    """A call of a batch failed."""

    error: Failure


@event(PALLET, 5)
class DispatchedAs(Event):
    """A call ran in the name of another origin; `result` is its error, or `None`."""

    result: Result


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `pallet_utility`."""

    TooManyCalls = 0, "The batch holds too many calls."


def _batch_weight(pallet: "Utility", calls: Sequence[Call]) -> Weight:
    total = _BASE + _PER_CALL * len(calls)
    for call in calls:
        total += pallet.calls.weight(call)
    return total


class Utility(Hooks):
    """`pallet_utility`; `calls` are all those of the runtime."""

    pallet = PALLET
    calls: CallTable

    @dispatchable(0, weight=_batch_weight)
    def batch(self, storage: Storage, origin: Origin, calls: Sequence[RuntimeCall], /) -> Weight:
        """Run calls one after the other, until one fails; those before it keep their effect.

        Errors: `BadOrigin`, `TooManyCalls`. Emits `BatchInterrupted` or `BatchCompleted`.
        """
        ensure_signed_or_root(origin)
        used = _own_weight(calls)
        for index, call in enumerate(calls):
            outcome = self.calls.dispatch(storage, origin, call)
            used += outcome.weight
            if outcome.error is not None:
                deposit(storage, BatchInterrupted(index, outcome.error))
                return used
            deposit(storage, ItemCompleted())
        deposit(storage, BatchCompleted())
        return used

    @dispatchable(2, weight=_batch_weight)
    def batch_all(
        self, storage: Storage, origin: Origin, calls: Sequence[RuntimeCall], /
    ) -> Weight:
        """Run calls one after the other; if one fails, all of them do.

        Errors: `BadOrigin`, `TooManyCalls`, that of the first call that fails. Emits
        `BatchCompleted`.
        """
        ensure_signed_or_root(origin)
        used = _own_weight(calls)
        for call in calls:
            outcome = self.calls.dispatch(storage, origin, call)
            used += outcome.weight
            if outcome.error is not None:
                raise outcome.error
            deposit(storage, ItemCompleted())
        deposit(storage, BatchCompleted())
        return used

    @dispatchable(3, weight=lambda pallet, _origin, call: _BASE + pallet.calls.weight(call))
    def dispatch_as(
        self, storage: Storage, origin: Origin, as_origin: OriginCaller, call: RuntimeCall, /
    ) -> Weight:
        """Root runs a call in the name of another origin.

        Errors: `BadOrigin`. Emits `DispatchedAs` with what became of it.
        """
        ensure_root(origin)
        outcome = self.calls.dispatch(storage, as_origin, call)
        deposit(storage, DispatchedAs(outcome.error))
        return _BASE + outcome.weight

    @dispatchable(4, weight=_batch_weight)
    def force_batch(
        self, storage: Storage, origin: Origin, calls: Sequence[RuntimeCall], /
    ) -> Weight:
        """Run calls one after the other, whichever of them fail.

        Errors: `BadOrigin`, `TooManyCalls`. Emits `ItemCompleted` or `ItemFailed` for each, and
        `BatchCompleted` or `BatchCompletedWithErrors`.
        """
        ensure_signed_or_root(origin)
        used = _own_weight(calls)
        failed = False
        for call in calls:
            outcome = self.calls.dispatch(storage, origin, call)
            used += outcome.weight
            if outcome.error is None:
                deposit(storage, ItemCompleted())
            else:
                failed = True
                deposit(storage, ItemFailed(outcome.error))
        deposit(storage, BatchCompletedWithErrors() if failed else BatchCompleted())
        return used

    def constants(self) -> tuple[Constant, ...]:
        """Return the size of a batch."""
        limit = "The limit on the number of calls."
        return (constant("batched_calls_limit", scale.u32, BATCHED_CALLS_LIMIT, limit),)


def _own_weight(calls: Sequence[Call]) -> Weight:
    """Return the weight of a batch without that of its calls. Raises `TooManyCalls`."""
    ensure(len(calls) <= BATCHED_CALLS_LIMIT, Error.TooManyCalls)
    return _BASE + _PER_CALL * len(calls)
