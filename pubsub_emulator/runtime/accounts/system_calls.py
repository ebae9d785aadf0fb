"""The calls of `System`: remarks, and root's writes to storage.

Derived keys cannot be written: child roots on any chain, and `:code` on the relay chain, whose runtime is this program.
Writing a parachain's `:code` is `set_code`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, CODE
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import ModuleError, Other, PalletError, dispatchable, pallet_errors
from pubsub_emulator.runtime.framework.events import Event, deposit, event
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root, ensure_signed
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import PALLET, account_id, hash_codec

_WRITE: Final = Weight(100_000_000, 0)
_BASE: Final = Weight(10_000_000, 0)
_PER_BYTE: Final = 500
"""Picoseconds per byte of a remark."""


@event(PALLET, 2)
class CodeUpdated(Event):
    """`:code` was updated."""


@event(PALLET, 5, account_id, hash_codec)
class Remarked(Event):
    """A remark was made; `hash` is its blake2b-256."""

    sender: AccountId
    hash: Hash


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `frame_system`, in its order."""

    InvalidSpecName = 0, "The new runtime has another name."
    SpecVersionNeedsToIncrease = 1, "The new runtime has no higher version."
    FailedToExtractRuntimeVersion = 2, "The new code is no runtime."
    NonDefaultComposite = 3, "The account still has data."
    NonZeroRefCount = 4, "Something still refers to the account."
    CallFiltered = 5, "The call is not allowed for this origin."


SetCode = Callable[[Storage, bytes], None]
"""Installs another runtime. Raises `DispatchError`."""


def _remark_weight(_pallet: object, remark: bytes) -> Weight:
    return _BASE + Weight(_PER_BYTE * len(remark), 0)


def _writes_weight(_pallet: object, rows: Sequence[object]) -> Weight:
    return _BASE + _WRITE * len(rows)


class SystemCalls(Hooks):
    """`System` as a pallet with calls. On a chain without `set_code`, `:code` cannot be written."""

    NAME = PALLET

    def __init__(self, set_code: SetCode | None = None) -> None:
        self._set_code = set_code

    @dispatchable(0, scale.bytes_, weight=_remark_weight)
    def remark(self, storage: Storage, origin: Origin, remark: bytes, /) -> None:
        """Make a remark on chain, which has no effect."""

    @dispatchable(2, scale.bytes_, weight=Weight(1_000_000_000, 0))
    def set_code(self, storage: Storage, origin: Origin, code: bytes, /) -> None:
        """Root sets another runtime, which holds from the next block on.

        Errors: `FailedToExtractRuntimeVersion` for bytes that are no runtime, `Other` for one that cannot work.
        Emits `CodeUpdated`.
        """
        ensure_root(origin)
        self._update_code(storage, code)

    @dispatchable(4, scale.vec(scale.pair(scale.bytes_, scale.bytes_)), weight=_writes_weight)
    def set_storage(self, storage: Storage, origin: Origin, items: Sequence[tuple[bytes, bytes]], /) -> None:
        """Root sets some items of storage.

        Errors: `Other` for the root of a child trie and for the relay chain's `:code`; as `set_code` for a parachain's.
        """
        ensure_root(origin)
        for key, value in items:
            if key == CODE:
                self._update_code(storage, value)
            else:
                _ensure_free(key)
                storage.put(key, value)

    @dispatchable(5, scale.vec(scale.bytes_), weight=_writes_weight)
    def kill_storage(self, storage: Storage, origin: Origin, keys: Sequence[bytes], /) -> None:
        """Root removes some items of storage. Errors: `Other` for roots of child tries and for `:code`."""
        ensure_root(origin)
        for key in keys:
            if key == CODE:
                raise Other
            _ensure_free(key)
            storage.kill(key)

    @dispatchable(7, scale.bytes_, weight=_remark_weight)
    def remark_with_event(self, storage: Storage, origin: Origin, remark: bytes, /) -> None:
        """Make a remark on chain and emit `Remarked`."""
        deposit(storage, Remarked(ensure_signed(origin), blake2_256(remark)))

    def _update_code(self, storage: Storage, code: bytes) -> None:
        if self._set_code is None:
            raise Other
        self._set_code(storage, code)
        deposit(storage, CodeUpdated())


def _ensure_free(key: bytes) -> None:
    if key.startswith(CHILD_STORAGE_PREFIX):
        raise Other


def refused_code() -> ModuleError:
    """The error of `set_code` for bytes that are not a runtime."""
    return ModuleError(PALLET, Error.FailedToExtractRuntimeVersion)
