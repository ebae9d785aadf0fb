"""The `Configuration` pallet: the active `HostConfiguration`, and pending changes.

`HostConfiguration` has the relay chain's parameters for parachains. The abridged form, which
cumulus reads, is the beginning of the full one. So parachains can still read it after the rest of
the layout changes. The layout is that of `runtime_parachains::configuration` since version 12,
which has scheduler parameters.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import AnyCodec, Codec, Reader, encode_compact
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.codecs import U32
from pubsub_emulator.runtime.framework.dispatch import dispatchable, ensure
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root
from pubsub_emulator.runtime.framework.pallet import Pallet, PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("Configuration", 51, "polkadot_runtime_parachains::configuration")
MEBIBYTE: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class AsyncBackingParams:
    """The limits within which a parachain may run ahead of the relay chain, in blocks."""

    max_candidate_depth: int = 3
    allowed_ancestry_len: int = 2


@dataclass(frozen=True, slots=True)
class ExecutorParam:
    """One `ExecutorParam`: its variant index and its encoded fields, which are not read here."""

    variant: int
    fields: bytes


@dataclass(frozen=True, slots=True)
class NodeFeatures:
    """`BitVec<u8, Lsb0>`: the number of bits, and their bytes."""

    length: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class SchedulerParams:
    """The scheduler's parameters; blocks, counts and parts per billion."""

    group_rotation_frequency: int = 10
    paras_availability_period: int = 10
    max_validators_per_core: int | None = 5
    lookahead: int = 3
    num_cores: int = 100
    max_availability_timeouts: int = 0
    on_demand_queue_max_size: int = 500
    on_demand_target_queue_utilization: int = 250_000_000
    on_demand_fee_variability: int = 30_000_000
    on_demand_base_fee: int = 250_000_000
    ttl: int = 5


_ASYNC_BACKING: Final = AsyncBackingParams()
_SCHEDULER: Final = SchedulerParams()


@dataclass(frozen=True, slots=True)
class HostConfiguration:
    """The whole configuration, with Polkadot's values as defaults.

    The units are bytes, counts, relay blocks, sessions and plancks.
    """

    max_code_size: int = 3 * MEBIBYTE
    max_head_data_size: int = 20_480
    max_upward_queue_count: int = 174_762
    max_upward_queue_size: int = MEBIBYTE
    max_upward_message_size: int = 65_531
    max_upward_message_num_per_candidate: int = 16
    hrmp_max_message_num_per_candidate: int = 10
    validation_upgrade_cooldown: int = 14_400
    validation_upgrade_delay: int = 600
    async_backing_params: AsyncBackingParams = _ASYNC_BACKING
    max_pov_size: int = 10 * MEBIBYTE
    max_downward_message_size: int = 51_200
    hrmp_max_parachain_outbound_channels: int = 128
    hrmp_sender_deposit: int = 100_000_000_000
    hrmp_recipient_deposit: int = 100_000_000_000
    hrmp_channel_max_capacity: int = 1000
    hrmp_channel_max_total_size: int = 102_400
    hrmp_max_parachain_inbound_channels: int = 128
    hrmp_channel_max_message_size: int = 102_400
    executor_params: tuple[ExecutorParam, ...] = ()
    code_retention_period: int = 14_400
    max_validators: int | None = None
    dispute_period: int = 6
    dispute_post_conclusion_acceptance_period: int = 600
    no_show_slots: int = 3
    n_delay_tranches: int = 213
    zeroth_delay_tranche_width: int = 0
    needed_approvals: int = 30
    relay_vrf_modulo_samples: int = 6
    pvf_voting_ttl: int = 2
    minimum_validation_upgrade_delay: int = 20
    minimum_backing_votes: int = 2
    node_features: NodeFeatures = NodeFeatures()
    approval_voting_params: int = 6
    scheduler_params: SchedulerParams = _SCHEDULER


# The fields of each variant of ExecutorParam, in bytes; variant 0 is skipped by the Rust type.
_EXECUTOR_PARAM_SIZES: Final[dict[int, int]] = {1: 4, 2: 4, 3: 4, 4: 8, 5: 9, 6: 9, 7: 0}


def _read_executor_param(reader: Reader) -> ExecutorParam:
    start = reader.pos
    variant = reader.u8()
    size = _EXECUTOR_PARAM_SIZES.get(variant)
    if size is None:
        raise ScaleError(f"unknown executor parameter {variant} at offset {start}")
    return ExecutorParam(variant, reader.take(size))


def _read_node_features(reader: Reader) -> NodeFeatures:
    length = reader.compact(32)
    return NodeFeatures(length, reader.take((length + 7) // 8))


_u32: Final = scale.u32
_PREPARE: Final = type_info.enum("polkadot_primitives::v8::PvfPrepKind", "Precheck", "Prepare")
_EXECUTE: Final = type_info.enum("polkadot_primitives::v8::PvfExecKind", "Backing", "Approval")
_async_backing: Final[Codec[AsyncBackingParams]] = struct(
    AsyncBackingParams,
    _u32,
    _u32,
    rust="polkadot_primitives::v8::async_backing::AsyncBackingParams",
)
_executor_params: Final[Codec[tuple[ExecutorParam, ...]]] = scale.vec(
    Codec(
        "ExecutorParam",
        lambda param: bytes((param.variant,)) + param.fields,
        _read_executor_param,
        type_info.variants(
            "polkadot_primitives::v8::executor_params::ExecutorParam",
            ("MaxMemoryPages", 1, type_info.U32),
            ("StackLogicalMax", 2, type_info.U32),
            ("StackNativeMax", 3, type_info.U32),
            ("PrecheckingMaxMemory", 4, type_info.U64),
            ("PvfPrepTimeout", 5, _PREPARE, type_info.U64),
            ("PvfExecTimeout", 6, _EXECUTE, type_info.U64),
            ("WasmExtBulkMemory", 7),
        ),
    )
).map("ExecutorParams", tuple, list)
_node_features: Final[Codec[NodeFeatures]] = Codec(
    "NodeFeatures",
    lambda bits: encode_compact(bits.length) + bits.data,
    _read_node_features,
    type_info.BitSequence(),
)
_PARAMS: Final = "polkadot_primitives::v8::SchedulerParams"
_scheduler: Final[Codec[SchedulerParams]] = struct(
    SchedulerParams, _u32, _u32, scale.option(_u32), *([_u32] * 6), scale.u128, _u32, rust=_PARAMS
)
ABRIDGED: Final[tuple[AnyCodec, ...]] = (*([_u32] * 9), _async_backing)
"""The first fields, which cumulus reads by proof without the rest."""

_channels: Final = (*([_u32] * 3), scale.u128, scale.u128, *([_u32] * 4))
_last: Final[tuple[AnyCodec, ...]] = (*([_u32] * 10), _node_features, _u32, _scheduler)
_HOST: Final = "polkadot_runtime_parachains::configuration::HostConfiguration"
host_configuration: Final[Codec[HostConfiguration]] = struct(
    HostConfiguration,
    *ABRIDGED,
    *_channels,
    _executor_params,
    _u32,
    scale.option(_u32),
    *_last,
    rust=_HOST,
)


_about: Final = "The active configuration for the current session."
ACTIVE: Final = StorageValue(PALLET, "ActiveConfig", _about, host_configuration)
"""`Configuration::ActiveConfig`, which parachains read by proof."""

_decode = lru_cache(maxsize=16)(host_configuration.decode)


def active_config(storage: Storage) -> HostConfiguration:
    """Return the active configuration, or the defaults before genesis.

    Each distinct value is decoded once.
    """
    raw = storage.get(ACTIVE.key)
    return HostConfiguration() if raw is None else _decode(raw)


Proposed = Annotated[HostConfiguration, host_configuration]
SESSION_DELAY: Final = 2
"""The number of sessions between a change and its effect."""

_pending: Final = scale.vec(scale.pair(scale.u32, host_configuration))
PENDING: Final = StorageValue(
    PALLET, "PendingConfigs", "Pending configuration changes, by session.", _pending, []
)


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `runtime_parachains::configuration`."""

    InvalidNewValue = 0, "No parachain could work with the new value."


class Configuration(Hooks):
    """The configuration pallet; `genesis_config` is active from block 0."""

    pallet = PALLET

    def __init__(
        self, genesis_config: HostConfiguration | None = None, session_delay: int = SESSION_DELAY
    ) -> None:
        self.genesis_config = HostConfiguration() if genesis_config is None else genesis_config
        self.session_delay = session_delay

    def genesis(self, storage: Storage) -> None:
        """Set the configuration of block 0."""
        ACTIVE.put(storage, self.genesis_config)

    @dispatchable(47, weight=Weight(25_000_000, 2000))
    def set_config(self, storage: Storage, origin: Origin, config: Proposed, session: U32) -> None:
        """Schedule a whole new configuration for the start of `session`, as root.

        It replaces a configuration that was already waiting for that session. Rust has a call for
        each field; they too end in one pending configuration. Raises `InvalidNewValue` for a
        configuration that no parachain could work with.
        """
        ensure_root(origin)
        ensure(inconsistency(config) is None, Error.InvalidNewValue)
        waiting = [(due, pending) for due, pending in PENDING.get(storage) if due != session]
        PENDING.put(storage, sorted([*waiting, (session, config)], key=lambda entry: entry[0]))

    def on_new_session(self, storage: Storage, session: int) -> None:
        """Activate the newest configuration that is due."""
        waiting = PENDING.get(storage)
        due = [config for start, config in waiting if start <= session]
        if due:
            ACTIVE.put(storage, due[-1])
            PENDING.put(storage, [(start, config) for start, config in waiting if start > session])

    def integrity_test(self) -> None:
        """Raise `IntegrityError` unless parachains can work with the values."""
        complaint = inconsistency(self.genesis_config)
        ensure(complaint is None, IntegrityError(complaint))


def inconsistency(config: HostConfiguration) -> str | None:
    """Return the reason why no parachain could work with these values, or `None`."""
    for name in (
        "max_code_size",
        "max_head_data_size",
        "max_pov_size",
        "max_upward_queue_count",
        "max_upward_queue_size",
        "max_upward_message_size",
        "max_downward_message_size",
    ):
        if getattr(config, name) <= 0:
            return f"{name} must be greater than zero"
    if config.max_upward_message_size > config.max_upward_queue_size:
        return "an upward message of the greatest size must fit into the queue"
    if config.hrmp_channel_max_message_size > config.hrmp_channel_max_total_size:
        return "a horizontal message of the greatest size must fit into its channel"
    return None
