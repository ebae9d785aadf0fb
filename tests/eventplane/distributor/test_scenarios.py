"""The scenarios of section 8 in virtual time; each also ends with every invariant of section 7."""

import pytest

from pubsub_emulator.eventplane.distributor.simulation.scenarios import SCENARIOS, play

OVER_HTTP = {34}
"""Addresses are judged when a connection is made, so this is played over HTTP alone."""


@pytest.mark.parametrize("number", SCENARIOS, ids=[f"{number} {SCENARIOS[number][0]}" for number in SCENARIOS])
def test_scenario(number: int) -> None:
    assert not play(number).failures


def test_every_scenario_of_the_rules_is_played() -> None:
    assert set(SCENARIOS) | OVER_HTTP == set(range(1, 40))


@pytest.mark.parametrize("seed", [1, 2])
def test_id51_the_same_seed_has_the_same_digest(seed: int) -> None:
    assert play(23, seed).world.digest() == play(23, seed).world.digest()
    assert play(23, seed).world.digest() != play(23, seed + 1).world.digest()
