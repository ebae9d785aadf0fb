"""Cheats with the seal: authoring out of turn, in another's name, or twice."""

from dataclasses import replace
from typing import Final

from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import Claim, Number, Seal, SignWith, Unseal
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.ed25519 import public_key, sign, verify
from pubsub_emulator.primitives.header import Header, aura_pre_digest, turn_of
from pubsub_emulator.primitives.types import U64_MAX, Slot
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict

_SEAL = Verdict.BAD_SEAL

_GROUP_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
"""The order of Ed25519's base point.

If it is added to a signature's second half, the result is an equivalent signature.
"""


@strategy("wrong-turn", "author in a slot that is another collator's", _SEAL)
def wrong_turn(situation: Situation, draws: Draws) -> Proposal:
    """Sign with the seed of a collator out of turn."""
    turn = turn_of(situation.slot, situation.seeds)
    others = [seed for seed in situation.seeds if seed != turn]
    return (SignWith(draws.choice(others)),) if others else None


@strategy("stranger", "author without being a collator", _SEAL)
def stranger(situation: Situation, _draws: Draws) -> Proposal:
    """Sign with a key that belongs to no collator."""
    return (SignWith(situation.stranger),)


@strategy("seal-of-another-header", "reuse a signature that was made for something else", _SEAL)
def seal_of_another_header(situation: Situation, draws: Draws) -> Proposal:
    """Set the seal of the parent, or of a header that differs in its state root."""
    before = situation.parent.header.aura_seal()
    if before is not None and draws.one_in(2):
        return (Seal(before),)
    honest = situation.honest.header
    other = replace(honest, state_root=situation.parent.header.state_root)
    return (Seal(sign(turn_of(situation.slot, situation.seeds), other.pre_hash())),)


@strategy("no-seal", "leave no trace of who made the block", _SEAL)
def no_seal(_situation: Situation, draws: Draws) -> Proposal:
    """Omit the seal, or set one that is not a signature."""
    return (Unseal(),) if draws.one_in(2) else (Seal(draws.take(draws.choice((0, 63, 64, 65)))),)


@strategy("stretched-seal", "make a second hash of another's block without the author's key", _SEAL)
def stretched_seal(situation: Situation, _draws: Draws) -> Proposal:
    """Add the group's order to the signature's scalar: the same scalar in other bytes."""
    seal = situation.honest.header.aura_seal() or bytes(64)
    scalar = int.from_bytes(seal[32:], "little") + _GROUP_ORDER
    return (Seal(seal[:32] + scalar.to_bytes(32, "little")),) if scalar < 1 << 256 else None


def _in_slot(situation: Situation, slot: int) -> Proposal:
    """Return the steps to the honest block in another slot, by that slot's author."""
    root = situation.state_root_after(situation.walked, digest=(aura_pre_digest(Slot(slot)),))
    return (Number("slot", slot), Claim("state_root", root))


@strategy("future-slot", "author before one's turn has come", _SEAL)
def future_slot(situation: Situation, draws: Draws) -> Proposal:
    """Claim a slot in the future."""
    slot = min(situation.slot_now + draws.choice((1, 2, 1 << 40)), U64_MAX)
    return _in_slot(situation, slot) if slot > situation.slot_now else None


@strategy("past-slot", "author in a slot that is over", _SEAL)
def past_slot(situation: Situation, draws: Draws) -> Proposal:
    """Claim the parent's slot, or one before it."""
    before = situation.parent.header.aura_slot()
    return None if before is None else _in_slot(situation, before - draws.below(min(before, 2) + 1))


@strategy("another-body", "have the seal cover another body than the one shown", _SEAL)
def another_body(situation: Situation, draws: Draws) -> Proposal:
    """Commit to another body in the header."""
    return (
        Claim(
            "extrinsics_root",
            draws.choice((draws.take(32), situation.parent.header.extrinsics_root)),
        ),
    )


def equivocates(one: Candidate, other: Candidate, authorities: tuple[bytes, ...]) -> bytes | None:
    """Return the author of two blocks for one slot (PS-79).

    Two valid seals over two headers prove it. Returns `None` if it is not proven.
    """
    slot = one.header.aura_slot()
    if (
        slot is None
        or slot != other.header.aura_slot()
        or one.header.pre_hash() == other.header.pre_hash()
    ):
        return None
    author = turn_of(slot, authorities)
    return author if _signed(one.header, author) and _signed(other.header, author) else None


def _signed(header: Header, author: bytes) -> bool:
    signature = header.aura_seal()
    return signature is not None and verify(author, header.pre_hash(), signature)


def authorities(situation: Situation) -> tuple[bytes, ...]:
    """Return the collators' public keys, in turn order."""
    return tuple(public_key(seed) for seed in situation.seeds)
