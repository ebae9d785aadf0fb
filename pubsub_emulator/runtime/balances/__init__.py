"""The `Balances` pallet: free and held balances in `System` accounts, with holds stored as by `fungible`.

Amounts on hold are stored by reason under `Balances::Holds` and summed in the account's `reserved`; they are not part
of `free`. An account exists while its free balance is at least the existential deposit or something is on hold. A
smaller free balance is dust, burnt with the account. A hold is a consumer: it requires the account and keeps it.

    Holds  Blake2_128Concat AccountId -> BoundedVec<IdAmount { RuntimeHoldReason id, u128 amount }>
    RuntimeHoldReason  u8 pallet index, u8 variant
"""

from pubsub_emulator.runtime.balances.pallet import HOLDS, TOTAL_ISSUANCE, Balances
from pubsub_emulator.runtime.balances.types import Error, Fortitude, HoldReason, IdAmount, Precision, Preservation

__all__ = [
    "HOLDS",
    "TOTAL_ISSUANCE",
    "Balances",
    "Error",
    "Fortitude",
    "HoldReason",
    "IdAmount",
    "Precision",
    "Preservation",
]
