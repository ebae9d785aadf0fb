"""Numeric and byte types that must not be confused with each other."""

from typing import Final, NewType

ParaId = NewType("ParaId", int)
"""A parachain's number on the relay chain, u32."""

RelayBlockNumber = NewType("RelayBlockNumber", int)
"""Height of a relay chain block, u32."""

ParaBlockNumber = NewType("ParaBlockNumber", int)
"""Height of a parachain block, u32.

It must not be compared with a `RelayBlockNumber`.
"""

Slot = NewType("Slot", int)
"""A slot of a parachain's Aura schedule, u64."""

Balance = NewType("Balance", int)
"""An amount in the relay chain's smallest unit, u128."""

Hash = NewType("Hash", bytes)
"""A blake2b-256 digest, 32 bytes."""

AccountId = NewType("AccountId", bytes)
"""An account's public key, 32 bytes."""

PubsubKey = NewType("PubsubKey", bytes)
"""A published key, exactly 32 bytes, stored verbatim (PS-4)."""

U32_MAX: Final = 2**32 - 1
U64_MAX: Final = 2**64 - 1
U128_MAX: Final = 2**128 - 1
EMPTY_TRIE_ROOT: Final = Hash(
    bytes.fromhex("03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314")
)
"""Root of a trie without entries: blake2b-256 of the single byte 0x00, in both layouts."""
