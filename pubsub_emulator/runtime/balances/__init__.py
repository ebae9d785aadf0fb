"""The `Balances` pallet: free and held balances in `System` accounts, with holds as by `fungible`.

Amounts on hold are stored by reason under `Balances::Holds` and summed in the account's `reserved`;
they are not part of `free`. An account exists while its free balance is at least the existential
deposit or an amount is on hold. A smaller free balance is dust, which is burnt with the account. A
hold is a consumer: it requires the account and prevents its removal.
"""

from pubsub_emulator.runtime.balances.pallet import HOLDS as HOLDS
from pubsub_emulator.runtime.balances.pallet import TOTAL_ISSUANCE as TOTAL_ISSUANCE
from pubsub_emulator.runtime.balances.pallet import Balances as Balances
from pubsub_emulator.runtime.balances.types import Error as Error
from pubsub_emulator.runtime.balances.types import Fortitude as Fortitude
from pubsub_emulator.runtime.balances.types import HoldReason as HoldReason
from pubsub_emulator.runtime.balances.types import IdAmount as IdAmount
from pubsub_emulator.runtime.balances.types import Precision as Precision
from pubsub_emulator.runtime.balances.types import Preservation as Preservation
