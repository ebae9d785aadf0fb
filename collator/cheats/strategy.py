"""A way to cheat: what it hopes for, what it does in a given situation, and the verdict it must meet."""

from collections.abc import Callable
from dataclasses import dataclass

from pubsub_emulator.collator.cheats.expectation import expected
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import Draft, Step
from pubsub_emulator.collator.draws import Draws
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict

Proposal = tuple[Step, ...] | None
Propose = Callable[[Situation, Draws], Proposal]


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy of a dishonest collator (PS-81).

    `gain` says what it is after. Used alone it meets one of `meets`, or, where that is empty or the situation turns it
    into the honest block, none: such a block is valid. `on_proof` strategies change nothing but the proof's nodes, and
    work where a proof is judged alone, too.
    """

    name: str
    gain: str
    meets: tuple[Verdict, ...]
    on_proof: bool
    propose: Propose


@dataclass(frozen=True, slots=True)
class Attempt:
    """A dishonest block, how it came about, and all verdicts that must be found against it (none: it is valid)."""

    strategies: tuple[str, ...]
    steps: tuple[Step, ...]
    candidate: Candidate
    expected: tuple[Verdict, ...]


def strategy(name: str, gain: str, *meets: Verdict, on_proof: bool = False) -> Callable[[Propose], Strategy]:
    """Make a strategy of the function that proposes its steps."""
    return lambda propose: Strategy(name, gain, meets, on_proof, propose)


def attempt(situation: Situation, strategies: tuple[Strategy, ...], seed: bytes) -> Attempt | None:
    """The block that comes of following these strategies, one after the other; none when none of them applies.

    Raises `ValueError` in a situation whose proof is judged alone: there is no block.
    """
    if situation.budget is not None:
        raise ValueError("no block is built where a proof is judged alone")
    names, steps = propose(situation, strategies, seed)
    if not steps:
        return None
    candidate = carry_out(situation, steps)
    return Attempt(names, steps, candidate, expected(situation, candidate))


def propose(
    situation: Situation, strategies: tuple[Strategy, ...], seed: bytes
) -> tuple[tuple[str, ...], tuple[Step, ...]]:
    """The strategies that apply, by name, and their steps in one sequence."""
    names: list[str] = []
    steps: list[Step] = []
    for at, chosen in enumerate(strategies):
        proposal = chosen.propose(situation, Draws(seed, f"{at}/{chosen.name}"))
        if proposal:
            names.append(chosen.name)
            steps += proposal
    return tuple(names), tuple(steps)


def carry_out(situation: Situation, steps: tuple[Step, ...]) -> Candidate:
    """The honest block with these steps done to it."""
    draft = Draft.of(situation.honest)
    for step in steps:
        step.apply(draft)
    return draft.sealed_by(situation.seeds)
