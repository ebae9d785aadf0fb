"""Malicious collators as objects (PS-81): named, composable, seeded and shrinkable.

Each has the verdicts that its blocks must meet.

situation.py    a collator's knowledge when it authors a block
steps.py        the changes to an honest block, one step at a time; how to shrink a sequence
strategy.py     the type of strategies, and attempts that apply several in turn
expectation.py  the verdicts that a block must meet, from its author's knowledge

The strategies are in nodes.py, pretences.py, claims.py, inherents.py, seals.py, mutations.py,
descendants.py and forgeries.py.
"""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Final

from pubsub_emulator.collator.cheats import (
    claims,
    descendants,
    forgeries,
    inherents,
    mutations,
    nodes,
    pretences,
    seals,
)
from pubsub_emulator.collator.cheats.expectation import expected as expected
from pubsub_emulator.collator.cheats.expectation import expected_of_proof as expected_of_proof
from pubsub_emulator.collator.cheats.seals import authorities as authorities
from pubsub_emulator.collator.cheats.seals import equivocates as equivocates
from pubsub_emulator.collator.cheats.situation import Situation as Situation
from pubsub_emulator.collator.cheats.strategy import Attempt as Attempt
from pubsub_emulator.collator.cheats.strategy import Strategy as Strategy
from pubsub_emulator.collator.cheats.strategy import attempt as attempt
from pubsub_emulator.collator.cheats.strategy import carry_out as carry_out
from pubsub_emulator.collator.cheats.strategy import propose as propose
from pubsub_emulator.files.near import near_to
from pubsub_emulator.primitives.errors import PubsubError


def _strategies(*modules: ModuleType) -> dict[str, Strategy]:
    """Return the strategies of these modules by name, in the order in which they are written."""
    strategies: dict[str, Strategy] = {}
    for module in modules:
        for member in vars(module).values():
            if isinstance(member, Strategy):
                strategies[member.name] = member
    return strategies


_KNOWN: Final = _strategies(nodes, pretences, claims, inherents, seals, mutations)

STRATEGIES: Final[Mapping[str, Strategy]] = MappingProxyType(_KNOWN)
"""All strategies by name, including registered ones."""

BUILT_IN: Final = tuple(_KNOWN)
"""The names of the project's own strategies for chains of any kind.

Results that must not depend on registered strategies use only these.
"""

WITH_OFFSET: Final = tuple(_strategies(descendants))
"""The names of strategies that need a chain with a relay parent offset.

Simulated histories skip them, because their chains have no offset and their results must not
change.
"""

WITH_ACCOUNTS: Final = tuple(_strategies(forgeries))
"""The names of strategies that need a chain with accounts.

Campaigns and vectors, whose chains have no accounts, skip them.
"""

_KNOWN.update(_strategies(descendants))
_KNOWN.update(_strategies(forgeries))


def for_any_chain() -> dict[str, Strategy]:
    """Return all strategies except those that need a chain with accounts."""
    return {name: strategy for name, strategy in STRATEGIES.items() if name not in WITH_ACCOUNTS}


def no_strategy(name: str) -> str:
    """Return the error message for an unknown strategy."""
    return (
        f"unknown strategy {name!r}; {near_to(name, STRATEGIES, '`pubsub fuzz --list` shows all')}"
    )


class StrategyTaken(PubsubError):
    """Another strategy has this name, so records could not tell the two apart."""


def register_strategy(strategy: Strategy) -> None:
    """Let networks and scenarios of this process use `strategy` by its name.

    Raises `StrategyTaken`.
    """
    if _KNOWN.setdefault(strategy.name, strategy) != strategy:
        raise StrategyTaken(f"there is another strategy {strategy.name!r} already")
