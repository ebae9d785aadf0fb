"""Collators and cheats of a test's network. Trying a block does not change the network."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pubsub_emulator.collator.cheats import STRATEGIES, attempt
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.parachain import Collator
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.validate import judge_block, validate_block


class NoSuchCheat(PubsubError):
    """A name that no strategy has."""


class NothingToCheat(PubsubError):
    """A situation in which the strategy has no effect, for instance without a node to omit."""


@dataclass(frozen=True, slots=True)
class JudgedCandidate:
    """A dishonest candidate after it was judged."""

    candidate: Candidate
    due: tuple[Verdict, ...]
    """The verdicts that it must get. The tuple is empty if it is valid after all."""
    found: tuple[Verdict, ...]
    """The verdicts that were found."""
    refusal: InvalidBlock | None
    """The reason why it is invalid, with the evidence, or `None`."""


@dataclass(frozen=True, slots=True)
class Collators:
    """The authors of a network's parachains, for tests that author or judge blocks."""

    network: Network

    def of(self, para: int) -> tuple[Collator, ...]:
        """Return a parachain's collators in the order of their turns. Raises `UnknownParachain`."""
        return self.network.parachain(para).collators

    def author(self, para: int) -> Candidate:
        """Return the next honest block with its seal.

        Raises `UnknownParachain` or `CannotAuthor`.
        """
        return self.network.situation(para).honest

    def judge(self, para: int, candidate: Candidate) -> BlockOutcome:
        """Return the outcome of a candidate. Raises `InvalidBlock` if it is invalid."""
        situation = self.network.situation(para)
        return validate_block(
            situation.parent, candidate, situation.context(candidate.inherent.relay_parent_number)
        )


@dataclass(frozen=True, slots=True)
class Cheats:
    """Dishonest authors. `pubsub fuzz --list` prints the names of strategies."""

    network: Network

    def attempt(self, para: int, *strategies: str, seed: bytes = b"cheat") -> JudgedCandidate:
        """Judge the block that these strategies make now and return the result.

        Raises `NoSuchCheat`, `NothingToCheat`, `UnknownParachain` or `CannotAuthor`.
        """
        situation = self.network.situation(para)
        attempted = attempt(situation, tuple(STRATEGIES[name] for name in _known(strategies)), seed)
        if attempted is None:
            raise NothingToCheat(
                f"{'+'.join(strategies)} has nothing to do at parachain {para}'s next block"
            )
        context = situation.context(attempted.candidate.inherent.relay_parent_number)
        _, refusal = judge_block(situation.parent, attempted.candidate, context)
        verdicts = () if refusal is None else tuple(offence.verdict for offence in refusal.evidence)
        return JudgedCandidate(
            attempted.candidate, attempted.expected, tuple(dict.fromkeys(verdicts)), refusal=refusal
        )

    def bribe(self, para: int, collator: int, *strategies: str, rate: float = 1.0) -> None:
        """Make a collator cheat in a share of its turns from now on.

        `collator` is its index in the order of turns. Raises `NoSuchCheat`, `UnknownParachain` or
        `IndexError`.
        """
        chain = self.network.parachain(para)
        changed = list(chain.collators)
        changed[collator] = replace(
            changed[collator], strategies=tuple(_known(strategies)), rate=round(rate * MILLION)
        )
        chain.collators = tuple(changed)


def _known(strategies: Iterable[str]) -> list[str]:
    names = list(strategies)
    for name in names:
        if name not in STRATEGIES:
            raise NoSuchCheat(f"unknown strategy {name!r}. Strategies: {', '.join(STRATEGIES)}")
    return names
