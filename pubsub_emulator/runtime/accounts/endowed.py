"""The accounts that genesis endows: Substrate's development accounts in each signature scheme.

They have the public keys of `//Alice` to `//Ferdie` below the development phrase. The account of an
ECDSA key is its blake2b-256.
"""

from typing import Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.accounts import sudo
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework.storage import Storage

NAMES: Final = ("Alice", "Bob", "Charlie", "Dave", "Eve", "Ferdie")
UNIT: Final = 10**10
"""One token in plancks."""
ENDOWMENT: Final = 10**6 * UNIT
"""The balance of each of these accounts at genesis, including deposits on hold."""


def _keys(*digits: str) -> tuple[bytes, ...]:
    return tuple(map(bytes.fromhex, digits))


SR25519: Final = _keys(
    "d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d",
    "8eaf04151687736326c9fea17e25fc5287613693c912909cb226aa4794f26a48",
    "90b5ab205c6974c9ea841be688864633dc9ca8a357843eeacf2314649965fe22",
    "306721211d5404bd9da88e0204360a1a9ab8b87c66c1bc2fcdd37f3c2222cc20",
    "e659a7a1628cdd93febc04a4e0646ea20e9f5f0ce097d9a05290d4a9e054df4e",
    "1cbd2d43530a44705ad088af313e18f80b53ef16b36177cd4b77b846f2a5f07c",
)
ED25519: Final = _keys(
    "88dc3417d5058ec4b4503e0c12ea1a0a89be200fe98922423d4334014fa6b0ee",
    "d17c2d7823ebf260fd138f2d7e27d114c0145d968b5ff5006125f2414fadae69",
    "439660b36c6c03afafca027b910b4fecf99801834c62a5e6006f27d978de234f",
    "5e639b43e0052c47447dac87d6fd2b6ec50bdd4d0f614e4299c665249bbd09d9",
    "1dfe3e22cc0d45c70779c1095f7489a8ef3cf52d62fbd8c2fa38c9f1723502b5",
    "568cb4a574c6d178feb39c27dfc8b3f789e5f5423e19c71633c748b9acf086b5",
)
ECDSA: Final = _keys(
    "020a1091341fe5664bfa1782d5e04779689068c916b04cb365ec3153755684d9a1",
    "0390084fdbf27d2b79d26a4f13f0ccd982cb755a661969143c37cbc49ef5b91f27",
    "0389411795514af1627765eceffcbd002719f031604fadd7d188e2dc585b4e1afb",
    "03bc9d0ca094bd5b8b3225d7651eac5d18c1c04bf8ae8f8b263eebca4e1410ed0c",
    "031d10105e323c4afce225208f71a6441ee327a65b9e646e772500c74d31f669aa",
    "0291f1217d5a04cb83312ee3d88a6e6b33284e053e6ccfc3a90339a0299d12967c",
)


def _accounts() -> dict[str, AccountId]:
    accounts: dict[str, AccountId] = {}
    for name, sr25519, ed25519, ecdsa in zip(NAMES, SR25519, ED25519, ECDSA, strict=True):
        accounts[f"sr25519/{name}"] = AccountId(sr25519)
        accounts[f"ed25519/{name}"] = AccountId(ed25519)
        # An ECDSA key has 33 bytes, so its account is the key's hash.
        accounts[f"ecdsa/{name}"] = AccountId(blake2_256(ecdsa))
    return accounts


ACCOUNTS: Final = _accounts()
"""The accounts by scheme and name."""

ALICE: Final = ACCOUNTS["sr25519/Alice"]
"""The key of sudo, and the manager of every para."""


def endow(storage: Storage, balances: Balances) -> None:
    """Endow these accounts and let Alice act as root."""
    sudo.KEY.put(storage, ALICE)
    balances.genesis(storage, dict.fromkeys(ACCOUNTS.values(), ENDOWMENT))
