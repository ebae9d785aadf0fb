"""The genesis of the profile `accounts`: balances and the sudo key."""

from pubsub_emulator.runtime.accounts import sudo
from pubsub_emulator.runtime.accounts.endowed import ACCOUNTS, ALICE, ENDOWMENT
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework.storage import Storage


def endow(storage: Storage, balances: Balances) -> None:
    """Endow the development accounts and let Alice act as root."""
    sudo.KEY.put(storage, ALICE)
    balances.genesis(storage, dict.fromkeys(ACCOUNTS.values(), ENDOWMENT))
