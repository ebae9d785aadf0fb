"""The `Configuration` pallet: the active `HostConfiguration`, and pending changes."""

from typing import Annotated, Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.codecs import U32
from pubsub_emulator.runtime.framework.dispatch import ModuleError, dispatchable
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root
from pubsub_emulator.runtime.framework.pallet import PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.relay.host_configuration import ACTIVE, PALLET, HostConfiguration, host_configuration

Proposed = Annotated[HostConfiguration, host_configuration]
SESSION_DELAY: Final = 2
"""Sessions between a change and its effect."""

PENDING: Final = StorageValue(
    PALLET,
    "PendingConfigs",
    "Pending configuration changes, by session.",
    scale.vec(scale.pair(scale.u32, host_configuration)),
    [],
)


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `runtime_parachains::configuration`."""

    InvalidNewValue = 0, "No parachain could work with the new value."


class Configuration(Hooks):
    """The configuration pallet; `genesis_config` is active from block 0."""

    pallet = PALLET

    def __init__(self, genesis_config: HostConfiguration | None = None, session_delay: int = SESSION_DELAY) -> None:
        self.genesis_config = HostConfiguration() if genesis_config is None else genesis_config
        self.session_delay = session_delay

    def genesis(self, storage: Storage) -> None:
        """Set the configuration of block 0."""
        ACTIVE.put(storage, self.genesis_config)

    @dispatchable(47, weight=Weight(25_000_000, 2000))
    def set_config(self, storage: Storage, origin: Origin, config: Proposed, session: U32) -> None:
        """Root schedules a whole new configuration for the start of `session`; it replaces what waited for that one.

        Rust has a call for each field; they too end in one pending configuration. Raises `InvalidNewValue` for one that
        no parachain could work with.
        """
        ensure_root(origin)
        if inconsistency(config) is not None:
            raise ModuleError(Error.InvalidNewValue)
        waiting = [(at, pending) for at, pending in PENDING.get(storage) if at != session]
        PENDING.put(storage, sorted([*waiting, (session, config)], key=lambda entry: entry[0]))

    def on_new_session(self, storage: Storage, session: int) -> None:
        """Activate the newest configuration that is due."""
        waiting = PENDING.get(storage)
        due = [config for at, config in waiting if at <= session]
        if due:
            ACTIVE.put(storage, due[-1])
            PENDING.put(storage, [(at, config) for at, config in waiting if at > session])

    def integrity_test(self) -> None:
        """Raise `IntegrityError` for values that no parachain could work with."""
        complaint = inconsistency(self.genesis_config)
        if complaint is not None:
            raise IntegrityError(complaint)


def inconsistency(config: HostConfiguration) -> str | None:
    """The reason why no parachain could work with these values, or `None`."""
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
