"""The scenarios of section 8 in virtual time; each also ends with every invariant of section 7."""

import re
from pathlib import Path

import pytest

from interchain_events.distributor.simulation.scenarios import SCENARIOS, play

HERE = Path(__file__).parent
OVER_HTTP = {34}
"""Addresses are judged when a connection is made, so this is played over HTTP alone."""


@pytest.mark.parametrize(
    "number", SCENARIOS, ids=[f"{number} {SCENARIOS[number][0]}" for number in SCENARIOS]
)
def test_scenario(number: int) -> None:
    assert not play(number).failures


def test_every_scenario_of_the_rules_is_played() -> None:
    assert set(SCENARIOS) | OVER_HTTP == set(range(1, 40))


def test_every_scenario_of_the_rules_is_played_over_http_too() -> None:
    """Tests over real HTTP name the scenarios that they play."""
    others = (
        HERE / "test_access.py",
        HERE / "test_public_adapter.py",
        HERE.parent / "cli" / "test_distributor.py",
    )
    named = set[int]()
    for path in (*HERE.glob("test_http*.py"), *others):
        found = re.findall(
            r"^(?:async )?def test_\w*?scenarios?_((?:\d+_)+)",
            path.read_text("utf-8"),
            re.MULTILINE,
        )
        named |= {int(number) for number in "".join(found).split("_") if number}
    assert named >= set(range(1, 40))


@pytest.mark.parametrize("seed", [1, 2])
def test_id51_the_same_seed_has_the_same_digest(seed: int) -> None:
    assert play(23, seed).world.digest() == play(23, seed).world.digest()
    assert play(23, seed).world.digest() != play(23, seed + 1).world.digest()
