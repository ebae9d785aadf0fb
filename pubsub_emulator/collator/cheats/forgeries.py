"""Cheats on chains with accounts.

They add extrinsics that no account signed or that cannot be part of the block.
"""

from typing import Final

from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import AddExtrinsic
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.signatures import Scheme
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.accounts.endowed import ACCOUNTS, UNIT
from pubsub_emulator.runtime.accounts.extrinsic import Era, Extra, SignedExtrinsic
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.parachain.accounts import parachain_accounts
from pubsub_emulator.runtime.parachain.block import Verdict

_BARE_REMARK: Final = encode_bytes(b"\x04\x00\x00\x00")
"""A bare call of `System::remark`, which is not an inherent."""


@strategy(
    "forge-extrinsic", "spend an account's balance without its signature", Verdict.BAD_EXTRINSIC
)
def forge_extrinsic(situation: Situation, draws: Draws) -> Proposal:
    """Take tokens with a made-up signature, run an extrinsic twice, or add an unsigned call."""
    if not situation.spec.accounts:
        return None
    honest = situation.honest.extrinsics
    kind = draws.below(4)
    if kind == 0:
        return (AddExtrinsic(len(honest), _BARE_REMARK),)
    if kind == 1 and honest:
        return (AddExtrinsic(len(honest), draws.choice(honest)),)
    victim = draws.choice(tuple(ACCOUNTS.values()))
    forged = _transfer(situation, victim, AccountId(draws.take(32)), draws.take(64))
    return (AddExtrinsic(draws.below(len(honest) + 1), forged),)


def _transfer(situation: Situation, victim: AccountId, thief: AccountId, signature: bytes) -> bytes:
    calls = parachain_accounts(situation.spec).calls
    call = calls.encode("Balances", "transfer_allow_death", thief, 1000 * UNIT)
    extra = Extra(Era(), system.account(situation.storage, victim).nonce, 0)
    return SignedExtrinsic(victim, Scheme.ED25519, signature, extra, call, 0).encode()
