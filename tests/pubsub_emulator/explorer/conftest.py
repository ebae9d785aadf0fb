"""One run for all tests of the explorer."""

import pytest
from support.explorer.run_page import SCENARIO, Explored, Told, open_page

from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.explorer.page import page_of, record


@pytest.fixture(scope="package")
def explored() -> Explored:
    scenario = parse_scenario(SCENARIO, "explored.toml")
    told = Told()
    simulation = Simulation(scenario, (told,))
    recorder = record(simulation)
    simulation.run()
    text = page_of(recorder, scenario)
    return Explored(told, recorder, recorder.names, text, open_page(text), simulation)
