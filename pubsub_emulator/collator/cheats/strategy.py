"""Strategies of cheating: the gain they seek, the steps they propose, and the verdict they must meet."""

from collections.abc import Callable
from dataclasses import dataclass
from traceback import extract_tb
from typing import cast

from pubsub_emulator.collator.cheats.expectation import expected
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import BadStep, Draft, Step, check_step
from pubsub_emulator.collator.draws import Draws
from pubsub_emulator.primitives.errors import DefensiveFailure, PubsubError
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict


class StrategyFailed(PubsubError):
    """A strategy raised or returned something that is not a proposal; the message names file, line and reason."""


Proposal = tuple[Step, ...] | None
Propose = Callable[[Situation, Draws], Proposal]


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy of a dishonest collator (PS-81).

    `gain` says what it seeks. Used alone, it meets one of `meets`; if that is empty, or if the result is the honest
    block, it meets none and the block is valid. `on_proof` strategies change only the proof's nodes, and also work if a
    proof is judged alone.
    """

    name: str
    gain: str
    meets: tuple[Verdict, ...]
    on_proof: bool
    propose: Propose


@dataclass(frozen=True, slots=True)
class Attempt:
    """A dishonest block, how it was made, and all verdicts that it must meet (none if it is valid)."""

    strategies: tuple[str, ...]
    steps: tuple[Step, ...]
    candidate: Candidate
    expected: tuple[Verdict, ...]


def strategy(name: str, gain: str, *meets: Verdict, on_proof: bool = False) -> Callable[[Propose], Strategy]:
    """Decorator: make a strategy of the function that proposes its steps."""
    return lambda propose: Strategy(name, gain, meets, on_proof, propose)


def attempt(situation: Situation, strategies: tuple[Strategy, ...], seed: bytes) -> Attempt | None:
    """The block of these strategies in turn, `None` if none applies. Raises `ValueError` where there is no block."""
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
    """The names of the strategies that apply, and their steps in one sequence."""
    names: list[str] = []
    steps: list[Step] = []
    for at, chosen in enumerate(strategies):
        proposal = _proposal(chosen, situation, Draws(seed, f"{at}/{chosen.name}"))
        if proposal:
            names.append(chosen.name)
            steps += proposal
    return tuple(names), tuple(steps)


def _proposal(chosen: Strategy, situation: Situation, draws: Draws) -> Proposal:
    """The steps that a strategy proposes. Raises `StrategyFailed` for anything else, with its place."""
    try:
        proposal: object = chosen.propose(situation, draws)  # a user's function may return anything
    except DefensiveFailure:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, PubsubError) and error.is_infrastructure:
            raise  # not the strategy's doing
        raise StrategyFailed(
            f"{_place(chosen, error)}: strategy {chosen.name!r}: {type(error).__name__}: {error}"
        ) from error
    wrong = None if proposal is None else _fault(proposal)
    if wrong is None:
        return cast("Proposal", proposal)
    raise StrategyFailed(
        f"{_place(chosen, None)}: strategy {chosen.name!r} returned {wrong}; a proposal is a tuple of steps, or None"
    )


def _fault(proposal: object) -> str | None:
    """Why a value is no tuple of steps; `None` if it is one."""
    if not isinstance(proposal, tuple):
        return type(proposal).__name__
    for at, step in enumerate(proposal, start=1):
        if not hasattr(step, "apply"):
            kind = type(step).__name__
            return f"a tuple whose step {at} is {'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        try:
            check_step(step)
        except BadStep as fault:
            return f"a tuple whose step {at} is wrong: {fault}"
    return None


def _place(chosen: Strategy, error: BaseException | None) -> str:
    """File and line: where `error` was raised in the strategy's own file, or where the strategy begins."""
    code = chosen.propose.__code__ if hasattr(chosen.propose, "__code__") else None
    file = code.co_filename if code is not None else "?"
    lines = [] if error is None else [at.lineno for at in extract_tb(error.__traceback__) if at.filename == file]
    line = lines[-1] if lines else code.co_firstlineno if code is not None else 0
    return f"{file}, line {line}"


def carry_out(situation: Situation, steps: tuple[Step, ...]) -> Candidate:
    """The honest block after these steps."""
    draft = Draft.of(situation.honest)
    for step in steps:
        step.apply(draft)
    return draft.sealed_by(situation.seeds)
