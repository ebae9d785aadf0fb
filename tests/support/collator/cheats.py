"""Situations in which a collator can cheat.

The tests of the collators' room share them. They are made once, and tests do not change them.
"""

from functools import cache

from pubsub_emulator.collator.cheats import Attempt, Situation
from pubsub_emulator.laboratory.cases import JudgingContext
from pubsub_emulator.laboratory.worlds import World
from pubsub_emulator.runtime.parachain.block import Verdict

WORLDS = (*range(6), 13, 14)
"""The numbers of the worlds; the last two have a relay parent offset."""
SITUATIONS = 4 * len(WORLDS)


@cache
def situations(*, alone: bool = False) -> tuple[Situation, ...]:
    out = []
    for number in WORLDS:
        world = World(b"cheats %d" % number, proofs_only=alone)
        for _ in range(4):
            world.advance()
            out.append(world.situation())
    return tuple(out)


def found(now: Situation, attempted: Attempt) -> tuple[str, ...]:
    return JudgingContext.of(now).judge(attempted.candidate)


def names(verdicts: tuple[Verdict, ...]) -> tuple[str, ...]:
    return tuple(verdict.value for verdict in verdicts)
