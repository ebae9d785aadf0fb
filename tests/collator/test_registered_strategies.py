"""Strategies from outside: named by scenarios once registered, caught like all others, never mistaken for others."""

from collections.abc import Iterator

import pytest

from pubsub_emulator.collator import cheats
from pubsub_emulator.collator.cheats import STRATEGIES, Situation, Strategy, StrategyTaken, register_strategy
from pubsub_emulator.collator.cheats.steps import Drop
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.collator.draws import Draws
from pubsub_emulator.emulator.scenario import CollatorSettings
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.runtime.parachain.block import Verdict

SCENARIO = """
name = "own"
seed = "own"
relay_blocks = 6
[[publishers]]
paras = [1000]
keys = 3
update_rate = 1.0
[[subscribers]]
para = 2000
subscribe = [{ publishers = [1000] }]
collators = [{ strategies = ["tests/omit-largest"] }, {}]
"""


@strategy("tests/omit-largest", "leave out what is largest", Verdict.OMITTED_BELOW_BUDGET, Verdict.ROOT_MISMATCH)
def omit_largest(situation: Situation, _draws: Draws) -> Proposal:
    taken = situation.walked.taken
    return (Drop(max(taken, key=lambda node_hash: (len(taken[node_hash]), node_hash))),)


@pytest.fixture
def registered() -> Iterator[Strategy]:
    register_strategy(omit_largest)
    yield omit_largest
    del cheats._KNOWN[omit_largest.name]


def test_a_scenario_names_a_registered_strategy_and_its_blocks_are_refused(registered: Strategy) -> None:
    simulation = Simulation(parse_scenario(SCENARIO, "own.toml"))
    refused = [record for _ in range(6) for record in simulation.step().refused]
    assert refused
    for record in refused:
        assert record.strategy == registered.name
        assert record.refusal is not None
        assert (record.refusal.verdict,) == record.due[:1]


def test_a_strategy_is_unknown_before_it_is_registered() -> None:
    with pytest.raises(PubsubError, match="omit-largest"):
        parse_scenario(SCENARIO, "own.toml")


@pytest.mark.usefixtures("registered")
def test_a_name_never_means_another_strategy() -> None:
    register_strategy(omit_largest)
    assert STRATEGIES[omit_largest.name] is omit_largest
    with pytest.raises(StrategyTaken, match="another strategy 'omit-node'"):
        register_strategy(Strategy("omit-node", "", (), on_proof=True, propose=omit_largest.propose))
    assert CollatorSettings(strategies=(omit_largest.name,)).strategies == (omit_largest.name,)
