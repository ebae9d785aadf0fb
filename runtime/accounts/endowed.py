"""Whom genesis endows: the development accounts that every Substrate tool knows, in each signature scheme.

Public keys of `//Alice` to `//Ferdie` below the development phrase; the account of an ECDSA key is its blake2b-256.
"""

from typing import Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import AccountId

NAMES: Final = ("Alice", "Bob", "Charlie", "Dave", "Eve", "Ferdie")
UNIT: Final = 10**10
"""One token in plancks."""
ENDOWMENT: Final = 10**6 * UNIT
"""What each of these accounts owns at genesis, deposits on hold included."""

@SR25519@
@ED25519@
@ECDSA@


def _accounts() -> dict[str, AccountId]:
    out: dict[str, AccountId] = {}
    for at, name in enumerate(NAMES):
        out[f"sr25519/{name}"] = AccountId(SR25519[at])
        out[f"ed25519/{name}"] = AccountId(ED25519[at])
        out[f"ecdsa/{name}"] = AccountId(blake2_256(ECDSA[at]))
    return out


ACCOUNTS: Final[dict[str, AccountId]] = _accounts()
"""By scheme and name."""

ALICE: Final = ACCOUNTS["sr25519/Alice"]
"""The key of sudo, and the manager of every para."""
