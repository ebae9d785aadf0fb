"""Malicious collators as first-class objects (PS-81): named, composable, seeded, shrinkable, each with its verdict.

situation.py    what a collator has before it
steps.py        what is done to the honest block, one concrete step at a time; how a sequence is shrunk
strategy.py     what a strategy is; strategies one after the other make an attempt
expectation.py  what must be found against any block, from what its author knew
omissions.py, additions.py, pretences.py, claims.py, seals.py, mutations.py    the strategies
"""

from collections.abc import Mapping
from typing import Final

from collator.cheats.additions import ADDITIONS
from collator.cheats.claims import CLAIMS
from collator.cheats.expectation import expected, expected_of_proof
from collator.cheats.mutations import MUTATIONS
from collator.cheats.omissions import OMISSIONS
from collator.cheats.pretences import PRETENCES
from collator.cheats.seals import SEALS, authorities, equivocates
from collator.cheats.situation import Situation
from collator.cheats.strategy import Attempt, Strategy, attempt, carry_out, propose

STRATEGIES: Final[Mapping[str, Strategy]] = {
    strategy.name: strategy for strategy in (*OMISSIONS, *ADDITIONS, *PRETENCES, *CLAIMS, *SEALS, *MUTATIONS)
}
"""All strategies by name."""

__all__ = [
    "STRATEGIES",
    "Attempt",
    "Situation",
    "Strategy",
    "attempt",
    "authorities",
    "carry_out",
    "equivocates",
    "expected",
    "expected_of_proof",
    "propose",
]
