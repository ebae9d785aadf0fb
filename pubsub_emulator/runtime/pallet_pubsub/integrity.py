"""The checks of the configuration before the first block."""

from pubsub_emulator.primitives.types import U32_MAX, U128_MAX
from pubsub_emulator.runtime.framework.hooks import IntegrityError
from pubsub_emulator.runtime.pallet_pubsub import expiry, weights
from pubsub_emulator.runtime.pallet_pubsub.config import Config


def integrity_test(config: Config) -> None:
    """Raise `IntegrityError`, naming the value and its consequence, if the configuration cannot work."""
    _ensure_types(config)
    _ensure_room(config)
    _ensure_weights(config)


def _ensure_types(config: Config) -> None:
    """Check that every number fits its type and that no limit forbids everything."""
    limits = {
        "MaxValueLength": config.max_value_length,
        "MaxStoredKeys": config.max_stored_keys,
        "MaxTotalStorageSize": config.max_total_storage_size,
        "MaxPublishers": config.max_publishers,
        "MaxTtlScansPerIdle": config.max_ttl_scans_per_idle,
    }
    for name, value in limits.items():
        if not 0 <= value <= U32_MAX:
            raise IntegrityError(f"{name} is a u32, not {value}")
    for name in ("MaxStoredKeys", "MaxTotalStorageSize"):
        if limits[name] == 0:
            raise IntegrityError(f"{name} of 0: nothing could ever be published")
    if config.max_ttl_scans_per_idle == 0:
        raise IntegrityError("MaxTtlScansPerIdle of 0: nothing would ever expire")
    if not 0 <= config.publisher_deposit <= U128_MAX:
        raise IntegrityError(f"PublisherDeposit is a u128, not {config.publisher_deposit}")
    if not 0 <= config.system_para_threshold <= U32_MAX:
        raise IntegrityError(f"the system threshold is a ParaId, not {config.system_para_threshold}")
    if config.max_publishers == 0 and config.system_para_threshold == 0:
        raise IntegrityError("neither a registered nor a system para could ever publish")


def _ensure_room(config: Config) -> None:
    """Check that each limit can be reached within the limits above it."""
    largest = 32 + config.max_value_length
    if largest > config.max_total_storage_size:
        raise IntegrityError(
            f"MaxTotalStorageSize of {config.max_total_storage_size} does not hold one key with a value of "
            f"MaxValueLength {config.max_value_length}: {largest} bytes"
        )
    keys = 32 * config.max_stored_keys
    if keys > config.max_total_storage_size:
        raise IntegrityError(
            f"MaxTotalStorageSize of {config.max_total_storage_size} does not hold MaxStoredKeys "
            f"{config.max_stored_keys} keys, even with empty values: {keys} bytes"
        )


def _ensure_weights(config: Config) -> None:
    """Check that one block can hold the largest publish, a whole deregistration, and the expiry of one row."""
    needs = {
        "a publish of MaxValueLength bytes could never be executed": weights.publish(config, config.max_value_length),
        "a publisher of MaxStoredKeys keys could never be deregistered": weights.deregister_publisher(config),
        "nothing would ever expire": expiry.least_weight(config),
    }
    for consequence, weight in needs.items():
        if weight.any_gt(config.max_block_weight):
            raise IntegrityError(f"{consequence}: it takes {weight}, a block has {config.max_block_weight}")
