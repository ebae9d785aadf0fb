"""The calls of `System`: remarks, and root's writes to storage.

Keys that are derived cannot be written: child roots on any chain, and `:code` on the relay chain,
whose runtime is this program. Writing a parachain's `:code` works as `set_code`.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, CODE
from pubsub_emulator.primitives.type_info import U32, option
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.primitives.weights import Weight, encode_weight, weight_info
from pubsub_emulator.runtime.framework.definitions import RUNTIME_VERSION, RuntimeVersion
from pubsub_emulator.runtime.framework.dispatch import ModuleError, Other, dispatchable
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root, ensure_signed
from pubsub_emulator.runtime.framework.pallet import (
    Constant,
    Event,
    PalletError,
    constant,
    pallet_errors,
)
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import (
    BASE_WEIGHT,
    BLOCK_HASH_COUNT,
    PALLET,
    per_class,
)

Row = Annotated[tuple[bytes, bytes], scale.pair(scale.bytes_, scale.bytes_)]
"""A storage key and its value."""
_WRITE: Final = Weight(100_000_000, 0)
_BASE: Final = Weight(10_000_000, 0)
_PER_BYTE: Final = 500
"""Picoseconds per byte of a remark."""
SS58_PREFIX: Final = 42
_LIMITS: Final = "frame_system::limits"
_MOST: Final = dict.fromkeys(("max_extrinsic", "max_total", "reserved"), option(weight_info))
_CLASSES: Final = per_class(
    type_info.struct(f"{_LIMITS}::WeightsPerClass", base_extrinsic=weight_info, **_MOST)
)
_BLOCK_WEIGHTS: Final = type_info.struct(
    f"{_LIMITS}::BlockWeights", base_block=weight_info, max_block=weight_info, per_class=_CLASSES
)
_BLOCK_LENGTH: Final = type_info.struct(f"{_LIMITS}::BlockLength", max=per_class(U32))


@event(PALLET, 2)
class CodeUpdated(Event):
    """`:code` was updated."""


@event(PALLET, 5)
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


def _remark_weight(_pallet: object, remark: bytes) -> Weight:
    return _BASE + Weight(_PER_BYTE * len(remark), 0)


def _writes_weight(_pallet: object, rows: Sequence[object]) -> Weight:
    return _BASE + _WRITE * len(rows)


def _encode_block_weights(max_block: Weight, normal: Weight) -> bytes:
    """Return the SCALE bytes of `frame_system::limits::BlockWeights`."""
    base = encode_weight(BASE_WEIGHT)
    some = b"\x01"
    none = b"\x00"
    of_normal = base + some + encode_weight(normal) + some + encode_weight(normal) + none
    of_others = base + none + some + encode_weight(max_block) + none
    return (
        encode_weight(Weight(0, 0)) + encode_weight(max_block) + of_normal + of_others + of_others
    )


class SystemCalls(Hooks):
    """`System` as a pallet with calls, on a chain whose `:code` cannot be written.

    `weights` has the limits of a block and of its signed extrinsics. `lengths` has the limits of
    normal, operational and mandatory extrinsics in bytes.
    """

    pallet = PALLET

    def __init__(
        self, version: RuntimeVersion, weights: tuple[Weight, Weight], lengths: tuple[int, int, int]
    ) -> None:
        self._version = version
        self._weights = weights
        self._lengths = lengths

    @dispatchable(0, weight=_remark_weight)
    def remark(self, storage: Storage, origin: Origin, remark: bytes, /) -> None:
        """Make a remark on chain, which has no effect."""

    @dispatchable(4, weight=_writes_weight)
    def set_storage(self, storage: Storage, origin: Origin, items: Sequence[Row], /) -> None:
        """Root sets some items of storage.

        Errors: `Other` for the root of a child trie and for the relay chain's `:code`; as
        `set_code` for a parachain's.
        """
        ensure_root(origin)
        for key, value in items:
            if key == CODE:
                self._update_code(storage, value)
            else:
                _ensure_free(key)
                storage.put(key, value)

    @dispatchable(5, weight=_writes_weight)
    def kill_storage(self, storage: Storage, origin: Origin, keys: Sequence[bytes], /) -> None:
        """Root removes some items of storage.

        Errors: `Other` for roots of child tries and for `:code`.
        """
        ensure_root(origin)
        for key in keys:
            if key == CODE:
                raise Other
            _ensure_free(key)
            storage.kill(key)

    @dispatchable(7, weight=_remark_weight)
    def remark_with_event(self, storage: Storage, origin: Origin, remark: bytes, /) -> None:
        """Make a remark on chain and emit `Remarked`."""
        deposit(storage, Remarked(ensure_signed(origin), blake2_256(remark)))

    def constants(self) -> tuple[Constant, ...]:
        """Return the limits of a block, and the version of the runtime."""
        limits = "What extrinsics of each class may take of a block."
        lengths = b"".join(map(scale.u32.encode, self._lengths))
        return (
            Constant("BlockWeights", _BLOCK_WEIGHTS, _encode_block_weights(*self._weights), limits),
            Constant(
                "BlockLength", _BLOCK_LENGTH, lengths, "The maximum length of a block in bytes."
            ),
            constant(
                "BlockHashCount", scale.u32, BLOCK_HASH_COUNT, "How many block hashes are kept."
            ),
            Constant(
                "Version", RUNTIME_VERSION, self._version.encode(), "The version of this runtime."
            ),
            constant(
                "SS58Prefix", scale.u16, SS58_PREFIX, "The prefix of addresses of this chain."
            ),
        )

    def _update_code(self, _storage: Storage, _code: bytes, /) -> None:
        raise Other


class UpgradableSystem(SystemCalls):
    """`System` of a chain that can change its runtime.

    `install` changes it, and raises `DispatchError`.
    """

    def __init__(
        self,
        install: Callable[[Storage, bytes], None],
        version: RuntimeVersion,
        weights: tuple[Weight, Weight],
        lengths: tuple[int, int, int],
    ) -> None:
        super().__init__(version, weights, lengths)
        self._install = install

    @dispatchable(2, weight=Weight(1_000_000_000, 0))
    def set_code(self, storage: Storage, origin: Origin, code: bytes, /) -> None:
        """Root sets another runtime, which holds from the next block on.

        Errors: `FailedToExtractRuntimeVersion` for bytes that are no runtime, `Other` for one that
        cannot work. Emits `CodeUpdated`.
        """
        ensure_root(origin)
        self._update_code(storage, code)

    def _update_code(self, storage: Storage, code: bytes, /) -> None:
        self._install(storage, code)
        deposit(storage, CodeUpdated())


def _ensure_free(key: bytes) -> None:
    if key.startswith(CHILD_STORAGE_PREFIX):
        raise Other


def refused_code() -> ModuleError:
    """Return the error of `set_code` for bytes that are not a runtime."""
    return ModuleError(Error.FailedToExtractRuntimeVersion)
