"""Strategies of cheating.

A strategy has the gain that it seeks, the steps that it proposes, and the verdicts that it must
meet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from traceback import extract_tb
from typing import cast

from pubsub_emulator.collator.cheats.expectation import expected
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import BadStep, CheatStep, Draft, check_step
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.errors import DefensiveFailure, PubsubError
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict


class StrategyFailed(PubsubError):
    """A strategy raised, or returned a value that is not a proposal.

    The message has the file, the line and the reason.
    """


Proposal = tuple[CheatStep, ...] | None
Propose = Callable[[Situation, Draws], Proposal]


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy of a dishonest collator (PS-81)."""

    name: str
    gain: str
    """The gain that the collator seeks, in words."""
    meets: tuple[Verdict, ...]
    """The verdicts of which the block meets one if the strategy is used alone.

    If this is empty, or if the result is the honest block, the block is valid.
    """
    on_proof: bool
    """Whether the steps change only the proof's nodes, so that they also work for a proof alone."""
    propose: Propose


@dataclass(frozen=True, slots=True)
class Attempt:
    """A dishonest block, with the strategies and steps that made it."""

    strategies: tuple[str, ...]
    steps: tuple[CheatStep, ...]
    candidate: Candidate
    expected: tuple[Verdict, ...]
    """All verdicts that the block must meet; empty if it is valid."""


def strategy(
    name: str, gain: str, *meets: Verdict, on_proof: bool = False
) -> Callable[[Propose], Strategy]:
    """Make a strategy of the decorated function, which proposes its steps."""
    return lambda propose: Strategy(name, gain, meets, on_proof, propose)


def attempt(situation: Situation, strategies: tuple[Strategy, ...], seed: bytes) -> Attempt | None:
    """Return the block of these strategies in turn, or `None` if none of them applies.

    Raises `ValueError` if there is no block because a proof alone is judged.
    """
    if situation.budget is not None:
        raise ValueError("a situation in which only a proof is judged has no block")
    names, steps = propose(situation, strategies, seed)
    if not steps:
        return None
    candidate = carry_out(situation, steps)
    return Attempt(names, steps, candidate, expected(situation, candidate))


def propose(
    situation: Situation, strategies: tuple[Strategy, ...], seed: bytes
) -> tuple[tuple[str, ...], tuple[CheatStep, ...]]:
    """Return the names of the strategies that apply, and their steps in one sequence."""
    names: list[str] = []
    steps: list[CheatStep] = []
    for index, chosen in enumerate(strategies):
        proposal = _proposal(chosen, situation, Draws(seed, f"{index}/{chosen.name}"))
        if proposal:
            names.append(chosen.name)
            steps += proposal
    return tuple(names), tuple(steps)


def _proposal(chosen: Strategy, situation: Situation, draws: Draws) -> Proposal:
    """Return the steps that a strategy proposes.

    Raises `StrategyFailed` with the place if it proposes anything else.
    """
    try:
        # A user's function may return any object, whatever its annotation.
        proposal: object = chosen.propose(situation, draws)
    except DefensiveFailure:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, PubsubError) and error.is_infrastructure:
            # A defect of this program is not the strategy's fault.
            raise
        raise StrategyFailed(
            f"{_place(chosen, error)}: strategy {chosen.name!r}: {type(error).__name__}: {error}"
        ) from error
    fault = None if proposal is None else _fault(proposal)
    if fault is None:
        return cast("Proposal", proposal)
    raise StrategyFailed(
        f"{_place(chosen, None)}: strategy {chosen.name!r} returned {fault}; a proposal is a tuple"
        " of steps, or None"
    )


def _fault(proposal: object) -> str | None:
    """Return the reason why a value is not a tuple of steps, or `None` if it is one."""
    if not isinstance(proposal, tuple):
        return _with_article(type(proposal).__name__)
    for index, step in enumerate(proposal, start=1):
        if not hasattr(step, "apply"):
            return f"a tuple whose step {index} is {_with_article(type(step).__name__)}"
        try:
            check_step(step)
        except BadStep as fault:
            return f"a tuple whose step {index} is wrong: {fault}"
    return None


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _place(chosen: Strategy, error: BaseException | None) -> str:
    """Return the file and line of an error in the strategy's own file.

    Without an error there, it is the place where the strategy begins.
    """
    code = chosen.propose.__code__ if hasattr(chosen.propose, "__code__") else None
    file = code.co_filename if code is not None else "?"
    lines = (
        []
        if error is None
        else [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    )
    if lines:
        line = lines[-1]
    elif code is not None:
        line = code.co_firstlineno
    else:
        line = 0
    return f"{file}, line {line}"


def carry_out(situation: Situation, steps: tuple[CheatStep, ...]) -> Candidate:
    """Return the honest block after these steps."""
    draft = Draft.of(situation.honest)
    for step in steps:
        step.apply(draft)
    return draft.sealed_by(situation.seeds)
