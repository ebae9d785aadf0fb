"""The constants that a relay runtime sets, and the requirements on other pallets."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol

from pubsub_emulator.primitives.types import U64_MAX, AccountId, Balance, ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.pallet import Pallet
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.rules import SHIPPED, RuleFailed, Rules

PALLET: Final = Pallet("Broadcaster", 101, "pallet_broadcaster", hold_reasons=("PublisherDeposit",))


class TtlPolicy(Enum):
    """The way in which `on_idle` finds expired entries (PS-19)."""

    SCAN = "scan"
    EXPIRY_INDEX = "expiry_index"


class ForcedDeposit(Enum):
    """The use of the deposit by `force_deregister_publisher`.

    Any other deregistration returns the deposit.
    """

    RETURNED = "returned"
    SLASHED = "slashed"


_UNIT: Final = Balance(1_000_000_000_000)
_FIRST_PUBLIC_PARA: Final = ParaId(2000)
_NORMAL_BLOCK: Final = Weight(1_500_000_000_000, U64_MAX)
"""The weight of calls in a block: 75 % of two seconds, and an unlimited proof size."""


@dataclass(frozen=True, slots=True)
class Config:
    """The constants of the pallet; `integrity_test` refuses combinations that cannot work.

    Lengths and sizes are in bytes. An entry counts 32 for its key plus its value's length (PS-8).
    """

    max_value_length: int = 2048
    max_stored_keys: int = 1024
    """The maximum number of keys of one publisher."""
    max_total_storage_size: int = 1_048_576
    """The maximum counted size of one publisher's entries."""
    max_publishers: int = 1000
    """The maximum number of registered publishers."""
    publisher_deposit: Balance = _UNIT
    """The deposit of a registration, in plancks."""
    system_para_threshold: ParaId = _FIRST_PUBLIC_PARA
    """Paras with a lower id publish without registration."""
    max_ttl_scans_per_idle: int = 500
    """The maximum number of rows that one sweep examines."""
    ttl_policy: TtlPolicy = TtlPolicy.SCAN
    forced_deposit: ForcedDeposit = ForcedDeposit.RETURNED
    max_block_weight: Weight = _NORMAL_BLOCK
    """The weight of calls in one block.

    It must allow for the largest publish and the largest deregistration.
    """
    rules: Rules = SHIPPED
    """The rules of the chain."""

    def ruled(self) -> "Config":
        """Return these constants as the rule `constants` changes them.

        Raises `RuleFailed`.
        """
        if self.rules.constants is None:
            return self
        changed = self.rules.constants(self)
        if not isinstance(changed, Config):
            raise RuleFailed(
                f"{self.rules.path}: rule 'constants' returned {changed!r:.60},"
                " not the configuration"
            )
        return replace(changed, rules=self.rules)

    def deposit_of(self, para: ParaId) -> Balance:
        """Return the deposit that a registration of `para` holds."""
        rule = self.rules.deposit
        return (
            self.publisher_deposit if rule is None else Balance(rule(para, self.publisher_deposit))
        )

    def is_system(self, para: ParaId) -> bool:
        """Return whether a para publishes without registration (PS-7)."""
        return para < self.system_para_threshold


class Registrar(Protocol):
    """The pallet that knows the owners of paras."""

    def owner_of(self, storage: Storage, para: ParaId) -> AccountId | None:
        """Return the account that registered the para, or `None`."""
